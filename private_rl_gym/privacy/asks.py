"""Public requests to the users of a batch, beside the policy that they run.

* ``Ask`` - the base class
* ``Values`` - a value function, for users who report the moments of a linear learner

An ask is sent along with the policy: ``board.serve(policy, users, ask)``. It is public, and the same for all users of
a batch. It may change *what* users report, but never how far one of them can move a sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import as_array, read_only

__all__ = ["ASKS", "Ask", "Values"]


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """A public request to users. Each kind of statistic understands one kind of ask, or none."""

    def checked(self, horizon: int, n_states: int, n_actions: int) -> Ask:
        """A copy in plain arrays; raises if it does not fit these sizes."""
        raise NotImplementedError

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Its arrays by name, to be saved."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Ask:
        """The ask with these arrays."""
        return cls(**{field.name: arrays[field.name] for field in fields(cls)})


@dataclass(frozen=True, slots=True, eq=False)
class Values(Ask):
    """A value function, whose moments linear users report: phi(s, a) = sum over s' of psi(s, a, s') V(s').

    Attributes:
        values: ``[h, s]``, h = 0..H.
    """

    values: NDArray[np.float64]

    def checked(self, horizon: int, n_states: int, n_actions: int) -> Values:
        """A read-only copy; raises if its shape does not fit these sizes."""
        del n_actions
        copied = read_only(as_array(self.values, "values"))
        if copied.shape != (horizon + 1, n_states):
            raise ValueError(
                f"values have shape {copied.shape}: they must be {(horizon + 1, n_states)}, one value for each state "
                f"at "
                "each stage and at the end."
            )
        return Values(copied)


ASKS: dict[str, type[Ask]] = {kind.__name__: kind for kind in (Values,)}
"""All kinds of asks, by name."""

"""Public requests to the users of a batch, beside the policy that they run.

* ``Ask`` - the base class
* ``Values`` - a value function, for users who report the moments of a linear learner
* ``Wanted`` - the cells that are wanted, for users who report single steps

An ask is sent along with the policy: ``board.serve(policy, users, ask)``. It is public, and the same for all users of
a batch. It may change *what* users report, but never how far one of them can move a sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import as_array, positive_integer, read_only

__all__ = ["ASKS", "Ask", "Values", "Wanted"]


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


@dataclass(frozen=True, slots=True, eq=False)
class Wanted(Ask):
    """The steps that users report: their first ones in wanted cells, or one at a random stage.

    Each user is, at random, one of three kinds: she reports the state she started in (with probability ``starts``), her
    step at a stage drawn uniformly (``anywhere``), or else the first step that she takes in each of the first ``most``
    wanted cells that she meets. All three choices look at the past only, so that next states and rewards are unbiased.

    Attributes:
        cells: ``[s, a]``, whether a step there is wanted.
        anywhere: Probability that she reports the step at a random stage, wherever it is.
        starts: Probability that she reports the state she started in.
        most: Largest number of steps that she reports. Noise grows with it, so a user who visits many cells reports
            more of them, each less clearly.
        by_stage: Whether she also says at which stage each step was. Then the same cell at another stage is another
            cell, and may be reported too. For sums of ``"staged-reports"``.
    """

    cells: NDArray[np.bool_]
    anywhere: float = 0.0
    starts: float = 0.0
    most: int = 1
    by_stage: bool = False

    def checked(self, horizon: int, n_states: int, n_actions: int) -> Wanted:
        """A read-only copy; raises if it does not fit these sizes."""
        cells = np.array(self.cells)
        if cells.shape != (n_states, n_actions) or cells.dtype != np.bool_:
            raise ValueError(
                f"cells have shape {cells.shape} and type {cells.dtype}: say True or False for each of the "
                f"{(n_states, n_actions)} states and actions."
            )
        anywhere, starts = float(self.anywhere), float(self.starts)
        if not (anywhere >= 0.0 and starts >= 0.0 and anywhere + starts <= 1.0):
            raise ValueError(f"anywhere is {anywhere} and starts is {starts}: they are parts of one probability.")
        most = positive_integer(self.most, "most", "reports")
        if most > horizon:
            raise ValueError(f"most is {most}: a user takes {horizon} steps.")
        if type(self.by_stage) is not bool:
            raise TypeError(f"by_stage is of type {type(self.by_stage).__name__}: it is True or False.")
        return Wanted(read_only(cells), anywhere, starts, most, self.by_stage)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Its arrays by name, to be saved."""
        shares = np.array([self.anywhere, self.starts])
        return {"cells": self.cells, "shares": shares, "most": np.array([self.most, self.by_stage])}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Wanted:
        """The ask with these arrays."""
        anywhere, starts = arrays["shares"]
        most, by_stage = arrays["most"]
        return cls(arrays["cells"], float(anywhere), float(starts), int(most), bool(by_stage))


ASKS: dict[str, type[Ask]] = {kind.__name__: kind for kind in (Values, Wanted)}
"""All kinds of asks, by name."""

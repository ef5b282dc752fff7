"""Stage-dependent policies, deterministic or stochastic."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.planning.arrays import as_array, as_distributions, cumulative, positive_integer, read_only

__all__ = ["Policy"]


@dataclass(frozen=True, init=False, eq=False, repr=False)  # no slots: cached_property keeps its value in __dict__
class Policy:
    """The actions, or their probabilities, at each stage and state.

    Build one with :meth:`of`, from actions (integers ``[h, s]``) or from probabilities of actions (floats
    ``[h, s, a]``). Without the axis h, the policy is the same at every stage.

    A stochastic policy draws an action by the inverse distribution function, from a uniform that the caller gives. The
    same uniforms give the same actions in the step loop, the vector environment and the compiled rollout.

    Example:
        >>> policy = Policy.of([[0, 1], [1, 1]], horizon=2, n_states=2, n_actions=2)
        >>> policy
        Policy(deterministic, H=2, S=2, A=2)
        >>> policy.action(0, 1)
        1
    """

    table: NDArray[np.int64] | NDArray[np.float64]  # [h, s] actions, or [h, s, a] probabilities
    n_actions: int

    def __init__(self, table: ArrayLike, n_actions: int) -> None:
        """Build a policy from a table for every stage.

        See :meth:`of` for a policy that is the same at all stages.
        """
        try:
            shape = np.shape(table)
        except (TypeError, ValueError):
            raise ValueError("The policy is not a regular array: its rows differ in length.") from None
        if len(shape) < 2:
            raise ValueError(f"The policy has shape {shape}: it must be [h, s] or [h, s, a]. Policy.of takes less.")
        checked = Policy.of(table, horizon=shape[0], n_states=shape[1], n_actions=n_actions)
        object.__setattr__(self, "table", checked.table)
        object.__setattr__(self, "n_actions", checked.n_actions)

    @classmethod
    def of(cls, table: Policy | ArrayLike, *, horizon: int, n_states: int, n_actions: int) -> Policy:
        """Return the policy in ``table``, checked against the sizes of a model.

        Args:
            table: A policy, integers ``[h, s]`` or ``[s]``, or probabilities ``[h, s, a]`` or ``[s, a]``.
            horizon: Number of stages.
            n_states: Number of states.
            n_actions: Number of actions.
        """
        sizes = (
            positive_integer(horizon, "horizon", "stages"),
            positive_integer(n_states, "n_states", "states"),
            positive_integer(n_actions, "n_actions", "actions"),
        )
        try:
            # A plain array, whatever was handed over: a subclass of arrays could look at what is done with it.
            values = np.asarray(table.table if isinstance(table, Policy) else table)
        except (TypeError, ValueError):
            raise ValueError("The policy is not a regular array: its rows differ in length.") from None
        if np.issubdtype(values.dtype, np.integer):
            shape: tuple[int, ...] = sizes[:2]
            array = values.astype(np.int64, order="C")
            if array.size and array.view(np.uint64).max() >= n_actions:  # negative actions are huge ones without a sign
                raise ValueError(
                    f"The policy chooses an action outside 0..{n_actions - 1}: "
                    f"its entries run from {array.min()} to {array.max()}."
                )
        else:
            shape = sizes
            array = as_array(values, "policy")  # type: ignore[assignment]
        if array.shape not in (shape, shape[1:]):
            raise ValueError(
                f"The policy has shape {array.shape}: with {horizon} stages, {n_states} states and {n_actions} "
                f"actions it must be integers {sizes[:2]} or {sizes[1:2]}, or probabilities {sizes} or {sizes[1:]}."
            )
        if len(shape) == 3:
            array = as_distributions(array, "policy", "state")  # type: ignore[assignment,arg-type]
        if array.shape != shape:
            array = np.ascontiguousarray(np.broadcast_to(array, shape))
        return cls.trusted(read_only(array), n_actions)

    @classmethod
    def trusted(cls, table: NDArray[np.int64] | NDArray[np.float64], n_actions: int) -> Policy:
        """Return the policy in an array that is known to be valid.

        Nothing is checked. The array may be the result of a solver. Code that lets users run a policy checks it again,
        and copies it: boundaries, models and rollouts do.
        """
        policy = object.__new__(cls)
        object.__setattr__(policy, "table", table)
        object.__setattr__(policy, "n_actions", n_actions)
        return policy

    @classmethod
    def uniform(cls, *, horizon: int, n_states: int, n_actions: int) -> Policy:
        """Return the policy that chooses every action equally often."""
        table = np.full((n_states, n_actions), 1.0 / positive_integer(n_actions, "n_actions", "actions"))
        return cls.of(table, horizon=horizon, n_states=n_states, n_actions=n_actions)

    @property
    def deterministic(self) -> bool:
        """Whether the state and the stage fix the action."""
        return self.table.ndim == 2

    @property
    def horizon(self) -> int:
        """Number of stages."""
        return int(self.table.shape[0])

    @property
    def n_states(self) -> int:
        """Number of states."""
        return int(self.table.shape[1])

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:  # [h, s, a]
        """The policy as probabilities, whichever kind it is."""
        if self.deterministic:
            one_hot = np.arange(self.n_actions) == self.table[..., None]
            return read_only(one_hot.astype(np.float64))
        return self.table  # type: ignore[return-value]

    @cached_property
    def cumulative(self) -> NDArray[np.float64]:  # [h, s, a]
        """Cumulative probabilities, which are exactly one from the last possible action on."""
        return read_only(cumulative(self.probabilities))

    def action(self, stage: int, state: int, uniform: float | None = None) -> int:
        """Return the action at one stage and state.

        A stochastic policy needs a uniform in [0, 1).
        """
        if not (0 <= stage < self.horizon and 0 <= state < self.n_states):
            raise ValueError(
                f"There is no stage {stage} with state {state} in this policy: it has {self.horizon} stages and "
                f"{self.n_states} states."
            )
        if self.deterministic:
            return int(self.table[stage, state])
        if uniform is None or not 0.0 <= uniform < 1.0:
            raise ValueError(f"A stochastic policy needs a uniform in [0, 1) to draw its action with, not {uniform}.")
        return int(np.searchsorted(self.cumulative[stage, state], uniform, side="right"))

    def __reduce__(self) -> tuple[Any, ...]:
        return Policy, (self.table, self.n_actions)

    def __repr__(self) -> str:
        kind = "deterministic" if self.deterministic else "stochastic"
        return f"Policy({kind}, H={self.horizon}, S={self.n_states}, A={self.n_actions})"

"""Models with many states and few successors of each.

Outcomes are packed, without a dense array.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.envs.finite import FiniteModel, RewardLaw, initial_distribution
from private_rl_gym.planning.arrays import (
    EXACT,
    TOLERANCE,
    among,
    as_array,
    check_unit_interval,
    positive_integer,
    read_only,
    shown,
)
from private_rl_gym.planning.features import check_dense
from private_rl_gym.planning.sampling import SamplingTables

if TYPE_CHECKING:
    from private_rl_gym.planning.solve import Outcomes

__all__ = ["SparseModel"]


class SparseModel(FiniteModel):
    """A model with packed transitions.

    Its memory and time depend on the number of possible outcomes. Row (h * S + s) * A + a of the outcomes, with h = 0
    where one stage stands for all, owns the entries from ``offsets[row]`` to ``offsets[row + 1]``.

    Attributes:
        offsets, successors, probabilities: The packed transitions.
        rewards, initial, horizon, reward_law: As in ``TabularModel``.

    Example:
        >>> model = SparseModel([0, 1, 3], [1, 0, 1], [1.0, 0.5, 0.5], rewards=[[0.0], [1.0]], horizon=3)
        >>> model
        SparseModel(S=2, A=1, H=3, stationary, bernoulli rewards)
        >>> model.optimal_value()
        1.5
    """

    def __init__(
        self,
        offsets: ArrayLike,
        successors: ArrayLike,
        probabilities: ArrayLike,
        rewards: ArrayLike,
        initial: ArrayLike = 0,
        horizon: int = 1,
        reward_law: RewardLaw = "bernoulli",
    ) -> None:
        self.horizon = H = positive_integer(horizon, "horizon", "steps in an episode")
        r = as_array(rewards, "rewards")
        r = r[None] if r.ndim == 2 else r
        if r.ndim != 3 or len(r) not in (1, H) or 0 in r.shape:
            raise ValueError(f"rewards have shape {r.shape}: they must be [s, a] or [h, s, a], with {H} stages.")
        check_unit_interval(r, "rewards", "rescale rewards to [0, 1].")
        _, S, A = r.shape
        starts, following = (
            _row_of_whole(row, name) for row, name in ((offsets, "offsets"), (successors, "successors"))
        )
        P = as_array(probabilities, "probabilities")
        if P.ndim != 1:
            raise ValueError(f"probabilities have shape {P.shape}: give one row, with a number for each outcome.")
        if len(starts) - 1 not in (S * A, H * S * A) or starts[0] != 0 or (np.diff(starts) < 1).any():
            raise ValueError(
                f"There are {len(starts)} offsets: with these rewards there must be {S * A + 1}, or {H * S * A + 1} if "
                "transitions depend on the stage. They must start at 0 and increase, because each row has an outcome."
            )
        if not (0 < len(following) == len(P) == starts[-1]) or following.min() < 0 or following.max() >= S:
            raise ValueError(f"There must be {starts[-1]} outcomes, each with a probability and a state in 0..{S - 1}.")
        if (P < 0.0).any():
            row = int(np.searchsorted(starts, int((P < 0.0).argmax()), side="right")) - 1
            raise ValueError(f"A probability of {_place(row, S, A)} is {P[P < 0.0][0]:g}: it cannot be negative.")
        sums = np.add.reduceat(P, starts[:-1])
        if (np.abs(sums - 1.0) > TOLERANCE).any():
            worst = int((np.abs(sums - 1.0) > TOLERANCE).argmax())
            raise ValueError(f"The outcomes of {_place(worst, S, A)} sum to {sums[worst]:.8g}, not to 1.")
        P /= np.repeat(np.where(np.abs(sums - 1.0) > EXACT, sums, 1.0), np.diff(starts))
        self.offsets, self.successors, self.probabilities = read_only(starts), read_only(following), read_only(P)
        self.rewards, self.initial = read_only(r), read_only(initial_distribution(initial, S))
        if not among(reward_law, ("bernoulli", "fixed")):
            raise ValueError(f"reward_law is {shown(reward_law)}: it must be one of bernoulli, fixed.")
        self.reward_law = reward_law

    @property
    def stationary(self) -> bool:
        """Whether every stage has the same transitions and rewards."""
        return len(self.rewards) == 1 and len(self.offsets) - 1 == self.n_states * self.n_actions

    @cached_property
    def transitions(self) -> NDArray[np.float64]:  # [h, s, a, s']
        """The transitions as a dense array.

        Raises ``ValueError`` if it would be too large.
        """
        stages = (len(self.offsets) - 1) // (self.n_states * self.n_actions)
        check_dense((stages, self.n_states, self.n_actions, self.n_states), "The transitions")
        dense = np.zeros((len(self.offsets) - 1, self.n_states))
        rows = np.repeat(np.arange(len(dense)), np.diff(self.offsets))
        np.add.at(dense, (rows, self.successors), self.probabilities)
        return read_only(dense.reshape(stages, self.n_states, self.n_actions, self.n_states))

    def outcomes(self, stage: int, state: int) -> NDArray[np.float64]:  # [a, s']
        """Return the probabilities of the next state, for each action in one state."""
        A, rows = self.n_actions, len(self.offsets) - 1
        dense = np.zeros((A, self.n_states))
        for a in range(A):
            row = ((stage * self.n_states + state) * A + a) % rows
            entries = slice(self.offsets[row], self.offsets[row + 1])
            np.add.at(dense[a], self.successors[entries], self.probabilities[entries])
        return dense

    def content(self) -> tuple[NDArray[np.generic], ...]:
        """Return the arrays that define the model."""
        return self.offsets, self.successors, self.probabilities, self.rewards, self.initial

    @cached_property
    def _packed(self) -> Outcomes:
        from private_rl_gym.planning.solve import Outcomes

        return Outcomes(self.offsets, self.successors, self.probabilities, self.n_states, self.n_actions)

    @cached_property
    def tables(self) -> SamplingTables:
        """The tables that turn a user's tape into their answers."""
        stages = 1 if self.stationary else self.horizon
        return SamplingTables.packed(
            (self.offsets, self.successors, self.probabilities),
            self.rewards,
            self.initial,
            stages=stages,
            horizon=self.horizon,
            bernoulli=self.reward_law == "bernoulli",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return SparseModel, (*self.content(), self.horizon, self.reward_law)


def _row_of_whole(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """Return a new row of whole numbers; raise ValueError for other values."""
    row = as_array(values, name)
    if row.ndim != 1 or (np.abs(row) > 2**53).any() or (row != np.floor(row)).any():
        raise ValueError(f"{name} must be one row of whole numbers.")
    return row.astype(np.int64)


def _place(row: int, n_states: int, n_actions: int) -> str:
    stage, pair = divmod(row, n_states * n_actions)
    return f"stage {stage}, state {pair // n_actions}, action {pair % n_actions}"

"""Counts pooled over stages, for time-homogeneous problems.

* ``PooledCounts`` - the first step of a user in each (s, a), whatever the stage
* ``ReportedSteps`` - one step of each user, at a random stage
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.privacy.accounting.guarantee import Neighbours
from private_rl_gym.privacy.errors import CellError, ErrorDistribution
from private_rl_gym.privacy.release import Release
from private_rl_gym.privacy.requests import Wanted
from private_rl_gym.privacy.statistics.base import Alphabet, Sensitivity, Statistic
from private_rl_gym.privacy.statistics.reports import Reports
from private_rl_gym.privacy.statistics.tabular import TabularCounts, errors_of_outcomes

__all__ = ["PooledCounts", "ReportedSteps"]


class PooledCounts(TabularCounts):
    """Transitions and rewards of a user's first step in each (s, a), whatever the stage.

    Which step is the first is decided by the past alone, so next states and rewards are unbiased where stages are
    alike. In releases every stage has the same counts, so that agents need not know. As in ``TabularCounts``, the sums
    that get noise are m and w (r - n / 2), w being a half.

    Privacy:
        A user has a first step in at most V = min(H, S A) cells. Replacing them moves m by at most V units up and V
        down, and rewards by w in all for each pair of cells: L1 at most (2 + w) V, squared L2 at most (2 + w^2) V. With
        ``raw_rewards`` m and r are summed as they are, and both are 4 V.
        Proof: docs/proofs/pooled-sensitivity.md. If a user's data is compared with none in their place:
        docs/proofs/zero-out.md.

    Args:
        horizon, n_states, n_actions: Sizes of the problem.
        separate_visits, raw_rewards, bits: As in ``TabularCounts``.

    Example:
        >>> pooled = PooledCounts(horizon=20, n_states=6, n_actions=2)
        >>> pooled.sensitivity().l1, pooled.sensitivity().l2**2
        (30.0, 27.0)
    """

    pooled = True
    randomizers: ClassVar[tuple[str, ...]] = ("one-step", "laplace", "gaussian")
    public = MappingProxyType({"pooled": True})

    def sensitivity(self, load: int = 1, neighbours: Neighbours = Neighbours.REPLACE_ONE) -> Sensitivity:
        """Return how far one user moves the counts."""
        if neighbours is Neighbours.SAME_START:
            raise ValueError("Counts with stationary=True hide users from everyone: leave public_start out.")
        return super().sensitivity(load, neighbours)

    def coded(self, alphabet: Alphabet) -> Statistic:
        """Return the counts as they are, as bits, or as one step of each user."""
        if alphabet is Alphabet.STEP:
            return ReportedSteps(self.horizon, self.n_states, self.n_actions)
        return Statistic.coded(self, alphabet) if alphabet is Alphabet.STEPS else super().coded(alphabet)


class ReportedSteps(Reports):
    """Counts pooled over stages, of one random step of each user.

    The step is at a random stage. Agents that learn from counts can use them. In releases every stage has the same
    counts.
    """

    title = "counts"
    request_type = None
    release_type = Release
    public = MappingProxyType({"pooled": True})
    replays = True

    def __init__(self, horizon: int, n_states: int, n_actions: int) -> None:
        super().__init__(horizon, n_states, n_actions)
        self.name, self.loads = "tabular", 1
        self.dilution = float(min(horizon, n_states * n_actions))  # first steps that are not reported

    @property
    def everything(self) -> Wanted:
        """The request to all users: one step at a random stage."""
        return replace(super().everything, anywhere=1.0, starts=0.0)

    def sums(self, cells: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Return visits, transitions and rewards, repeated for every stage."""
        steps = super().sums(cells)["reports"]
        m, r = (np.repeat(array[None], self.horizon, axis=0) for array in (steps.sum(-1), steps[..., 1].sum(-1)))
        return {"n": m.sum(axis=-1), "m": m, "r": r}

    def vector(self, sums: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return transitions and rewards of the first stage, which are those of all."""
        return np.concatenate([sums["m"][0].ravel(), sums["r"][0].ravel()])

    def errors(self, error: CellError, users: int) -> dict[str, ErrorDistribution]:
        """Return the error of a cell, for every outcome that is summed."""
        return errors_of_outcomes(error(1.0), self.n_states)

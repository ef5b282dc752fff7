"""Reports: each user reports one wanted step, or a few.

* ``Reports`` - a user's steps (s, a, s', reward bit) in wanted cells, whatever the stage, each cell once

A report is short, so one user moves the sums by little, whatever the horizon. A reward is rounded to a bit on the
user's side, without bias.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import read_only
from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.accounting.guarantee import Neighbours
from private_rl_gym.privacy.release import Published, ReportRelease
from private_rl_gym.privacy.requests import Request, Wanted
from private_rl_gym.privacy.statistics.base import Alphabet, Sensitivity, Statistic

__all__ = ["Reports"]


class Reports(Statistic):
    """A user's reports about their steps: see ``Wanted``.

    They are their first steps in wanted cells (s, a), or their step at a random stage, or their first state. The
    request defines which. The load of a request is the largest number of reports of a user.

    Privacy:
        A user's vector has as many ones as the load, or fewer, and zeros. Replacing the user moves so many entries up
        by one and as many down: L1 and squared L2 are at most twice the load. The load of a batch is public, and its
        noise follows the largest. Proof: docs/proofs/reports.md. If a user's data is compared with none in their place,
        both are the load: docs/proofs/zero-out.md.

    Args:
        horizon, n_states, n_actions: Sizes of the problem.
        staged: Whether users may be asked for the stage of a step: then there is a cell for each (h, s, a).

    Example:
        >>> reports = Reports(20, 6, 2)
        >>> reports.sensitivity().l1, reports.sensitivity(load=8).l2
        (2.0, 4.0)
    """

    title = "reports"
    request_type: ClassVar[type[Request] | None] = Wanted
    randomizers: ClassVar[tuple[str, ...]] = ("subset",)
    one_batch = True
    release_type: type[Published] = ReportRelease

    def __init__(self, horizon: int, n_states: int, n_actions: int, *, staged: bool = False) -> None:
        self.horizon, self.n_states, self.n_actions = horizon, n_states, n_actions
        self.staged, self.name = staged, "staged-reports" if staged else "reports"
        self.shapes = {"starts": (n_states,), "reports": (horizon,) * staged + (n_states, n_actions, n_states, 2)}
        self.cells = n_states + math.prod(self.shapes["reports"])
        self.draws, self.loads = horizon + 2, horizon

    @property
    def replays(self) -> bool:  # type: ignore[override]
        """Whether users of a table can contribute.

        Users who are asked for stages have to run the learner's policy.
        """
        return not self.staged

    def sensitivity(self, load: int = 1, neighbours: Neighbours = Neighbours.REPLACE_ONE) -> Sensitivity:
        """Return how far one user moves the sums of reports."""
        if neighbours is Neighbours.SAME_START:
            raise ValueError("Reports hide users from everyone: leave public_start out.")
        return Sensitivity.of_ones(load if neighbours is Neighbours.ZERO_OUT else 2 * load)

    @property
    def everything(self) -> Wanted:
        """The request to users who were sent none.

        It asks for one report: of a step at a random stage, or of the first state (one user in ten).
        """
        cells = np.ones((self.n_states, self.n_actions), dtype=bool)
        return Wanted(read_only(cells), anywhere=0.9, starts=0.1)

    def coded(self, alphabet: Alphabet) -> Statistic:
        """Return these reports, which are bits and, one by one, outcomes."""
        if alphabet in (Alphabet.BITS, Alphabet.STEP):
            return self
        return super().coded(alphabet)

    def checked(self, request: Request | None) -> Request | None:
        """Return a plain copy of the request; raise if users cannot answer it."""
        request = super().checked(request)
        if isinstance(request, Wanted) and request.by_stage and not self.staged:
            raise ValueError("Users were asked for stages, and these sums have none: take statistic='staged-reports'.")
        return request

    def load(self, request: Request | None) -> int:
        """Return the largest number of reports of a user."""
        return request.most if isinstance(request, Wanted) else 1

    def _add(
        self, users: Trajectories, sums: NDArray[np.int64], request: Request | None, uniforms: NDArray[np.float64]
    ) -> None:
        """Add the reports of some users."""
        places = self.places(users, request, uniforms)
        np.add.at(sums, places[places >= 0], 1)

    def places(
        self, users: Trajectories, request: Request | None, uniforms: NDArray[np.float64]
    ) -> NDArray[np.int64]:  # [user, report]
        """Return the cells in which users who are in range have ones.

        It is -1 where a user has no more of them.
        """
        asked = self.everything if request is None else request
        assert isinstance(asked, Wanted)  # noqa: S101 - it was checked when it was sent
        out = np.full((len(users), self.horizon), -1)
        shares = asked.starts, asked.starts + asked.anywhere
        _choose(
            users.states, users.actions, users.rewards, uniforms, asked.cells, *shares, asked.most, asked.by_stage, out
        )
        return out

    def outcomes(
        self, users: Trajectories | None, request: Request | None, uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first report of every user."""
        nothing = np.zeros((len(uniforms), 1), dtype=np.int64)
        if users is None:
            return nothing, nothing - 1
        return nothing, self.places(self.in_range(users), self.checked(request), uniforms[:, 0])[:, :1]


@compiled
def _choose(
    states: Any,
    actions: Any,
    rewards: Any,
    uniforms: Any,  # [user, 2 + h]: the kind of report, the stage, and the rounding of each reward
    wanted: Any,
    starts: float,
    anywhere: float,  # starts and this share together
    most: int,
    by_stage: bool,
    out: Any,
) -> None:
    """Write the cells in which each user has ones.

    Choices look at the past only, so that next states are unbiased.
    """
    users, horizon = actions.shape
    n_states, n_actions = wanted.shape
    reported = np.zeros((n_states, n_actions), dtype=np.int64)  # the last user who reported this cell, from 1
    for user in range(users):
        kind, number = uniforms[user, 0], 0
        stage = int(uniforms[user, 1] * horizon)
        if kind < starts:
            out[user, 0] = states[user, 0]
            continue
        for h in range(horizon):
            s, a = states[user, h], actions[user, h]
            new = by_stage or reported[s, a] != user + 1
            here = h == stage if kind < anywhere else wanted[s, a] and new and number < most
            if here:
                bit = 1 if uniforms[user, 2 + h] < rewards[user, h] else 0
                first = h * n_states if by_stage else 0
                place = (((first + s) * n_actions + a) * n_states + states[user, h + 1]) * 2 + bit
                out[user, number] = n_states + place
                reported[s, a] = user + 1
                number += 1

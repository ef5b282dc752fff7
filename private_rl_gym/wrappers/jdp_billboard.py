"""Joint differential privacy: a trusted curator publishes noisy sums."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import gymnasium as gym

from private_rl_gym.caller import warn
from private_rl_gym.planning.arrays import among, flag, shown
from private_rl_gym.privacy.accounting.calibration import SMALL_DELTA, noise_without_delta
from private_rl_gym.privacy.accounting.conversion import check_budget
from private_rl_gym.privacy.accounting.guarantee import Neighbours
from private_rl_gym.privacy.mechanisms import Mechanism
from private_rl_gym.privacy.protocols import Central, CentralOptions
from private_rl_gym.privacy.randomizers.base import UserSide
from private_rl_gym.wrappers.arguments import CommonArguments, CommonOptions
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.options import (
    calibration_notes,
    statistic_of,
    uses_printed_constants,
)
from private_rl_gym.wrappers.pipeline import Bound
from private_rl_gym.wrappers.sources import Source

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["JDPBillboard"]

UNSAID = float("0")
"""The default of delta, told from a 0 that a user writes by its identity."""


class JDPBillboard(Boundary):
    """Noisy sums over users, published by a trusted curator.

    Privacy:
        (epsilon, delta)-joint differential privacy under replacing one user, over all releases, past and future: the
        releases are (epsilon, delta)-DP, and everything that another user sees is computed from them and that user's
        own data (docs/proofs/billboard.md). One user moves the sums by ``statistic.sensitivity()`` at most
        (docs/proofs/tabular-sensitivity.md, docs/proofs/linear-sensitivity.md, docs/proofs/gradients.md); the noise is
        that of docs/proofs/binary-tree.md, docs/proofs/k-ary-tree.md, docs/proofs/matrix-factorization.md or
        docs/proofs/batched.md. Repeated visits: docs/proofs/returning.md.

    Example:
        >>> import gymnasium as gym, private_rl_gym
        >>> from private_rl_gym.wrappers import JDPBillboard
        >>> env = gym.make("PrivateRL/RiverSwim-v0", horizon=20)
        >>> env = JDPBillboard(env, epsilon=1.0, delta=1e-6, users=50_000)
        >>> env.serve([1] * 6, users=10)
        10
        >>> print(env.get_wrapper_attr("ledger"))
        (1.0, 1e-06)-JDP, replace one user, 50000 users

    Args:
        env: An environment with a horizon, bare or inside ``LDPUserSide``. Its spaces are Discrete, unless
            gradients are summed.
        epsilon: For a user's whole episode, over all releases.
        delta: Zero for pure differential privacy, or a small number, such as 1e-6, which needs less noise. If it is
            left out it is zero, and a warning says so.
        users: The number of users that may come.
        counting: ``"matrix-factorization"``, ``"k-ary-tree"``, ``"binary-tree"``, ``"honaker-tree"`` or ``"batched"``;
            by default the most accurate one for this budget and number of releases, or ``"batched"`` for agents that
            plan their own batches.
        noise: ``"gaussian"`` or ``"laplace"``; by default the more accurate one, Gaussian only if delta allows it.
        calibration: ``"exact"``, or ``"paper"`` for the constants that the papers print. Those of PUCB and DP-UCBVI
            (binary tree, Laplace, three families of counts) cost twice the given epsilon. Those of LinOpt (binary tree,
            Gaussian, linear moments) cost much less than the given epsilon. The ledger states the actual cost.
        public_start: Whether to give a weaker guarantee, for neighbours who start in the same state, as in the lower
            bounds of PUCB (definition 5). The ledger states it.
        visits: The number of episodes that one user may be in, each in another batch. Noise is calibrated for all of
            them together. ``ingest`` counts ids; for served users, it is assumed. ``users`` counts episodes.
            If most batches are asked for several reports, ``noise="gaussian"`` may be better.
        neighbours: ``"replace"`` compares a user with another in their place; ``"zero-out"`` adds or drops their data,
            while the number of users stays. That is the weaker relation of libraries that add or remove a record.
        **common: The options of all boundaries: ``statistic``, ``schedule``, ``stationary``, ``horizon``,
            ``reward_range`` and ``rng``. See ``CommonOptions``.
    """

    short = "jdp"
    differentiates = True
    plans_releases = True
    may_enclose: ClassVar[tuple[str, ...]] = ("ldp",)
    protocol = Central

    def __init__(
        self,
        env: gym.Env[Any, Any],
        epsilon: float,
        delta: float = UNSAID,
        *,
        users: int,
        counting: str | type[Mechanism] | None = None,
        noise: str | None = None,
        calibration: Literal["exact", "paper"] = "exact",
        public_start: bool = False,
        visits: int = 1,
        neighbours: Literal["replace", "zero-out"] = "replace",
        **common: Unpack[CommonArguments],
    ) -> None:
        self._delta_said = delta is not UNSAID
        check_budget(epsilon, delta)
        if users is None:
            raise ValueError("users is None: noise is calibrated for a number of users. Give it with users=.")
        printed, public_start = uses_printed_constants(calibration), flag(public_start, "public_start")
        options = CommonOptions.of(type(self), common, users=users, visits=visits, printed=printed)
        super().__init__(env, options)
        if printed and self._inner is not None:
            raise ValueError("calibration='paper' sums exact counts: the papers put no noise around reports.")
        if visits > min(users, options.schedule.planned(users)):
            batches = options.schedule.batches(users)
            raise ValueError(
                f"visits is {visits}: {users} users in batches of {self.batch_size} make {batches} batches, and a user "
                f"is in each of them once at most. Write visits={min(users, batches)}, or take smaller batches."
            )
        if visits > 1 and printed:
            raise ValueError(
                f"calibration={calibration!r} covers one visit of each user, as printed: leave visits out."
            )
        self._choices = options.source("choices")
        returning = f"that no user is in more than {visits} episodes, or twice in a batch, is checked for users with "
        returning += "ids, and assumed of all others"
        self._central = CentralOptions(
            options.users,
            options.schedule,
            _neighbours(neighbours, public_start=public_start),
            visits,
            epsilon=float(epsilon),
            delta=float(delta),
            counting=counting,
            noise=noise,
            printed=printed,
            notes=() if visits == 1 else (returning,),
            source=options.source("billboard"),
        )
        self._ready()
        if printed and not math.isclose(epsilon, self.guarantee.epsilon):
            calibration_notes(epsilon, self.guarantee.epsilon, warn=True)

    def _side(self, source: Source, statistic: Any) -> UserSide:
        """Return the exact statistic, or the users' side of the boundary inside."""
        common, printed = self._options, self._central.printed
        return UserSide(
            statistic_of(source, statistic, stationary=common.stationary, printed=printed), None, self._choices
        )

    def _protocol_options(self) -> CentralOptions:
        """Return the budget, the mechanism and the schedule."""
        return self._central

    def _opened(self, bound: Bound) -> None:
        """Warn once for each billboard that delta is 0 because it was not given.

        The warning states how much more noise that costs.
        """
        if self._delta_said or self._central.printed:
            return
        known, options, chosen = bound.side.sensitivity(1, self._central.neighbours), self._central, bound.plan.chosen
        times = noise_without_delta(
            (chosen.mechanism, chosen.law),
            known,
            options.releases,
            options.epsilon,
            apart=bound.plan.apart,
            visits=options.visits,
        )
        warn(
            f"delta is not given, so it is 0. The noise is {times:.1f} times what delta={SMALL_DELTA:g} would need. "
            f"Give delta={SMALL_DELTA:g}; or delta=0, if a pure guarantee is meant."
        )


def _neighbours(neighbours: str, *, public_start: bool) -> Neighbours:
    """Return the users between whom the guarantee holds."""
    if among(neighbours, ("add-remove",)):
        raise ValueError(
            "neighbours is 'add-remove': the number of users and the times of releases are published, and would "
            "reveal an additional user. Use neighbours='zero-out', where the user stays and their data are removed."
        )
    if not among(neighbours, ("replace", "zero-out")):
        raise ValueError(f"neighbours is {shown(neighbours)}: write neighbours='replace' or neighbours='zero-out'.")
    if neighbours == "zero-out" and public_start:
        raise ValueError(
            "public_start=True is for neighbours='replace', and not for 'zero-out': leave one of the two out."
        )
    if neighbours == "zero-out":
        return Neighbours.ZERO_OUT
    return Neighbours.SAME_START if public_start else Neighbours.REPLACE_ONE

"""Joint differential privacy: a trusted billboard that publishes noisy sums repeatedly."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.privacy.asks import Ask, Wanted
from private_rl_gym.privacy.batches import Batches
from private_rl_gym.privacy.calibration import MECHANISMS, SMALL_DELTA, calibrate, choose_counting, noise_without_delta
from private_rl_gym.privacy.central import CentralNoise, sum_of
from private_rl_gym.privacy.conversion import check_budget
from private_rl_gym.privacy.counting.base import Law
from private_rl_gym.privacy.guarantee import Guarantee, Neighbours, TrustModel
from private_rl_gym.privacy.noise import Noises, NoiseSource
from private_rl_gym.privacy.reports import Reports
from private_rl_gym.privacy.statistics import Noise, Statistic, check_scale
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.summing import (
    StatisticChoice,
    about_gradients,
    calibration_notes,
    exact_statistic,
    uses_printed_constants,
)

__all__ = ["JDPBillboard"]

UNSAID = float("0")
"""A delta of zero that nobody wrote: another object than any other zero."""

MUCH = 3.0
"""Times as much noise as with a small delta, from which on a delta of 0 that nobody asked for has a warning."""


class JDPBillboard(Boundary):
    """Publishes noisy sums over users, so that what others see reveals almost nothing about any one user.

    Privacy:
        (epsilon, delta)-joint differential privacy under replacing one user, over all releases, past and future: the
        releases are (epsilon, delta)-DP, and everything that another user sees is computed from them and her own data
        (docs/proofs/billboard.md). One user moves the sums by ``statistic.l1`` and ``statistic.l2``
        (docs/proofs/tabular-sensitivity.md, docs/proofs/linear-sensitivity.md, docs/proofs/gradients.md); the noise is
        that of docs/proofs/binary-tree.md, docs/proofs/k-ary-tree.md, docs/proofs/matrix-factorization.md or
        docs/proofs/batched.md. Users who come back: docs/proofs/returning.md.

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
        delta: Zero, which is the default, for pure differential privacy. If it is left out where a small one would need
            far less noise, a warning says so.
        users: The number of users that may come.
        statistic: The kind of sums: ``"tabular"`` counts; ``"reports"`` of single steps, or ``"staged-reports"`` with
            their stages; ``"linear"`` moments, for linear learners, with the features that the environment knows or
            with ``LinearFeatures`` of your own; or the ``"gradient"`` of a policy network, with ``Layers`` for others
            than the usual ones. By default the kind that the agent needs.
        counting: ``"matrix-factorization"``, ``"k-ary-tree"``, ``"binary-tree"``, ``"honaker-tree"`` or ``"batched"``;
            by default the most accurate one for this budget and number of releases, or ``"batched"`` for agents that
            plan their own batches.
        noise: ``"gaussian"`` or ``"laplace"``; by default the more accurate one, Gaussian only if delta allows it.
        batch_size: Number of users in a batch; there is a release after every batch. Larger batches need fewer releases
            and less noise. The last batch may be smaller.
        releases: Number of releases to calibrate for; by default the number of batches. A larger number leaves room for
            ``publish``.
        calibration: ``"exact"``, or ``"paper"`` for the printed constants of PUCB and DP-UCBVI (binary tree, Laplace,
            three families of counts), which cost twice the given epsilon, or of LinOpt (binary tree, Gaussian, linear
            moments), which cost far less than it. ``"released"`` is the noise of the experiment that DP-UCBVI's figure
            follows: fresh at every release, and without the horizon, which costs 6 H epsilon for every release
            (docs/proofs/refreshed.md). The ledger says so.
        public_start: Whether to give a weaker guarantee, which hides a user only among those who start in the same
            state, as in the lower bounds of PUCB (definition 5). The ledger says so.
        growth: Makes later batches larger: each has this share of the users before it, or ``batch_size`` if that is
            more. A tenth to a quarter needs few releases, which cost less noise.
        stationary: Says that the problem is the same at every stage. Then a user counts once in each (s, a), all stages
            are pooled, and every stage of a release has the same counts.
        visits: The number of episodes that one user may be in, each in another batch. Noise is calibrated for all of
            them together. ``ingest`` counts ids; of users who are served, it is assumed, and the ledger says so.
            ``users`` then counts episodes.
        neighbours: ``"replace"`` compares a user with another in her place; ``"zero-out"`` with nobody in her place,
            whose data is added or removed while the number of users stays. The latter is what figures of libraries that
            add or remove a record are about, and a weaker promise: half of it, at the same epsilon.
        seed: For experiments that can be repeated. A seed voids the guarantee, and the ledger says so.
        secure: Draw noise from a cryptographic generator.
        horizon: Largest number of steps in an episode, if the environment does not define it.
        reward_range: The least and the largest reward, which are mapped to 0 and 1; they must contain 0, which an
            episode that ended early earns while it waits. By default rewards are in [0, 1] already.
    """

    short = "jdp"
    differentiates = True
    may_enclose: ClassVar[tuple[str, ...]] = ("ldp",)
    more_releases = "Build it with counting='batched', or, to publish() more often, with a larger releases=."

    central: ClassVar[type[CentralNoise]] = CentralNoise
    """The class of the noise on sums; billboards that are broken on purpose replace it."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        epsilon: float,
        delta: float = UNSAID,
        users: int | None = None,
        *,
        statistic: StatisticChoice | None = None,
        counting: str | None = None,
        noise: str | None = None,
        batch_size: int = 1,
        releases: int | None = None,
        calibration: Literal["exact", "paper", "released"] = "exact",
        public_start: bool = False,
        growth: float = 0.0,
        stationary: bool = False,
        visits: int = 1,
        neighbours: Literal["replace", "zero-out"] = "replace",
        seed: int | None = None,
        secure: bool = False,
        horizon: int | None = None,
        reward_range: tuple[float, float] | None = None,
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(
            self,
            epsilon=epsilon,
            delta=delta,
            users=users,
            statistic=statistic,
            counting=counting,
            noise=noise,
            batch_size=batch_size,
            releases=releases,
            calibration=calibration,
            public_start=public_start,
            growth=growth,
            stationary=stationary,
            visits=visits,
            neighbours=neighbours,
            seed=seed,
            secure=secure,
            horizon=horizon,
            reward_range=reward_range,
        )
        self._delta_said = delta is not UNSAID
        check_budget(epsilon, delta)
        if users is None:
            raise ValueError(
                "users is not given: noise is calibrated for a number of users, so say how many will come."
            )
        super().__init__(
            env,
            statistic=statistic,
            horizon=horizon,
            users=users,
            batch_size=batch_size,
            reward_range=reward_range,
            growth=growth,
            stationary=stationary,
            visits=visits,
            seed=seed,
            secure=secure,
        )
        self._budget = float(epsilon), float(delta)
        self._counting_choice = counting, noise
        self._released = calibration == "released"
        self._paper, self._public_start = not self._released and uses_printed_constants(calibration), public_start
        self._zero_out = _adds_and_removes(neighbours)
        batches = self.planned_batches
        assert batches is not None  # noqa: S101 - users are given
        self._releases = batches if releases is None else positive_integer(releases, "releases", "releases")
        if self._releases < batches:
            raise ValueError(
                f"releases is {releases}: {users} users in batches of {batch_size} make {batches} releases at least."
            )
        if self._visits > min(users, self._releases):
            raise ValueError(
                f"visits is {visits}: {users} users in batches of {batch_size} make {batches} batches, and a user is "
                f"in each of them once at most. Write visits={min(users, self._releases)}, or take smaller batches."
            )
        if self._visits > 1 and calibration != "exact":
            raise ValueError(f"calibration={calibration!r} is for users who come once, as printed: leave visits out.")
        if self._zero_out and self._released:
            raise ValueError("calibration='released' is told as the cost of replacing a user: leave neighbours out.")
        self._source = NoiseSource(seed, secure=secure)
        self._choices = NoiseSource(seed, secure=secure, role="choices")
        self.design(self.population.statistic if statistic is None else statistic, apart=False)
        as_printed = math.isclose(self._budget[0], self._promised.epsilon)
        paper, released = self._paper, self._released
        calibration_notes(epsilon, self._promised.epsilon, paper=paper, released=released, warn=not as_printed)
        self._enclose()
        self._warn_of_delta()

    def design(self, statistic: Any, *, apart: bool) -> None:
        """Choose the most accurate of the allowed mechanisms, and the scale of noise for its guarantee."""
        (epsilon, delta), paper = self._budget, self._paper
        self.statistic = self._summed(statistic)
        if not math.isfinite(self.statistic.l1):
            raise ValueError(
                "What users report here has no largest size, so that no noise on sums of it makes a promise: take the "
                "LDPUserSide alone, whose promise is stronger, or the JDPBillboard without it."
            )
        apart = apart or about_gradients(statistic)
        reports = isinstance(self.statistic, Reports)
        self._batches_by_most = np.zeros(self.statistic.horizon if reports else 0, dtype=np.int64)
        if reports:
            if self._counting_choice[0] not in (None, "batched"):
                raise ValueError(
                    f"counting is {self._counting_choice[0]!r}: what is reported differs from batch to batch, so that "
                    "reports are counted in batches. Leave it out."
                )
            apart = True
            self._one_law_for_returning(delta)
        self._mechanism = choose_counting(
            *self._counting_choice,
            self.statistic,
            self._releases,
            epsilon,
            delta,
            paper=paper,
            released=self._released,
            apart=apart,
            visits=self._visits,
        )
        counting, law = self._mechanism
        small = MECHANISMS[counting](self._releases, 1, law)
        self.apart = small.apart
        self._scale, true_epsilon, spent = calibrate(
            small, self.statistic, epsilon, delta, paper=paper, visits=self._visits
        )
        check_scale(self._scale, self.statistic.grid_range[0])
        self._noise_held = 2 + small.held
        differs, described, every = self._asks_differ, str(law), f"every {self.batch_size} users"
        if self._growth:
            every = f"after every batch, each of {self.batch_size} users or {self._growth:g} of those before"
        if differs:  # batches that are asked for more reports may cost the whole budget, by another law
            true_epsilon, spent, described = epsilon, delta, "the most accurate"
        self._promised = Guarantee(
            TrustModel.JDP,
            true_epsilon,
            spent,
            self.users,
            f"{counting} sums of {self.statistic.title} with {described} noise, a release {every}",
            self._relation,
            notes=(
                *calibration_notes(epsilon, true_epsilon, paper=paper, released=self._released),
                *self._about_visits,
            ),
            mu=self.statistic.l2 * small.returning(self._visits) / self._scale
            if law == "gaussian" and not differs
            else None,
            visits=self._visits,
        )

    @property
    def _relation(self) -> Neighbours:
        """The neighbours that the promise is for."""
        if self._zero_out:
            return Neighbours.ZERO_OUT
        return Neighbours.SAME_START if self._public_start else Neighbours.REPLACE_ONE

    def _one_law_for_returning(self, delta: float) -> None:
        """Take Gaussian noise for all batches, where a user's batches may be asked for different numbers of reports."""
        counting, law = self._counting_choice
        if self._visits == 1 or delta == 0.0 or not self._asks_differ:
            return
        if law == "laplace":
            raise ValueError(
                f"visits is {self._visits}: batches of reports that differ have no joint calibration of Laplace noise "
                "with a delta. Write noise='gaussian', or delta=0."
            )
        self._counting_choice = counting, "gaussian"

    @property
    def _about_visits(self) -> tuple[str, ...]:
        """The note about users who come back, if they may."""
        most = f"that nobody is in more than {self._visits} episodes, or twice in a batch, is"
        return () if self._visits == 1 else (f"{most} checked for users with ids, and assumed of all others",)

    @property
    def _asks_differ(self) -> bool:
        """Whether batches may be asked for different numbers of reports, and get different noise."""
        return isinstance(self.statistic, Reports) and self._inner is None

    def _summed(self, statistic: Any) -> Statistic:
        """The statistic that users contribute: exact, or the noisy reports of the boundary inside."""
        if self._inner is None:
            options = {
                "paper": self._paper or self._released,
                "public_start": self._public_start,
                "stationary": self._stationary,
            }
            return exact_statistic(self.population, statistic, **options, zero_out=self._zero_out)
        if self._asked_statistic is not None:
            raise ValueError("What is summed is decided where users report: give statistic= to the wrapper inside.")
        if self._public_start:
            raise ValueError("public_start=True is for a billboard around a bare environment, not around reports.")
        if self._zero_out:
            raise ValueError("neighbours='zero-out' is for a bare environment: who reports nothing reports noise, too.")
        if self._paper or self._released:
            raise ValueError(
                "calibration='paper' and 'released' sum exact counts: the papers put no billboard around reports."
            )
        return self._inner.as_inner(statistic)

    def _open(self) -> Batches:
        """Create the noise for every cell, and the batches."""
        if not (self._delta_said or self._paper or self._released):
            self._warn_of_purity()
        self._noise = self._noise_of(self.statistic, self._mechanism, self._scale)
        self._others: dict[Statistic, CentralNoise] = {}
        return super()._open()

    def _warn_of_purity(self) -> None:
        """Warn, once for each billboard, if nobody decided for delta = 0 and it costs much."""
        epsilon, _ = self._budget
        times = noise_without_delta(
            self._mechanism, self.statistic, self._releases, epsilon, apart=self.apart, visits=self._visits
        )
        if times >= MUCH:
            warnings.warn(
                f"delta is not given, so it is 0, and the noise is {times:.1f} times what delta={SMALL_DELTA:g} would "
                f"need. Give delta={SMALL_DELTA:g}; or delta=0, if a pure promise is meant.",
                stacklevel=2,
            )

    def _noise_of(self, statistic: Statistic, mechanism: tuple[str, Law], scale: float) -> CentralNoise:
        counting, law = mechanism
        return self.central(
            MECHANISMS[counting](self._releases, statistic.cells, law), scale, statistic.grid, self._source
        )

    def _noise_for(self, statistic: Statistic) -> CentralNoise:
        """The noise of a batch whose users were asked for more than one report: the most accurate for so many."""
        if statistic is self.statistic:
            return self._noise
        if statistic not in self._others:
            counting, noise = self._counting_choice
            mechanism = choose_counting(
                counting, noise, statistic, self._releases, *self._budget, apart=True, visits=self._visits
            )
            small = MECHANISMS[mechanism[0]](1, 1, mechanism[1])
            scale, _, _ = calibrate(small, statistic, *self._budget, paper=False, visits=self._visits)
            self._others[statistic] = self._noise_of(statistic, mechanism, scale)
        return self._others[statistic]

    def disclose(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        """The values to publish: the sums with noise in every cell, visited or not."""
        cells = self.statistic.cells
        asked = self.statistic.asked(sums[cells:])
        if isinstance(asked, Reports):
            self._batches_by_most[asked.most - 1] += releases
        return self._noise_for(asked).add(sums[:cells], releases)

    def law(self, releases: int, *, newest: bool) -> Noise:
        """The law of the noise in a release."""
        reports = self.statistic
        if not isinstance(reports, Reports) or not self._asks_differ:
            return self._noise.law(releases)
        if newest:
            asked = reports.asked(self._batches.batch_published[reports.cells :])
            return self._noise_for(asked).law(releases)
        by_most = enumerate(self._batches_by_most, start=1)
        return sum_of([self._noise_for(reports.of_at_most(most)).law(int(count)) for most, count in by_most if count])

    def expected_noise(self, users: int, ask: Ask | None = None) -> float:
        """The users' own noise and that of the billboard together."""
        _ = self._batches
        added = self._noise_for(self._asked_for(self.statistic.checked(ask))).law(1)(1.0).std
        return math.hypot(super().expected_noise(users, ask), self.statistic.gain * added)

    def _asked_for(self, ask: Ask | None) -> Statistic:
        """The statistic of users who are all asked this."""
        if isinstance(self.statistic, Reports) and self._asks_differ and isinstance(ask, Wanted):
            return self.statistic.of_at_most(ask.most)
        return self.statistic

    def arrays_of_noise(self) -> int:
        """The state of the noise, its units, and a draw."""
        return self._noise_held

    def planned_releases(self) -> int | None:
        """The number of releases that noise was calibrated for; None if every batch has noise of its own."""
        return None if self.apart else self._releases

    def check(self) -> None:
        """Refuse to continue if the drawing of noise was interrupted."""
        self._noise.check()

    def noises(self, batches: Sequence[int]) -> Noises:
        """The noise of users' own reports, if there are any, and the noise of the billboard for what is asked now."""
        _ = self._batches
        return [*super().noises(batches), *self._noise_for(self._asked_for(self.ask)).noises(len(batches))]

    def sources(self) -> dict[str, NoiseSource]:
        """The source of the billboard, whose promise does not rest on the noise of a boundary inside."""
        return {"billboard": self._source}

    def noise_terms(self) -> dict[str, Any]:
        """The mechanism, the scale and the number of releases."""
        return {"mechanism": list(self._mechanism), "scale of noise": self._scale, "number of releases": self._releases}

    def noise_arrays(self) -> dict[str, NDArray[Any]]:
        """The noise that later releases build on, and the number of batches that were asked for so many reports."""
        arrays = {f"noise.{name}": array for name, array in self._noise.arrays().items()}
        return arrays | ({"batches_by_most": self._batches_by_most} if len(self._batches_by_most) else {})

    @property
    def _noise_step(self) -> int:
        return self._noise.counting.step

    @_noise_step.setter
    def _noise_step(self, step: int) -> None:
        self._noise.counting.step = step


def _adds_and_removes(neighbours: str) -> bool:
    """Whether a user is compared with nobody in her place."""
    if neighbours == "add-remove":
        raise ValueError(
            "neighbours is 'add-remove': the number of users and the times of releases are published here, so that one "
            "user more or less would be seen. Write neighbours='zero-out', where her place stays and her data does not."
        )
    if neighbours not in ("replace", "zero-out"):
        raise ValueError(f"neighbours is {neighbours!r}: write neighbours='replace' or neighbours='zero-out'.")
    return neighbours == "zero-out"

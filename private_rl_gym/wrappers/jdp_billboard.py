"""Joint differential privacy: a trusted billboard that publishes noisy sums, again and again."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import gymnasium as gym

from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.privacy.calibration import calibrate, choose_counting
from private_rl_gym.privacy.conversion import check_budget
from private_rl_gym.privacy.counting import COUNTING
from private_rl_gym.privacy.guarantee import Guarantee
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.publishing import CentralNoise, PublicSums
from private_rl_gym.privacy.statistics import Statistic
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.ldp_user_side import calibration_notes, check_calibration, with_seed
from private_rl_gym.wrappers.summing import Summed, exact_statistic

__all__ = ["JDPBillboard"]

Calibration = Literal["exact", "paper"]

_SUMMED = {"tabular": "counts", "linear": "linear moments"}


class JDPBillboard(Boundary):
    """Publishes sums over users with noise, so that what all others see tells nearly nothing about any one of them.

    Privacy:
        (epsilon, delta)-joint differential privacy under replacing one user, over all releases, past and future: the
        releases are (epsilon, delta)-DP, and everything that another user sees is computed from them and her own data
        (docs/proofs/billboard.md). One user moves the sums by ``statistic.l1`` and ``statistic.l2``
        (docs/proofs/tabular-sensitivity.md, docs/proofs/linear-sensitivity.md); the noise is that of
        docs/proofs/binary-tree.md, docs/proofs/k-ary-tree.md, docs/proofs/matrix-factorization.md or
        docs/proofs/batched.md.

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
        env: Discrete spaces and a horizon; bare, or reports by ``LDPUserSide``.
        epsilon: Of a user's whole episode, over all releases.
        delta: Zero asks for pure differential privacy.
        users: The number of users that may come.
        statistic: What is summed: ``"tabular"`` counts; or ``"linear"`` moments, for linear learners, with the features
            that the environment knows or with ``LinearFeatures`` that are handed over.
        counting: ``"matrix-factorization"``, ``"k-ary-tree"``, ``"binary-tree"``, ``"honaker-tree"`` or ``"batched"``;
            by default the most accurate one for this budget.
        noise: ``"gaussian"`` or ``"laplace"``; by default Gaussian if delta allows it.
        publish_every: Users in a batch: fewer releases, less noise. The last batch may be smaller.
        releases: How many releases to calibrate for; by default as many as batches. More leave room for ``publish``.
        calibration: ``"exact"``, or ``"paper"`` for the printed constants of PUCB and DP-UCBVI (binary tree, Laplace,
            three families of counts), which cost twice the epsilon that is asked for, or of LinOpt (binary tree,
            Gaussian, linear moments), which cost far less; the ledger says so.
        public_start: Promise less: that a user is hidden among those who start in the same state, as in the lower
            bounds of PUCB (definition 5). The ledger says so.
        seed: For experiments that can be repeated; it voids the promise, and the ledger says so.
        secure: Draw noise from a cryptographic generator.
        horizon: Largest number of steps, where the environment does not know it.
    """

    may_enclose: ClassVar[tuple[str, ...]] = ("LDPUserSide",)

    def __init__(
        self,
        env: gym.Env[Any, Any],
        epsilon: float,
        delta: float = 0.0,
        users: int | None = None,
        *,
        statistic: Summed = "tabular",
        counting: str | None = None,
        noise: str | None = None,
        publish_every: int = 1,
        releases: int | None = None,
        calibration: Calibration = "exact",
        public_start: bool = False,
        seed: int | None = None,
        secure: bool = False,
        horizon: int | None = None,
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(
            self,
            epsilon=epsilon,
            delta=delta,
            users=users,
            statistic=statistic,
            counting=counting,
            noise=noise,
            publish_every=publish_every,
            releases=releases,
            calibration=calibration,
            public_start=public_start,
            seed=seed,
            secure=secure,
            horizon=horizon,
        )
        check_budget(epsilon, delta)
        epsilon, delta = float(epsilon), float(delta)
        if users is None:
            raise ValueError(
                "users is not given: noise is calibrated for a number of users, so say how many will come."
            )
        super().__init__(env, horizon=horizon, users=users, publish_every=publish_every)
        paper = check_calibration(calibration)
        printed = None if not paper else "laplace" if statistic == "tabular" else "gaussian"
        counting, noise = choose_counting(counting, noise, delta, paper=printed)
        users = positive_integer(users, "users", "users")
        if self._inner is not None and self._inner.users is not None and self._inner.users < users:
            raise ValueError(
                f"users is {users}: the {type(self._inner).__name__} inside was built for {self._inner.users}."
            )
        batches = -(-users // self.publish_every)
        releases = batches if releases is None else positive_integer(releases, "releases", "releases")
        if releases < batches:
            raise ValueError(
                f"releases is {releases}: {users} users in batches of {publish_every} make {batches} releases at least."
            )
        summed = self._what_is_summed(statistic, paper=paper, public_start=public_start)
        mechanism = COUNTING[counting](releases, summed.cells, noise)  # type: ignore[arg-type]
        scale, true_epsilon, spent = calibrate(mechanism, summed, epsilon, delta, paper=paper)
        source = NoiseSource(seed, secure=secure)
        notes = calibration_notes(epsilon, true_epsilon, paper=paper)
        said = (
            f"{counting} sums of {_SUMMED[summed.kind]} with {noise} noise, a release every {self.publish_every} users"
        )
        neighbours = "replace one user by one with the same start" if public_start else "replace one user"
        self._guarantee = Guarantee("JDP", true_epsilon, spent, self.users, said, neighbours, notes=notes)
        self._board = PublicSums(
            summed,
            users=self.users,
            publish_every=self.publish_every,
            user_source=None if self._inner is None else self._inner._board.user_source,
            noise=CentralNoise(mechanism, scale, summed.grid, source),
            absorbing=self._inside.absorbing,
        )
        if self._inner is not None:
            self._inner._outer = self  # from here on, users are met through this boundary alone

    def _what_is_summed(self, statistic: Summed, *, paper: bool, public_start: bool) -> Statistic:
        if self._inner is not None:
            if statistic != "tabular":
                raise ValueError("What is summed is decided where users report: give statistic= to the wrapper inside.")
            if public_start:
                raise ValueError("public_start=True is for a billboard around a bare environment, not around reports.")
            if paper:
                raise ValueError("calibration='paper' sums exact counts: the papers put no billboard around reports.")
            return self._inner._board.statistic
        return exact_statistic(self._inside, statistic, paper=paper, public_start=public_start)

    @property
    def guarantee(self) -> Guarantee:
        """What every user is promised."""
        noise = self._board.noise
        return with_seed(self._guarantee, None if noise is None else noise.source)

"""Joint differential privacy: a trusted billboard that publishes noisy sums, again and again."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.compiled import compiled
from private_rl_gym.privacy.calibration import calibrate, choose_counting, noise_law
from private_rl_gym.privacy.conversion import check_budget
from private_rl_gym.privacy.counting import COUNTING, Batched, ContinualNoise
from private_rl_gym.privacy.guarantee import Guarantee
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.statistics import Noise, Statistic, TabularCounts
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.ldp_user_side import calibration_notes, check_calibration

__all__ = ["JDPBillboard"]

Calibration = Literal["exact", "paper"]


class JDPBillboard(Boundary):
    """Publishes sums over users with noise, so that what all others see tells nearly nothing about any one of them.

    Privacy:
        (epsilon, delta)-joint differential privacy under replacing one user, over all releases, past and future: the
        releases are (epsilon, delta)-DP, and everything that another user sees is computed from them and her own data
        (docs/proofs/billboard.md). One user moves the sums by ``statistic.l1`` and ``statistic.l2``
        (docs/proofs/tabular-sensitivity.md); the noise is that of docs/proofs/binary-tree.md,
        docs/proofs/k-ary-tree.md, docs/proofs/matrix-factorization.md or docs/proofs/batched.md.

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
        counting: ``"matrix-factorization"``, ``"k-ary-tree"``, ``"binary-tree"``, ``"honaker-tree"`` or ``"batched"``;
            by default the most accurate one for this budget.
        noise: ``"gaussian"`` or ``"laplace"``; by default Gaussian if delta allows it.
        publish_every: Users in a batch: fewer releases, less noise. The last batch may be smaller.
        releases: How many releases to calibrate for; by default as many as batches. More leave room for ``publish``.
        calibration: ``"exact"``, or ``"paper"`` for the printed constants of PUCB and DP-UCBVI (binary tree, Laplace,
            three families of counts), which cost twice the epsilon that is asked for; the ledger says so.
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
        counting: str | None = None,
        noise: str | None = None,
        publish_every: int = 1,
        releases: int | None = None,
        calibration: Calibration = "exact",
        seed: int | None = None,
        secure: bool = False,
        horizon: int | None = None,
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(
            self,
            epsilon=epsilon,
            delta=delta,
            users=users,
            counting=counting,
            noise=noise,
            publish_every=publish_every,
            releases=releases,
            calibration=calibration,
            seed=seed,
            secure=secure,
            horizon=horizon,
        )
        check_budget(epsilon, delta)
        if users is None:
            raise ValueError(
                "users is not given: noise is calibrated for a number of users, so say how many will come."
            )
        super().__init__(env, horizon=horizon, users=users, publish_every=publish_every)
        paper = check_calibration(calibration)
        counting, noise = choose_counting(counting, noise, delta, paper=paper)
        batches = -(-users // self.publish_every)
        self.releases = batches if releases is None else releases
        if self.releases < batches:
            raise ValueError(
                f"releases is {releases}: {users} users in batches of {publish_every} make {batches} releases at least."
            )
        statistic = self._what_is_summed(paper=paper)
        self._noise: ContinualNoise = COUNTING[counting](self.releases, statistic.cells, noise)  # type: ignore[arg-type]
        self._source = NoiseSource(seed, secure=secure)
        self.scale, true_epsilon = calibrate(self._noise, statistic, epsilon, delta, paper=paper)
        self._units = self.scale / statistic.grid
        notes = calibration_notes(epsilon, true_epsilon, paper=paper, source=self._source)
        mechanism = f"{counting} sums with {noise} noise, a release every {self.publish_every} users"
        spent = 0.0 if noise == "laplace" else delta
        self._guarantee = Guarantee("JDP", true_epsilon, spent, self.users, mechanism, notes=notes)
        self._sum(statistic, None if self._inner is None else self._inner._user_source)

    def _what_is_summed(self, *, paper: bool) -> Statistic:
        if self._inner is not None:
            if paper:
                raise ValueError("calibration='paper' sums exact counts: the papers put no billboard around reports.")
            return self._inner._statistic
        inside = self._inside
        return TabularCounts(inside.horizon, inside.n_states, inside.n_actions, separate_visits=paper)

    @property
    def guarantee(self) -> Guarantee:
        """What every user is promised."""
        return self._guarantee

    def _publish(self, times: int, *, early: bool, behind: int = 0) -> None:
        if early and not isinstance(self._noise, Batched):
            left = -(-(self.users - self._gone) // self.publish_every) if self.users is not None else 0
            if self._noise.step + 1 + left > self.releases:
                raise ValueError(
                    f"publish() now would use a release that later users need: noise is calibrated for {self.releases}."
                    " Build the boundary with releases= larger than that, or with counting='batched'."
                )
        super()._publish(times, early=early, behind=behind)

    def _noisy(self, times: int) -> NDArray[np.float64]:
        for _ in range(times):
            noise = self._noise.advance(self._source, self._units)
        out = np.empty(self._statistic.cells)
        _add_noise(self._sums, noise, self._units, self._noise.law == "gaussian", self._statistic.grid, out)
        return out

    def _noise_law(self) -> Noise:
        if self._noise.step == 0:
            return super()._noise_law()
        return noise_law(self._noise, self.scale, self._noise.step)

    def _releases(self) -> int:
        return super()._releases() if isinstance(self._noise, Batched) else self.releases

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {**super()._arrays(), **{f"noise.{name}": array for name, array in self._noise.arrays().items()}}

    def _sources(self) -> dict[str, NoiseSource]:
        return {**super()._sources(), "billboard": self._source}


@compiled
def _add_noise(sums: Any, noise: Any, units: Any, gaussian: bool, grid: Any, out: Any) -> None:
    """Sums and noise on the grid, in real units. Gaussian noise is in standard units, and rounded here."""
    for cell in range(len(sums)):
        shift = noise[cell] * units[cell] if gaussian else noise[cell]
        out[cell] = (sums[cell] + np.floor(shift + 0.5)) * grid[cell]

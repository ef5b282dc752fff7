"""Local differential privacy: every user noises her own report."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.asks import Ask
from private_rl_gym.privacy.central import exact as no_noise
from private_rl_gym.privacy.conversion import check_budget
from private_rl_gym.privacy.directions import local_gradients
from private_rl_gym.privacy.gradients import Gradients
from private_rl_gym.privacy.guarantee import Guarantee, TrustModel
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.pooled import PooledCounts
from private_rl_gym.privacy.randomizers import AdditiveReports, most_accurate, most_accurate_pooled
from private_rl_gym.privacy.randomizers import randomizer as named_randomizer
from private_rl_gym.privacy.reports import LocalReports, ReportedSteps, Reports
from private_rl_gym.privacy.statistics import Noise
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.summing import (
    StatisticChoice,
    calibration_notes,
    exact_statistic,
    uses_printed_constants,
)

__all__ = ["LDPUserSide"]


class LDPUserSide(Boundary):
    """Publishes the sum of reports that each user has noised on her own side. Users need to trust nobody.

    Privacy:
        Every user's report is (epsilon, delta)-LDP under replacing her, whatever others do. Proofs:
        docs/proofs/local-unary.md for ``"one-step"`` and ``"unary"``, docs/proofs/local-additive.md for ``"laplace"``
        and ``"gaussian"``; for moments, with docs/proofs/linear-sensitivity.md; docs/proofs/local-gradients.md.

    Example:
        >>> import gymnasium as gym, private_rl_gym
        >>> from private_rl_gym.wrappers import LDPUserSide
        >>> board = LDPUserSide(gym.make("PrivateRL/RiverSwim-v0", horizon=20), epsilon=1.0)
        >>> board.serve([1] * 6, users=100)
        100
        >>> print(board.ledger)
        (1.0, 0)-LDP, replace one user, any number of users

    Args:
        env: An environment with a horizon. Its spaces are Discrete, unless gradients are reported.
        epsilon: For a user's whole episode.
        delta: For ``"gaussian"``; the other randomizers are pure.
        users: The number of users that may come; by default any number.
        statistic: The content of her report: ``"tabular"`` counts; ``"reports"`` of single steps, or
            ``"staged-reports"`` with their stages; ``"linear"`` moments, for linear learners, with the features that
            the environment knows or with ``LinearFeatures`` of your own; or the ``"gradient"`` of a policy network,
            with ``Layers`` for others than the usual ones. By default the kind that the agent needs.
        randomizer: ``"one-step"`` (she reports one step, drawn at random, with all her budget), ``"unary"`` (all her
            steps), ``"laplace"`` or ``"gaussian"`` (all her counts or moments). By default the one with the least noise
            at this epsilon and size. Reports of single steps are always sent as a ``"subset"`` of outcomes, and
            gradients as a ``"direction"``, which is pure, or with ``"gaussian"`` noise.
        batch_size: Number of users in a batch; there is a release after every batch. The last batch may be smaller.
        calibration: ``"exact"``, or ``"paper"`` for the printed constants of the Laplace randomizer, which cost twice
            the given epsilon. The ledger says so.
        growth: Makes later batches larger: each has this share of the users before it, or ``batch_size`` if that is
            more. A tenth to a quarter needs few releases, which cost less noise.
        stationary: Says that the problem is the same at every stage. Then a user counts once in each (s, a), all stages
            are pooled, and every stage of a release has the same counts.
        seed: For experiments that can be repeated. A seed voids the guarantee, and the ledger says so.
        secure: Draw noise from a cryptographic generator.
        horizon: Largest number of steps in an episode, if the environment does not define it.
        reward_range: The least and the largest reward, which are mapped to 0 and 1; they must contain 0, which an
            episode that ended early earns while it waits. By default rewards are in [0, 1] already.
    """

    short = "ldp"
    differentiates = True
    usual_delta = 0.0  # reports are pure by default

    def __init__(
        self,
        env: gym.Env[Any, Any],
        epsilon: float,
        delta: float = 0.0,
        users: int | None = None,
        *,
        statistic: StatisticChoice | None = None,
        randomizer: str | None = None,
        batch_size: int = 1,
        calibration: Literal["exact", "paper"] = "exact",
        growth: float = 0.0,
        stationary: bool = False,
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
            randomizer=randomizer,
            batch_size=batch_size,
            calibration=calibration,
            growth=growth,
            stationary=stationary,
            seed=seed,
            secure=secure,
            horizon=horizon,
            reward_range=reward_range,
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
            seed=seed,
            secure=secure,
        )
        check_budget(epsilon, delta)
        self._budget = float(epsilon), float(delta)
        self._randomizer, self._paper = randomizer, uses_printed_constants(calibration)
        self._source = NoiseSource(seed, secure=secure, role="users")
        self.design(self.population.statistic if statistic is None else statistic, apart=True)
        calibration_notes(self._budget[0], self._promised.epsilon, paper=self._paper, warn=True)
        self._warn_of_delta()

    def design(self, statistic: Any, *, apart: bool) -> None:
        """Choose the requested randomizer, or by default the one that fits the statistic."""
        del apart
        (epsilon, delta), paper = self._budget, self._paper
        exact = exact_statistic(self.population, statistic, paper=paper, stationary=self._stationary)
        if isinstance(exact, Gradients):
            name, self.statistic, true_epsilon, true_delta = local_gradients(self._randomizer, exact, epsilon, delta)
        elif isinstance(exact, Reports):
            name = self._randomizer or "subset"
            if name != "subset":
                raise ValueError(f"randomizer is {name!r}: reports of single steps are sent as a 'subset' of outcomes.")
        elif isinstance(exact, PooledCounts):
            name = self._randomizer or most_accurate_pooled(exact, epsilon, delta)
            exact = ReportedSteps(*self.sizes) if name == "one-step" else exact
        else:
            name = self._randomizer or most_accurate(exact, epsilon, delta, paper=paper)
        if isinstance(exact, Reports):
            self.statistic = LocalReports(exact, epsilon)
            true_epsilon, true_delta = epsilon, 0.0
        elif not isinstance(exact, Gradients):
            self.statistic, true_epsilon, true_delta = named_randomizer(name, exact, epsilon, delta, paper=paper)
        self._promised = Guarantee(
            TrustModel.LDP,
            true_epsilon,
            true_delta,
            self.users,
            f"each user reports her {exact.title} by the {name!r} randomizer",
            notes=calibration_notes(epsilon, true_epsilon, paper=paper),
        )

    def contribute(self, users: Trajectories, ask: Ask | None, sums: NDArray[np.int64]) -> None:
        """Add the users' reports to ``sums``. Each user noises her report on her own side."""
        if not self._observers:
            self.statistic.collect(users, sums, self._source, ask)
            return
        report = np.zeros_like(sums)
        self.statistic.collect(users, report, self._source, ask)
        for observer in self._observers:
            observer.reported(report)
        sums += report

    def contribute_nothing(self, users: int, sums: NDArray[np.int64]) -> None:
        """Add an empty report, noised as any other, for each user who left early."""
        self.statistic.absent(users, sums, self._source)

    def arrays_of_noise(self) -> int:
        """The noise of one user on all her counts, where she reports them."""
        return 3 if isinstance(self.statistic, AdditiveReports) else 0

    def law(self, releases: int, *, newest: bool) -> Noise:
        """The law of the noise that is added to reports: there is none. Their own noise is that of the statistic."""
        del releases, newest
        return no_noise

    def sources(self) -> dict[str, NoiseSource]:
        """The source of the users' own noise."""
        return {"users": self._source}

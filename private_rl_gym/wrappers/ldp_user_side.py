"""Local differential privacy: every user noises her own report."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.asks import Ask
from private_rl_gym.privacy.conversion import check_budget
from private_rl_gym.privacy.guarantee import Guarantee, TrustModel
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.randomizers import randomizer as named_randomizer
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.summing import (
    StatisticChoice,
    calibration_notes,
    exact_statistic,
    uses_printed_constants,
)

__all__ = ["LDPUserSide"]


class LDPUserSide(Boundary):
    """Publishes the sum of reports that each user noised on her own side, trusting nobody.

    Privacy:
        Every user's report is (epsilon, delta)-LDP under replacing her, whatever others do. Proofs:
        docs/proofs/local-unary.md for ``"one-step"`` and ``"unary"``, docs/proofs/local-additive.md for ``"laplace"``
        and ``"gaussian"``; for moments, with docs/proofs/linear-sensitivity.md.

    Example:
        >>> import gymnasium as gym, private_rl_gym
        >>> from private_rl_gym.wrappers import LDPUserSide
        >>> board = LDPUserSide(gym.make("PrivateRL/RiverSwim-v0", horizon=20), epsilon=1.0)
        >>> board.serve([1] * 6, users=100)
        100
        >>> print(board.ledger)
        (1.0, 0)-LDP, replace one user, any number of users

    Args:
        env: Discrete spaces and a horizon.
        epsilon: Of a user's whole episode.
        delta: For ``"gaussian"``; the others are pure.
        users: The number of users that may come; by default any number.
        statistic: The content of her report: ``"tabular"`` counts; or ``"linear"`` moments, for linear learners, with
            the features that the environment knows or with ``LinearFeatures`` that are handed over. By default what the
            agent needs.
        randomizer: ``"one-step"`` (she reports one step, drawn at random, with all her budget; the most accurate, and
            the default for counts), ``"unary"`` (all her steps), ``"laplace"`` or ``"gaussian"`` (all her counts, or
            moments: the default there, by delta).
        batch_size: Users in a batch, after which something is published. The last batch may be smaller.
        calibration: ``"exact"``, or ``"paper"`` for the printed constants of the Laplace randomizer, which cost twice
            the epsilon that is asked for; the ledger says so.
        seed: For experiments that can be repeated; it voids the promise, and the ledger says so.
        secure: Draw noise from a cryptographic generator.
        horizon: Largest number of steps, where the environment does not know it.
    """

    short = "ldp"

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
            randomizer=randomizer,
            batch_size=batch_size,
            calibration=calibration,
            seed=seed,
            secure=secure,
            horizon=horizon,
        )
        super().__init__(env, statistic=statistic, horizon=horizon, users=users, batch_size=batch_size)
        check_budget(epsilon, delta)
        self._budget = float(epsilon), float(delta)
        self._randomizer, self._paper = randomizer, uses_printed_constants(calibration)
        self._source = NoiseSource(seed, secure=secure, role="users")
        self.design("tabular" if statistic is None else statistic, apart=True)
        calibration_notes(self._budget[0], self._promised.epsilon, paper=self._paper, warn=True)

    def design(self, statistic: Any, *, apart: bool) -> None:
        """The randomizer that was asked for, or the one that fits what is reported."""
        del apart
        (epsilon, delta), paper = self._budget, self._paper
        exact = exact_statistic(self.population, statistic, paper=paper)
        name = self._randomizer
        if name is None:
            name = "one-step" if exact.name == "tabular" else "gaussian" if delta > 0.0 else "laplace"
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
        """The act: each user noises her own report on her side, and only reports are summed."""
        if not self._observers:
            self.statistic.collect(users, sums, self._source, ask)
            return
        report = np.zeros_like(sums)
        self.statistic.collect(users, report, self._source, ask)
        for observer in self._observers:
            observer.reported(report)
        sums += report

    def contribute_nothing(self, users: int, sums: NDArray[np.int64]) -> None:
        """Who leaves before her time sends a report of nothing, noised as any other."""
        self.statistic.absent(users, sums, self._source)

    def sources(self) -> dict[str, NoiseSource]:
        """The users' own."""
        return {"users": self._source}

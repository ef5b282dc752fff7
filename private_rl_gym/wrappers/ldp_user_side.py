"""Local differential privacy: every user noises her own report."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal

import gymnasium as gym

from private_rl_gym.privacy.conversion import check_budget
from private_rl_gym.privacy.guarantee import Guarantee
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.publishing import PublicSums
from private_rl_gym.privacy.randomizers import randomizer as named_randomizer
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.summing import Summed, exact_statistic

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
        statistic: What she reports: ``"tabular"`` counts; or ``"linear"`` moments, for linear learners, with the
            features that the environment knows or with ``LinearFeatures`` that are handed over.
        randomizer: ``"one-step"`` (she reports one step, drawn at random, with all her budget; the most accurate, and
            the default for counts), ``"unary"`` (all her steps), ``"laplace"`` or ``"gaussian"`` (all her counts, or
            moments: the default there, by delta).
        publish_every: Users in a batch. The last batch may be smaller.
        calibration: ``"exact"``, or ``"paper"`` for the printed constants of the Laplace randomizer, which cost twice
            the epsilon that is asked for; the ledger says so.
        seed: For experiments that can be repeated; it voids the promise, and the ledger says so.
        secure: Draw noise from a cryptographic generator.
        horizon: Largest number of steps, where the environment does not know it.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        epsilon: float,
        delta: float = 0.0,
        users: int | None = None,
        *,
        statistic: Summed = "tabular",
        randomizer: str | None = None,
        publish_every: int = 1,
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
            publish_every=publish_every,
            calibration=calibration,
            seed=seed,
            secure=secure,
            horizon=horizon,
        )
        super().__init__(env, horizon=horizon, users=users, publish_every=publish_every)
        inside = self._inside
        paper = check_calibration(calibration)
        check_budget(epsilon, delta)
        epsilon, delta = float(epsilon), float(delta)
        exact = exact_statistic(inside, statistic, paper=paper)
        if randomizer is None:
            randomizer = "one-step" if exact.kind == "tabular" else "gaussian" if delta > 0.0 else "laplace"
        reports, true_epsilon, true_delta = named_randomizer(randomizer, exact, epsilon, delta, paper=paper)
        source = NoiseSource(seed, secure=secure, role="users")
        notes = calibration_notes(epsilon, true_epsilon, paper=paper)
        what = "" if exact.kind == "tabular" else " her linear moments"
        mechanism = f"each user reports{what} by the {randomizer!r} randomizer"
        self._guarantee = Guarantee("LDP", true_epsilon, true_delta, self.users, mechanism, notes=notes)
        self._board = PublicSums(
            reports,
            users=self.users,
            publish_every=self.publish_every,
            user_source=source,
            absorbing=inside.absorbing,
        )

    @property
    def guarantee(self) -> Guarantee:
        """What every user is promised."""
        return with_seed(self._guarantee, self._board.user_source)


def check_calibration(calibration: str) -> bool:
    """Whether the papers' constants are asked for, or a sentence."""
    if calibration not in ("exact", "paper"):
        raise ValueError(
            f"calibration is {calibration!r}: choose 'exact', or 'paper' for the papers' printed constants."
        )
    return calibration == "paper"


def calibration_notes(asked: float, true: float, *, paper: bool) -> tuple[str, ...]:
    """What a ledger has to add; the papers' constants are also warned of."""
    if not paper:
        return ()
    why = "count adding a user where one is replaced" if true > asked else "split the budget over stages and counters"
    warnings.warn(
        f"calibration='paper' uses the papers' printed constants, which {why}: "
        f"they print epsilon = {asked:g} and cost {true:.3g}. The ledger states what they cost.",
        stacklevel=3,
    )
    return (f"calibration='paper', printed as epsilon = {asked:g}",)


def with_seed(guarantee: Guarantee, source: NoiseSource | None) -> Guarantee:
    """The guarantee, with the confession of a seed, if there is one."""
    if source is None or not source.seeded:
        return guarantee
    return replace(guarantee, seeded=True)

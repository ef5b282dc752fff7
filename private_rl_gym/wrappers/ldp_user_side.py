"""Local differential privacy: every user adds noise to their own report."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import gymnasium as gym

from private_rl_gym.planning.arrays import shown
from private_rl_gym.privacy.accounting.conversion import check_budget
from private_rl_gym.privacy.accounting.guarantee import Guarantee, TrustModel
from private_rl_gym.privacy.protocols import Exact, Options
from private_rl_gym.privacy.randomizers import Randomizer, UserSide, randomized
from private_rl_gym.wrappers.arguments import CommonArguments, CommonOptions
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.options import (
    calibration_notes,
    statistic_of,
    uses_printed_constants,
)
from private_rl_gym.wrappers.pipeline import Proposal
from private_rl_gym.wrappers.sources import Source

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["LDPUserSide"]


class LDPUserSide(Boundary):
    """The sum of reports that users noise on their own side.

    Users need to trust no one else.

    Privacy:
        Every user's report is (epsilon, delta)-LDP under replacing that user, whatever others do. Proofs:
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
        delta: For ``"gaussian"``; the other randomizers are pure. Until an agent or a user comes, the ledger states it,
            because an agent may need Gaussian noise.
        users: The number of users that may come; by default any number.
        randomizer: ``"one-step"`` (a user reports one step, drawn at random, with the whole budget), ``"unary"`` (all
            steps), ``"laplace"`` or ``"gaussian"`` (all counts or moments). By default the one with the least noise
            at this epsilon and size. Reports of single steps are always sent as a ``"subset"`` of outcomes, and
            gradients as a ``"direction"``, which is pure, or with ``"gaussian"`` noise.
        calibration: ``"exact"``, or ``"paper"`` for the printed constants of the Laplace randomizer, which cost twice
            the given epsilon. The ledger says so.
        **common: The options of all boundaries: ``statistic``, ``schedule``, ``stationary``, ``horizon``,
            ``reward_range`` and ``rng``. See ``CommonOptions``.
    """

    short = "ldp"
    differentiates = True
    usual_delta = 0.0  # messages are pure by default
    protocol = Exact

    def __init__(
        self,
        env: gym.Env[Any, Any],
        epsilon: float,
        delta: float = 0.0,
        *,
        users: int | None = None,
        randomizer: str | type[Randomizer] | None = None,
        calibration: Literal["exact", "paper"] = "exact",
        **common: Unpack[CommonArguments],
    ) -> None:
        check_budget(epsilon, delta)
        if not (randomizer is None or isinstance(randomizer, str) or inspect.isclass(randomizer)):
            raise TypeError(
                f"randomizer is {shown(randomizer)}: give a name, such as 'unary', a subclass of Randomizer, or None."
            )
        self._budget = float(epsilon), float(delta)
        self._randomizer, self._printed = randomizer, uses_printed_constants(calibration)
        super().__init__(env, CommonOptions.of(type(self), common, users=users, printed=self._printed))
        self._source = self._options.source("users")
        self._ready()
        if self._printed:
            calibration_notes(self._budget[0], self._pipeline.proposal.plan.guarantee.epsilon, warn=True)

    def _side(self, source: Source, statistic: Any) -> UserSide:
        """Return the users' side with the requested randomizer, or the least noisy one."""
        exact = statistic_of(source, statistic, stationary=self._options.stationary, printed=self._printed)
        chosen = randomized(exact, *self._budget, self._randomizer, printed=self._printed)
        return UserSide(chosen.statistic, chosen, self._source)

    def _proposed(self, statistic: Any, *, apart: bool) -> Proposal:
        """Return the proposal, with a note if constants are the papers'.

        The note is in the ledger.
        """
        proposal = super()._proposed(statistic, apart=apart)
        guarantee = proposal.plan.guarantee
        notes = calibration_notes(self._budget[0], guarantee.epsilon) if self._printed else ()
        return replace(proposal, plan=replace(proposal.plan, guarantee=replace(guarantee, notes=notes)))

    def stated(self) -> Guarantee:
        """Return the whole budget as a guarantee.

        An agent may need a randomizer that spends all of it.
        """
        return Guarantee(TrustModel.LDP, *self._budget, self.users, "each user sends a message with noise of their own")

    def _protocol_options(self) -> Options:
        """Return the number of users and the schedule."""
        return Options(self.users, self._options.schedule)

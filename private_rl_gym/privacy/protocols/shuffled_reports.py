"""Messages that users noise themselves, mixed by a shuffler, which amplifies their privacy."""

from __future__ import annotations

from dataclasses import dataclass

from private_rl_gym.privacy.accounting.amplification import amplified_epsilon, closed_form_epsilon
from private_rl_gym.privacy.accounting.guarantee import Guarantee, TrustModel, plain_number
from private_rl_gym.privacy.protocols.base import Options, ProtocolPlan
from private_rl_gym.privacy.protocols.exact import Exact
from private_rl_gym.privacy.randomizers.base import UserSide

__all__ = ["ReportsOptions", "ShuffledReports"]


@dataclass(frozen=True, kw_only=True)
class ReportsOptions(Options):
    """The options of a shuffler of reports.

    Attributes:
        delta: What the guarantee may fail by.
        least: The smallest number of reports that are ever mixed together.
        local: The guarantee of the users' own noise, as it is stated before a statistic is chosen.
    """

    delta: float
    least: int
    local: Guarantee


class ShuffledReports(Exact):
    """Mixed messages of a batch, which hide among each other without added noise."""

    merges = False
    last_joins = True
    hides_among = True
    options: ReportsOptions

    @classmethod
    def stated(cls, options: Options) -> Guarantee:
        """Return the closed form of amplification for pure messages.

        Messages that may have a delta are not amplified.
        """
        assert isinstance(options, ReportsOptions)  # noqa: S101 - those of this protocol
        local = options.local
        if local.delta > 0.0:
            return cls._as_they_are(options, local.epsilon, max(local.delta, options.delta))
        epsilon = min(local.epsilon, closed_form_epsilon(local.epsilon, options.least, options.delta))
        return cls._mixed(options, local.epsilon, epsilon, ())

    @classmethod
    def planned(cls, side: UserSide, options: Options, *, apart: bool) -> ProtocolPlan:
        """Return the plan with the amplified guarantee of the users' own noise."""
        assert isinstance(options, ReportsOptions)  # noqa: S101 - those of this protocol
        assert side.randomizer is not None  # noqa: S101 - there is a boundary inside
        (epsilon, delta), least = side.randomizer.spent, options.least
        terms = {"smallest batch": least}
        if delta > 0.0:
            return ProtocolPlan(cls._as_they_are(options, epsilon, delta), least=least, terms=terms)
        amplified = amplified_epsilon(epsilon, least, options.delta, side.randomizer.blanket)
        closed = closed_form_epsilon(epsilon, least, options.delta)
        note = f"amplification: closed form {closed:.3g}, numerical bound {amplified:.3g}"
        return ProtocolPlan(cls._mixed(options, epsilon, amplified, (note,)), least=least, terms=terms)

    @staticmethod
    def _as_they_are(options: Options, epsilon: float, delta: float) -> Guarantee:
        described = "shuffled reports; no amplification is claimed for reports with a delta"
        return Guarantee(TrustModel.SDP, epsilon, delta, options.users, described)

    @staticmethod
    def _mixed(options: ReportsOptions, local: float, epsilon: float, notes: tuple[str, ...]) -> Guarantee:
        described = f"reports of epsilon = {plain_number(local)} each, shuffled in batches of {options.least} or more"
        return Guarantee(TrustModel.SDP, epsilon, options.delta, options.users, described, notes=notes)

    def needed(self, users: int) -> int:
        """Return the smallest number of reports that the guarantee is computed for."""
        return self.options.least

    @property
    def refusal(self) -> str:  # type: ignore[override]
        """The end of errors about a batch with fewer reports."""
        return (
            f"and the guarantee is stated for {self.options.least} at least: let more users come, or build the "
            "boundary with a smaller smallest_batch=."
        )

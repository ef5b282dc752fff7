"""Shuffle differential privacy: a shuffler mixes users' messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import gymnasium as gym

from private_rl_gym.caller import warn
from private_rl_gym.planning.arrays import among, positive_integer, real, shown
from private_rl_gym.privacy.accounting.conversion import check_budget
from private_rl_gym.privacy.accounting.guarantee import Guarantee
from private_rl_gym.privacy.protocols import BitsOptions, ReportsOptions, ShuffledBits, ShuffledReports
from private_rl_gym.privacy.protocols.shuffled_bits import printed_as
from private_rl_gym.privacy.randomizers.base import UserSide
from private_rl_gym.wrappers.arguments import CommonArguments, CommonOptions
from private_rl_gym.wrappers.boundary import Boundary, public
from private_rl_gym.wrappers.options import statistic_of, uses_printed_constants
from private_rl_gym.wrappers.sources import Source

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["SDPShuffler"]


class SDPShuffler(Boundary):
    """Sums of shuffled bits, published batch by batch.

    The bits are those of users' data and their noise bits. Users trust the shuffler to mix their messages, and no one
    to keep secrets. Each user is in one batch, which closes when it is full, or by ``publish``. Its users then learn
    how many they are, and choose their noise accordingly. No batch closes with fewer messages than the guarantee was
    made for. Users who would be left over join the last batch. Releases are sums over all batches so far;
    ``board.batch`` is the release of the newest batch alone.

    Privacy:
        (epsilon, delta)-shuffle differential privacy under replacing one user: the messages of their batch, in random
        order, are (epsilon, delta)-DP (docs/proofs/shuffled-bits.md; of moments docs/proofs/shuffled-vectors.md), and
        no other batch depends on them (docs/proofs/batched.md). Around ``LDPUserSide`` no noise is added: shuffling
        amplifies the privacy of the users' own noise (docs/proofs/shuffle-amplification.md). The ledger has both.

    Example:
        >>> import gymnasium as gym, private_rl_gym
        >>> from private_rl_gym.wrappers import SDPShuffler
        >>> env = gym.make("PrivateRL/RiverSwim-v0", horizon=20)
        >>> board = SDPShuffler(env, epsilon=1.0, delta=1e-6, users=50_000, schedule=5_000)
        >>> board.serve([1] * 6, users=12_000)
        12000
        >>> board.release.users
        10000
        >>> print(board.ledger)
        (1.0, 1e-06)-SDP, replace one user, 50000 users

    Args:
        env: An environment with Discrete spaces and a horizon, bare or inside ``LDPUserSide``.
        epsilon: For a user's whole episode. Around ``LDPUserSide`` it follows from the epsilon there. Until an agent or
            a user comes, the ledger then states a bound for reports of any kind.
        delta: Above 0. Around ``LDPUserSide`` it is 1e-6 if it is left out, and a warning says so.
        users: The number of users that may come; by default any number.
        smallest_batch: Around ``LDPUserSide``, the least number of reports that are shuffled together, for which the
            guarantee holds; by default the size of a batch. A smaller one leaves room for ``publish`` and dropouts.
        calibration: ``"exact"`` for the least noise that suffices, or ``"paper"`` for the printed constants. At
            epsilon = 1 their noise is 15 times as wide for H = 5, and 30 times for H = 20; the ledger has their cost.
        dropout: The share of a batch that may vanish before the shuffle, with its noise, without breaking the
            guarantee. If more vanish (``drop_out``), the batch is not published, and the remaining users join the next.
        simulation: ``"aggregate"`` draws the sum of the noise bits; ``"messages"`` permutes every bit, to the same law.
        **common: The options of all boundaries: ``statistic``, ``schedule``, ``stationary``, ``horizon``,
            ``reward_range`` and ``rng``. See ``CommonOptions``.
    """

    short = "sdp"
    usual_batch = 1000
    may_enclose: ClassVar[tuple[str, ...]] = ("ldp",)
    bits: ClassVar[type[ShuffledBits]] = ShuffledBits
    reports: ClassVar[type[ShuffledReports]] = ShuffledReports

    def __init__(
        self,
        env: gym.Env[Any, Any],
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        users: int | None = None,
        smallest_batch: int | None = None,
        calibration: Literal["exact", "paper"] = "exact",
        dropout: float = 0.0,
        simulation: Literal["aggregate", "messages"] = "aggregate",
        **common: Unpack[CommonArguments],
    ) -> None:
        if epsilon is not None:
            check_budget(epsilon, 0.0 if delta is None else delta)
        if not 0.0 <= real(dropout, "dropout") < 1.0:
            raise ValueError(f"dropout is {shown(dropout)}: the share of a batch that may vanish lies in [0, 1).")
        if not among(simulation, ("aggregate", "messages")):
            raise ValueError(f"simulation is {shown(simulation)}: choose 'aggregate' or 'messages'.")
        printed = uses_printed_constants(calibration)
        super().__init__(env, CommonOptions.of(type(self), common, users=users, printed=printed))
        self._users_source = self._options.source("users")
        by_message = simulation == "messages"
        self._shuffling: BitsOptions | ReportsOptions
        if self._inner is None:
            self.protocol = self.bits
            self._shuffling = self._of_bits(epsilon, delta, smallest_batch, printed, dropout, by_message)
        else:
            self.protocol = self.reports
            if printed or dropout or by_message:
                name = type(self._inner).__name__
                raise ValueError(f"calibration, dropout and simulation are about noise bits, and {name} has none.")
            self._shuffling = self._of_reports(self._inner, epsilon, delta, smallest_batch)
        self._ready()
        if delta is None:
            warn("delta is not given, so it is 1e-06. Give delta=1e-6, or the one that is meant.")
        if printed and epsilon is not None:
            warn(f"calibration='paper' is {printed_as(epsilon)}. The ledger states the exact cost.")

    def _of_bits(
        self,
        epsilon: float | None,
        delta: float | None,
        smallest: int | None,
        printed: bool,
        dropout: float,
        by_message: bool,
    ) -> BitsOptions:
        """Return the options of noise bits."""
        if smallest is not None:
            raise ValueError(
                f"smallest_batch is {smallest}: it is for reports of an LDPUserSide. Noise bits protect batches of any "
                "size. Leave it out."
            )
        if epsilon is None or delta is None:
            missing = " and ".join(name for name, value in (("epsilon", epsilon), ("delta", delta)) if value is None)
            raise ValueError(f"{missing} not given: noise bits need a budget, such as epsilon=1.0, delta=1e-6.")
        return BitsOptions(
            self.users,
            self._options.schedule,
            epsilon=float(epsilon),
            delta=float(delta),
            printed=printed,
            dropout=dropout,
            by_message=by_message,
            source=self._options.source("shuffler"),
        )

    def _of_reports(
        self, inner: Boundary, epsilon: float | None, delta: float | None, smallest: int | None
    ) -> ReportsOptions:
        """Return the options of reports that users have noised."""
        if epsilon is not None:
            raise ValueError(
                f"epsilon is {epsilon} around {type(inner).__name__}: the shuffler adds no noise there, and its "
                "epsilon follows from the one inside. Leave it out, or change the epsilon inside."
            )
        delta = 1e-6 if delta is None else real(delta, "delta")
        if not 0.0 < delta < 1.0:
            raise ValueError(f"delta is {shown(delta)}: amplification by shuffling needs one in (0, 1).")
        whole = self.batch_size if self.users is None else min(self.batch_size, self.users)
        least = whole if smallest is None else positive_integer(smallest, "smallest_batch", "users in a batch")
        if least > whole:
            raise ValueError(f"smallest_batch is {least}: batches have {whole} users, by schedule= and users=.")
        return ReportsOptions(self.users, self._options.schedule, delta=delta, least=least, local=inner.guarantee)

    def _side(self, source: Source, statistic: Any) -> UserSide:
        """Return the statistic as bits or levels, or the side of the boundary inside."""
        options = self._shuffling
        assert isinstance(options, BitsOptions)  # noqa: S101 - those of a shuffler alone
        exact = statistic_of(source, statistic, stationary=self._options.stationary, printed=options.printed)
        for alphabet in self.protocol.alphabets:
            try:
                return UserSide(exact.coded(alphabet), None, self._users_source)
            except ValueError:
                continue
        raise ValueError(
            f"statistic is {statistic!r}: noise bits are for 'tabular' counts, 'reports', 'staged-reports' and, with "
            "calibration='exact', 'linear' moments. For other statistics, put the SDPShuffler around LDPUserSide."
        )

    def stated(self) -> Guarantee:
        """Return the budget; around reports of a chosen kind, their amplified guarantee."""
        chosen = self._inner is not None and not self._inner.open
        return self._pipeline.proposal.plan.guarantee if chosen else super().stated()

    def _protocol_options(self) -> BitsOptions | ReportsOptions:
        """Return the budget of noise bits, or the smallest batch of reports."""
        return self._shuffling

    @public
    def drop_out(self, users: int = 1) -> None:
        """Let users come and vanish before the shuffle, with their data and their noise."""
        self._admission.lose(positive_integer(users, "users", "users who vanish"))

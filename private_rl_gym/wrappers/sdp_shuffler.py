"""Shuffle differential privacy: users noise their bits together, and a shuffler mixes them."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Literal

import gymnasium as gym

from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.privacy.batches import ShuffledBits, ShuffledSums
from private_rl_gym.privacy.guarantee import Guarantee, plain_number
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.shuffling import BinarySums, amplified_epsilon, closed_form_epsilon
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.ldp_user_side import check_calibration, with_seed

__all__ = ["SDPShuffler"]


class SDPShuffler(Boundary):
    """Publishes, batch by batch, sums of bits that a shuffler has mixed: its users' own, and their noise.

    Users trust the shuffler to mix and nobody to keep secrets. Each is in one batch. A batch closes when it is full, or
    by ``publish``; its users then learn how many they are, and noise their bits accordingly. None closes with fewer
    messages than its promise was made for, so that what the ledger says before users come it says for ever. The last
    batch takes what would be left over. Releases are sums over all batches so far; ``release.since(earlier)`` is what
    came after.

    Privacy:
        (epsilon, delta)-shuffle differential privacy under replacing one user: the messages of her batch, in random
        order, are (epsilon, delta)-DP (docs/proofs/shuffled-bits.md), and no other batch knows of her
        (docs/proofs/batched.md). Around ``LDPUserSide`` no noise is added: shuffling amplifies what users noised
        themselves (docs/proofs/shuffle-amplification.md), and the ledger says both.

    Example:
        >>> import gymnasium as gym, private_rl_gym
        >>> from private_rl_gym.wrappers import SDPShuffler
        >>> env = gym.make("PrivateRL/RiverSwim-v0", horizon=20)
        >>> board = SDPShuffler(env, epsilon=1.0, delta=1e-6, users=50_000, batch_size=5_000)
        >>> board.serve([1] * 6, users=12_000)
        12000
        >>> board.release.users
        10000
        >>> print(board.ledger)
        (1.0, 1e-06)-SDP, replace one user, 50000 users

    Args:
        env: Discrete spaces and a horizon; bare, or reports by ``LDPUserSide``.
        epsilon: Of a user's whole episode. Around ``LDPUserSide`` it follows from hers.
        delta: Above 0. Around ``LDPUserSide``, 1e-6 by default.
        users: The number of users that may come; by default any number.
        batch_size: Users in a batch.
        smallest_batch: Around ``LDPUserSide``, the fewest reports that are ever shuffled together; the promise is made
            for these. By default ``batch_size``. Fewer leave room for ``publish`` and for users who vanish.
        calibration: ``"exact"`` for the least noise that does it, or ``"paper"`` for the printed constants, some sixty
            times wider; the ledger says what they cost.
        dropout: The share of a batch that may vanish before the shuffle, noise and all, without breaking the promise.
            If more do (``drop_out``), nothing is published of the batch, and those who are left join the next.
        simulation: ``"aggregate"`` draws the sum of the noise bits, ``"messages"`` makes and permutes every one of
            them. The law is the same.
        seed: For experiments that can be repeated; it voids the promise, and the ledger says so.
        secure: Draw noise from a cryptographic generator.
        horizon: Largest number of steps, where the environment does not know it.
    """

    may_enclose: ClassVar[tuple[str, ...]] = ("LDPUserSide",)

    def __init__(
        self,
        env: gym.Env[Any, Any],
        epsilon: float | None = None,
        delta: float | None = None,
        users: int | None = None,
        *,
        batch_size: int = 1000,
        smallest_batch: int | None = None,
        calibration: Literal["exact", "paper"] = "exact",
        dropout: float = 0.0,
        simulation: Literal["aggregate", "messages"] = "aggregate",
        seed: int | None = None,
        secure: bool = False,
        horizon: int | None = None,
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(
            self,
            epsilon=epsilon,
            delta=delta,
            users=users,
            batch_size=batch_size,
            smallest_batch=smallest_batch,
            calibration=calibration,
            dropout=dropout,
            simulation=simulation,
            seed=seed,
            secure=secure,
            horizon=horizon,
        )
        batch_size = positive_integer(batch_size, "batch_size", "users in a batch")
        if smallest_batch is not None:
            smallest_batch = positive_integer(smallest_batch, "smallest_batch", "users in a batch")
        super().__init__(env, horizon=horizon, users=users, publish_every=batch_size)
        numbers = {"epsilon": epsilon, "delta": delta, "dropout": dropout}
        self._agreed: dict[str, Any] = {k: None if v is None else float(v) for k, v in numbers.items()}
        self._agreed |= {"calibration": calibration, "simulation": simulation, "smallest_batch": smallest_batch}
        if self._inner is not None and users is None:
            self._users = self._inner.users
        paper = check_calibration(calibration)
        if simulation not in ("aggregate", "messages"):
            raise ValueError(f"simulation is {simulation!r}: choose 'aggregate' or 'messages'.")
        shuffler = NoiseSource(seed, secure=secure, role="shuffler")
        plan: dict[str, Any] = {
            "users": self.users,
            "publish_every": self.publish_every,
            "absorbing": self._inside.absorbing,
        }
        if self._inner is not None:
            self._check_inner(epsilon, paper=paper, dropout=dropout, simulation=simulation)
            inner = self._inner._board
            self._delta = 1e-6 if delta is None else float(delta)
            if not 0.0 < self._delta < 1.0:
                raise ValueError(f"delta is {delta}: amplification by shuffling needs one in (0, 1).")
            whole = batch_size if self.users is None else min(batch_size, self.users)
            least = whole if smallest_batch is None else smallest_batch
            if least > whole:
                raise ValueError(f"smallest_batch is {least}: batches have {whole} users, by batch_size= and users=.")
            self._board = ShuffledSums(
                inner.statistic,
                protocol=None,
                shuffler=shuffler,
                smallest=least,
                user_source=inner.user_source,
                **plan,
            )
            self._guarantee = self._amplified(self._inner.guarantee, least, inner.statistic.variation)
            self._inner._outer = self
            return
        if smallest_batch is not None:
            raise ValueError(
                f"smallest_batch is {smallest_batch}: it is for reports, which hide among each other. Noise bits "
                "protect batches of any size. Leave it out."
            )
        if epsilon is None or delta is None:
            missing = " and ".join(name for name, value in (("epsilon", epsilon), ("delta", delta)) if value is None)
            raise ValueError(f"{missing} not given: say what the noise bits may cost, such as epsilon=1.0, delta=1e-6.")
        self._delta = float(delta)
        inside = self._inside
        sizes = (inside.horizon, inside.n_states, inside.n_actions)
        bits = inside.compiled and inside.model is not None and inside.model.reward_law == "bernoulli"
        statistic = ShuffledBits(sizes, separate_visits=paper, bits=bits)
        protocol = BinarySums(
            statistic.moved, float(epsilon), self._delta, paper=paper, horizon=inside.horizon, dropout=dropout
        )
        notes: tuple[str, ...] = ()
        if paper:
            told = (
                f"printed as epsilon = {epsilon:g}, which basic composition makes {2 * epsilon:g} for a replaced user"
            )
            notes = (f"calibration='paper', {told}; composed exactly it is what stands here",)
            warnings.warn(f"calibration='paper' is {told}. The ledger states the exact cost.", stacklevel=2)
        said = "sums of shuffled bits, noised by the users of each batch"
        if dropout:
            said += f", of whom a share of {dropout:g} may vanish"
        self._guarantee = Guarantee("SDP", protocol.true_epsilon, self._delta, self.users, said, notes=notes)
        self._board = ShuffledSums(
            statistic,
            protocol=protocol,
            shuffler=shuffler,
            by_message=simulation == "messages",
            user_source=NoiseSource(seed, secure=secure, role="users"),
            **plan,
        )

    def _check_inner(self, epsilon: float | None, *, paper: bool, dropout: float, simulation: str) -> None:
        """What has no meaning around reports that users noised themselves."""
        name = type(self._inner).__name__
        if epsilon is not None:
            raise ValueError(
                f"epsilon is {epsilon} around {name}: no noise is added there, and what shuffling makes of its epsilon "
                "follows. Leave it out; to choose the outcome, change the epsilon inside."
            )
        if paper or dropout or simulation != "aggregate":
            raise ValueError(f"calibration, dropout and simulation are about noise bits, and {name} has none.")
        assert self._inner is not None  # noqa: S101 - it was asked about
        if self.users is not None and self._inner.users is not None and self._inner.users < self.users:
            raise ValueError(f"users is {self.users}: the {name} inside was built for {self._inner.users}.")

    _board: ShuffledSums

    @property
    def _terms(self) -> list[dict[str, Any]]:
        """What was agreed on; what is left of it changes with what happens."""
        return [*([] if self._inner is None else self._inner._terms), self._agreed]

    def drop_out(self, users: int = 1) -> None:
        """So many users come, and vanish before the shuffle: nothing of theirs arrives, noise included."""
        count = positive_integer(users, "users", "users who vanish")
        with self._lock:
            self._admit(count)
            self._board.lose(count)

    @property
    def guarantee(self) -> Guarantee:
        """What every user is promised: what was printed before she came, whatever has happened since."""
        return with_seed(self._guarantee, self._board.user_source)

    def _amplified(self, local: Guarantee, smallest: int, variation: float) -> Guarantee:
        """Of the smallest batch that is ever closed; reports that are not pure are not amplified here."""
        if local.delta > 0.0:
            said = "shuffled reports; no amplification is claimed for reports with a delta"
            return Guarantee("SDP", local.epsilon, local.delta, self.users, said)
        epsilon = amplified_epsilon(local.epsilon, smallest, self._delta, variation)
        closed = closed_form_epsilon(local.epsilon, smallest, self._delta)
        said = f"reports of epsilon = {plain_number(local.epsilon)} each, shuffled in batches of {smallest} or more"
        note = f"amplification: closed form {closed:.3g}, numerical bound {epsilon:.3g}"
        return Guarantee("SDP", epsilon, self._delta, self.users, said, notes=(note,))

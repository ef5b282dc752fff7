"""Shuffle differential privacy: users noise their bits together, and a shuffler mixes them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.amplification import amplified_epsilon, closed_form_epsilon
from private_rl_gym.privacy.asks import Ask, Wanted
from private_rl_gym.privacy.central import exact
from private_rl_gym.privacy.errors import BoundedError
from private_rl_gym.privacy.guarantee import Guarantee, TrustModel, plain_number
from private_rl_gym.privacy.moments import LinearMoments
from private_rl_gym.privacy.noise import AdditiveNoise, NoiseBitsOfBatches, Noises, NoiseSource
from private_rl_gym.privacy.pooled import PooledCounts
from private_rl_gym.privacy.reports import Reports
from private_rl_gym.privacy.shuffled import PooledBits, ShuffledBatches, ShuffledBits
from private_rl_gym.privacy.shuffled_moments import ShuffledMoments, VectorSums
from private_rl_gym.privacy.shuffling import BinarySums, send_and_shuffle
from private_rl_gym.privacy.statistics import Noise
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.summing import StatisticChoice, exact_statistic, uses_printed_constants

__all__ = ["SDPShuffler"]

MOST_MESSAGES = 100_000_000
"""The largest number of messages that are made one by one."""


class SDPShuffler(Boundary):
    """Publishes sums of shuffled bits, batch by batch: the bits of users' data and their noise bits.

    Users trust the shuffler to mix their messages, and nobody to keep secrets. Each user is in one batch. A batch
    closes when it is full, or by ``publish``; its users then learn how many they are, and choose their noise
    accordingly. No batch closes with fewer messages than the guarantee was made for, so the ledger says the same before
    and after users come. Users who would be left over join the last batch. Releases are sums over all batches so far;
    ``board.batch`` is the release of the newest batch alone.

    Privacy:
        (epsilon, delta)-shuffle differential privacy under replacing one user: the messages of her batch, in random
        order, are (epsilon, delta)-DP (docs/proofs/shuffled-bits.md; of moments docs/proofs/shuffled-vectors.md), and
        no other batch depends on her (docs/proofs/batched.md). Around ``LDPUserSide`` no noise is added: shuffling
        amplifies the privacy of the users' own noise (docs/proofs/shuffle-amplification.md), and the ledger states both
        guarantees.

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
        env: An environment with Discrete spaces and a horizon, bare or inside ``LDPUserSide``.
        epsilon: For a user's whole episode. Around ``LDPUserSide`` it follows from the epsilon there.
        delta: Above 0. Around ``LDPUserSide``, 1e-6 by default.
        users: The number of users that may come; by default any number.
        statistic: The kind of sums: ``"tabular"`` counts, ``"reports"`` of single steps, ``"staged-reports"`` with
            their stages, or ``"linear"`` moments (or ``LinearFeatures``), each entry of which is many bits; around
            ``LDPUserSide``, what users report there. By default the kind that the agent needs.
        batch_size: Number of users in a batch.
        smallest_batch: Around ``LDPUserSide``, the smallest number of reports that are ever shuffled together; the
            guarantee is computed for it. By default ``batch_size``. A smaller number leaves room for ``publish`` and
            for users who vanish.
        calibration: ``"exact"`` for the least noise that suffices, or ``"paper"`` for the printed constants, whose
            noise is about sixty times wider. The ledger says what they cost.
        dropout: The share of a batch that may vanish before the shuffle, with its noise, without breaking the
            guarantee. If more vanish (``drop_out``), the batch is not published, and the remaining users join the next.
        simulation: ``"aggregate"`` draws the sum of the noise bits, ``"messages"`` makes and permutes every one of
            them. Both have the same distribution.
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

    short = "sdp"
    may_enclose: ClassVar[tuple[str, ...]] = ("ldp",)

    binary_sums: ClassVar[type[BinarySums]] = BinarySums
    """The class of the protocol; simulations, in which nobody is protected, replace it by a quicker one."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        epsilon: float | None = None,
        delta: float | None = None,
        users: int | None = None,
        *,
        statistic: StatisticChoice | None = None,
        batch_size: int = 1000,
        smallest_batch: int | None = None,
        calibration: Literal["exact", "paper"] = "exact",
        dropout: float = 0.0,
        simulation: Literal["aggregate", "messages"] = "aggregate",
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
            batch_size=batch_size,
            smallest_batch=smallest_batch,
            calibration=calibration,
            dropout=dropout,
            simulation=simulation,
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
        if simulation not in ("aggregate", "messages"):
            raise ValueError(f"simulation is {simulation!r}: choose 'aggregate' or 'messages'.")
        self._asked_budget = epsilon, delta
        self._smallest = smallest_batch
        self._paper, self._dropout, self._by_message = (
            uses_printed_constants(calibration),
            dropout,
            simulation == "messages",
        )
        self._protocol: BinarySums | None = None
        self._protocols: dict[int, BinarySums] = {}
        self._shuffler = NoiseSource(seed, secure=secure, role="shuffler")
        self._users_source = NoiseSource(seed, secure=secure, role="users")
        self._held: list[NDArray[np.int64]] = []  # bits of the current batch, where messages are made
        self._noise = np.zeros(2)  # variance and mean of all noise bits in one counter
        self._batch_variance = np.zeros(1)  # of the newest batch
        self.design("tabular" if statistic is None else statistic, apart=True)
        if self._paper:
            epsilon = self._asked_budget[0]
            warnings.warn(f"calibration='paper' is {self._printed}. The ledger states the exact cost.", stacklevel=2)
        self._enclose()
        self._warn_of_delta()

    def design(self, statistic: Any, *, apart: bool) -> None:
        """Choose the number of noise bits; around reports, compute the guarantee that shuffling gives them."""
        del apart
        if self._inner is None:
            self._design_bits(statistic)
        else:
            self._design_mixing(statistic)

    def _design_bits(self, statistic: Any) -> None:
        epsilon, delta = self._asked_budget
        if self._smallest is not None:
            raise ValueError(
                f"smallest_batch is {self._smallest}: it is for reports, which hide among each other. Noise bits "
                "protect batches of any size. Leave it out."
            )
        if epsilon is None or delta is None:
            missing = " and ".join(name for name, value in (("epsilon", epsilon), ("delta", delta)) if value is None)
            raise ValueError(f"{missing} not given: say what the noise bits may cost, such as epsilon=1.0, delta=1e-6.")
        population = self.population
        exact = exact_statistic(population, statistic, paper=self._paper, stationary=self._stationary)
        if statistic == "tabular":
            bernoulli = population.model is not None and population.model.reward_law == "bernoulli"
            bits = population.compiled and population.rewards.plain and bernoulli
            self.statistic: Any = (
                PooledBits(self.sizes, bits=bits)
                if isinstance(exact, PooledCounts)
                else ShuffledBits(self.sizes, separate_visits=self._paper, bits=bits)
            )
        elif isinstance(exact, Reports):
            self.statistic = exact
        elif isinstance(exact, LinearMoments) and not self._paper:
            self.statistic = ShuffledMoments(exact.features, population.horizon)
        else:
            raise ValueError(
                f"statistic is {statistic!r}, and a shuffler mixes bits: it sums 'tabular' counts, 'reports', "
                "'staged-reports' and, with calibration='exact', 'linear' moments itself. Put it around LDPUserSide, "
                "whose reports may be of any kind."
            )
        self._budget = float(epsilon), float(delta)
        self._protocol = self._protocol_for(self.statistic)
        vanish = f", of whom a share of {self._dropout:g} may vanish" if self._dropout else ""
        self._promised = Guarantee(
            TrustModel.SDP,
            self._protocol.true_epsilon,
            float(delta),
            self.users,
            f"sums of shuffled bits, noised by the users of each batch{vanish}",
            notes=(f"calibration='paper', {self._printed}; composed exactly it is what stands here",)
            if self._paper
            else (),
        )
        if self._by_message:
            sizes = (1, self.batch_size, 2 * self.batch_size)
            own = self._own_bits
            most = max(users * (own + self._protocol.noise_bits(users).each) for users in sizes) * self.statistic.cells
            if most > MOST_MESSAGES:
                raise ValueError(
                    f"A batch would be {most:.2g} messages, too many to make one by one: take simulation='aggregate', "
                    "which has the same law, or smaller batches."
                )

    def _protocol_for(self, statistic: Any) -> BinarySums:
        """The protocol for users whose bits are these; if they were asked for more reports, they need more noise."""
        if isinstance(statistic, ShuffledMoments):
            if 0 not in self._protocols:
                reach, most = statistic.reach, statistic.most
                self._protocols[0] = VectorSums(reach, most, *self._budget, dropout=self._dropout)
            return self._protocols[0]
        if statistic.moved not in self._protocols:
            self._protocols[statistic.moved] = self.binary_sums(
                statistic.moved,
                *self._budget,
                paper=self._paper,
                horizon=self.population.horizon,
                dropout=self._dropout,
            )
        return self._protocols[statistic.moved]

    @property
    def _own_bits(self) -> int:
        """Number of bits in which a user says one entry: one, where entries are bits."""
        return self.statistic.own_bits if isinstance(self.statistic, ShuffledMoments) else 1

    @property
    def _printed(self) -> str:
        epsilon = self._asked_budget[0] or 0.0
        return f"printed as epsilon = {epsilon:g}, which basic composition makes {2 * epsilon:g} for a replaced user"

    def _design_mixing(self, statistic: Any) -> None:
        epsilon, delta = self._asked_budget
        inner = self._inner
        assert inner is not None  # noqa: S101 - design has checked it
        name = type(inner).__name__
        if epsilon is not None:
            raise ValueError(
                f"epsilon is {epsilon} around {name}: no noise is added there, and what shuffling makes of its epsilon "
                "follows. Leave it out; to choose the outcome, change the epsilon inside."
            )
        if self._paper or self._dropout or self._by_message:
            raise ValueError(f"calibration, dropout and simulation are about noise bits, and {name} has none.")
        delta = 1e-6 if delta is None else float(delta)
        if not 0.0 < delta < 1.0:
            raise ValueError(f"delta is {delta}: amplification by shuffling needs one in (0, 1).")
        whole = self.batch_size if self.users is None else min(self.batch_size, self.users)
        least = (
            whole if self._smallest is None else positive_integer(self._smallest, "smallest_batch", "users in a batch")
        )
        if least > whole:
            raise ValueError(f"smallest_batch is {least}: batches have {whole} users, by batch_size= and users=.")
        self._least = least
        self.statistic = inner.as_inner(statistic)
        local = inner.guarantee
        if local.delta > 0.0:
            mechanism = "shuffled reports; no amplification is claimed for reports with a delta"
            self._promised = Guarantee(TrustModel.SDP, local.epsilon, local.delta, self.users, mechanism)
            return
        amplified = amplified_epsilon(local.epsilon, least, delta, self.statistic.looks)
        closed = closed_form_epsilon(local.epsilon, least, delta)
        mechanism = f"reports of epsilon = {plain_number(local.epsilon)} each, shuffled in batches of {least} or more"
        note = f"amplification: closed form {closed:.3g}, numerical bound {amplified:.3g}"
        self._promised = Guarantee(TrustModel.SDP, amplified, delta, self.users, mechanism, notes=(note,))

    def _open(self) -> ShuffledBatches:
        if self._protocol is None:
            needed: Callable[[int], int] = self._needed_reports
            refusal = f"and the promise is made for {self._least} at least: let more users come, or build the boundary"
            refusal += " with a smallest_batch= that says less."
        else:
            needed, refusal = self._protocol.sure, "and noise is planned for more: let more users come."
        return ShuffledBatches(self.statistic, self, enough=needed, refusal=refusal, **self._about_users())

    def _needed_reports(self, users: int) -> int:
        del users
        return self._least

    def contribute(self, users: Trajectories, ask: Ask | None, sums: NDArray[np.int64]) -> None:
        """Add the bits that every user sends, one for each counter; around reports, add her report."""
        if self._inner is not None:
            self._inner.contribute(users, ask, sums)
        elif not self._by_message:
            self.statistic.collect(users, sums, self._users_source, ask)
        else:
            for user in range(len(users)):
                bits = np.zeros_like(sums)
                self.statistic.collect(users.part(user, user + 1), bits, self._users_source, ask)
                self._held.append(bits[: self.statistic.cells])
                sums += bits

    def contribute_nothing(self, users: int, sums: NDArray[np.int64]) -> None:
        """Add zero bits for users who left early; around reports, add empty reports."""
        if self._inner is not None:
            self._inner.contribute_nothing(users, sums)
        elif self._by_message:
            self._held += [np.zeros(self.statistic.cells, dtype=np.int64) for _ in range(users)]

    def disclose(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        """The values to publish: the sums of all users' bits and noise bits after mixing.

        The mean of the noise is subtracted.
        """
        if self._protocol is None:
            return super().disclose(sums, releases)
        size, lost, cells = self._batches.pending, self._batches.lost, self.statistic.cells
        sent = size - lost
        if not sent:
            return np.zeros(cells)
        bits = self._protocol_for(self.statistic.asked(sums[cells:])).noise_bits(size)
        if self._by_message:
            if len(self._held) != sent:
                raise RuntimeError("Messages of this batch are missing: nothing is published.")
            least = self.statistic.span if isinstance(self.statistic, ShuffledMoments) else 0
            held = np.array(self._held) + least  # how many of her own bits are set
            messages = send_and_shuffle(held, bits, self._shuffler.generator, self._own_bits)
            mixed = messages.sum(axis=1, dtype=np.int64) - sent * least
            self._held.clear()
        else:
            mixed = sums[:cells] + self._shuffler.generator.binomial(sent * bits.each, bits.bias, cells)
        mean = sent * bits.each * bits.bias
        self._batch_variance[0] = bits.variance(sent)
        self._noise += self._batch_variance[0], mean
        return np.asarray((mixed - mean) * self.statistic.grid)

    def expected_noise(self, users: int, ask: Ask | None = None) -> float:
        """The noise of the users' bits, as in a large batch; around reports, that of the reports."""
        if self._protocol is None:
            return super().expected_noise(users, ask)
        noise = 0.5 * math.sqrt(self._protocol_of(self.statistic.checked(ask)).tau)
        return noise * float(self.statistic.grid_range[1])

    def _protocol_of(self, ask: Ask | None) -> BinarySums:
        """The protocol for users who are all asked this."""
        statistic = self.statistic
        return self._protocol_for(statistic.of_at_most(ask.most) if isinstance(ask, Wanted) else statistic)

    def law(self, releases: int, *, newest: bool) -> Noise:
        """The law of the noise in one counter: a sum of many centred bits; around reports, none is added."""
        del releases
        if self._protocol is None:
            return exact
        variance = float(self._batch_variance[0] if newest else self._noise[0])
        return lambda grid: BoundedError(variance * grid**2, grid)

    def noises(self, batches: Sequence[int]) -> Noises:
        """The noise bits of all users of each batch, for what is asked now; around reports, the users' own noise."""
        if self._protocol is None:
            return super().noises(batches)
        protocol = self._protocol_of(self.ask)
        of_batches = [(size, protocol.noise_bits(size)) for size in batches]
        if isinstance(self.statistic, ShuffledMoments):  # so many bits that a linear score is the best one
            spread = [math.sqrt(bits.variance(size)) * self.statistic.grid_range[1] for size, bits in of_batches]
            return [AdditiveNoise(np.tril(np.ones((len(spread), 1)) * spread), 1.0, "bits")]
        return [NoiseBitsOfBatches(tuple((size * bits.each, bits.bias) for size, bits in of_batches))]

    @property
    def _batches(self) -> ShuffledBatches:
        batches = super()._batches
        assert isinstance(batches, ShuffledBatches)  # noqa: S101 - _open has made it
        return batches

    def drop_out(self, users: int = 1) -> None:
        """Let users come and vanish before the shuffle: neither their data nor their noise arrives."""
        count = positive_integer(users, "users", "users who vanish")
        with self._lock:
            self._require_outermost()
            self._admit(count)
            self._batches.lose(count)

    @property
    def closes_early(self) -> bool:
        """Whether batches may end early: not around reports, since fewer of them protect each other less."""
        return self._protocol is not None

    @property
    def least_batch(self) -> int:
        """Around reports, the number that hide among each other at least; noise bits protect batches of any size."""
        return 1 if self._protocol is not None else self._least

    def sources(self) -> dict[str, NoiseSource]:
        """The sources of the users and of the shuffler; around reports, those of the reports."""
        if self._inner is not None:
            return self._inner.sources()
        return {"users": self._users_source, "shuffler": self._shuffler}

    def noise_terms(self) -> dict[str, Any]:
        """The arguments that determine the noise."""
        return {
            "budget": [None if number is None else float(number) for number in self._asked_budget],
            "calibration": self._paper,
            "dropout": float(self._dropout),
            "simulation": self._by_message,
            "smallest_batch": self._smallest,
        }

    def noise_arrays(self) -> dict[str, NDArray[Any]]:
        """Variance and mean of all noise bits so far, and the variance in the newest batch."""
        if self._held:
            raise ValueError("A batch of messages is open: close it with publish(), then save.")
        return {"noise": self._noise, "batch_variance": self._batch_variance}

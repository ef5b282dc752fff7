"""The noise of a guarantee under every mechanism, for comparison before a deployment."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from private_rl_gym.planning.arrays import positive_integer, real, shown
from private_rl_gym.planning.features import LinearFeatures
from private_rl_gym.privacy.accounting.amplification import amplified_epsilon
from private_rl_gym.privacy.accounting.calibration import allowed, calibrate
from private_rl_gym.privacy.accounting.conversion import check_budget, gaussian_mu
from private_rl_gym.privacy.errors import BoundedError, ErrorDistribution
from private_rl_gym.privacy.errors import no_error as no_noise
from private_rl_gym.privacy.mechanisms import MECHANISMS, BinaryTree, Mechanism
from private_rl_gym.privacy.mechanisms.base import Law
from private_rl_gym.privacy.mechanisms.printed import printed
from private_rl_gym.privacy.protocols.bits import BinarySums
from private_rl_gym.privacy.protocols.vector_bits import VectorSums
from private_rl_gym.privacy.randomizers import Additive, Randomizer, Subset, randomized
from private_rl_gym.privacy.statistics import Alphabet, LinearMoments, Statistic, TabularCounts
from private_rl_gym.wrappers.memory import SUMS

__all__ = ["Deployment", "Row", "budget"]


@dataclass(frozen=True, slots=True)
class Deployment:
    """The sizes and the privacy budget of a planned deployment.

    With ``features`` users contribute linear moments in place of counts.
    """

    users: int
    horizon: int
    states: int
    actions: int
    epsilon: float
    delta: float = 0.0
    batch_size: int = 1
    beta: float = 0.05
    features: LinearFeatures | None = None

    def __post_init__(self) -> None:
        """Raise if a value is not possible."""
        for name in ("users", "horizon", "states", "actions", "batch_size"):
            object.__setattr__(self, name, positive_integer(getattr(self, name), name, name.replace("_", " ")))
        check_budget(self.epsilon, self.delta)
        for name in ("epsilon", "delta"):  # a half-precision number would round all that is computed with it
            object.__setattr__(self, name, float(getattr(self, name)))
        if not 0.0 < real(self.beta, "beta") < 1.0:
            raise ValueError(f"beta is {shown(self.beta)}: a probability of failure lies in (0, 1).")
        known = self.features
        if not isinstance(known, LinearFeatures | None):
            raise TypeError(f"features is {shown(known)}: give LinearFeatures, or None for counts.")
        if known is not None and (known.n_states, known.n_actions) != (self.states, self.actions):
            raise ValueError(
                f"The features are of {known.n_states} states and {known.n_actions} actions, and the plan is for "
                f"{self.states} and {self.actions}: they must be the same."
            )

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Horizon, states, actions."""
        return self.horizon, self.states, self.actions

    @property
    def releases(self) -> int:
        """Number of releases, one for each batch."""
        return -(-self.users // self.batch_size)

    @property
    def batch(self) -> int:
        """Number of users in a batch that is shuffled."""
        return max(self.batch_size, min(self.users, 1000))

    @property
    def visits(self) -> float:
        """Mean number of users at a (stage, state, action), to compare noise with."""
        return self.users / (self.states * self.actions)


@dataclass(frozen=True, slots=True)
class Row:
    """One mechanism, and its noise after all users.

    Of linear moments, the Gram matrix of phi stands for visits, the vector phi V for transitions, and the vector of
    rewards for rewards.
    """

    model: str
    mechanism: str
    epsilon: float  # the true cost
    delta: float
    visits_std: float  # noise in n(h, s, a)
    transitions_std: float  # noise in m(h, s, a, s')
    rewards_std: float  # noise in r(h, s, a)
    bound: float  # on every entry of every release at once, with probability 1 - beta
    memory: int  # bytes that a boundary takes for it
    won: float | None = None  # noise of a plain account of the same mechanism, divided by this noise


def budget(plan: Deployment) -> Iterator[Row]:
    """Yield a row for every mechanism that this budget allows.

    The papers' own mechanisms are included, with their true cost.
    """
    exact = _statistic(plan)
    yield _row(plan, "none", "exact sums", (float("inf"), 1.0), exact.errors(no_noise, plan.users), _memory(exact))
    for delta in dict.fromkeys((plan.delta, 0.0)):
        rows = [_central(plan, counting, law, delta) for counting, law in allowed(delta)]
        yield from sorted(rows, key=lambda row: row.transitions_std)
    counts, shuffled = plan.features is None, plan.delta > 0.0  # a shuffler needs a delta
    if counts or shuffled:
        yield _central(plan, "binary-tree", "laplace" if counts else "gaussian", plan.delta, paper=True)
    if shuffled:
        yield _shuffled_bits(plan)
    if shuffled and counts:
        yield _shuffled_bits(plan, paper=True)
        yield _shuffled_reports(plan)
    names = [*(("one-step", "unary") if counts else ()), *(("gaussian",) if plan.delta > 0.0 else ()), "laplace"]
    yield from (_local(plan, name) for name in names)
    if counts:
        yield _local(plan, "laplace", paper=True)


def _statistic(plan: Deployment, *, paper: bool = False) -> TabularCounts | LinearMoments:
    """Return the statistic of users: counts, or moments of known features."""
    if plan.features is not None:
        return LinearMoments(plan.features, plan.horizon, paper=paper)
    return TabularCounts(*plan.sizes, separate_visits=paper)


def _central(plan: Deployment, counting: str, law: Law, delta: float, *, paper: bool = False) -> Row:
    statistic = _statistic(plan, paper=paper)
    noise, known = MECHANISMS[counting](plan.releases, 1, law), statistic.sensitivity()
    if paper:
        _, _, scale, *spent = printed(counting, law, statistic, known, plan.releases, plan.epsilon, delta)
    else:
        scale, *spent = calibrate(noise, known, plan.epsilon, delta)
    constants = "PUCB's and DP-UCBVI's constants" if plan.features is None else "LinOpt's constants"
    name = constants if paper else f"{counting}, {law}"
    bounds = statistic.errors(noise.error(scale, noise.worst_step), plan.users)  # each release against its own
    errors = statistic.errors(noise.error(scale, plan.releases), plan.users)
    won = None if paper else _plain_scale(plan, noise) / scale
    memory = _memory(statistic, 2 + noise.held)
    return _row(plan, "JDP", name, (spent[0], spent[1]), errors, memory, bounds, won)


def _plain_scale(plan: Deployment, noise: Mechanism | None, law: Law = "laplace") -> float:
    """Return the noise scale of a plain account.

    It assumes one node for each level of a tree, and norms as large as the number of entries.

    Without a mechanism, that of a user who adds noise of this law.
    """
    l1, l2 = _plain_norms(plan)
    law = law if noise is None else noise.law
    if isinstance(noise, BinaryTree):
        nodes = float(plan.releases.bit_length())
        sums = nodes if law == "laplace" else math.sqrt(nodes)
    else:
        sums = 1.0 if noise is None else noise.sensitivity
    return l1 * sums / plan.epsilon if law == "laplace" else l2 * sums / gaussian_mu(plan.epsilon, plan.delta)


def _plain_norms(plan: Deployment) -> tuple[float, float]:
    """Return the L1 and L2 sensitivity in a plain account.

    Rewards are as they are, and rows of features are nowhere zero.
    """
    H = plan.horizon
    if plan.features is None:
        return 4.0 * H, math.sqrt(4.0 * H)
    l1 = 0.0
    for stages, d, nonnegative in (
        (H - 1, plan.features.d, plan.features.nonnegative),  # no value follows the last stage
        (H, plan.features.reward_d, plan.features.rewards_nonnegative),
    ):
        matrix = math.sqrt(2.0) * (1.0 + (d - 1.0) / math.sqrt(2.0))
        l1 += stages * (matrix + math.sqrt(d) * (math.sqrt(2.0) if nonnegative else 1.0))
    return l1, math.sqrt(4.0 * H - 2.0)


def _shuffled_bits(plan: Deployment, *, paper: bool = False) -> Row:
    """Return the row of shuffled bits.

    Counts are sent as bits, and moments as levels of many bits.
    """
    statistic = _statistic(plan, paper=paper).coded(Alphabet.BITS if plan.features is None else Alphabet.LEVELS)
    known, budget = statistic.sensitivity(), (plan.epsilon, plan.delta)
    protocol = (
        VectorSums(known.l2, known.linf, *budget)
        if known.linf > 1
        else BinarySums(math.ceil(known.l1 / 2.0), *budget, paper=paper, horizon=plan.horizon)
    )
    variance = max(1, plan.users // plan.batch) * protocol.noise_bits(plan.batch).variance(plan.batch)
    errors = statistic.errors(lambda grid: BoundedError(variance * grid**2, grid), plan.users)
    name = "SDP-PE's constants" if paper else "shuffled bits"
    spent = protocol.true_epsilon, plan.delta
    return _row(plan, "SDP", f"{name}, batches of {plan.batch}", spent, errors, _memory(statistic))


def _shuffled_reports(plan: Deployment) -> Row:
    """Return the row of shuffled reports.

    They use the largest local epsilon that shuffling amplifies to the requested epsilon.
    """
    exact = TabularCounts(*plan.sizes)

    def noise(known: bool) -> tuple[dict[str, ErrorDistribution], Randomizer]:
        low, high = plan.epsilon, 20.0
        for _ in range(16):
            local = (low + high) / 2.0
            blanket = randomized(exact, local, 0.0, "one-step").blanket if known else None
            kept = amplified_epsilon(local, plan.batch, plan.delta, blanket) <= plan.epsilon
            low, high = (local, high) if kept else (low, local)
        reports = randomized(exact, low, 0.0, "one-step")
        return _local_errors(reports, plan), reports

    errors, reports = noise(known=True)
    won = noise(known=False)[0]["m"].std / errors["m"].std
    name, spent = f"shuffled reports, batches of {plan.batch}", (plan.epsilon, plan.delta)
    return _row(plan, "SDP", name, spent, errors, _memory(reports.statistic), won=won)


def _local_errors(randomizer: Randomizer, plan: Deployment) -> dict[str, ErrorDistribution]:
    """Return the errors of sums of all users' messages."""
    return randomizer.statistic.errors(randomizer.error(plan.users, no_noise), plan.users)


def _local(plan: Deployment, name: str, *, paper: bool = False) -> Row:
    chosen = randomized(_statistic(plan, paper=paper), plan.epsilon, plan.delta, name, printed=paper)
    mechanism = "DP-UCBVI's constants, laplace" if paper else name
    won = None
    if isinstance(chosen, Subset):
        e = math.exp(min(chosen.subsets.epsilon, 30.0))
        won = math.sqrt(4.0 * e / (e - 1.0) ** 2 / chosen.subsets.variance)  # optimized unary encoding
    elif isinstance(chosen, Additive) and not paper:
        law: Law = "laplace" if name == "laplace" else "gaussian"
        won = _plain_scale(plan, None, law) / chosen.scale
    memory = _memory(chosen.statistic, chosen.arrays)
    return _row(plan, "LDP", mechanism, chosen.spent, _local_errors(chosen, plan), memory, won=won)


def _memory(statistic: Statistic, of_noise: int = 0) -> int:
    """Return the bytes of memory that a boundary takes.

    The number is the same as the boundary's own.
    """
    return 8 * statistic.cells * (SUMS + of_noise)


def _row(
    plan: Deployment,
    model: str,
    mechanism: str,
    spent: tuple[float, float],
    errors: dict[str, ErrorDistribution],
    memory: int,
    bounds: dict[str, ErrorDistribution] | None = None,
    won: float | None = None,
) -> Row:
    known = plan.features
    if known is None:
        visits, transitions, rewards = errors["n"], errors["m"], errors["r"]
        entries = plan.horizon * plan.states * plan.actions * (plan.states + 2)
    else:
        visits, transitions, rewards = errors["gram_p"], errors["vector_p"], errors["vector_r"]
        entries = plan.horizon * sum(d + d * (d + 1) // 2 for d in (known.d, known.reward_d))
    share = plan.beta / (entries * plan.releases)
    return Row(
        model=model,
        mechanism=mechanism,
        epsilon=spent[0],
        delta=spent[1],
        visits_std=visits.std,
        transitions_std=transitions.std,
        rewards_std=rewards.std,
        bound=max(law.bound(share) for law in (bounds or errors).values()),
        memory=memory,
        won=won,
    )

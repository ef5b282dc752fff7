"""The noise that a guarantee costs under every mechanism, to compare them before a deployment."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.planning.features import LinearFeatures
from private_rl_gym.privacy.amplification import amplified_epsilon
from private_rl_gym.privacy.calibration import allowed, calibrate
from private_rl_gym.privacy.central import exact as no_noise
from private_rl_gym.privacy.central import law_of
from private_rl_gym.privacy.conversion import check_budget, gaussian_mu
from private_rl_gym.privacy.counting import COUNTING, BinaryTree, ContinualNoise
from private_rl_gym.privacy.counting.base import Law
from private_rl_gym.privacy.errors import BoundedError, ErrorLaw
from private_rl_gym.privacy.moments import LinearMoments
from private_rl_gym.privacy.randomizers import AdditiveReports, SubsetReports, randomizer
from private_rl_gym.privacy.shuffled import ShuffledBits
from private_rl_gym.privacy.shuffled_moments import ShuffledMoments, VectorSums
from private_rl_gym.privacy.shuffling import BinarySums
from private_rl_gym.privacy.statistics import Statistic, TabularCounts
from private_rl_gym.wrappers.boundary import SUMS

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
        """Refuse values that are not possible."""
        for name in ("users", "horizon", "states", "actions", "batch_size"):
            positive_integer(getattr(self, name), name, name.replace("_", " "))
        check_budget(self.epsilon, self.delta)
        if not 0.0 < self.beta < 1.0:
            raise ValueError(f"beta is {self.beta}: a probability of failure lies in (0, 1).")
        known = self.features
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
    """Yield every mechanism that this budget allows, and the papers' own mechanisms with their true cost."""
    exact = _statistic(plan)
    yield _row(plan, "none", "exact sums", (float("inf"), 1.0), exact.errors(no_noise), _memory(exact))
    for delta in dict.fromkeys((plan.delta, 0.0)):
        rows = [_central(plan, counting, law, delta) for counting, law in allowed(delta)]
        yield from sorted(rows, key=lambda row: row.transitions_std)
    if plan.features is None:
        yield _central(plan, "binary-tree", "laplace", plan.delta, paper=True)
        yield from _shuffled(plan)
        yield from (_local(plan, name) for name in ("one-step", "unary"))
    elif plan.delta > 0.0:
        yield _central(plan, "binary-tree", "gaussian", plan.delta, paper=True)
        yield _shuffled_moments(plan, max(plan.batch_size, min(plan.users, 1000)))
    if plan.delta > 0.0:
        yield _local(plan, "gaussian")
    yield _local(plan, "laplace")
    if plan.features is None:
        yield _local(plan, "laplace", paper=True)


def _statistic(plan: Deployment, *, paper: bool = False) -> TabularCounts | LinearMoments:
    """A user's contribution: counts, or moments of the features that are known."""
    if plan.features is not None:
        return LinearMoments(plan.features, plan.horizon, paper=paper)
    return TabularCounts(*plan.sizes, separate_visits=paper)


def _central(plan: Deployment, counting: str, law: Law, delta: float, *, paper: bool = False) -> Row:
    statistic = _statistic(plan, paper=paper)
    noise = COUNTING[counting](plan.releases, 1, law)
    scale, *spent = calibrate(noise, statistic, plan.epsilon, delta, paper=paper)
    printed = "PUCB's and DP-UCBVI's constants" if plan.features is None else "LinOpt's constants"
    name = printed if paper else f"{counting}, {law}"
    bounds = statistic.errors(law_of(noise, scale, noise.worst_step))  # each release is held against its own
    errors = statistic.errors(law_of(noise, scale, plan.releases))
    won = None if paper else _plain_scale(plan, noise) / scale
    memory = _memory(statistic, 2 + noise.held)
    return _row(plan, "JDP", name, (spent[0], spent[1]), errors, memory, bounds, won)


def _plain_scale(plan: Deployment, noise: ContinualNoise | None, law: Law = "laplace") -> float:
    """Noise scale of a plain account: one node for each level of a tree, and norms as large as the number of entries.

    Without a mechanism, that of a user who adds noise of this law herself.
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
    """L1 and L2 sensitivity in a plain account: rewards as they are; rows of features that are nowhere zero."""
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


def _shuffled(plan: Deployment) -> Iterator[Row]:
    """Shuffled bits, with our constants and the paper's, and shuffled reports; none without a delta."""
    batch = max(plan.batch_size, min(plan.users, 1000))
    if plan.delta > 0.0:
        for paper in (False, True):
            yield _shuffled_bits(plan, batch, paper=paper)
        yield _shuffled_reports(plan, batch)


def _shuffled_bits(plan: Deployment, batch: int, *, paper: bool) -> Row:
    statistic = ShuffledBits(plan.sizes, separate_visits=paper, bits=True)
    protocol = BinarySums(statistic.moved, plan.epsilon, plan.delta, paper=paper, horizon=plan.horizon)
    batches = max(1, plan.users // batch)
    variance = batches * protocol.noise_bits(batch).variance(batch)
    errors = statistic.errors(lambda grid: BoundedError(variance * grid**2, grid), plan.users)
    name = "SDP-PE's constants" if paper else "shuffled bits"
    spent = protocol.true_epsilon, plan.delta
    return _row(plan, "SDP", f"{name}, batches of {batch}", spent, errors, _memory(statistic))


def _shuffled_moments(plan: Deployment, batch: int) -> Row:
    """Linear moments as shuffled bits."""
    assert plan.features is not None  # noqa: S101 - the caller has looked
    statistic = ShuffledMoments(plan.features, plan.horizon)
    protocol = VectorSums(statistic.reach, statistic.most, plan.epsilon, plan.delta)
    variance = max(1, plan.users // batch) * protocol.noise_bits(batch).variance(batch)
    errors = statistic.errors(lambda grid: BoundedError(variance * grid**2, grid), plan.users)
    spent = protocol.true_epsilon, plan.delta
    return _row(plan, "SDP", f"shuffled bits, batches of {batch}", spent, errors, _memory(statistic))


def _shuffled_reports(plan: Deployment, batch: int) -> Row:
    """Reports with the largest local epsilon that shuffling amplifies to the requested epsilon."""
    exact = TabularCounts(*plan.sizes)

    def noise(known: bool) -> tuple[dict[str, ErrorLaw], Statistic]:
        low, high = plan.epsilon, 20.0
        for _ in range(16):
            local = (low + high) / 2.0
            reports, _, _ = randomizer("one-step", exact, local, 0.0)
            made = amplified_epsilon(local, batch, plan.delta, reports.looks if known else None)
            low, high = (local, high) if made <= plan.epsilon else (low, local)
        reports, _, _ = randomizer("one-step", exact, low, 0.0)
        return reports.errors(no_noise, plan.users), reports

    errors, reports = noise(known=True)
    won = noise(known=False)[0]["m"].std / errors["m"].std
    name, spent = f"shuffled reports, batches of {batch}", (plan.epsilon, plan.delta)
    return _row(plan, "SDP", name, spent, errors, _memory(reports), won=won)


def _local(plan: Deployment, name: str, *, paper: bool = False) -> Row:
    exact = _statistic(plan, paper=paper)
    statistic, epsilon, delta = randomizer(name, exact, plan.epsilon, plan.delta, paper=paper)
    mechanism = "DP-UCBVI's constants, laplace" if paper else name
    won = None
    if isinstance(statistic, SubsetReports):
        e = math.exp(min(statistic.subsets.epsilon, 30.0))
        won = math.sqrt(4.0 * e / (e - 1.0) ** 2 / statistic.subsets.variance)  # optimized unary encoding
    elif isinstance(statistic, AdditiveReports) and not paper:
        won = _plain_scale(plan, None, statistic.law) / statistic.scale
    memory = _memory(statistic, 3 if isinstance(statistic, AdditiveReports) else 0)
    return _row(plan, "LDP", mechanism, (epsilon, delta), statistic.errors(no_noise, plan.users), memory, won=won)


def _memory(statistic: Statistic, of_noise: int = 0) -> int:
    """Bytes that a boundary takes, as it states them itself."""
    return 8 * statistic.cells * (SUMS + of_noise)


def _row(
    plan: Deployment,
    model: str,
    mechanism: str,
    spent: tuple[float, float],
    errors: dict[str, ErrorLaw],
    memory: int,
    bounds: dict[str, ErrorLaw] | None = None,
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

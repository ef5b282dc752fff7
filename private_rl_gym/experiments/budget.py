"""The noise that a guarantee costs under every mechanism, to compare them before a deployment."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.privacy.calibration import allowed, calibrate
from private_rl_gym.privacy.central import exact as no_noise
from private_rl_gym.privacy.central import law_of
from private_rl_gym.privacy.conversion import check_budget, gaussian_mu
from private_rl_gym.privacy.counting import COUNTING, BinaryTree, ContinualNoise
from private_rl_gym.privacy.counting.base import Law
from private_rl_gym.privacy.errors import BoundedError, ErrorLaw
from private_rl_gym.privacy.randomizers import AdditiveReports, SubsetReports, randomizer
from private_rl_gym.privacy.shuffled import ShuffledBits
from private_rl_gym.privacy.shuffling import BinarySums, amplified_epsilon
from private_rl_gym.privacy.statistics import Statistic, TabularCounts
from private_rl_gym.wrappers.boundary import SUMS

__all__ = ["Deployment", "Row", "budget"]


@dataclass(frozen=True, slots=True)
class Deployment:
    """The sizes and the privacy budget of a planned deployment."""

    users: int
    horizon: int
    states: int
    actions: int
    epsilon: float
    delta: float = 0.0
    batch_size: int = 1
    beta: float = 0.05

    def __post_init__(self) -> None:
        """Refuse values that are not possible."""
        for name in ("users", "horizon", "states", "actions", "batch_size"):
            positive_integer(getattr(self, name), name, name.replace("_", " "))
        check_budget(self.epsilon, self.delta)
        if not 0.0 < self.beta < 1.0:
            raise ValueError(f"beta is {self.beta}: a probability of failure lies in (0, 1).")

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
    """One mechanism, and its noise after all users."""

    model: str
    mechanism: str
    epsilon: float  # the true cost
    delta: float
    visits_std: float  # noise in n(h, s, a)
    transitions_std: float  # noise in m(h, s, a, s')
    rewards_std: float  # noise in r(h, s, a)
    bound: float  # on every entry of every release at once, with probability 1 - beta
    memory: int  # bytes that a boundary takes for it
    won: float | None = None  # noise in m of a plain account of the same mechanism, divided by this noise


def budget(plan: Deployment) -> Iterator[Row]:
    """Yield every mechanism that this budget allows, and the papers' own mechanisms with their true cost."""
    exact = TabularCounts(*plan.sizes)
    yield _row(plan, "none", "exact sums", (float("inf"), 1.0), exact.errors(no_noise), _memory(exact))
    for delta in dict.fromkeys((plan.delta, 0.0)):
        rows = [_central(plan, counting, law, delta) for counting, law in allowed(delta)]
        yield from sorted(rows, key=lambda row: row.transitions_std)
    yield _central(plan, "binary-tree", "laplace", plan.delta, paper=True)
    batch = max(plan.batch_size, min(plan.users, 1000))
    if plan.delta > 0.0:
        for paper in (False, True):
            yield _shuffled(plan, batch, paper=paper)
        yield _shuffled_reports(plan, batch)
    for name in ("one-step", "unary", "gaussian", "laplace"):
        if name != "gaussian" or plan.delta > 0.0:
            yield _local(plan, name, paper=False)
    yield _local(plan, "laplace", paper=True)


def _central(plan: Deployment, counting: str, law: Law, delta: float, *, paper: bool = False) -> Row:
    statistic = TabularCounts(*plan.sizes, separate_visits=paper)
    noise = COUNTING[counting](plan.releases, 1, law)
    scale, *spent = calibrate(noise, statistic, plan.epsilon, delta, paper=paper)
    name = "PUCB's and DP-UCBVI's constants" if paper else f"{counting}, {law}"
    bounds = statistic.errors(law_of(noise, scale, noise.worst_step))  # each release is held against its own
    errors = statistic.errors(law_of(noise, scale, plan.releases))
    won = None if paper else _plain_scale(plan, noise) / scale
    memory = _memory(statistic, 2 + noise.held)
    return _row(plan, "JDP", name, (spent[0], spent[1]), errors, memory, bounds, won)


def _plain_scale(plan: Deployment, noise: ContinualNoise | None) -> float:
    """Noise scale of a plain account: rewards as they are, one node for each level, and a user's change in L1."""
    tree = isinstance(noise, BinaryTree)
    sums = 1.0 if noise is None else noise.sensitivity
    if noise is None or noise.law == "laplace":
        return 4.0 * plan.horizon * (plan.releases.bit_length() if tree else sums) / plan.epsilon
    nodes = math.sqrt(plan.releases.bit_length()) if tree else sums
    return math.sqrt(4.0 * plan.horizon) * nodes / gaussian_mu(plan.epsilon, plan.delta)


def _shuffled(plan: Deployment, batch: int, *, paper: bool) -> Row:
    statistic = ShuffledBits(plan.sizes, separate_visits=paper, bits=True)
    protocol = BinarySums(statistic.moved, plan.epsilon, plan.delta, paper=paper, horizon=plan.horizon)
    batches = max(1, plan.users // batch)
    variance = batches * protocol.noise_bits(batch).variance(batch)
    errors = statistic.errors(lambda grid: BoundedError(variance * grid**2, grid), plan.users)
    name = "SDP-PE's constants" if paper else "shuffled bits"
    spent = protocol.true_epsilon, plan.delta
    return _row(plan, "SDP", f"{name}, batches of {batch}", spent, errors, _memory(statistic))


def _shuffled_reports(plan: Deployment, batch: int) -> Row:
    """Reports with the largest local epsilon that shuffling amplifies to the requested epsilon."""
    exact = TabularCounts(*plan.sizes)

    def noise(known: bool) -> tuple[dict[str, ErrorLaw], Statistic]:
        low, high = plan.epsilon, 20.0
        for _ in range(30):
            local = (low + high) / 2.0
            reports, _, _ = randomizer("one-step", exact, local, 0.0)
            made = amplified_epsilon(local, batch, plan.delta, reports.variation if known else 1.0)
            low, high = (local, high) if made <= plan.epsilon else (low, local)
        reports, _, _ = randomizer("one-step", exact, low, 0.0)
        return reports.errors(no_noise, plan.users), reports

    errors, reports = noise(known=True)
    won = noise(known=False)[0]["m"].std / errors["m"].std
    name, spent = f"shuffled reports, batches of {batch}", (plan.epsilon, plan.delta)
    return _row(plan, "SDP", name, spent, errors, _memory(reports), won=won)


def _local(plan: Deployment, name: str, *, paper: bool) -> Row:
    exact = TabularCounts(*plan.sizes, separate_visits=paper)
    statistic, epsilon, delta = randomizer(name, exact, plan.epsilon, plan.delta, paper=paper)
    mechanism = "DP-UCBVI's constants, laplace" if paper else name
    won = None
    if isinstance(statistic, SubsetReports):
        e = math.exp(min(statistic.subsets.epsilon, 30.0))
        won = math.sqrt(4.0 * e / (e - 1.0) ** 2 / statistic.subsets.variance)  # optimized unary encoding
    elif isinstance(statistic, AdditiveReports) and not paper:
        mu = gaussian_mu(plan.epsilon, plan.delta) if name == "gaussian" else 0.0
        plain = math.sqrt(4.0 * plan.horizon) / mu if mu else _plain_scale(plan, None)
        won = plain / statistic.scale
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
    entries = plan.horizon * plan.states * plan.actions * (plan.states + 2)
    share = plan.beta / (entries * plan.releases)
    return Row(
        model=model,
        mechanism=mechanism,
        epsilon=spent[0],
        delta=spent[1],
        visits_std=errors["n"].std,
        transitions_std=errors["m"].std,
        rewards_std=errors["r"].std,
        bound=max(law.bound(share) for law in (bounds or errors).values()),
        memory=memory,
        won=won,
    )

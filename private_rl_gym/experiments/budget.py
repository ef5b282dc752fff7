"""What a guarantee costs before anyone ships it: the noise of every mechanism, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.privacy.batches import ShuffledBits
from private_rl_gym.privacy.calibration import calibrate, noise_law
from private_rl_gym.privacy.conversion import check_budget
from private_rl_gym.privacy.counting import COUNTING
from private_rl_gym.privacy.errors import BoundedError, ErrorLaw, NoError
from private_rl_gym.privacy.randomizers import randomizer
from private_rl_gym.privacy.shuffling import BinarySums
from private_rl_gym.privacy.statistics import TabularCounts

__all__ = ["Deployment", "Row", "budget"]


@dataclass(frozen=True, slots=True)
class Deployment:
    """What is planned."""

    users: int
    horizon: int
    states: int
    actions: int
    epsilon: float
    delta: float = 0.0
    publish_every: int = 1
    beta: float = 0.05

    def __post_init__(self) -> None:
        """Refuse what cannot be planned."""
        for name in ("users", "horizon", "states", "actions", "publish_every"):
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
        """One for each batch."""
        return -(-self.users // self.publish_every)

    @property
    def visits(self) -> float:
        """Users a (stage, state, action) has on average, to hold noise against."""
        return self.users / (self.states * self.actions)


@dataclass(frozen=True, slots=True)
class Row:
    """One mechanism, after all users."""

    model: str
    mechanism: str
    epsilon: float  # what it really costs
    delta: float
    visits_std: float  # noise in n(h, s, a)
    transitions_std: float  # noise in m(h, s, a, s')
    rewards_std: float  # noise in r(h, s, a)
    bound: float  # on every entry of every release at once, with probability 1 - beta


def budget(plan: Deployment) -> Iterator[Row]:
    """Every mechanism that this budget allows, and the papers' own with what it really costs."""
    yield _row(plan, "none", "exact sums", (float("inf"), 1.0), TabularCounts(*plan.sizes).errors(lambda _: NoError()))
    if plan.delta > 0.0:
        for counting in ("matrix-factorization", "honaker-tree", "binary-tree", "batched"):
            yield _central(plan, counting, "gaussian", paper=False)
    for counting in ("k-ary-tree", "honaker-tree", "binary-tree", "batched"):
        yield _central(plan, counting, "laplace", paper=False)
    yield _central(plan, "binary-tree", "laplace", paper=True)
    if plan.delta > 0.0:
        batch = max(plan.publish_every, min(plan.users, 1000))
        for paper in (False, True):
            yield _shuffled(plan, batch, paper=paper)
    for name in ("one-step", "unary", "gaussian", "laplace"):
        if name != "gaussian" or plan.delta > 0.0:
            yield _local(plan, name, paper=False)
    yield _local(plan, "laplace", paper=True)


def _central(plan: Deployment, counting: str, law: str, *, paper: bool) -> Row:
    statistic = TabularCounts(*plan.sizes, separate_visits=paper)
    noise = COUNTING[counting](plan.releases, 1, law)  # type: ignore[arg-type]
    scale, epsilon = calibrate(noise, statistic, plan.epsilon, plan.delta, paper=paper)
    name = "PUCB's and DP-UCBVI's constants" if paper else f"{counting}, {law}"
    spent = (epsilon, plan.delta if law == "gaussian" else 0.0)
    bounds = statistic.errors(noise_law(noise, scale, noise.worst_step))  # each release is held against its own
    return _row(plan, "JDP", name, spent, statistic.errors(noise_law(noise, scale, plan.releases)), bounds)


def _shuffled(plan: Deployment, batch: int, *, paper: bool) -> Row:
    statistic = ShuffledBits(plan.sizes, separate_visits=paper, bits=True)
    protocol = BinarySums(statistic.moved, plan.epsilon, plan.delta, paper=paper, horizon=plan.horizon)
    batches = max(1, plan.users // batch)
    variance = batches * protocol.noise_bits(batch).variance(batch)
    errors = statistic.errors(lambda grid: BoundedError(variance * grid**2, grid), plan.users)
    name = "SDP-PE's constants" if paper else "shuffled bits"
    return _row(plan, "SDP", f"{name}, batches of {batch}", (protocol.true_epsilon, plan.delta), errors)


def _local(plan: Deployment, name: str, *, paper: bool) -> Row:
    exact = TabularCounts(*plan.sizes, separate_visits=paper)
    statistic, epsilon, delta = randomizer(name, exact, plan.epsilon, plan.delta, paper=paper)
    said = "DP-UCBVI's constants, laplace" if paper else name
    return _row(plan, "LDP", said, (epsilon, delta), statistic.errors(lambda _: NoError(), plan.users))


def _row(
    plan: Deployment,
    model: str,
    mechanism: str,
    spent: tuple[float, float],
    errors: dict[str, ErrorLaw],
    bounds: dict[str, ErrorLaw] | None = None,
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
    )

"""Advice before a deployment: the boundary, the agent and the batches that fit, what they cost, and whether they learn.

* ``Candidate`` - a boundary and an agent with their options
* ``Advice`` - the best candidate of a trust model, and what it did in simulation
* ``Adviser`` - simulates candidates while there is time
"""

from __future__ import annotations

import functools
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import gymnasium as gym
import numpy as np

from private_rl_gym.agents.base import Agent
from private_rl_gym.agents.frugal_ucbvi import FIRST_BATCH
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.experiments.names import AGENTS, BOUNDARIES, GridError
from private_rl_gym.experiments.problems import Problem, settings
from private_rl_gym.experiments.regret import stretches
from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.privacy.asks import Wanted
from private_rl_gym.privacy.conversion import check_budget, gaussian_mu
from private_rl_gym.privacy.release import Published, Release
from private_rl_gym.privacy.reports import ReportRelease
from private_rl_gym.privacy.shuffling import BinarySums, NoiseBits
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.sdp_shuffler import SDPShuffler

__all__ = ["EPSILONS", "TRUST", "Advice", "Adviser", "Candidate"]

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""The epsilons among which the smallest is looked for that learns well enough."""

TRUST = tuple(name for name, board in BOUNDARIES.items() if board.takes("epsilon"))
"""The boundaries that promise something."""

MANY, LARGE = 60.0, 100_000
"""Noise bits of a batch that are as good as Gaussian noise, for a simulation; users in a large batch."""

MOST_USERS = 1_000_000
"""Users in a simulation; more are not simulated."""

QUICK, TOO_LARGE = 50_000, 5_000_000
"""Products in one plan, H S S A: up to the first all candidates are simulated, above the second none is."""

LEARNS, HOPELESS = 0.25, 0.9
"""Shares of the regret of never learning: up to the first a learner learns, from the second on it does not."""

CLOSE = 1.5
"""Candidates up to so many times the least regret in their first run get the other runs too."""

LATE, LOST = 0.1, 0.75
"""Shares of the same, lost by the last policy alone: up to the first it was learned late, above the second never."""


DOUBTLESS = 30.0
"""Users whom noise asks for, in users who come. Above it there is no hope, whatever a simulation would have said."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A boundary and an agent, by name, with their options."""

    boundary: str
    agent: str
    about: str = ""
    agent_options: Mapping[str, Any] = field(default_factory=dict)
    boundary_options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The agent, and what it is told."""
        return f"{self.agent}{self.about and ', '}{self.about}"

    @property
    def typed(self) -> tuple[str, ...]:
        """The options of ``private-rl-gym train`` that name it, without its budget."""
        rest = dict(self.boundary_options)
        size = rest.pop("batch_size", None)
        words = ["--boundary", self.boundary, "--agent", self.agent]
        words += [] if size is None else ["--batch-size", str(size)]
        return (*words, *settings("agent", self.agent_options), *settings("boundary", rest))


def candidates(trust: str, users: int, sizes: tuple[int, int, int], *, stationary: bool) -> Iterator[Candidate]:
    """The candidates of a trust model, the best bets first; of large problems those only that are quick enough."""
    work = _work(sizes)
    if trust not in TRUST:
        options = {"batch_size": min(100, users), "growth": 0.25}
        if stationary:
            yield Candidate(trust, "UCBVI", "counts pooled", {}, options | {"stationary": True})
        yield Candidate(trust, "UCBVI", "told nothing", {}, options)
        if work > 10 * QUICK:  # its many plans would take the time of all
            return
    if stationary:
        yield Candidate(trust, "FrugalUCBVI", "told stationary")
    if work <= QUICK or not stationary:
        yield Candidate(trust, "FrugalUCBVI", "told nothing", {"stationary": False})
    if trust in TRUST and trust != "ldp":  # where users add noise themselves, counts of whole episodes drown in it
        options = {"batch_size": min(500 if trust == "sdp" else 50, users), "growth": 0.25}
        pooled = {"stationary": True} if stationary else {}
        yield Candidate(trust, "DPUCBVI", "counts pooled" if stationary else "counts by stage", {}, options | pooled)


def _stopwatch() -> Callable[[], float]:
    """Seconds from now on: of the processor, or by the clock where that is less."""
    clock, processor = time.monotonic(), time.process_time()
    return lambda: min(time.monotonic() - clock, time.process_time() - processor)


def _work(sizes: tuple[int, int, int]) -> int:
    """Products that one plan takes."""
    horizon, n_states, n_actions = sizes
    return horizon * n_states**2 * n_actions


# Simulation ----------------------------------------------------------------------------------------------------------


class _LargeBatches(BinarySums):
    """Noise bits of the variance that large batches have. The exact number takes seconds for each size of a batch.

    Where there are many in many counters, their number is that of Gaussian noise, which is less by some hundredths.
    """

    def __init__(self, moved: int, epsilon: float, delta: float, **options: Any) -> None:
        check_budget(epsilon, delta)
        bits = 8.0 * moved / gaussian_mu(epsilon, delta) ** 2 if delta else 0.0
        many = moved > 1 and bits > MANY
        super().__init__(1 if many else moved, epsilon, delta, **options)
        if many:
            self.moved, self.tau, self._variance = moved, bits, bits / 4.0
        else:
            self._variance = super().noise_bits(LARGE).variance(LARGE)

    def noise_bits(self, users: int) -> NoiseBits:
        """The noise for a batch."""
        each = math.ceil(max(self.tau, 4.0 * self._variance) / users)
        return NoiseBits(each, 0.5 * (1.0 - math.sqrt(max(0.0, 1.0 - 4.0 * self._variance / (users * each)))))


class _SimulatedShuffler(SDPShuffler):
    """A shuffler of simulated users, whom nobody has to protect."""

    binary_sums = _LargeBatches


@dataclass(frozen=True, slots=True)
class _Outcome:
    """One simulation: regret and last loss as shares of never learning, batches, noise and visits of a cell, memory."""

    share: float
    last: float
    batches: tuple[int, ...]
    noise: float
    visits: float
    memory: int


@dataclass(frozen=True, slots=True)
class Advice:
    """The best candidate of a trust model, and what it did in simulation.

    Attributes:
        candidate: The candidate.
        epsilon, delta: Its budget; epsilon is infinite where nothing is promised.
        share: Mean regret of all users, as a share of that of never learning.
        worst: The largest share of a run.
        last: Mean loss of the policy that was learned last, as a share of the loss without learning.
        regret: Mean regret of all users, in rewards as they are.
        noise: Standard deviation of the noise in a count of visits, after all users.
        visits: Mean of such a count.
        batches: Number of users in each batch, in the first run.
        memory: Bytes that the boundary takes.
        runs: Number of runs.
        short: Whether the wish was missed at every epsilon that was tried.
        alone: Whether there was no time for other candidates, one of which may learn where this one does not.
    """

    candidate: Candidate
    epsilon: float
    delta: float
    share: float
    worst: float
    last: float
    regret: float
    noise: float
    visits: float
    batches: tuple[int, ...] = field(repr=False)
    memory: int
    runs: int
    short: bool = False
    alone: bool = False

    @property
    def verdict(self) -> str:
        """Whether it learns, in a word or two."""
        if self.short or self.share >= HOPELESS or self.last > LOST:
            return "not known" if self.alone else "hopeless"
        if self.share <= LEARNS:
            return "learns"
        return "learns late" if self.last <= LATE else "in part"


class Adviser:
    """Simulates candidates on a problem, and picks the best of each trust model.

    Every candidate gets one run, and those that are near the best of them the others; all meet the same users.

    Args:
        problem: The problem.
        users: Number of users. If there are more than a million, a million are simulated.
        delta: The delta of promises that have one; by default the usual one of each boundary.
        told_nothing: Whether to leave out candidates that are told that all stages are alike.
        runs: Number of runs of the best candidates.
        seconds: Time for everything: of the processor, or by the clock where that is less, as with many threads. A busy
            machine takes longer and finds the same. What would take longer is left out: ``notes`` says so, and
            ``verdicts`` has what noise alone says.

    Example:
        >>> from private_rl_gym.experiments.advice import Adviser
        >>> from private_rl_gym.experiments.problems import problem_of
        >>> adviser = Adviser(problem_of("RiverSwim", {}), users=500, runs=1)
        >>> adviser.at("jdp", 0.25).verdict
        'hopeless'
    """

    def __init__(
        self,
        problem: Problem,
        users: int,
        *,
        delta: float | None = None,
        told_nothing: bool = False,
        runs: int = 2,
        seconds: float = math.inf,
    ) -> None:
        self.users = positive_integer(users, "users", "users")
        self._stationary = problem.model.stationary and not told_nothing
        self.problem, self.delta, self.runs = problem, delta, runs
        self.simulated = min(self.users, MOST_USERS)
        self.never = problem.never
        self.notes: list[str] = []
        self._more_time = f" Try --seconds {max(300.0, 4.0 * seconds):g}."
        self._now = _stopwatch()
        self._end = self._now() + seconds
        self._until = self._end
        self.verdicts: dict[str, str] = {}
        if self.never <= 1e-9:
            raise GridError("Actions at random lose nothing here: there is nothing to learn.")
        if delta is not None:
            check_budget(1.0, delta)

    @property
    def lost(self) -> float:
        """The regret of all users without learning, in rewards as they are."""
        low, high = self.problem.rewards
        return self.never * self.users * (high - low)

    @property
    def too_large(self) -> bool:
        """Whether the problem is not simulated, however long there is."""
        return _work(self.problem.sizes) > TOO_LARGE

    def reference(self) -> Advice | None:
        """The best learner without privacy."""
        self._share_time(1 + len(TRUST))
        return self._best("open", math.inf, None)

    def at(self, trust: str, epsilon: float, *, parts: int = 1) -> Advice | None:
        """The best candidate at this epsilon; None if there was no time to find out, and then a note says more.

        Args:
            trust: Short name of the boundary.
            epsilon: The promise.
            parts: Number of questions that the time left is for, this one included.
        """
        self._share_time(parts)
        best = self._best(trust, epsilon, None)
        if best is None:
            self._judge_by_noise(trust, epsilon)
        return best

    def within(self, trust: str, epsilon: float, wish: float, *, quick: bool = False) -> Advice | None:
        """The first candidate whose share of regret is at most ``wish``, or the best of those that were tried.

        None if there was no time. ``quick``: by one run.
        """
        return self._best(trust, epsilon, wish, quick=quick)

    def smallest(self, trust: str, wish: float, *, parts: int = 1) -> Advice | None:
        """The smallest epsilon of ``EPSILONS`` whose share of regret is at most ``wish``, by bisection.

        If none is, the largest epsilon, and the answer says that it falls short.
        """
        self._share_time(parts)
        low, high = 0, len(EPSILONS) - 1
        best = self._best(trust, EPSILONS[high], wish, quick=True)
        if best is None:
            self._judge_by_noise(trust, EPSILONS[high])
            return None
        if best.share > wish:
            return replace(self._best(trust, EPSILONS[high], None) or best, short=True)
        while low < high:  # first runs find the place
            middle = (low + high) // 2
            found = self._best(trust, EPSILONS[middle], wish, quick=True)
            if found is None:
                break
            best, low, high = (found, low, middle) if found.share <= wish else (best, middle + 1, high)
        for epsilon in EPSILONS[high:]:  # and all runs confirm it
            best = self._best(trust, epsilon, wish) or best
            if best.share <= wish:
                break
        if low < high:
            self.notes.append(
                f"{trust.upper()}: time ran out; an epsilon below {best.epsilon:g} may be enough.{self._more_time}"
            )
        return replace(best, short=best.share > wish)

    def _share_time(self, parts: int) -> None:
        now = self._now()
        self._until = now + max(0.0, self._end - now) / max(1, parts)

    def standing_out(self, trust: str, epsilon: float) -> int:
        """The number of users from whom each state and action stands out of the noise once."""
        _, S, A = self.problem.sizes
        noise = 0.0
        if trust in TRUST:
            options = {"epsilon": epsilon, "delta": self._delta(trust), "users": self.users}
            board: Boundary = BOUNDARIES[trust].kind(TabularEnv(self.problem.model), **options)
            board.settle("reports", apart=True)
            noise = board.expected_noise(self.users, Wanted(np.ones((S, A), dtype=bool)))
        return round(FIRST_BATCH * S * A * max(2.0, noise))

    def _judge_by_noise(self, trust: str, epsilon: float) -> None:
        """A verdict without simulation: whether single reports of all cells could stand out of the noise."""
        wanted = self.standing_out(trust, epsilon)
        self.verdicts[trust] = "hopeless" if wanted > DOUBTLESS * self.users else "not known"
        large = self.too_large
        reason = "too large to simulate" if large else "time ran out in simulation"
        few = "more than there are" if wanted > self.users else "a part of them"
        self.notes.append(
            f"{trust.upper()}: {reason}. For each state and action to stand out of the noise of epsilon = {epsilon:g} "
            f"once, FrugalUCBVI needs about {wanted:,} users, {few}.{'' if large else self._more_time}"
        )

    def _delta(self, trust: str) -> float:
        board = BOUNDARIES[trust]
        if trust not in TRUST or not board.kind.usual_delta:  # type: ignore[attr-defined]
            return 0.0
        return float(board.kind.usual_delta) if self.delta is None else self.delta  # type: ignore[attr-defined]

    def _best(self, trust: str, epsilon: float, wish: float | None, *, quick: bool = False) -> Advice | None:
        """The candidate with the least regret; with a wish, the first that keeps to it. ``quick``: by one run."""
        tried: list[tuple[Candidate, list[_Outcome]]] = []
        left_out: list[str] = []
        order = list(candidates(trust, self.simulated, self.problem.sizes, stationary=self._stationary))
        if wish is None and trust in TRUST and _work(self.problem.sizes) > QUICK:
            order.reverse()  # the quick one gives an answer, and the better bet a better one if there is time
        for candidate in order:
            first = self._simulate(candidate, epsilon, 0)
            if first is None:
                if wish is not None:
                    return None  # a later candidate would not tell of this one
                left_out.append(candidate.label)
                continue
            outcomes = [first]
            if wish is not None and first.share <= wish:
                outcomes += [] if quick else self._more(candidate, epsilon)
                if _mean_share(outcomes) <= wish:
                    return self._advice(candidate, epsilon, outcomes)
            tried.append((candidate, outcomes))
            if wish is not None and first.share > 2.0 * wish:
                break  # others will not be so much better
        if not tried:
            return None
        if left_out:
            name = trust.upper() if trust in TRUST else "none"
            self.notes.append(
                f"{name}: time ran out before {' and '.join(left_out)} could be simulated.{self._more_time}"
            )
        candidate, outcomes = min(tried, key=lambda one: _mean_share(one[1]))
        if wish is None:
            candidate, outcomes = self._compared(tried, epsilon)
        return replace(self._advice(candidate, epsilon, outcomes), alone=bool(left_out))

    def _compared(
        self, tried: list[tuple[Candidate, list[_Outcome]]], epsilon: float
    ) -> tuple[Candidate, list[_Outcome]]:
        """The best of candidates that have one run each: those near the best get the other runs, as far as time goes.

        All are compared by the runs that all of them have, because one run is noisy.
        """
        tried = sorted(tried, key=lambda one: _mean_share(one[1]))
        limit = CLOSE * _mean_share(tried[0][1])
        close = [(candidate, outcomes) for candidate, outcomes in tried if _mean_share(outcomes) <= limit]
        for run in range(1, self.runs):
            for candidate, outcomes in close:
                found = self._simulate(candidate, epsilon, run) if len(outcomes) == run else None
                outcomes += [] if found is None else [found]
        common = min(len(outcomes) for _, outcomes in close)
        return min(close, key=lambda one: _mean_share(one[1][:common]))

    def _more(self, candidate: Candidate, epsilon: float) -> list[_Outcome]:
        """The other runs of a candidate, as far as there is time."""
        found = (self._simulate(candidate, epsilon, run) for run in range(1, self.runs))
        return [outcome for outcome in found if outcome is not None]

    def _simulate(self, candidate: Candidate, epsilon: float, run: int) -> _Outcome | None:
        """One run of a candidate; None if it does not end in time, or takes more memory than there is."""
        if self._now() >= self._until or self.too_large:
            return None
        streams = np.random.SeedSequence(run).generate_state(3).tolist()
        env = TabularEnv(self.problem.model)
        env.reset(seed=streams[0])
        agent: Agent = AGENTS[candidate.agent].kind("TabularPolicy", seed=streams[2], **candidate.agent_options)
        board = self._board(env, candidate, epsilon, streams[1], agent.statistic)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            agent.set_env(board)
        sizes, reported, regret = [], 0, 0.0
        try:
            version = board.release.version
            for stretch in stretches(agent, self.simulated):
                regret += stretch.gap * (stretch.stop - stretch.start)
                if board.release.version != version:
                    version = board.release.version
                    sizes.append(board.release.users - reported)
                    reported = board.release.users
                if self._now() >= self._until and stretch.stop < self.simulated:
                    return None
        except MemoryError:
            return None
        last = self.problem.model.optimal_value() - self.problem.model.value_of(agent.best_policy())
        return _Outcome(
            share=regret / (self.simulated * self.never),
            last=last / self.never,
            batches=tuple(sizes),
            memory=board.memory,
            **_signal(board.release),
        )

    def _board(
        self, env: gym.Env[Any, Any], candidate: Candidate, epsilon: float, seed: int, statistic: Any
    ) -> Boundary:
        kind: Callable[..., Boundary] = BOUNDARIES[candidate.boundary].kind
        if kind is SDPShuffler:
            kind = functools.partial(_SimulatedShuffler, statistic=statistic)  # the usual one takes seconds
        options: dict[str, Any] = {**candidate.boundary_options, "users": self.simulated, "seed": seed}
        if candidate.boundary in TRUST:
            options |= {"epsilon": epsilon, "delta": self._delta(candidate.boundary)}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                board: Boundary = kind(env, **options)
        except ValueError as error:
            raise GridError(f"{candidate.boundary}: {error}") from None
        return board

    def _advice(self, candidate: Candidate, epsilon: float, outcomes: list[_Outcome]) -> Advice:
        share = _mean_share(outcomes)
        return Advice(
            candidate,
            epsilon,
            self._delta(candidate.boundary),
            share=share,
            worst=max(outcome.share for outcome in outcomes),
            last=statistics.fmean(outcome.last for outcome in outcomes),
            regret=share * self.lost,
            noise=outcomes[0].noise,
            visits=outcomes[0].visits,
            batches=outcomes[0].batches,
            memory=outcomes[0].memory,
            runs=len(outcomes),
        )


def _mean_share(outcomes: list[_Outcome]) -> float:
    return statistics.fmean(outcome.share for outcome in outcomes)


def _signal(release: Published) -> dict[str, float]:
    """Noise in a count of visits, beside its mean: for each (s, a), or for each (h, s, a) where stages are told."""
    if isinstance(release, Release):
        return {"noise": release.noise_std["n"], "visits": float(release.n.mean())}
    assert isinstance(release, ReportRelease)  # noqa: S101 - candidates publish one or the other
    rows = release.reports.sum(axis=(-2, -1))  # over next states and bits of reward
    entries = release.reports[..., 0, 0, :, :].size // max(1, rows[..., 0, 0].size)
    return {"noise": release.noise_std["reports"] * math.sqrt(entries), "visits": max(0.0, float(rows.mean()))}

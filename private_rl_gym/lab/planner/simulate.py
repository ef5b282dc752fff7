"""Simulated deployments: an agent learns from users, or plans from their table.

* ``Clock`` - the time that is left for simulations
* ``Question`` - a boundary with its budget, for a number of users
* ``learn`` - lets the agent of a candidate learn; ``Outcome`` - what it did
* ``plan_offline`` - plans from what a billboard publishes of a table
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from private_rl_gym.agents.base import Agent
from private_rl_gym.agents.tabular.dp_ucbvi import DPUCBVI
from private_rl_gym.envs.model import TabularModel
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.lab.options import arguments_of
from private_rl_gym.lab.planner.candidates import TRUST, Candidate
from private_rl_gym.lab.planner.problems import Problem
from private_rl_gym.lab.registry import AGENTS, BOUNDARIES, GridError
from private_rl_gym.lab.regret import ExactJudge, stretches
from private_rl_gym.planning.policy import Policy
from private_rl_gym.privacy.accounting.conversion import check_budget, gaussian_mu
from private_rl_gym.privacy.protocols import BitsOptions, ShuffledBits
from private_rl_gym.privacy.protocols.bits import BinarySums, NoiseBits
from private_rl_gym.privacy.randomizers import UserSide
from private_rl_gym.privacy.release import Published, Release, ReportRelease
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.jdp_billboard import JDPBillboard
from private_rl_gym.wrappers.open_billboard import OpenBillboard
from private_rl_gym.wrappers.sdp_shuffler import SDPShuffler

__all__ = ["MOST_USERS", "Clock", "Outcome", "Question", "QuickShuffler", "learn", "plan_offline"]

MOST_USERS = 1_000_000
"""Users in a simulation; more are not simulated."""

MANY, LARGE = 60.0, 100_000
"""Noise bits of a batch that are as good as Gaussian noise, for a simulation; users in a large batch."""


class Clock:
    """The time that is left for simulations.

    It is time of the processor, or by the clock where that is less, as with many threads.

    A busy machine takes longer and finds the same.
    """

    def __init__(self, seconds: float = math.inf) -> None:
        self.seconds = self._until = seconds
        self._clock, self._processor = time.monotonic(), time.process_time()

    def _now(self) -> float:
        return min(time.monotonic() - self._clock, time.process_time() - self._processor)

    @property
    def over(self) -> bool:
        """Whether the time of the current question is over."""
        return self._now() >= self._until

    def share(self, parts: int) -> None:
        """Divide the time that is left evenly among questions, and start the first."""
        now = self._now()
        self._until = now + max(0.0, self.seconds - now) / max(1, parts)


@dataclass(frozen=True, slots=True)
class Question:
    """A boundary with its budget, for a number of users.

    Attributes:
        trust: Short name of the boundary.
        epsilon, delta: The budget; epsilon is infinite where nothing is guaranteed.
        users: Number of users.
    """

    trust: str
    epsilon: float
    delta: float
    users: int

    @property
    def name(self) -> str:
        """The trust model in sentences."""
        return self.trust.upper() if self.trust in TRUST else "none"

    @property
    def simulated(self) -> int:
        """The number of users in a simulation."""
        return min(self.users, MOST_USERS)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One simulation.

    Attributes:
        share: Regret of all users, as a share of that of never learning.
        last: Regret of the policy that was learned last, as such a share.
        batches: Number of users in each batch.
        noise: Standard deviation of the noise in a count of visits, after all users.
        visits: Mean of such a count.
        memory: Bytes that the boundary takes.
    """

    share: float
    last: float
    batches: tuple[int, ...]
    noise: float
    visits: float
    memory: int


def learn(problem: Problem, question: Question, candidate: Candidate, run: int, clock: Clock) -> Outcome | None:
    """Return one run of a candidate, or None.

    It is None if the run does not end in time, or needs more memory than there is.
    """
    if clock.over:
        return None
    users, judge, never = question.simulated, ExactJudge(problem.model), problem.never
    streams = np.random.SeedSequence(run).generate_state(3).tolist()
    agent: Agent = AGENTS[candidate.agent].kind("TabularPolicy", seed=streams[2], **candidate.agent_options)
    board = _board(problem, question, candidate, streams, agent.statistic)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        agent.set_env(board)
    sizes, counted, regret = [], 0, 0.0
    try:
        version = board.release.version
        for stretch in stretches(agent, users):
            regret += judge.gap(stretch.policy) * stretch.users
            if board.release.version != version:
                version = board.release.version
                sizes.append(board.release.users - counted)
                counted = board.release.users
            if clock.over and stretch.stop < users:
                return None
    except MemoryError:
        return None
    share, last = regret / (users * never), judge.gap(agent.best_policy()) / never
    return Outcome(share, last, tuple(sizes), *_signal(board.release), board.memory)


def _board(problem: Problem, question: Question, candidate: Candidate, streams: list[int], statistic: Any) -> Boundary:
    kind: Any = BOUNDARIES[candidate.boundary].kind
    env = TabularEnv(problem.model)
    env.reset(seed=streams[0])
    options: dict[str, Any] = {**candidate.boundary_options, "users": question.simulated, "seed": streams[1]}
    if candidate.boundary in TRUST:
        options |= {"epsilon": question.epsilon, "delta": question.delta}
    if kind is SDPShuffler:  # the noise of the usual one, for any statistic, takes seconds
        kind = QuickShuffler
        options["statistic"] = statistic
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            board: Boundary = kind(env, **arguments_of(kind, options))
            return board
    except ValueError as error:
        raise GridError(f"{candidate.boundary}: {error}") from None


def _signal(release: Published) -> tuple[float, float]:
    """Return the noise in a count of visits, and the mean count.

    Counts are for each (s, a), or for each (h, s, a) where stages are known.
    """
    if isinstance(release, Release):
        return release.noise_std["n"], float(release.n.mean())
    assert isinstance(release, ReportRelease)  # noqa: S101 - candidates publish one or the other
    rows = release.reports.sum(axis=(-2, -1))  # over next states and bits of reward
    entries = release.reports[..., 0, 0, :, :].size // max(1, rows[..., 0, 0].size)
    return release.noise_std["reports"] * math.sqrt(entries), max(0.0, float(rows.mean()))


def plan_offline(model: TabularModel, question: Question, number: int, *, stationary: bool) -> tuple[float, float]:
    """Return the gain of a plan from a simulated table, and the noise.

    The noise is that in a count of visits.

    The users take the best action half of the time, and any action else. The gain is the value of the plan between
    that of these habits (0) and the best (1).

    Args:
        model: The model that the users follow.
        question: The budget of the billboard, and the number of users.
        number: The number of the run, for its seeds.
        stationary: Whether stages are pooled.
    """
    horizon = model.horizon
    blind = Policy.uniform(horizon=horizon, n_states=model.n_states, n_actions=model.n_actions)
    habits = model.policy(0.5 * blind.probabilities + 0.5 * model.optimal_policy().probabilities)
    usual, best = model.value_of(habits), model.optimal_value()
    streams = np.random.SeedSequence((2, number)).generate_state(3).tolist()
    env = TabularEnv(model)
    env.reset(seed=streams[0])
    users = question.simulated
    options: dict[str, Any] = {"users": users, "schedule": users}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        board: Boundary = (
            OpenBillboard(env, **options)
            if math.isinf(question.epsilon)
            else JDPBillboard(env, question.epsilon, question.delta, rng=streams[1], **options)
        )
        agent = DPUCBVI("TabularPolicy", board, seed=0)
        board.serve(habits, users, rng=np.random.default_rng(streams[2]))
        learned = agent.learn_offline(stationary=stationary)
    noise = board.release.noise_std["n"] * math.sqrt(horizon if stationary else 1)
    return (model.value_of(learned.policy) - usual) / (best - usual), noise


# Quick noise of a shuffler -------------------------------------------------------------------------------------------


class _QuickSums(BinarySums):
    """Noise bits with the variance that they have in large batches.

    The exact number takes seconds for each size of a batch.

    Where there are many in many counters, their number is that of Gaussian noise, which is less by some hundredths.
    """

    def __init__(self, moved: int, epsilon: float, delta: float) -> None:
        check_budget(epsilon, delta)
        bits = 8.0 * moved / gaussian_mu(epsilon, delta) ** 2 if delta else 0.0
        many = moved > 1 and bits > MANY
        super().__init__(1 if many else moved, epsilon, delta)
        if many:
            self.tau, self._variance = bits, bits / 4.0
        else:
            self._variance = super().noise_bits(LARGE).variance(LARGE)

    def noise_bits(self, users: int) -> NoiseBits:
        """Return the noise bits for a batch."""
        each = math.ceil(max(self.tau, 4.0 * self._variance) / users)
        return NoiseBits(each, 0.5 * (1.0 - math.sqrt(max(0.0, 1.0 - 4.0 * self._variance / (users * each)))))


class _QuickBits(ShuffledBits):
    @classmethod
    def noise_of(cls, side: UserSide, options: BitsOptions, load: int) -> BinarySums:
        """Return the noise of users whose bits have this load."""
        return _QuickSums(math.ceil(side.sensitivity(load).l1 / 2.0), options.epsilon, options.delta)


class QuickShuffler(SDPShuffler):
    """A shuffler of simulated users, who need no protection."""

    bits = _QuickBits

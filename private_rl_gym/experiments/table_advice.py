"""Advice before a table is used: whether pessimistic planning would learn from so many people, at which epsilon.

* ``TableAdvice`` - the plans that were learned from stand-ins at one epsilon
* ``TableAdviser`` - draws stand-ins, lets people run their habits there, and plans from what is published
"""

from __future__ import annotations

import math
import statistics
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from private_rl_gym.agents.dp_ucbvi import DPUCBVI
from private_rl_gym.envs.garnet import Garnet
from private_rl_gym.envs.model import TabularModel
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.experiments.advice import HOPELESS, LEARNS, MOST_USERS
from private_rl_gym.experiments.foreign import MOST_ENTRIES
from private_rl_gym.experiments.names import GridError
from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.planning.policy import Policy
from private_rl_gym.privacy.conversion import check_budget
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.jdp_billboard import JDPBillboard
from private_rl_gym.wrappers.open_billboard import OpenBillboard

__all__ = ["EPSILONS", "TableAdvice", "TableAdviser"]

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""The epsilons of the table's rows."""

CONTRAST = 0.2
"""The range of mean rewards in a stand-in. What can be done for people differs less than a Garnet's actions."""


@dataclass(frozen=True, slots=True)
class TableAdvice:
    """The plans that were learned from stand-ins at one epsilon.

    Attributes:
        epsilon: The promise; infinite without privacy.
        gains: For each stand-in, the value of the learned policy between that of the habits (0) and the best (1).
        noise: Standard deviation of the noise in a count of visits that the plan is made from.
        visits: Mean of such a count.
    """

    epsilon: float
    gains: tuple[float, ...]
    noise: float
    visits: float

    @property
    def gain(self) -> float:
        """The mean of the gains."""
        return statistics.fmean(self.gains)

    @property
    def better(self) -> int:
        """The number of stand-ins where the policy is better than the habits."""
        return sum(gain > 0.0 for gain in self.gains)

    @property
    def verdict(self) -> str:
        """Whether it learns, in a word or two; what is lost is a share of what the habits lose."""
        lost = 1.0 - self.gain
        if lost >= HOPELESS or 2 * self.better <= len(self.gains):
            return "hopeless"
        return "learns" if lost <= LEARNS else "in part"


class TableAdviser:
    """Lets people of stand-ins run their habits, and plans from what a billboard publishes of them.

    A stand-in is a random Garnet, in which people begin anywhere, and mean rewards lie between 0.4 and 0.6. Habits take
    the best action half of the time, and any action else. Nobody leaves early; the state for those who left is there,
    and noise is put on it.

    Args:
        users: Number of people in the table. If there are more than a million, a million are simulated.
        sizes: Horizon, states, actions, as ``learn`` takes them.
        stationary: Whether all stages are alike, so that their counts are pooled.
        delta: The delta of the promise; by default the usual one of the billboard.
        runs: Number of stand-ins.
        seconds: Processor time for everything. Stand-ins that would take longer are left out.

    Example:
        >>> adviser = TableAdviser(8_000, (8, 5, 3), stationary=True, runs=2)
        >>> [advice.verdict for advice in adviser.rows((1.0, math.inf))]
        ['learns', 'learns']
    """

    def __init__(
        self,
        users: int,
        sizes: tuple[int, int, int],
        *,
        stationary: bool = False,
        delta: float | None = None,
        runs: int = 10,
        seconds: float = math.inf,
    ) -> None:
        self.users = positive_integer(users, "users", "users")
        horizon, n_states, n_actions = sizes
        self.horizon = positive_integer(horizon, "horizon", "steps of an episode")
        self.n_states = positive_integer(n_states, "states", "states")
        self.n_actions = positive_integer(n_actions, "actions", "actions")
        if n_actions < 2:
            raise GridError("--actions is 1: where nothing can be chosen there is nothing to learn.")
        if (n_states + 1) ** 2 * n_actions * (1 if stationary else horizon) > MOST_ENTRIES:
            raise GridError(
                f"{n_states:,} states, {n_actions:,} actions and {horizon:,} steps are too many to simulate. Make "
                "fewer of them, or look at the noise alone with private-rl-gym budget."
            )
        self.stationary, self.runs, self.seconds = stationary, runs, seconds
        self.delta = float(JDPBillboard.usual_delta) if delta is None else delta
        self.simulated = min(self.users, MOST_USERS)
        self.done = 0
        check_budget(1.0, self.delta)

    def rows(self, epsilons: tuple[float, ...]) -> list[TableAdvice]:
        """The advice at each epsilon. All see the same stand-ins, and the same people; one stand-in is always done."""
        end = time.process_time() + self.seconds
        gains: dict[float, list[float]] = {epsilon: [] for epsilon in epsilons}
        noise: dict[float, float] = {}
        for number in range(self.runs):
            if number and time.process_time() >= end:
                break
            for epsilon, gain, std in self._gains(number, epsilons):
                gains[epsilon].append(gain)
                noise[epsilon] = std
            self.done = number + 1
        visits = self.simulated * (self.horizon if self.stationary else 1) / (self.n_states * self.n_actions)
        return [TableAdvice(epsilon, tuple(gains[epsilon]), noise[epsilon], visits) for epsilon in epsilons]

    def _gains(self, number: int, epsilons: tuple[float, ...]) -> Iterator[tuple[float, float, float]]:
        """Epsilon, gain, and the noise of a count, in one stand-in."""
        model = self._stand_in(number)
        blind = Policy.uniform(horizon=self.horizon, n_states=model.n_states, n_actions=self.n_actions)
        habits = model.policy(0.5 * blind.probabilities + 0.5 * model.optimal_policy().probabilities)
        usual, best = model.value_of(habits), model.optimal_value()
        streams = np.random.SeedSequence((2, number)).generate_state(3).tolist()
        for epsilon in epsilons:
            env = TabularEnv(model)
            env.reset(seed=streams[0])
            options: dict[str, Any] = {"users": self.simulated, "batch_size": self.simulated}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                board: Boundary = (
                    OpenBillboard(env, **options)
                    if math.isinf(epsilon)
                    else JDPBillboard(env, epsilon, self.delta, seed=streams[1], **options)
                )
                agent = DPUCBVI("TabularPolicy", board, seed=0)
                board.serve(habits, self.simulated, rng=np.random.default_rng(streams[2]))
                learned = agent.learn_offline(stationary=self.stationary)
            gain = (model.value_of(learned.policy) - usual) / (best - usual)
            stages = self.horizon if self.stationary else 1
            yield epsilon, gain, board.release.noise_std["n"] * math.sqrt(stages)

    def _stand_in(self, number: int) -> TabularModel:
        """A Garnet with one more state, for those who left."""
        S, A = self.n_states, self.n_actions
        garnet: TabularModel = Garnet(  # type: ignore[assignment]
            S, A, self.horizon, branching=min(3, S), instance_seed=number, stationary=self.stationary
        ).model
        stages = len(garnet.transitions)
        P, r = np.zeros((stages, S + 1, A, S + 1)), np.zeros((stages, S + 1, A))
        P[:, :S, :, :S], P[:, S, :, S] = garnet.transitions, 1.0
        r[:, :S] = 0.5 + CONTRAST * (garnet.rewards - 0.5)
        return TabularModel(P, r, np.append(np.full(S, 1.0 / S), 0.0), self.horizon)

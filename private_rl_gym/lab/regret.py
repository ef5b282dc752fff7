"""Regret, which the experimenter knows and the learner does not.

* ``stretches`` - lets an agent learn, and yields consecutive users who ran one policy
* ``ExactJudge``, ``EpisodeJudge`` - judges: the value of a policy under the true model, or in episodes of other users
* ``learn_with_regret`` - the regret after each user
* ``RegretCallback``, ``PACCallback`` - the same inside ``learn``, logged as ``oracle/...``
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback

from private_rl_gym.agents.base import Agent
from private_rl_gym.envs.finite import FiniteModel
from private_rl_gym.planning.policy import Policy
from private_rl_gym.wrappers.sources import EnvironmentSource

__all__ = [
    "EPISODES",
    "EpisodeJudge",
    "ExactJudge",
    "Judge",
    "Measure",
    "PACCallback",
    "RegretCallback",
    "Stretch",
    "learn_with_regret",
    "stretches",
]

Measure = Literal["regret", "return"]
"""The measure of a run: regret where the true model is known, else the return of the policy that users got."""

EPISODES = 100
"""Episodes that estimate a value where the true model is not known. They are not those of users."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive users who ran the same policy.

    Attributes:
        start, stop: Numbers of the first of them, and of the first user after them.
        policy: The policy that they ran.
    """

    start: int
    stop: int
    policy: Policy

    @property
    def users(self) -> int:
        """Number of users."""
        return self.stop - self.start


def stretches(agent: Agent, users: int) -> Iterator[Stretch]:
    """Yield one stretch for each policy, while an agent learns from users.

    The agent has a boundary, and learns from ``users`` users.
    """
    count = 0
    while count < users:
        policy = agent.policy
        group = agent.meet(users - count)
        yield Stretch(count, count + group, policy)
        count += group


def learn_with_regret(agent: Agent, users: int, truth: FiniteModel | None = None) -> NDArray[np.float64]:  # [user]
    """Return the regret after each of ``users`` users from which an agent learns.

    Users come in groups that run one policy, not one by one. The numbers are those of ``RegretCallback``, but faster.

    Args:
        agent: An agent with a boundary.
        users: Number of users.
        truth: The true model, for an environment that does not know its own.
    """
    judge, gaps = ExactJudge.of(agent, truth), np.empty(users)
    for stretch in stretches(agent, users):
        gaps[stretch.start : stretch.stop] = judge.gap(stretch.policy)
    return np.cumsum(gaps)


# Judges --------------------------------------------------------------------------------------------------------------


class Judge(Protocol):
    """The value of policies."""

    measure: ClassVar[Measure]
    points: ClassVar[int]

    def value(self, policy: Policy) -> float:
        """Return the value of a policy."""


class ExactJudge:
    """Values under the true model, in rewards mapped to [0, 1]."""

    measure: ClassVar[Measure] = "regret"
    points: ClassVar[int] = 200
    """Number of points of a stored curve, on a logarithmic grid; the last point is the exact number of users."""

    def __init__(self, truth: FiniteModel) -> None:
        self.truth, self.best = truth, truth.optimal_value()

    @classmethod
    def of(cls, agent: Any, truth: FiniteModel | None = None) -> ExactJudge:
        """Return the judge of an agent.

        It uses this model, or the one that the agent's environment knows.
        """
        if truth is None and agent.board is not None:
            truth = getattr(agent.board.unwrapped, "model", None)
        if truth is None:
            raise ValueError(
                "The true model of the environment is not known: give truth=, for instance TabularModel.from_gym(env, "
                "horizon)."
            )
        return cls(truth)

    def value(self, policy: Policy) -> float:
        """Return the value of a policy.

        A model may have several states in which ended episodes wait.
        """
        more = self.truth.n_states - policy.n_states
        if more:
            table = np.concatenate([policy.table, *[policy.table[:, -1:]] * more], axis=1)
            policy = self.truth.policy(table)
        return self.truth.value_of(policy)

    def gap(self, policy: Policy) -> float:
        """Return the regret of a user who runs this policy."""
        return self.best - self.value(policy)


class EpisodeJudge:
    """Mean returns of episodes of other users, in rewards as they are.

    Args:
        env: An environment of its own.
        source: The users behind the boundary, for their sizes.
        seed: The seed of the episodes, and of actions drawn at random.
    """

    measure: ClassVar[Measure] = "return"
    points: ClassVar[int] = 20

    def __init__(self, env: gym.Env[Any, Any], source: EnvironmentSource, seed: int) -> None:
        self._env, self._source = env, source
        self._rng = np.random.default_rng(seed)
        env.reset(seed=seed % 2**31)

    def value(self, policy: Policy) -> float:
        """Return the mean return of a policy."""
        env, source, total = self._env, self._source, 0.0
        for _ in range(EPISODES):
            observation, _ = env.reset()
            for stage in range(source.horizon):
                uniform = None if policy.deterministic else float(self._rng.random())
                action = policy.action(stage, source.state_of(observation), uniform)
                observation, reward, terminated, truncated, _ = env.step(source.env_action(action))
                total += float(reward)
                if terminated or truncated:
                    break
        return total / EPISODES


# Callbacks -----------------------------------------------------------------------------------------------------------


class _Oracle(BaseCallback):
    """The regret of each user, which the learner does not see."""

    def __init__(self, truth: FiniteModel | None = None) -> None:
        super().__init__()
        self._truth = truth
        self._agent: object = None

    def _init_callback(self) -> None:
        if self._agent is not self.model and not self.model.num_timesteps:  # another agent begins to learn
            self._begin()
        self.judge = ExactJudge.of(self.model, self._truth)
        self._agent, self._policy, self._gap = self.model, None, 0.0

    def _on_step(self) -> bool:
        if self.locals["dones"][0]:
            policy = self.locals["policy"]
            if policy is not self._policy:  # values are computed once a policy
                self._policy, self._gap = policy, self.judge.gap(policy)
            self._count(self._gap)
        return True

    def _count(self, gap: float) -> None:
        raise NotImplementedError  # pragma: no cover - abstract

    def _begin(self) -> None:
        """Reset the counts."""
        raise NotImplementedError  # pragma: no cover - abstract


class RegretCallback(_Oracle):
    """Cumulative regret after every user, at full precision.

    Example:
        >>> from private_rl_gym.agents import UCBVI
        >>> from private_rl_gym.lab.regret import RegretCallback
        >>> regret = RegretCallback()
        >>> agent = UCBVI("TabularPolicy", "private_rl_gym:PrivateRL/RiverSwim-v0", seed=0).learn(2000, callback=regret)
        >>> len(regret.curve)
        100
        >>> bool(regret.curve[0] > 0)
        True
    """

    def __init__(self, truth: FiniteModel | None = None) -> None:
        super().__init__(truth)
        self._begin()

    def _begin(self) -> None:
        self._curve = array("d")

    @property
    def curve(self) -> NDArray[np.float64]:  # [user]
        """Regret after each user."""
        return np.array(self._curve)

    def _count(self, gap: float) -> None:
        self._curve.append((self._curve[-1] if self._curve else 0.0) + gap)
        self.logger.record("oracle/regret", self._curve[-1])


class PACCallback(_Oracle):
    """Number of users who ran a policy that is not ``alpha``-optimal."""

    def __init__(self, alpha: float, truth: FiniteModel | None = None) -> None:
        if not alpha > 0.0:
            raise ValueError(f"alpha is {alpha}: it is how far from optimal a policy may be, and must be above 0.")
        super().__init__(truth)
        self.alpha = alpha
        self._begin()

    def _begin(self) -> None:
        self.mistakes = 0

    def _count(self, gap: float) -> None:
        self.mistakes += gap > self.alpha
        self.logger.record("oracle/mistakes", self.mistakes)

"""Local differential privacy for any Gym learner: observations and rewards are randomized at every step."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.privacy.answers import check_values, one_of
from private_rl_gym.privacy.conversion import check_budget
from private_rl_gym.privacy.guarantee import Covers, Guarantee, Ledger, TrustModel
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.wrappers.population import Population, Recorder, behind_closed_doors, layers, quietly
from private_rl_gym.wrappers.sealed import Sealed
from private_rl_gym.wrappers.step_answers import Digits, Numbers, StepBudgets, StepUsers, tell_numbers

__all__ = ["LDPPerStep"]


class LDPPerStep(Sealed, gym.utils.RecordConstructorArgs):
    """Passes on randomized observations and rewards, at a cost of epsilon for the whole episode.

    Every state is reported truthfully with some probability, and otherwise replaced by one of the others at random.
    So is every entry of a MultiDiscrete or MultiBinary observation. Entries of a Box and rewards become numbers that
    are bounded and have the right mean. Episodes always last the whole horizon: one that ends early waits until then,
    in an extra state, or, where observations have entries, with its last observation and one more entry, a randomized
    bit that says so. Nothing of ``info`` is passed on.

    Privacy:
        epsilon-LDP for a user's episode, pure. Of Discrete observations, the start state, H next states and H rewards
        are 2H + 1 randomized answers, each of which costs epsilon / (2H + 1). Of d entries, there are
        d + H (d + 2) of them. ``shares`` and ``steps`` split the budget in another way, and its sum stays.
        Proof: docs/proofs/local-per-step.md.

    Example:
        >>> import gymnasium as gym, private_rl_gym
        >>> from private_rl_gym.wrappers import LDPPerStep
        >>> env = LDPPerStep(gym.make("PrivateRL/RiverSwim-v0", horizon=20), epsilon=8.0)
        >>> print(env.ledger)
        (8.0, 0)-LDP, replace one user, any number of users

    Args:
        env: An environment with Discrete actions, observations in Discrete, MultiDiscrete, MultiBinary or a Box, and a
            horizon; bare, or with wrappers that carry nothing from one user to the next.
        epsilon: For a user's whole episode.
        seed: For experiments that can be repeated. A seed voids the guarantee, and the ledger says so.
        secure: Draw noise from a cryptographic generator.
        horizon: Largest number of steps in an episode, if the environment does not define it.
        reward_range: The least and the largest reward, which are mapped to 0 and 1; they must contain 0, which an
            episode that ended early earns while it waits. By default rewards are in [0, 1] already.
        shares: What a step's budget is spent on, as ``{"observations": 0.7, "rewards": 0.3}``; with ``"ended"``, if
            observations have entries, which share theirs equally. By default every answer gets the same.
        steps: Shares of the start and of every step in epsilon, H + 1 numbers.
        low: Lower bounds of the entries of a Box, or one for all; by default those of the space, if they are finite.
            They are what is publicly known, and never taken from data.
        high: Upper bounds.
    """

    short = "per-step"
    randomizes_steps = True

    def __init__(
        self,
        env: gym.Env[Any, Any],
        epsilon: float,
        *,
        seed: int | None = None,
        secure: bool = False,
        horizon: int | None = None,
        reward_range: tuple[float, float] | None = None,
        shares: Mapping[str, float] | None = None,
        steps: Sequence[float] | None = None,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(
            self,
            epsilon=epsilon,
            seed=seed,
            secure=secure,
            horizon=horizon,
            reward_range=reward_range,
            shares=shares,
            steps=steps,
            low=low,
            high=high,
        )
        self._wrap(env)
        check_budget(epsilon, 0.0)
        for layer in layers(env):
            if hasattr(layer, "ledger"):
                raise ValueError(
                    f"LDPPerStep around {type(layer).__name__} makes no sense: rewards are withheld or noisy there "
                    "already. Put it around the bare environment."
                )
        self._entries = _entries_of(env, low, high)
        self.population = (
            Population(env, horizon, reward_range)
            if self._entries is None
            else StepUsers(env, horizon, reward_range, self._entries)
        )
        if self._entries is None:
            check_values(self.population.n_states)
        self._epsilon = float(epsilon)
        entries = 1 if self._entries is None else self._entries.entries
        self.budgets = StepBudgets.of(
            epsilon, self.population.horizon, entries, shares, steps, ended=self._entries is not None
        )
        """The budget of every answer."""
        self._source = NoiseSource(seed, secure=secure, role="steps")
        self._timed = self.population.model is not None and not isinstance(env.observation_space, spaces.Discrete)
        sizes = [self.population.horizon, self.population.n_states]
        self.observation_space = spaces.MultiDiscrete(sizes) if self._timed else spaces.Discrete(sizes[1])
        if self._entries is not None:
            self.observation_space = self._entries.space(self.budgets)
        self.action_space = spaces.Discrete(self.population.n_actions)
        self._recorder: Recorder | None = None
        self._stage = 0
        self._waiting = False

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee to every user."""
        return Guarantee(
            TrustModel.LDP,
            self._epsilon,
            0.0,
            None,
            "states and rewards are randomized at every step",
            covers=Covers.ANSWERS,
            seeded=self._source.seeded,
        )

    @property
    def ledger(self) -> Ledger:
        """The guarantee, as a ledger."""
        return Ledger((self.guarantee,))

    def in_short(self) -> list[str]:
        """The promise."""
        return [str(self.guarantee)]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Meet the next user, and return her start state, randomized. The seed is passed to the environment."""
        self._recorder = None
        self.population.check_options(options)
        return behind_closed_doors(partial(self._meet, seed, options))

    def _meet(self, seed: int | None, options: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
        recorder = Recorder(self.population)
        _, problem = quietly(lambda: recorder.begin(self.population.meet(seed, options)[0]))
        if problem is not None:
            raise problem
        self._recorder, self._stage, self._waiting = recorder, 0, False
        return self._tell(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one step of the user, and return the randomized outcome."""
        number = self._number(action)  # checked first, also after an early end, which must not show
        if self._recorder is None or self._stage >= self.population.horizon:
            raise gym.error.ResetNeeded("This user's episode is over: call reset() to meet the next one.")
        return behind_closed_doors(partial(self._go, number))

    def _number(self, action: Any) -> int:
        """The action as a plain number, converted once."""
        try:
            number = operator.index(action)
        except TypeError:
            number = -1
        if not 0 <= number < self.population.n_actions:
            raise gym.error.InvalidAction(f"The action {action!r} is not in {self.action_space}.")
        return number

    def _go(self, number: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        recorder, population = self._recorder, self.population
        assert recorder is not None  # noqa: S101 - step has checked it
        true_reward = population.rewards.zero
        if not self._waiting:

            def go() -> None:
                observation, reward, terminated, truncated, _ = self.env.step(population.env_action(number))
                recorder.step(number, observation, reward, ended=bool(terminated or truncated))

            _, problem = quietly(go)
            if problem is not None:
                self._recorder = None
                raise problem
            true_reward = float(recorder.trajectory.rewards[0, self._stage])
            self._waiting = not recorder.open
        self._stage += 1
        return self._tell(), self._tell_reward(true_reward), self._stage == population.horizon, False, {}

    def _tell(self) -> Any:
        """The observation of the user, randomized. The stage is no secret, nor that nobody's start is the end."""
        assert self._recorder is not None  # noqa: S101 - there is a user
        budget = float(self.budgets.observations[self._stage])
        states = self._recorder.trajectory.states[0, self._stage : self._stage + 1].astype(np.int64)
        if self._entries is not None:
            told = self._entries.tell(self.population.row, budget, self._source)  # type: ignore[attr-defined]
            if self._stage == 0:
                return self._entries.joined(told, 0)
            return self._entries.joined(told, self._tell_one(states, 2, float(self.budgets.ended[self._stage - 1])))
        state = self._tell_one(states, self.population.n_states, budget)
        if self._timed:
            return np.array([min(self._stage, self.population.horizon - 1), state], dtype=np.int64)
        return state

    def _tell_one(self, true: NDArray[np.int64], size: int, budget: float) -> int:
        """One of ``size`` values, by randomized response."""
        return int(one_of(true, np.array([size]), budget, self._source.uniform(2).reshape(2, 1))[0])

    def _tell_reward(self, reward: float) -> float:
        """The reward as a randomized number with the right mean."""
        told = tell_numbers(np.array([reward]), float(self.budgets.rewards[self._stage - 1]), self._source)
        return float(self.population.rewards.original(told[0])) + 0.0


def _entries_of(env: gym.Env[Any, Any], low: ArrayLike | None, high: ArrayLike | None) -> Digits | Numbers | None:
    """The entries of observations; None where they are states."""
    space = env.observation_space
    if isinstance(space, spaces.Box) and not isinstance(env.unwrapped, TabularEnv):
        return Numbers(space, low, high)
    if low is not None or high is not None:
        raise ValueError(f"The observation space is {space}: low= and high= are bounds of a Box. Leave them out.")
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary) and not isinstance(env.unwrapped, TabularEnv):
        return Digits(space)
    return None

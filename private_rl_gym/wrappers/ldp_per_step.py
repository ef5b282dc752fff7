"""Local differential privacy for any Gym learner: observations and rewards are randomized at every step."""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from private_rl_gym.privacy.conversion import check_budget
from private_rl_gym.privacy.guarantee import Guarantee, Ledger, TrustModel
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.wrappers.population import Population, Recorder, behind_closed_doors, layers, quietly
from private_rl_gym.wrappers.sealed import Sealed

__all__ = ["LDPPerStep"]


class LDPPerStep(Sealed, gym.utils.RecordConstructorArgs):
    """Passes on randomized observations and rewards, at a cost of epsilon for the whole episode.

    Every state is reported truthfully with some probability, and otherwise replaced by one of the others at random.
    Every reward is rounded to a bit at random, reported truthfully with some probability, and scaled to have the right
    mean. Episodes always last the whole horizon: one that ends early waits in an extra state until then. Nothing of
    ``info`` is passed on.

    Privacy:
        epsilon-LDP for a user's episode, pure: the start state, H next states and H rewards are 2H + 1 randomized
        answers, each of which costs epsilon / (2H + 1). Proof: docs/proofs/local-per-step.md.

    Example:
        >>> import gymnasium as gym, private_rl_gym
        >>> from private_rl_gym.wrappers import LDPPerStep
        >>> env = LDPPerStep(gym.make("PrivateRL/RiverSwim-v0", horizon=20), epsilon=8.0)
        >>> print(env.ledger)
        (8.0, 0)-LDP, replace one user, any number of users

    Args:
        env: An environment with Discrete spaces and a horizon; bare, or with wrappers that carry
            nothing from one user to the next.
        epsilon: For a user's whole episode.
        seed: For experiments that can be repeated. A seed voids the guarantee, and the ledger says so.
        secure: Draw noise from a cryptographic generator.
        horizon: Largest number of steps in an episode, if the environment does not define it.
        reward_range: The least and the largest reward, which are mapped to 0 and 1; they must contain 0, which an
            episode that ended early earns while it waits. By default rewards are in [0, 1] already.
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
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(
            self, epsilon=epsilon, seed=seed, secure=secure, horizon=horizon, reward_range=reward_range
        )
        gym.Wrapper.__init__(self, env)
        check_budget(epsilon, 0.0)
        for layer in layers(env):
            if hasattr(layer, "ledger"):
                raise ValueError(
                    f"LDPPerStep around {type(layer).__name__} makes no sense: rewards are withheld or noisy there "
                    "already. Put it around the bare environment."
                )
        self.population = Population(env, horizon, reward_range)
        self._epsilon = float(epsilon)
        # Beyond 30, flips are rarer than double precision can draw; then less is spent than allowed.
        self._share = min(30.0, epsilon / (2 * self.population.horizon + 1))
        self._source = NoiseSource(seed, secure=secure, role="steps")
        self._timed = self.population.model is not None and not isinstance(env.observation_space, spaces.Discrete)
        sizes = [self.population.horizon, self.population.n_states]
        self.observation_space = spaces.MultiDiscrete(sizes) if self._timed else spaces.Discrete(sizes[1])
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
        """The state of the user by randomized response. The stage is no secret."""
        assert self._recorder is not None  # noqa: S101 - there is a user
        S = self.population.n_states
        state = int(self._recorder.trajectory.states[0, self._stage])
        keep = 1.0 / (1.0 + (S - 1.0) * math.exp(-self._share))
        first, second = self._source.uniform(2)
        if first >= keep and S > 1:
            other = int(second * (S - 1))
            state = other if other < state else other + 1
        if self._timed:
            return np.array([min(self._stage, self.population.horizon - 1), state], dtype=np.int64)
        return state

    def _tell_reward(self, reward: float) -> float:
        """The reward as a bit by randomized response, scaled to have the right mean."""
        flip = math.exp(-self._share) / (1.0 + math.exp(-self._share))
        first, second = self._source.uniform(2)
        bit = (first < reward) != (second < flip)
        return float(self.population.rewards.original((bit - flip) / (1.0 - 2.0 * flip))) + 0.0

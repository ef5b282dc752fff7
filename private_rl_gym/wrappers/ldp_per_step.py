"""Local differential privacy for any Gymnasium learner.

Observations and rewards are randomized at every step.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike

from private_rl_gym.privacy.accounting.conversion import check_budget
from private_rl_gym.privacy.accounting.guarantee import Covers, Guarantee, TrustModel
from private_rl_gym.privacy.accounting.ledger import Ledger
from private_rl_gym.privacy.noise import NoiseSource, Rng
from private_rl_gym.wrappers.base import Sealed
from private_rl_gym.wrappers.sources import BadUserError, UserSteps, frameless, layers, quietly
from private_rl_gym.wrappers.step_answers import StepBudgets, source_of, tell_numbers

__all__ = ["LDPPerStep"]


class LDPPerStep(Sealed):
    """Randomized observations and rewards, with one budget for the whole episode.

    The budget is epsilon. Every state is reported truthfully with some probability, and otherwise replaced by one of
    the others at random. So is every entry of a MultiDiscrete or MultiBinary observation. Entries of a Box and rewards
    become numbers that are bounded and have the right mean. Episodes always last the whole horizon: one that ends early
    waits until then, in an extra state, or, where observations have entries, with its last observation and one more
    entry, a randomized bit that says so. Nothing of ``info`` is passed on.

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
        rng: A seed, for experiments that can be repeated: it voids the guarantee, and the ledger says so. ``"secure"``
            draws noise from a cryptographic generator. By default noise is seeded by the operating system.
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
        rng: Rng = None,
        horizon: int | None = None,
        reward_range: tuple[float, float] | None = None,
        shares: Mapping[str, float] | None = None,
        steps: Sequence[float] | None = None,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
    ) -> None:
        self._wrap(env)
        check_budget(epsilon, 0.0)
        for layer in layers(env):
            if hasattr(layer, "ledger"):
                raise ValueError(
                    f"LDPPerStep cannot be put around {type(layer).__name__}, whose rewards are withheld or noisy "
                    "already. Put it around the bare environment."
                )
        self.source, self._epsilon = source_of(env, horizon, reward_range, low, high), float(epsilon)
        users = self.source
        self.budgets = StepBudgets.of(epsilon, users.horizon, users.entries, shares, steps, ended=users.ends)
        """The budget of every answer."""
        self._noise = NoiseSource(rng, role="steps")
        self.observation_space = users.answers(self.budgets)
        self.action_space = spaces.Discrete(users.n_actions)
        self._user: UserSteps | None = None
        self._stage = 0

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
            seeded=self._noise.seeded,
        )

    @property
    def ledger(self) -> Ledger:
        """The guarantee, as a ledger."""
        return Ledger((self.guarantee,))

    def in_short(self) -> list[str]:
        """Return the guarantee."""
        return [str(self.guarantee)]

    @frameless
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Meet the next user, and return their randomized start state.

        With a seed, they and the users after them are those of this seed.
        """
        self._user = None
        self.source.check_options(options)
        user = UserSteps(self.source)
        _, problem = quietly(partial(user.meet, seed, options))
        self._user, self._stage = user, 0
        told = self._tell()
        if problem is not None:
            self._fail(problem)
        return told, {}

    @frameless
    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one step of the user, and return the randomized outcome."""
        number = self._number(action)  # checked first, also after an early end, which must not show
        user = self._user
        if user is None or self._stage >= self.source.horizon:
            raise gym.error.ResetNeeded("This user's episode is over: call reset() to start the next one.")
        if user.open:  # else they wait, as their trajectory says
            _, problem = quietly(partial(user.take, number))
            if problem is not None:
                self._fail(problem)
            if not user.open:
                self.source.part()
        reward = float(user.trajectory.rewards[0, self._stage])
        self._stage += 1
        return self._tell(), self._tell_reward(reward), self._stage == self.source.horizon, False, {}

    def _fail(self, problem: BadUserError) -> NoReturn:
        """Raise the error of a user whose episode failed.

        The random numbers of their other answers are drawn first, so that those of later users do not depend on it.
        """
        self.source.part()
        while self._stage < self.source.horizon:
            self._stage += 1
            self._tell()
            self._tell_reward(0.0)
        self._user = None
        raise problem

    def _number(self, action: Any) -> int:
        """Return the action as a plain number, converted once."""
        try:
            number = operator.index(action)
        except TypeError:
            number = -1
        if not 0 <= number < self.source.n_actions:
            raise gym.error.InvalidAction(f"The action {action!r} is not in {self.action_space}.")
        return number

    def _tell(self) -> Any:
        """Return the newest observation of the user, randomized."""
        assert self._user is not None  # noqa: S101 - there is a user
        state = int(self._user.trajectory.states[0, self._stage])
        return self.source.tell(state, self._stage, self.budgets, self._noise)

    def _tell_reward(self, reward: float) -> float:
        """Return a randomized number whose mean is the reward."""
        told = tell_numbers(np.array([reward]), float(self.budgets.rewards[self._stage - 1]), self._noise)
        return float(self.source.rewards.original(told[0])) + 0.0

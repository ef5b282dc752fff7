"""The users behind a boundary: an episodic environment with Discrete spaces and a known horizon.

* ``Population`` - their sizes, and how they are met and run
* ``Recorder`` - one user's trajectory, written down step by step
* ``quietly``, ``behind_closed_doors`` - failures without a user's data in them
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction
from numpy.typing import NDArray

from private_rl_gym.envs.finite import FiniteModel
from private_rl_gym.envs.logged import LoggedUsers
from private_rl_gym.envs.tabular import TabularEnv, user_option
from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.rewards import RewardRange
from private_rl_gym.planning.sampling import check_tapes
from private_rl_gym.planning.simulate import Trajectories, rollout
from private_rl_gym.privacy.asks import Ask

__all__ = [
    "BadUserError",
    "Population",
    "Recorder",
    "behind_closed_doors",
    "countable",
    "harmless",
    "layers",
    "plain_generator",
    "quietly",
    "refuse_remembering",
]

HARMLESS = ("TimeLimit.truncated",)  # info keys that reveal nothing beyond a user's observations

# The wrappers that gym.make puts around every environment. They change nothing, so compiled rollouts may skip them.
TRANSPARENT = (gym.wrappers.PassiveEnvChecker, gym.wrappers.OrderEnforcing)

# Wrappers that carry something from one user to the next would let a user change the counts of others.
REMEMBERING = (gym.wrappers.NormalizeReward, gym.wrappers.NormalizeObservation)


T = TypeVar("T")


class BadUserError(ValueError):
    """An episode for which no guarantee can be kept. Nothing of it is released."""


def quietly(call: Callable[[], T]) -> tuple[T | None, BadUserError | None]:
    """Call an environment. Returns its result and None, or None and an error that is safe to show.

    The message of an environment's own exception may be about a user, and the traceback holds her data: both are
    dropped. So are warnings: that one comes may depend on her.
    """
    try:
        with unheard():
            return call(), None
    except BadUserError as error:
        return None, BadUserError(str(error))
    except Exception as error:  # noqa: BLE001 - its message stays inside
        kind = type(error).__name__
        sentence = f"The environment raised {kind}; nothing of this user is released. Try it without the boundary."
        return None, BadUserError(sentence)


@contextmanager
def unheard() -> Iterator[None]:
    """Drop warnings: an environment's own may be about a user, and that one comes may depend on her."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def behind_closed_doors(call: Callable[[], T]) -> T:
    """Return the result of ``call``, or raise its exception without the frames it passed, which hold users' data.

    Debuggers, notebooks and crash reporters keep tracebacks, and with them everything that their frames refer to.
    """
    try:
        return call()
    except BaseException as error:  # noqa: BLE001 - an interrupt passes the same frames
        problem = error
    problem.__traceback__ = problem.__context__ = problem.__cause__ = None
    raise problem


_BITS = (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64)


def plain_generator(rng: Any) -> np.random.Generator:
    """Return ``rng`` if it is one of numpy's own generators. Others could run their own code while users are here."""
    if type(rng) is not np.random.Generator or type(rng.bit_generator) not in _BITS:
        raise TypeError(
            f"rng is a {type(rng).__name__}: a stochastic policy draws from numpy's own generators, as "
            "np.random.default_rng makes them."
        )
    return rng


def layers(env: gym.Env[Any, Any]) -> Iterator[gym.Env[Any, Any]]:
    """``env`` and everything that it wraps, from the outside in."""
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env
    yield env


def refuse_remembering(env: gym.Env[Any, Any]) -> None:
    """Raise if a wrapper carries something from one user to the next."""
    for layer in layers(env):
        if isinstance(layer, REMEMBERING):
            raise ValueError(  # noqa: TRY004 - the place is wrong, not the type
                f"{type(layer).__name__} inside a trust boundary carries statistics from one user to the next, so "
                "that one user could change the counts of others, and no guarantee would hold. Scale by numbers that "
                "are publicly known, with gymnasium.wrappers.TransformObservation; or put it outside, where it sees "
                "what the boundary tells and no more."
            )


class Population:
    """The users behind a boundary: their sizes, and how they are met and run.

    Episodes of a ``TabularEnv`` have its horizon. Those of any other environment may end early, and are padded with an
    extra absorbing state, in which action 0 is taken and the reward is 0. Rewards are mapped to [0, 1], those in the
    absorbing state too.
    """

    statistic: ClassVar[str] = "tabular"
    """The statistic that is summed if no other is asked for."""

    chunk: int = 4096
    """Users in memory at once."""

    def __init__(
        self, env: gym.Env[Any, Any], horizon: int | None, reward_range: tuple[float, float] | None = None
    ) -> None:
        self.env, self.rewards = env, RewardRange.of(reward_range)
        bare = env.unwrapped
        refuse_remembering(env)
        self.model: FiniteModel | None = bare.model if isinstance(bare, TabularEnv) else None
        self.n_actions = _discrete(env.action_space, "action")
        self._first_action = int(env.action_space.start)  # type: ignore[attr-defined]
        if self.model is not None:
            if env.observation_space != bare.observation_space:
                raise TypeError(
                    f"The observation space is {env.observation_space}: a wrapper inside the boundary has changed it "
                    f"from {bare.observation_space}, which the boundary counts in. Put that wrapper outside."
                )
            if isinstance(env.observation_space, spaces.Box):
                raise TypeError(
                    "The users show feature vectors, and a trust boundary reads states: build the environment without "
                    "observe_features. Features are for learners that meet users without a boundary."
                )
            self.n_states, self._first_state, self.padded = self.model.n_states, 0, False
        else:
            self._count_states()
        self.horizon = self._find_horizon(horizon)
        self._invited: list[NDArray[np.float64]] = []  # tapes of users who come next
        whole = self.model is not None and self.horizon == self.model.horizon
        fits = self.rewards.high >= 1.0  # and low is never above 0: no reward is refused
        self.compiled = whole and fits and all(isinstance(layer, TRANSPARENT) or layer is bare for layer in layers(env))

    def _count_states(self) -> None:
        """Find the number of states in the observation space, and add one in which episodes wait that ended early."""
        self.n_states = _discrete(self.env.observation_space, "observation") + 1
        self._first_state, self.padded = int(self.env.observation_space.start), True  # type: ignore[attr-defined]

    @property
    def absorbing(self) -> int | None:
        """The state in which episodes wait that ended early; None if they cannot end early."""
        return self.n_states - 1 if self.padded else None

    def _find_horizon(self, given: int | None) -> int:
        bare = self.env.unwrapped
        limits = [bare.model.horizon] if isinstance(bare, TabularEnv) else []
        limits += [bare.horizon] if isinstance(bare, LoggedUsers) else []
        time_limits = [layer for layer in layers(self.env) if isinstance(layer, gym.wrappers.TimeLimit)]
        limits += [int(layer._max_episode_steps) for layer in time_limits]
        if given is not None:
            limits.append(positive_integer(given, "horizon", "steps in an episode"))
        if not limits:
            raise ValueError(
                f"{self.env} has no horizon: an episode must have a largest number of steps. Say it with horizon= "
                "where a boundary is built, or around the environment: gymnasium.wrappers.TimeLimit(env, 200), or "
                "gym.make(..., max_episode_steps=200)."
            )
        return min(limits)

    def require_present(self) -> None:
        """Refuse to meet users whose episodes are over, before anyone is counted."""
        if isinstance(self.env.unwrapped, LoggedUsers):
            self.env.reset()

    def state_of(self, observation: Any) -> int:
        """The state in an observation, counted from 0."""
        if self.model is not None:
            return int(observation[1]) if np.ndim(observation) else int(observation)
        return int(observation) - self._first_state

    def check_options(self, options: dict[str, Any] | None) -> None:
        """Refuse options that this project's environments would refuse, before a user is admitted."""
        if self.model is not None:
            tape = user_option(options)
            if tape is not None:
                check_tapes(tape, self.model.horizon, one=True)

    def action_of(self, action: Any) -> int:
        """An action of the environment, counted from 0. It is converted to a plain number once, before it is used."""
        try:
            number = operator.index(action)
        except TypeError:
            number = self._first_action - 1
        index = number - self._first_action
        if not 0 <= index < self.n_actions:
            raise InvalidAction(f"The action {action!r} is not in {self.env.action_space}.")
        return index

    def env_action(self, number: int) -> int:
        """The environment's own number for this action."""
        return number + self._first_action

    def policy(self, policy: Any) -> Policy:
        """``policy`` as a table of these sizes, checked, and copied so that it shares no object with the learner."""
        sizes = self.horizon, self.n_states, self.n_actions
        if isinstance(policy, Policy):
            table = np.asarray(policy.table)
            if table.shape not in (sizes[:2], sizes) or policy.n_actions != self.n_actions:
                described = f"H={self.horizon}, S={self.n_states}, A={self.n_actions}"
                absorbing = " (the last state is where episodes wait that ended early)" if self.padded else ""
                raise ValueError(
                    f"A policy with a table of shape {table.shape} for {policy.n_actions} actions does not fit the "
                    f"users, who have {described}{absorbing}."
                )
        return Policy.of(policy, horizon=self.horizon, n_states=self.n_states, n_actions=self.n_actions)

    def tapes(self, users: Any) -> NDArray[np.float64]:
        """The tapes of given users, checked and copied."""
        if self.model is None:
            raise ValueError(f"{self.env} has no tapes: say how many users to serve, users=n.")
        return check_tapes(np.array(users), self.model.horizon)

    def invite(self, users: Any) -> None:
        """Let the users with these tapes come next, in this order."""
        self._invited.extend(self.tapes(users))

    def next_users(self, count: int) -> NDArray[np.float64] | None:
        """The tapes of the next users: invited ones, or new ones; None where users have no tapes."""
        if self.model is None:
            return None
        invited, self._invited = self._invited[:count], self._invited[count:]
        drawn = count - len(invited)
        if not drawn:
            return np.array(invited)
        fresh = self.model.draw_users(self.env.unwrapped.np_random, drawn)
        return fresh if not invited else np.concatenate([invited, fresh])

    def meet(self, seed: int | None, options: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
        """Meet the next user by ``reset``: her first observation, and the harmless part of ``info``."""
        if self._invited and user_option(options) is None:
            options = {**(options or {}), "user": self._invited.pop(0)}
        with unheard():
            observation, info = self.env.reset(seed=seed, options=options)
        return observation, harmless(info)

    def take(self, number: int) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Let the user who is here take an action, given by its number."""
        with unheard():
            observation, reward, terminated, truncated, info = self.env.step(self.env_action(number))
        return observation, reward, bool(terminated), bool(truncated), info

    def run(self, policy: Policy, tapes: NDArray[np.float64], uniforms: NDArray[np.float64] | None) -> Trajectories:
        """Let users run a policy in compiled code; only where ``compiled`` is true."""
        assert self.model is not None  # noqa: S101 - compiled environments have one
        met = rollout(self.model.tables, policy, tapes, uniforms)
        return met if self.rewards.plain else replace(met, rewards=self.rewards.mapped(met.rewards))

    def walk(
        self, policy: Policy, tape: NDArray[np.float64] | None, uniforms: NDArray[np.float64] | None
    ) -> Trajectories:
        """Let one user run a policy, step by step."""
        recorder = Recorder(self)
        observation, _ = self.meet(None, None if tape is None else {"user": tape})
        recorder.begin(observation)
        while recorder.open:
            uniform = None if uniforms is None else float(uniforms[recorder.stage])
            action = policy.action(recorder.stage, recorder.state, uniform)
            observation, reward, terminated, truncated, _ = self.take(action)
            recorder.step(action, observation, reward, ended=terminated or truncated)
        return recorder.trajectory


def harmless(info: dict[str, Any]) -> dict[str, Any]:
    """The harmless keys of ``info`` whose value is True."""
    return {key: True for key in HARMLESS if info.get(key) is True}


class Recorder:
    """Records one user's trajectory, which is raw data, and what she was asked when she came."""

    __slots__ = ("_population", "ask", "open", "stage", "trajectory")

    def __init__(self, population: Population, ask: Ask | None = None) -> None:
        self._population, self.ask = population, ask
        self.trajectory = Trajectories(
            np.zeros((1, population.horizon + 1), dtype=np.int32),
            np.zeros((1, population.horizon), dtype=np.int32),
            np.zeros((1, population.horizon)),
        )
        self.stage, self.open = 0, False

    @property
    def state(self) -> int:
        """The current state of the user."""
        return int(self.trajectory.states[0, self.stage])

    def begin(self, observation: Any) -> None:
        """Record the first observation of the user."""
        self.open = True
        self.trajectory.states[0, 0] = self._state_in(observation)

    def _state_in(self, observation: Any) -> int:
        try:
            state = self._population.state_of(observation)
        except (TypeError, ValueError, IndexError):
            state = -1
        if not 0 <= state < self._population.n_states - self._population.padded:
            self.open = False
            raise BadUserError(
                "The environment returned an observation outside its observation space, which cannot be counted; "
                "nothing of this user is released."
            )
        return state

    def step(self, action: int, observation: Any, reward: Any, *, ended: bool) -> None:
        """Record one step. The last one closes the episode, which is padded if it ended early."""
        population, stage = self._population, self.stage
        if not 0 <= action < population.n_actions:
            self.open = False
            raise BadUserError("An action is outside the action space; nothing of this user is released.")
        try:
            reward = float(reward)
        except (TypeError, ValueError):
            reward = float("nan")
        reward = population.rewards.mapped(reward)
        if not 0.0 <= reward <= 1.0:
            self.open = False
            raise BadUserError(
                f"The environment paid a reward outside {population.rewards}, for which no guarantee can be kept; "
                "nothing of this user is released. Say the least and the largest reward when the boundary is built, "
                "such as reward_range=(-100, 0)."
            )
        self.trajectory.actions[0, stage] = action
        self.trajectory.rewards[0, stage] = reward
        self.trajectory.states[0, stage + 1] = self._state_in(observation)
        self.stage = stage = stage + 1
        if stage == population.horizon or ended:
            self.open = False
        if ended and stage < population.horizon:
            if not population.padded:
                raise BadUserError(
                    f"An episode ended before its {population.horizon} steps were over, and there is no absorbing "
                    f"state "
                    "to wait in; nothing of this user is released. If episodes are shorter, say so with horizon=."
                )
            self.trajectory.states[0, stage:] = population.n_states - 1
            self.trajectory.rewards[0, stage:] = population.rewards.zero


def countable(env: gym.Env[Any, Any]) -> bool:
    """Whether states and actions can be counted."""
    if not isinstance(env.action_space, spaces.Discrete):
        return False
    return isinstance(env.unwrapped, TabularEnv) or isinstance(env.observation_space, spaces.Discrete)


def _discrete(space: gym.Space[Any], name: str) -> int:
    if not isinstance(space, spaces.Discrete):
        finite = not isinstance(space, spaces.Box) and "Box" not in str(space)
        remedy = "env = private_rl_gym.wrappers.FlattenSpaces(env)"
        if name == "observation" and not finite:
            remedy = "env = private_rl_gym.wrappers.Discretize(env, bins=8)"
        elif not finite:
            remedy = "env = gymnasium.wrappers.TransformAction(env, lambda number: ..., spaces.Discrete(n))"
        raise TypeError(
            f"The {name} space is {space}: trust boundaries count, and so need Discrete spaces. Put an adapter inside "
            f"the boundary: {remedy}"
        )
    return int(space.n)

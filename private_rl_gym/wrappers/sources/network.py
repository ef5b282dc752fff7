"""Users of any episodic environment who run policy networks, many at a time.

A user is a seed: it decides all that is random about them, so that replacing them changes no other user. Users of an
environment with a vector entry point share the seed of their group, where the end of an episode changes no other one.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import gymnasium as gym
import numpy as np
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils import seeding
from numpy.typing import NDArray

from private_rl_gym.envs.vector import TabularVectorEnv
from private_rl_gym.planning.arrays import as_array, real
from private_rl_gym.planning.network import ExploringPolicy, Layers, Network, NetworkPolicy, NetworkTrajectories
from private_rl_gym.wrappers.sources.base import MOST_USERS, TRANSPARENT, Source, layers, lend
from private_rl_gym.wrappers.sources.encoding import ActionCode, ObservationCode
from private_rl_gym.wrappers.sources.quiet import BadUserError, quietly

__all__ = ["NetworkSource"]

SLOTS = 64
"""Number of environments that are stepped in turn, where there is no vector entry point."""

MOST_NUMBERS = 2**22
"""Largest number of numbers in memory at once."""

RECORDING = (gym.wrappers.RecordEpisodeStatistics, gym.wrappers.RecordVideo)
"""Wrappers in which an experimenter looks at users. Copies of them would record in place of the one at hand."""

LONE = (CartPoleVectorEnv, TabularVectorEnv)
"""Vector environments that reset by themselves and draw random numbers for new users only.

In others, such a reset takes numbers away from users whose episodes go on. They may be used if they do not reset.
"""


class NetworkSource(Source):
    """Users of an environment with any spaces, who run networks.

    Args:
        env: The environment.
        horizon: Largest number of steps in an episode, if the environment does not define it.
        chosen: The hidden layers of the network; None if users run any network, and may explore.

    Attributes:
        vectorised: Whether groups of users are met in one vector environment.
    """

    statistic = "gradient"
    network: Network

    def __init__(self, env: gym.Env[Any, Any], horizon: int | None, chosen: Layers | None) -> None:
        super().__init__(env, None)
        self.observations = ObservationCode.of(env.observation_space)
        self.actions = ActionCode.of(env.action_space)
        self._free = chosen is None
        layers_of = Layers(()) if chosen is None else chosen
        self.network = Network(self.observations.size, layers_of, self.actions.choices, self.actions.continuous)
        self.n_states, self.n_actions, self.padded = self.network.inputs, self.network.outputs, False
        self.horizon = self._find_horizon(horizon)
        each = self.horizon * (self.network.inputs + 2 * self.network.action_size + 1)
        self.chunk = max(1, min(MOST_USERS, MOST_NUMBERS // each))
        self._copies: list[gym.Env[Any, Any]] = []
        self._vectors: dict[int, gym.vector.VectorEnv[Any, Any, Any]] = {}
        plain = (*TRANSPARENT, gym.wrappers.TimeLimit, type(env.unwrapped))
        self.vectorised = (
            all(isinstance(layer, plain) for layer in layers(env))
            and env.spec is not None
            and env.spec.vector_entry_point is not None
            and _as_made(env.unwrapped, env.spec)
            and _lone(env.spec)
        )
        self._recorded = any(isinstance(layer, RECORDING) or type(layer).__name__ == "Monitor" for layer in layers(env))

    def policy(self, policy: Any) -> NetworkPolicy:
        """Return the policy in plain numbers; raise ValueError if it does not fit.

        It shares no object with the learner.
        """
        if not isinstance(policy, NetworkPolicy):
            return NetworkPolicy(self.network, as_array(policy, "parameters"), self.horizon)
        theirs, network = policy.network, self.network
        if self._free:
            network = replace(network, layers=theirs.layers, squashed=theirs.squashed)
        if theirs != network:
            raise ValueError(f"The policy is a {theirs}, and these users run a {network}.")
        parameters = as_array(policy.parameters, "parameters")
        if self._free and isinstance(policy, ExploringPolicy):
            share, longest = real(policy.share, "share"), real(policy.longest, "longest")
            return ExploringPolicy(network, parameters, self.horizon, share, longest)
        return NetworkPolicy(network, parameters, self.horizon)

    def users(self, users: Any) -> NDArray[Any]:
        """Return a checked copy of the seeds of given users."""
        seeds = np.array(users)
        if seeds.ndim != 1 or seeds.dtype.kind not in "iu" or not (seeds >= 0).all():
            raise ValueError("Users of this boundary are seeds: give a row of whole numbers, 0 or more, or a number n.")
        return seeds

    def check_options(self, options: dict[str, Any] | None) -> NoReturn:
        """Raise ValueError, because users are not met by ``reset``."""
        raise ValueError(
            "A boundary that publishes gradients or dynamics has no reset and step, because a report belongs to the "
            "policy that a user ran. Let an agent learn, or call board.serve(policy, users). Evaluate on the "
            "environment itself."
        )

    def action_of(self, action: Any) -> NoReturn:
        """Raise ValueError, because users are not met by ``step``."""
        self.check_options(None)

    def serve(
        self, policy: Any, count: int, given: NDArray[Any] | None, rng: np.random.Generator | None
    ) -> Iterator[tuple[Any, int, BadUserError | None]]:
        """Yield users who run a policy, in groups.

        A user who failed has an episode without steps.
        """
        for start in range(0, count, self.chunk):
            here = min(self.chunk, count - start)
            seeds = None if given is None else given[start : start + here]
            episodes, problem = self.run_all(policy, here, seeds, rng)
            yield episodes, here, problem

    def run_all(
        self, policy: Any, count: int, given: NDArray[Any] | None, rng: np.random.Generator | None
    ) -> tuple[NetworkTrajectories, BadUserError | None]:
        """Return the episodes of a group of users, and an error or None.

        The error is safe to show. There is one if some of the users were refused.

        Args:
            policy: The policy that they run.
            count: Their number.
            given: Their seeds; None for new users.
            rng: The generator of their actions. All numbers are drawn before users come, as many whatever they do.
        """
        assert isinstance(policy, NetworkPolicy)  # noqa: S101 - it was checked when it was sent
        assert rng is not None  # noqa: S101 - networks draw their actions
        network, draws = self.network, policy.draws(rng, count)
        episodes = NetworkTrajectories(
            np.zeros((count, self.horizon, network.inputs)),
            np.zeros((count, self.horizon, network.action_size)),
            np.zeros((count, self.horizon)),
            np.zeros(count, dtype=np.int64),
            policy,
        )
        if self.vectorised and given is None and not self._invited:
            seed = int(self._next_users(1)[0])
            _, problem = quietly(partial(self._step_together, episodes, seed, draws))
            if problem is not None:
                # One user may have stopped all others, and must not change their sums: none of these is published.
                self.broken = True
                raise problem
            return episodes, None
        seeds = self._next_users(count) if given is None else given
        if not self._recorded:
            return episodes, self._step_in_turn(episodes, seeds, draws, self._environments(min(SLOTS, count)))
        self._stream = self._stream_of(None)
        try:  # users are met where they are recorded
            return episodes, self._step_in_turn(episodes, seeds, draws, [self.env])
        finally:
            self.part()

    def _next_users(self, count: int) -> NDArray[Any]:
        """Return the seeds of the next users: invited ones, or new ones."""
        invited, self._invited = self._invited[:count], self._invited[count:]
        fresh = self._stream_of(None).integers(2**31, size=count - len(invited))
        return np.concatenate([np.array(invited, dtype=np.int64), fresh])

    def _step_together(self, episodes: NetworkTrajectories, seed: int, draws: NDArray[np.float64]) -> None:
        """Run a group of users in one vector environment.

        What happens in an environment after a user's end is not about the user.
        """
        count, network, policy = len(draws), self.network, episodes.policy
        if count not in self._vectors:
            self._vectors.clear()
            self._vectors[count] = gym.make_vec(
                self.env.spec,  # type: ignore[arg-type] # vectorised environments have one
                num_envs=count,
                vectorization_mode=gym.VectorizeMode.VECTOR_ENTRY_POINT,
            )
        env = self._vectors[count]
        observations, _ = env.reset(seed=seed)
        here, bad = np.ones(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
        rows, acts = np.empty((count, network.inputs)), np.zeros((count, network.action_size))
        for h in range(self.horizon):
            bad |= here & ~self.observations.rows(observations, rows)
            policy.choose(rows, draws[:, h], here, acts)
            observations, rewards, terminated, truncated, _ = env.step(self.actions.actions(acts))
            episodes.inputs[:, h], episodes.actions[:, h], episodes.rewards[:, h] = rows, acts, rewards
            episodes.lengths[here] = h + 1
            here &= ~(terminated | truncated)
            if not here.any():
                break
        episodes.lengths[bad] = 0

    def _step_in_turn(
        self,
        episodes: NetworkTrajectories,
        seeds: NDArray[Any],
        draws: NDArray[np.float64],
        envs: Sequence[gym.Env[Any, Any]],
    ) -> BadUserError | None:
        """Run users one after the other in each of these environments.

        The environments are stepped in turn.
        """
        network, policy = self.network, episodes.policy
        waiting, refused = iter(range(len(seeds))), None
        users = np.full(len(envs), -1)  # the user in each environment
        stages = np.zeros(len(envs), dtype=np.int64)
        seen = np.zeros((len(envs), network.inputs))

        def enter(slot: int) -> None:
            """Let the next user who can be met into an environment."""
            nonlocal refused
            users[slot] = -1
            for user in waiting:
                _, problem = quietly(partial(self._meet_in, envs[slot], int(seeds[user]), seen[slot]))
                if problem is None:
                    users[slot], stages[slot] = user, 0
                    return
                refused = problem

        for slot in range(len(envs)):
            enter(slot)
        while (users >= 0).any():
            slots = np.flatnonzero(users >= 0)
            who, when = users[slots], stages[slots]
            rows, acts = seen[slots], np.zeros((len(slots), network.action_size))
            good = self.observations.scale(rows)
            policy.choose(np.where(good[:, None], rows, 0.0), draws[who, when], good, acts)
            episodes.inputs[who, when], episodes.actions[who, when] = rows, acts
            actions = self.actions.actions(acts)
            for place, slot in enumerate(int(number) for number in slots):
                answer, problem = None, BadUserError(_UNREADABLE) if not good[place] else None
                if problem is None:
                    last = bool(stages[slot] + 1 == self.horizon)
                    step = partial(self._step_in, envs[slot], actions[place], seen[slot], last=last)
                    answer, problem = quietly(step)
                if answer is None:
                    refused = problem or refused
                    enter(slot)
                    continue
                user, h = int(users[slot]), int(stages[slot])
                episodes.rewards[user, h], ended = answer
                stages[slot] = h + 1
                if ended:
                    episodes.lengths[user] = h + 1
                    enter(slot)
        return refused

    def _meet_in(self, env: gym.Env[Any, Any], seed: int, row: NDArray[np.float64]) -> None:
        """Meet a user in this environment, and write their first observation's row."""
        lend(env, seeding.np_random(seed)[0])  # theirs, also where reset forgets to make it
        observation, _ = env.reset(seed=seed)
        self._read(observation, row)

    def _step_in(
        self, env: gym.Env[Any, Any], action: Any, row: NDArray[np.float64], *, last: bool
    ) -> tuple[float, bool]:
        """Take a step in this environment, and write the observation's row.

        The row is not written if no action follows it. Returns the reward, and whether the episode is over.
        """
        observation, reward, terminated, truncated, _ = env.step(action)
        ended = bool(terminated or truncated) or last
        if not ended:
            self._read(observation, row)
        return float(reward), ended

    def _read(self, observation: Any, row: NDArray[np.float64]) -> None:
        try:
            self.observations.write(observation, row)
        except Exception:  # noqa: BLE001 - whatever an observation does, it is one user's
            raise BadUserError(_UNREADABLE) from None

    def _environments(self, count: int) -> list[gym.Env[Any, Any]]:
        """Return so many environments like the one that was given.

        The given one only draws seeds.
        """
        while len(self._copies) < count:
            copied, problem = quietly(partial(copy.deepcopy, self.env))
            if problem is not None and self.env.spec is not None:
                copied, problem = quietly(partial(gym.make, self.env.spec))
            if copied is None:
                raise ValueError(
                    f"{self.env} can neither be copied nor made again by its spec, and users are simulated in copies. "
                    "Register it with gymnasium, and build it with gym.make."
                )
            self._copies.append(copied)
        return self._copies[:count]


_UNREADABLE = "The environment returned an observation outside its observation space; nothing of this user is released."


def _as_made(env: gym.Env[Any, Any], spec: EnvSpec) -> bool:
    """Return whether an environment still is as its spec makes it.

    Then users may be met in others that the spec makes.
    """
    fresh, problem = quietly(partial(gym.make, spec))
    if fresh is None or problem is not None:
        return False
    made = vars(fresh.unwrapped)
    return all(
        vars(env).get(name) == value
        for name, value in made.items()
        if isinstance(value, bool | int | float | str) and not name.startswith("_")
    )


def _lone(spec: EnvSpec) -> bool:
    """Return whether the spec's vector environment keeps users apart.

    The end of one user must change no other user.
    """
    mode = gym.VectorizeMode.VECTOR_ENTRY_POINT
    made, problem = quietly(partial(gym.make_vec, spec, num_envs=1, vectorization_mode=mode))
    if made is None or problem is not None:
        return False
    metadata = made.unwrapped.metadata or {}
    resets = metadata.get("autoreset_mode") is not gym.vector.AutoresetMode.DISABLED
    return not resets or type(made.unwrapped) in LONE

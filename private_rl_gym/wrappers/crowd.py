"""The users behind a boundary that publishes gradients: any episodic environment, many users at a time.

A user is a seed: it decides all that is random about her, so that replacing her changes nobody else. Users of an
environment with a vector entry point share the seed of their group.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray

from private_rl_gym.planning.network import Episodes, Layers, Network, NetworkPolicy
from private_rl_gym.planning.rewards import RewardRange
from private_rl_gym.wrappers.encoding import ActionCode, ObservationCode
from private_rl_gym.wrappers.population import (
    TRANSPARENT,
    BadUserError,
    Population,
    layers,
    quietly,
    refuse_remembering,
)

__all__ = ["Crowd"]

SLOTS = 64  # environments that are stepped in turn, where there is no vector entry point
NUMBERS = 2**22  # numbers in memory at once
MOST = 4096  # users in memory at once


class Crowd(Population):
    """The users of an environment with any spaces, who run networks."""

    statistic = "gradient"

    def __init__(self, env: gym.Env[Any, Any], horizon: int | None, chosen: Layers) -> None:
        self.env, self.model, self.rewards = env, None, RewardRange.of(None)
        refuse_remembering(env)
        self.observations = ObservationCode.of(env.observation_space)
        self.acts = ActionCode.of(env.action_space)
        self.layers = chosen
        self.network = Network(self.observations.size, chosen, self.acts.choices, self.acts.continuous)
        self.n_states, self.n_actions, self.padded = self.network.inputs, self.network.outputs, False
        self.horizon = self._find_horizon(horizon)
        self.compiled = False
        each = self.horizon * (self.network.inputs + 2 * self.network.action_size + 1)
        self.chunk = max(1, min(MOST, NUMBERS // each))
        self._invited = []
        self._copies: list[gym.Env[Any, Any]] = []
        self._vectors: dict[int, gym.vector.VectorEnv[Any, Any, Any]] = {}
        self.broken = False
        plain = all(
            isinstance(layer, (*TRANSPARENT, gym.wrappers.TimeLimit, type(env.unwrapped))) for layer in layers(env)
        )
        self.vectorised = (
            plain
            and env.spec is not None
            and env.spec.vector_entry_point is not None
            and _as_made(env.unwrapped, env.spec)
        )

    # What a boundary asks of its users -------------------------------------------------------------------------------

    def policy(self, policy: Any) -> NetworkPolicy:  # type: ignore[override]
        """The policy in plain numbers, which shares no object with the learner; raises if it does not fit."""
        parameters = policy
        if isinstance(policy, NetworkPolicy):
            if policy.network != self.network:
                raise ValueError(f"The policy is a {policy.network}, and these users run a {self.network}.")
            parameters = policy.parameters
        return NetworkPolicy(self.network, np.array(parameters, dtype=np.float64), self.horizon)

    def tapes(self, users: Any) -> NDArray[Any]:
        """The seeds of given users, checked and copied."""
        seeds = np.array(users)
        if seeds.ndim != 1 or seeds.dtype.kind not in "iu" or not (seeds >= 0).all():
            raise ValueError("Users of this boundary are seeds: give a row of whole numbers, 0 or more, or a number n.")
        return seeds

    def next_users(self, count: int) -> NDArray[Any]:
        """The seeds of the next users: invited ones, or new ones."""
        invited, self._invited = self._invited[:count], self._invited[count:]
        fresh = self.env.unwrapped.np_random.integers(2**31, size=count - len(invited))
        return np.concatenate([np.array(invited, dtype=np.int64), fresh])

    def check_options(self, options: dict[str, Any] | None) -> None:
        """Refuse users who would be met by ``reset``."""
        del options
        raise ValueError(
            "A boundary that publishes gradients meets users through serve, because a gradient belongs to the policy "
            "that a user ran: let an agent learn, or call board.serve(policy, users). Evaluate on the environment "
            "itself."
        )

    def action_of(self, action: Any) -> int:
        """Refuse users who would be met by ``step``."""
        del action
        self.check_options(None)
        raise AssertionError

    # Episodes --------------------------------------------------------------------------------------------------------

    def run_all(
        self, policy: Any, count: int, given: NDArray[Any] | None, rng: np.random.Generator | None
    ) -> tuple[Any, BadUserError | None]:
        """The ``Episodes`` of a group of users, and an error that is safe to show, if some of them were refused.

        Args:
            policy: The policy that they run.
            count: Their number.
            given: Their seeds; None for new users.
            rng: The generator of their actions. All numbers are drawn before users come, as many whatever they do.
        """
        assert isinstance(policy, NetworkPolicy)  # noqa: S101 - it was checked when it was sent
        assert rng is not None  # noqa: S101 - networks draw their actions
        network, draws = self.network, self.network.draws(rng, count, self.horizon)
        together = self.vectorised and given is None and not self._invited
        episodes = Episodes(
            np.zeros((count, self.horizon, network.inputs)),
            np.zeros((count, self.horizon, network.action_size)),
            np.zeros((count, self.horizon)),
            np.zeros(count, dtype=np.int64),
            policy,
        )
        if together:
            seed = int(self.next_users(1)[0])
            _, problem = quietly(partial(self._step_together, episodes, seed, draws))
            if problem is not None:
                # One user may have stopped all others, whose sums she must not change: none of these sums is published.
                self.broken = True
                raise problem
            return episodes, None
        seeds = self.next_users(count) if given is None else given
        return episodes, self._step_in_turn(episodes, seeds, draws)

    def _step_together(self, episodes: Episodes, seed: int, draws: NDArray[np.float64]) -> None:
        """Run a group of users in one vector environment. What happens there after her end is not a user's."""
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
            observations, rewards, terminated, truncated, _ = env.step(self.acts.actions(acts))
            episodes.inputs[:, h], episodes.actions[:, h], episodes.rewards[:, h] = rows, acts, rewards
            episodes.lengths[here] = h + 1
            here &= ~(terminated | truncated)
            if not here.any():
                break
        episodes.lengths[bad] = 0

    def _step_in_turn(self, episodes: Episodes, seeds: NDArray[Any], draws: NDArray[np.float64]) -> BadUserError | None:
        """Run users one after the other in each of some environments, which are stepped in turn."""
        network, policy = self.network, episodes.policy
        envs = self._environments(min(SLOTS, len(seeds)))
        waiting, refused = iter(range(len(seeds))), None
        users = np.full(len(envs), -1)  # the user in each environment
        stages = np.zeros(len(envs), dtype=np.int64)
        seen: list[Any] = [None] * len(envs)

        def enter(slot: int) -> None:
            """Let the next user who can be met into an environment."""
            nonlocal refused
            users[slot] = -1
            for user in waiting:
                met, problem = quietly(partial(envs[slot].reset, seed=int(seeds[user])))
                if met is not None and problem is None:
                    users[slot], stages[slot], seen[slot] = user, 0, met[0]
                    return
                refused = problem or refused

        for slot in range(len(envs)):
            enter(slot)
        while (users >= 0).any():
            slots = np.flatnonzero(users >= 0)
            who, when = users[slots], stages[slots]
            rows, acts = np.empty((len(slots), network.inputs)), np.zeros((len(slots), network.action_size))
            good = self._rows([seen[slot] for slot in slots], rows)
            policy.choose(np.where(good[:, None], rows, 0.0), draws[who, when], good, acts)
            episodes.inputs[who, when], episodes.actions[who, when] = rows, acts
            actions = self.acts.actions(acts)
            for place, slot in enumerate(int(number) for number in slots):
                answer, problem = None, BadUserError(_UNREADABLE) if not good[place] else None
                if problem is None:
                    answer, problem = quietly(_step(envs[slot], actions[place]))
                if answer is None or problem is not None:
                    refused = problem or refused
                    enter(slot)
                    continue
                user, h = int(users[slot]), int(stages[slot])
                seen[slot], episodes.rewards[user, h], ended = answer
                stages[slot] = h + 1
                if ended or h + 1 == self.horizon:
                    episodes.lengths[user] = h + 1
                    enter(slot)
        return refused

    def _rows(self, observations: list[Any], rows: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Write the rows of these observations; one that cannot be read spoils its own row only."""
        good, problem = quietly(partial(self.observations.rows, observations, rows))
        if good is not None and problem is None:
            return good
        each = [quietly(partial(self.observations.rows, [one], rows[i : i + 1])) for i, one in enumerate(observations)]
        return np.array([bool(one is not None and one[0]) for one, _ in each])

    def _environments(self, count: int) -> list[gym.Env[Any, Any]]:
        """So many environments like the one that was given, which itself only draws seeds."""
        while len(self._copies) < count:
            copied, problem = quietly(partial(copy.deepcopy, self.env))
            if problem is not None and self.env.spec is not None:
                copied, problem = quietly(partial(gym.make, self.env.spec))
            if copied is None:
                raise ValueError(
                    f"{self.env} can neither be copied nor made again by its spec, and users are met in copies of it: "
                    "register it with gymnasium, and build it with gym.make."
                )
            self._copies.append(copied)
        return self._copies[:count]


_UNREADABLE = "The environment returned an observation outside its observation space; nothing of this user is released."


def _as_made(env: gym.Env[Any, Any], spec: EnvSpec) -> bool:
    """Whether an environment still is as its spec makes it: then users may be met in others that the spec makes."""
    fresh, problem = quietly(partial(gym.make, spec))
    if fresh is None or problem is not None:
        return False
    made = vars(fresh.unwrapped)
    return all(
        vars(env).get(name) == value
        for name, value in made.items()
        if isinstance(value, bool | int | float | str) and not name.startswith("_")
    )


def _step(env: gym.Env[Any, Any], action: Any) -> Callable[[], tuple[Any, float, bool]]:
    """A step of this environment: observation, reward, and whether the episode is over."""

    def step() -> tuple[Any, float, bool]:
        observation, reward, terminated, truncated, _ = env.step(action)
        return observation, float(reward), bool(terminated or truncated)

    return step

"""Problems to simulate before a deployment.

A problem is the environment itself where its model is known, or else a stand-in.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import gymnasium as gym
import numpy as np

from private_rl_gym.envs.finite import FiniteModel
from private_rl_gym.envs.garnet import Garnet
from private_rl_gym.envs.logged import LoggedUsers
from private_rl_gym.envs.model import TabularModel
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.lab.foreign import MOST_ENTRIES, is_foreign, make_env, parted, true_model
from private_rl_gym.lab.registry import ENVIRONMENTS, GridError
from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.planning.policy import Policy
from private_rl_gym.wrappers.open_billboard import OpenBillboard

__all__ = ["Problem", "model_of_table", "problem_of", "problem_of_size", "problem_of_table", "settings", "stand_in"]

PROBED = 1000
"""Steps at random that look for a reward outside the range."""

CONTRAST = 0.2
"""The range of mean rewards in a stand-in of a table: there actions differ less than those of a Garnet."""

MOST_ROOMS = 10**5
"""The largest table of transitions whose users are met again and again."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """The users of a simulation.

    Attributes:
        model: The model that they follow.
        origin: A sentence that says where the model is from.
        true: Whether it is the model of the environment that was named, and no stand-in.
        typed: The options of ``private-rl-gym train`` that name the same environment.
        rewards: The range that the model's rewards, in [0, 1], stand for.
        waiting: Whether one of the states was added, for episodes that have ended early.
        boxed: Whether observations are numbers, in bins.
    """

    model: FiniteModel
    origin: str
    true: bool = True
    typed: tuple[str, ...] = ()
    rewards: tuple[float, float] = (0.0, 1.0)
    waiting: bool = False
    boxed: bool = False

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Horizon, states, actions."""
        return self.model.horizon, self.model.n_states, self.model.n_actions

    @property
    def never(self) -> float:
        """The regret of a user whose actions are random, without any learning."""
        horizon, n_states, n_actions = self.sizes
        blind = Policy.uniform(horizon=horizon, n_states=n_states, n_actions=n_actions)
        return self.model.optimal_value() - self.model.value_of(blind)

    def lost(self, users: int) -> float:
        """Return the regret of so many users without learning, in rewards as they are."""
        low, high = self.rewards
        return self.never * users * (high - low)


def problem_of(
    name: str,
    options: Mapping[str, Any],
    *,
    horizon: int | None = None,
    reward_range: tuple[float, float] | None = None,
    **adapters: Any,
) -> Problem:
    """Return the problem of an environment.

    Its model is the environment's own, that of its table, or a Garnet of its size.

    Args:
        name: A name of this package's, an id that Gymnasium knows, or ``module:object``.
        options: The options of the environment.
        horizon: Steps of an episode.
        reward_range: The least and the largest reward.
        adapters: ``bins``, ``low``, ``high`` for observations in a Box.
    """
    chosen = dict(options)
    if not is_foreign(name) and horizon is not None:
        entry = ENVIRONMENTS.find(name, "--env")
        entry.check({"horizon": horizon}, "--horizon")
        chosen["horizon"], horizon = horizon, None
    env = make_env(name, chosen, **adapters)
    if isinstance(env.unwrapped, LoggedUsers):
        raise GridError(
            f"--env {name} holds recorded users, and no new user can be simulated. In place of --env, give --table "
            f"--states {env.observation_space.n} --actions {env.action_space.n} "  # type: ignore[attr-defined]
            f"--horizon {env.unwrapped.horizon}"
        )
    with _refused(name):
        board = OpenBillboard(env, horizon=horizon, reward_range=reward_range)
    typed = ("--env", name, *settings("environment", chosen))
    if horizon is not None:
        typed += ("--horizon", str(horizon))
    if reward_range is not None:
        typed += ("--reward-range", *(f"{reward:g}" for reward in reward_range))
    typed += tuple(f"--{key}={_listed(value)}" for key, value in adapters.items() if value is not None)
    own, sizes = isinstance(env.unwrapped, TabularEnv), board.sizes
    low, high = board.source.rewards.low, board.source.rewards.high
    about: dict[str, Any] = {
        "typed": typed,
        "rewards": (low, high),
        "waiting": sizes[1] > int(env.observation_space.n),  # type: ignore[attr-defined]
        "boxed": adapters.get("bins") is not None,
    }
    if not own and (paid := _paid_outside(env, sizes[0], low, high)) is not None:
        raise GridError(
            f"--env {name}: it pays {paid:g}, outside the range of rewards {low:g}..{high:g}. Give the range with "
            "--reward-range LEAST LARGEST"
        )
    truth = true_model(env, board)
    if truth is not None and truth.horizon != sizes[0]:
        raise GridError(f"--horizon {horizon}: {name} has one of its own, {truth.horizon}. Leave it out.")
    if truth is not None:
        return Problem(truth, f"simulated on {'itself' if own else 'its own table of transitions'}", **about)
    if sizes[1] ** 2 * sizes[2] > MOST_ENTRIES:
        raise GridError(
            f"--env {name}: it has {sizes[1]:,} states and {sizes[2]} actions, too many to simulate. Use fewer bins "
            "(--bins), or print the noise alone with private-rl-gym budget."
        )
    return _of_size(sizes, "its model is not known, so that a stand-in of its size takes its place", **about)


def problem_of_size(
    n_states: int, n_actions: int, horizon: int, reward_range: tuple[float, float] = (0.0, 1.0)
) -> Problem:
    """Return a Garnet in place of a problem of which only the size is known."""
    if min(n_states, n_actions, horizon) < 1 or n_states**2 * n_actions > MOST_ENTRIES:
        raise GridError(
            f"--states {n_states} --actions {n_actions} --horizon {horizon}: each must be at least 1, and states * "
            f"states * actions at most {MOST_ENTRIES:,}. To print the noise alone, use private-rl-gym budget."
        )
    if not reward_range[0] < reward_range[1]:
        raise GridError("--reward-range LEAST LARGEST: the least reward comes first.")
    about = {"typed": ("--env", "module:YourEnvironment", "--horizon", str(horizon)), "rewards": reward_range}
    return _of_size((horizon, n_states, n_actions), "a stand-in", **about)


def problem_of_table(n_states: int, n_actions: int, horizon: int, *, stationary: bool = False) -> Problem:
    """Return a stand-in for users in a table.

    It has one more state, for users who left.
    """
    sizes = (
        positive_integer(horizon, "horizon", "steps of an episode"),
        positive_integer(n_states, "states", "states") + 1,
        positive_integer(n_actions, "actions", "actions"),
    )
    if n_actions < 2:
        raise GridError("--actions is 1: it must be at least 2, because with one action there is nothing to learn.")
    if (n_states + 1) ** 2 * n_actions * (1 if stationary else horizon) > MOST_ENTRIES:
        raise GridError(
            f"{n_states:,} states, {n_actions:,} actions and {horizon:,} steps are too many to simulate. Use fewer, or "
            "print the noise alone with private-rl-gym budget."
        )
    return Problem(model_of_table(sizes, 0, stationary=stationary), "a stand-in of a table", true=False, waiting=True)


def model_of_table(sizes: tuple[int, int, int], number: int, *, stationary: bool) -> TabularModel:
    """Return a random Garnet with one more state, for users who left.

    Users start in any state.

    Args:
        sizes: Horizon, states with that one, actions.
        number: The number of the Garnet.
        stationary: Whether it is the same at every stage.
    """
    H, S, A = sizes[0], sizes[1] - 1, sizes[2]
    garnet: TabularModel = Garnet(  # type: ignore[assignment]
        S, A, H, branching=min(3, S), instance_seed=number, stationary=stationary
    ).model
    stages = len(garnet.transitions)
    P, r = np.zeros((stages, S + 1, A, S + 1)), np.zeros((stages, S + 1, A))
    P[:, :S, :, :S], P[:, S, :, S] = garnet.transitions, 1.0
    r[:, :S] = 0.5 + CONTRAST * (garnet.rewards - 0.5)
    return TabularModel(P, r, np.append(np.full(S, 1.0 / S), 0.0), H)


def _of_size(sizes: tuple[int, int, int], sentence: str, **about: Any) -> Problem:
    """Return a stand-in: a random problem of this size."""
    H, S, A = sizes
    low, high = about["rewards"]
    origin = (
        f"{sentence}, a random Garnet of {S} states, {A} actions and {H} steps, the same at every stage. A Garnet pays "
        f"everywhere; rewards that are rare or far are learned later. Rewards are taken to lie in {low:g}..{high:g} "
        "(--reward-range)"
    )
    model = Garnet(S, A, H, branching=min(3, S)).model
    return Problem(model, origin, true=False, **about)


@contextmanager
def _refused(name: str) -> Iterator[None]:
    """Add to errors about an environment the options that are missing.

    Warnings are not shown.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            yield
    except (TypeError, ValueError) as error:
        raise GridError(f"--env {name}: {error} Here: --horizon STEPS, --reward-range LEAST LARGEST") from None


def _paid_outside(env: gym.Env[Any, Any], horizon: int, low: float, high: float) -> float | None:
    """Return a reward outside the range, or None if simulated users find none.

    The users take random actions in some episodes.
    """
    env.action_space.seed(0)
    steps, begun = 0, time.monotonic()
    with suppress(Exception), warnings.catch_warnings():  # what else is wrong is said by `train`
        warnings.simplefilter("ignore")
        while steps < PROBED and time.monotonic() - begun < 2.0:  # seconds, for slow environments
            env.reset(seed=steps)
            for _ in range(horizon):
                _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
                steps += 1
                if not low <= float(reward) <= high:
                    return float(reward)
                if terminated or truncated:
                    break
    return None


@lru_cache(maxsize=4)
def _met_again(name: str, options: str) -> TabularEnv:
    own, adapters = parted(name, json.loads(options))
    bounds = {key: adapters.pop(key) for key in ("bins", "low", "high") if key in adapters}
    env = make_env(name, own, **bounds)
    with _refused(name):
        board = OpenBillboard(env, **adapters)
        truth = true_model(env, board)
    if isinstance(truth, TabularModel):
        return TabularEnv(truth)
    H, S, A = board.sizes
    if S * S * A > MOST_ROOMS:
        raise GridError(
            f"--env {name}: it has {S:,} states and {A} actions, too many for thousands of runs. Leave --env out: the "
            "guarantee of a boundary is the same for every environment."
        )
    return TabularEnv(TabularModel(np.full((S, A, S), 1.0 / S), np.full((S, A), 0.5), np.full(S, 1.0 / S), H))


def stand_in(name: str, options: Mapping[str, Any]) -> TabularEnv:
    """Return a tabular environment in place of one of another package.

    It has the same table of transitions, or else the same sizes, and its users can come again.

    An audit meets the same users thousands of times. Where an environment has no table, its users walk at random
    through as many states; rewards are tossed. A guarantee holds for users of any environment,
    so that these will do to break it.
    """
    return _met_again(name, json.dumps(options, sort_keys=True))


def settings(part: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options of ``train`` that set these options of a part.

    A part is the environment, the boundary or the agent.
    """
    for name, value in options.items():
        yield from ("--set", f"{part}.{name}={value if isinstance(value, str) else json.dumps(value)}")


def _listed(value: Any) -> str:
    """Return one number, or several with commas between them, as text."""
    return ",".join(f"{number:g}" for number in (value if isinstance(value, list | tuple) else [value]))

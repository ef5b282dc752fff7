"""Checks and conversions of the arguments of agents."""

from __future__ import annotations

import math
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from private_rl_gym.caller import warn
from private_rl_gym.planning.arrays import among, shown
from private_rl_gym.wrappers.admission import BudgetExhausted
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.open_billboard import OpenBillboard
from private_rl_gym.wrappers.sources import layers

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

    from private_rl_gym.agents.base import Agent

__all__ = ["board_of", "check_statistic", "checked_policy", "single_env", "users_of", "vectorized"]

WATCHING = ("VecMonitor", "VecCheckNan")
"""Stable-Baselines3's wrappers of a ``VecEnv`` that change neither observations nor rewards."""


def checked_policy(kind: type[Agent], policy: Any) -> None:
    """Raise ValueError unless ``policy`` is None or a name valid for such an agent."""
    if policy is not None and not among(policy, kind.policies):
        if isinstance(policy, str) and policy not in gym.registry:
            raise ValueError(f"policy is {policy!r}: {kind.__name__} has one kind, {kind.policies[0]!r}.")
        raise ValueError(f"The policy comes first, then the environment: {kind.__name__}({kind.policies[0]!r}, env).")


def users_of(agent: Agent, total_timesteps: Any, *, first: bool) -> int:
    """Return the number of users who take this number of steps, rounded up.

    Raises BudgetExhausted if fewer may come. With ``first``, warns if a number of steps seems to be one of users, or is
    too small to learn from.
    """
    number = total_timesteps if isinstance(total_timesteps, int | float | np.integer | np.floating) else math.nan
    horizon, board = agent.horizon, agent.board
    if not 0 < number < math.inf or isinstance(total_timesteps, bool):
        raise ValueError(
            f"total_timesteps is {shown(total_timesteps)}: give a number of steps above 0. A user alone takes "
            f"{horizon}."
        )
    users = -(-math.ceil(number) // horizon)
    assert board is not None  # noqa: S101 - it has a horizon
    left, size = board.users_left, agent.learns_from
    if left is not None and users > left:
        raise BudgetExhausted(
            f"{total_timesteps} steps are {users} users of {horizon} steps each, and the boundary admits only {left} "
            f"more of its {board.users} users. Nothing was released. Learn from fewer steps, or build a new boundary "
            "with a larger users=."
        )
    mistaken = total_timesteps == left and horizon > 1
    if first and not agent.num_timesteps and left == board.users and users != left and (mistaken or users < size):
        several = "1 user" if users == 1 else f"{users:,} users"
        little = f" A batch has {size:,} users, and nothing is learned from fewer." if users < size else ""
        coming = "" if left is None else f" of the {left:,} who may come"
        needed = f"{size} * {horizon}) for a batch" if left is None else f"{left} * {horizon}) for all of them"
        warn(
            f"{total_timesteps:,} steps are {several}{coming}, because each counts as {horizon} steps.{little} "
            f"Write learn({needed}."
        )
    return users


def board_of(single: gym.Env[Any, Any], agent: Agent) -> Boundary:
    """Return the boundary in this environment, or an ``OpenBillboard`` around it.

    A notice is given in the second case.
    """
    kind = type(agent).__name__
    board = next((layer for layer in layers(single) if isinstance(layer, Boundary)), None)
    if board is not None:
        outside = [type(layer).__name__ for layer in takewhile(lambda layer: layer is not board, layers(single))]
        if outside:
            warn(
                f"{', '.join(outside)} outside the {type(board).__name__} will have no effect, because agents run "
                "users through the boundary. Put wrappers inside the boundary, around the environment."
            )
        return board
    if getattr(single, "ledger", None) is not None:
        raise ValueError(f"{type(single).__name__} publishes no sums, and {kind} learns from sums. Use LDPUserSide.")
    board = OpenBillboard(single)
    notice = "This run is not private: there is no trust boundary around the environment."
    if agent.private:
        warn(f"{notice} Put one around it, such as JDPBillboard; or an OpenBillboard, if exact sums are meant.")
    elif agent.verbose:
        print(notice)
    return board


def check_statistic(agent: Agent, board: Boundary) -> None:
    """Raise ValueError unless this boundary suits the agent.

    It must publish the statistic that the agent learns from, as often as the agent needs.
    """
    name, kind, there = type(agent).__name__, type(board).__name__, board.statistic.name
    if there != agent.statistic:
        raise ValueError(
            f"{name} learns from {agent.statistic} sums, and the {kind} publishes {there} ones. Build the boundary "
            f"without statistic=, or with statistic={agent.statistic!r}. Under a shuffler, give it to the LDPUserSide "
            "inside."
        )
    if agent.plans_batches and not (board.closes_early or (agent.takes_large_batches and board.least_batch > 1)):
        raise ValueError(
            f"{name} closes batches itself, which would cost this {kind} its guarantee: use SDPShuffler, LDPUserSide, "
            "or JDPBillboard with counting='batched'."
        )


def vectorized(board: Boundary) -> VecEnv:
    """Return a ``VecEnv`` with the board in it, for Stable-Baselines3's callbacks."""
    from stable_baselines3.common.vec_env import DummyVecEnv

    return DummyVecEnv([lambda: board])


def _counted(thing: Any, inside: Any) -> str:
    kind = type(thing).__name__
    return f"A {kind}" if inside is None else f"A {kind} with {len(inside)} environments in it"


def single_env(env: gym.Env[Any, Any] | VecEnv | str) -> gym.Env[Any, Any]:
    """Return the single environment behind an environment, its id or a ``VecEnv``."""
    if isinstance(env, str):
        return gym.make(env)
    if isinstance(env, gym.Env):
        return env
    _refuse_changes(env)
    inside = getattr(env, "envs", None)
    if callable(env):
        what = f"The class {env.__name__}" if isinstance(env, type) else "A function"
        raise TypeError(f"{what} is not one environment: call it, and give what it returns.")
    if inside is None or len(inside) != 1:
        raise TypeError(
            f"{_counted(env, inside)} is not one environment: give the agent a Gymnasium environment, the id of one, "
            "or a DummyVecEnv with one in it. Many users at a time are served by the boundary."
        )
    single: gym.Env[Any, Any] = inside[0]
    return single


def _refuse_changes(env: Any) -> None:
    """Raise ValueError for Stable-Baselines3's wrappers that change the data of a ``VecEnv``.

    They would have no effect, because users are served inside them.
    """
    while "venv" in getattr(env, "__dict__", {}):
        kind = type(env).__name__
        if kind == "VecNormalize":
            raise ValueError(
                "VecNormalize scales by statistics of users, which no guarantee covers. Give the environment inside "
                "it. Scale observations by public constants, with gymnasium.wrappers.TransformObservation around the "
                "environment. NormalizeObservation is not covered either. Rewards need no scaling for gradients; for "
                "counts, give reward_range=."
            )
        if kind not in WATCHING:
            raise ValueError(
                f"{kind} would have no effect, because agents run users inside it. Give the environment itself, with a "
                "wrapper of gymnasium.wrappers that does the same."
            )
        env = env.venv

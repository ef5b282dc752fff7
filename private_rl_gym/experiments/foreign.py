"""Environments and agents of somebody else: any Gymnasium id, and ``module:object``.

Names with a colon import code. So they are typed by whoever runs a command; a file that names code has its modules
named beside it, by ``--import``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Collection, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import load_env_creator

from private_rl_gym.agents.base import Agent
from private_rl_gym.envs.finite import FiniteModel
from private_rl_gym.envs.model import TabularModel
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.experiments.names import AGENTS, ENVIRONMENTS, GridError, Named, imported
from private_rl_gym.planning.policy import Policy
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.spaces import Discretize, FlattenSpaces, boxes_of

__all__ = [
    "ADAPTERS",
    "GRADIENTS",
    "MOST_ENTRIES",
    "agent_named",
    "is_foreign",
    "make_env",
    "padded_for",
    "parted",
    "require_typed",
    "true_model",
]

MOST_ENTRIES = 10**7
"""The largest table of transitions that is read as a true model."""

GRADIENTS = (
    "Without bins, private_rl_gym.make_private learns there by policy gradients: docs/agents/dp-policy-gradient.md"
)
"""A sentence for those whose observations are numbers."""

ADAPTERS = ("horizon", "reward_range", "bins", "low", "high")
"""Options of somebody else's environment that are not its own: two are the boundary's, and three make bins."""


def is_foreign(name: str) -> bool:
    """Whether a name is of something outside this package: ``module:object``, or an id that Gymnasium knows."""
    return ":" in name or (name in gym.registry and name not in ENVIRONMENTS)


def require_typed(name: Any, code: Collection[str], where: str) -> None:
    """Refuse a name that a file gives and that imports code, unless its module was typed."""
    module, colon, _ = str(name).partition(":")
    if colon and module not in code:
        raise GridError(f"{where} names code, {name!r}: if you trust it, add --import {module}")


def _imported(name: str) -> Any:
    """The object in ``module:object``; None if the module has no such object."""
    module, _, path = name.partition(":")
    try:
        return imported(module, path)
    except AttributeError:
        return None  # perhaps an id that the module has registered
    except ImportError as error:
        raise GridError(f"{name!r}: there is no module {module!r} to import ({error}).") from None


def _in_module(name: str) -> str:
    """A sentence that says which environments a module has, where it has none of this name."""
    module, _, path = name.partition(":")
    found = vars(sys.modules[module])
    names = sorted(
        key
        for key, kind in found.items()
        if inspect.isclass(kind) and issubclass(kind, gym.Env) and kind.__module__.startswith(module)
    )
    there = f"Its environments: {', '.join(names)}." if names else "It has no class that is a gymnasium.Env."
    return f"the module {module!r} has nothing that is called {path!r}. {there}"


def agent_named(name: str, where: str = "--agent") -> Named:
    """An agent of this package, or one of somebody else in ``module:object``."""
    if not isinstance(name, str) or ":" not in name:
        return AGENTS.find(name, where)
    kind = _imported(name)
    if not (inspect.isclass(kind) and issubclass(kind, Agent)):
        raise GridError(f"{where} {name}: it must be a subclass of private_rl_gym.agents.Agent.")
    return Named(name, "", kind, AGENTS["UCBVI"].reserved)


def parted(name: str, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of somebody else's environment: those of its constructor, and those of adapters.

    An option that the constructor takes is its own, whatever its name.
    """
    made: Any = _imported(name) if ":" in name else None
    if made is None:
        spec = gym.registry.get(name.partition(":")[2] or name)
        made = None if spec is None else spec.entry_point
        made = load_env_creator(made) if isinstance(made, str) else made
    try:
        taken = set(inspect.signature(made).parameters) if callable(made) else set()
    except ValueError:
        taken = set()
    adapters = {key: value for key, value in options.items() if key in ADAPTERS and key not in taken}
    return {key: value for key, value in options.items() if key not in adapters}, adapters


def make_env(
    name: str, options: Mapping[str, Any], *, bins: Any = None, low: Any = None, high: Any = None
) -> gym.Env[Any, Any]:
    """The environment with this name, with the adapters that its spaces need."""
    made = _imported(name) if ":" in name else None
    identity = ENVIRONMENTS.find(name, "--env").name if not is_foreign(name) else name
    try:
        env = made(**options) if callable(made) else gym.make(identity, **options)
    except gym.error.UnregisteredEnv as error:
        raise GridError(f"--env {name}: {_in_module(name) if ':' in name else error}") from None
    except (gym.error.Error, TypeError) as error:
        raise GridError(f"--env {name}: {error}") from None
    if not isinstance(env, gym.Env):
        raise GridError(f"--env {name}: it makes a {type(env).__name__}, and must make a gymnasium.Env.")
    if isinstance(env.unwrapped, TabularEnv):
        if bins is not None:
            raise GridError(f"--env {name}: bins are for observations in a Box, and its states are counted already.")
        return env
    boxes = boxes_of(env.observation_space)
    if bins is not None and not boxes:
        raise GridError(f"--env {name}: its observations, {env.observation_space}, need no bins. Leave --bins out.")
    if isinstance(env.observation_space, spaces.Box) and bins is None:
        raise GridError(
            f"--env {name}: its observations are {env.observation_space}. Say the bins, in a grid by bins = 8 in "
            f"the table of the environment; in a command, add --bins 8. {GRADIENTS}"
        )
    if bins is not None:
        try:
            env = Discretize(env, bins, low, high)
        except (TypeError, ValueError) as error:
            bounds = " Add --low=... --high=..., or low = and high = in a grid." if "bounds" in str(error) else ""
            raise GridError(f"--env {name}: {error}{bounds}") from None
    if not (isinstance(env.observation_space, spaces.Discrete) and isinstance(env.action_space, spaces.Discrete)):
        try:
            env = FlattenSpaces(env)
        except (TypeError, ValueError) as error:
            here = " Here: --bins 8" if str(error).endswith("Discretize(env, bins=...)") else ""
            raise GridError(f"--env {name}: {error}{here}") from None
    return env


def true_model(env: gym.Env[Any, Any], board: Boundary) -> FiniteModel | None:
    """The true model, where the environment knows it, or has a table of transitions; else None."""
    bare, population = env.unwrapped, board.population
    if population.model is not None:
        if population.model.horizon != population.horizon:
            raise GridError(
                f"horizon is {population.horizon}: {env} has one of its own, {population.model.horizon}. Leave it out."
            )
        return population.model
    table = getattr(bare, "P", None)
    if not isinstance(table, dict) or population.n_states**2 * population.n_actions > MOST_ENTRIES:
        return None
    if len(table) != population.n_states - 1:
        return None
    rewards = population.rewards
    try:
        return TabularModel.from_gym(env, population.horizon, (rewards.low, rewards.high))
    except (TypeError, ValueError, AttributeError, LookupError):
        return None


def padded_for(truth: FiniteModel, policy: Policy) -> Policy:
    """The same policy with a row for each state in which ended episodes wait, of which a model may have several."""
    if policy.n_states == truth.n_states:
        return policy
    more = truth.n_states - policy.n_states
    return truth.policy(np.concatenate([policy.table, *[policy.table[:, -1:]] * more], axis=1))

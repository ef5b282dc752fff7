"""Environments from outside this package, with the adapters that they need.

They are any Gymnasium id, and ``module:object``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium import spaces
from gymnasium.envs.registration import load_env_creator

from private_rl_gym.envs.finite import FiniteModel
from private_rl_gym.envs.model import TabularModel
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.lab.references import GridError, Reference
from private_rl_gym.lab.registry import ENVIRONMENTS
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.spaces import Discretize, FlattenSpaces, boxes_of

__all__ = [
    "ADAPTERS",
    "GRADIENTS",
    "MOST_ENTRIES",
    "is_foreign",
    "make_env",
    "parted",
    "true_model",
]

MOST_ENTRIES = 10**7
"""The largest table of transitions that is read as a true model."""

GRADIENTS = (
    "Without bins, private_rl_gym.make_private learns there by policy gradients: docs/agents/dp-policy-gradient.md"
)
"""The end of an error about observations that are numbers."""

ADAPTERS = ("horizon", "reward_range", "bins", "low", "high")
"""Options of an environment from outside that are not its own: two are the boundary's, and three make bins."""


def is_foreign(name: str) -> bool:
    """Return whether a name is of an environment outside this package.

    Such a name is ``module:object``, or an id that Gymnasium knows.
    """
    return ":" in name or (name in gym.registry and name not in ENVIRONMENTS)


def _in_module(name: str) -> str:
    """Return a sentence about the environments of a module.

    It is for errors about a name that the module does not have.
    """
    module, _, path = name.partition(":")
    found = vars(sys.modules[module])
    names = sorted(
        key
        for key, kind in found.items()
        if inspect.isclass(kind) and issubclass(kind, gym.Env) and kind.__module__.startswith(module)
    )
    there = f"Its environments: {', '.join(names)}." if names else "It has no class that is a gymnasium.Env."
    return f"the module {module!r} has nothing that is called {path!r}. {there}"


def parted(name: str, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of a constructor and those of adapters, as two dictionaries.

    They are the options of an environment from outside.

    An option that the constructor takes is its own, whatever its name.
    """
    made: Any = Reference(name).load() if ":" in name else None
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
    """Return the environment with this name, with the adapters that its spaces need."""
    made = Reference(name).load() if ":" in name else None
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
            raise GridError(
                f"--env {name}: bins are for observations in a Box, and this environment has Discrete ones. Leave "
                "the bins out."
            )
        return env
    boxes = boxes_of(env.observation_space)
    if bins is not None and not boxes:
        raise GridError(f"--env {name}: its observations, {env.observation_space}, need no bins. Leave --bins out.")
    if isinstance(env.observation_space, spaces.Box) and bins is None:
        raise GridError(
            f"--env {name}: its observations are {env.observation_space}. Divide them into bins: in a command with "
            f"--bins 8, and in a grid with bins = 8 in the table of the environment. {GRADIENTS}"
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
    """Return the true model, or None if it is not known.

    The environment may know its model, or have a table of transitions.
    """
    bare, source = env.unwrapped, board.source
    if source.model is not None:
        if source.model.horizon != source.horizon:
            raise GridError(
                f"horizon is {source.horizon}: {env} has one of its own, {source.model.horizon}. Leave it out."
            )
        return source.model
    table = getattr(bare, "P", None)
    if not isinstance(table, dict) or source.n_states**2 * source.n_actions > MOST_ENTRIES:
        return None
    if len(table) != source.n_states - 1:
        return None
    rewards = source.rewards
    try:
        return TabularModel.from_gym(env, source.horizon, (rewards.low, rewards.high))
    except (TypeError, ValueError, AttributeError, LookupError):
        return None

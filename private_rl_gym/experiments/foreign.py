"""Runs on environments and agents of somebody else: any Gymnasium id, and ``module:object``.

Names with a colon import code. So they come from the command line of whoever runs it, and never from a file of data.
"""

from __future__ import annotations

import csv
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

import private_rl_gym
from private_rl_gym.agents.base import Agent
from private_rl_gym.envs.finite import FiniteModel
from private_rl_gym.envs.model import TabularModel
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.experiments.cell import heard
from private_rl_gym.experiments.drawing import new_axes, save
from private_rl_gym.experiments.names import AGENTS, ENVIRONMENTS, GridError, Named, imported
from private_rl_gym.experiments.regret import served
from private_rl_gym.planning.policy import Policy
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.population import BadUserError
from private_rl_gym.wrappers.spaces import Discretize, FlattenSpaces

__all__ = ["MOST_ENTRIES", "Run", "agent_named", "is_foreign", "make_env", "train_foreign", "true_model", "write_run"]

CHECKS = 20
"""Number of policies on the way whose value is told."""

EPISODES = 100
"""Episodes that estimate a value where the true model is not known. They are not those of users."""

MOST_ENTRIES = 10**7
"""The largest table of transitions that is read as a true model."""


def is_foreign(name: str) -> bool:
    """Whether a name is of something outside this package: ``module:object``, or an id that Gymnasium knows."""
    return ":" in name or (name in gym.registry and name not in ENVIRONMENTS)


def _imported(name: str) -> Any:
    """The object in ``module:object``; None if the module has no such object."""
    module, _, path = name.partition(":")
    try:
        return imported(module, path)
    except AttributeError:
        return None  # perhaps an id that the module has registered
    except ImportError as error:
        raise GridError(f"{name!r}: there is no module {module!r} to import ({error}).") from None


def agent_named(name: str) -> Named:
    """An agent of this package, or one of somebody else in ``module:object``."""
    if ":" not in name:
        return AGENTS.find(name, "--agent")
    kind = _imported(name)
    if not (inspect.isclass(kind) and issubclass(kind, Agent)):
        raise GridError(f"--agent {name}: it must be a subclass of private_rl_gym.agents.Agent.")
    return Named(name, "", kind, frozenset({"policy", "env", "verbose", "tensorboard_log", "seed"}))


def make_env(
    name: str, options: Mapping[str, Any], *, bins: Any = None, low: Any = None, high: Any = None
) -> gym.Env[Any, Any]:
    """The environment with this name, with the adapters that its spaces need."""
    made = _imported(name) if ":" in name else None
    identity = ENVIRONMENTS.find(name, "--env").name if not is_foreign(name) else name
    try:
        env = made(**options) if callable(made) else gym.make(identity, **options)
    except gym.error.Error as error:
        raise GridError(f"--env {name}: {error}") from None
    except TypeError as error:
        raise GridError(f"--env {name}: {error}") from None
    if not isinstance(env, gym.Env):
        raise GridError(f"--env {name}: it makes a {type(env).__name__}, and must make a gymnasium.Env.")
    if isinstance(env.unwrapped, TabularEnv):
        return env
    if isinstance(env.observation_space, spaces.Box):
        if bins is None:
            raise GridError(f"--env {name}: its observations are {env.observation_space}. Say the bins: add --bins 8")
        try:
            env = Discretize(env, bins, low, high)
        except ValueError as error:
            raise GridError(f"--env {name}: {error} Add --low=... --high=...") from None
    if not (isinstance(env.observation_space, spaces.Discrete) and isinstance(env.action_space, spaces.Discrete)):
        try:
            env = FlattenSpaces(env)
        except (TypeError, ValueError) as error:
            raise GridError(f"--env {name}: {error}") from None
    return env


def true_model(env: gym.Env[Any, Any], board: Boundary) -> FiniteModel | None:
    """The true model, where the environment knows it, or has a table of transitions; else None."""
    bare, population = env.unwrapped, board.population
    if population.model is not None:
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


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A finished run.

    Attributes:
        about: Configuration, ledger and numbers, ready for JSON.
        measure: ``"regret"`` where the true model is known, else ``"return"``.
        curve: Pairs of a number of users, and the regret after them, or the mean return of the policy they got.
        agent: The agent.
    """

    about: dict[str, Any]
    measure: str
    curve: list[tuple[int, float]]
    agent: Agent


def train_foreign(
    make: Callable[[], gym.Env[Any, Any]],
    kind: Named,
    boundary: Named,
    config: dict[str, Any],
    options: Mapping[str, Any],
    told: Callable[[int], None] = lambda _: None,
) -> Run:
    """Let an agent learn from all users, and tell what its policies are worth.

    Args:
        make: Makes the environment; where its model is not known, a second one is made, to try policies on.
        kind: The agent.
        boundary: The boundary.
        config: The configuration, as it is written down: ``users`` and ``seed``, and ``agent`` with options.
        options: The options of the boundary.
        told: Called with the number of users so far.
    """
    users, seed = config["users"], config["seed"]
    streams = np.random.SeedSequence(seed).generate_state(4).tolist()
    env = make()
    env.reset(seed=streams[0])
    chosen = dict(options)
    if boundary.takes("seed"):
        chosen["seed"] = streams[1]
    try:
        with heard():  # what printed constants really cost is in the ledger
            board: Boundary = boundary.kind(env, users=users, **chosen)
        with heard() as sentences:
            agent: Agent = kind.kind("TabularPolicy", board, seed=streams[2], **config["agent"]["options"])
            _ = board.release  # refused here, if it does not fit into memory
    except (TypeError, ValueError, MemoryError) as error:
        raise GridError(str(error)) from None
    truth = true_model(env, board)
    judge = _Judge(truth, board, None if truth is not None else make(), streams[3])
    marks = set(np.unique(np.geomspace(1, users, CHECKS).astype(int)).tolist())
    curve, regret = [], 0.0
    try:
        for start, stop, policy in served(agent, users):
            if truth is not None:
                regret += (stop - start) * (judge.best - judge.value(policy))
                curve.append((stop, regret))
            elif any(start < mark <= stop for mark in marks):
                curve.append((stop, judge.value(policy)))
            told(stop)
    except BadUserError as error:
        raise GridError(f"{error} Here: --reward-range LEAST LARGEST") from None
    last = judge.value(agent.best_policy())
    numbers = {"value": last}
    if truth is not None:
        numbers |= {"regret": regret, "optimal_value": judge.best}
    guarantee = agent.guarantee
    about = {
        "package": private_rl_gym.__version__,
        "config": config,
        "ledger": board.ledger.to_dict(),
        "guarantee": str(guarantee),
        "reward_range": [board.population.rewards.low, board.population.rewards.high],
        **numbers,
        "warnings": sentences,
    }
    return Run(about, "return" if truth is None else "regret", curve, agent)


class _Judge:
    """Tells the value of policies: exactly, in mapped rewards, or by episodes of its own, in rewards as they are."""

    def __init__(self, truth: FiniteModel | None, board: Boundary, env: gym.Env[Any, Any] | None, seed: int) -> None:
        self._truth, self._population, self._env, self._seed = truth, board.population, env, seed
        self._rng = np.random.default_rng(seed)
        self.best = 0.0 if truth is None else truth.optimal_value()

    def value(self, policy: Policy) -> float:
        """The value of a policy."""
        if self._truth is not None:
            return self._truth.value_of(self._for_truth(policy))
        env, population = self._env, self._population
        assert env is not None  # noqa: S101 - made where the truth is not known
        total = 0.0
        for episode in range(EPISODES):
            observation, _ = env.reset(seed=self._seed if episode == 0 else None)
            for stage in range(population.horizon):
                uniform = None if policy.deterministic else float(self._rng.random())
                action = policy.action(stage, population.state_of(observation), uniform)
                observation, reward, terminated, truncated, _ = env.step(population.env_action(action))
                total += float(reward)
                if terminated or truncated:
                    break
        return total / EPISODES

    def _for_truth(self, policy: Policy) -> Policy:
        """The same policy with a row for each state in which ended episodes wait, of which a model may have several."""
        assert self._truth is not None  # noqa: S101 - its caller has looked
        if policy.n_states == self._truth.n_states:
            return policy
        more = self._truth.n_states - policy.n_states
        return self._truth.policy(np.concatenate([policy.table, *[policy.table[:, -1:]] * more], axis=1))


def write_run(run: Run, folder: Path) -> list[Path]:
    """Write the record, the curve and the figure of a run."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        record, curve = folder / "record.json", folder / "curve.csv"
        record.write_text(json.dumps({**run.about, "curve": run.curve}, indent=2) + "\n")
        with curve.open("w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(["users", run.measure])
            lines.writerows(run.curve)
        figure, axes = new_axes(run.about["guarantee"])
        axes.plot(*zip(*run.curve, strict=True), marker="o" if run.measure == "return" else None)
        axes.set_xlabel("users")
        axes.set_ylabel(f"{run.measure} of the policy" if run.measure == "return" else run.measure)
        return [record, curve, *save(figure, folder / run.measure)]
    except OSError as error:
        raise GridError(f"{folder} cannot be written to ({error.strerror or type(error).__name__}).") from None

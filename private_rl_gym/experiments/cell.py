"""One cell of a grid: build a stack, learn, and return a record. A pure function of the configuration."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np

import private_rl_gym
from private_rl_gym.agents.base import Agent
from private_rl_gym.experiments.config import FORMAT, Cell
from private_rl_gym.experiments.foreign import agent_named, is_foreign, make_env, parted, true_model
from private_rl_gym.experiments.judge import Exact, Judge, Tried
from private_rl_gym.experiments.names import BOUNDARIES, GridError, Named
from private_rl_gym.experiments.record import Record
from private_rl_gym.experiments.regret import served
from private_rl_gym.planning.policy import Policy
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.population import BadUserError

__all__ = ["build", "heard", "run_cell", "train_cell"]


@contextmanager
def heard() -> Iterator[list[str]]:
    """Collect the sentences of user warnings, each once, in place of printing them."""
    sentences: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        shown = warnings.showwarning

        def hear(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if not issubclass(category, UserWarning):
                shown(message, category, *where, **more)
            elif str(message) not in sentences:
                sentences.append(str(message))

        warnings.showwarning = hear
        yield sentences


def build(cell: Cell) -> Agent:
    """Build the seeded agent with its boundary and environment; raises an error if the configuration is wrong."""
    with heard():
        return _build(cell)


def _environment(cell: Cell) -> tuple[gym.Env[Any, Any], dict[str, Any]]:
    """The environment, with its adapters, and those of its options that are for the boundary."""
    name, options = cell.environment.name, cell.environment.options
    if not is_foreign(name):
        return gym.make(name, **options), {}
    own, adapters = parted(name, options)
    bounds = {key: adapters.pop(key) for key in ("bins", "low", "high") if key in adapters}
    return make_env(name, own, **bounds), adapters


def _build(cell: Cell) -> Agent:
    env, adapters = _environment(cell)
    if adapters or is_foreign(cell.environment.name):
        env.reset(seed=cell.stream("environment") % 2**31)
    else:
        env.unwrapped.reset(seed=cell.stream("environment"))
    kind: type[Agent] = agent_named(cell.agent.name, "agent").kind
    wrapper = BOUNDARIES[cell.boundary.name]
    options: dict[str, Any] = dict(cell.boundary.options)
    for name, value in adapters.items():
        if name in options:
            raise GridError(f"{name} is said of the boundary and of the environment: say it in one of both places.")
        options[name] = tuple(value) if isinstance(value, list) else value
    if wrapper.takes("seed"):
        options["seed"] = cell.stream("noise")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what printed constants really cost is in the ledger
        board: Boundary = _built(wrapper, env, cell.users, options)
    true_model(env, board)  # a horizon that does not fit is refused here
    return kind("TabularPolicy", board, seed=cell.stream("agent"), **cell.agent.options)


def _built(wrapper: Named, env: gym.Env[Any, Any], users: int, options: dict[str, Any]) -> Boundary:
    try:
        board: Boundary = wrapper.kind(env, users=users, **options)
    except ValueError as error:
        if "has no horizon" not in str(error):
            raise
        raise GridError(f"{error} Here: --horizon STEPS, or horizon = STEPS in a grid.") from None
    return board


def _judge(cell: Cell, board: Boundary) -> Judge:
    """The judge of policies: the true model where there is one, else episodes in another environment."""
    truth = true_model(board.env, board)
    if truth is not None:
        return Exact(truth)
    return Tried(_environment(cell)[0], board.population, cell.stream("judge"))


def run_cell(cell: Cell) -> Record:
    """Run a cell, and return its record."""
    return train_cell(cell)[0]


def train_cell(cell: Cell, told: Callable[[int], None] = lambda _: None) -> tuple[Record, Agent]:
    """Let the agent learn from all users, one release at a time, and judge every policy.

    Where the true model is known, the curve is regret, and every policy counts. Elsewhere it is the return of the
    policy that a user gets, at some users, in episodes of others. The record has the agent's warnings, such as that too
    few users come for it to learn anything.
    """
    with heard() as sentences:
        agent = _build(cell)
        board = agent.board
        assert board is not None  # noqa: S101 - it was built with one
        judge = _judge(cell, board)
        marks = np.unique(np.geomspace(1, cell.users, min(judge.points, cell.users)).astype(np.int64))
        marks[-1] = cell.users
        curve, noise = np.empty(len(marks)), np.empty(len(marks))
        total, gap, mistakes = 0.0, 0.0, 0
        with _with_the_line_to_add():
            before = board.release  # from here on its sums take memory
        for start, stop, policy in _served(agent, cell.users):
            here = (marks > start) & (marks <= stop)
            if isinstance(judge, Exact):
                gap = judge.best - judge.value(policy)
                curve[here] = total + gap * (marks[here] - start)
                total += gap * (stop - start)
                mistakes += stop - start if cell.alpha is not None and gap > cell.alpha else 0
            elif here.any():
                curve[here] = judge.value(policy)
            noise[here] = before.noise_std[before.headline]
            before = board.release
            noise[marks == stop] = before.noise_std[before.headline]
            told(stop)
        deployed = judge.value(agent.best_policy())
    horizon, n_states, n_actions = board.sizes
    blind = judge.value(Policy.uniform(horizon=horizon, n_states=n_states, n_actions=n_actions))
    guarantee = agent.guarantee
    about = {
        "format": FORMAT,
        "package": private_rl_gym.__version__,
        "config": cell.to_dict(),
        "ledger": board.ledger.to_dict(),
        "guarantee": str(guarantee),
        "epsilon": guarantee.to_dict()["epsilon"],
        "delta": guarantee.delta,
        "covers": str(guarantee.covers),
        "blind_value": blind,
        "warnings": sentences,
    }
    if isinstance(judge, Exact):
        about |= {
            "optimal_value": judge.best,
            "regret": float(curve[-1]),
            "last_gap": gap,
            "deployed_gap": judge.best - deployed,
            **({} if cell.alpha is None else {"mistakes": mistakes}),
        }
    else:
        about |= {"measure": judge.measure, "return": float(curve[-1]), "deployed_value": deployed}
    return Record(cell.key, about, marks, curve, noise), agent


def _served(agent: Agent, users: int) -> Iterator[tuple[int, int, Policy]]:
    """The policies of all users."""
    with _with_the_line_to_add():
        yield from served(agent, users)


@contextmanager
def _with_the_line_to_add() -> Iterator[None]:
    """End errors about a user who cannot be counted, and about sums that do not fit, with the line to add."""
    try:
        yield
    except BadUserError as error:
        raise GridError(
            f"{error} Here: --reward-range LEAST LARGEST, or reward_range = [[least, largest]] in a grid."
        ) from None
    except MemoryError as error:
        raise GridError(f"{error} Here: --agent FrugalUCBVI, or --horizon STEPS for fewer steps.") from None

"""One cell of a grid: build a stack, learn, and return a record.

A run is a pure function of the configuration.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np

import private_rl_gym
from private_rl_gym.agents.base import Agent
from private_rl_gym.lab.foreign import make_env, parted, true_model
from private_rl_gym.lab.grids.cell import FORMAT, Cell
from private_rl_gym.lab.grids.record import Record
from private_rl_gym.lab.references import GridError, Reference
from private_rl_gym.lab.registry import AGENTS, BOUNDARIES, ENVIRONMENTS
from private_rl_gym.lab.regret import EpisodeJudge, ExactJudge, Judge, stretches
from private_rl_gym.planning.policy import Policy
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.sources import BadUserError, EnvironmentSource

__all__ = ["build", "loaded", "run_cell", "train_cell"]


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
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
    """Return the seeded agent with its boundary and environment.

    Raise an error if the configuration is wrong.
    """
    with collected_warnings():
        return _build(cell)


def _environment(cell: Cell) -> tuple[gym.Env[Any, Any], dict[str, Any]]:
    """Return the environment with its adapters, and the options for the boundary.

    These are options of the environment in the configuration.
    """
    entry, options = ENVIRONMENTS.find(cell.environment.name, "environment"), cell.environment.options
    if entry.packaged:
        return gym.make(entry.name, **options), {}
    own, adapters = parted(entry.name, options)
    bounds = {key: adapters.pop(key) for key in ("bins", "low", "high") if key in adapters}
    return make_env(entry.name, own, **bounds), adapters


def loaded(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with the classes that they name."""
    return {name: value.load() if isinstance(value, Reference) else value for name, value in options.items()}


def _build(cell: Cell) -> Agent:
    env, adapters = _environment(cell)
    users = cell.stream("environment")
    if cell.environment.name in ENVIRONMENTS:
        env.unwrapped.reset(seed=users)
    else:
        env.reset(seed=users % 2**31)
    entry, options = BOUNDARIES.find(cell.boundary.name, "boundary"), loaded(cell.boundary.options)
    for name, value in adapters.items():
        if name in options:
            raise GridError(f"{name} is given for the boundary and for the environment. Give it for one of the two.")
        options[name] = tuple(value) if isinstance(value, list) else value
    if entry.takes("seed"):
        options["seed"] = cell.stream("noise")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # what printed constants really cost is in the ledger
            board: Boundary = entry.build(env, users=cell.users, **options)
    except ValueError as error:
        if "has no horizon" not in str(error):
            raise
        raise GridError(f"{error} Here: --horizon STEPS, or horizon = STEPS in a grid.") from None
    true_model(env, board)  # a horizon that does not fit is refused here
    agent = AGENTS.find(cell.agent.name, "agent").kind
    with _with_the_line_to_add():  # an agent binds the board, whose sums must fit into memory
        built: Agent = agent("TabularPolicy", board, seed=cell.stream("agent"), **loaded(cell.agent.options))
    return built


def _judge(cell: Cell, board: Boundary) -> Judge:
    """Return the judge of policies.

    It knows the true model where there is one. Otherwise it runs episodes in another environment.
    """
    truth = true_model(board.env, board)
    if truth is not None:
        return ExactJudge(truth)
    assert isinstance(board.source, EnvironmentSource)  # noqa: S101 - grids are of problems that are counted
    return EpisodeJudge(_environment(cell)[0], board.source, cell.stream("judge"))


def run_cell(cell: Cell) -> Record:
    """Run a cell, and return its record."""
    return train_cell(cell)[0]


def train_cell(cell: Cell, progress: Callable[[int], None] = lambda _: None) -> tuple[Record, Agent]:
    """Return the record and the agent of a cell, after all users.

    Where the true model is known, the curve is regret, and every policy counts. Elsewhere it is the return of the
    policy that a user gets, at some users, in episodes of others. The record has the agent's warnings, such as that too
    few users come for it to learn anything.
    """
    with collected_warnings() as sentences:
        agent = _build(cell)
        board = agent.board
        assert board is not None  # noqa: S101 - it was built with one
        judge = _judge(cell, board)
        marks = np.unique(np.geomspace(1, cell.users, min(judge.points, cell.users)).astype(np.int64))
        marks[-1] = cell.users
        curve, noise = np.empty(len(marks)), np.empty(len(marks))
        total, gap, mistakes = 0.0, 0.0, 0
        before = board.release
        with _with_the_line_to_add():
            for stretch in stretches(agent, cell.users):
                here = (marks > stretch.start) & (marks <= stretch.stop)
                if isinstance(judge, ExactJudge):
                    gap = judge.gap(stretch.policy)
                    curve[here] = total + gap * (marks[here] - stretch.start)
                    total += gap * stretch.users
                    mistakes += stretch.users if cell.alpha is not None and gap > cell.alpha else 0
                elif here.any():
                    curve[here] = judge.value(stretch.policy)
                noise[here] = before.noise_std[before.headline]
                before = board.release
                noise[marks == stretch.stop] = before.noise_std[before.headline]
                progress(stretch.stop)
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
    if isinstance(judge, ExactJudge):
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


@contextmanager
def _with_the_line_to_add() -> Iterator[None]:
    """Add to some errors the line that the user has to write.

    These are errors about users who cannot be counted, and about sums that need too much memory.
    """
    try:
        yield
    except BadUserError as error:
        raise GridError(
            f"{error} Here: --reward-range LEAST LARGEST, or reward_range = [[least, largest]] in a grid."
        ) from None
    except MemoryError as error:
        raise GridError(
            f"{error} Here: --agent FrugalUCBVI --set agent.stationary=true, or --horizon STEPS for fewer steps."
        ) from None

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
from private_rl_gym.experiments.names import AGENTS, BOUNDARIES
from private_rl_gym.experiments.record import Record
from private_rl_gym.experiments.regret import stretches
from private_rl_gym.planning.policy import Policy

__all__ = ["build", "heard", "run_cell", "train_cell"]

POINTS = 200
"""Number of points of a stored curve, on a logarithmic grid; the last point is the exact number of users."""


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


def _build(cell: Cell) -> Agent:
    env = gym.make(cell.environment.name, **cell.environment.options)
    env.unwrapped.reset(seed=cell.stream("environment"))
    kind: type[Agent] = AGENTS[cell.agent.name].kind
    wrapper = BOUNDARIES[cell.boundary.name]
    options: dict[str, Any] = dict(cell.boundary.options)
    if wrapper.takes("seed"):
        options["seed"] = cell.stream("noise")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what printed constants really cost is in the ledger
        board = wrapper.kind(env, users=cell.users, **options)
    return kind("TabularPolicy", board, seed=cell.stream("agent"), **cell.agent.options)


def run_cell(cell: Cell) -> Record:
    """Run a cell, and return its record."""
    return train_cell(cell)[0]


def train_cell(cell: Cell, told: Callable[[int], None] = lambda _: None) -> tuple[Record, Agent]:
    """Let the agent learn from all users, one release at a time, and compare every policy with the true model.

    The record has the agent's warnings, such as that too few users come for it to learn anything.
    """
    with heard() as sentences:
        agent = _build(cell)
        board = agent.board
        assert board is not None  # noqa: S101 - it was built with one
        model = board.unwrapped.model  # type: ignore[attr-defined]
        marks = np.unique(np.geomspace(1, cell.users, min(POINTS, cell.users)).astype(np.int64))
        marks[-1] = cell.users
        regret, noise = np.empty(len(marks)), np.empty(len(marks))
        total, gap, mistakes, before = 0.0, 0.0, 0, board.release
        for stretch in stretches(agent, cell.users):
            gap, count = stretch.gap, stretch.stop - stretch.start
            here = (marks > stretch.start) & (marks <= stretch.stop)
            regret[here] = total + gap * (marks[here] - stretch.start)
            noise[here] = before.noise_std[before.headline]
            total += gap * count
            mistakes += count if cell.alpha is not None and gap > cell.alpha else 0
            before = board.release
            noise[marks == stretch.stop] = before.noise_std[before.headline]
            told(stretch.stop)
        deployed = model.optimal_value() - model.value_of(agent.best_policy())
    blind = Policy.uniform(horizon=model.horizon, n_states=model.n_states, n_actions=model.n_actions)
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
        "optimal_value": model.optimal_value(),
        "blind_value": model.value_of(blind),
        "regret": float(regret[-1]),
        "last_gap": gap,
        "deployed_gap": deployed,
        "warnings": sentences,
        **({} if cell.alpha is None else {"mistakes": mistakes}),
    }
    return Record(cell.key, about, marks, regret, noise), agent

"""What a cell of a grid does: build a stack, learn, and say what happened. A pure function of the configuration."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import private_rl_gym
from private_rl_gym.agents.base import Agent
from private_rl_gym.experiments.config import FORMAT, Cell
from private_rl_gym.experiments.names import AGENTS, BOUNDARIES

__all__ = ["Outcome", "build", "run_cell", "train_cell"]

POINTS = 200
"""Of a curve that is kept, on a logarithmic grid; the last one is exact."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a cell leaves.

    Attributes:
        about: Configuration, ledger, versions and numbers, ready for JSON.
        users, regret, noise: Curves: regret after so many users, and the noise in what was released by then.
    """

    about: dict[str, Any]
    users: NDArray[np.int64]
    regret: NDArray[np.float64]
    noise: NDArray[np.float64]


def build(cell: Cell) -> Agent:
    """The agent with its boundary and environment, seeded; or what is wrong with the configuration."""
    env = gym.make(cell.environment.name, **cell.environment.options)
    env.unwrapped.reset(seed=cell.stream("environment"))
    kind: type[Agent] = AGENTS[cell.agent.name].kind
    wrapper = BOUNDARIES[cell.boundary.name].kind
    options: dict[str, Any] = dict(cell.boundary.options)
    if cell.boundary.name != "open":
        options["seed"] = cell.stream("noise")
    if cell.boundary.name != "sdp":
        options["statistic"] = kind.learns_from
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what printed constants really cost is in the ledger
        board = wrapper(env, users=cell.users, **options)
        return kind("TabularPolicy", board, seed=cell.stream("agent"), **cell.agent.options)


def run_cell(cell: Cell) -> Outcome:
    """What a cell leaves."""
    return train_cell(cell)[0]


def train_cell(cell: Cell, told: Callable[[int], None] = lambda _: None) -> tuple[Outcome, Agent]:
    """Let the agent learn from all users, a release at a time, and hold every policy against the truth."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        agent = build(cell)
        board = agent.board
        assert board is not None  # noqa: S101 - it was built with one
        model = board.unwrapped.model  # type: ignore[attr-defined]
        best = model.optimal_value()
        marks = np.unique(np.geomspace(1, cell.users, min(POINTS, cell.users)).astype(np.int64))
        marks[-1] = cell.users
        regret, noise = np.empty(len(marks)), np.empty(len(marks))
        served, total, gap = 0, 0.0, 0.0
        while served < cell.users:
            gap = best - model.value_of(agent.policy)
            before = board.release
            group = agent.meet(cell.users - served)
            here = (marks > served) & (marks <= served + group)
            regret[here] = total + gap * (marks[here] - served)
            noise[here] = before.noise_std[before.headline]
            served, total = served + group, total + gap * group
            told(served)
            noise[marks == served] = board.release.noise_std[board.release.headline]
    guarantee = agent.guarantee
    about = {
        "format": FORMAT,
        "package": private_rl_gym.__version__,
        "config": cell.to_dict(),
        "ledger": board.ledger.to_dict(),
        "promise": str(guarantee),
        "epsilon": guarantee.to_dict()["epsilon"],
        "delta": guarantee.delta,
        "covers": guarantee.covers,
        "optimal_value": best,
        "regret": float(regret[-1]),
        "last_gap": gap,
    }
    return Outcome(about, marks, regret, noise), agent

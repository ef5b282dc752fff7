"""Regret against the number of states: what linear learners are for.

LinOpt proves regret that does not depend on the number of states, and has no experiments. Here are some: random linear
mixtures with d fixed, the same guarantee for all, learners from moments beside learners from counts.

Run with ``python -m private_rl_gym.experiments.linear``; ``--help`` lists the options.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.agents import DPUCBVI, UCBVI, UCRLVTR, PrivateLinOptPO, PrivateLinOptVI, PrivateUCBVI
from private_rl_gym.agents.base import Agent
from private_rl_gym.experiments.oracle import learn_with_regret
from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.planning.policy import Policy
from private_rl_gym.wrappers import Boundary, JDPBillboard, OpenBillboard

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Point", "draw", "main", "points"]

LINEAR: tuple[type[Agent], ...] = (PrivateLinOptVI, PrivateLinOptPO)
TABULAR: tuple[type[Agent], ...] = (DPUCBVI, PrivateUCBVI)
PARENTS: tuple[type[Agent], ...] = (UCRLVTR, UCBVI)
LOOKS = {
    "PrivateLinOptVI": ("#0072B2", "o-"),
    "PrivateLinOptPO": ("#56B4E9", "s-"),
    "DPUCBVI": ("#D55E00", "o-"),
    "PrivateUCBVI": ("#E69F00", "s-"),
    "UCRLVTR": ("#0072B2", "o:"),
    "UCBVI": ("#D55E00", "o:"),
    "uniform": ("#999999", ":"),
}
LARGEST_COUNTED = 200
"""States up to which learners from counts are run: there are H S A S counts of transitions."""


@dataclass(frozen=True, slots=True)
class Point:
    """Regret of one learner on mixtures of one size, instance by instance."""

    agent: str
    epsilon: float  # infinite where sums are exact
    states: int
    regret: tuple[float, ...]


def problem(states: int, seed: int) -> gym.Env:
    """A random mixture of four kernels, and users of its own."""
    env = gym.make("PrivateRL/LinearMixture-v0", n_states=states, d=4, instance_seed=seed)
    env.unwrapped.reset(seed=1000 + seed)
    return env


def points(states: Sequence[int], epsilons: Sequence[float], users: int, seeds: int) -> Iterator[Point]:
    """Every learner on every size, and what choosing actions blindly costs."""
    batch = max(1, users // 200)
    for size in states:
        never = []
        for seed in range(seeds):
            model = problem(size, seed).unwrapped.model  # type: ignore[attr-defined]
            blind = Policy.uniform(horizon=model.horizon, n_states=size, n_actions=model.n_actions)
            never.append(users * (model.optimal_value() - model.value_of(blind)))
        yield Point("uniform", float("inf"), size, tuple(never))
        for epsilon in (*epsilons, float("inf")):
            for kind in PARENTS if np.isinf(epsilon) else (*LINEAR, *TABULAR):
                if kind.learns_from == "tabular" and size > LARGEST_COUNTED:
                    continue
                found = tuple(_regret(kind, epsilon, size, users, batch, seed) for seed in range(seeds))
                yield Point(kind.__name__, epsilon, size, found)


def _regret(kind: type[Agent], epsilon: float, states: int, users: int, batch: int, seed: int) -> float:
    env = problem(states, seed)
    summed: Any = kind.learns_from
    board: Boundary
    if np.isinf(epsilon):
        board = OpenBillboard(env, users, statistic=summed, publish_every=batch)
    else:
        board = JDPBillboard(env, epsilon, 1e-6, users, statistic=summed, publish_every=batch, seed=seed)
    return float(learn_with_regret(kind("TabularPolicy", board, seed=seed), users)[-1])


def draw(found: Sequence[Point], users: int) -> Figure:
    """A panel for each epsilon: regret against S, mean and range over instances."""
    from matplotlib.figure import Figure

    epsilons = sorted({point.epsilon for point in found if np.isfinite(point.epsilon)}, reverse=True)
    figure = Figure(figsize=(4.6 * len(epsilons), 4.4), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(epsilons), sharey=True))
    for axes, epsilon in zip(panels, epsilons, strict=True):
        for name, (color, style) in LOOKS.items():
            here = [point for point in found if point.agent == name and point.epsilon in (epsilon, float("inf"))]
            if not here:
                continue
            states, rows = [point.states for point in here], np.array([point.regret for point in here])
            label = {"uniform": "uniform actions"}.get(name, name + ("" if np.isfinite(here[0].epsilon) else ", exact"))
            axes.plot(states, rows.mean(axis=1), style, color=color, label=label, markersize=4)
            if np.isfinite(here[0].epsilon):
                axes.fill_between(states, rows.min(axis=1), rows.max(axis=1), color=color, alpha=0.15, lw=0)
        axes.set(xscale="log", yscale="log", xlabel="states")
        axes.set_title(f"epsilon = {epsilon:g}, delta = 1e-6, JDP", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(f"regret after {users:,} users")
    panels[-1].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def main(arguments: list[str] | None = None) -> Path:
    """Run, print, and say where the figure and the numbers are."""
    parser = argparse.ArgumentParser(prog="python -m private_rl_gym.experiments.linear", description=__doc__)
    parser.add_argument("--users", type=int, default=20_000, help="users to learn from (default: 20000)")
    parser.add_argument("--seeds", type=int, default=5, help="instances of every size (default: 5)")
    parser.add_argument(
        "--states", type=int, nargs="+", default=[5, 20, 50, 200, 1000, 10_000], help="sizes (default: 5 to 10000)"
    )
    parser.add_argument("--epsilons", type=float, nargs="+", default=[10.0, 1.0], help="budgets (default: 10 1)")
    parser.add_argument("--out", type=Path, default=Path("linear"), help="folder (default: linear)")
    options = parser.parse_args(arguments)
    try:
        for name in ("users", "seeds"):
            positive_integer(getattr(options, name), f"--{name}", name)
        for states in options.states:
            positive_integer(states, "--states", "states")
            if states < 3:  # the branching of the kernels
                parser.error(f"--states is {states}: mixtures have kernels of three next states, so at least 3.")
        if not all(0.0 < epsilon < float("inf") for epsilon in options.epsilons):
            parser.error("--epsilons are budgets: numbers above 0.")
    except ValueError as error:
        parser.error(str(error))
    print(f"{options.seeds} instances a size, {options.users:,} users each; seconds a line, then minutes.", flush=True)
    found, start = [], time.perf_counter()
    for point in points(options.states, options.epsilons, options.users, options.seeds):
        found.append(point)
        said = point.agent if np.isinf(point.epsilon) else f"{point.agent}, epsilon = {point.epsilon:g}"
        seconds = time.perf_counter() - start
        print(f"S = {point.states:>6,}  {said:<32} {np.mean(point.regret):>10,.0f}  ({seconds:.0f} s)", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    path: Path = options.out / "linear.png"
    draw(found, options.users).savefig(path, dpi=130)
    numbers = [
        {
            "agent": point.agent,
            "epsilon": point.epsilon if np.isfinite(point.epsilon) else None,
            "states": point.states,
            "regret": point.regret,
        }
        for point in found
    ]
    path.with_suffix(".json").write_text(json.dumps(numbers, indent=2))
    print(f"The figure: {path}", file=sys.stdout)
    return path


if __name__ == "__main__":
    main()

"""The lower bounds' own setting: bandits inside HardMDP, and how many users private agents need there.

Run with ``python -m private_rl_gym.experiments.hard``; it draws private agents above the bound of PUCB, lemma 10.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.agents import DPUCBVI, PUCB
from private_rl_gym.agents.base import Agent
from private_rl_gym.experiments.bounds import pac_lower_bound
from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.planning.policy import Policy
from private_rl_gym.wrappers import JDPBillboard

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BanditTrace", "bandit_traces", "best_arm", "draw", "main", "mistakes"]


@dataclass(frozen=True, slots=True, eq=False)
class BanditTrace:
    """What a bandit sees of an agent on HardMDP (PUCB, lemma 9).

    Attributes:
        arms: First actions of all episodes that started in the bandit's state, in order.
        final: The action that the last policy takes there.
    """

    arms: NDArray[np.int64]
    final: int


def bandit_traces(agent: Agent, tapes: NDArray[np.float64]) -> dict[int, BanditTrace]:
    """Let an agent learn from these users one by one, and split what it does by their start states.

    If the agent is epsilon-JDP with public start states, each trace is the output of an epsilon-DP bandit learner.
    """
    board = agent.board
    if board is None:
        raise ValueError("The agent has no environment: give it one with set_env.")
    tables = board.unwrapped.model.tables  # type: ignore[attr-defined]
    pulls: dict[int, list[int]] = {int(state): [] for state in tables.initial_states}
    for tape in tapes:
        start = int(tables.initial_states[np.searchsorted(tables.initial_cumulative, tape[0], side="right")])
        policy = agent.policy
        pulls[start].append(_act(agent, policy, start))
        board.serve(policy, tape[None], rng=agent.rng)
    final = agent.policy
    return {s: BanditTrace(np.array(arms, dtype=np.int64), _act(agent, final, s)) for s, arms in pulls.items()}


def _act(agent: Agent, policy: Policy, start: int) -> int:
    if not policy.deterministic:
        raise ValueError(
            f"{type(agent).__name__} draws its actions: traces are for agents whose policies are deterministic."
        )
    return policy.action(0, start)


def best_arm(agent: Agent, users: int) -> int:
    """Learn from so many users of HardBandit, and name the arm that looks best in the last release.

    Not the one that the agent would try next, which may be the one it knows least.
    """
    agent.learn(users * agent.horizon)
    assert agent.board is not None  # noqa: S101 - it has just learned on it
    return agent.board.private_model().model.optimal_policy().action(0, 0)


def mistakes(
    make: Callable[[gym.Env[Any, Any], float], Agent],
    epsilon: float,
    users: int,
    alpha: float,
    seed: int,
    **problem: Any,
) -> int:
    """Users whose policy was not alpha-optimal, on HardMDP with the gap of lemma 10, 14 alpha / H."""
    horizon = problem["horizon"]
    env = gym.make("PrivateRL/HardMDP-v0", alpha=14.0 * alpha / horizon, **problem)
    env.reset(seed=seed)
    agent, model, found = make(env, epsilon), env.unwrapped.model, 0  # type: ignore[attr-defined]
    assert agent.board is not None  # noqa: S101 - it was given one
    served = 0
    while served < users:
        group = min(agent.users_to_plan, users - served)
        found += group * (model.optimal_value() - model.value_of(agent.policy) > alpha)
        agent.learn(group * horizon, reset_num_timesteps=False)
        served += group
    return int(found)


AGENTS: dict[str, type[Agent]] = {"DPUCBVI": DPUCBVI, "PUCB": PUCB}
COLORS = {"DPUCBVI": "#0072B2", "PUCB": "#D55E00"}


def draw(found: dict[str, NDArray[np.float64]], epsilons: list[float], bound: list[float], users: int) -> Figure:
    """Measured users against epsilon, above the bound."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    for name, values in found.items():
        color = COLORS[name]
        axes.plot(
            epsilons, values.mean(axis=1), "o-", color=color, label=f"{name}: users without an alpha-optimal policy"
        )
        axes.fill_between(epsilons, values.min(axis=1), values.max(axis=1), color=color, alpha=0.2, lw=0)
    axes.plot(epsilons, bound, "k--", label="no private agent needs fewer (PUCB, lemma 10)")
    axes.axhline(users, color="#999999", linestyle=":", label="all users there were")
    axes.set(xscale="log", yscale="log", xlabel="true epsilon (pure JDP, public start)", ylabel="users")
    axes.set_title("HardMDP: private learners and their lower bound", fontsize=10)
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def main(arguments: list[str] | None = None) -> Path:
    """Run, print, and say where the figure is."""
    parser = argparse.ArgumentParser(prog="python -m private_rl_gym.experiments.hard", description=__doc__)
    parser.add_argument("--users", type=int, default=20_000_000, help="users to learn from (default: 20 million)")
    parser.add_argument("--seeds", type=int, default=2, help="runs at every epsilon (default: 2)")
    parser.add_argument("--out", type=Path, default=Path("learning"), help="folder (default: learning)")
    options = parser.parse_args(arguments)
    try:
        users = positive_integer(options.users, "--users", "users")
        seeds = positive_integer(options.seeds, "--seeds", "runs")
    except ValueError as error:
        parser.error(str(error))
    problem, alpha, beta, epsilons = {"n": 20, "m": 10, "horizon": 10}, 0.35, 0.05, [0.1, 0.3, 1.0, 3.0, 10.0]
    bound = [pac_lower_bound(10, 20, 11, epsilon, alpha, beta) for epsilon in epsilons]
    batch = max(1, users // 400)
    found = {}
    for name, kind in AGENTS.items():
        rows = []
        for epsilon in epsilons:
            runs = []
            for seed in range(seeds):

                def make(env: gym.Env[Any, Any], budget: float, kind: type[Agent] = kind, seed: int = seed) -> Agent:
                    board = JDPBillboard(env, budget, 0.0, users, publish_every=batch, public_start=True, seed=seed)
                    return kind("TabularPolicy", board, seed=seed)

                runs.append(mistakes(make, epsilon, users, alpha, seed, **problem))
            rows.append(runs)
            print(
                f"{name:<8} epsilon = {epsilon:<6g} {np.mean(runs):>10,.0f} users, bound {bound[len(rows) - 1]:,.1f}",
                flush=True,
            )
        found[name] = np.array(rows, dtype=np.float64)
    options.out.mkdir(parents=True, exist_ok=True)
    path: Path = options.out / "hard.png"
    draw(found, epsilons, bound, users).savefig(path, dpi=130)
    print(f"The figure: {path}")
    return path


if __name__ == "__main__":
    main()

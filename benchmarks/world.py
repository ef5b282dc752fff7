"""Returns of learners in private world models: ``python benchmarks/world.py``.

Every run has defaults only, but for what is publicly known of an environment: when its episodes end, and its rewards.
The policy at the end is run in the true environment with its best actions. Each run is one line of a file of records;
runs that are there are not run again.

    python benchmarks/world.py Pendulum-v1 --epsilon 1 --users 3000 --seeds 5
    python benchmarks/world.py CartPole-v1 --learner DQN --epsilon 1 --users 3000 --seeds 5
    python benchmarks/world.py --table
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from private_rl_gym.agents import WorldModelAgent
from private_rl_gym.wrappers import JDPBillboard, OpenBillboard

EPISODES = 100  # of the true environment
RECORDS = Path(__file__).with_name("world.jsonl")


def ones(seen: Any, *_: Any) -> Any:
    """Return a reward of 1 for each step."""
    return np.ones(len(seen))


KNOWN: dict[str, dict[str, Any]] = {
    "CartPole-v1": {
        "terminated": lambda seen: (np.abs(seen[:, 0]) > 2.4) | (np.abs(seen[:, 2]) > 0.2095),
        "reward": ones,
    },
    "Acrobot-v1": {
        "terminated": lambda seen: -seen[:, 0] - (seen[:, 2] * seen[:, 0] - seen[:, 3] * seen[:, 1]) > 1.0,
        "reward": lambda seen, *_: -np.ones(len(seen)),
    },
    "MountainCarContinuous-v0": {
        "terminated": lambda seen: seen[:, 0] >= 0.45,
        "reward": lambda _, actions, after: 100.0 * (after[:, 0] >= 0.45) - 0.1 * actions[:, 0] ** 2,
    },
    "InvertedPendulum-v5": {"terminated": lambda seen: np.abs(seen[:, 1]) > 0.2, "reward": ones},
}
"""What is given as a function; of other environments nothing is."""


def evaluated(agent: WorldModelAgent, env_id: str) -> float:
    """Return the mean return of the best actions."""
    env, total = gym.make(env_id), 0.0
    for episode in range(EPISODES):
        seen, _ = env.reset(seed=10_000 + episode)
        over = False
        while not over:
            action, _ = agent.predict(seen, deterministic=True)
            seen, reward, terminated, truncated, _ = env.step(action)
            total, over = total + float(reward), terminated or truncated
    return total / EPISODES


def run(env_id: str, learner: str, epsilon: float, users: int, seed: int) -> dict[str, Any]:
    """Return the record of one run."""
    begun, env = time.perf_counter(), gym.make(env_id)
    env.reset(seed=seed)
    board: Any = OpenBillboard(env, users=users)
    if math.isfinite(epsilon):
        board = JDPBillboard(env, epsilon, 1e-6, users=users, rng=1000 + seed)
    agent = WorldModelAgent("MlpPolicy", board, learner=learner, seed=seed, **KNOWN.get(env_id, {}))
    agent.learn(users * board.sizes[0], log_interval=None)
    seconds = time.perf_counter() - begun
    about = {"env": env_id, "learner": learner, "epsilon": epsilon, "users": users, "seed": seed}
    degree, clip = board.statistic.degree, agent.progress()["model/clip"]
    return about | {"return": evaluated(agent, env_id), "degree": degree, "clip": clip, "seconds": round(seconds)}


def table(records: list[dict[str, Any]]) -> str:
    """Return a table of all runs, for the page."""
    rows = defaultdict(dict)
    for one in records:
        rows[one["env"], one["learner"], one["epsilon"], one["users"]][one["seed"]] = one["return"]
    lines = ["| environment | learner | epsilon | users | mean | return, seed by seed |", "|---|---|---|---|---|---|"]
    for (env_id, learner, epsilon, users), found in sorted(rows.items()):
        returns = [found[seed] for seed in sorted(found)]
        told = "none" if math.isinf(epsilon) else f"{epsilon:g}"
        each = ", ".join(f"{value:.0f}" for value in returns)
        lines.append(f"| {env_id} | {learner} | {told} | {users:,} | {np.mean(returns):.0f} | {each} |")
    return "\n".join(lines)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("env", nargs="*")
    parser.add_argument("--learner", default="PPO")
    parser.add_argument("--epsilon", type=float, default=1.0, help="inf for a run without privacy")
    parser.add_argument("--users", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = asked.records.read_text().splitlines() if asked.records.exists() else []
    records = [json.loads(line) for line in lines]
    for env_id in asked.env:
        for seed in range(asked.seeds):
            about = {"env": env_id, "learner": asked.learner, "epsilon": asked.epsilon, "users": asked.users}
            if any(one.items() >= (about | {"seed": seed}).items() for one in records):
                continue
            record = run(env_id, asked.learner, asked.epsilon, asked.users, seed)
            records.append(record)
            with asked.records.open("a") as file:
                file.write(json.dumps(record) + "\n")
            print(record, flush=True)
    if asked.table or not asked.env:
        print(table(records))


if __name__ == "__main__":
    main()

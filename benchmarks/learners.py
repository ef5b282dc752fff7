"""Learners against a peer: episodes a second of UCBVI, within one run.

The peer is rlberry-scool's UCBVI, on the same RiverSwim.

Run with ``make bench-peers``, which gives the peer a virtual environment of its own. Both learn stage-dependent models
of RiverSwim at H = 20, with full backward induction after every episode.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
from rows import Row, report

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.agents import DPUCBVI, UCBVI
from private_rl_gym.agents.base import Agent
from private_rl_gym.wrappers import JDPBillboard

PEER = Path(__file__).parents[1] / ".venv-rlberry" / "bin" / "python"
EPISODES, SEEDS, H = 5_000, (0, 1, 2), 20

PEER_CODE = """
import json, sys, time
import numpy as np
from rlberry.envs import FiniteMDP
from rlberry_scool.agents import UCBVIAgent
problem = json.loads(sys.stdin.read())
times = []
for seed in problem["seeds"]:
    env = FiniteMDP(np.array(problem["rewards"]), np.array(problem["transitions"]), initial_state_distribution=0)
    agent = UCBVIAgent(env, horizon=problem["horizon"], stage_dependent=True, bonus_scale_factor=0.3, seeder=seed)
    agent.fit(100)
    start = time.perf_counter()
    agent.fit(problem["episodes"])
    times.append(time.perf_counter() - start)
print(json.dumps(problem["episodes"] / min(times)))
"""


def river() -> gym.Env:
    """Return the environment of all learners."""
    return gym.make("PrivateRL/RiverSwim-v0", horizon=H)


def peer() -> float:
    """Measure the episodes a second of rlberry-scool's UCBVI."""
    model = river().unwrapped.model
    problem = {
        "transitions": model.transitions[0].tolist(),
        "rewards": model.rewards[0].tolist(),
        "horizon": H,
        "episodes": EPISODES,
        "seeds": SEEDS,
    }
    done = subprocess.run(
        [PEER, "-c", PEER_CODE], input=json.dumps(problem), capture_output=True, text=True, check=True
    )
    return float(json.loads(done.stdout.strip().splitlines()[-1]))


def ours(make: object) -> float:
    """Measure the episodes a second of one of our agents, through learn."""
    times = []
    for seed in SEEDS:
        agent: Agent = make(seed)  # type: ignore[operator]
        agent.learn(100 * H)  # compiles
        start = time.perf_counter()
        agent.learn(EPISODES * H)
        times.append(time.perf_counter() - start)
    return EPISODES / min(times)


def private(batch_size: int) -> object:
    """Return a function that builds DP-UCBVI under JDP from a seed."""
    return lambda seed: DPUCBVI(
        "TabularPolicy", JDPBillboard(river(), 1.0, 1e-6, users=50_000, schedule=batch_size, rng=seed), seed=seed
    )


def main() -> None:
    """Measure everything and print a table."""
    if not PEER.exists():
        sys.exit("There is no rlberry-scool here: run `make bench-peers`, which installs it beside.")
    theirs = peer()
    print(f"rlberry-scool's UCBVI: {theirs:,.0f} episodes a second")

    def row(what: str, make: object, target: float) -> Row:
        speed = ours(make)
        aside = f"{speed:,.0f} episodes a second"
        return Row(f"rlberry-scool's UCBVI against {what}", speed / theirs, target, at_least=True, aside=aside)

    sys.exit(
        report(
            (
                lambda: row("UCBVI", lambda seed: UCBVI("TabularPolicy", river(), seed=seed), 20),
                lambda: row("DPUCBVI, JDP, a release a user", private(1), 8),
                lambda: row("DPUCBVI, JDP, batch_size=100", private(100), 30),
            )
        )
    )


if __name__ == "__main__":
    main()

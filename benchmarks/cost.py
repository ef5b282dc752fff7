"""The cost of joint privacy, beside the same learner without privacy.

Numbers of users go from ten thousand to ten million.

Run with ``python benchmarks/cost.py``; it takes about ten minutes on one core. Regret is the mean over seeds, with its
standard error. The first table has one problem for each number of users: HardMDP with a gap that is equally hard to
detect for every number of users. There, regret without privacy grows as the square root of users, as in the bounds. In
the second table, the problem and the batches stay the same.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable
from typing import Any

import gymnasium as gym

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.agents import DPUCBVI, UCBVI, FrugalUCBVI
from private_rl_gym.agents.base import Agent
from private_rl_gym.wrappers import JDPBillboard, OpenBillboard

USERS = [10**4, 10**5, 10**6, 10**7]
Learner = tuple[str, type[Agent], float | None, bool]  # its name, its class, epsilon, and whether batches are set
LEARNERS: list[Learner] = [
    ("UCBVI, not private", UCBVI, None, True),
    ("DPUCBVI, epsilon = 10", DPUCBVI, 10.0, True),
    ("DPUCBVI, epsilon = 1", DPUCBVI, 1.0, True),
    ("FrugalUCBVI, not private", FrugalUCBVI, None, False),
    ("FrugalUCBVI, epsilon = 10", FrugalUCBVI, 10.0, False),
    ("FrugalUCBVI, epsilon = 1", FrugalUCBVI, 1.0, False),
]


def hard(users: int) -> gym.Env:
    """Return a HardMDP with two start states, three actions and five steps.

    The gap is four deviations of a mean over a sixth of the users.
    """
    return gym.make("PrivateRL/HardMDP-v0", n=2, m=2, horizon=5, alpha=4.0 * math.sqrt(6.0 / users))


def garnet(users: int) -> gym.Env:
    """Return the Garnet of the grid sdp-pe."""
    del users
    return gym.make("PrivateRL/Garnet-v0", n_states=5, n_actions=2, horizon=5, branching=2)


def lost(make: Callable[[int], gym.Env], learner: Learner, users: int, seed: int) -> float:
    """Return the regret of one run.

    There are a thousand releases, or one after every 2,000 users, or one when the learner wants it.
    """
    _, kind, epsilon, batched = learner
    env = make(users)
    env.reset(seed=seed)
    options: dict[str, Any] = {"schedule": users // 1_000 if make is hard else 2_000} if batched else {}
    options |= {"stationary": True} if kind is FrugalUCBVI else {}
    if epsilon is None:
        board = OpenBillboard(env, users=users, **options)
    else:
        board = JDPBillboard(env, epsilon, 1e-6, users=users, rng=seed, **options)
    agent, model = kind("TabularPolicy", board, seed=seed), env.unwrapped.model
    best, total = model.optimal_value(), 0.0
    while board.users_left:
        count = min(board.users_left, agent.users_to_come() if agent.plans_batches else board.users_to_release)
        total += count * (best - model.value_of(agent.policy))
        agent.learn(count * model.horizon, reset_num_timesteps=False, log_interval=None)
    return total


def main() -> None:
    """Print both tables, line by line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    for title, make in (("HardMDP, a gap for each number of users", hard), ("Garnet", garnet)):
        print(f"\n{title}\n\n| | {' | '.join(f'{users:,}' for users in USERS)} |\n|---|{'---|' * len(USERS)}")
        for learner in LEARNERS:
            cells = []
            for users in USERS:
                found = [lost(make, learner, users, seed) for seed in range(seeds)]
                cells.append(f"{statistics.fmean(found):,.0f} ({statistics.stdev(found) / math.sqrt(seeds):,.0f})")
            print(f"| {learner[0]} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

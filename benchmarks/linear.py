"""How fast linear mixtures are learned, through the public API.

Run with ``make bench``. The public code of LDP-UCRL-VTR runs some 30 episodes a second at d = 5, H = 6, S = 8, A = 16.
"""

from __future__ import annotations

import resource
import sys
import time

import gymnasium as gym
from rows import Row, best_of, report

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.agents import PrivateLinOptPO, PrivateLinOptVI
from private_rl_gym.agents.base import Agent
from private_rl_gym.wrappers import Boundary, JDPBillboard, LDPUserSide, OpenBillboard

USERS = 1_000_000


def mixture(**sizes: int) -> gym.Env:
    """A random mixture."""
    return gym.make("PrivateRL/LinearMixture-v0", **{"d": 5, "horizon": 6, "n_states": 8, "n_actions": 16, **sizes})


BOARDS = {
    "exact": lambda env, batch: OpenBillboard(env, USERS, statistic="linear", batch_size=batch),
    "JDP": lambda env, batch: JDPBillboard(env, 1.0, 1e-6, USERS, statistic="linear", batch_size=batch),
    "LDP": lambda env, batch: LDPUserSide(env, 1.0, 1e-6, USERS, statistic="linear", batch_size=batch),
}


def episodes_a_second(kind: type[Agent], board: Boundary, users: int) -> float:
    """Of ``learn``: planning, users, noise and releases."""
    agent = kind("TabularPolicy", board, seed=0)
    agent.learn(100 * 6, log_interval=None)  # compiles

    def learn() -> None:
        agent.learn(users * 6, log_interval=None, reset_num_timesteps=False)

    return users / best_of(learn, repeats=3)


def row(kind: type[Agent], name: str, batch: int, target: float) -> Row:
    """A learner on a board."""
    speed = episodes_a_second(kind, BOARDS[name](mixture(), batch), 2_000 if batch == 1 else 20_000)
    return Row(f"{kind.__name__}, {name}, a release every {batch} users", speed, "episodes/s", target, at_least=True)


def ten_thousand_states() -> Row:
    """Made, solved, and learned from 2,000 users in 20 releases; the most memory this process ever had."""
    start = time.perf_counter()
    board = BOARDS["JDP"](mixture(n_states=10_000, n_actions=4), 100)
    PrivateLinOptVI("TabularPolicy", board, seed=0).learn(2_000 * 6)
    board.unwrapped.model.optimal_value()
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return Row(f"10,000 states, 2,000 users ({seconds:.1f} s), peak memory", peak, "GB", 1, at_least=False)


def main() -> None:
    """Measure everything and print a table."""
    measures = [
        lambda kind=kind, name=name: row(kind, name, 1, 3_000)
        for kind in (PrivateLinOptVI, PrivateLinOptPO)
        for name in BOARDS
    ]
    sys.exit(report([*measures, lambda: row(PrivateLinOptVI, "JDP", 100, float("inf")), ten_thousand_states]))


if __name__ == "__main__":
    main()

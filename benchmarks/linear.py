"""The speed of learning linear mixtures, against users who only step.

Learning is through the public API.

Run with ``make bench``.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable

import gymnasium as gym
import numpy as np
from rows import Row, ratio, report

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.agents import LDPUCRLVTR, PrivateLinOptPO, PrivateLinOptVI
from private_rl_gym.agents.base import Agent
from private_rl_gym.wrappers import Boundary, JDPBillboard, LDPUserSide, OpenBillboard

USERS = 1_000_000

PUBLISHED = 30.0
"""Episodes a second of LDP-UCRL-VTR's published script, at d = 5, H = 6, S = 8, A = 16: not run here, so the one row
that is no ratio of two times of one run. It counts seconds of processor, of which others take none."""


def mixture(**sizes: int) -> gym.Env:
    """Return a random mixture."""
    return gym.make("PrivateRL/LinearMixture-v0", **{"d": 5, "horizon": 6, "n_states": 8, "n_actions": 16, **sizes})


BOARDS = {
    "exact": lambda env, batch: OpenBillboard(env, users=USERS, statistic="linear", schedule=batch),
    "JDP": lambda env, batch: JDPBillboard(env, 1.0, 1e-6, users=USERS, statistic="linear", schedule=batch),
    "LDP": lambda env, batch: LDPUserSide(env, 1.0, 1e-6, users=USERS, statistic="linear", schedule=batch),
}


def stepped(users: int) -> Callable[[], None]:
    """Return a function for the yardstick: users who take random steps.

    No agent learns from them.
    """
    env = mixture()
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(env.action_space.n, size=users * 6).tolist()

    def run() -> None:
        step, reset = env.step, env.reset
        for action in actions:
            _, _, terminated, truncated, _ = step(action)
            if terminated or truncated:
                reset()

    return run


def learned(kind: type[Agent], board: Boundary, users: int) -> Callable[[], object]:
    """Return a function that learns, with planning, users, noise and releases."""
    agent = kind("TabularPolicy", board, seed=0)
    agent.learn(100 * 6, log_interval=None)  # compiles
    return lambda: agent.learn(users * 6, log_interval=None, reset_num_timesteps=False)


def row(kind: type[Agent], name: str, batch: int, target: float = float("inf")) -> Row:
    """Measure a learner on a board."""
    users = 2_000 if batch == 1 else 20_000
    times, seconds = ratio(learned(kind, BOARDS[name](mixture(), batch), users), stepped(users), repeats=3)
    what = f"{kind.__name__}, {name}, a release every {batch} users, against stepping"
    return Row(what, times, target, aside=f"{users / seconds:,.0f} episodes a second")


def experiment() -> Row:
    """Measure an experiment like LDP-UCRL-VTR's against its published script.

    There is a plan for every user.
    """
    rates = []
    for seed in range(3):
        env = gym.make("PrivateRL/HardLinearMixture-v0")
        env.reset(seed=seed)
        board = LDPUserSide(env, 1.0, 0.01, users=2_100, statistic="linear", rng=seed)
        agent = LDPUCRLVTR("TabularPolicy", board, seed=seed).learn(100 * 6, log_interval=None)
        began = time.process_time()
        agent.learn(2_000 * 6, log_interval=None, reset_num_timesteps=False)
        rates.append(2_000 / (time.process_time() - began))
    what = "LDPUCRLVTR, LDP, a plan for every user, against its published script"
    return Row(what, max(rates) / PUBLISHED, 20, at_least=True, aside=f"{max(rates):,.0f} episodes a second")


def ten_thousand_states() -> Row:
    """Measure the peak memory of learning with ten thousand states.

    The problem is made, solved, and learned from 2,000 users in 20 releases.
    """
    board = BOARDS["JDP"](mixture(n_states=10_000, n_actions=4), 100)
    PrivateLinOptVI("TabularPolicy", board, seed=0).learn(2_000 * 6)
    board.unwrapped.model.optimal_value()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return Row("10,000 states, 2,000 users: peak memory", peak, 1, unit="GB")


def main() -> None:
    """Measure everything and print a table."""
    measures = [
        lambda kind=kind, name=name, target=target: row(kind, name, 1, target)
        for kind, target in ((PrivateLinOptVI, 45), (PrivateLinOptPO, 70))
        for name in BOARDS
    ]
    sys.exit(report([*measures, lambda: row(PrivateLinOptVI, "JDP", 100), experiment, ten_thousand_states]))


if __name__ == "__main__":
    main()

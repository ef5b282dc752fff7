"""Speed and memory of users who report gradients: ``python benchmarks/gradients.py``."""

from __future__ import annotations

import math
import resource
import sys
from collections.abc import Callable

import gymnasium as gym
import numpy as np
from rows import Row, ratio, report

from private_rl_gym.agents import DPPolicyGradient
from private_rl_gym.wrappers import OpenBillboard

USERS = 1_000


def stepped(env_id: str, steps: int) -> Callable[[], object]:
    """Return a function that only steps through one environment."""
    env = gym.make(env_id)
    env.reset(seed=0)
    actions = [env.action_space.sample() for _ in range(100)]

    def run() -> None:
        env.reset()
        for step in range(steps):
            _, _, terminated, truncated, _ = env.step(actions[step % 100])
            if terminated or truncated:
                env.reset()

    return run


def stepped_together(env_id: str, steps: int) -> Callable[[], object]:
    """Return a function that only steps through a vector environment."""
    envs = gym.make_vec(env_id, num_envs=USERS, vectorization_mode="vector_entry_point")
    envs.reset(seed=0)
    actions = envs.action_space.sample()

    def run() -> None:
        for _ in range(steps // USERS):
            envs.step(actions)

    return run


def served(env_id: str, users: int, teach: int) -> tuple[Callable[[], object], Callable[[], int]]:
    """Return a function that serves users, and one that counts their steps.

    The users run a policy and report gradients.
    """
    agent = DPPolicyGradient("MlpPolicy", OpenBillboard(gym.make(env_id), users=teach), seed=0)
    parameters = agent.learn(teach * agent.horizon).policy.parameters
    board = OpenBillboard(gym.make(env_id), statistic=agent.layers(), schedule=users)
    steps = []

    class Counts:
        def left(self, episodes: object, _count: int) -> None:
            steps.append(int(episodes.lengths.sum()))  # type: ignore[attr-defined] # gradients come from episodes

    board.audit.observe(Counts())

    def run() -> None:
        steps.clear()
        board.serve(parameters, users, rng=np.random.default_rng(0))

    return run, lambda: sum(steps)


def cartpole(alone: bool) -> Row:
    """Measure CartPole users with gradients against environments that are only stepped."""
    run, count = served("CartPole-v1", USERS, 600)
    run()
    steps = count()
    other = stepped("CartPole-v1", steps // 50) if alone else stepped_together("CartPole-v1", steps)
    times, seconds = ratio(run, other, repeats=3)
    times = times / 50 if alone else times
    what = "one environment" if alone else "a vector of them"
    target = 0.5 if alone else math.inf
    aside = f"{steps / seconds:,.0f} steps a second"
    return Row(f"CartPole with gradients, against stepping {what}", times, target, aside=aside)


def acrobot() -> Row:
    """Measure an environment without a vector entry point."""
    run, count = served("Acrobot-v1", 64, 64)
    run()
    steps = count()
    times, seconds = ratio(run, stepped("Acrobot-v1", steps), repeats=3)
    return Row("Acrobot with gradients, against stepping", times, 1.5, aside=f"{steps / seconds:,.0f} steps a second")


def memory() -> Row:
    """Measure the peak memory of this process with five thousand users.

    They come in one call.
    """
    served("CartPole-v1", 5_000, 600)[0]()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return Row("5,000 users of CartPole in one call: peak memory", peak, 1, unit="GB")


def main() -> None:
    """Measure everything and print a table."""
    sys.exit(report([lambda: cartpole(alone=True), lambda: cartpole(alone=False), acrobot, memory]))


if __name__ == "__main__":
    main()

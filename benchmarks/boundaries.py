"""What trust boundaries cost, in time and memory, within one run.

Run with ``make bench``. Targets are for RiverSwim at H = 20, S = 6, A = 2: 1,680 sums with noise of their own.
"""

from __future__ import annotations

import resource
import sys
import time

import gymnasium as gym
import numpy as np
from rows import Row, best_of, report

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.agents import SDPPE
from private_rl_gym.wrappers import Boundary, JDPBillboard, LDPUserSide, OpenBillboard, SDPShuffler


def river() -> gym.Env:
    """The papers' benchmark."""
    return gym.make("PrivateRL/RiverSwim-v0", horizon=20)


def microseconds_a_user(board: Boundary, users: int, batch: int) -> float:
    """The least of several rounds, per user."""
    policy = board.unwrapped.model.optimal_policy()
    board.serve(policy, batch)  # compiles

    def serve() -> None:
        for _ in range(users // batch):
            board.serve(policy, batch)

    return best_of(serve, repeats=5) / users * 1e6


def central(counting: str, noise: str, target: float) -> Row:
    """One user and a release, again and again."""
    board = JDPBillboard(river(), 1.0, 1e-6, 50_000, counting=counting, noise=noise)
    value = microseconds_a_user(board, users=3_000, batch=1)
    return Row(f"serve one user, release: {counting}, {noise}", value, "microseconds", target, at_least=False)


def batches() -> Row:
    """Many users in one call, one release."""
    board = JDPBillboard(river(), 1.0, 1e-6, 10_000_000, batch_size=10_000)
    value = microseconds_a_user(board, users=100_000, batch=10_000)
    return Row("serve 10,000 users in one call, per user", value, "microseconds", 2, at_least=False)


def against_open(randomizer: str) -> Row:
    """A local report against an exact one; no target, for information."""
    local = microseconds_a_user(LDPUserSide(river(), 1.0, 1e-6, randomizer=randomizer), 1_000, 100)
    plain = microseconds_a_user(OpenBillboard(river()), 100_000, 10_000)
    return Row(
        f"local report, {randomizer}, against an exact one", local / plain, "times", float("inf"), at_least=False
    )


def shuffled() -> Row:
    """A batch of 10,000 users, closed: 1,680 binomial numbers."""
    value = microseconds_a_user(SDPShuffler(river(), 1.0, 1e-6, batch_size=10_000), 100_000, 10_000)
    return Row("shuffle a batch of 10,000 users, per user", value, "microseconds", 2, at_least=False)


def elimination() -> Row:
    """SDP-PE by Lagrangian search, S = 20, A = 4, H = 10, K = 2^17."""
    env = gym.make("PrivateRL/Garnet-v0", n_states=20, n_actions=4, horizon=10, branching=3)
    board = SDPShuffler(env, 1.0, 1e-6, 2**17, batch_size=2**17)
    agent = SDPPE("TabularPolicy", board, seed=0)
    start = time.perf_counter()
    agent.learn(2**17 * 10)
    seconds = time.perf_counter() - start
    return Row("SDPPE, S = 20, A = 4, H = 10, 2^17 users", seconds, "seconds", 120, at_least=False)


def a_million_users() -> Row:
    """A million users, 255,000 sums (S = 50, A = 10, H = 10), 200 releases: the most memory this process ever had."""
    env = gym.make("PrivateRL/Garnet-v0", n_states=50, n_actions=10, horizon=10, branching=5)
    board = JDPBillboard(env, 1.0, 1e-6, 1_000_000, batch_size=5_000)
    policy = np.random.default_rng(0).integers(10, size=(10, 50))
    start = time.perf_counter()
    board.serve(policy, 1_000_000)
    seconds = time.perf_counter() - start
    assert board.release.users == 1_000_000  # noqa: S101 - the run has to be whole
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return Row(f"a million users, 255,000 sums ({seconds:.0f} s), peak memory", peak, "GB", 4, at_least=False)


def main() -> None:
    """Measure everything and print a table."""
    measures = (
        lambda: central("matrix-factorization", "gaussian", 40),
        lambda: central("binary-tree", "gaussian", 60),
        lambda: central("binary-tree", "laplace", 60),
        lambda: central("honaker-tree", "laplace", float("inf")),
        lambda: central("k-ary-tree", "laplace", float("inf")),
        batches,
        shuffled,
        *(lambda name=name: against_open(name) for name in ("one-step", "unary", "laplace", "gaussian")),
        a_million_users,
        elimination,
    )
    sys.exit(report(measures))


if __name__ == "__main__":
    main()

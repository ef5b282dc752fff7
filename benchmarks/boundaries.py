"""The cost of trust boundaries in time and memory, within one run.

Run with ``make bench``. Most rows are for RiverSwim at H = 20, S = 6, A = 2: 1,680 sums, each with noise of its own.
The yardsticks are users without a boundary's noise (an open board), and NumPy drawing as many normal numbers.
"""

from __future__ import annotations

import hashlib
import resource
import sys
from collections.abc import Callable

import gymnasium as gym
import numpy as np
import pyarrow as pa
from rows import Row, ratio, report

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.agents import SDPPE
from private_rl_gym.envs import Cohort, LoggedUsers
from private_rl_gym.wrappers import Boundary, JDPBillboard, LDPUserSide, OpenBillboard, SDPShuffler


def river() -> gym.Env:
    """Return the environment of the papers' experiments."""
    return gym.make("PrivateRL/RiverSwim-v0", horizon=20)


def served(board: Boundary, users: int, batch: int) -> Callable[[], None]:
    """Return a function that serves these users, one batch in each call.

    Users follow the optimal policy.
    """
    policy = board.unwrapped.model.optimal_policy()
    board.serve(policy, batch)  # compiles

    def serve() -> None:
        for _ in range(users // batch):
            board.serve(policy, batch)

    return serve


def against_open(what: str, board: Boundary, users: int, batch: int, target: float = float("inf")) -> Row:
    """Measure users of one boundary against users of an open board."""
    open_board = OpenBillboard(river(), users=10_000_000, schedule=batch)
    times, seconds = ratio(served(board, users, batch), served(open_board, users, batch))
    return Row(f"{what}, against an open board", times, target, aside=f"{seconds / users * 1e6:.1f} us a user")


def central(counting: str, noise: str, target: float) -> Row:
    """Measure a user and a release, many times over.

    The yardstick is the number of normal draws that a release without memory would need.
    """
    delta = 0.0 if noise == "laplace" else 1e-6
    board = JDPBillboard(river(), 1.0, delta, users=50_000, counting=counting, noise=noise)
    rng, users = np.random.default_rng(0), 2_000
    numbers = lambda: [rng.standard_normal(1_680) for _ in range(users)]  # noqa: E731
    times, seconds = ratio(served(board, users, 1), numbers)
    what = f"a user and a release, {counting}, {noise}, against drawing 1,680 normals"
    return Row(what, times, target, aside=f"{seconds / users * 1e6:.0f} us")


def batches() -> Row:
    """Measure many users in one call, with one release."""
    board = JDPBillboard(river(), 1.0, 1e-6, users=10_000_000, schedule=10_000)
    return against_open("10,000 users in one call under JDP", board, 100_000, 10_000, 2)


def local(randomizer: str) -> Row:
    """Measure local reports against exact ones; there is no target."""
    board = LDPUserSide(river(), 1.0, 1e-6, randomizer=randomizer, schedule=100)
    return against_open(f"local reports, {randomizer}", board, 1_000, 100)


def shuffled() -> Row:
    """Measure batches of 10,000 users that are shuffled.

    A batch has 1,680 binomial numbers.
    """
    board = SDPShuffler(river(), 1.0, 1e-6, schedule=10_000)
    return against_open("10,000 users in one call, shuffled", board, 100_000, 10_000, 2)


def elimination() -> Row:
    """Measure SDP-PE by Lagrangian search, against its users alone.

    Sizes are S = 20, A = 4, H = 10 and K = 2^17.
    """
    users = 2**17
    env = gym.make("PrivateRL/Garnet-v0", n_states=20, n_actions=4, horizon=10, branching=3)

    def learn() -> None:
        board = SDPShuffler(env, 1.0, 1e-6, users=users, schedule=users)
        SDPPE("TabularPolicy", board, seed=0).learn(users * 10)

    alone = served(OpenBillboard(env, users=10 * users, schedule=users), users, users)
    times, seconds = ratio(learn, alone, repeats=1)
    return Row("SDPPE on 2^17 users (S = 20, A = 4, H = 10), against the users", times, 2_000, aside=f"{seconds:.0f} s")


def a_million_users() -> Row:
    """Measure the peak memory of this process with a million users.

    There are 255,000 sums (S = 50, A = 10, H = 10) and 200 releases.
    """
    env = gym.make("PrivateRL/Garnet-v0", n_states=50, n_actions=10, horizon=10, branching=5)
    board = JDPBillboard(env, 1.0, 1e-6, users=1_000_000, schedule=5_000)
    policy = np.random.default_rng(0).integers(10, size=(10, 50))
    board.serve(policy, 1_000_000)
    assert board.release.users == 1_000_000  # noqa: S101 - the run has to be whole
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return Row("a million users, 255,000 sums: peak memory", peak, 4, unit="GB")


def a_million_episodes() -> Row:
    """Measure the ingestion of a table of a million patients.

    It has 11 million rows. The yardstick is hashing as many ids.
    """
    users = 1_000_000
    table = pa.table(Cohort.table(users=users))
    ids = [f"P{number:07}" for number in range(users)]

    def ingest(table: pa.Table, users: int) -> None:
        board = JDPBillboard(LoggedUsers(7, 4, 12), 1.0, 1e-6, users=users, schedule=users)
        assert board.ingest(table) == users  # noqa: S101 - no user may be left out

    def hashes() -> list[bytes]:
        return [hashlib.blake2b(one.encode(), digest_size=16).digest() for one in ids]

    ingest(pa.table(Cohort.table(users=100)), 100)  # compiles
    times, seconds = ratio(lambda: ingest(table, users), hashes, repeats=3)
    aside = f"{seconds:.1f} s, to be at most 10 where nothing else runs"
    return Row("a million episodes of a table (11 million rows), against hashing as many ids", times, 15, aside=aside)


def main() -> None:
    """Measure everything and print a table."""
    measures = (
        lambda: central("matrix-factorization", "gaussian", 4.2),
        lambda: central("binary-tree", "gaussian", 6),
        lambda: central("binary-tree", "laplace", 6),
        lambda: central("honaker-tree", "laplace", float("inf")),
        lambda: central("k-ary-tree", "laplace", float("inf")),
        batches,
        shuffled,
        *(lambda name=name: local(name) for name in ("one-step", "unary", "laplace", "gaussian")),
        a_million_users,
        a_million_episodes,  # behind the one that looks at memory
        elimination,
    )
    sys.exit(report(measures))


if __name__ == "__main__":
    main()

"""A protocol of your own, and a boundary around it.

A protocol publishes sums of users' messages. This one is the billboard's, but a noisy count below zero is published as
zero. The zero is computed from the noisy count alone, so the guarantee is the same. The boundary inherits everything
else: users, batches, ledger and saving. You see the smallest published count with and without this protocol.

    python examples/own_protocol.py --users 2000

In grids, and on the command line, the boundary is ``own_protocol:NotNegativeBillboard``:

    private-rl-gym train --boundary own_protocol:NotNegativeBillboard --epsilon 1
"""

import argparse

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.privacy.protocols import Central, ClosedBatch
from private_rl_gym.wrappers import JDPBillboard


class NotNegative(Central):
    """Noisy sums, which are published as zero if they are below zero."""

    def publish(self, sums: NDArray[np.int64], batch: ClosedBatch, releases: int) -> NDArray[np.float64]:
        """Return the published sums."""
        return np.maximum(super().publish(sums, batch, releases), 0.0)


class NotNegativeBillboard(JDPBillboard):
    """The billboard around this protocol."""

    protocol = NotNegative
    color = "#00807a"  # in figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A protocol of your own.")
    parser.add_argument("--users", type=int, default=2_000)
    args = parser.parse_args()
    for kind in (NotNegativeBillboard, JDPBillboard):
        env = gym.make("PrivateRL/RiverSwim-v0", horizon=4)
        board = kind(env, epsilon=2.0, delta=1e-6, users=args.users)
        board.serve([1] * 6, users=args.users)
        print(f"{kind.__name__:20} {board.ledger}: the smallest count is {board.release.m.min():.0f}")

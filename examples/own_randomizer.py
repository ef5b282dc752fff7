"""A randomizer of your own: noise that each user adds to their own messages.

Users have to trust no other party. This randomizer sends a bit for every outcome of a step, each flipped with
probability 1 / (1 + e^(epsilon / 2)). The bits of two users differ in two places at most, so the probabilities of a
message differ by a factor of e^epsilon at most. Everything else is inherited: sums, releases, error bounds, the ledger
and shuffling. You see the noise in a count beside that of the library's ``unary``, after the same number of users.

    python examples/own_randomizer.py --users 4000

In grids, and on the command line, it is ``own_randomizer:Flips``:

    private-rl-gym audit --boundary ldp --set boundary.randomizer=own_randomizer:Flips
"""

import argparse
import math
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.privacy.errors import BoundedError, CombinedError
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.randomizers import Randomizer
from private_rl_gym.privacy.statistics import Alphabet, Sensitivity
from private_rl_gym.wrappers import LDPUserSide


class Flips(Randomizer):
    """A bit for every outcome, each flipped independently."""

    name, alphabet = "flips", Alphabet.STEP
    color = "#b0006d"  # in figures

    def __init__(self, statistic: Any, epsilon: float, delta: float) -> None:
        self.statistic, self.spent, self.counters = statistic, (epsilon, 0.0), statistic.blocks
        self.flip, self.sensitivity = 1.0 / (1.0 + math.exp(epsilon / 2.0)), Sensitivity.of_ones(2)

    def send(self, users: Any, count: int, request: Any, source: NoiseSource, out: NDArray[np.int64]) -> None:
        """Add users' bits to ``out``, and then the number of messages in each block."""
        cells, own = self.statistic.cells, self.statistic.draws
        each = cells // self.statistic.blocks
        drawn = source.uniform(count * (own + each)).reshape(count, 1, own + each)
        blocks, places = self.statistic.outcomes(users, request, drawn[:, :, :own])
        bits = (np.arange(each) == places) ^ (drawn[:, 0, own:] < self.flip)
        np.add.at(out[:cells].reshape(-1, each), blocks[:, 0], bits)
        np.add.at(out[cells:], blocks[:, 0], 1)

    def unbias(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return counts whose mean is the exact one."""
        table, sent = vector[: self.statistic.cells].reshape(self.counters, -1), vector[self.statistic.cells :]
        exact: NDArray[np.float64] = (table - self.flip * sent[:, None]) / (1.0 - 2.0 * self.flip)
        return self.statistic.times * exact.ravel()

    def error(self, users: int, added: Any) -> Any:
        """Return the error of a count, from flipped bits and from the protocol."""
        gain, q, times = 1.0 / (1.0 - 2.0 * self.flip), self.flip, self.statistic.times
        own = BoundedError(users * times * q * (1.0 - q) * gain**2, times * gain, users * times)
        return lambda _: CombinedError.of(own, added(1.0).scaled(times * gain))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A randomizer of your own.")
    parser.add_argument("--users", type=int, default=4_000)
    args = parser.parse_args()
    for kind in (Flips, "unary"):
        env = gym.make("PrivateRL/RiverSwim-v0", horizon=4)
        board = LDPUserSide(env, epsilon=2.0, users=args.users, randomizer=kind)
        board.serve([1] * 6, users=args.users)
        noise = board.release.noise_std["m"]
        print(f"{kind if isinstance(kind, str) else kind.name:6} {board.ledger}: noise of {noise:.0f} in a count")

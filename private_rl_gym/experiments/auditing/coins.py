"""An audit from a single run: many users, each of whom was one of two by the toss of a coin.

Steinke, Nasr, Jagielski: Privacy Auditing with One (1) Training Run, 2023. Proof: docs/proofs/audit.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from private_rl_gym.experiments.auditing.users import Maker, Users, board_of, exact_of, guarantee_of
from private_rl_gym.experiments.names import GridError
from private_rl_gym.privacy.audit.bounds import one_run_epsilon
from private_rl_gym.privacy.audit.likelihood import noise_matrix
from private_rl_gym.privacy.batches import ShuffledSums
from private_rl_gym.privacy.guarantee import Guarantee
from private_rl_gym.privacy.randomizers import AdditiveReports, SubsetReports

__all__ = ["Guessed", "guess_coins"]

SHARE = 4
"""One coin of so many is guessed: those of which most can be seen."""


@dataclass(frozen=True, slots=True)
class Guessed:
    """What one run gave away."""

    epsilon: float
    guarantee: Guarantee
    correct: int
    guesses: int
    users: int

    @property
    def sentence(self) -> str:
        """For whoever reads the report."""
        return f"{self.correct:,} of {self.guesses:,} guesses were right, among {self.users:,} users"


def guess_coins(
    env: gym.Env[Any, Any], make: Maker, users: int, kind: str, seed: int, failure: float, statistic: str = "tabular"
) -> Guessed:
    """Serve users whose coins were tossed, and guess the coins from what was published after each of them."""
    both = Users(env, make, users=users, place=0, kind=kind, seed=seed)
    board: Any = both.built(0, 0, statistic)
    board = board_of(board)
    sums = board._board
    if isinstance(sums, ShuffledSums) or board.publish_every != 1:
        raise GridError("One run guesses users from the releases before and after them: publish after every user.")
    exact = exact_of(sums.statistic)
    if hasattr(board, "transcript"):
        raise GridError("One run guesses users from releases alone, and this boundary publishes more: take a stream.")
    policy, pair = both.policy(exact, guarantee_of(board))
    if policy.values is not None:
        board.values = policy.values
    coins = both.rng.random(users) < 0.5
    tapes = np.where(coins[:, None], pair.other, pair.tapes)
    one, other = both.vectors(exact, policy, np.stack([pair.tapes[0], pair.other]))
    if isinstance(sums.statistic, SubsetReports) and sums.noise is None:
        paths = both.trajectories(policy, np.stack([pair.tapes[0], pair.other]))
        places = [sums.statistic.places(paths.part(which, which + 1)) for which in (0, 1)]
    rows, before = [], np.zeros(0)
    for tape in tapes:
        board.serve(policy, tape[None])
        if isinstance(sums.statistic, SubsetReports) and sums.noise is None:
            total = sums._sums.astype(np.float64)
            report = (total - (before if before.size else 0.0)).reshape(both.horizon, -1)
            stages = np.arange(both.horizon)
            rows.append(np.array([(report[stages, places[1]] - report[stages, places[0]]).sum()]))
            before = total
        else:
            rows.append(sums.statistic.vector(board.release.sums()))
    scores = np.array(rows)
    if scores.shape[1] > 1:
        scores = _coins_of_a_stream(scores, one, other - one, sums)[:, None]
    guesses = max(1, users // SHARE)
    surest = np.argsort(-np.abs(scores[:, 0]), kind="stable")[:guesses]
    correct = int(((scores[surest, 0] > 0.0) == coins[surest]).sum())
    guarantee = guarantee_of(board)
    epsilon = one_run_epsilon(correct, guesses, users, guarantee.delta, failure)
    return Guessed(epsilon, guarantee, correct, guesses, users)


def _coins_of_a_stream(
    releases: NDArray[np.float64],  # [release, cell]
    base: NDArray[np.float64],  # of a user whose coin fell on one side
    moved: NDArray[np.float64],  # what the other side adds
    sums: Any,
) -> NDArray[np.float64]:
    """The best linear estimate of every coin: all of them are in the later releases, and all noise is known by law."""
    users = len(releases)
    arrived = np.tril(np.ones((users, users)))
    covariance = np.zeros((users, users))
    if isinstance(sums.statistic, AdditiveReports):
        covariance += sums.statistic.scale**2 * arrived @ arrived.T * (2.0 if sums.statistic.law == "laplace" else 1.0)
    if sums.noise is not None:
        matrix = noise_matrix(sums.noise.counting, users)
        covariance += sums.noise.scale**2 * matrix @ matrix.T * (2.0 if sums.noise.counting.law == "laplace" else 1.0)
    far = math.sqrt(float(moved @ moved))
    middle = np.outer(np.arange(1.0, users + 1.0), base + moved / 2.0)
    along = (releases - middle) @ moved / far  # one number a release; its noise has this covariance
    signal = far / 2.0 * arrived
    found: NDArray[np.float64] = signal.T @ np.linalg.solve(signal @ signal.T + covariance, along)
    return found

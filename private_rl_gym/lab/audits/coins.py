"""An audit from a single run of many users.

The toss of a coin makes each user one of two candidates.

Steinke, Nasr, Jagielski: Privacy Auditing with One (1) Training Run, 2023. Proof: docs/proofs/audit.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from private_rl_gym.lab.audits.mechanisms import MessageSum, reports_are_seen
from private_rl_gym.lab.audits.users import Maker, Users, guarantee_of
from private_rl_gym.lab.registry import GridError
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.accounting.guarantee import Guarantee, TrustModel
from private_rl_gym.privacy.audit.bounds import one_run_epsilon
from private_rl_gym.privacy.noise import AdditiveNoise, Noises, NoiseSource
from private_rl_gym.privacy.statistics import TabularSteps

__all__ = ["Guessed", "guess_coins"]

SHARE = 4
"""One coin in this number is guessed: those with the strongest evidence."""


@dataclass(frozen=True, slots=True)
class Guessed:
    """The outcome of one run."""

    epsilon: float
    guarantee: Guarantee
    correct: int
    guesses: int
    users: int

    @property
    def sentence(self) -> str:
        """The outcome as a sentence for reports."""
        return f"{self.correct:,} of {self.guesses:,} guesses were right, among {self.users:,} users"


def guess_coins(
    env: gym.Env[Any, Any], make: Maker, users: int, kind: str, seed: int, failure: float, statistic: str = "tabular"
) -> Guessed:
    """Serve users who were chosen by coins, and guess the coins.

    The guesses are made from the releases or reports after each user.
    """
    both = Users(env, make, users=users, place=0, kind=kind, seed=seed, statistic=statistic)
    board: Any = both.board(0, 0)
    if board.guarantee.model is TrustModel.SDP or board.batch_size != 1:
        raise GridError(
            "The attack one-run needs a release before and after each of its users: publish after every user."
        )
    if hasattr(board, "transcript"):
        raise GridError(
            "The attack one-run reads releases only, and this boundary publishes more. Use the attack stream."
        )
    exact = board.statistic.exact
    policy, pair = both.policy(exact, guarantee_of(board))
    board.request = both.ask(board.statistic)
    coins = both.rng.random(users) < 0.5
    tapes = np.where(coins[:, None], pair.other, pair.tapes)
    versions = np.stack([pair.tapes[0], pair.other])
    scores = np.zeros((users, 1))
    if reports_are_seen(board):
        paths, reports = both.trajectories(policy, versions), MessageSum()
        places = [_places(both, board.statistic, paths.part(which, which + 1)) for which in (0, 1)]
        stages = np.arange(len(places[0]))
        board.audit.observe(reports)
        for tape, score in zip(tapes, scores, strict=True):
            board.serve(policy, tape[None])
            size = board.statistic.cells
            report = reports.taken(size)[:size].reshape(len(stages), -1)
            score[0] = (report[stages, places[1]] - report[stages, places[0]]).sum()
    else:
        rows = []
        for tape in tapes:
            board.serve(policy, tape[None])
            rows.append(board.statistic.vector(board.release.sums()))
        one, other = both.vectors(exact, policy, versions)
        scores[:, 0] = _coins_of_a_stream(np.array(rows), one, other - one, board.audit.noises([1] * users))
    guesses = max(1, users // SHARE)
    surest = np.argsort(-np.abs(scores[:, 0]), kind="stable")[:guesses]
    correct = int(((scores[surest, 0] > 0.0) == coins[surest]).sum())
    guarantee = guarantee_of(board)
    epsilon = one_run_epsilon(correct, guesses, users, guarantee.delta, failure)
    return Guessed(epsilon, guarantee, correct, guesses, users)


def _places(users: Users, statistic: Any, user: Trajectories) -> NDArray[np.int64]:  # [block]
    """Return the outcomes that a user may send, in each block of cells.

    They are drawn as a user would draw them.
    """
    if statistic.blocks > 1:
        steps = TabularSteps(*users.sizes, one=False)
        stages: NDArray[np.int64] = steps.outcomes(user, None, np.full((1, steps.messages, 1), 0.5))[1][0]
        return stages
    uniforms = NoiseSource(users.seed).uniform(statistic.draws)[None, None]
    single: NDArray[np.int64] = statistic.outcomes(user, users.ask(statistic), uniforms)[1][0]
    return single


def _coins_of_a_stream(
    releases: NDArray[np.float64],  # [release, cell]
    base: NDArray[np.float64],  # of a user whose coin fell on one side
    moved: NDArray[np.float64],  # what the other side adds
    noises: Noises,
) -> NDArray[np.float64]:
    """Return the best linear estimate of every coin.

    All later releases depend on a coin, and the distribution of all noise is known.
    """
    users = len(releases)
    arrived = np.tril(np.ones((users, users)))
    covariance = np.zeros((users, users))
    for noise in noises:
        if isinstance(noise, AdditiveNoise):
            variance = noise.scale**2 * (2.0 if noise.law == "laplace" else 1.0)
            covariance += variance * noise.matrix @ noise.matrix.T
    far = math.sqrt(float(moved @ moved))
    middle = np.outer(np.arange(1.0, users + 1.0), base + moved / 2.0)
    along = (releases - middle) @ moved / far  # one number a release; its noise has this covariance
    signal = far / 2.0 * arrived
    estimates: NDArray[np.float64] = signal.T @ np.linalg.solve(signal @ signal.T + covariance, along)
    return estimates

"""A small audit of each mechanism in a real boundary: worst-case users, everything that was published, a lower bound.

Two runs differ in one user, of T; from all releases the log-likelihood ratio of the two is computed, and how well it
tells them apart gives a lower bound on epsilon at 95 % confidence. It must stay below the claim, and a mechanism that
is broken on purpose must be caught. Auditing at scale is a matter of its own.
"""

import math

import gymnasium as gym
import numpy as np
import pytest
from scipy import stats

from private_rl_gym.envs import TabularEnv, TabularModel
from private_rl_gym.privacy.counting import COUNTING, BinaryTree
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard
from tests.privacy.linear import noise_matrix

T, RUNS, DELTA = 4, 3000, 1e-3

# One step, two states, a fixed reward of the state: user "0" starts in state 0 and earns nothing, user "1" in 1.
MODEL = TabularModel([[[1.0, 0.0]], [[0.0, 1.0]]], [[0.0], [1.0]], [0.5, 0.5], 1, "fixed")
TAPES = {0: [0.2, 0.5, 0.5], 1: [0.7, 0.5, 0.5]}


def transcripts(make, target, runs=RUNS):
    """All releases of runs in which user 2 is ``target`` and the others are 0: ``[run, release, entry]``."""
    found = []
    for seed in range(runs):
        board = make(seed)
        rows = []
        for user in range(T):
            board.serve([0, 0], np.array([TAPES[target if user == 1 else 0]]))
            release = board.release
            rows.append(np.concatenate([release.m.ravel(), release.r.ravel()]))
        found.append(rows)
    return np.array(found)


def lower_bound(scores_without, scores_with, delta):
    """Clopper-Pearson on the second half, at the threshold that did best on the first."""
    half = len(scores_with) // 2
    best, threshold = -1.0, 0.0
    for candidate in np.quantile(
        np.concatenate([scores_without[:half], scores_with[:half]]), np.linspace(0.02, 0.98, 49)
    ):
        hits, alarms = (scores_with[:half] > candidate).mean(), (scores_without[:half] > candidate).mean()
        value = math.log(max(hits - delta, 1e-9) / max(alarms, 10 / half))
        if value > best:
            best, threshold = value, candidate
    trials = len(scores_with) - half
    hits, alarms = (scores_with[half:] > threshold).sum(), (scores_without[half:] > threshold).sum()
    least = stats.beta.ppf(0.025, hits, trials - hits + 1) if hits else 0.0
    most = stats.beta.ppf(0.975, alarms + 1, trials - alarms)
    return math.log(max(least - delta, 1e-12) / most)


def linear_score(found, mechanism):
    """The sharpest linear score against user 2: along what she moves, seen through the noise's covariance."""
    B = noise_matrix(mechanism, T, "laplace" if mechanism is COUNTING["k-ary-tree"] else "gaussian")
    step = (np.arange(T) >= 1).astype(float)
    return np.einsum("kte,t,e->k", found, np.linalg.solve(B @ B.T, step), _moves())


def laplace_score(found, scale):
    """The log-likelihood ratio itself, for the plain tree: releases determine its noises, one for each."""
    B = noise_matrix(BinaryTree, T, "laplace", draws=T)
    others = np.concatenate([np.diag([1.0, 0.0]).ravel(), [0.0, 0.0]])  # one user of kind 0
    steps, late = np.arange(1, T + 1.0), (np.arange(T) >= 1).astype(float)
    noises = []
    for moved in (0.0, 1.0):
        truth = np.outer(steps, others) + moved * np.outer(late, _moves())
        noises.append(np.linalg.solve(B, (found - truth).transpose(1, 0, 2).reshape(T, -1)))
    return ((np.abs(noises[0]) - np.abs(noises[1])) / scale).reshape(T, len(found), -1).sum(axis=(0, 2))


def _moves():
    """How user 1 in place of user 0 moves m (two cells) and r (one)."""
    m = np.zeros((2, 2))
    m[0, 0], m[1, 1] = -1.0, 1.0
    return np.concatenate([m.ravel(), [0.0, 1.0]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("counting", "noise", "delta", "broken"),
    [
        ("matrix-factorization", "gaussian", DELTA, 0.2),
        ("binary-tree", "gaussian", DELTA, 0.2),
        ("batched", "gaussian", DELTA, 0.2),
        ("binary-tree", "laplace", 0.0, 0.2),
        ("honaker-tree", "laplace", 0.0, 0.1),
        ("k-ary-tree", "laplace", 0.0, 0.1),
    ],
)
def test_a_boundary_keeps_its_promise_and_a_broken_one_is_caught(counting, noise, delta, broken):
    """``broken``: the factor by which noise is too small, to be told from so few runs.

    Smaller flaws are found exactly: by the law of what is published, below, and by tests/privacy/test_counting.py.
    """
    epsilon = 2.0

    def audit(factor):
        def make(seed):
            board = JDPBillboard(TabularEnv(MODEL), epsilon, delta, T, counting=counting, noise=noise, seed=seed)
            board._board.noise.scale *= factor
            board._board.noise._units = board._board.noise._units * factor
            return board

        found = [transcripts(make, target) for target in (0, 1)]
        if counting == "binary-tree" and noise == "laplace":
            return lower_bound(*(laplace_score(rows, make(0)._board.noise.scale) for rows in found), delta)
        return lower_bound(*(linear_score(rows, COUNTING[counting]) for rows in found), delta)

    assert audit(1.0) <= epsilon
    assert audit(broken) > epsilon


@pytest.mark.parametrize("counting", list(COUNTING))
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_what_is_published_is_noised_as_calibrated(counting, noise):
    """The standard deviation of published noise, from 200 runs: within 3 %, and half, 0.7 or 1.3 times it is not."""
    if (counting, noise) in (("matrix-factorization", "laplace"), ("k-ary-tree", "gaussian")):
        with pytest.raises(ValueError, match=f"counting='{counting}' is for"):
            JDPBillboard(TabularEnv(MODEL), 1.0, 1e-6, 11, counting=counting, noise=noise)
        return
    env = gym.make("PrivateRL/RiverSwim-v0", horizon=2)
    exact = OpenBillboard(gym.make("PrivateRL/RiverSwim-v0", horizon=2))
    tapes = np.full((11, 5), 0.5)
    exact.serve([1] * 6, tapes)

    def relative_spread(factor):
        found, stated = [], 0.0
        for seed in range(200):
            board = JDPBillboard(env, 1.0, 1e-6, 11, counting=counting, noise=noise, seed=seed)
            board._board.noise._units = board._board.noise._units * factor
            board.serve([1] * 6, tapes)
            stated = board.release.noise_std["m"]
            found.append(board.release.m - exact.release.m)
        return np.std(found) / stated

    assert relative_spread(1.0) == pytest.approx(1.0, abs=0.03)
    for wrong in (0.5, 0.7, 1.3):
        assert relative_spread(wrong) != pytest.approx(1.0, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one-step", "unary", "laplace", "gaussian"])
def test_local_reports_keep_their_promise(name):
    """One user, one report: her first release."""
    epsilon, delta = 2.0, DELTA if name == "gaussian" else 0.0

    def scores(target, claimed):
        found = []
        for seed in range(6000):
            board = LDPUserSide(TabularEnv(MODEL), claimed, delta, randomizer=name, seed=seed)
            board.serve([0, 0], np.array([TAPES[target]]))
            vector = np.concatenate([board.release.m.ravel(), board.release.r.ravel()])
            found.append(np.clip(vector, -3, 4) @ _moves())
        return np.array(found)

    assert lower_bound(scores(0, epsilon), scores(1, epsilon), delta) <= epsilon
    assert lower_bound(scores(0, 6 * epsilon), scores(1, 6 * epsilon), delta) > epsilon

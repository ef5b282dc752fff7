"""White-box attacks on sums of gradients: canaries that differ in a direction, and mistakes that are caught.

An attack sees 4,000 batches, or fewer where that is enough, in each of two worlds that differ in one user, and scores
each by its projection on the direction in which she moves the exact sums. A bound is wrong with probability 0.01.
"""

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.agents import DPPolicyGradient
from private_rl_gym.experiments.broken import HalvedNoise, MissingFactor
from private_rl_gym.experiments.broken_gradients import (
    ClippedSteps,
    OwnBaseline,
    OwnNormalization,
    ReadingRewards,
    TrueSteps,
    UnscaledClip,
)
from private_rl_gym.planning.network import Layers
from private_rl_gym.privacy.asks import Objective
from private_rl_gym.privacy.audit.bounds import epsilon_below, epsilon_of_mu, mu_below
from private_rl_gym.wrappers import JDPBillboard

H, RUNS, EPSILON, DELTA = 6, 4_000, 4.0, 1e-6
FEW = {"rich among others": 400, "coordinate": 1000}  # runs that are enough to see a mistake as large as that
LONG, SHORT, RICH = 1, 2, 3  # seeds of canaries
OTHERS = (4,) * 9
PARAMETERS = np.array([0.0, 0.0, 1.0, -1.0])  # the first action has a probability of 0.88
COINS = next(  # actions are public coins: here everyone who matters takes the first one
    seed
    for seed in range(10_000)
    for draws in [np.random.default_rng(seed).random((len(OTHERS) + 1, H))]
    if (draws[0] < 0.8).all() and (draws[:, 0] < 0.8).all()
)


class Canaries(gym.Env):
    """Users who are decided by their seed: how long they stay and what they are paid."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, **_):
        super().reset(seed=seed)
        self.user, self.steps = seed, 0
        return np.full(1, 10.0, dtype=np.float32), {}

    def step(self, _action):
        self.steps += 1
        reward = {LONG: 1.0, SHORT: -1.0, RICH: 1e6}.get(self.user, -1.0)
        ended = self.steps == (1 if self.user in (SHORT, RICH, *OTHERS) else H)
        return np.full(1, 10.0, dtype=np.float32), reward, ended, False, {}


gym.register("Canaries-v0", entry_point=Canaries, max_episode_steps=H)

CASES = {
    "gradient": (LONG, SHORT, (), {"shares": (1.0, 0.0, 0.0, 0.0), "clip": 1e-3}),
    "parts together": (LONG, SHORT, (), {"shares": (0.8, 0.36, 0.36, 0.3), "clip": 1e-3, "reach": 1.0}),
    "critic": (LONG, SHORT, (), {"shares": (0.0, 0.0, 0.0, 1.0), "clip": 1e-3}),
    "local steps": (LONG, SHORT, (), {"shares": (1.0, 0.0, 0.0, 0.0), "clip": 1e-3, "local_steps": 3}),
    "among others": (RICH, SHORT, OTHERS, {"shares": (1.0, 0.0, 0.0, 0.0), "clip": 1e-3}),
    "rich among others": (RICH, SHORT, OTHERS, {"shares": (1.0, 0.0, 0.0, 0.0), "clip": 1.0}),
    "long among others": (LONG, SHORT, OTHERS, {"shares": (1.0, 0.0, 0.0, 0.0), "clip": 1e-3}),
    "coordinate": (LONG, SHORT, (), {"shares": (1.0, 0.0, 0.0, 0.0), "clip": 1e-3}),
    "clip of 1.5": (LONG, SHORT, (), {"shares": (1.0, 0.0, 0.0, 0.0), "clip": 1.5}),
}


def published(kind, users, ask, batches, seed):
    """The vectors that are published of so many batches with the same users and the same actions."""
    layers = Layers((), critic=())
    env = gym.make("Canaries-v0", disable_env_checker=True)
    board = kind(
        env, EPSILON, DELTA, users=(batches + 1) * len(users), statistic=layers, seed=seed, batch_size=len(users)
    )
    vectors = []
    for _ in range(batches):
        board.serve(PARAMETERS, np.array(users), ask, rng=np.random.default_rng(COINS))
        vectors.append(board.statistic.vector(board.batch.sums()))
    return np.array(vectors), board


def exact(board, users, ask):
    """The sums of these users without noise, by the statistic of this board."""
    seen = []

    class Keeps:
        def left(self, episodes, _count):
            sums = np.zeros(board.statistic.cells, dtype=np.int64)
            board.statistic.collect(episodes, sums, None, ask)
            seen.append(sums * board.statistic.grid)

    board.observe(Keeps())
    board.serve(PARAMETERS, np.array(users), ask, rng=np.random.default_rng(COINS))
    return seen[0]


def attacked(kind, case):
    """Bounds on epsilon from below: by counting alone, and for Gaussian noise."""
    first, second, others, options = CASES[case]
    worlds, ask = ((first, *others), (second, *others)), Objective(np.zeros(H), **options)
    fresh = [published(kind, users, ask, 1, 0)[1] for users in worlds]
    direction = exact(fresh[0], worlds[0], ask) - exact(fresh[1], worlds[1], ask)
    if case == "coordinate":  # the one that moves the most, alone
        direction[np.abs(direction) < np.abs(direction).max() * (1.0 - 1e-9)] = 0.0
    runs = FEW.get(case, RUNS)
    scores = [published(kind, users, ask, runs, seed)[0] @ direction for seed, users in enumerate(worlds, start=1)]
    level = (scores[0].mean() + scores[1].mean()) / 2.0  # of Gaussians with one spread: chosen without their labels
    hits, alarms = ((score > level).sum() for score in scores)
    counted = epsilon_below(hits, alarms, (runs, runs), DELTA, 0.01)
    return float(counted), epsilon_of_mu(float(mu_below(hits, alarms, (runs, runs), 0.01)), DELTA)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_no_attack_shows_more_than_is_promised_and_some_show_nearly_as_much(case):
    counted, gaussian = attacked(JDPBillboard, case)
    assert counted <= EPSILON
    assert gaussian <= EPSILON
    if case not in ("parts together", "coordinate", "rich among others"):
        assert gaussian >= 0.7 * EPSILON


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "case"),
    [
        (HalvedNoise, "gradient"),
        (MissingFactor, "gradient"),
        (ClippedSteps, "gradient"),
        (UnscaledClip, "clip of 1.5"),
        (TrueSteps, "long among others"),
        (OwnBaseline, "among others"),
        (OwnNormalization, "rich among others"),
    ],
)
def test_a_mistake_is_caught(kind, case):
    assert attacked(kind, case)[1] > EPSILON


# A learner that looks inside ------------------------------------------------------------------------------------------


class Paid(gym.Env):
    """One step; the first user of all is paid what the world says, and nobody else anything."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (1,))
    action_space = gym.spaces.Discrete(2)
    reward = 0.0  # of the class: environments are copied

    def reset(self, *, seed=None, **_):
        super().reset(seed=seed)
        return np.zeros(1, dtype=np.float32), {}

    def step(self, _action):
        reward, Paid.reward = Paid.reward, 0.0
        return np.zeros(1, dtype=np.float32), reward, True, False, {}


def asked(kind, reward, seed):
    """The mean baseline that users of the last batch are sent."""
    Paid.reward = reward
    board = JDPBillboard(Paid(), 1.0, 1e-6, users=30, horizon=1, seed=seed)
    kind("MlpPolicy", board, seed=0, batch_size=10, policy_kwargs={"net_arch": []}).learn(30)
    return float(board.ask.baseline.mean())


@pytest.mark.slow
def test_a_learner_that_reads_rewards_is_seen_in_what_it_asks():
    """Black box: forty runs of each world, told apart by what later users are sent. A bound errs once in a hundred."""
    found = {}
    for kind in (ReadingRewards, DPPolicyGradient):
        worlds = [
            [asked(kind, reward, seed + 100 * world) for seed in range(40)] for world, reward in enumerate((1, 0))
        ]
        hits, alarms = (sum(baseline > 0.02 for baseline in world) for world in worlds)
        found[kind] = float(epsilon_below(hits, alarms, (40, 40), 1e-6, 0.01))
    assert found[ReadingRewards] > 1.0
    assert found[DPPolicyGradient] <= 1.0

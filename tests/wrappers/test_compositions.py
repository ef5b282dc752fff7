"""Random stacks of Gymnasium's wrappers and a boundary: the guarantee is intact, or a sentence refuses them."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import wrappers
from stable_baselines3.common.monitor import Monitor

from private_rl_gym.privacy import NoiseSource
from tests.privacy.statistics import sums
from tests.wrappers.stacks import BOARDS, H, river

USERS = 4
BASES = {
    "river": partial(river, observe_time=False),
    "river with time": partial(river, observe_time=True),
    "lake": partial(gym.make, "PrivateRL/FrozenLake-v0", horizon=H),
    "toy text": partial(gym.make, "FrozenLake-v1", max_episode_steps=H),
}
INSIDE = {
    "TimeLimit": lambda env: wrappers.TimeLimit(env, 3),
    "statistics": wrappers.RecordEpisodeStatistics,
    "rewards halved": lambda env: wrappers.TransformReward(env, lambda reward: reward / 2.0),
    "rewards doubled": lambda env: wrappers.TransformReward(env, lambda reward: 2.0 * reward + 1.0),
    "rewards clipped": lambda env: wrappers.ClipReward(env, 0.0, 0.5),
    "rewards normalized": wrappers.NormalizeReward,
    "time in observations": wrappers.TimeAwareObservation,
    "actions swapped": lambda env: wrappers.TransformAction(
        env, lambda action: env.action_space.n - 1 - action, env.action_space
    ),
    "sticky actions": lambda env: wrappers.StickyAction(env, 0.25),
    "flattened": wrappers.FlattenObservation,
    "delayed": lambda env: wrappers.DelayObservation(env, 1),
    "Monitor": Monitor,
    "autoreset": wrappers.Autoreset,
    "checked": wrappers.PassiveEnvChecker,
}
OUTSIDE = {
    "TimeLimit": lambda env: wrappers.TimeLimit(env, 2),
    "statistics": wrappers.RecordEpisodeStatistics,
    "rewards doubled": lambda env: wrappers.TransformReward(env, lambda reward: 2.0 * reward),
    "Monitor": Monitor,
    "time in observations": wrappers.TimeAwareObservation,
    "ordered": wrappers.OrderEnforcing,
    "rendered": lambda env: wrappers.RenderCollection(env),
}


class Witness:
    """Everyone who leaves, as an auditor sees them."""

    def __init__(self):
        self.users, self.count = [], 0

    def left(self, users, count):
        self.count += count
        if users is not None:
            self.users += [users.part(user, user + 1) for user in range(count)]

    def reported(self, vector):
        pass


def composition(seed):
    """A stack, the board in it, and the names of its parts; or the sentence that refuses it."""
    rng = np.random.default_rng(seed)
    base = rng.choice(list(BASES))
    inside = rng.choice(list(INSIDE), size=rng.integers(3), replace=False)
    name = rng.choice(list(BOARDS))
    outside = rng.choice(list(OUTSIDE), size=rng.integers(3), replace=False)
    env = BASES[base]()
    for part in inside:
        env = INSIDE[part](env)
    board = BOARDS[name](env)
    bare = BOARDS[name](BASES[base]())
    stack = board
    for part in outside:
        stack = OUTSIDE[part](stack)
    return stack, board, bare, rng


def walk(stack, rng):
    """Users of ``reset`` and ``step``, with random actions; the numbers that the stack tells."""
    told = []
    for _ in range(USERS):
        stack.reset(seed=int(rng.integers(1_000)))
        over = False
        while not over:
            _, reward, terminated, truncated, info = stack.step(int(rng.integers(stack.action_space.n)))
            over, told = terminated or truncated, [*told, float(reward)]
            assert info.get("episode", {"r": 0.0})["r"] == 0.0
    return told


def works(seed):
    """Whether the stack lets users in; its guarantee is then held against what an auditor sees of them."""
    try:
        stack, board, bare, rng = composition(seed)
        witness = Witness()
        board.audit.observe(witness)
        told = walk(stack, rng)
    except (ValueError, TypeError, gym.error.Error) as refusal:
        assert len(str(refusal)) > 30, seed  # noqa: PT017 - a sentence
        return False
    assert not any(told), seed  # rewards stay inside, whatever lies outside
    assert board.ledger.epsilon == bare.ledger.epsilon, seed
    assert witness.count >= USERS - 1, seed  # the last one may still be here
    statistic, stated = board.audit.exact, board.audit.exact.sensitivity()
    vectors = np.zeros((len(witness.users), statistic.cells), dtype=np.int64)
    for row, user in zip(vectors, witness.users, strict=True):
        sums.collect(statistic, user, row, NoiseSource(0))
    vectors = vectors * statistic.grid
    for one in vectors:
        assert np.abs(vectors - one).sum(axis=1).max() <= stated.l1 + 1e-4, seed
        assert np.sqrt(((vectors - one) ** 2).sum(axis=1).max()) <= stated.l2 + 1e-4, seed
    return True


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Gymnasium's own, on the order of wrappers
@pytest.mark.parametrize("ten", range(5))
def test_random_compositions_keep_the_guarantee_or_are_refused_with_a_sentence(ten):
    assert sum(works(10 * ten + seed) for seed in range(10)) >= 4

"""Gymnasium's own environments train under privacy, with nothing but wrappers around them."""

import gymnasium as gym
import pytest
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

from private_rl_gym import agents
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard

TAXI = next(name for name in reversed(gym.registry) if name.startswith("Taxi-v"))
# Steps of an episode, least and greatest reward, users, users in a batch; the least that the outcome has to be worth,
# where acting at random is worth about 0.01, -210 and -18. Not to fall is worth -18 on the cliff; to find the goal, 13
# steps away, is worth a hundredth of a fall a step, which takes exact sums and many plans.
PROBLEMS = {
    "FrozenLake-v1": (8, 0.0, 1.0, 10_000, 2, 0.9),
    "CliffWalking-v1": (18, -100.0, 0.0, 3_000, 100, -18.0),
    TAXI: (5, -10.0, 20.0, 4_000, 500, -9.0),
}
# Little noise: these are about the path from environment to agent. The local model adds noise by the user, and reports
# of one step would have to be of many more users.
BOARDS = {
    "open": lambda env, **plan: OpenBillboard(env, **plan),
    "jdp": lambda env, **plan: JDPBillboard(env, 1e4, 1e-6, **plan, rng=0),
    "ldp": lambda env, **plan: LDPUserSide(env, 1e4, randomizer="laplace", **plan, rng=0),
}


def make(id, horizon):
    options = {"is_slippery": False} if id == "FrozenLake-v1" else {}
    return gym.make(id, max_episode_steps=horizon, **options)


def learner(id, board, users=None):
    horizon, low, high, most, batch, _ = PROBLEMS[id]
    plan = {"users": users or most, "schedule": batch, "reward_range": (low, high)}
    board = BOARDS[board](make(id, horizon), **plan)
    board.unwrapped.reset(seed=0)
    return agents.DPUCBVI("TabularPolicy", board, seed=0).learn((users or most) * horizon)


@pytest.mark.slow
@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("id", PROBLEMS)
def test_toy_text_is_learned_under_privacy(id, board):
    """What is learned is worth clearly more than acting at random, in the environment itself."""
    if (id, board) == (TAXI, "ldp"):
        agent = learner(id, board, users=8)  # a report has 15 million entries: that it trains is shown, no more
        assert agent.board.release.users == 8
        return
    horizon, least = PROBLEMS[id][0], PROBLEMS[id][-1]
    mean, _ = evaluate_policy(learner(id, board), Monitor(make(id, horizon)), 100)
    assert mean >= least


@pytest.mark.slow
def test_the_goal_behind_the_cliff_is_found():
    env = make("CliffWalking-v1", 18)
    env.reset(seed=0)
    board = OpenBillboard(env, users=6_000, schedule=2, reward_range=(-100, 0))
    agent = agents.DPUCBVI("TabularPolicy", board, bonus_scale=0.003, seed=0).learn(6_000 * 18)
    assert evaluate_policy(agent, Monitor(make("CliffWalking-v1", 18)), 1)[0] == -13.0

"""LDP-UCRL-VTR: the paper's bonus, its experiment's sizes, and its speed."""

import math
import time

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.agents import LDPUCRLVTR
from private_rl_gym.wrappers import LDPUserSide, OpenBillboard


def hard(**options):
    env = gym.make("PrivateRL/HardLinearMixture-v0", **options)
    env.reset(seed=0)
    return env


def local(epsilon, users, **options):
    return LDPUserSide(hard(**options), epsilon, 0.01, users=users, statistic="linear", rng=1)


def test_the_bonus_is_the_papers():
    """3 d^(3/4) (H - h)^(3/2) k^(1/4) sqrt(log(k + 1) / epsilon) at stage h after k users."""
    agent = LDPUCRLVTR("TabularPolicy", local(0.5, 50), seed=0).learn(40 * 6)
    regression, _ = agent.regressions(agent.board.release)
    growth = 3 * 5**0.75 * 40**0.25 * math.sqrt(math.log(41) / 0.5)
    np.testing.assert_allclose(regression.width, growth * np.arange(6, 0, -1) ** 1.5)
    noise = agent.board.release.noise_norm("gram_p", agent.beta / (24.0 * agent.board.release.releases))
    np.testing.assert_allclose(regression.shift, 1 + 2 * noise)
    free = LDPUCRLVTR("TabularPolicy", OpenBillboard(hard(), users=50, statistic="linear"), seed=0).learn(40 * 6)
    np.testing.assert_allclose(free.regressions(free.board.release)[0].width[0], growth * math.sqrt(0.5) * 6**1.5)


def test_values_are_optimistic_with_the_papers_bonus():
    env = hard(gap=0.015)
    board = LDPUserSide(env, 1.0, 0.01, users=200, statistic="linear", rng=1)
    agent = LDPUCRLVTR("TabularPolicy", board, seed=0).learn(200 * 6)
    _ = agent.policy
    assert agent._plan.v[0, 0] >= env.unwrapped.model.optimal_value()


@pytest.mark.slow
def test_twenty_times_the_episodes_a_second_of_the_published_script():
    """600 a second of processor, of which the script has 30: best of three, as others use the processor too."""
    rates = []
    for _ in range(3):
        agent = LDPUCRLVTR("TabularPolicy", local(1.0, 1_100), seed=0).learn(100 * 6)  # compiled by now
        began = time.process_time()
        agent.learn(1_000 * 6)
        rates.append(1_000 / (time.process_time() - began))
    assert max(rates) > 600

"""The instance behind lower bounds for linear mixtures."""

import math

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.planning.policy import Policy


def make(**options):
    return gym.make("PrivateRL/HardLinearMixture-v0", **options).unwrapped


def test_sizes_are_those_of_the_papers_experiment():
    env = make()
    assert (env.mixture.features.d, env.model.horizon, env.model.n_states, env.model.n_actions) == (5, 6, 8, 16)
    assert env.gap == pytest.approx(math.sqrt(1 / 6 / 10_000) / (4 * math.sqrt(2)))


@pytest.mark.parametrize("options", [{}, {"horizon": 4, "d": 3, "gap": 0.03, "instance_seed": 5}])
def test_a_step_pays_by_the_signs_of_its_action(options):
    env = make(**options)
    H, d = env.model.horizon, env.mixture.features.d
    signs = np.sign(env.mixture.weights[:, 1:])
    for h in range(H):
        rows = env.model.outcomes(h, min(h, H - 1))
        for action in range(2 ** (d - 1)):
            bits = np.array([1 if action >> i & 1 else -1 for i in range(d - 1)])
            chance = 1 / H + env.gap * float(signs[h] @ bits)
            assert rows[action, H + 1] == pytest.approx(chance)
            assert rows[action, h + 1] == pytest.approx(1 - chance)


def test_the_best_policy_follows_the_signs_and_is_worth_what_the_chain_says():
    env = make(gap=0.015)
    H, signs = env.model.horizon, env.mixture.weights[:, 1:] > 0
    best = np.array([sum(1 << i for i in range(4) if row[i]) for row in signs])
    policy = Policy(np.repeat(best[:, None], H + 2, axis=1), 16)
    chance, here, value = 1 / H + 4 * 0.015, 1.0, 0.0
    for h in range(H):
        value += here * chance * (H - 1 - h)
        here *= 1 - chance
    assert env.model.value_of(policy) == pytest.approx(value)
    assert env.model.optimal_value() == pytest.approx(value)


@pytest.mark.parametrize("options", [{"gap": 0.03}, {"gap": 0.0}, {"episodes": 10}, {"d": 1}, {"d": 20}])
def test_gaps_and_sizes_out_of_range_get_a_sentence(options):
    with pytest.raises(ValueError, match=r"it must be"):
        make(**options)

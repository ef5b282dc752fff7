"""Exact values against independent computations."""

import gymnasium as gym
import numpy as np
import pytest

from tests.envs.families import FAMILIES, name
from tests.strategies import uniform_policy

USERS = 200_000


def assert_mean_is(expected, returns):
    """Within four standard errors: with a fixed seed, an error here is an error, not bad luck."""
    error = returns.std() / np.sqrt(len(returns))
    assert error > 0 or np.allclose(returns, expected)
    assert abs(returns.mean() - expected) <= 4 * error + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("case", FAMILIES, ids=name)
def test_monte_carlo_agrees(case):
    id, arguments = case
    model = gym.make(id, **arguments).unwrapped.model
    rng = np.random.default_rng(20)
    tapes = model.draw_users(rng, USERS)
    assert_mean_is(model.optimal_value(), model.rollout(model.optimal_policy(), tapes).returns)
    policy = uniform_policy(model)
    uniforms = rng.random((USERS, model.horizon))
    assert_mean_is(model.value_of(policy), model.rollout(policy, tapes, uniforms).returns)


@pytest.mark.parametrize("case", FAMILIES, ids=name)
def test_simulated_visits_agree_with_occupancy(case):
    id, arguments = case
    model = gym.make(id, **arguments).unwrapped.model
    found = model.rollout(model.optimal_policy(), model.draw_users(np.random.default_rng(21), USERS))
    exact = model.occupancy_of(model.optimal_policy())
    for h in range(model.horizon):
        visits = np.zeros((model.n_states, model.n_actions))
        np.add.at(visits, (found.states[:, h], found.actions[:, h]), 1 / USERS)
        # 5.5 standard errors: some hundreds of cells, so that the false-alarm rate stays below 1e-4
        assert (np.abs(visits - exact[h]) <= 5.5 * np.sqrt(exact[h] * (1 - exact[h]) / USERS) + 1e-9).all()


def test_monte_carlo_is_not_blind():
    """A value that is wrong by a percent is found out."""
    model = gym.make("PrivateRL/RiverSwim-v0").unwrapped.model
    returns = model.rollout(model.optimal_policy(), model.draw_users(np.random.default_rng(0), USERS)).returns
    with pytest.raises(AssertionError):
        assert_mean_is(1.01 * model.optimal_value(), returns)

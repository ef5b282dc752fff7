"""Gymnasium's toy-text tables as exact models."""

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.envs import TabularEnv, TabularModel
from tests.envs.test_values import assert_mean_is

TAXI = max(name for name in gym.registry if name.startswith("Taxi-v"))  # its law is the same in all versions


def simulate(env, policy, horizon, episodes, seed):
    """Returns of a stage-dependent policy in the real environment, cut at the horizon."""
    returns = []
    for episode in range(episodes):
        state, _ = env.reset(seed=seed if episode == 0 else None)
        total = 0.0
        for h in range(horizon):
            state, reward, terminated, _, _ = env.step(policy.action(h, state))
            total += reward
            if terminated:
                break
        returns.append(total)
    return np.array(returns)


@pytest.mark.parametrize(
    ("id", "arguments", "horizon", "reward_range", "episodes"),
    [
        ("FrozenLake-v1", {}, 30, None, 4000),
        ("FrozenLake-v1", {"map_name": "8x8"}, 60, None, 1500),
        ("CliffWalking-v1", {"is_slippery": True}, 40, (-100, 0), 1500),
        (TAXI, {}, 20, (-10, 20), 1500),
    ],
)
def test_the_real_environment_earns_the_exact_value(id, arguments, horizon, reward_range, episodes):
    env = gym.make(id, **arguments).unwrapped
    model = TabularModel.from_gym(env, horizon, reward_range)
    low, high = reward_range or (0, 1)
    returns = simulate(env, model.optimal_policy(), horizon, episodes, seed=4)
    assert_mean_is(model.optimal_value(), (returns - horizon * low) / (high - low))


def test_frozen_lake_by_independent_value_iteration():
    env = gym.make("FrozenLake-v1")
    V = np.zeros(16)
    for _ in range(100):
        V = np.array(
            [
                max(sum(p * (r + (0.0 if done else V[t])) for p, t, r, done in env.unwrapped.P[s][a]) for a in range(4))
                for s in range(16)
            ]
        )
    assert TabularModel.from_gym(env).optimal_value() == pytest.approx(V[0], abs=1e-12)


def test_an_early_end_leads_to_one_absorbing_state():
    model = TabularModel.from_gym(gym.make("FrozenLake-v1"), horizon=12)
    assert (model.n_states, model.horizon, model.reward_law) == (17, 12, "fixed")
    assert (model.transitions[0, 16, :, 16] == 1.0).all()
    assert (model.rewards[0, 16] == 0.0).all()
    env = TabularEnv(model)
    env.reset(seed=0)
    assert [env.step(1)[2] for _ in range(12)] == [False] * 11 + [True]


def test_ways_to_end_that_pay_differently_stay_apart():
    """On the larger lake one step can lead into a hole or to the goal; a user gets 0 or 1, never their average."""
    model = TabularModel.from_gym(gym.make("FrozenLake-v1", map_name="8x8"), horizon=60)
    assert model.n_states == 64 + 2
    assert set(np.unique(model.outcome_rewards)) == {0.0, 1.0}


def test_dynamics_that_the_table_does_not_hold_are_refused():
    with pytest.raises(ValueError, match="fickle passenger"):
        TabularModel.from_gym(gym.make(TAXI, fickle_passenger=True), 20, (-10, 20))


def test_the_horizon_is_the_environments_own_by_default():
    assert TabularModel.from_gym(gym.make("FrozenLake-v1")).horizon == 100


@pytest.mark.parametrize(
    ("id", "arguments", "word"),
    [
        ("CliffWalking-v1", {"horizon": 10}, r"reward_range=\(-100, 0\)"),
        (TAXI, {"reward_range": (-10, 10)}, r"\[-10, 10\].*reward_range=\(-10, 20\)"),
        (TAXI, {"reward_range": (1, 1)}, r"reward_range is \(1, 1\)"),
        ("CliffWalking-v1", {}, r"no step limit.*horizon="),
        ("FrozenLake-v1", {"horizon": 0}, r"horizon is 0"),
    ],
)
def test_what_is_missing_gets_a_sentence(id, arguments, word):
    with pytest.raises(ValueError, match=word):
        TabularModel.from_gym(gym.make(id), **arguments)


def test_an_environment_without_a_table_gets_a_sentence():
    with pytest.raises(TypeError, match=r"CartPoleEnv.*transition table"):
        TabularModel.from_gym(gym.make("CartPole-v1"))
    with pytest.raises(TypeError, match=r"'FrozenLake-v1'.*gym\.make"):
        TabularModel.from_gym("FrozenLake-v1")

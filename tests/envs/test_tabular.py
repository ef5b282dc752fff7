"""One user at a time."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import InvalidAction, ResetNeeded

from private_rl_gym.envs import TabularEnv, TabularModel, TabularVectorEnv


@pytest.fixture
def env():
    return TabularEnv(TabularModel([[[0.5, 0.5]], [[0.5, 0.5]]], [[0.0], [0.5]], horizon=2))


def test_a_tape_decides_everything(env):
    heads = [0.0, 0.9, 0.7, 0.4, 0.2]
    assert env.reset(options={"user": heads}) == (0, {})
    assert env.step(0) == (1, 0.0, False, False, {})
    assert env.step(0) == (0, 1.0, True, False, {})


def test_a_tape_leaves_the_generator_alone(env):
    env.reset(seed=5)
    first = env.np_random.random()
    env.reset(seed=5)
    env.reset(options={"user": np.zeros(5)})
    assert env.np_random.random() == first


def test_stepping_after_the_end_gets_a_sentence(env):
    with pytest.raises(ResetNeeded, match=r"no user yet.*reset\(\)"):
        env.step(0)
    env.reset(seed=0)
    env.step(0)
    env.step(0)
    with pytest.raises(ResetNeeded, match=r"ended after 2 steps.*reset\(\)"):
        env.step(0)


@pytest.mark.parametrize("action", [1, -1, 0.0, "left", None, [0]])
def test_an_action_outside_the_space_gets_a_sentence(env, action):
    env.reset(seed=0)
    with pytest.raises(InvalidAction, match=r"action .*0\.\.0"):
        env.step(action)
    assert env.step(0)[0] in (0, 1)  # and the episode goes on


def test_a_tape_of_the_wrong_shape_gets_a_sentence(env):
    with pytest.raises(ValueError, match=r"shape \(4,\), not \(5,\)"):
        env.reset(options={"user": np.zeros(4)})


def test_a_misspelt_option_gets_a_sentence(env):
    with pytest.raises(ValueError, match=r"option 'users'.*'user'"):
        env.reset(options={"users": np.zeros(5)})
    with pytest.raises(ValueError, match="option 'users'"):
        TabularVectorEnv(env, 2).reset(options={"users": np.zeros((2, 5))})


def test_what_an_environment_is_made_from_is_checked(env):
    with pytest.raises(TypeError, match=r"TabularModel.*OrderEnforcing"):
        TabularEnv(gym.make("PrivateRL/RiverSwim-v0"))
    with pytest.raises(TypeError, match=r"TabularEnv, .*env\.unwrapped"):
        TabularVectorEnv(gym.make("PrivateRL/RiverSwim-v0"), 3)
    with pytest.raises(ValueError, match=r"render_mode is 'foo'.*ansi, rgb_array, human"):
        TabularEnv(env.model, render_mode="foo")


def test_a_horizon_of_zero_gets_a_sentence():
    with pytest.raises(ValueError, match="horizon is 0"):
        gym.make("PrivateRL/RiverSwim-v0", horizon=0)


def test_raw_data_stays_out_of_repr(env):
    env.reset(options={"user": np.full(5, 0.123456)})
    assert "0.123" not in repr(env) + str(env)

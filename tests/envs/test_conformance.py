"""Gymnasium's and Stable-Baselines3's rules, for every id."""

import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_env_for_sb3

import private_rl_gym
from tests.envs.families import FAMILIES, name

CHANCE = "users must differ under one fixed sequence of actions, in the default shape too"
every_family = pytest.mark.parametrize("case", FAMILIES, ids=name)
with_and_without_time = pytest.mark.parametrize("observe_time", [False, True])


@pytest.mark.slow
@every_family
@with_and_without_time
def test_gymnasium_finds_nothing_wrong(case, observe_time):
    id, arguments = case
    check_env(gym.make(id, observe_time=observe_time, **arguments).unwrapped)


@every_family
@with_and_without_time
def test_sb3_finds_nothing_wrong(case, observe_time):
    id, arguments = case
    check_env_for_sb3(gym.make(id, observe_time=observe_time, **arguments).unwrapped)


def play(env, seed=None):
    """An episode's observations, rewards and ends, with actions that do not depend on it."""
    observation, info = env.reset(seed=seed)
    steps = [(observation, info)]
    rng, ended = np.random.default_rng(0), False
    while not ended:
        step = env.step(int(rng.integers(env.action_space.n)))
        ended = step[2]
        steps.append(step)
    return steps


def same(first, second):
    return str(first) == str(second)


@every_family
@with_and_without_time
def test_seeds_follow_gymnasiums_rules(case, observe_time):
    id, arguments = case
    env = gym.make(id, observe_time=observe_time, **arguments)
    seeded = [play(env, seed=7), play(env), play(env)]
    assert env.unwrapped.np_random_seed == 7
    again = [play(env, seed=7), play(env), play(env)]
    assert same(seeded, again)
    other = [play(env, seed=8)] + [play(env) for _ in range(20)]
    differ = not same(seeded[0], other[0]) or not same(seeded[1:], other[1:3])
    assert differ, f"another seed brings the same users: {CHANCE}"


@every_family
def test_users_differ_from_each_other(case):
    id, arguments = case
    env = gym.make(id, **arguments)
    seen = {str(play(env, seed=0 if user == 0 else None)) for user in range(50)}
    assert len(seen) > 1, f"50 users in a row are alike: {CHANCE}"


@every_family
@with_and_without_time
def test_a_pickled_environment_goes_on_where_it_was(case, observe_time):
    id, arguments = case
    env = gym.make(id, observe_time=observe_time, **arguments)
    env.reset(seed=3)
    env.unwrapped.render_mode = None
    twin = pickle.loads(pickle.dumps(env))
    for _ in range(3):
        rest = [env.step(0) for _ in range(env.unwrapped.model.horizon)]
        assert same(rest, [twin.step(0) for _ in range(env.unwrapped.model.horizon)])
        assert same(env.reset(), twin.reset())


@every_family
@with_and_without_time
def test_an_environment_is_made_again_from_its_spec(case, observe_time):
    id, arguments = case
    env = gym.make(id, observe_time=observe_time, **arguments)
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    np.testing.assert_array_equal(env.unwrapped.model.transitions, again.unwrapped.model.transitions)
    np.testing.assert_array_equal(env.unwrapped.model.rewards, again.unwrapped.model.rewards)
    assert same(play(env, seed=1), play(again, seed=1))


@every_family
def test_native_types_come_out(case):
    id, arguments = case
    env = gym.make(id, **arguments).unwrapped
    observation, info = env.reset(seed=0)
    assert type(observation) is int
    assert info == {}
    for action in (0, np.int64(1), np.array(1)):
        env.reset(seed=0)
        observation, reward, terminated, truncated, info = env.step(action)
        assert (type(observation), type(reward), type(terminated), type(truncated)) == (int, float, bool, bool)
        assert info == {}


@every_family
def test_observed_time_counts_the_steps_and_stays_in_its_space(case):
    id, arguments = case
    env = gym.make(id, observe_time=True, **arguments)
    steps = play(env, seed=0)
    H = env.unwrapped.model.horizon
    assert [int(step[0][0]) for step in steps] == [*range(H), H - 1]
    assert all(step[0] in env.observation_space for step in steps)
    plain = play(gym.make(id, **arguments), seed=0)
    assert [int(step[0][1]) for step in steps] == [step[0] for step in plain]


def test_every_id_is_covered():
    missing = sorted(set(private_rl_gym.ENVIRONMENTS) - {id for id, _ in FAMILIES})
    assert not missing, f"{', '.join(missing)}: add a line for each shape to FAMILIES of tests/envs/families.py"

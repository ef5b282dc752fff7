"""Boundaries by the ids of Gymnasium: options find their place, and specifications make the same again."""

import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from stable_baselines3.common.env_util import make_vec_env

import private_rl_gym
from private_rl_gym.wrappers import JDPBillboard, LDPPerStep, OpenBillboard

OPTIONS = {
    "JDP": {"epsilon": 2.0, "delta": 1e-6, "users": 50},
    "LDP": {"epsilon": 2.0, "users": 50},
    "SDP": {"epsilon": 2.0, "delta": 1e-6, "users": 5_000, "schedule": 5_000},
    "PerStep": {"epsilon": 2.0},
}


@pytest.mark.parametrize("short", private_rl_gym.BOARDS)
def test_an_id_makes_the_boundary_itself(short):
    board = gym.make(f"PrivateRL/RiverSwim-{short}-v0", horizon=6, n_states=4, **OPTIONS[short])
    assert type(board).__name__ == private_rl_gym.BOARDS[short]
    users = board.source
    assert (users.horizon, users.n_states) == (6, 4)
    assert board.ledger.epsilon == 2.0


def again(spec):
    yield EnvSpec.from_json(spec.to_json())
    yield pickle.loads(pickle.dumps(spec))


@pytest.mark.parametrize("short", private_rl_gym.BOARDS)
def test_a_specification_makes_the_same_boundary_with_a_budget_of_its_own(short):
    board = gym.make(f"PrivateRL/FrozenLake-{short}-v0", horizon=5, **OPTIONS[short])
    board.reset()
    for spec in again(board.spec):
        other = gym.make(spec)
        assert type(other) is type(board)
        assert str(other.ledger) == str(board.ledger)
        assert other.unwrapped is not board.unwrapped


def test_gymnasiums_own_way_to_register_a_wrapper():
    wrappers = (JDPBillboard.wrapper_spec(epsilon=1.0, delta=1e-6, users=20),)
    options = {"additional_wrappers": wrappers, "order_enforce": False, "disable_env_checker": True}
    gym.register("Test/River-v0", entry_point="private_rl_gym.envs:RiverSwim", **options)
    try:
        board = gym.make("Test/River-v0", horizon=4)
        assert isinstance(board, JDPBillboard)
        for spec in again(board.spec):
            assert str(gym.make(spec).ledger) == "(1.0, 1e-06)-JDP, replace one user, 20 users"
    finally:
        gym.registry.pop("Test/River-v0")


def test_several_users_at_once_are_told_by_boundaries_of_their_own():
    envs = gym.make_vec("PrivateRL/RiverSwim-PerStep-v0", num_envs=3, vectorization_mode="sync", epsilon=4.0, horizon=5)
    assert all(isinstance(env, LDPPerStep) and str(env.ledger).startswith("(4.0, 0)-LDP") for env in envs.envs)
    observations, _ = envs.reset(seed=1)
    assert observations.shape == (3,)
    for _ in range(5):
        _, _, ended, _, infos = envs.step([1, 1, 1])
    assert ended.all()
    assert not infos
    assert len({id(env._noise) for env in envs.envs}) == 3


def test_stable_baselines3s_vectors_show_what_is_told():
    options = {
        "epsilon": 4.0,
        "horizon": 3,
        "render_mode": None,
    }  # Stable-Baselines3 asks for pictures, which stay inside
    envs = make_vec_env("PrivateRL/RiverSwim-PerStep-v0", n_envs=2, env_kwargs=options)
    assert envs.reset().shape == (2,)
    for _ in range(3):
        _, _, ended, infos = envs.step(np.array([1, 1]))
    assert ended.all()
    assert all(set(info) <= {"episode", "terminal_observation", "TimeLimit.truncated"} for info in infos)


def test_what_is_missing_is_said():
    with pytest.raises(TypeError, match="epsilon"):
        gym.make("PrivateRL/RiverSwim-JDP-v0")
    with pytest.raises(TypeError, match="price"):
        gym.make("PrivateRL/RiverSwim-JDP-v0", epsilon=1.0, users=5, price=3)
    board = gym.make("PrivateRL/RiverSwim-LDP-v0", **OPTIONS["LDP"])
    with pytest.raises(ValueError, match="OpenBillboard around LDPUserSide"):
        OpenBillboard(board)


def test_what_differs_by_stage_differs_inside_too():
    plain = gym.make("PrivateRL/Garnet-v0", stationary=False).unwrapped.model
    board = gym.make("PrivateRL/Garnet-JDP-v0", stationary=False, **OPTIONS["JDP"])
    assert board.unwrapped.model.optimal_value() == plain.optimal_value()
    assert not board.statistic.name.startswith("pooled")

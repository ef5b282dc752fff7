"""The world model: learners in it, what is taken over from Stable-Baselines3, files, and what it learns."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.env_checker import check_env

from private_rl_gym import make_private
from private_rl_gym.agents import DPPPO, WorldModelAgent
from private_rl_gym.agents.world.fit import WorldModel
from private_rl_gym.agents.world.learners import SETTINGS, parameters_of
from private_rl_gym.agents.world.simulation import Rules, Simulation
from private_rl_gym.planning.network import ExploringPolicy, Layers, Network, NetworkPolicy
from private_rl_gym.planning.polynomials import Basis, Polynomials
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard


class Drift(gym.Env):
    """A point that is pushed, whose change is linear in its place and in the push; it earns by being near 1."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)

    def __init__(self, numbers=True):
        self.action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32) if numbers else gym.spaces.Discrete(3)
        self.numbers = numbers

    def _seen(self):
        return self.place.astype(np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.uniform(-1.0, 1.0, 2)
        return self._seen(), {}

    def step(self, action):
        push = float(action[0]) if self.numbers else float(action) - 1.0
        x, v = self.place
        self.place = np.array([x + 0.2 * v, 0.8 * v + 0.3 * push])
        return self._seen(), -((x - 1.0) ** 2), False, False, {}


def drift(numbers=True, seed=0, steps=12):
    env = gym.wrappers.TimeLimit(Drift(numbers), steps)
    env.reset(seed=seed)
    return env


def learned(env=None, users=400, epsilon=4.0, **options):
    board = JDPBillboard(drift() if env is None else env, epsilon, 1e-6, users=users, rng=1)
    agent = WorldModelAgent("MlpPolicy", board, seed=0, **{"degree": 1, "timesteps": 600, **options})
    return agent.learn(users * board.sizes[0])


def test_linear_dynamics_are_learned_nearly_exactly():
    agent = learned(users=2000, epsilon=8.0, reward=lambda seen, *_: -((seen[:, 0] - 1.0) ** 2))
    states = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 2))
    push = np.linspace(-1.0, 1.0, 50)[:, None]
    change = agent.model.changes(states, push)
    v = states[:, 1]
    np.testing.assert_allclose(change[:, 0], 0.2 * v, atol=0.02)
    np.testing.assert_allclose(change[:, 1], -0.2 * v + 0.3 * push[:, 0], atol=0.02)
    assert agent.model.clip < 0.5  # at first it is 1.0


@pytest.mark.parametrize("name", ["A2C", "SAC", "TD3", "DDPG"])
def test_any_learner_of_numbers_is_trained_in_the_model_and_acts(name):
    agent = learned(learner=name)
    action, _ = agent.predict(np.zeros(2, dtype=np.float32), deterministic=True)
    assert agent.action_space.contains(action)
    assert str(agent.guarantee).startswith("(4.0, 1e-06)-JDP, replace one user, 400 users")


def test_dqn_is_trained_where_actions_are_choices():
    agent = learned(drift(numbers=False), learner="DQN")
    actions, _ = agent.predict(np.zeros((4, 2), dtype=np.float32))
    assert actions.shape == (4,)
    assert all(agent.action_space.contains(action) for action in actions)


@pytest.mark.parametrize("kind", [PPO, A2C, SAC, TD3, DDPG, DQN])
def test_the_network_of_a_learner_acts_as_the_learner_does(kind):
    choices = (3,) if kind is DQN else ()
    basis, rng = Basis(2, choices, 0 if choices else 2, 1), np.random.default_rng(0)
    model = WorldModel.unknown(basis, -np.full(2, 9.0), np.full(2, 9.0))
    model = WorldModel(
        **{
            **{name: getattr(model, name) for name in model.__dataclass_fields__},
            "centre": np.array([0.5, -2.0]),
            "scale": np.array([0.1, 3.0]),
        }
    )
    simulation = Simulation(model, Rules(10, None, None), 2, 1.0, rng)
    learner = kind("MlpPolicy", simulation, seed=0, policy_kwargs={"net_arch": [8, 8]})
    relu, squashed = kind not in (PPO, A2C), kind in (SAC, TD3, DDPG)
    network = Network(2, Layers((8, 8), "relu" if relu else "tanh"), choices, 0 if choices else 2, squashed)
    policy = NetworkPolicy(network, parameters_of(learner, model), 10)
    states = rng.uniform(-1.0, 1.0, (40, 2))
    theirs, _ = learner.predict(model.standardized(states).astype(np.float32), deterministic=True)
    ours = policy.act(states, None)
    np.testing.assert_allclose(np.clip(ours, -1.0, 1.0) if not choices else ours[:, 0], theirs, atol=2e-5)


def test_the_simulation_is_an_environment_of_stable_baselines3():
    basis = Basis(2, (3,), 0, 1)
    model = WorldModel.unknown(basis, -np.ones(2), np.ones(2))
    ends = Simulation(model, Rules(5, lambda states: states[:, 0] > 2.0, None), 3, 1.0, np.random.default_rng(0))
    assert ends.reset().shape == (3, 2)
    for step in range(5):
        _, rewards, done, infos = ends.step(np.zeros(3))
        assert (rewards == 0.0).all()
        assert done.all() == (step == 4)
    assert all(info["TimeLimit.truncated"] for info in infos)
    assert len(ends.returns) == 3


def test_users_explore_with_actions_that_are_kept_for_a_while():
    network = Network(2, Layers(()), continuous=1)
    policy = ExploringPolicy(network, np.zeros(network.size), 60, share=1.0, longest=32.0)
    draws = policy.draws(np.random.default_rng(0), 400)
    held = draws[:, 1:, 1] == draws[:, :-1, 1]
    assert 0.5 < held.mean() < 0.9
    assert held[np.argmin(held.mean(axis=1))].mean() < 0.2
    rows, actions = np.zeros((400, 2)), np.zeros((400, 1))
    policy.choose(rows, draws[:, 0], np.ones(400, dtype=bool), actions)
    np.testing.assert_array_equal(actions[:, 0], draws[:, 0, 1])
    still = ExploringPolicy(network, np.ones(network.size), 60, share=0.0)
    still.choose(rows, still.draws(np.random.default_rng(0), 400)[:, 0] * 0.0, np.ones(400, dtype=bool), actions)
    np.testing.assert_array_equal(actions, 1.0)


# Choices -------------------------------------------------------------------------------------------------------------


def made(agent, env="Pendulum-v1", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_private(agent, env, epsilon=1.0, users=3000, **options)


def test_make_private_chooses_a_world_model_for_learners_that_replay_and_where_the_end_is_known():
    assert isinstance(made(PPO), DPPPO)
    assert isinstance(made(PPO, terminated=None), WorldModelAgent)
    agent = made(PPO, "CartPole-v1", terminated=lambda seen: np.abs(seen[:, 0]) > 2.4)
    assert isinstance(agent, WorldModelAgent)
    for kind in (SAC, TD3, DDPG):
        assert made(kind).learner == kind.__name__
    assert made(DQN, "CartPole-v1").learner == "DQN"
    assert made(SAC).board.statistic.name == "dynamics"


def test_make_private_takes_over_the_settings_of_a_learner():
    learner = SAC("MlpPolicy", "Pendulum-v1", gamma=0.9, seed=3, policy_kwargs={"net_arch": [16]})
    agent = made(learner)
    assert (agent.learner_kwargs["gamma"], agent.seed, agent.network.layers.hidden) == (0.9, 3, (16,))


def test_the_degree_follows_from_noise_and_users():
    def degree(epsilon, users):
        return made(SAC).needs(JDPBillboard(gym.make("Pendulum-v1"), epsilon, 1e-6, users=users)).degree

    assert [degree(epsilon, 3000) for epsilon in (0.1, 0.5, 4.0)] == [1, 2, 3]
    assert made(SAC).needs(OpenBillboard(gym.make("Pendulum-v1"), users=300)) == Polynomials(3)


def test_learners_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="SAC takes actions that are numbers"):
        made(SAC, "CartPole-v1")
    with pytest.raises(ValueError, match="DQN takes actions of a Discrete space"):
        made(DQN)
    with pytest.raises(ValueError, match="choose one of PPO"):
        WorldModelAgent("MlpPolicy", learner="TRPO")
    assert set(SETTINGS) == {"PPO", "A2C", "SAC", "TD3", "DDPG", "DQN"}


# Files and seeds ------------------------------------------------------------------------------------------------------


def test_a_saved_agent_acts_and_states_its_guarantee(tmp_path):
    agent = learned(learner="SAC")
    agent.save(tmp_path / "agent")
    again = WorldModelAgent.load(tmp_path / "agent")
    seen = np.random.default_rng(0).uniform(-1.0, 1.0, (9, 2)).astype(np.float32)
    np.testing.assert_array_equal(
        again.predict(seen, deterministic=True)[0], agent.predict(seen, deterministic=True)[0]
    )
    assert str(again.guarantee) == str(agent.guarantee)


def test_a_run_goes_on_after_it_was_saved_without_training_again(tmp_path, monkeypatch):
    board = JDPBillboard(drift(), 4.0, 1e-6, users=400, rng=1)
    agent = WorldModelAgent("MlpPolicy", board, seed=0, degree=1, timesteps=600).learn(330 * 12)
    agent.save(tmp_path / "agent")
    before = len(agent._trained)
    assert before == 2  # users of the last phase have begun to come

    def fails(*_):
        raise AssertionError("a learner was trained that had been trained")

    monkeypatch.setattr("private_rl_gym.agents.world.learners.trained", fails)
    again = WorldModelAgent.load(tmp_path / "agent", board)
    assert len(again._trained) == before
    np.testing.assert_array_equal(again.model.coefficients, agent.model.coefficients)


def test_the_same_seed_gives_the_same_policy():
    one, other = (learned().get_parameters()["policy"]["parameters"] for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_check_env_passes_where_a_model_was_learned():
    check_env(drift().unwrapped, warn=False)
    agent = learned()
    assert agent.progress()["model/clip"] == agent.model.clip


def test_users_may_noise_their_own_reports():
    board = LDPUserSide(drift(), 8.0, users=400, rng=1)
    agent = WorldModelAgent("MlpPolicy", board, seed=0, degree=1, timesteps=600).learn(400 * 12)
    assert str(agent.guarantee).startswith("(8.0, 0)-LDP")


# What it learns -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_pendulum_is_balanced_at_epsilon_one_with_three_thousand_users():
    env = gym.make("Pendulum-v1")
    env.reset(seed=0)
    board = JDPBillboard(env, 1.0, 1e-6, users=3000, rng=0)
    agent = WorldModelAgent("MlpPolicy", board, seed=0).learn(3000 * 200)
    returns = []
    for seed in range(20):
        seen, _ = env.reset(seed=seed)
        returns.append(0.0)
        for _ in range(200):
            action, _ = agent.predict(seen, deterministic=True)
            seen, reward, *_ = env.step(action)
            returns[-1] += reward
    assert np.mean(returns) > -400.0  # at random it is -1,200

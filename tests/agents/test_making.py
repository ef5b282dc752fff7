"""One line from a public agent to a private one."""

import gymnasium as gym
import pytest
import torch
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from private_rl_gym import agents, make_private
from private_rl_gym.wrappers import JDPBillboard


def cart():
    return gym.make("CartPole-v1", max_episode_steps=40)


def ppo():
    kwargs = {"net_arch": [5], "activation_fn": torch.nn.ReLU}
    return PPO("MlpPolicy", cart(), gamma=0.9, seed=3, policy_kwargs=kwargs, device="cpu")


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (PPO, agents.DPPPO),
        (A2C, agents.DPPolicyGradient),
        (agents.DPPPO, agents.DPPPO),
        (agents.DPPolicyGradient("MlpPolicy", None, gamma=0.9, seed=3), agents.DPPolicyGradient),
    ],
)
def test_agents_and_classes_become_private(given, kind):
    agent = make_private(given, cart(), epsilon=2.0, delta=1e-7, users=60)
    assert type(agent) is kind
    assert isinstance(agent.board, JDPBillboard)
    assert str(agent.guarantee) == "(2.0, 1e-07)-JDP, replace one user, 60 users"
    assert agent.gamma == (1.0 if isinstance(given, type) else 0.9)
    agent.learn(60 * 40)
    assert agent.board.users_left == 0


def test_what_an_agent_was_built_with_is_taken_over():
    agent = make_private(ppo(), DummyVecEnv([cart]), epsilon=2.0, users=60)
    assert (agent.gamma, agent.seed) == (0.9, 3)
    assert agent.network.layers.hidden == (5,)
    assert agent.network.relu
    assert make_private(ppo(), cart(), epsilon=2.0, users=60, gamma=0.5).gamma == 0.5


def test_counting_agents_are_made_private_too():
    agent = make_private(agents.FrugalUCBVI, "PrivateRL/RiverSwim-v0", epsilon=2.0, users=60)
    assert agent.board.statistic.name == "reports"


@pytest.mark.parametrize(
    ("build", "kind", "sentence"),
    [
        (lambda: make_private(DQN, cart(), epsilon=1.0, users=9), TypeError, "DQN has no private counterpart"),
        (lambda: make_private(PPO, JDPBillboard(cart(), 1.0, users=9), epsilon=1.0, users=9), ValueError, "already"),
        (lambda: make_private(PPO, cart(), epsilon=0.0, users=9), ValueError, "epsilon is 0.0"),
    ],
)
def test_bad_input_gets_a_sentence(build, kind, sentence):
    with pytest.raises(kind, match=sentence):
        build()

"""One line from a public agent to a private one."""

import inspect
import re
from pathlib import Path

import gymnasium as gym
import pytest
import torch
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecMonitor, VecNormalize

from private_rl_gym import agents, make_private
from private_rl_gym.wrappers import JDPBillboard


def cart():
    return gym.make("CartPole-v1", max_episode_steps=40)


def number():
    return gym.make("MountainCarContinuous-v0")


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


def test_what_was_learned_without_privacy_stays_behind_and_is_said_to():
    learned = PPO("MlpPolicy", cart(), n_steps=8, batch_size=8, device="cpu").learn(8)
    sentence = r"This PPO has learned for 8 steps, and the private DPPPO begins anew: .* else give the class, PPO\."
    with pytest.warns(UserWarning, match=sentence) as said:
        agent = make_private(learned, cart(), epsilon=2.0, users=6_000)
    assert agent.num_timesteps == 0
    assert said[0].filename == __file__  # the line to change


def test_a_private_agent_that_has_learned_is_loaded_around_a_board(tmp_path):
    first = make_private(agents.DPPPO, cart(), epsilon=2.0, users=60).learn(60 * 40)
    first.save(tmp_path / "agent")
    loaded = agents.DPPPO.load(tmp_path / "agent")
    with pytest.warns(UserWarning, match=r"This DPPPO has learned for 2,400 steps.*DPPPO\.load\(path, JDPBillboard"):
        make_private(loaded, cart(), epsilon=1.0, users=60)
    on = agents.DPPPO.load(tmp_path / "agent", JDPBillboard(cart(), 1.0, 1e-6, users=60))
    assert (on.best_policy().parameters == first.best_policy().parameters).all()


@pytest.mark.parametrize(
    ("wrap", "sentence"),
    [
        (VecNormalize, "VecNormalize scales by statistics of users"),
        (lambda env: VecNormalize(VecMonitor(env)), "TransformObservation around the environment"),
        (lambda env: VecFrameStack(env, 2), "VecFrameStack would have no effect"),
    ],
)
def test_what_would_be_dropped_from_around_an_environment_is_refused(wrap, sentence):
    with pytest.raises(ValueError, match=sentence):
        make_private(PPO, wrap(DummyVecEnv([cart])), epsilon=2.0, users=60)
    with pytest.raises(ValueError, match=sentence):
        agents.DPPPO("MlpPolicy", wrap(DummyVecEnv([cart])))
    assert make_private(PPO, VecMonitor(DummyVecEnv([cart])), epsilon=2.0, users=60).horizon == 40


def test_a_public_scale_lies_inside_the_board():
    space = gym.spaces.Box(-10.0, 10.0, (4,))
    scaled = gym.wrappers.TransformObservation(cart(), lambda seen: seen / 2.0, space)
    agent = make_private(PPO, scaled, epsilon=2.0, users=60).learn(60 * 40)
    assert agent.board.users_left == 0


def test_a_delta_that_would_let_somebody_be_published_is_said():
    with pytest.warns(UserWarning, match=r"delta is above 1 / 60 users, which.*It is 0\.5: take 1e-6") as said:
        make_private(PPO, cart(), epsilon=2.0, delta=0.5, users=60)
    assert said[0].filename == __file__


def test_counting_agents_are_made_private_too():
    for options, statistic in (({}, "staged-reports"), ({"stationary": True}, "reports")):
        agent = make_private(agents.FrugalUCBVI, "PrivateRL/RiverSwim-v0", epsilon=2.0, users=60, **options)
        assert agent.board.statistic.name == statistic


class NegGrid(gym.Env):
    """Three places in a row, which cost 2 or nothing."""

    observation_space, action_space = gym.spaces.Discrete(3), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, **_):
        super().reset(seed=seed)
        self.place = 0
        return 0, {}

    def step(self, action):
        self.place = min(2, self.place + int(action))
        return self.place, -2.0 * (self.place < 2), False, False, {}


def test_options_of_the_boundary_reach_it():
    env = gym.wrappers.TimeLimit(NegGrid(), 5)
    options = {"reward_range": (-2, 0), "visits": 2, "stationary": False, "schedule": 20, "seed": 3}
    agent = make_private(agents.FrugalUCBVI, env, epsilon=4.0, users=400, **options).learn(400 * 5)
    assert agent.board.users_left == 0
    assert agent.guarantee.visits == 2
    assert not agent.guarantee.seeded  # the seed is the agent's
    assert (agent.stationary, agent.seed, agent.board.batch_size) == (False, 3, 20)
    assert make_private(agents.DPPPO, cart(), epsilon=4.0, users=400, batch_size=20).batch_size == 20
    assert make_private(agents.DPUCBVI, env, epsilon=4.0, users=400, schedule=20, reward_range=(-2, 0)).learn(400 * 5)


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("n_envs", r"n_envs is no argument of DPPPO, nor of its boundary\. .*many users at a time by itself\."),
        ("device", "device is no argument of DPPPO.*by compiled code on the processor"),
        ("n_steps", "batch_size is the number of users in a batch"),
        ("policy", r"policy_kwargs=\{'net_arch': \[32\]\}"),
        ("target_kl", "each user is in one batch, and their episode is used once"),
        ("max_grad_norm", "Its counterpart is clip"),
        ("learning_rat", r"Did you mean learning_rate\?"),
        ("reward_ranges", r"Did you mean reward_range\?"),
        ("wholly_unknown", r"It takes beta, learning_rate, .*, and JDPBillboard counting, .*reward_range, rng\.$"),
    ],
)
def test_an_unknown_argument_is_refused_with_the_reason_or_the_nearest(option, sentence):
    with pytest.raises(TypeError, match=sentence):
        make_private(PPO, cart(), epsilon=1.0, users=9, **{option: 1})


def test_every_reason_is_about_an_argument_of_theirs_that_is_missing_here():
    from stable_baselines3.common.env_util import make_vec_env

    from private_rl_gym.agents.make_private import ABSENT

    theirs = {name for kind in (PPO, A2C, DQN, make_vec_env) for name in inspect.signature(kind).parameters}
    assert set(ABSENT) <= theirs
    assert not set(ABSENT) & (set(agents.DPPolicyGradient.saved_arguments) | {"reward_range"})


@pytest.mark.parametrize(
    ("build", "kind", "sentence"),
    [
        (
            lambda: make_private(type("TRPO", (PPO,), {}), cart(), epsilon=1.0, users=9),
            TypeError,
            "TRPO has no private counterpart: .*PPO, A2C, SAC, TD3, DDPG or DQN",
        ),
        (
            lambda: make_private(PPO, cart, epsilon=1.0, users=9),
            TypeError,
            "A function is not one environment: call it",
        ),
        (lambda: make_private(PPO, NegGrid, epsilon=1.0, users=9), TypeError, "The class NegGrid is not one .*call it"),
        (lambda: make_private(agents.UCBVI, NegGrid(), epsilon=1.0, users=9), ValueError, r"TimeLimit\(env, 200\)"),
        (lambda: agents.DPPPO("MlpPolicy", None).set_env(NegGrid()), ValueError, r"wrappers.TimeLimit\(env, 200\)"),
        (lambda: make_private(PPO, JDPBillboard(cart(), 1.0, users=9), epsilon=1.0, users=9), ValueError, "already"),
        (lambda: make_private(PPO, cart(), epsilon=0.0, users=9), ValueError, "epsilon is 0.0"),
    ],
)
def test_bad_input_gets_a_sentence(build, kind, sentence):
    with pytest.raises(kind, match=sentence):
        build()


@pytest.mark.slow
def test_the_script_of_the_guide_differs_in_two_lines_and_runs(tmp_path, monkeypatch):
    """Before and after, as they stand on the page; here with few users."""
    page = (Path(__file__).parents[2] / "docs" / "howto" / "stable-baselines3.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    after = next(block for block in blocks if "make_private" in block)
    before = blocks[blocks.index(after) - 1]
    lines = after.splitlines()[:-1]  # without the one that prints the promise
    new = [line for line in lines if line not in before.splitlines()]
    assert len(new) == 2
    assert len(lines) == len(before.splitlines()) + 1
    monkeypatch.chdir(tmp_path)
    for script in (before, after):
        names = {}
        exec(script.replace("10_000", "40"), names)  # the users of the page take minutes
        assert names["mean"] >= 1.0
    assert str(names["model"].guarantee) == "(1.0, 1e-06)-JDP, replace one user, 40 users"

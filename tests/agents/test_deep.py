"""Learners with policy networks: what they learn, Stable-Baselines3's interface, files, and what they may not see."""

import json
import warnings
import zipfile

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from private_rl_gym.agents import DPPPO, UCBVI, DPPolicyGradient
from private_rl_gym.planning.network import Layers
from private_rl_gym.privacy.protocols import Exact
from private_rl_gym.wrappers import JDPBillboard, OpenBillboard, SDPShuffler

AGENTS = [DPPolicyGradient, DPPPO]
every_agent = pytest.mark.parametrize("kind", AGENTS)


def cart(steps=40):
    return gym.make("CartPole-v1", max_episode_steps=steps)


def jdp(env=None, seed=5, **options):
    env = cart() if env is None else env
    env.unwrapped.reset(seed=1)
    return JDPBillboard(env, **{"epsilon": 8.0, "delta": 1e-6, "users": 900, "rng": seed, **options})


class Toy(gym.Env):
    """Any spaces: the reward is 1 if the first number of the action is the wanted one."""

    def __init__(self, seen, done):
        self.observation_space, self.action_space = seen, done

    def reset(self, *, seed=None, **_):
        super().reset(seed=seed)
        self.observation_space.seed(int(self.np_random.integers(2**31)))
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        return self.observation_space.sample(), float(np.ravel(action)[0] > 0.0), False, False, {}


gym.register("Toy-v0", entry_point=Toy)
SEEN = {
    "box": spaces.Box(-1.0, 1.0, (2, 2)),
    "pixels": spaces.Box(0, 255, (2, 2), np.uint8),
    "discrete": spaces.Discrete(3, start=2),
    "several": spaces.MultiDiscrete([2, 3], start=[1, 0]),
    "binary": spaces.MultiBinary(3),
    "tuple": spaces.Tuple((spaces.Discrete(2), spaces.Box(0.0, 1.0, (2,)))),
    "dict": spaces.Dict({"a": spaces.Discrete(2), "b": spaces.MultiBinary(2)}),
}
DONE = {
    "discrete": spaces.Discrete(3, start=-1),
    "several": spaces.MultiDiscrete([2, 3]),
    "binary": spaces.MultiBinary(2),
    "box": spaces.Box(-2.0, 3.0, (2,)),
}


def toy(seen="box", done="discrete"):
    return gym.make("Toy-v0", seen=SEEN[seen], done=DONE[done], max_episode_steps=4, disable_env_checker=True)


@pytest.mark.parametrize("kind", [DPPolicyGradient, pytest.param(DPPPO, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("done", DONE)
def test_all_spaces_are_learned_and_predicted(kind, seen, done, tmp_path):
    agent = kind("MlpPolicy", OpenBillboard(toy(seen, done), users=900), seed=0, batch_size=100, momentum=0.0)
    agent.learn(900 * 4)
    space = agent.observation_space
    likely = [agent.predict(space.sample(), deterministic=True)[0] for _ in range(20)]
    assert all(agent.action_space.contains(action) for action in likely)
    assert np.mean([np.ravel(action)[0] > 0 for action in likely]) > 0.9  # it learned which action pays
    agent.save(tmp_path / "agent")
    again = kind.load(tmp_path / "agent")
    for _ in range(3):
        seen_now = space.sample()
        first, second = (one.predict(seen_now, deterministic=True)[0] for one in (agent, again))
        assert np.array_equal(first, second)
    assert again.action_space == agent.action_space
    assert again.observation_space == agent.observation_space


@every_agent
def test_several_observations_get_several_actions(kind):
    agent = kind("MlpPolicy", OpenBillboard(cart(), users=300), seed=0, batch_size=50)
    one, state = agent.predict(np.zeros(4))
    many, _ = agent.predict(np.zeros((7, 4)), deterministic=True)
    assert np.shape(one) == ()
    assert many.shape == (7,)
    assert state is None
    with pytest.raises(ValueError, match="An observation is not in"):
        agent.predict(np.full(4, np.nan))


# Privacy -------------------------------------------------------------------------------------------------------------


class Scrambled(gym.Wrapper):
    """The outside of a stack that shows other rewards and observations than users had."""

    def step(self, _action):
        return self.observation_space.sample(), 1e9, False, False, {}


@every_agent
def test_a_learner_learns_from_releases_alone(kind):
    """Whatever the outside shows: what is learned is bit for bit the same."""
    learned = []
    for wrap in (lambda env: env, Scrambled):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            agent = kind("MlpPolicy", wrap(jdp()), seed=0)
        learned.append(agent.learn(900 * 40).policy.parameters)
    assert (learned[0] == learned[1]).all()


class Zeros(Exact):
    def publish(self, sums, batch, releases):
        return np.zeros(self.side.statistic.cells)


class Forged(OpenBillboard):
    """Publishes zeros, so that whatever else a learner reads shows in what it learns."""

    protocol = Zeros


@every_agent
def test_steps_depend_on_nothing_but_what_is_published(kind):
    """Two populations with different rewards, and the same numbers on the billboard."""
    learned = []
    for pays in (1.0, -3.0):
        env = gym.wrappers.TransformReward(cart(), lambda reward, pays=pays: pays * reward)
        learned.append(kind("MlpPolicy", Forged(env, users=400), seed=0, batch_size=100).learn(400 * 40))
    assert (learned[0].policy.parameters == learned[1].policy.parameters).all()


@every_agent
def test_every_user_is_in_one_batch_and_all_are_used(kind):
    board = jdp(users=777)
    agent = kind("MlpPolicy", board, seed=0)
    agent.learn(777 * 40)
    assert board.users_left == 0
    assert board.release.users == 777
    assert agent.num_timesteps == 777 * 40  # the public number: that of real steps is data
    _ = agent.policy  # the step after the last batch
    assert agent.finished


@every_agent
def test_logs_tell_the_promise_and_nothing_of_users(kind, tmp_path):
    agent = kind("MlpPolicy", jdp(), seed=0, verbose=0, tensorboard_log=str(tmp_path))
    agent.learn(900 * 40, log_interval=1)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder = next(tmp_path.iterdir())
    events = EventAccumulator(str(folder))
    events.Reload()
    tags = set(events.Tags()["scalars"])
    assert {"privacy/epsilon", "privacy/delta", "privacy/users_left", "release/noise_std"} <= tags
    assert not {"time/fps", "rollout/ep_rew_mean", "rollout/ep_len_mean"} & tags
    assert events.Scalars("privacy/epsilon")[-1].value == 8.0
    assert events.Scalars("privacy/users_left")[-1].value == 0.0


# Stable-Baselines3's interface ---------------------------------------------------------------------------------------


@every_agent
def test_callbacks_and_evaluation_work_as_with_their_own(kind, tmp_path):
    agent = kind("MlpPolicy", jdp(users=30), seed=0, batch_size=10)
    callbacks = [
        EvalCallback(Monitor(cart()), eval_freq=400, n_eval_episodes=2, verbose=0),
        CheckpointCallback(400, str(tmp_path)),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tqdm calls rich experimental
        agent.learn(30 * 40, callback=callbacks, progress_bar=True)
    mean, _ = evaluate_policy(agent, Monitor(cart()), n_eval_episodes=5)
    assert 1.0 <= mean <= 40.0
    assert len(list(tmp_path.glob("*.zip"))) == 3


class Aim(gym.Env):
    """One step of one number, which is the reward."""

    observation_space, action_space = spaces.Box(-1.0, 1.0, (1,)), spaces.Box(-1.0, 1.0, (1,))

    def reset(self, *, seed=None, **_):
        super().reset(seed=seed)
        return np.ones(1, dtype=np.float32), {}

    def step(self, action):
        return np.ones(1, dtype=np.float32), float(action[0]) - 3.0, True, False, {}


@pytest.mark.parametrize("log_std", [0.0, -1.0, -5.0])
def test_a_step_is_as_long_as_actions_vary(log_std):
    """Users who say what returns are, and one step, of one user whose gradient has norm 1."""
    board = OpenBillboard(Aim(), users=4, horizon=1)
    agent = DPPolicyGradient("MlpPolicy", board, seed=0, batch_size=1, clip=1e-9, momentum=0.0, learning_rate=0.5)
    start = agent.get_parameters()["policy"]["parameters"].copy()
    start[-1] = log_std
    agent.set_parameters({"policy": {"parameters": start}})
    agent.learn(3)
    moved = agent.get_parameters()["policy"]["parameters"] - start
    assert np.linalg.norm(moved) == pytest.approx(0.5 * np.exp(max(log_std, -2.0)), rel=1e-6)


def test_too_few_users_are_said_before_they_come():
    """Twenty users a batch at epsilon = 4; with so many that the noise is small nothing is said."""
    with pytest.warns(
        UserWarning, match=r"a batch of 25 users has norm 1\.5.* Let some 6,\d\d\d users come, or raise epsilon"
    ):
        DPPolicyGradient("MlpPolicy", jdp(epsilon=4.0, users=500))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DPPolicyGradient("MlpPolicy", jdp(epsilon=4.0, users=6_500))
        DPPolicyGradient("MlpPolicy", OpenBillboard(cart(), users=500))


@pytest.mark.parametrize(
    ("layers", "advice"),
    [
        ([32], r"policy_kwargs=\{'net_arch': \[8\]\}\.$"),
        ([8], r"policy_kwargs=\{'net_arch': \[\]\}\.$"),
        ([], r"or raise epsilon\.$"),
    ],
)
def test_smaller_layers_are_advised_where_there_are_any(layers, advice):
    with pytest.warns(UserWarning, match=advice):
        DPPolicyGradient("MlpPolicy", jdp(epsilon=0.3, users=500), policy_kwargs={"net_arch": layers})


def test_so_few_users_that_noise_drowns_them_are_told_that_nothing_is_learned():
    with pytest.warns(UserWarning, match="louder than all 10 users together, so that nothing") as said:
        agent = DPPPO("MlpPolicy", jdp(epsilon=1.0, users=10))
    assert "a batch of 1 user has norm 1" in str(said[0].message)
    assert said[0].filename == __file__  # the line to change
    assert agent.users_in_batch == 1
    with pytest.warns(UserWarning, match=r"in batches of 1,\d\d\d, or raise epsilon"):
        DPPPO("MlpPolicy", jdp(epsilon=1.0, users=100_000), batch_size=100)


@every_agent
def test_steps_that_are_meant_to_be_users_are_told_from_them(kind):
    agent = kind("MlpPolicy", jdp(users=900), seed=0)
    sentence = r"900 steps are 23 users of the 900 who may come.*Write learn\(900 \* 40\) for all of them\."
    with pytest.warns(UserWarning, match=sentence) as said:
        agent.learn(900)
    assert said[0].filename == __file__
    agent.learn(877)  # said once: whoever goes on knows
    with pytest.warns(
        UserWarning, match=r"50 steps are 2 users, .* A batch has 64 users.* learn\(64 \* 40\) for a batch"
    ):
        kind("MlpPolicy", OpenBillboard(cart()), seed=0).learn(50)


def test_a_learning_rate_of_another_optimizer_is_said():
    with pytest.warns(UserWarning, match=r"learning_rate is 0\.0003, and steps are not Adam's") as said:
        DPPPO("MlpPolicy", jdp(), learning_rate=3e-4)
    assert said[0].filename == __file__
    with pytest.warns(UserWarning, match=r"learning_rate is 0\.01, and"):
        DPPPO("MlpPolicy", jdp(), learning_rate=lambda left: 0.01 * left)
    DPPPO("MlpPolicy", jdp(), learning_rate=0.0)  # nothing is learned on purpose
    DPPPO("MlpPolicy", jdp(), learning_rate=lambda left: 2.0 * left)


@every_agent
def test_the_weight_of_entropy_reaches_users_and_is_saved(kind, tmp_path):
    agent = kind("MlpPolicy", jdp(), ent_coef=0.25, batch_size=30).learn(600 * 40)
    assert agent.next_request().entropy == 0.25
    agent.save(tmp_path / "agent.zip")
    assert kind.load(tmp_path / "agent.zip").ent_coef == 0.25
    with pytest.raises(ValueError, match=r"ent_coef is -1\.0: it lies between 0 and inf"):
        kind("MlpPolicy", None, ent_coef=-1.0)


@every_agent
def test_layers_are_asked_for_in_their_words(kind):
    board = OpenBillboard(cart(), users=100)
    agent = kind("MlpPolicy", board, policy_kwargs={"net_arch": [8, 4], "activation_fn": torch.nn.ReLU}, batch_size=30)
    assert agent.network.layers.hidden == (8, 4)
    assert agent.network.relu
    agent = kind("MlpPolicy", OpenBillboard(cart()), policy_kwargs={"net_arch": {"pi": [5], "vf": [6]}})
    assert agent.network.layers.hidden == (5,)
    for kwargs, sentence in (
        ({"ortho_init": True}, "policy_kwargs name ortho_init"),
        ({"activation_fn": torch.nn.GELU}, "activation is 'gelu'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            kind("MlpPolicy", None, policy_kwargs=kwargs)
    with pytest.raises(ValueError, match=r"sums gradients of Layers.*and this agent learns"):
        kind("MlpPolicy", OpenBillboard(cart(), statistic=Layers((9,))))
    with pytest.raises(ValueError, match="policy is 'CnnPolicy'"):
        kind("CnnPolicy", None)
    with pytest.raises(ValueError, match="publishes no gradients: use JDPBillboard"):
        kind("MlpPolicy", SDPShuffler(gym.make("PrivateRL/RiverSwim-v0"), 1.0, 1e-6, users=10))
    with pytest.raises(TypeError, match="need Discrete spaces"):
        UCBVI("TabularPolicy", OpenBillboard(cart()))


@every_agent
def test_a_vec_env_with_one_board_in_it_is_an_environment(kind):
    agent = kind("MlpPolicy", DummyVecEnv([lambda: jdp(users=60)]), batch_size=20, seed=0).learn(60 * 40)
    assert agent.board.users_left == 0


@every_agent
def test_schedules_are_functions_of_what_is_left(kind, tmp_path):
    rates = []

    class Watched(kind):
        def pace(self, *about):
            rates.append(super().pace(*about))
            return rates[-1]

    board = OpenBillboard(cart(), users=500)
    agent = Watched("MlpPolicy", board, learning_rate=lambda left: 2.0 * left, batch_size=100).learn(500 * 40)
    _ = agent.policy  # the step after the last batch
    assert rates == sorted(rates, reverse=True)
    assert 2.0 > rates[0] > rates[-1] == 0.0
    agent.save(tmp_path / "agent")
    assert Watched.load(tmp_path / "agent").learning_rate == agent.learning_rate
    with pytest.raises(ValueError, match=r"learning_rate is -1\.0"):
        kind("MlpPolicy", None, learning_rate=-1.0)


@every_agent
def test_environments_that_know_their_horizon_need_not_be_told(kind):
    agent = kind("MlpPolicy", OpenBillboard(gym.make("PrivateRL/RiverSwim-v0", horizon=7), users=100), seed=0)
    assert agent.horizon == 7
    assert agent.learn(100 * 7).board.users_left == 0


@every_agent
@pytest.mark.parametrize(("epsilon", "users", "batch"), [(1.0, 50_000, 1115), (8.0, 50_000, 173), (1.0, 10_000, 500)])
def test_batches_are_as_large_as_noise_asks_for(kind, epsilon, users, batch):
    """Noise of norm 0.12 in the mean of a batch, and at least twenty batches."""
    agent = kind("MlpPolicy", JDPBillboard(gym.make("CartPole-v1"), epsilon, 1e-6, users=users), seed=0)
    assert agent.users_in_batch == batch
    free = kind("MlpPolicy", OpenBillboard(gym.make("CartPole-v1"), users=users), seed=0)
    assert free.users_in_batch == 64


# Files ---------------------------------------------------------------------------------------------------------------


@every_agent
def test_a_run_continues_from_a_saved_board_bit_for_bit(kind, tmp_path):
    whole = kind("MlpPolicy", jdp(), seed=3).learn(431 * 40).learn((900 - 431) * 40)
    board = jdp()
    first = kind("MlpPolicy", board, seed=3).learn(431 * 40)
    board.save_state(tmp_path / "board")
    first.save(tmp_path / "agent")
    again = jdp(rng=99)
    again.load_state(tmp_path / "board")
    second = kind.load(tmp_path / "agent", again)
    second.learn((900 - 431) * 40, reset_num_timesteps=False)
    assert (second.policy.parameters == whole.policy.parameters).all()
    assert second.num_timesteps == 900 * 40


@every_agent
def test_a_loaded_agent_acts_and_goes_on_with_what_it_learned_on_another_board(kind, tmp_path):
    first = kind("MlpPolicy", jdp(), seed=3).learn(900 * 40)
    first.save(tmp_path / "agent")
    with pytest.warns(UserWarning, match="not private"):
        elsewhere = kind.load(tmp_path / "agent", cart())
    learned = first.best_policy().parameters
    assert (elsewhere.best_policy().parameters == learned).all()
    assert str(elsewhere.guarantee) == str(first.guarantee)
    assert (
        elsewhere.predict(np.ones(4), deterministic=True)[0] == first.predict(np.ones(4), deterministic=True)[0]
    ).all()

    stricter = jdp(epsilon=1.0, users=300)
    on = kind.load(tmp_path / "agent", stricter)
    assert (on.policy.parameters == learned).all()  # its first users run them
    on.learn(300 * 40)
    both = str(first.guarantee).replace("900 users", "1200 users")  # the weaker guarantee, to the users of both boards
    assert str(on.guarantee) == both
    on.save(tmp_path / "on")
    for again in (kind.load(tmp_path / "on", stricter), kind.load(tmp_path / "on")):
        again.set_env(stricter)
        assert (again.best_policy().parameters == on.best_policy().parameters).all()
        assert str(again.guarantee) == both


@every_agent
def test_a_saved_agent_holds_releases_and_numbers_and_no_pickle(kind, tmp_path):
    agent = kind("MlpPolicy", jdp(), seed=0, policy_kwargs={"net_arch": [6]}).learn(900 * 40)
    agent.save(tmp_path / "agent")
    with zipfile.ZipFile(tmp_path / "agent.zip") as archive:
        about = json.loads(archive.read("agent.json"))
        arrays = {name: np.load(archive.open(name), allow_pickle=False) for name in archive.namelist() if "npy" in name}
    assert about["arguments"]["policy_kwargs"] == {"net_arch": [6]}
    assert (arrays["policy.npy"] == agent.policy.parameters).all()
    board = agent.board
    exact = board.statistic  # sums without noise would lie in [-users, users], with a standard deviation far below
    noisy = [arrays[name] for name in arrays if name.endswith("gradient.npy")]
    assert noisy
    assert all(np.std(array) > 0.5 * board.batch.noise_std["gradient"] for array in noisy)
    assert exact.network.size == len(noisy[0])


# Learning ------------------------------------------------------------------------------------------------------------


def last_return(agent, env, episodes=50):
    return evaluate_policy(agent, Monitor(env), n_eval_episodes=episodes)[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "users", "seeds"), [(1.0, 30_000, (0,)), (1.0, 10_000, (0, 1)), (0.5, 50_000, (0,))]
)
def test_cartpole_is_held_privately_with_defaults(epsilon, users, seeds):
    for seed in seeds:
        env = gym.make("CartPole-v1")
        env.unwrapped.reset(seed=seed)
        board = JDPBillboard(env, epsilon, 1e-6, users=users, rng=seed)
        agent = DPPolicyGradient("MlpPolicy", board, seed=seed).learn(users * 500)
        assert last_return(agent, gym.make("CartPole-v1")) >= 475.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_few_users_without_noise_teach_to_hold_the_pole(seed):
    """Batches of 50: after 550 of 1,000 users, who take some 80,000 steps, five of five seeds hold it to the end."""
    board = OpenBillboard(gym.make("CartPole-v1"), users=1_000)
    board.unwrapped.reset(seed=seed)
    agent = DPPPO("MlpPolicy", board, seed=seed).learn(550 * 500)
    assert last_return(agent, gym.make("CartPole-v1"), episodes=20) >= 475.0


def test_a_small_run_without_noise_learns():
    """Random play holds the pole for 20 steps or so; 3,000 users without noise teach more than 50 of 60."""
    board = OpenBillboard(cart(60), users=3_000)
    board.unwrapped.reset(seed=0)
    agent = DPPolicyGradient("MlpPolicy", board, seed=0).learn(3_000 * 60)
    assert last_return(agent, cart(60)) > 50.0

"""Stable-Baselines3's callbacks and helpers, with our agents and, to check the suite itself, with its own PPO."""

import io
import warnings

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import (
    BaseCallback,
    CallbackList,
    CheckpointCallback,
    EvalCallback,
    EveryNTimesteps,
    StopTrainingOnMaxEpisodes,
)
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import configure
from stable_baselines3.common.monitor import Monitor

from private_rl_gym import agents
from private_rl_gym.lab.registry import AGENTS
from private_rl_gym.lab.regret import RegretCallback
from private_rl_gym.privacy.accounting.ledger import weakest
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard

H = 8
RIVER = "PrivateRL/RiverSwimMixture-v0"  # the very river, with features for linear learners
OURS = sorted(AGENTS)
BATCHED = {name for name in OURS if getattr(agents, name).plans_batches}  # with another board these begin anew
LEARNERS = sorted(set(OURS) - BATCHED)


def river(**arguments):
    return gym.make(RIVER, horizon=H, variant="open-banks", **arguments)


def make(name, **options):
    if name == "PPO":
        return PPO("MlpPolicy", river(observe_time=True), n_steps=2 * H, batch_size=H, n_epochs=1, seed=0, **options)
    return getattr(agents, name)("TabularPolicy", open_board(name), seed=0, **options)


def open_board(name):
    return OpenBillboard(river(), statistic=getattr(agents, name).statistic)


def assert_same_sums(first, second):
    sums, others = first.board.release.sums(), second.board.release.sums()
    for family, array in sums.items():
        np.testing.assert_array_equal(array, others[family])


every_model = pytest.mark.parametrize("name", ["PPO", *OURS])


class Counter(BaseCallback):
    """Counts what it is told."""

    def __init__(self):
        super().__init__()
        self.steps, self.ends, self.started, self.ended = 0, 0, 0, 0

    def _on_training_start(self):
        self.started += 1

    def _on_step(self):
        self.steps += 1
        self.ends += int(self.locals["dones"][0])
        assert self.num_timesteps == self.model.num_timesteps == self.steps
        return True

    def _on_training_end(self):
        self.ended += 1


def test_env(name):
    return Monitor(river(observe_time=name == "PPO"))


test_env.__test__ = False


@every_model
def test_callbacks_hear_of_every_step(name):
    model, counter = make(name), Counter()
    assert model.learn(10 * H, callback=counter) is model
    assert (counter.steps, counter.ends, counter.started, counter.ended) == (10 * H, 10, 1, 1)
    assert model.num_timesteps == 10 * H


@every_model
def test_a_function_or_a_list_is_a_callback(name):
    calls = []
    make(name).learn(2 * H, callback=lambda local, _: calls.append(sorted(local)) or True)
    assert len(calls) == 2 * H
    counters = [Counter(), Counter()]
    make(name).learn(2 * H, callback=counters)
    assert [counter.steps for counter in counters] == [2 * H, 2 * H]


@every_model
def test_evaluation_while_learning(name, tmp_path):
    callback = EvalCallback(
        make_vec_env(lambda: test_env(name), n_envs=1),
        eval_freq=5 * H,
        n_eval_episodes=3,
        log_path=str(tmp_path),
        best_model_save_path=str(tmp_path),
        verbose=0,
    )
    make(name).learn(20 * H, callback=callback)
    found = np.load(tmp_path / "evaluations.npz")
    assert found["timesteps"].tolist() == [5 * H, 10 * H, 15 * H, 20 * H]
    assert found["results"].shape == (4, 3)
    assert (tmp_path / "best_model.zip").exists()


@every_model
def test_checkpoints(name, tmp_path):
    model = make(name)
    model.learn(10 * H, callback=CheckpointCallback(save_freq=4 * H, save_path=str(tmp_path), name_prefix="run"))
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == [f"run_{4 * H}_steps.zip", f"run_{8 * H}_steps.zip"]
    again = type(model).load(tmp_path / files[1])
    assert again.num_timesteps == 8 * H


@every_model
def test_training_stops_when_a_callback_says_so(name):
    model = make(name)
    model.learn(100 * H, callback=StopTrainingOnMaxEpisodes(max_episodes=3))
    assert model.num_timesteps == 3 * H


@every_model
def test_every_n_timesteps(name):
    times = []

    class Note(BaseCallback):
        def _on_step(self):
            times.append(self.num_timesteps)
            return True

    make(name).learn(6 * H, callback=CallbackList([EveryNTimesteps(2 * H, Note())]))
    assert times == [2 * H, 4 * H, 6 * H]


@every_model
@pytest.mark.parametrize("n_envs", [1, 8])
def test_evaluate_policy(name, n_envs):
    model = make(name).learn(4 * H)
    mean, std = evaluate_policy(model, make_vec_env(lambda: test_env(name), n_envs=n_envs), n_eval_episodes=16)
    assert 0.0 <= mean <= H
    assert std >= 0.0


@every_model
def test_a_logger_to_csv(name, tmp_path):
    model = make(name)
    logger = configure(str(tmp_path), ["csv"])
    model.set_logger(logger)
    model.learn(20 * H, log_interval=1)
    logger.close()
    head = (tmp_path / "progress.csv").read_text().splitlines()[0]
    assert "time/total_timesteps" in head


@every_model
def test_progress_bar(name):

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tqdm calls rich experimental
        make(name).learn(4 * H, progress_bar=True)


@every_model
def test_vec_envs_are_taken(name):
    env = make_vec_env(lambda: river(observe_time=name == "PPO"), n_envs=1)
    if name == "PPO":
        model = PPO("MlpPolicy", env, n_steps=H, batch_size=H, n_epochs=1)
    else:
        model = getattr(agents, name)("TabularPolicy", env)
    model.learn(3 * H)
    assert model.num_timesteps == 3 * H
    assert model.get_env().num_envs == 1


@pytest.mark.parametrize("name", OURS)
def test_a_split_run_is_one_run(name):
    whole, split = make(name), make(name)
    for model in (whole, split):
        model.board.unwrapped.reset(seed=1)
    whole.learn(30 * H)
    split.learn(10 * H)
    split.learn(20 * H, reset_num_timesteps=False)
    assert split.num_timesteps == whole.num_timesteps == 30 * H
    assert_same_sums(split, whole)
    np.testing.assert_array_equal(split.policy.table, whole.policy.table)


@pytest.mark.parametrize("name", OURS)
def test_with_or_without_callbacks_is_one_run(name):
    quiet, watched = make(name), make(name)
    for model in (quiet, watched):
        model.board.unwrapped.reset(seed=1)
    quiet.learn(20 * H)
    watched.learn(20 * H, callback=Counter())
    assert_same_sums(quiet, watched)


@pytest.mark.parametrize("name", OURS)
def test_save_load_and_go_on_equals_never_having_stopped(name, tmp_path):
    straight, stopped = make(name), make(name)
    for model in (straight, stopped):
        model.board.unwrapped.reset(seed=1)
        model.learn(20 * H)
    stopped.save(tmp_path / "agent")
    again = getattr(agents, name).load(tmp_path / "agent", env=stopped.board)
    assert again.num_timesteps == 20 * H
    lost = "something is not saved: arguments are attributes, and what planning carries goes into state and set_state"
    np.testing.assert_array_equal(again.policy.table, straight.policy.table, err_msg=lost)
    straight.learn(20 * H, reset_num_timesteps=False)
    again.learn(20 * H, reset_num_timesteps=False)
    np.testing.assert_array_equal(again.policy.table, straight.policy.table, err_msg=lost)
    assert_same_sums(again, straight)


@pytest.mark.parametrize("name", OURS)
def test_every_argument_is_saved(name):
    """What is not saved would be at its default in a loaded agent, and nobody would know."""
    unsaved = set(AGENTS[name].options) ^ set(getattr(agents, name).saved_arguments)
    assert not unsaved, (
        f"{', '.join(sorted(unsaved))}: arguments of its own must be keyword-only, and attributes of the same names"
    )


@pytest.mark.parametrize("name", OURS)
def test_a_loaded_agent_acts_without_an_environment(name, tmp_path):
    model = make(name).learn(20 * H)
    model.save(tmp_path / "agent.zip")
    again = getattr(agents, name).load(tmp_path / "agent.zip")
    state, action = None, None
    for h in range(H):
        action, state = again.predict(np.array([0, 1, 2]), state=state, deterministic=True)
        wanted = model.best_policy().probabilities[h, :3].argmax(axis=1)
        lost = "best_policy may use self.policy and saved state only"
        np.testing.assert_array_equal(action, wanted, err_msg=lost)


@pytest.mark.parametrize("name", OURS)
def test_predict_is_worth_what_the_plan_is_worth(name):
    """On a problem whose first action is wrong later: Monte Carlo through evaluate_policy, within 4 standard errors."""
    model = getattr(agents, name)("TabularPolicy", river(n_states=3), seed=0).learn(300 * H)
    truth = model.board.unwrapped.model
    episodes = 400
    returns, _ = evaluate_policy(
        model,
        make_vec_env(lambda: Monitor(river(n_states=3)), n_envs=4, seed=3),
        episodes,
        deterministic=False,
        return_episode_rewards=True,
    )
    error = np.std(returns) / np.sqrt(len(returns))
    assert abs(np.mean(returns) - truth.value_of(model.best_policy())) <= 4 * error + 1e-9


@pytest.mark.parametrize("observe_time", [False, True])
def test_stages_are_carried_or_shown(observe_time):
    board = JDPBillboard(river(observe_time=observe_time), 5.0, 1e-6, users=50)
    model = agents.DPUCBVI("TabularPolicy", board).learn(50 * H)
    state = None
    for h in range(H):
        observation = np.array([h, 2]) if observe_time else 2
        action, state = model.predict(observation, state=state)
        assert int(action) == model.policy.table[h, 2]
        assert np.ndim(action) == 0


@every_model
def test_tensorboard(name, tmp_path):
    make(name, tensorboard_log=str(tmp_path)).learn(20 * H, log_interval=1, tb_log_name="run")
    assert any(path.name.startswith("events") for path in (tmp_path / "run_1").iterdir())


@pytest.mark.parametrize("name", OURS)
def test_regret_is_that_of_the_policy_that_was_run(name, tmp_path):
    """Also where another callback looks at the agent in the middle of an episode, and makes it plan anew."""
    curves = []
    for extra in ([], [CheckpointCallback(save_freq=3, save_path=str(tmp_path))]):
        model, oracle = make(name), RegretCallback()
        model.board.unwrapped.reset(seed=1)
        model.learn(20 * H, callback=[*extra, oracle])
        curves.append(oracle.curve)
    np.testing.assert_allclose(curves[0], curves[1], atol=1e-12)


@pytest.mark.parametrize("name", OURS)
def test_a_loaded_agent_states_the_guarantee_it_learned_under_until_it_learns_elsewhere(name, tmp_path):
    kind = getattr(agents, name)
    board = LDPUserSide(river(), epsilon=4.0, statistic=kind.statistic, rng=0)
    model = kind("TabularPolicy", board, seed=0).learn(30 * H)
    promised = str(model.guarantee)
    assert "LDP" in promised
    model.save(tmp_path / "agent")
    again = kind.load(tmp_path / "agent")
    assert str(again.guarantee) == promised
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an environment without a boundary
        again.set_env(river())
    assert str(again.guarantee) == promised
    np.testing.assert_array_equal(again.best_policy().probabilities, model.best_policy().probabilities)
    again.save(tmp_path / "once more")
    assert str(kind.load(tmp_path / "once more").guarantee) == promised
    again.learn(20 * H)
    parts = [model.guarantee, again.board_guarantee] if kind.keeps_policy else [again.board_guarantee]
    assert str(again.guarantee) == str(weakest(parts)) != promised


@pytest.mark.parametrize("name", LEARNERS)
def test_a_loaded_agent_keeps_what_it_learned_when_it_gets_an_environment(name, tmp_path):
    model = make(name).learn(30 * H)
    model.save(tmp_path / "agent")
    again = getattr(agents, name).load(tmp_path / "agent")
    again.set_env(open_board(name))
    np.testing.assert_array_equal(again.policy.table, model.policy.table)
    with pytest.raises(ValueError, match="this agent learned on"):
        getattr(agents, name).load(tmp_path / "agent").set_env(river(n_states=4))


def test_a_loaded_agent_knows_how_it_is_shown_the_stage(tmp_path):
    model = agents.UCBVI("TabularPolicy", river(observe_time=True)).learn(20 * H)
    model.save(tmp_path / "agent")
    again = agents.UCBVI.load(tmp_path / "agent")
    assert int(again.predict(np.array([3, 2]))[0]) == model.policy.table[3, 2]


@every_model
def test_logs_can_be_silenced_or_asked_for(name):
    from stable_baselines3.common.callbacks import LogEveryNTimesteps

    make(name, verbose=0).learn(4 * H, callback=LogEveryNTimesteps(2 * H), log_interval=None if name != "PPO" else 1)


@every_model
def test_files_and_environments_are_handled_as_in_sb3(name, tmp_path):
    """Keywords of Stable-Baselines3's that scripts use."""
    env = make_vec_env(lambda: river(observe_time=name == "PPO"), n_envs=1)
    kind = PPO if name == "PPO" else getattr(agents, name)
    sizes = {"n_steps": H, "batch_size": H, "n_epochs": 1} if name == "PPO" else {}
    model = kind("MlpPolicy" if name == "PPO" else "TabularPolicy", env, seed=0, **sizes).learn(2 * H)
    model.save(memory := io.BytesIO())
    memory.seek(0)
    again = kind.load(memory, env=env, device="cpu", print_system_info=False, force_reset=True)
    assert again.num_timesteps == 2 * H
    assert again.get_env() is env
    again.set_env(env, force_reset=False)
    assert again.get_env() is env
    model.save(tmp_path / "run.model", exclude=["seed"])
    assert (tmp_path / "run.model").exists()
    (tmp_path / "named").mkdir()
    model.save(tmp_path / "named")  # a folder of that name does not matter
    assert kind.load(tmp_path / "named.zip").num_timesteps == 2 * H


@pytest.mark.parametrize("name", OURS)
def test_acting_does_not_change_what_is_learned(name):
    quiet, asked = make(name), make(name)
    for model in (quiet, asked):
        model.board.unwrapped.reset(seed=1)
        for _ in range(4):
            model.learn(5 * H, reset_num_timesteps=False)
            if model is asked:
                model.predict(np.arange(6), episode_start=np.ones(6, dtype=bool))
    assert_same_sums(quiet, asked)


@pytest.mark.parametrize("name", OURS)
def test_callbacks_see_the_policy_that_the_user_runs(name):
    """Not one that was planned from an episode which, step by step, is still going on."""

    class Look(BaseCallback):
        seen = 0

        def _on_step(self):
            if self.num_timesteps % H:
                assert self.model.policy is self.locals["policy"]
                self.seen += 1
            return True

    look = Look()
    make(name).learn(10 * H, callback=look)
    assert look.seen == 10 * (H - 1)


@pytest.mark.parametrize("name", LEARNERS)
def test_what_belongs_to_another_board_is_not_carried_over(name, tmp_path):
    """A plan knows whose sums it was made from, even where the other board is further on."""
    model = make(name, **({"constants": "theory"} if name == "UCBVI" else {})).learn(20 * H)
    model.save(tmp_path / "agent")
    other = open_board(name)
    other.serve(np.zeros((H, 6), dtype=int), 50)
    again = getattr(agents, name).load(tmp_path / "agent", env=other)
    np.testing.assert_array_equal(again.policy.table, model.policy.table)
    fresh = make(name, **({"constants": "theory"} if name == "UCBVI" else {}))
    fresh.set_env(other)
    if not isinstance(again, agents.PrivateUCBPO | agents.PSRL | agents.RLSVI):  # these draw, or begin with uniform
        other.serve(np.zeros((H, 6), dtype=int), 1)
        carried = "it carries something from one board to the next; if it only draws its plans, name it above"
        np.testing.assert_array_equal(again.policy.table, fresh.policy.table, err_msg=carried)

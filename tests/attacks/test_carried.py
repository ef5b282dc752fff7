"""What was learned without privacy stays without it: in every agent, and by every way of handing numbers on."""

import io
import json
import os
import stat
import zipfile
from pathlib import Path

import gymnasium as gym
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CallbackList, EvalCallback, EveryNTimesteps
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor
from typer.testing import CliRunner

from private_rl_gym import agents
from private_rl_gym.agents import saving
from private_rl_gym.envs import Cohort
from private_rl_gym.lab.cli.app import app
from private_rl_gym.privacy import TrustModel
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard

H = 6
KINDS = [
    kind
    for kind in (getattr(agents, name) for name in agents.__all__)
    if isinstance(kind, type) and issubclass(kind, agents.Agent) and kind not in (agents.Agent, agents.BatchedAgent)
]
NETWORKS = (agents.DPPolicyGradient, agents.DPPPO)  # which learn on from what was brought
RUN_NETWORKS = (*NETWORKS, agents.WorldModelAgent)
PLANNERS = [kind for kind in KINDS if kind.keeps_policy and kind not in NETWORKS]
every_agent = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # these boards have few users


def users_of(kind):
    if kind in RUN_NETWORKS:
        return gym.make("CartPole-v1", max_episode_steps=20)
    return gym.make("PrivateRL/RiverSwimMixture-v0", horizon=H, variant="open-banks")


def horizon_of(kind):
    return 20 if kind in RUN_NETWORKS else H


def open_board(kind):
    return OpenBillboard(users_of(kind), statistic=kind.statistic)


def private_board(kind, epsilon=2.0, users=400):
    return JDPBillboard(users_of(kind), epsilon, 1e-6, users=users)


def fresh(kind, board):
    more = {"timesteps": 300, "degree": 1} if kind is agents.WorldModelAgent else {}
    return kind(kind.policies[0], board, seed=0, **more)


def numbers(agent):
    return agent.get_parameters()["policy"][agent.parameter_name]


def edited(path, name, policy=None, **changes):
    """The file with other numbers of a policy, and with other entries of its description, without those that are ..."""
    target = path.with_name(name)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.namelist():
            content = old.read(entry)
            if entry == "agent.json":
                about = {**json.loads(content), **changes}
                content = json.dumps({key: value for key, value in about.items() if value is not ...})
            elif entry == "policy.npy" and policy is not None:
                array = io.BytesIO()
                np.save(array, policy)
                content = array.getvalue()
            new.writestr(entry, content)
    return target


@pytest.fixture
def free(kind, tmp_path):
    """A file of an agent that learned from exact sums, with numbers that no plan here would come to."""
    agent = fresh(kind, open_board(kind)).learn(30 * horizon_of(kind))
    agent.save(tmp_path / "learned.zip")
    learned, rng = numbers(agent), np.random.default_rng(7)
    if kind in RUN_NETWORKS:
        policy = rng.normal(size=learned.shape)
    elif learned.ndim == 2:
        policy = rng.integers(agent.action_space.n, size=learned.shape)
    else:
        policy = rng.dirichlet(np.ones(learned.shape[-1]), size=learned.shape[:-1])
    return edited(tmp_path / "learned.zip", "free.zip", policy)


def secret_of(kind, free):
    return numbers(kind.load(free))


def assert_not_private(agent):
    """Nothing is promised; RLSVI, whose noise protects rewards on exact sums too, may promise that and no more."""
    if isinstance(agent, agents.RLSVI) and agent.guarantee.model is not TrustModel.NONE:
        assert agent.guarantee.covers == "rewards"
        assert agent.guarantee.epsilon > 1000.0
    else:
        assert str(agent.guarantee) == "no privacy (epsilon = inf)"


# Ways in which an agent on a private board gets numbers that were learned without privacy -----------------------------


def loaded_and_given_a_board(kind, free):
    agent = kind.load(free)
    agent.set_env(private_board(kind))
    return agent


def loaded_with_a_board(kind, free):
    return kind.load(free, env=private_board(kind))


def loaded_with_a_board_and_given_another(kind, free):
    agent = kind.load(free, env=private_board(kind))
    agent.set_env(private_board(kind))
    return agent


def given_two_boards(kind, free):
    agent = kind.load(free)
    agent.set_env(private_board(kind))
    agent.set_env(private_board(kind))
    return agent


def set_from_the_file(kind, free):
    agent = fresh(kind, private_board(kind))
    agent.set_parameters(free)
    return agent


def set_from_the_file_and_given_another_board(kind, free):
    agent = set_from_the_file(kind, free)
    agent.set_env(private_board(kind))
    return agent


def set_from_a_dictionary(kind, free):
    agent = fresh(kind, private_board(kind))
    agent.set_parameters(kind.load(free).get_parameters())
    return agent


def set_in_an_agent_that_learned_in_private(kind, free, given=None):
    taught = fresh(kind, private_board(kind)).learn(30 * horizon_of(kind))
    taught.save(free.with_name("private"))
    agent = kind.load(free.with_name("private"))
    agent.set_parameters(kind.load(free).get_parameters() if given is None else given)
    agent.set_env(private_board(kind))
    return agent


def set_in_an_agent_that_learned_in_private_from_the_file(kind, free):
    return set_in_an_agent_that_learned_in_private(kind, free, given=free)


def set_in_an_agent_that_goes_home(kind, free):
    home = private_board(kind)
    taught = fresh(kind, home).learn(30 * horizon_of(kind))
    taught.save(free.with_name("private"))
    agent = kind.load(free.with_name("private"))
    agent.set_parameters(free)
    agent.set_env(home)
    return agent


def saved_and_loaded_with_the_same_board(kind, free):
    board = private_board(kind)
    kind.load(free, env=board).save(free.with_name("again"))
    return kind.load(free.with_name("again"), env=board)


def saved_and_given_the_same_board(kind, free):
    board = private_board(kind)
    kind.load(free, env=board).save(free.with_name("again"))
    agent = kind.load(free.with_name("again"))
    agent.set_env(board)
    return agent


def saved_without_a_board_and_loaded_with_one(kind, free):
    kind.load(free).save(free.with_name("again"))
    return kind.load(free.with_name("again"), env=private_board(kind))


def of_format_3(kind, free):
    old = edited(free, "old.zip", format=3, guarantee=..., origins=...)
    return kind.load(old, env=private_board(kind))


def of_format_3_and_set(kind, free):
    agent = fresh(kind, private_board(kind))
    agent.set_parameters(edited(free, "old.zip", format=3, guarantee=..., origins=...))
    return agent


def of_format_4_without_a_guarantee(kind, free):
    old = edited(free, "old.zip", format=4, guarantee=None, origins=...)
    agent = kind.load(old)
    agent.set_env(private_board(kind))
    return agent


def on_a_board_that_was_restored(kind, free):
    fresh(kind, before := private_board(kind))
    before.save_state(free.with_name("state"))
    board = private_board(kind)
    agent = kind.load(free, env=board)
    board.load_state(free.with_name("state"))
    _ = agent.policy
    return agent


WAYS = [
    loaded_and_given_a_board,
    loaded_with_a_board,
    loaded_with_a_board_and_given_another,
    given_two_boards,
    set_from_the_file,
    set_from_the_file_and_given_another_board,
    set_from_a_dictionary,
    set_in_an_agent_that_learned_in_private,
    set_in_an_agent_that_learned_in_private_from_the_file,
    set_in_an_agent_that_goes_home,
    saved_and_loaded_with_the_same_board,
    saved_and_given_the_same_board,
    saved_without_a_board_and_loaded_with_one,
    of_format_3,
    of_format_3_and_set,
    of_format_4_without_a_guarantee,
    on_a_board_that_was_restored,
]
MAY_REFUSE = (set_from_the_file, set_from_the_file_and_given_another_board, set_from_a_dictionary, of_format_3_and_set)
"""Agents that ask users about their own plan take no parameters where there is a board, with a sentence."""


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@every_agent
def test_1_numbers_that_were_learned_without_privacy_say_so_wherever_they_are_played(kind, way, free):
    secret = secret_of(kind, free)
    try:
        agent = way(kind, free)
    except ValueError as error:
        assert way in MAY_REFUSE
        assert "board.serve(policy, users)" in str(error)  # noqa: PT017 - most agents take them
        return
    assert agent.board.ledger.outside.model is TrustModel.JDP
    np.testing.assert_array_equal(numbers(agent), secret)  # else this test would show nothing
    assert_not_private(agent)
    agent.save(free.with_name("carried"))
    for again in (kind.load(free.with_name("carried")), kind.load(free.with_name("carried"), env=private_board(kind))):
        np.testing.assert_array_equal(numbers(again), secret)
        assert_not_private(again)


@pytest.mark.parametrize("kind", [*PLANNERS, *NETWORKS], ids=lambda kind: kind.__name__)
def test_1_users_who_run_them_carry_them_into_all_that_is_learned_from_these_users(kind, free):
    """A table that many users ran can be read off their noisy counts, and a network is learned on from."""
    home, elsewhere = private_board(kind), private_board(kind)
    agent = kind.load(free, env=home).learn(100 * horizon_of(kind))
    assert_not_private(agent)
    agent.save(free.with_name("on"))
    for again in (kind.load(free.with_name("on"), env=home), kind.load(free.with_name("on"), env=elsewhere)):
        assert_not_private(again)
    if kind in PLANNERS:
        agent.set_env(elsewhere)
        agent.learn(10 * H).set_env(home)
        assert_not_private(agent)


def test_1_a_table_that_many_users_ran_is_read_off_their_noisy_counts(tmp_path):
    """So what a planner learns from them is not free of it: each bit of the table is a bit of somebody's data."""
    rng, board = np.random.default_rng(0), JDPBillboard(users_of(agents.DPUCBVI), 1.0, 1e-6, users=20_000)
    secret = rng.integers(2, size=(H, board.sizes[1]))
    agent = agents.DPUCBVI("TabularPolicy", board, seed=0)
    agent.set_parameters({"policy": {"table": secret}})
    board.serve(agent.policy, 20_000)
    n, seen = board.release.n, board.release.n.sum(axis=2) > 10 * board.release.noise_std["n"]
    assert seen.sum() >= 8
    np.testing.assert_array_equal(n.argmax(axis=2)[seen], secret[seen])


@pytest.mark.parametrize("kind", PLANNERS, ids=lambda kind: kind.__name__)
def test_1_users_of_a_service_may_have_run_them_too(kind, free):
    """Users who are not served by the agent, but by what it predicts."""
    home = private_board(kind)
    agent = kind.load(free, env=home)
    home.serve(agent.policy, 100, agent.request, rng=np.random.default_rng(0))
    assert not np.array_equal(numbers(agent), secret_of(kind, free))  # planned anew
    assert_not_private(agent)


@every_agent
def test_1_a_file_of_format_4_goes_on_with_its_board_and_states_no_more_than_it_did(kind, tmp_path):
    """It does not say from which boards its numbers are, so that they count as those of another one."""
    board = private_board(kind)
    agent = fresh(kind, board).learn(50 * horizon_of(kind))
    agent.save(tmp_path / "agent.zip")
    stated = {**agent.guarantee.to_dict(), "epsilon": 3.0, "mu": None, "rho": None}
    again = kind.load(edited(tmp_path / "agent.zip", "old.zip", format=4, guarantee=stated, origins=...), env=board)
    np.testing.assert_array_equal(numbers(again), numbers(agent))
    assert again.guarantee.epsilon == 3.0
    again.learn(20 * horizon_of(kind), reset_num_timesteps=False)
    assert again.num_timesteps == 70 * horizon_of(kind)
    assert again.guarantee.epsilon == (3.0 if kind.keeps_policy else board.ledger.epsilon)


def test_1_logs_are_not_about_the_board_before(tmp_path):
    agent = fresh(agents.FrugalUCBVI, open_board(agents.FrugalUCBVI)).learn(2_000 * H)
    assert agent.progress()["plan/known"] > 0.0
    agent.set_env(private_board(agents.FrugalUCBVI))
    assert agent.progress()["plan/known"] == 0.0


@pytest.mark.parametrize("kind", NETWORKS, ids=lambda kind: kind.__name__)
def test_1_a_network_that_begins_anew_begins_from_nothing_of_before(kind, free):
    secret, other = secret_of(kind, free), private_board(kind)
    agent = kind.load(free, env=private_board(kind)).learn(100 * 20)
    agent.set_env(other)
    np.testing.assert_array_equal(numbers(agent), numbers(fresh(kind, private_board(kind))))
    assert not np.array_equal(numbers(agent), secret)
    assert agent.guarantee == other.ledger.outside


@every_agent
def test_1_what_is_learned_in_private_alone_has_the_boards_guarantee(kind, tmp_path):
    """Also after it was saved, and where an agent that learned elsewhere begins anew."""
    board = private_board(kind)
    agent = fresh(kind, open_board(kind)).learn(20 * horizon_of(kind))
    agent.set_env(board)
    agent.learn(50 * horizon_of(kind))
    assert agent.guarantee == board.ledger.outside
    agent.set_parameters({}, exact_match=False)
    agent.save(tmp_path / "agent")
    for again in (kind.load(tmp_path / "agent"), kind.load(tmp_path / "agent", env=board)):
        assert again.guarantee == board.ledger.outside
        np.testing.assert_array_equal(numbers(again), numbers(agent))


@every_agent
def test_1_what_is_learned_on_two_private_boards_has_the_weaker_of_each_part(kind, tmp_path):
    """The larger epsilon and delta, the model that needs more trust, and the users of both."""
    first = LDPUserSide(users_of(kind), epsilon=8.0, statistic=kind.statistic, users=100)
    fresh(kind, first).learn(60 * horizon_of(kind)).save(tmp_path / "agent")
    second = private_board(kind, epsilon=2.0)
    agent = kind.load(tmp_path / "agent", env=second)
    assert agent.guarantee == first.ledger.outside  # which is all that it holds
    agent.learn(50 * horizon_of(kind))
    if kind not in PLANNERS and kind not in NETWORKS:  # these began anew
        assert agent.guarantee == second.ledger.outside
        return
    both = agent.guarantee
    assert (both.model, both.epsilon, both.delta, both.users) == ("JDP", first.ledger.epsilon, 1e-6, 500)
    agent.save(tmp_path / "agent")
    assert kind.load(tmp_path / "agent", env=second).guarantee == both


# 5. The ledger is on disk before the first byte of a result -----------------------------------------------------------


class BrokenError(RuntimeError):
    """The disk is full, or the process is stopped."""


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = Cohort.table(500)
    pyarrow.parquet.write_table(pa.table(columns), "cohort.parquet")
    return ("cohort.parquet", "--states", "7", "--actions", "4", "--horizon", "12", "--stationary", "--epsilon", "1")


def learn(*arguments):
    return CliRunner().invoke(app, ["learn", *arguments])


def broken(*_, **__):
    raise BrokenError


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("private_rl_gym.agents.saving", "save"),
        ("private_rl_gym.lab.tables.offline", "report"),
        ("private_rl_gym.lab.tables.offline", "csv.writer"),
    ],
)
def test_5_what_was_spent_counts_whatever_fails_after(place, name, table, monkeypatch):
    """Found by attack: the policy came first, and a failure after it left a folder that took a second release."""
    assert learn(*table, "--out", "first").exit_code == 0
    with monkeypatch.context() as patch:
        patch.setattr(f"{place}.{name}", broken)
        done = learn(*table, "--out", "second")
    assert "BrokenError" in done.stderr
    assert done.stdout == ""
    again = learn(*table, "--out", "second")
    assert again.exit_code == 2
    assert "holds the ledger of an earlier run" in " ".join(again.output.split())
    total = CliRunner().invoke(app, ["spent", "first", "second"])
    assert total.exit_code == 0, total.output
    assert len(total.stdout.splitlines()) == 3
    once, twice = (float(line.split("(")[-1].split(",")[0]) for line in total.stdout.splitlines()[1:])
    assert twice > 1.3 * once


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_5_without_a_ledger_there_is_no_result(step, table, monkeypatch):
    """Where it cannot be written, flushed and renamed, nothing of the release is shown."""
    with monkeypatch.context() as patch:
        patch.setattr(os if step == "fsync" else Path, step, broken)
        done = learn(*table, "--out", "first")
    assert "BrokenError" in done.stderr
    assert list(Path("first").iterdir()) == []
    assert done.stdout == ""


def test_5_the_ledger_is_flushed_before_the_policy_is_opened(table, monkeypatch):
    """So that it is there after a power cut, too: the file, and the folder that names it."""
    events, fsync, save = [], os.fsync, saving.save

    def note(handle):
        events.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def write(agent, path, exclude):
        events.append("policy")
        assert json.loads(Path("first/ledger.json").read_text())["run"]["table"] == "cohort.parquet"
        save(agent, path, exclude)

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(saving, "save", write)
    assert learn(*table, "--out", "first").exit_code == 0
    assert events[:3] == ["file", "folder", "policy"]


def test_5_two_runs_into_one_folder_leave_the_first_ledger(table, monkeypatch):
    """Both found the folder empty when they began."""
    monkeypatch.setattr("private_rl_gym.lab.cli.learn.refuse_to_overwrite", lambda _: None)
    assert learn(*table, "--out", "first").exit_code == 0
    before = {path.name: path.read_bytes() for path in Path("first").iterdir()}
    done = learn(*table, "--out", "first")
    assert done.exit_code == 2
    assert {path.name: path.read_bytes() for path in Path("first").iterdir()} == before


def test_5_a_record_of_a_run_is_written_before_its_agent(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("private_rl_gym.agents.saving.save", broken)
    options = ["--env", "PrivateRL/RiverSwim-v0", "--agent", "PUCB", "--boundary", "jdp", "--users", "50"]
    done = CliRunner().invoke(app, ["train", *options, "--out", "run", "--save", "agent.zip"])
    assert "BrokenError" in done.stderr
    assert len(list(Path("run").rglob("*.parquet"))) == 1


def test_5_a_saved_agent_is_whole_or_not_there(tmp_path, monkeypatch):
    """A file that was there before stays, if the new one cannot be finished."""
    agent = fresh(agents.DPUCBVI, private_board(agents.DPUCBVI)).learn(20 * H)
    agent.save(tmp_path / "agent")
    before = (tmp_path / "agent.zip").read_bytes()
    monkeypatch.setattr(np, "save", broken)
    for name in ("agent", "new"):
        with pytest.raises(BrokenError):
            agent.save(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["agent.zip"]
    assert (tmp_path / "agent.zip").read_bytes() == before


# 8. What an evaluation keeps of users is not covered by a guarantee ---------------------------------------------------


def lake():
    return gym.make("FrozenLake-v1", max_episode_steps=H)  # whose episodes end early


def around_lake(**options):
    return JDPBillboard(lake(), 1.0, 1e-6, **{"users": 200, **options})


def same(env):
    return lambda: env


AROUND = {
    "bare": lambda board: board,
    "Monitor": Monitor,
    "VecEnv": lambda board: DummyVecEnv([same(board)]),
    "Monitor in a VecEnv": lambda board: DummyVecEnv([same(Monitor(board))]),
    "VecMonitor": lambda board: VecMonitor(DummyVecEnv([same(board)])),
}
around = pytest.mark.parametrize("wrap", AROUND.values(), ids=AROUND)
NEST = {
    "alone": lambda callback: callback,
    "in a list": lambda callback: [callback],
    "in a list of lists": lambda callback: CallbackList([CallbackList([callback])]),
    "every n steps": lambda callback: EveryNTimesteps(2, callback),
    "after another": lambda callback: EvalCallback(lake(), callback_after_eval=callback, warn=False),
    "on a new best": lambda callback: EvalCallback(lake(), callback_on_new_best=callback, warn=False),
}


@around
@pytest.mark.parametrize("nest", NEST.values(), ids=NEST)
def test_8_an_evaluation_on_a_board_is_refused_before_anybody_comes(wrap, nest, tmp_path):
    """Found by attack: evaluations.npz had the length of every user's episode, under a ledger of (1, 1e-6)."""
    board = around_lake()
    agent = agents.UCBVI("TabularPolicy", around_lake())
    callback = EvalCallback(wrap(board), eval_freq=H, log_path=str(tmp_path), n_eval_episodes=5, verbose=0, warn=False)
    with pytest.raises(ValueError, match=r"EvalCallback.* the environment itself, or on board\.private_model\(\)"):
        agent.learn(20 * H, callback=nest(callback))
    assert board.users_left == agent.board.users_left == 200
    assert not list(tmp_path.iterdir())


@around
def test_8_nobody_evaluates_on_a_board_elsewhere(wrap):
    agent, board = agents.UCBVI("TabularPolicy", around_lake()), around_lake()
    with pytest.raises(ValueError, match=r"the environment itself, or on board\.private_model\(\)"):
        evaluate_policy(agent, wrap(board), 5, return_episode_rewards=True, warn=False)
    with pytest.raises(ValueError, match=r"the environment itself, or on board\.private_model\(\)"):
        evaluate_policy(agent, agent.get_env(), 5, warn=False)
    assert board.users_left == agent.board.users_left == 200


def test_8_other_learners_evaluate_on_no_board_either(tmp_path):
    board = around_lake()
    board.serve(np.zeros((H, 17), dtype=int), 100)
    callback = EvalCallback(board, eval_freq=16, log_path=str(tmp_path), verbose=0, warn=False)
    learner = PPO("MlpPolicy", board.private_model(), n_steps=16, batch_size=16, n_epochs=1, seed=0)
    with pytest.raises(ValueError, match="the environment itself"):
        learner.learn(32, callback=callback)
    assert board.users_left == 100
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("recorder", ["Monitor", "VecMonitor"])
def test_8_nothing_keeps_episodes_around_a_board(recorder, tmp_path):
    board = around_lake()
    outside = Monitor(board, str(tmp_path / "log")) if recorder == "Monitor" else AROUND[recorder](board)
    with pytest.raises(ValueError, match="keeps the length of every episode"):
        outside.reset()
    assert board.users_left == 200


def test_8_evaluations_on_the_environment_and_on_the_private_model_go_on(tmp_path):
    board = around_lake()
    agent = agents.UCBVI("TabularPolicy", board).learn(50 * H)
    for env in (Monitor(lake()), board.private_model()):
        callback = EvalCallback(env, eval_freq=10 * H, log_path=str(tmp_path), verbose=0, warn=False)
        agent.learn(20 * H, callback=callback)
        assert len(np.load(tmp_path / "evaluations.npz")["results"]) == 2
        evaluate_policy(agent, env, 5, warn=False)
    inside = JDPBillboard(gym.wrappers.RecordEpisodeStatistics(Monitor(lake())), 1.0, 1e-6, users=10)
    inside.reset()  # the experimenter's own statistics lie inside


def test_20_get_env_is_a_vector_environment_with_the_board_in_it():
    agent = agents.UCBVI("TabularPolicy", around_lake())
    assert isinstance(agent.get_env(), DummyVecEnv)
    assert agent.get_env().envs == [agent.board]
    assert not hasattr(agent.get_env(), "ledger")
    text = " ".join((Path(__file__).parents[2] / "docs" / "agents" / "index.md").read_text().split())
    assert "`agent.get_env()` returns a `VecEnv` with the board in it" in text

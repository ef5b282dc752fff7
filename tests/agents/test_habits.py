"""Habits of the ecosystem: what agents say of themselves, parameters, seeds, logs, and errors that name the line."""

import builtins
import csv
import io

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure

from private_rl_gym import agents, make_private
from private_rl_gym.agents import DPPPO, DPUCBVI, UCBVI, DPPolicyGradient, FrugalUCBVI, PrivateLinOptVI
from private_rl_gym.lab.registry import AGENTS
from private_rl_gym.wrappers import JDPBillboard, LDPPerStep, OpenBillboard

H = 6


def river(**options):
    return gym.make("PrivateRL/RiverSwimMixture-v0", horizon=H, variant="open-banks", **options)


def jdp(env=None, **options):
    return JDPBillboard(
        river() if env is None else env, **{"epsilon": 4.0, "delta": 1e-6, "users": 200, "schedule": 20, **options}
    )


def cart():
    return JDPBillboard(gym.make("CartPole-v1", max_episode_steps=20), 8.0, 1e-6, users=400)


def make(name):
    kind = getattr(agents, name)
    return kind(kind.policies[0], OpenBillboard(river(), statistic=kind.statistic), seed=0)


# Texts ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_an_agent_says_what_it_is(name):
    agent = make(name).learn(3 * H)
    text = repr(agent)
    assert text.startswith(f"<{name}: ")
    assert "beta=0.05" in text
    assert f"{3 * H} steps" in text
    assert str(agent.board) in text


def test_the_text_of_an_agent_names_the_promise_that_it_learns_under():
    agent = DPUCBVI("TabularPolicy", jdp(rng=3)).learn(20 * H)
    assert "(4.0, 1e-06)-JDP" in repr(agent)
    assert "seeded noise" in repr(agent)
    assert "20 users have come, 180 may come" in repr(agent)
    assert repr(DPUCBVI()).endswith("0 steps; env: None>")


# Parameters ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_parameters_are_those_of_the_policy_that_predict_plays(name):
    agent = make(name).learn(5 * H)
    table = agent.get_parameters()["policy"]["table"]
    np.testing.assert_array_equal(table, agent.best_policy().table)
    table[...] = 0  # a copy
    assert agent.get_parameters()["policy"]["table"].any() or not agent.best_policy().table.any()


def test_a_planner_plays_given_parameters_until_the_next_release():
    agent = DPUCBVI("TabularPolicy", jdp(schedule=100), seed=0)
    left = np.zeros((H, 6), dtype=np.int64)
    agent.learn(100 * H)
    planned = agent.get_parameters()["policy"]["table"]
    assert planned.any()
    agent.set_parameters({"policy": {"table": left}})
    assert agent.predict(np.arange(6))[0].tolist() == [0] * 6
    agent.learn(50 * H, reset_num_timesteps=False)
    np.testing.assert_array_equal(agent.policy.table, left)  # there was no release yet
    agent.learn(50 * H, reset_num_timesteps=False)
    assert agent.policy.table.any()


def test_parameters_come_from_a_file_or_another_agent(tmp_path):
    taught = DPUCBVI("TabularPolicy", jdp(), seed=0).learn(200 * H)
    taught.save(tmp_path / "taught")
    given = [DPUCBVI("TabularPolicy", jdp(), seed=1) for _ in range(2)]
    given[0].set_parameters(taught.get_parameters())
    given[1].set_parameters(tmp_path / "taught", exact_match=True, device="cpu")
    for agent in given:
        np.testing.assert_array_equal(agent.policy.table, taught.policy.table)
    alone = FrugalUCBVI("TabularPolicy", jdp(), seed=0).learn(200 * H)
    alone.save(tmp_path / "alone")
    again = FrugalUCBVI.load(tmp_path / "alone")
    again.set_parameters({"policy": {"table": np.ones((H, 6), dtype=np.int64)}})
    assert int(again.predict(0)[0]) == 1


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({}, "as get_parameters returns them"),
        ({"policy": {"weights": [1.0]}}, "'table': array"),
        ({"policy": {"table": np.zeros((2, 2), dtype=int)}}, r"\(H, S, A\) = \(6, 6, 2\)"),
        ({"policy": {"table": np.full((H, 6), 7)}}, "another problem"),
    ],
)
def test_parameters_that_do_not_fit_get_a_sentence(parameters, word):
    agent = DPUCBVI("TabularPolicy", jdp())
    before = agent.get_parameters()["policy"]["table"]
    with pytest.raises(ValueError, match=word):
        agent.set_parameters(parameters)
    np.testing.assert_array_equal(agent.get_parameters()["policy"]["table"], before)
    agent.set_parameters({}, exact_match=False)


@pytest.mark.parametrize("kind", [FrugalUCBVI, PrivateLinOptVI])
def test_who_asks_about_its_own_plan_takes_no_other(kind):
    agent = kind("TabularPolicy", jdp())
    with pytest.raises(ValueError, match=r"board\.serve\(policy, users\)"):
        agent.set_parameters(agent.get_parameters())


@pytest.mark.parametrize("kind", [DPPolicyGradient, DPPPO])
def test_a_network_learns_from_given_parameters_on(kind, tmp_path):
    """Its first users run them, and a saved agent knows where it began."""
    agent = kind("MlpPolicy", cart(), seed=0)
    drawn = agent.get_parameters()["policy"]["parameters"]
    wanted = np.linspace(-0.1, 0.1, len(drawn))
    agent.set_parameters({"policy": {"parameters": wanted}})
    np.testing.assert_array_equal(agent.policy.parameters, wanted)
    agent.learn(250 * 20)
    agent.save(tmp_path / "agent")
    again = kind.load(tmp_path / "agent", env=agent.board)
    np.testing.assert_array_equal(again.policy.parameters, agent.policy.parameters)
    assert not np.array_equal(agent.policy.parameters, drawn)
    with pytest.raises(ValueError, match="set parameters before learn"):
        agent.set_parameters({"policy": {"parameters": wanted}})


# Seeds ---------------------------------------------------------------------------------------------------------------


def seeded(*, users=0, noise=0, own=0):
    env = river()
    env.reset(seed=users)
    agent = agents.PSRL("TabularPolicy", jdp(env, rng=noise), seed=own)
    return agent.learn(100 * H)


def test_three_seeds_reproduce_a_run_and_the_ledger_confesses():
    first, second = seeded(), seeded()
    np.testing.assert_array_equal(first.policy.table, second.policy.table)
    np.testing.assert_array_equal(first.board.release.n, second.board.release.n)
    assert "seeded noise: for experiments" in str(first.board.ledger)
    others = [seeded(users=1), seeded(noise=1), seeded(own=1), seeded(noise=None)]
    assert all((other.board.release.n != first.board.release.n).any() for other in others)
    assert "seeded" not in str(others[-1].board.ledger)


def test_a_seed_of_the_agent_says_nothing_about_noise():
    boards = [DPUCBVI("TabularPolicy", jdp(), seed=0).learn(50 * H).board for _ in range(2)]
    assert (boards[0].release.n != boards[1].release.n).any()
    assert "seeded" not in str(boards[0].ledger)


# Logs ----------------------------------------------------------------------------------------------------------------


def logged(agent, folder, users):
    """The columns of a log; TensorBoard gets the same values, as another test of the same logger shows."""
    logger = configure(str(folder), ["csv"])
    agent.set_logger(logger)
    agent.learn(users * H, log_interval=1)
    logger.close()
    rows = list(csv.DictReader((folder / "progress.csv").read_text().splitlines()))
    return {tag: [float(row[tag]) for row in rows] for tag in rows[0]}


def test_logs_have_the_promise_and_the_users_left(tmp_path):
    found = logged(DPUCBVI("TabularPolicy", jdp(schedule=50, rng=1)), tmp_path, 150)
    assert found["privacy/epsilon"] == [4.0] * 3
    assert found["privacy/delta"] == pytest.approx([1e-6] * 3)
    assert found["privacy/users_left"] == [150.0, 100.0, 50.0]
    assert found["privacy/seeded"] == [1.0] * 3


def test_logs_have_no_promise_where_there_is_none(tmp_path):
    found = logged(UCBVI("TabularPolicy", OpenBillboard(river())), tmp_path, 5)
    assert "time/users" in found
    assert not [tag for tag in found if tag.startswith("privacy/")]


@pytest.mark.parametrize(("missing", "options"), [("tqdm", {"progress_bar": True}), ("tensorboard", {})])
def test_what_logs_and_bars_need_is_named(missing, options, monkeypatch, tmp_path):
    from stable_baselines3.common import callbacks, logger, utils

    for module in (callbacks, logger, utils):
        for name in ("tqdm", "SummaryWriter"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, None)
    genuine = builtins.__import__
    monkeypatch.setattr(
        builtins, "__import__", lambda name, *rest: _refuse(name) if name == missing else genuine(name, *rest)
    )
    agent = DPUCBVI("TabularPolicy", jdp(), tensorboard_log=str(tmp_path) if missing == "tensorboard" else None)
    with pytest.raises(ImportError, match=r"pip install -c constraints.txt '\.\[train\]'"):
        agent.learn(H, **options)


def _refuse(name):
    raise ImportError(name)


# Errors --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("observation", [17, -1, 1.5, "x", None, [0, 17], [[0, 1]], True])
def test_what_is_no_observation_gets_a_sentence_that_does_not_repeat_it(observation):
    agent = DPUCBVI("TabularPolicy", jdp())
    with pytest.raises(ValueError, match=r"not in Discrete\(6\).*one observation.*several users") as found:
        agent.predict(observation)
    assert "17" not in str(found.value)


@pytest.mark.parametrize("observation", [17, [0, 17], [-1, 0], [[0, 1, 2]], [0.5, 1], "x", None])
def test_what_is_no_observation_with_a_stage_gets_a_sentence(observation):
    timed = DPUCBVI("TabularPolicy", jdp(river(observe_time=True)))
    with pytest.raises(ValueError, match="not in MultiDiscrete"):
        timed.predict(observation)


@pytest.mark.parametrize("state", [3, (), (np.array([0, 0]),), (np.array([-5]),), (np.array([0.5]),), ("x",)])
def test_what_is_no_state_gets_the_line_to_write(state):
    agent = DPUCBVI("TabularPolicy", jdp())
    with pytest.raises(ValueError, match=r"action, state = agent\.predict\(observation, state\)"):
        agent.predict(0, state=state)


def test_observations_that_are_whole_are_taken_in_any_type():
    agent = DPUCBVI("TabularPolicy", jdp())
    wanted = int(agent.policy.table[0, 2])
    for observation in (2, np.int8(2), np.float32(2.0), np.array(2)):
        assert int(agent.predict(observation, episode_start=np.array([True]))[0]) == wanted


@pytest.mark.parametrize("observation", [17, np.zeros(3), "abc", None, [[0.0] * 4, [0.0] * 3]])
def test_what_is_no_observation_of_a_network_gets_a_sentence(observation):
    agent = DPPolicyGradient("MlpPolicy", cart())
    with pytest.raises(ValueError, match="An observation is not in Box"):
        agent.predict(observation)
    assert agent.predict(np.zeros((3, 4)))[0].shape == (3,)


def test_a_missing_file_is_missing_and_a_damaged_one_damaged(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file .*none\.zip.*agent\.save"):
        DPUCBVI.load(tmp_path / "none")
    (tmp_path / "text.zip").write_text("hello")
    with pytest.raises(ValueError, match="not a saved agent, or is damaged"):
        DPUCBVI.load(tmp_path / "text.zip")
    with pytest.raises(ValueError, match="not a saved agent, or is damaged"):
        DPUCBVI.load(io.BytesIO(b"hello"))


def test_an_environment_in_the_place_of_the_policy_gets_the_line_to_write():
    for given in (jdp(), "PrivateRL/RiverSwim-v0"):
        with pytest.raises(ValueError, match=r"policy comes first.*DPUCBVI\('TabularPolicy', env\)"):
            DPUCBVI(given)
    with pytest.raises(ValueError, match="policy is 'MlpPolicy'"):
        DPUCBVI("MlpPolicy", jdp())


def test_agents_make_a_vec_env_of_users_with_pictures_without_a_word():
    """Warnings are errors here: a VecEnv asks for the render mode, and shows nothing."""
    agent = DPUCBVI("TabularPolicy", jdp(river(render_mode="rgb_array")))
    assert agent.get_env().render_mode is None


@pytest.mark.parametrize("given", ["PrivateRL/RiverSwim-v0", None, "vector"])
@pytest.mark.parametrize("kind", [JDPBillboard, OpenBillboard, LDPPerStep])
def test_what_is_no_environment_gets_the_line_to_write(kind, given):
    given = make_vec_env("CartPole-v1", n_envs=2) if given == "vector" else given
    options = {JDPBillboard: {"epsilon": 1.0, "delta": 1e-6, "users": 10}, LDPPerStep: {"epsilon": 1.0}}.get(kind, {})
    with pytest.raises(TypeError, match=rf"write {kind.__name__}\(gym\.make\("):
        kind(given, **options)


def test_many_environments_in_the_place_of_one_are_counted():
    with pytest.raises(TypeError, match=r"A DummyVecEnv with 4 environments in it is not one.*served by the boundary"):
        make_private(PPO, make_vec_env("CartPole-v1", n_envs=4), epsilon=1.0, users=100)


@pytest.mark.parametrize("kind", [DPUCBVI, FrugalUCBVI])
def test_users_who_are_given_for_steps_are_told_from_them_once(kind):
    agent = kind("TabularPolicy", jdp(users=60), seed=0)
    with pytest.warns(
        UserWarning, match=r"60 steps are 10 users of the 60 who may come.*Write learn\(60 \* 6\)"
    ) as said:
        agent.learn(60)
    assert said[0].filename == __file__  # the line to change
    agent.learn(10 * H)  # whoever goes on counts: no warning, which would be an error here

"""What each agent learns, and what it is equal to."""

import json
import math
import subprocess
import sys
import zipfile

import gymnasium as gym
import numpy as np
import pytest
from dp_accounting.dp_event import GaussianDpEvent
from dp_accounting.pld import PLDAccountant

from private_rl_gym import agents
from private_rl_gym.agents.tabular.rlsvi import printed_epsilon, tight_mu
from private_rl_gym.lab.registry import AGENTS
from private_rl_gym.lab.regret import PACCallback, RegretCallback
from private_rl_gym.privacy.accounting.conversion import gaussian_epsilon
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.wrappers import BudgetExhausted, JDPBillboard, LDPPerStep, LDPUserSide, OpenBillboard, SDPShuffler

OURS = sorted(AGENTS)


def river(**arguments):
    return gym.make("PrivateRL/RiverSwim-v0", **arguments)


def mixture():
    return gym.make("PrivateRL/LinearMixture-v0")


def regret(agent, users):
    oracle = RegretCallback()
    agent.learn(users * agent.horizon, callback=oracle)
    return oracle.curve


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "seed", "most"),
    [
        *(("UCBVI", seed, 2500) for seed in range(2)),
        ("UBEV", 0, 3500),
        ("PrivateUCBVI", 0, 2500),
        ("PSRL", 0, 2500),
        ("RLSVI", 0, 9000),
    ],
)
def test_non_private_learners_learn(name, seed, most):
    """RiverSwim, H = 20, 50,000 users, defaults; never learning costs 168,000."""
    env = river()
    env.unwrapped.reset(seed=seed)
    assert regret(getattr(agents, name)("TabularPolicy", env, seed=seed), 50_000)[-1] <= most


@pytest.mark.slow
@pytest.mark.parametrize("name", ["DPUCBVI", "PUCB", "PrivateUCBVI", "PrivateUCBPO"])
def test_private_regret_falls_as_epsilon_grows(name):
    """And reaches the non-private order: within three times what the same agent has around exact sums."""
    found = []
    for epsilon in (1.0, 10.0, 100.0, 1e4):
        board = JDPBillboard(river(), epsilon, 1e-6, users=20_000, schedule=100, rng=1)
        board.unwrapped.reset(seed=0)
        found.append(regret(getattr(agents, name)("TabularPolicy", board, seed=0), 20_000)[-1])
    assert found == sorted(found, reverse=True)
    board = OpenBillboard(river(), users=20_000, schedule=100)
    board.unwrapped.reset(seed=0)
    assert found[-1] <= 3 * regret(getattr(agents, name)("TabularPolicy", board, seed=0), 20_000)[-1]


@pytest.mark.slow
@pytest.mark.parametrize(("private", "parent"), [("DPUCBVI", "UCBVI"), ("PUCB", "UBEV")])
@pytest.mark.parametrize("constants", ["theory", "practical"])
def test_around_exact_counts_a_private_agent_is_its_parent(private, parent, constants):
    """Number for number, after every user."""
    pair = [
        getattr(agents, name)("TabularPolicy", river(horizon=6), constants=constants, seed=0)
        for name in (private, parent)
    ]
    for agent in pair:
        agent.bonus_scale = 0.3
        agent.board.unwrapped.reset(seed=2)
    for _ in range(60):
        for agent in pair:
            agent.learn(6 * 5, reset_num_timesteps=False)
        np.testing.assert_array_equal(pair[0].policy.table, pair[1].policy.table)
        if private == "DPUCBVI":
            np.testing.assert_array_equal(pair[0].q, pair[1].q)
        else:
            np.testing.assert_array_equal(*(agent.priv_q(agent.board.release).q for agent in pair))


def test_an_oracle_can_watch_one_agent_after_another():
    """Another agent that begins has a curve and a truth of its own; one that goes on, goes on."""
    oracle, pac = RegretCallback(), PACCallback(alpha=0.01)
    first = agents.UCBVI("TabularPolicy", river(horizon=6), seed=0).learn(6 * 30, callback=[oracle, pac])
    first.learn(6 * 10, callback=[oracle, pac], reset_num_timesteps=False)
    assert len(oracle.curve) == 40
    other = agents.UCBVI("TabularPolicy", river(horizon=4, variant="strehl-littman"), seed=0)
    other.learn(4 * 20, callback=[oracle, pac])
    assert len(oracle.curve) == 20
    assert pac.mistakes <= 20
    assert oracle.judge.truth is other.board.unwrapped.model


def test_regret_is_exact():
    env = river(horizon=6)
    agent, oracle, pac = agents.UCBVI("TabularPolicy", env), RegretCallback(), PACCallback(alpha=0.01)
    values = []
    model = env.unwrapped.model
    original = agent.plan
    agent.plan = lambda release: values.append(model.value_of(policy := original(release))) or policy
    agent.learn(6 * 40, callback=[oracle, pac])
    gaps = model.optimal_value() - np.array(values)
    np.testing.assert_allclose(oracle.curve, np.cumsum(gaps), atol=1e-12)
    assert pac.mistakes == (gaps > 0.01).sum()


@pytest.mark.parametrize(
    "board",
    [
        lambda env, **o: JDPBillboard(env, 5.0, 1e-6, users=300, schedule=10, **o),
        lambda env, **o: JDPBillboard(env, 5.0, 0.0, users=300, schedule=10, **o),
        lambda env, **o: LDPUserSide(env, 5.0, users=300, schedule=10, **o),
        lambda env, **o: JDPBillboard(LDPUserSide(env, 5.0, **o), 5.0, 1e-6, users=300, schedule=10),
        lambda env, **o: SDPShuffler(LDPUserSide(env, 5.0, **o), users=300, schedule=10),
    ],
)
@pytest.mark.parametrize(
    "name", [name for name in OURS if not getattr(agents, name).plans_batches]
)  # those close batches
def test_every_agent_runs_on_every_board(name, board):
    kind = getattr(agents, name)
    env = gym.make("PrivateRL/RiverSwimMixture-v0", horizon=5)
    agent = kind("TabularPolicy", board(env, statistic=kind.statistic), seed=0)
    agent.learn(5 * 300)
    assert agent.board.users_left == 0
    assert agent.policy.horizon == 5


def test_rlsvi_has_a_guarantee_of_its_own():
    """Figures of the specification: H = 20, S = 6, A = 2, delta = 1e-5."""
    for users, printed in ((2_000, 15.5), (20_000, 71), (50_000, 142)):
        assert printed_epsilon(20, 6, 2, users, 1e-5) == pytest.approx(printed, rel=0.01)
    assert gaussian_epsilon(1e-5, tight_mu(20, 6, 2, 50_000)) == pytest.approx(12, rel=0.05)
    agent = agents.RLSVI("TabularPolicy", river(), seed=0, constants="theory").learn(20 * 50)
    guarantee = agent.guarantee
    assert (guarantee.covers, guarantee.users, guarantee.model) == ("rewards", 50, "JDP")
    assert "rewards only" in str(guarantee)
    tight = gaussian_epsilon(1e-5, tight_mu(20, 6, 2, 50))
    assert 0.9 * tight <= guarantee.epsilon <= min(printed_epsilon(20, 6, 2, 50, 1e-5), tight)
    assert "seeded noise: for experiments" in str(guarantee)
    weaker = agents.RLSVI("TabularPolicy", river(), variance_scale=0.01).learn(20 * 50).guarantee
    assert weaker.epsilon > 2 * guarantee.epsilon
    assert "seeded" not in str(weaker)


@pytest.mark.parametrize("clip", [False, True])
def test_rlsvis_values_are_what_the_algorithm_says(clip):
    """Lines 5 to 18 in plain numpy, with the same noise."""
    agent = agents.RLSVI("TabularPolicy", river(horizon=5), clip=clip, seed=0, variance_scale=1e-3).learn(5 * 200)
    release, same = agent.board.release, NoiseSource(7)
    agent.noise = NoiseSource(7)
    H, S, A = release.n.shape
    variance = 1e-3 * 0.5 * S * H**3 * math.log(2 * H * S * A * 201) / (release.n + 1)
    noise, V, actions = np.empty((H, S, A)), np.zeros(S), np.empty((H, S), dtype=int)
    same.gaussian(noise)
    noise *= np.sqrt(variance)
    for h in reversed(range(H)):
        N = np.maximum(release.n[h], 1)
        Q = release.r[h] / N + (release.m[h] / N[..., None]) @ V + noise[h]
        Q = np.clip(Q, 0, H - h) if clip else Q
        actions[h], V = Q.argmax(axis=1), Q.max(axis=1)
    np.testing.assert_array_equal(agent.plan(release).table, actions)


def test_rlsvi_pays_for_every_plan():
    """Found by attack: asking for new plans from one release draws new noise for the same rewards."""
    agent = agents.RLSVI("TabularPolicy", river()).learn(20 * 5)
    policy, before = agent.policy, agent.guarantee.epsilon
    agent.set_env(agent.board)
    assert agent.policy is policy  # asked again, the same plan
    for _ in range(300):
        agent.plan(agent.board.release)
    assert agent.guarantee.epsilon > 3 * before


def test_rlsvi_does_not_forget_what_was_spent_at_another_scale(tmp_path):
    agent = agents.RLSVI("TabularPolicy", river(), variance_scale=1e-3).learn(20 * 50)
    agent.save(tmp_path / "agent")
    again = agents.RLSVI.load(tmp_path / "agent", env=agent.board, variance_scale=100.0)
    assert again.guarantee.epsilon >= 0.99 * agent.guarantee.epsilon
    seeded = agents.RLSVI.load(tmp_path / "agent", env=agent.board, seed=5)
    assert "seeded noise" in str(seeded.guarantee)


def test_rlsvi_does_not_forget_that_its_noise_was_seeded(tmp_path):
    board = OpenBillboard(river())
    agent = agents.RLSVI("TabularPolicy", board, seed=7).learn(20 * 10)
    agent.save(tmp_path / "bare", exclude={"seed"})
    agent.save(tmp_path / "whole")
    bare = agents.RLSVI.load(tmp_path / "bare", env=board)
    anew = agents.RLSVI.load(tmp_path / "whole", env=board, seed=None)
    for one in (bare, anew):
        assert "seeded noise" in str(one.guarantee)
        assert one.rng.bit_generator.state != agent.rng.bit_generator.state


def test_rlsvi_takes_nothing_back(tmp_path):
    """Whatever boards it meets after it was loaded, and in whatever order."""
    agent = agents.RLSVI("TabularPolicy", first := OpenBillboard(river())).learn(20 * 10)
    agent.save(tmp_path / "agent")
    again, spent = agents.RLSVI.load(tmp_path / "agent", env=first), [0.0]
    for board in (first, OpenBillboard(river()), first, OpenBillboard(river())):
        again.set_env(board)
        spent.append(again.guarantee.epsilon)
        again.learn(20 * 5)
        spent.append(again.guarantee.epsilon)
        agents.RLSVI.load(tmp_path / "agent").set_env(board)
    assert spent == sorted(spent)
    assert len(set(spent)) == 6


def test_rlsvis_account_agrees_with_a_numerical_composition():
    mu = tight_mu(20, 6, 2, 200)
    k = np.arange(1, 201)
    shifts = np.sqrt(2 / (0.5 * 6 * 20**3 * np.log(2 * 20 * 6 * 2 * k)))
    accountant = PLDAccountant(value_discretization_interval=1e-3)
    for shift in shifts:
        accountant.compose(GaussianDpEvent(noise_multiplier=1 / shift), count=20)
    assert gaussian_epsilon(1e-5, mu) == pytest.approx(accountant.get_epsilon(1e-5), rel=0.02)


def test_noise_that_protects_is_not_saved(tmp_path):
    agent = agents.RLSVI("TabularPolicy", river()).learn(20 * 5)
    agent.save(tmp_path / "agent")
    with zipfile.ZipFile(tmp_path / "agent.zip") as archive:
        assert json.loads(archive.read("agent.json"))["streams"] is None
    again = agents.RLSVI.load(tmp_path / "agent", env=river())
    assert again.guarantee.epsilon == agent.guarantee.epsilon > 0


def test_a_file_is_taken_up_with_a_smaller_board(tmp_path):
    """It received more releases than fewer users would give, and was called damaged."""
    board = JDPBillboard(river(), epsilon=1.0, users=20_000, delta=1e-6)
    agent = agents.FrugalUCBVI("TabularPolicy", board, seed=0).learn(20_000 * 5)
    agent.save(tmp_path / "agent")
    few = JDPBillboard(river(), epsilon=1.0, users=200, delta=1e-6)
    again = agents.FrugalUCBVI.load(tmp_path / "agent", env=few)
    np.testing.assert_array_equal(again.best_policy().table, agent.best_policy().table)
    again.learn(200 * 5)


def test_parameters_of_unknown_origin_come_without_a_guarantee():
    free = agents.DPUCBVI("TabularPolicy", OpenBillboard(river()), seed=0).learn(50 * 5)
    board = JDPBillboard(river(), epsilon=1.0, users=50)
    agent = agents.DPUCBVI("TabularPolicy", board, seed=0)
    agent.set_parameters(agent.get_parameters())
    assert agent.guarantee == board.ledger.outside
    agent.set_parameters(free.get_parameters())
    assert "nothing says how they were learned" in agent.guarantee.sentence()
    agent.learn(50 * 5)
    assert str(agent.guarantee) == "no privacy (epsilon = inf)"  # the board's users have run them
    assert agent.board_guarantee == board.ledger.outside


def test_files_of_older_formats_are_read_and_promise_what_they_state(tmp_path):
    board = JDPBillboard(river(), epsilon=1.0, users=50)
    agent = agents.DPUCBVI("TabularPolicy", board, seed=0).learn(20 * 5)
    agent.save(tmp_path / "agent")

    def rewrite(name, **changes):
        with zipfile.ZipFile(tmp_path / "agent.zip") as old, zipfile.ZipFile(tmp_path / name, "w") as new:
            for entry in old.namelist():
                content = old.read(entry)
                if entry == "agent.json":
                    about = {**json.loads(content), **changes}
                    if about["format"] < 5:
                        del about["origins"]
                    content = json.dumps(about)
                new.writestr(entry, content)
        return tmp_path / name

    for format, stated in ((3, {}), (4, {"guarantee": agent.guarantee.to_dict()}), (4, {"guarantee": None})):
        old = agents.DPUCBVI.load(rewrite("old.zip", format=format, **stated))
        np.testing.assert_array_equal(old.policy.table, agent.policy.table)
        promised = str(agent.guarantee) if stated.get("guarantee") else "no privacy (epsilon = inf)"
        assert str(old.guarantee) == promised
    with pytest.raises(ValueError, match="is damaged"):
        agents.DPUCBVI.load(rewrite("forged.zip", origins={"": {"epsilon": 0.0}}))
    with pytest.raises(ValueError, match=r"format 2.*format 5"):
        agents.DPUCBVI.load(rewrite("older.zip", format=2))


def test_a_run_without_a_boundary_says_so(capsys):
    agent = agents.UCBVI("TabularPolicy", river(horizon=4), verbose=1)
    assert "This run is not private" in capsys.readouterr().out
    assert isinstance(agent.board, OpenBillboard)
    assert str(agent.board.ledger) == "no privacy (epsilon = inf)"


def test_calls_without_state_are_warned_of_once():
    agent = agents.UCBVI("TabularPolicy", river(horizon=4))
    agent.predict(0)
    with pytest.warns(UserWarning, match="plays stage 0 each time"):
        agent.predict(0)
    agent.predict(0)


@pytest.mark.parametrize(
    ("build", "kind", "word"),
    [
        (
            lambda: agents.UCBVI("MlpPolicy", river()),
            ValueError,
            "policy is 'MlpPolicy'",
        ),
        (lambda: agents.UCBVI("TabularPolicy", gym.make("CartPole-v1")), TypeError, "observation space .*Discrete"),
        (lambda: agents.UCBVI("TabularPolicy", LDPPerStep(river(), 1.0)), ValueError, "LDPPerStep .*LDPUserSide"),
        (lambda: agents.UCBVI("TabularPolicy", 3), TypeError, "not one environment"),
        (lambda: agents.UCBVI("TabularPolicy").learn(10), ValueError, "set_env"),
        (lambda: agents.UCBVI("TabularPolicy", river(), constants="none"), ValueError, "constants is 'none'"),
        (lambda: agents.UCBVI("TabularPolicy", river(), bonus_scale=0.0), ValueError, "bonus_scale is 0.0"),
        (lambda: agents.UCBVI("TabularPolicy", river(), variant="x"), ValueError, "variant is 'x'"),
        (lambda: agents.UCBVI("TabularPolicy", river(), beta=1.0), ValueError, "beta is 1.0"),
        (lambda: agents.DPUCBVI("TabularPolicy", river(), noise_scale=-1), ValueError, "noise_scale is -1"),
        (lambda: agents.PUCB("TabularPolicy", river(), noise_scale=math.nan), ValueError, "noise_scale is nan"),
        (lambda: agents.PrivateUCBPO("TabularPolicy", river(), eta=-1.0), ValueError, "eta is -1.0"),
        (lambda: agents.PrivateUCBPO("TabularPolicy", river(), eta_scale=math.inf), ValueError, "eta_scale is inf"),
        (lambda: agents.RLSVI("TabularPolicy", river(), variance_scale=0), ValueError, "variance_scale is 0"),
        (lambda: agents.RLSVI("TabularPolicy", river(), constants="no"), ValueError, "constants is 'no'"),
        (lambda: agents.PSRL("TabularPolicy", river(), prior=math.inf), ValueError, "prior is inf"),
        (lambda: agents.UCBVI("TabularPolicy", river()).learn("80"), ValueError, "total_timesteps is '80'"),
        (lambda: agents.UCBVI("TabularPolicy", river()).learn(math.nan), ValueError, "total_timesteps is nan"),
        (lambda: agents.UCBVI("TabularPolicy", river()).learn(math.inf), ValueError, "total_timesteps is inf"),
        (lambda: agents.UCBVI("TabularPolicy", river()).learn(True), ValueError, "total_timesteps is True"),
        (lambda: agents.UCBVI("TabularPolicy", river()).save("x", exclude=["y"]), ValueError, "exclude names y"),
        (lambda: agents.PSRL("TabularPolicy", river(), prior=0), ValueError, "prior is 0"),
        (lambda: agents.OPPO("TabularPolicy", river()), ValueError, "LinearFeatures"),
        (lambda: agents.OPPO("TabularPolicy", mixture(), eta=0.0), ValueError, "eta is 0.0"),
        (lambda: agents.UCRLVTR("TabularPolicy", mixture(), shift_scale=-1), ValueError, "shift_scale is -1"),
        (
            lambda: agents.PrivateLinOptVI("TabularPolicy", OpenBillboard(mixture(), statistic="tabular")),
            ValueError,
            "PrivateLinOptVI .*linear.* OpenBillboard .*tabular",
        ),
        (
            lambda: agents.PUCB("TabularPolicy", OpenBillboard(mixture(), statistic="linear")),
            ValueError,
            "PUCB .*tabular.* linear",
        ),
        (lambda: agents.UCBVI("TabularPolicy", river()).learn(0), ValueError, "total_timesteps is 0"),
        (lambda: PACCallback(0.0), ValueError, "alpha is 0.0"),
    ],
)
def test_bad_input_gets_a_sentence(build, kind, word):
    with pytest.raises(kind, match=word):
        build()


def test_a_budget_that_is_too_small_is_refused_before_anything_runs():
    board = JDPBillboard(river(), 1.0, 1e-6, users=10)
    agent = agents.DPUCBVI("TabularPolicy", board)
    with pytest.raises(BudgetExhausted, match=r"11 users.* 10"):
        agent.learn(220)
    assert board.users_left == 10
    agent.learn(190)  # 9.5 users: the tenth goes on to her end
    assert agent.num_timesteps == 200


def test_a_damaged_file_gets_a_sentence(tmp_path):
    (tmp_path / "agent.zip").write_text("hello")
    with pytest.raises(ValueError, match="not a saved agent"):
        agents.UCBVI.load(tmp_path / "agent.zip")
    agents.UCBVI("TabularPolicy", river()).save(tmp_path / "other")
    with pytest.raises(ValueError, match=r"UCBVI\.load"):
        agents.DPUCBVI.load(tmp_path / "other")
    with pytest.raises(ValueError, match="learned on sizes"):
        agents.UCBVI.load(tmp_path / "other", env=river(horizon=3))


def test_learning_without_logs_needs_no_torch():
    code = """
import sys
from private_rl_gym.agents import UCBVI
agent = UCBVI("TabularPolicy", "private_rl_gym:PrivateRL/RiverSwim-v0").learn(2000)
agent.predict(0)
print([name for name in ("torch", "stable_baselines3") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

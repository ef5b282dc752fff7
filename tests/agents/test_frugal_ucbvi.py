"""FrugalUCBVI learns where noise is wide, and notices where stages differ. Seeds are fixed."""

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.agents import FrugalUCBVI
from private_rl_gym.agents.tabular.frugal_constants import PRIOR
from private_rl_gym.agents.tabular.reported_model import Estimate, ReportedBatch, ReportedModel
from private_rl_gym.envs import Garnet, TabularEnv, TabularModel
from private_rl_gym.lab.regret import learn_with_regret, stretches
from private_rl_gym.privacy import NoiseSource
from private_rl_gym.privacy.errors import NoError
from private_rl_gym.privacy.requests import Wanted
from private_rl_gym.privacy.statistics.reports import Reports
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard, SDPShuffler
from tests.privacy.statistics.sums import collect

H, S, A = 5, 3, 2


def river(horizon=20):
    return gym.make("PrivateRL/RiverSwim-v0", horizon=horizon)


def turning_river():
    """RiverSwim whose two actions change places half way."""
    still = river().unwrapped.model
    P, R = (np.repeat(array, 20, axis=0) for array in (still.transitions, still.rewards))
    P[10:], R[10:] = P[10:, :, ::-1], R[10:, :, ::-1]
    return TabularEnv(TabularModel(P, R, still.initial, 20))


def learned(env, epsilon=1.0, users=20_000, seed=0, **options):
    """Share of the regret of never learning, and the agent."""
    board = JDPBillboard(env, epsilon, 1e-6, users=users, rng=100 + seed)
    board.unwrapped.reset(seed=seed)
    agent = FrugalUCBVI("TabularPolicy", board, seed=seed, **options)
    model = env.unwrapped.model
    blind = model.optimal_value() - model.value_of(
        np.full((model.horizon, model.n_states, model.n_actions), 1 / model.n_actions)
    )
    return learn_with_regret(agent, users)[-1] / (users * blind), agent


@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("sizes", [(2, 2, 1), (1, 3, 1), (2, 1, 3), (1, 2, 2)], ids=str)
def test_the_smallest_problems_are_learned_too(sizes, stationary):
    n_states, n_actions, horizon = sizes
    env = Garnet(n_states, n_actions, horizon, branching=min(2, n_states))
    agent = FrugalUCBVI("TabularPolicy", OpenBillboard(env, users=400), seed=0, stationary=stationary)
    agent.learn(400 * horizon)
    assert env.model.value_of(agent.best_policy()) == pytest.approx(env.model.optimal_value(), abs=0.05)


@pytest.mark.parametrize("kind", [OpenBillboard, LDPUserSide, JDPBillboard])
def test_steps_may_differ_unless_the_board_or_the_agent_says_otherwise(kind, tmp_path):
    """One default for boundaries, agents and commands."""

    def board(**options):
        budget = {OpenBillboard: {}, LDPUserSide: {"epsilon": 4.0}}.get(kind, {"epsilon": 4.0, "delta": 1e-6})
        return kind(river(4), users=200, **budget, **options)

    assert FrugalUCBVI("TabularPolicy", board()).board.statistic.name == "staged-reports"
    for agent in (
        FrugalUCBVI("TabularPolicy", board(stationary=True), seed=0),
        FrugalUCBVI("TabularPolicy", board(), stationary=True, seed=0),
    ):
        assert agent.board.statistic.name == "reports"
        agent.learn(100 * 4).save(tmp_path / "agent")
        assert len(agent.model.levels) == 1
        loaded = FrugalUCBVI.load(tmp_path / "agent")
        assert loaded.stationary is agent.stationary
        loaded.set_env(board(stationary=True))
        assert loaded.board.statistic.name == "reports"
    assert FrugalUCBVI("TabularPolicy", board(statistic="reports")).statistic == "reports"
    around = JDPBillboard(LDPUserSide(river(4), 4.0, stationary=True), 1.0, 1e-6, users=200)
    assert around.stationary
    assert FrugalUCBVI("TabularPolicy", around).statistic == "reports"
    with pytest.raises(ValueError, match="stationary=True pools"):
        FrugalUCBVI("TabularPolicy", board(stationary=True), stationary=False)


# Learning ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_learns_at_epsilon_1():
    share, agent = learned(river(), stationary=True)
    assert share < 0.15
    assert len(agent.model.levels) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_learns_at_epsilon_1_where_nobody_says_that_stages_are_alike(seed):
    """Measured: 0.04 to 0.11 over 50,000 users."""
    share, agent = learned(river(), users=50_000, seed=seed)
    assert share < 0.2
    assert agent.model.alike


def test_nobody_explores_for_users_who_never_come():
    """The last batch, of nearly a fifth of all users, runs one policy."""
    board = OpenBillboard(river(10), users=3_000, rng=1)
    board.unwrapped.reset(seed=2)
    runs = list(stretches(FrugalUCBVI("TabularPolicy", board, seed=3, stationary=True), 3_000))
    assert runs[-1].stop == 3_000
    assert runs[-1].users >= 500
    assert max(run.users for run in runs[:8]) < 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_cells_that_stay_unknown_do_not_keep_everyone_exploring(seed):
    """Measured on FrozenLake, whose best value is a hundredth of the horizon: 0.18 to 0.31."""
    lake = gym.make("PrivateRL/FrozenLake-v0", horizon=20)
    share, _ = learned(lake, epsilon=4.0, users=50_000, seed=seed, stationary=True)
    assert share < 0.4


@pytest.mark.slow
def test_stages_that_differ_overrule_what_all_stages_say_together():
    """Measured: 0.09 to 0.17, and 0.64 to 0.89 where they are taken to be alike."""
    told, _ = learned(turning_river(), 4.0, 50_000, stationary=True)
    share, agent = learned(turning_river(), 4.0, 50_000)
    assert share < 0.25
    assert share < 0.5 * told
    assert not agent.model.alike


@pytest.mark.parametrize(
    "make",
    [
        lambda env: OpenBillboard(env, users=600, statistic="staged-reports", rng=1),
        lambda env: LDPUserSide(env, 4.0, users=600, statistic="staged-reports", rng=1),
        pytest.param(
            lambda env: SDPShuffler(env, 4.0, 1e-4, users=600, statistic="staged-reports", rng=1),
            marks=pytest.mark.slow,
        ),  # calibrates every size of a batch
    ],
)
def test_without_being_told_it_runs_on_every_board_and_continues_from_a_file(make, tmp_path):
    def started():
        agent = FrugalUCBVI("TabularPolicy", make(river(4)), seed=2)
        agent.board.unwrapped.reset(seed=3)
        return agent.learn(400 * 4)

    straight, left = started(), started()
    left.save(tmp_path / "agent")
    left.board.save_state(tmp_path / "board")
    board = make(river(4))
    board.load_state(tmp_path / "board")
    loaded = FrugalUCBVI.load(tmp_path / "agent", env=board)
    assert not loaded.stationary
    for agent in (straight, loaded):
        agent.board.unwrapped.reset(seed=5)
        agent.learn(200 * 4, reset_num_timesteps=False)
    np.testing.assert_array_equal(straight.policy.table, loaded.policy.table)
    np.testing.assert_array_equal(straight.board.release.reports, board.release.reports)


# The model -----------------------------------------------------------------------------------------------------------


def random_model(rng, stages):
    P = rng.dirichlet(np.ones(S), size=(stages, S, A))
    return TabularModel(P, rng.random((stages, S, A)), np.ones(S) / S, H)


def asked(model, statistic, request, users, seed):
    """The exact release of a batch in which half of the users run each of two policies."""
    rng, runs = np.random.default_rng(seed), []
    sums = np.zeros(statistic.cells, dtype=np.int64)
    for action in range(A):
        runs.append((np.full((H, S), action), users // A))
        people = model.rollout(runs[-1][0], model.draw_users(rng, users // A))
        collect(statistic, people, sums, NoiseSource(seed), request)
    families = statistic.sums(sums.astype(float))
    exact = dict.fromkeys(families, NoError())
    release = statistic.release(families, version=1, users=users, errors=exact, events=1, absorbing=None)
    return ReportedBatch(release, 0.0, runs, request)


EVERY_STEP = Wanted(np.ones((S, A), dtype=bool), starts=0.1, most=H, by_stage=True)
ONE_STEP = Wanted(np.ones((S, A), dtype=bool), anywhere=0.9, starts=0.1)


@pytest.mark.parametrize("stages", [1, H])
def test_exact_reports_of_many_users_give_the_true_model(stages):
    """With 40,000 users of each action no frequency is off by 0.03, which is ten standard errors."""
    truth = random_model(np.random.default_rng(1), stages)
    batch = asked(truth, Reports(H, S, A, staged=True), EVERY_STEP, 80_000, 2)
    model = ReportedModel.of_nothing(H, S, A, stationary=False).updated([batch])
    assert model.P.shape == (H, S, A, S)
    assert model.known.all()
    assert np.abs(model.P - truth.transitions).max() < 0.03
    assert np.abs(model.r - truth.rewards).max() < 0.03
    assert model.alike == (stages == 1)


def test_a_stationary_model_has_one_block():
    truth = random_model(np.random.default_rng(3), 1)
    model = ReportedModel.of_nothing(H, S, A, stationary=True)
    model = model.updated([asked(truth, Reports(H, S, A), ONE_STEP, 80_000, 4)])
    assert model.P.shape == (1, S, A, S)
    assert np.abs(model.P - truth.transitions).max() < 0.05  # some 13,000 reports of each cell


def test_an_estimate_is_worth_more_to_parts_that_are_alike_and_less_to_others():
    rng = np.random.default_rng(5)

    def drawn(rows, n):
        counts = np.array([rng.multinomial(n, row) for row in rows.reshape(-1, 2 * S)]).reshape(rows.shape) / n
        shape = rows.shape[:3]
        return Estimate(
            counts, np.ones(shape, bool), np.zeros(shape), np.full(shape, float(n)), counts, np.full(shape, float(n))
        )

    one = rng.dirichlet(np.ones(2 * S), size=(1, S, A)).reshape(1, S, A, S, 2)
    other = rng.dirichlet(np.ones(2 * S), size=(1, S, A)).reshape(1, S, A, S, 2)
    whole = drawn((one + other) / 2, 20_000)
    alike = drawn(np.repeat((one + other) / 2, 2, axis=0), 10_000)
    apart = drawn(np.concatenate([one, other]), 10_000)
    assert whole.worth_to(alike) > PRIOR
    assert whole.worth_to(apart) < PRIOR / 2
    assert whole.worth_to(Estimate.of_nothing(2, S, A)) == PRIOR


def test_parts_that_know_nothing_take_over_what_the_whole_knows():
    truth = random_model(np.random.default_rng(6), 1)
    told = ReportedModel.of_nothing(H, S, A, stationary=True)
    told = told.updated([asked(truth, Reports(H, S, A), ONE_STEP, 4_000, 7)])
    untold = ReportedModel.of_nothing(H, S, A, stationary=False)
    untold = untold.updated([asked(truth, Reports(H, S, A, staged=True), ONE_STEP, 4_000, 7)])
    np.testing.assert_allclose(untold.P, np.repeat(told.P, H, axis=0))
    assert untold.known.all()
    assert (untold.n <= PRIOR + 1e-9).all()

"""Local reports: their privacy exactly, their laws by sampling, their sums without bias."""

import math

import gymnasium as gym
import numpy as np
import pytest
from scipy import stats

from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy import NoiseSource
from private_rl_gym.privacy.errors import NoError
from private_rl_gym.privacy.randomizers import RANDOMIZERS, AdditiveReports, UnaryReports, randomizer
from private_rl_gym.privacy.statistics import TabularCounts


def user(H, state=0, reward=1.0, copies=1):
    states = np.full((copies, H + 1), state, dtype=np.int32)
    return Trajectories(states, np.zeros((copies, H), dtype=np.int32), np.full((copies, H), reward))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("one_step", [True, False])
def test_moving_a_set_bit_costs_exactly_epsilon(epsilon, one_step):
    """Bits are independent, so the worst ratio is that of the two bits that change: exact, not sampled."""
    H = 5
    q = UnaryReports(TabularCounts(H, 2, 1), epsilon, one_step=one_step)._flips.q
    one_stage = math.log((0.5 / q) * ((1 - q) / 0.5))
    assert one_stage * (1 if one_step else H) == pytest.approx(epsilon)


@pytest.mark.parametrize("one_step", [True, False])
def test_bits_are_set_as_often_as_they_should(one_step):
    """The sampler itself: a true bit half of the time, any other with probability q. p > 1e-6, seeds fixed."""
    H, S, users, epsilon = 3, 2, 30_000, 2.0
    statistic = UnaryReports(TabularCounts(H, S, 1), epsilon, one_step=one_step)
    sums = np.zeros(statistic.cells, dtype=np.int64)
    statistic.collect(user(H, state=1, copies=users), sums, NoiseSource(4))
    table = sums.reshape(H, -1)
    q = 1 / (math.exp(epsilon if one_step else epsilon / H) + 1)
    true = (1 * S + 1) * 2 + 1  # (s, a, s', bit) = (1, 0, 1, 1)
    for h in range(H):
        reports = int(statistic.arrays()["reports"][h])
        for outcome in range(table.shape[1]):
            p = 0.5 if outcome == true else q
            assert stats.binomtest(int(table[h, outcome]), reports, p).pvalue > 1e-6
            assert stats.binomtest(int(table[h, outcome]), reports, min(1.3 * p, 0.99)).pvalue < 1e-6
    if one_step:
        assert stats.chisquare(statistic.arrays()["reports"]).pvalue > 1e-6
    else:
        assert (statistic.arrays()["reports"] == users).all()


@pytest.mark.parametrize(
    ("name", "per_outcome"),
    [("one-step", 74), ("unary", 1600), ("laplace", 12_800)],
)
def test_variance_a_cell_and_user_is_as_specified(name, per_outcome):
    """At H = 20 and epsilon = 1. An entry of m is one outcome of Laplace reports, and two of unary ones."""
    statistic, _, _ = randomizer(name, TabularCounts(20, 6, 2), 1.0, 0.0, paper=False)
    law = statistic.errors(lambda _grid: NoError(), 1)["m"]
    variance = law.std**2 if name == "laplace" else law.variance / 2
    assert variance == pytest.approx(per_outcome, rel=0.01)


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_sums_are_unbiased_and_as_noisy_as_stated(name):
    """Over many repetitions: means within five standard errors, standard deviations within a tenth."""
    model = gym.make("PrivateRL/RiverSwim-v0", horizon=4, n_states=3, reward_law="bernoulli").unwrapped.model
    users, runs = 40, 400
    tapes = model.draw_users(np.random.default_rng(1), users)
    trajectories = model.rollout(np.array([1, 1, 1]), tapes)
    exact = TabularCounts(4, 3, 2)
    truth = np.zeros(exact.cells, dtype=np.int64)
    exact.collect(trajectories, truth)
    n, m, r = exact.counts(truth * exact.grid)
    source = NoiseSource(9)
    found = {"n": [], "m": [], "r": []}
    for _ in range(runs):
        statistic, _, _ = randomizer(name, TabularCounts(4, 3, 2), 1.0, 1e-5, paper=False)
        sums = np.zeros(statistic.cells, dtype=np.int64)
        statistic.collect(trajectories, sums, source)
        for family, values in statistic.sums(sums * statistic.grid, users).items():
            found[family].append(values)
    laws = statistic.errors(lambda _grid: NoError(), users)
    for family, true in zip("nmr", (n, m, r), strict=True):
        values = np.array(found[family])
        error = values.std(axis=0) / np.sqrt(runs)
        assert (np.abs(values.mean(axis=0) - true) <= 5 * error).all()
        quiet = true == 0  # where no user is: noise alone
        noise = np.sqrt(getattr(laws[family], "variance", laws[family].std ** 2))
        assert values.std(axis=0)[quiet].mean() == pytest.approx(noise, rel=0.1)
        assert (values.std(axis=0) <= 1.2 * laws[family].std).all()


def test_rewards_that_are_not_bits_are_rounded_without_bias():
    statistic = UnaryReports(TabularCounts(1, 1, 1), 8.0, one_step=True)
    sums = np.zeros(statistic.cells, dtype=np.int64)
    users = 20_000
    statistic.collect(user(1, reward=0.3, copies=users), sums, NoiseSource(2))
    _, _, r = statistic.counts(sums.astype(float), users)
    assert r[0, 0, 0] / users == pytest.approx(0.3, abs=5 * 2 / np.sqrt(users))


def test_one_gaussian_report_is_rounded_to_the_nearest():
    """The law of one entry near zero: cutting off digits instead would make zero twice as likely as one."""
    statistic = AdditiveReports(TabularCounts(1, 2, 1), "gaussian", scale=3.0)
    source, counts = NoiseSource(1), []
    for _ in range(10_000):
        sums = np.zeros(statistic.cells, dtype=np.int64)
        statistic.absent(1, sums, source)
        counts.extend(sums[:4].tolist())
    cells = np.arange(-8, 9)
    observed = [(np.clip(counts, -8, 8) == k).sum() for k in cells]
    edges = np.concatenate([[-np.inf], cells[:-1] + 0.5, [np.inf]])
    expected = np.diff(stats.norm(scale=3.0).cdf(edges)) * len(counts)
    assert stats.chisquare(observed, expected).pvalue > 1e-6
    cut = np.fix(3.0 * np.random.default_rng(0).standard_normal(len(counts)))
    assert stats.chisquare([(np.clip(cut, -8, 8) == k).sum() for k in cells], expected).pvalue < 1e-6


def test_paper_constants_cost_what_they_cost():
    _, epsilon, delta = randomizer("laplace", TabularCounts(20, 6, 2, separate_visits=True), 1.0, 0.0, paper=True)
    assert epsilon == pytest.approx(2.0)
    assert delta == 0.0
    statistic, epsilon, _ = randomizer("laplace", TabularCounts(20, 6, 2, separate_visits=True), 1.0, 0.0, paper=True)
    assert statistic.scale == 3 * 20 / 1.0


@pytest.mark.parametrize(
    ("name", "delta", "paper", "sentence"),
    [
        ("two-step", 0.0, False, "no randomizer 'two-step': choose one of one-step, unary, laplace, gaussian"),
        ("gaussian", 0.0, False, "Gaussian noise needs delta above 0"),
        ("unary", 0.0, True, "calibration='paper' is for randomizer='laplace'"),
    ],
)
def test_wrong_names_get_a_sentence(name, delta, paper, sentence):
    with pytest.raises(ValueError, match=sentence):
        randomizer(name, TabularCounts(2, 2, 2), 1.0, delta, paper=paper)

"""Local reports: their privacy exactly, their laws by sampling, their sums without bias."""

import functools
import itertools
import math

import gymnasium as gym
import numpy as np
import pytest
from scipy import stats

from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy import NoiseSource
from private_rl_gym.privacy.errors import NoError
from private_rl_gym.privacy.randomizers import RANDOMIZERS, AdditiveReports, SubsetReports, Subsets, randomizer
from private_rl_gym.privacy.statistics import TabularCounts


def user(H, state=0, reward=1.0, copies=1):
    states = np.full((copies, H + 1), state, dtype=np.int32)
    return Trajectories(states, np.zeros((copies, H), dtype=np.int32), np.full((copies, H), reward))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("one_step", [True, False])
def test_another_outcome_costs_exactly_epsilon(epsilon, one_step):
    """All sets are enumerated: their ratio under two outcomes, exactly, and how far they are in total variation."""
    H = 3
    statistic = SubsetReports(TabularCounts(H, 1, 2), epsilon, one_step=one_step)
    subsets, law = statistic.subsets, []
    for true in (0, 1, subsets.outcomes - 1):  # the last: she left early
        chances = {}
        for chosen in itertools.combinations(range(subsets.outcomes), subsets.size):
            inside = true in chosen
            ways = math.comb(subsets.outcomes - 1, subsets.size - inside)
            chances[chosen] = (subsets.p if inside else 1 - subsets.p) / ways
        assert sum(chances.values()) == pytest.approx(1.0)
        law.append(np.array(list(chances.values())))
    for one, other in itertools.permutations(law, 2):
        assert math.log((one / other).max()) * (1 if one_step else H) == pytest.approx(epsilon)
    for reports in (1, 2):
        joint = [functools.reduce(np.multiply.outer, [one] * reports).ravel() for one in law[:2]]
        looks = subsets.looks(reports)
        assert np.abs(looks.first - looks.second).sum() == pytest.approx(np.abs(joint[0] - joint[1]).sum())
        least = functools.reduce(np.multiply.outer, [np.minimum.reduce(law)] * reports)
        assert looks.blanket.sum() <= least.sum() * (1 + 1e-12)  # what all users' reports have in common


@pytest.mark.parametrize("outcomes", [3, 17, 145, 10_001])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0, 6.0, 12.0])
def test_sets_are_never_noisier_than_unary_bits_or_randomized_response(outcomes, epsilon):
    e, found = math.exp(epsilon), Subsets.best(outcomes, epsilon)
    assert found.variance <= min(4 * e / (e - 1) ** 2, (outcomes - 2 + e) / (e - 1) ** 2) * (1 + 1e-9)
    unary = 4 * e / (e - 1) ** 2, ((e + 1) / (e - 1)) ** 2  # of a bit that is not set, and of one that is
    assert outcomes * found.variance + found.own_variance <= (outcomes * unary[0] + unary[1]) * (1 + 1e-9)
    if epsilon == 12.0 and outcomes <= 145:
        assert found.size == 1
        assert found.own_variance < 1e-2  # where unary bits keep a variance of one for ever


@pytest.mark.parametrize("one_step", [True, False])
def test_outcomes_are_in_sets_as_often_as_they_should(one_step):
    """The sampler itself: the true one with probability p, any other with probability q. p > 1e-6, seeds fixed."""
    H, S, users, epsilon = 3, 2, 30_000, 2.0
    statistic = SubsetReports(TabularCounts(H, S, 1), epsilon, one_step=one_step)
    sums = np.zeros(statistic.cells + statistic.tallies, dtype=np.int64)
    statistic.collect(user(H, state=1, copies=users), sums, NoiseSource(4))
    table, reported = sums[: statistic.cells].reshape(H, -1), sums[statistic.cells :]
    subsets = statistic.subsets
    assert subsets.outcomes == 9
    true = (1 * S + 1) * 2 + 1  # (s, a, s', bit) = (1, 0, 1, 1)
    for h in range(H):
        reports = int(reported[h])
        for outcome in range(table.shape[1]):
            p = subsets.p if outcome == true else subsets.q
            assert stats.binomtest(int(table[h, outcome]), reports, p).pvalue > 1e-6
            assert stats.binomtest(int(table[h, outcome]), reports, min(1.3 * p, 0.99)).pvalue < 1e-6
    nobody = np.zeros(statistic.cells + statistic.tallies, dtype=np.int64)
    SubsetReports(TabularCounts(H, S, 1), epsilon, one_step=False).absent(3_000, nobody, NoiseSource(5))
    q = Subsets.best(9, epsilon / H).q
    assert min(stats.binomtest(int(count), 3_000, q).pvalue for count in nobody[: statistic.cells]) > 1e-6
    if one_step:
        assert stats.chisquare(reported).pvalue > 1e-6
    else:
        assert (reported == users).all()


@pytest.mark.parametrize(
    ("name", "per_outcome"),
    [("one-step", 72.4), ("unary", 1587), ("laplace", 5_000)],
)
def test_variance_a_cell_and_user_is_as_specified(name, per_outcome):
    """At H = 20 and epsilon = 1. An entry of m is one outcome of Laplace reports, and two of sets."""
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
        sums = np.zeros(statistic.cells + statistic.tallies, dtype=np.int64)
        statistic.collect(trajectories, sums, source)
        vector = sums * np.append(statistic.grid, np.ones(statistic.tallies))
        for family, values in statistic.sums(vector, users).items():
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
    statistic = SubsetReports(TabularCounts(1, 1, 1), 8.0, one_step=True)
    sums = np.zeros(statistic.cells + statistic.tallies, dtype=np.int64)
    users = 20_000
    statistic.collect(user(1, reward=0.3, copies=users), sums, NoiseSource(2))
    _, _, r = statistic.counts(sums.astype(float), users)
    assert r[0, 0, 0] / users == pytest.approx(0.3, abs=5 * 2 / np.sqrt(users))


def test_one_gaussian_report_is_rounded_to_the_nearest():
    """The law of one entry near zero: cutting off digits instead would make zero twice as likely as one."""
    statistic = AdditiveReports(TabularCounts(1, 2, 1), "gaussian", scale=3.0)
    source, counts = NoiseSource(1), []
    for _ in range(10_000):
        sums = np.zeros(statistic.cells + statistic.tallies, dtype=np.int64)
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
    ("name", "delta", "paper", "word"),
    [
        ("two-step", 0.0, False, "'two-step'.*one-step, unary, laplace, gaussian"),
        ("gaussian", 0.0, False, "delta is 0: Gaussian"),
        ("unary", 0.0, True, "calibration='paper'.*'laplace'.*'unary'"),
    ],
)
def test_wrong_names_get_a_sentence(name, delta, paper, word):
    with pytest.raises(ValueError, match=word):
        randomizer(name, TabularCounts(2, 2, 2), 1.0, delta, paper=paper)

"""What an audit's numbers mean: bounds that fail as rarely as they say, scores that are what they say."""

import math

import numpy as np
import pytest
from scipy import stats

from private_rl_gym.envs import TabularModel
from private_rl_gym.planning import LinearFeatures, Policy, rollout
from private_rl_gym.privacy.accounting.conversion import gaussian_epsilon, gaussian_mu
from private_rl_gym.privacy.audit import (
    BinomialRatio,
    LastDigits,
    LinearDiscriminant,
    LinearRatio,
    NaiveBayes,
    Stream,
    clopper_pearson,
    disjoint_paths,
    epsilon_below,
    judge,
    mu_below,
    one_run_epsilon,
    one_run_p_value,
    opposite_rewards,
    random_paths,
    searched_paths,
)
from private_rl_gym.privacy.audit.bounds import epsilon_of_mu
from private_rl_gym.privacy.audit.learned import last_digit
from private_rl_gym.privacy.audit.neighbours import neighbours
from private_rl_gym.privacy.mechanisms import MECHANISMS
from private_rl_gym.privacy.noise import AdditiveNoise
from private_rl_gym.privacy.statistics import LinearMoments, Reports, TabularCounts
from tests.privacy.statistics import sums

ROOMS = TabularModel([[[1, 0]] * 2, [[0, 1]] * 2], [[0.5, 0.5]] * 2, [0.5, 0.5], 2)


class Known:
    """The number itself."""

    name = "known"
    learns = False

    def fit(self, zero, one):
        pass

    def __call__(self, runs):
        return runs[:, 0]


# Bounds --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (3, 10), (10, 10), (250, 1000), (1, 100_000)])
def test_clopper_pearson_is_scipys(hits, trials):
    interval = stats.binomtest(hits, trials).proportion_ci(confidence_level=0.9)
    low, high = clopper_pearson(hits, trials, 0.05)
    assert (float(low), float(high)) == pytest.approx((interval.low, interval.high), rel=1e-9)


def test_a_bound_on_epsilon_is_wrong_as_rarely_as_it_says():
    """Randomized response, whose best event is known: in 4,000 audits at 90 %, at most 400 plus 5 deviations."""
    rng, epsilon, trials = np.random.default_rng(1), 1.0, 500
    right = 1.0 / (1.0 + math.exp(-epsilon))
    hits, alarms = rng.binomial(trials, right, 4000), rng.binomial(trials, 1.0 - right, 4000)
    wrong = int((epsilon_below(hits, alarms, (trials, trials), 0.0, 0.1) > epsilon).sum())
    assert 0 < wrong <= 400 + 5 * math.sqrt(4000 * 0.1 * 0.9)


def test_a_bound_on_mu_is_wrong_as_rarely_as_it_says():
    rng, mu, trials = np.random.default_rng(2), 0.7, 500
    hits = rng.binomial(trials, stats.norm.sf(0.5 - mu), 4000)
    alarms = rng.binomial(trials, stats.norm.sf(0.5), 4000)
    found = mu_below(hits, alarms, (trials, trials), 0.1)
    assert 0 < (found > mu).sum() <= 400 + 5 * math.sqrt(4000 * 0.1 * 0.9)
    assert np.median(found) > 0.7 * mu


def test_delta_is_taken_off_before_the_ratio():
    sure = epsilon_below(10_000, 0, (10_000, 10_000), 0.0, 0.05)
    assert float(sure) == pytest.approx(math.log(10_000 / 3.69), abs=0.01)
    assert epsilon_below(500, 0, (10_000, 10_000), 0.1, 0.05) == 0.0
    assert epsilon_below(5000, 1000, (10_000, 10_000), 0.1, 0.05) < epsilon_below(
        5000, 1000, (10_000, 10_000), 0.0, 0.05
    )


def test_the_epsilon_of_a_gaussian_needs_a_delta():
    assert epsilon_of_mu(0.0, 0.0) == 0.0
    assert epsilon_of_mu(1.0, 0.0) == math.inf
    assert epsilon_of_mu(1.0, 1e-6) == gaussian_epsilon(1e-6, 1.0)


def test_one_run_gives_the_papers_example_and_reverses_it():
    assert one_run_p_value(75, 100, 100, math.log(3.0), 0.0) == pytest.approx(0.553, abs=1e-3)
    found = one_run_epsilon(75, 100, 100, 0.0, 0.05)
    assert one_run_p_value(75, 100, 100, found + 1e-3, 0.0) > 0.05 >= one_run_p_value(75, 100, 100, found, 0.0)
    assert one_run_epsilon(50, 100, 100, 0.0, 0.05) == 0.0
    with pytest.raises(ValueError, match="11 correct of 10 guesses"):
        one_run_p_value(11, 10, 100, 1.0, 0.0)


def test_delta_makes_one_run_say_less():
    found = [one_run_epsilon(240, 250, 1000, delta, 0.05) for delta in (0.0, 1e-6, 1e-5, 1e-4)]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1] > 0.0


def test_one_run_is_wrong_as_rarely_as_it_says():
    """Guesses of randomized responses, 2,000 times, at 5 %: at most 100 plus 5 deviations."""
    rng, epsilon = np.random.default_rng(3), 1.0
    correct = rng.binomial(200, 1.0 / (1.0 + math.exp(-epsilon)), 2000)
    wrong = sum(one_run_p_value(int(one), 200, 200, epsilon, 0.0) <= 0.05 for one in correct)
    assert 0 < wrong <= 100 + 5 * math.sqrt(2000 * 0.05 * 0.95)


# Judging -------------------------------------------------------------------------------------------------------------


def gaussians(mu, runs, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((runs, 1)), rng.standard_normal((runs, 1)) + mu


def test_a_gaussian_is_judged_close_to_what_it_is():
    mu = gaussian_mu(1.0, 0.01)
    found = judge(*gaussians(mu, 40_000, 4), [Known()], delta=0.01, gaussian=True)
    assert 0.75 <= found.epsilon <= 1.0
    assert 0.85 <= found.gaussian <= 1.0
    assert found.bound == max(found.epsilon, found.gaussian)
    assert found.curve[:, 0].min() == 0.0
    assert found.curve[:, 1].max() == 1.0
    assert (np.diff(found.curve[:, 0]) >= 0.0).all()


@pytest.mark.slow
def test_worlds_that_are_the_same_are_told_apart_as_rarely_as_the_bound_says():
    """200 audits of nothing, with scores that overfit: at 5 %, 10 alarms are expected at most, and 23 never seen."""
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng([5, seed])
        zero, one = rng.standard_normal((2, 200, 30))
        alarms += judge(zero, one, [LinearDiscriminant(), NaiveBayes()], delta=0.0).epsilon > 0.0
    assert alarms <= 23


def test_judging_on_the_runs_that_were_learned_from_would_raise_alarms():
    """Why there are two halves: the same scores, judged on what they learned from, see what is not there."""
    rng = np.random.default_rng(6)
    zero, one = rng.standard_normal((2, 50, 60))
    score = LinearDiscriminant()
    score.fit(zero, one)
    above = [(score(world) > 0.0).sum() for world in (zero, one)]
    assert epsilon_below(above[1], above[0], (50, 50), 0.0, 0.05) > 0.5


def test_both_directions_are_tried():
    """A rare event of world 0 alone is no less an event than one of world 1."""
    rng = np.random.default_rng(7)
    plain, rare = rng.random((4000, 1)), rng.random(4000) < 0.05
    for sign in (-1.0, 1.0):
        marked = rng.random((4000, 1))
        marked[rare] = 2.0 * sign
        worlds = (marked, plain) if sign < 0.0 else (plain, marked)
        assert judge(*worlds, [Known()], delta=0.0).epsilon > 2.0


def test_too_few_runs_are_refused():
    with pytest.raises(ValueError, match="40 at least"):
        judge(np.zeros((10, 1)), np.zeros((10, 1)), [Known()], delta=0.0)


# Scores --------------------------------------------------------------------------------------------------------------


def stream(releases, cells, moved_from=0):
    base = np.cumsum(np.ones((releases, cells)), axis=0)
    moved = np.zeros((releases, cells))
    moved[moved_from:, 0], moved[moved_from:, 1] = -1.0, 1.0
    return Stream(base, moved, (1,) * releases)


@pytest.mark.parametrize("name", ["binary-tree", "honaker-tree", "matrix-factorization", "batched"])
def test_the_ratio_of_gaussian_streams_is_that_of_their_densities(name):
    matrix, sigma, rng = MECHANISMS[name](5, 1, "gaussian").matrix(5), 1.7, np.random.default_rng(8)
    about = stream(5, 3)
    score = LinearRatio(about, [AdditiveNoise(matrix, sigma, "gaussian")])
    runs = about.base + np.einsum("td,kdc->ktc", matrix, rng.standard_normal((50, matrix.shape[1], 3))) * sigma
    law = stats.multivariate_normal(np.zeros(5), sigma**2 * matrix @ matrix.T)
    truth = [
        sum(law.logpdf((run - about.base - about.moved)[:, c]) - law.logpdf((run - about.base)[:, c]) for c in range(3))
        for run in runs
    ]
    found = score(runs.reshape(50, -1))
    np.testing.assert_allclose(found - found[0], np.array(truth) - truth[0], atol=1e-8)


@pytest.mark.parametrize("name", ["binary-tree", "batched"])
def test_the_ratio_of_laplace_streams_is_that_of_their_noises(name):
    matrix, scale, rng = MECHANISMS[name](5, 1, "laplace").matrix(5), 2.5, np.random.default_rng(9)
    about = stream(5, 3, moved_from=1)
    noise = rng.laplace(0.0, scale, (40, 5, 3))
    runs = about.base + np.einsum("td,kdc->ktc", matrix, noise)
    shift = np.linalg.solve(matrix, about.moved)
    law = stats.laplace(0.0, scale)
    truth = (law.logpdf(noise - shift) - law.logpdf(noise)).sum(axis=(1, 2))
    found = LinearRatio(about, [AdditiveNoise(matrix, scale, "laplace")])(runs.reshape(40, -1))
    np.testing.assert_allclose(found, truth, atol=1e-9)


def test_the_ratio_of_shuffled_batches_is_binomial():
    rng, bits = np.random.default_rng(10), [(40, 0.5), (60, 0.3)]
    about = Stream(np.array([[1.0, 0.0], [2.0, 1.0]]), np.array([[-1.0, 1.0], [-1.0, 1.0]]), (2, 2))
    noise = np.stack([rng.binomial(number, bias, (30, 2)) for number, bias in bits], axis=1)
    means = np.array([number * bias for number, bias in bits])
    runs = about.base + np.cumsum(noise - means[:, None], axis=1)
    truth = stats.binom.logpmf(noise[:, 0] - about.moved[0], 40, 0.5) - stats.binom.logpmf(noise[:, 0], 40, 0.5)
    found = BinomialRatio(about, bits)(runs.reshape(30, -1))
    np.testing.assert_allclose(found, truth.sum(axis=1), atol=1e-9)


def test_what_is_learned_finds_what_nobody_told():
    rng = np.random.default_rng(11)
    shared = rng.standard_normal((3000, 1))
    zero, one = np.hstack([shared, shared]), np.hstack([shared - 0.01, shared + 0.01])
    zero += rng.standard_normal(zero.shape) * 1e-4
    assert judge(zero, one, [LinearDiscriminant()], delta=0.0).epsilon > 5.0
    coins = rng.random((2, 4000, 6)) < np.array([0.5, 0.6])[:, None, None]
    assert judge(*coins.astype(float), [NaiveBayes()], delta=0.0).epsilon > 0.5


def test_the_last_digit_is_the_place_of_the_last_bit():
    assert last_digit(np.array([1.0, 3.0, 8.0, 0.75, -0.75, 0.0])).tolist() == [0.0, 0.0, 3.0, -2.0, -2.0, 99.0]
    rng = np.random.default_rng(12)
    noise = rng.laplace(0.0, 1.0, (2, 4000, 1))
    assert judge(noise[0], 1.0 + noise[1], [LastDigits()], delta=0.0).epsilon > 3.0
    whole = np.rint(noise * 2**20) / 2**20
    assert judge(whole[0], 1.0 + whole[1], [LastDigits()], delta=0.0).epsilon == 0.0


# What a release says as one vector -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statistic",
    [
        TabularCounts(3, 4, 2),
        TabularCounts(3, 4, 2, separate_visits=True),
        TabularCounts(2, 3, 2, separate_visits=True, bits=True),
        LinearMoments(LinearFeatures.tabular(3, 2), 4),
        LinearMoments(LinearFeatures.tabular(3, 2), 4, paper=True),
        Reports(3, 4, 2),
    ],
    ids=["counts", "three families", "bits", "moments", "printed moments", "reports"],
)
def test_a_vector_is_what_its_sums_say(statistic):
    vector = np.random.default_rng(13).standard_normal(statistic.cells)
    if statistic.name == "linear":  # nothing follows the last stage, and its blocks are of size zero
        again = statistic.vector(statistic.sums(vector))
        moved = again != 0.0
        assert moved.mean() > 0.7
        np.testing.assert_allclose(again[moved], vector[moved], rtol=1e-12)
    else:
        np.testing.assert_allclose(statistic.vector(statistic.sums(vector)), vector, rtol=1e-12, atol=1e-15)


# Neighbours ----------------------------------------------------------------------------------------------------------


def distance(one, other):
    """L1, of counts on the two rooms."""
    statistic, policy = TabularCounts(2, 2, 2), Policy([[0, 0], [0, 0]], 2)
    found = np.zeros((2, statistic.cells), dtype=np.int64)
    users = rollout(ROOMS.tables, policy, np.stack([one, other]))
    for user in (0, 1):
        sums.collect(statistic, users.part(user, user + 1), found[user])
    return float(np.abs((found[1] - found[0]) * statistic.grid).sum())


@pytest.mark.parametrize("pair", [disjoint_paths, searched_paths])
def test_the_worst_neighbours_are_as_far_apart_as_is_stated(pair):
    found = pair(ROOMS.tables, distance, np.random.default_rng(14))
    assert distance(*found) == TabularCounts(2, 2, 2).sensitivity().l1


def test_random_neighbours_are_no_farther_than_stated():
    found = random_paths(ROOMS.tables, distance, np.random.default_rng(15))
    assert 0.0 < distance(*found) <= TabularCounts(2, 2, 2).sensitivity().l1


def test_opposite_rewards_are_on_one_path_that_nobody_else_walks():
    found = neighbours("rewards", ROOMS.tables, distance, np.random.default_rng(16), users=3, place=1)
    assert len(opposite_rewards(ROOMS.tables, distance, np.random.default_rng(16))) == 2
    worlds = [rollout(ROOMS.tables, Policy([[0, 0], [1, 1]], 2), found.world(world)) for world in (0, 1)]
    np.testing.assert_array_equal(worlds[0].states, worlds[1].states)
    assert worlds[0].rewards[1].tolist() == [0.0, 0.0]
    assert worlds[1].rewards[1].tolist() == [1.0, 1.0]
    assert worlds[0].states[1, 0] != worlds[0].states[0, 0]


def test_neighbours_differ_in_one_user_and_do_not_show_her():
    found = neighbours("searched", ROOMS.tables, distance, np.random.default_rng(17), users=4, place=2)
    assert np.flatnonzero((found.world(0) != found.world(1)).any(axis=1)).tolist() == [2]
    assert repr(found) == "Worlds(4 users, different in number 2)"
    with pytest.raises(ValueError, match=r"'far'.*disjoint, random, searched, rewards"):
        neighbours("far", ROOMS.tables, distance, np.random.default_rng(), users=2)
    with pytest.raises(ValueError, match="place is 2"):
        neighbours("random", ROOMS.tables, distance, np.random.default_rng(), users=2, place=2)

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
from private_rl_gym.privacy.accounting.conversion import gaussian_epsilon
from private_rl_gym.privacy.randomizers import Subsets, randomized
from private_rl_gym.privacy.statistics import PooledCounts, TabularCounts
from tests.privacy.statistics import sums

STEPS = ("one-step", "unary")


def user(H, state=0, reward=1.0, copies=1):
    states = np.full((copies, H + 1), state, dtype=np.int32)
    return Trajectories(states, np.zeros((copies, H), dtype=np.int32), np.full((copies, H), reward))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("name", STEPS)
def test_another_outcome_costs_exactly_epsilon(epsilon, name):
    """All sets are enumerated: their ratio under two outcomes, exactly, and how far they are in total variation."""
    H = 3
    subsets, law = randomized(TabularCounts(H, 1, 2), epsilon, 0.0, name).subsets, []
    for true in (0, 1, subsets.outcomes - 1):  # the last: she left early
        chances = {}
        for chosen in itertools.combinations(range(subsets.outcomes), subsets.size):
            inside = true in chosen
            ways = math.comb(subsets.outcomes - 1, subsets.size - inside)
            chances[chosen] = (subsets.p if inside else 1 - subsets.p) / ways
        assert sum(chances.values()) == pytest.approx(1.0)
        law.append(np.array(list(chances.values())))
    for one, other in itertools.permutations(law, 2):
        assert math.log((one / other).max()) * (1 if name == "one-step" else H) == pytest.approx(epsilon)
    for reports in (1, 2):
        joint = [functools.reduce(np.multiply.outer, [one] * reports).ravel() for one in law[:2]]
        blanket = subsets.blanket(reports)
        assert np.abs(blanket.first - blanket.second).sum() == pytest.approx(np.abs(joint[0] - joint[1]).sum())
        least = functools.reduce(np.multiply.outer, [np.minimum.reduce(law)] * reports)
        assert blanket.common.sum() <= least.sum() * (1 + 1e-12)  # what all users' reports have in common


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


@pytest.mark.parametrize("name", STEPS)
def test_outcomes_are_in_sets_as_often_as_they_should(name):
    """The sampler itself: the true one with probability p, any other with probability q. p > 1e-6, seeds fixed."""
    H, S, users, epsilon = 3, 2, 30_000, 2.0
    randomizer = randomized(TabularCounts(H, S, 1), epsilon, 0.0, name)
    cells, found = randomizer.statistic.cells, np.zeros(sums.size(randomizer), dtype=np.int64)
    sums.collect(randomizer, user(H, state=1, copies=users), found, NoiseSource(4))
    table, reported = found[:cells].reshape(H, -1), found[cells:]
    subsets = randomizer.subsets
    assert subsets.outcomes == 9
    true = (1 * S + 1) * 2 + 1  # (s, a, s', bit) = (1, 0, 1, 1)
    for h in range(H):
        reports = int(reported[h])
        for outcome in range(table.shape[1]):
            p = subsets.p if outcome == true else subsets.q
            assert stats.binomtest(int(table[h, outcome]), reports, p).pvalue > 1e-6
            assert stats.binomtest(int(table[h, outcome]), reports, min(1.3 * p, 0.99)).pvalue < 1e-6
    nobody = np.zeros(sums.size(randomizer), dtype=np.int64)
    randomized(TabularCounts(H, S, 1), epsilon, 0.0, "unary").send(None, 3_000, None, NoiseSource(5), nobody)
    q = Subsets.best(9, epsilon / H).q
    assert min(stats.binomtest(int(count), 3_000, q).pvalue for count in nobody[:cells]) > 1e-6
    if name == "one-step":
        assert stats.chisquare(reported).pvalue > 1e-6
    else:
        assert (reported == users).all()


@pytest.mark.parametrize(
    ("name", "per_outcome"),
    [("one-step", 72.4), ("unary", 1587), ("laplace", 5_000)],
)
def test_variance_a_cell_and_user_is_as_specified(name, per_outcome):
    """At H = 20 and epsilon = 1. An entry of m is one outcome of Laplace reports, and two of sets."""
    law = sums.errors(randomized(TabularCounts(20, 6, 2), 1.0, 0.0, name), 1)["m"]
    variance = law.std**2 if name == "laplace" else law.unvisited_std**2 / 2
    assert variance == pytest.approx(per_outcome, rel=0.01)


@pytest.mark.parametrize("name", TabularCounts.randomizers)
def test_sums_are_unbiased_and_as_noisy_as_stated(name):
    """Over many repetitions: means within five standard errors, standard deviations within a tenth."""
    model = gym.make("PrivateRL/RiverSwim-v0", horizon=4, n_states=3, reward_law="bernoulli").unwrapped.model
    users, runs = 40, 400
    tapes = model.draw_users(np.random.default_rng(1), users)
    trajectories = model.rollout(np.array([1, 1, 1]), tapes)
    exact = TabularCounts(4, 3, 2)
    truth = np.zeros(exact.cells, dtype=np.int64)
    sums.collect(exact, trajectories, truth)
    n, m, r = exact.sums(truth * exact.grid).values()
    source = NoiseSource(9)
    found = {"n": [], "m": [], "r": []}
    for _ in range(runs):
        randomizer = randomized(TabularCounts(4, 3, 2), 1.0, 1e-5, name)
        sent = np.zeros(sums.size(randomizer), dtype=np.int64)
        sums.collect(randomizer, trajectories, sent, source)
        for family, values in sums.decoded(randomizer, sent).items():
            found[family].append(values)
    laws = sums.errors(randomizer, users)
    for family, true in zip("nmr", (n, m, r), strict=True):
        values = np.array(found[family])
        error = values.std(axis=0) / np.sqrt(runs)
        assert (np.abs(values.mean(axis=0) - true) <= 5 * error).all()
        quiet = true == 0  # where no user is: noise alone
        assert values.std(axis=0)[quiet].mean() == pytest.approx(laws[family].unvisited_std, rel=0.1)
        assert (values.std(axis=0) <= 1.2 * laws[family].std).all()


def test_rewards_that_are_not_bits_are_rounded_without_bias():
    randomizer = randomized(TabularCounts(1, 1, 1), 8.0, 0.0, "one-step")
    sent = np.zeros(sums.size(randomizer), dtype=np.int64)
    users = 20_000
    sums.collect(randomizer, user(1, reward=0.3, copies=users), sent, NoiseSource(2))
    r = sums.decoded(randomizer, sent)["r"]
    assert r[0, 0, 0] / users == pytest.approx(0.3, abs=5 * 2 / np.sqrt(users))


@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize("name", STEPS)
def test_rounding_of_rewards_is_in_the_stated_error(name, horizon):
    """Next to no noise of sets is left at this epsilon: over 300 runs, the spread is within a fifth."""
    randomizer, found = randomized(TabularCounts(horizon, 1, 1), 12.0 * horizon, 0.0, name), []
    for seed in range(300):
        sent = np.zeros(sums.size(randomizer), dtype=np.int64)
        sums.collect(randomizer, user(horizon, reward=0.5, copies=100), sent, NoiseSource(seed))
        found.append(sums.decoded(randomizer, sent)["r"][0, 0, 0])
    stages = horizon if name == "one-step" else 1  # a user says one of so many, and each counts so often
    assert np.std(found) == pytest.approx(10.0 * math.sqrt(stages / 2 - 1 / 4), rel=0.2)
    assert np.std(found) <= 1.1 * sums.errors(randomizer, 100)["r"].std


@pytest.mark.parametrize(
    ("exact", "epsilon", "delta", "name"),
    [
        (TabularCounts(20, 6, 2), 0.5, 0.0, "one-step"),
        (TabularCounts(20, 6, 2), 8.0, 1e-6, "gaussian"),
        (TabularCounts(1, 1, 1), 8.0, 0.0, "laplace"),
        (PooledCounts(6, 3, 2), 2.0, 0.0, "one-step"),
        (PooledCounts(6, 3, 2), 2.0, 1e-6, "one-step"),
        (PooledCounts(6, 3, 2), 0.5, 1e-6, "gaussian"),
    ],
)
def test_by_default_the_noise_of_users_is_the_least(exact, epsilon, delta, name):
    assert randomized(exact, epsilon, delta).name == name


def test_one_gaussian_report_is_rounded_to_the_nearest():
    """The law of one entry near zero: cutting off digits instead would make zero twice as likely as one."""
    exact, source, counts = TabularCounts(1, 2, 1), NoiseSource(1), []
    randomizer = randomized(exact, gaussian_epsilon(1e-6, exact.sensitivity().l2 / 3.0), 1e-6, "gaussian")
    assert randomizer.scale == pytest.approx(3.0)
    for _ in range(10_000):
        sent = np.zeros(sums.size(randomizer), dtype=np.int64)
        randomizer.send(None, 1, None, source, sent)
        counts.extend(sent[:4].tolist())
    cells = np.arange(-8, 9)
    observed = [(np.clip(counts, -8, 8) == k).sum() for k in cells]
    edges = np.concatenate([[-np.inf], cells[:-1] + 0.5, [np.inf]])
    expected = np.diff(stats.norm(scale=3.0).cdf(edges)) * len(counts)
    assert stats.chisquare(observed, expected).pvalue > 1e-6
    cut = np.fix(3.0 * np.random.default_rng(0).standard_normal(len(counts)))
    assert stats.chisquare([(np.clip(cut, -8, 8) == k).sum() for k in cells], expected).pvalue < 1e-6


def test_paper_constants_cost_what_they_cost():
    for name in ("laplace", None):  # the only one that has any
        randomizer = randomized(TabularCounts(20, 6, 2, separate_visits=True), 1.0, 0.0, name, printed=True)
        assert randomizer.spent == (pytest.approx(2.0), 0.0)
        assert randomizer.scale == 3 * 20 / 1.0


def test_so_many_sets_that_they_would_take_long_are_known_by_their_epsilon():
    """Laws of all sets of a user together are for a shuffler, and their size grows with the square of their number."""
    few, many = (randomized(TabularCounts(horizon, 1, 1), 1.0, 0.0, "unary") for horizon in (256, 257))
    assert few.blanket is not None
    assert many.blanket is None


@pytest.mark.parametrize(
    ("name", "delta", "printed", "word"),
    [
        ("two-step", 0.0, False, "'two-step'.*'one-step' or 'unary' or 'laplace' or 'gaussian'"),
        ("gaussian", 0.0, False, "delta is 0: Gaussian noise"),
        ("unary", 0.0, True, "calibration='paper'.*'laplace'.*'unary'"),
    ],
)
def test_wrong_names_get_a_sentence(name, delta, printed, word):
    with pytest.raises(ValueError, match=word):
        randomized(TabularCounts(2, 2, 2), 1.0, delta, name, printed=printed)

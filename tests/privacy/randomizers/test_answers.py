"""Randomized answers: their laws exactly, for every pair of values, and the samplers by their frequencies."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from private_rl_gym.privacy.randomizers.answers import FINE, RandomizedNumber, one_of, randomized_number

BUDGETS = [1e-6, 0.05, 0.5, 1.3, 2.0, 4.0, 8.0]


def loss(answer):
    """The largest log ratio of likelihoods, over all cells and all pairs of levels. Rounding to levels mixes laws."""
    laws = np.array([answer.probabilities(level) for level in range(answer.levels)])
    return math.log((laws.max(axis=0) / laws.min(axis=0)).max())


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_number_costs_its_budget_and_all_of_it(budget):
    answer = randomized_number(budget)
    for level in range(answer.levels):
        assert answer.probabilities(level).sum() == pytest.approx(1.0)
    assert loss(answer) == pytest.approx(budget, rel=1e-6)


@pytest.mark.parametrize("budget", BUDGETS)
def test_answers_are_unbiased_and_bounded(budget):
    answer = randomized_number(budget)
    means = np.array([answer.probabilities(level) @ answer.values for level in range(answer.levels)])
    np.testing.assert_allclose(means, np.linspace(0.0, 1.0, answer.levels), atol=1e-9 / budget)
    assert answer.values[0] <= 0.0 < 1.0 <= answer.values[-1]
    assert -answer.values[0] <= 2.0 / budget


def test_many_levels_are_for_large_budgets():
    assert randomized_number(1.0).levels == 2
    assert randomized_number(2.0).levels == FINE
    assert randomized_number(2.0).variance < RandomizedNumber(2.0, 2, 1).variance / 1.3
    assert randomized_number(1e3) == randomized_number(30.0)


class Steep(RandomizedNumber):
    """A planted mistake: likely cells are likelier than the budget allows."""

    def probabilities(self, level):
        law = np.full(self.cells, 1.0)
        law[level : level + self.window] = math.exp(2.0 * self.budget)
        return law / law.sum()


def test_the_loss_of_a_steep_law_is_noticed():
    assert loss(Steep(1.0, 5, 2)) > 1.5


def frequencies(answer, number, draws=40_000):
    uniforms = np.random.default_rng(0).random((3, draws))
    told = answer.tell(np.full(draws, number), uniforms)
    return np.array([(told == value).sum() for value in answer.values])


@pytest.mark.parametrize("budget", [0.7, 2.0, 5.0])
@pytest.mark.parametrize("number", [0.0, 0.3, 1.0])
def test_the_sampler_has_that_law(budget, number):
    """p > 1e-6 in each of nine cases; budgets that are 1.3 times as large are noticed."""
    answer = randomized_number(budget)
    seen, place = frequencies(answer, number), number * (answer.levels - 1)
    share = place - math.floor(place)
    for tried, fits in ((answer, True), (dataclasses.replace(answer, budget=1.3 * budget), False)):
        law = (1.0 - share) * tried.probabilities(math.floor(place)) + share * tried.probabilities(math.ceil(place))
        assert (stats.chisquare(seen, law * seen.sum()).pvalue > 1e-6) == fits


@pytest.mark.parametrize("budget", [0.0, 0.7, 3.0])
def test_one_of_several_is_told_by_randomized_response(budget):
    """p > 1e-6, for each of three sizes."""
    uniforms = np.random.default_rng(1).random((2, 30_000))
    for size, true in ((2, 0), (5, 3), (7, 6)):
        told = one_of(np.full(30_000, true), np.full(30_000, size), budget, uniforms)
        law = np.ones(size)
        law[true] = math.exp(budget)
        counts = np.bincount(told, minlength=size)
        assert stats.chisquare(counts, law / law.sum() * 30_000).pvalue > 1e-6
    assert one_of(np.zeros(3, dtype=np.int64), np.ones(3, dtype=np.int64), 0.0, uniforms[:, :3]).tolist() == [0, 0, 0]

"""Closed forms agree with dp-accounting, and with themselves."""

import math

import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given
from hypothesis import strategies as st

from private_rl_gym.privacy import gaussian_delta, gaussian_epsilon, gaussian_mu

epsilons = st.floats(0.05, 10.0)
deltas = st.floats(1e-12, 0.1)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_sigma_agrees_with_dp_accounting(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    theirs = pld.from_gaussian_mechanism(standard_deviation=1.0 / mu, value_discretization_interval=1e-4)
    assert theirs.get_delta_for_epsilon(epsilon) == pytest.approx(delta, rel=2e-3)
    assert theirs.get_epsilon_for_delta(delta) == pytest.approx(epsilon, rel=2e-3)


def test_composed_gaussians_agree_with_dp_accounting():
    accountant = PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(dp_event.GaussianDpEvent(noise_multiplier=10.0), count=16)
    assert gaussian_epsilon(1e-6, math.sqrt(16) / 10.0) == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-3)


def test_the_table_of_the_specification():
    assert 1.0 / gaussian_mu(1.0, 1e-6) == pytest.approx(4.2247, abs=1e-4)


@given(epsilons, deltas)
def test_there_and_back(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_delta(epsilon, mu) <= delta
    assert gaussian_delta(epsilon, mu) == pytest.approx(delta, rel=1e-6)
    assert gaussian_epsilon(delta, mu) == pytest.approx(epsilon, rel=1e-6)
    assert gaussian_delta(gaussian_epsilon(delta, mu), mu) <= delta


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1e-9, 1e-12), (1e6, 1e-6), (1e15, 1e-20), (1e300, 0.5), (30.0, 1 - 1e-9)]
)
def test_far_away_budgets_are_converted_too(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    assert 0.0 < mu < math.inf
    assert gaussian_delta(epsilon, mu) <= delta


@given(epsilons, deltas)
def test_more_budget_means_less_noise(epsilon, delta):
    assert gaussian_mu(1.1 * epsilon, delta) > gaussian_mu(epsilon, delta)
    assert gaussian_mu(epsilon, 1.1 * delta) > gaussian_mu(epsilon, delta)


@pytest.mark.parametrize(
    ("epsilon", "delta", "word"),
    [
        (0.0, 1e-6, r"epsilon is 0.0.*OpenBillboard"),
        (-1.0, 1e-6, "epsilon is -1.0"),
        (1e-12, 1e-12, "epsilon is 1e-12: below 1e-09"),
        (float("nan"), 1e-6, "epsilon is nan"),
        (float("inf"), 1e-6, "epsilon is inf"),
        (1.0, -0.1, r"delta is -0.1.*\[0, 1\)"),
        (1.0, 1.0, "delta is 1.0"),
        (1.0, float("nan"), "delta is nan"),
        (1.0, 0.0, "delta is 0: Gaussian"),
    ],
)
def test_a_budget_that_cannot_be_kept_gets_a_sentence(epsilon, delta, word):
    with pytest.raises(ValueError, match=word):
        gaussian_mu(epsilon, delta)

"""Composition: closed forms, privacy-loss distributions, and refusals."""

import math

import pytest

from private_rl_gym.privacy.composition import ApproximateDP, Gaussian, Laplace, PureDP, compose, disjoint
from private_rl_gym.privacy.conversion import gaussian_epsilon


def test_pure_budgets_add_up():
    assert compose([PureDP(0.5), Laplace(1.0), PureDP(0.25)], delta=0.0) == (1.75, 0.0)
    assert compose([], delta=0.0) == (0.0, 0.0)


def test_gaussians_compose_by_their_squares():
    epsilon, delta = compose([Gaussian(0.3), Gaussian(0.4)], delta=1e-6)
    assert (epsilon, delta) == (pytest.approx(gaussian_epsilon(1e-6, 0.5)), 1e-6)


def test_approximate_budgets_add_up():
    epsilon, delta = compose([ApproximateDP(0.5, 1e-7), PureDP(1.0), ApproximateDP(0.5, 2e-7)], delta=1e-6)
    assert epsilon == pytest.approx(2.0)
    assert delta == pytest.approx(3e-7)
    with pytest.raises(ValueError, match="spend delta = 3e-07 already"):
        compose([ApproximateDP(0.5, 3e-7)], delta=1e-7)


def test_mixed_noise_goes_by_privacy_loss():
    """Never more than adding up the parts, and exact where there is a closed form."""
    mixed, _ = compose([Gaussian(0.2), Laplace(0.5)], delta=1e-6)
    assert mixed < gaussian_epsilon(1e-6, 0.2) + 0.5
    assert mixed > gaussian_epsilon(1e-6, 0.2)
    many, _ = compose([Laplace(0.1)] * 100, delta=1e-6)
    assert many < 0.1 * 100  # with delta to spend, a hundred Laplace noises cost less than their sum
    assert many > 3.0
    assert compose([Laplace(0.5, units=50), Gaussian(0.1)], 1e-6)[0] <= compose([Laplace(0.5), Gaussian(0.1)], 1e-6)[0]
    assert compose([Laplace(0.0), Gaussian(0.0), PureDP(0.0)], 1e-6)[0] == 0.0
    almost, _ = compose([Gaussian(0.3), Gaussian(0.4), Laplace(1e-9)], delta=1e-6)
    assert almost == pytest.approx(gaussian_epsilon(1e-6, 0.5), rel=1e-2)
    assert math.isfinite(compose([ApproximateDP(0.1, 1e-8), Gaussian(0.1)], delta=1e-6)[0])


def test_delta_counts_where_epsilon_is_zero():
    assert compose([Laplace(0.1), ApproximateDP(0.0, 0.5)], 1e-6)[0] == math.inf
    assert compose(iter([PureDP(0.5), PureDP(0.5)]), 0.0) == (1.0, 0.0)


@pytest.mark.parametrize("event", [PureDP(-1.0), ApproximateDP(1.0, -0.1), ApproximateDP(1.0, 1.0), Gaussian(math.nan)])
def test_what_is_no_budget_is_refused(event):
    with pytest.raises(ValueError, match="is no budget"):
        compose([event], 1e-6)


def test_users_of_different_batches_pay_for_the_worst():
    assert disjoint([(1.0, 0.0), (0.5, 1e-6)]) == (1.0, 1e-6)

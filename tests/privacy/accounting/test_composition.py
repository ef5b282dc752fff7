"""Composition: closed forms, privacy-loss distributions, and refusals."""

import math

import pytest

from private_rl_gym.privacy.accounting.composition import ApproximateDP, GaussianEvent, LaplaceEvent, PureDP, compose
from private_rl_gym.privacy.accounting.conversion import gaussian_epsilon, laplace_scale, pure_delta


def test_pure_budgets_add_up():
    assert compose([PureDP(0.5), LaplaceEvent(1.0), PureDP(0.25)], delta=0.0) == (1.75, 0.0)
    assert compose([], delta=0.0) == (0.0, 0.0)


def test_the_better_of_adding_up_and_composing_is_taken():
    assert compose([PureDP(0.1)] * 100, delta=1e-6) == (pytest.approx(4.77, abs=0.01), 1e-6)
    assert compose([PureDP(0.1)] * 100, delta=0.0) == (pytest.approx(10.0), 0.0)
    many, delta = compose([ApproximateDP(0.1, 1e-9)] * 100, delta=1e-6)
    assert (many, delta) == (pytest.approx(4.8, abs=0.05), 1e-6)
    few, _ = compose([PureDP(0.5), PureDP(1.0)], delta=1e-6)
    assert few <= 1.5


@pytest.mark.parametrize("budgets", [[(100, 0.1)], [(30, 0.2), (60, 0.1)], [(1, 3.0)], [(7, 0.5), (3, 0.3)]])
def test_pure_budgets_compose_as_randomized_response_does(budgets):
    """Against privacy-loss distributions, an accountant of somebody else's, which rounds upwards too."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    total = None
    for count, epsilon in budgets:
        one = pld.from_privacy_parameters(
            pld.common.DifferentialPrivacyParameters(epsilon, 0.0), value_discretization_interval=1e-3
        ).self_compose(count)
        total = one if total is None else total.compose(one)
    lattice = all(round(epsilon / min(e for _, e in budgets), 9).is_integer() for _, epsilon in budgets)
    for epsilon in (0.5, 2.0, 4.0):
        theirs, ours = total.get_delta_for_epsilon(epsilon), pure_delta(epsilon, budgets)
        assert ours >= 0.97 * theirs - 1e-12
        if lattice:
            assert ours <= theirs * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize("times", [1, 4, 16])
def test_laplace_noise_with_a_delta_needs_less(times):
    parts, l1 = ((40, 1.0), (20, 0.5)), 50.0
    pure, epsilon, spent = laplace_scale(parts, l1, times, 1.0, 0.0, 1.0)
    assert (pure, epsilon, spent) == (l1 * times, 1.0, 0.0)
    scale, epsilon, spent = laplace_scale(parts, l1, times, 1.0, 1e-6, 1.0)
    assert (epsilon, spent) == (1.0, 1e-6)
    assert scale < pure / 1.8
    assert pure_delta(1.0, [(n * times, size / scale) for n, size in parts]) <= 1e-6
    assert pure_delta(1.0, [(n * times, 1.01 * size / scale) for n, size in parts]) > 1e-6


def test_gaussians_compose_by_their_squares():
    epsilon, delta = compose([GaussianEvent(0.3), GaussianEvent(0.4)], delta=1e-6)
    assert (epsilon, delta) == (pytest.approx(gaussian_epsilon(1e-6, 0.5)), 1e-6)


def test_approximate_budgets_add_up():
    epsilon, delta = compose([ApproximateDP(0.5, 1e-7), PureDP(1.0), ApproximateDP(0.5, 2e-7)], delta=1e-7 + 2e-7)
    assert epsilon == pytest.approx(2.0)
    assert delta == pytest.approx(3e-7)
    with pytest.raises(ValueError, match="spend delta = 3e-07 already"):
        compose([ApproximateDP(0.5, 3e-7)], delta=1e-7)


def test_mixed_noise_goes_by_privacy_loss():
    """Never more than adding up the parts, and exact where there is a closed form."""
    mixed, _ = compose([GaussianEvent(0.2), LaplaceEvent(0.5)], delta=1e-6)
    assert mixed < gaussian_epsilon(1e-6, 0.2) + 0.5
    assert mixed > gaussian_epsilon(1e-6, 0.2)
    many, _ = compose([LaplaceEvent(0.1)] * 100, delta=1e-6)
    assert many < 0.1 * 100  # with delta to spend, a hundred Laplace noises cost less than their sum
    assert many > 3.0
    assert (
        compose([LaplaceEvent(0.5, units=50), GaussianEvent(0.1)], 1e-6)[0]
        <= compose([LaplaceEvent(0.5), GaussianEvent(0.1)], 1e-6)[0]
    )
    assert compose([LaplaceEvent(0.0), GaussianEvent(0.0), PureDP(0.0)], 1e-6)[0] == 0.0
    almost, _ = compose([GaussianEvent(0.3), GaussianEvent(0.4), LaplaceEvent(1e-9)], delta=1e-6)
    assert almost == pytest.approx(gaussian_epsilon(1e-6, 0.5), rel=1e-2)
    assert math.isfinite(compose([ApproximateDP(0.1, 1e-8), GaussianEvent(0.1)], delta=1e-6)[0])


def test_delta_counts_where_epsilon_is_zero():
    assert compose([LaplaceEvent(0.1), ApproximateDP(0.0, 0.5)], 1e-6)[0] == math.inf
    assert compose(iter([PureDP(0.5), PureDP(0.5)]), 0.0) == (1.0, 0.0)


@pytest.mark.parametrize(
    "event", [PureDP(-1.0), ApproximateDP(1.0, -0.1), ApproximateDP(1.0, 1.0), GaussianEvent(math.nan)]
)
def test_what_is_no_budget_is_refused(event):
    with pytest.raises(ValueError, match="is no budget"):
        compose([event], 1e-6)

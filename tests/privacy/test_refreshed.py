"""The noise of the released experiment, and what it costs: a great deal more than it was run as."""

import math
import warnings

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.agents import DPUCBVI, SDPPE
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.refreshed import Refreshed, refreshed_cost
from private_rl_gym.wrappers import JDPBillboard
from tests.wrappers.stacks import H, ldp, river


def board(env=None, **options):
    options = {"epsilon": 0.5, "users": 40, "calibration": "released", "seed": 3, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return JDPBillboard(river() if env is None else env, **options)


def mixed():
    return gym.make("PrivateRL/RiverSwimMixture-v0", horizon=H)


def test_the_ledger_states_six_horizons_for_every_release():
    with pytest.warns(UserWarning, match=r"runs as epsilon = 0\.5 and costs 600"):
        made = JDPBillboard(river(), 0.5, users=40, calibration="released")
    assert made.statistic.l1 == 6 * H
    assert made.ledger.epsilon == pytest.approx(6 * H * 40 * 0.5)
    assert board(batch_size=10).ledger.epsilon == pytest.approx(6 * H * 4 * 0.5)
    assert "run as epsilon = 0.5" in str(made.ledger.to_dict())


def test_with_a_delta_the_ledger_states_the_smaller_cost():
    """Concentrated DP: rho = R 6 H epsilon^2 / 2; at a large epsilon the sum over releases is smaller."""
    cheap = board(delta=1e-6, epsilon=0.1).ledger
    rho = 40 * 6 * H * 0.1**2 / 2
    assert (cheap.epsilon, cheap.delta) == (pytest.approx(rho + 2 * math.sqrt(rho * math.log(1e6))), 1e-6)
    assert cheap.epsilon < board(epsilon=0.1).ledger.epsilon
    dear = board(delta=1e-6, epsilon=30.0).ledger
    assert (dear.epsilon, dear.delta) == (pytest.approx(40 * 6 * H * 30), 0.0)


def test_noise_is_fresh_and_as_wide_as_stated():
    """Releases without a user between them differ. A standard deviation of 20,000 cells is within 5 % by far."""
    source, units, noise = NoiseSource(1), np.full(20_000, 4.0), Refreshed(60, 20_000, "laplace")
    draws = [noise.advance(source, units).copy() for _ in range(60)]
    one = 4.0 * math.sqrt(2.0)
    for step in (1, 2, 3, 20, 60):
        assert noise.spread(step) == math.sqrt(math.floor(math.log(step)) + 1)
        assert draws[step - 1].std() == pytest.approx(one * noise.spread(step), rel=0.05)
    assert abs(np.corrcoef(draws[-1], draws[-2])[0, 1]) < 5 / math.sqrt(20_000)
    matrix = Refreshed(4, 1, "laplace").matrix(4)
    assert (matrix @ matrix.T == np.diag([1.0, 1.0, 2.0, 2.0])).all()


@pytest.mark.parametrize("draws", [1, 2, 4])
def test_a_sum_of_draws_costs_as_much_as_one(draws):
    """The ratio of neighbouring outcomes never exceeds e^(1/b), and comes near it far out: no more, and no less."""
    b = 2.0
    mass = np.exp(-np.abs(np.arange(-600, 601)) / b) * math.tanh(0.5 / b)
    law = mass
    for _ in range(draws - 1):
        law = np.convolve(law, mass)
    middle = len(law) // 2
    ratios = np.log(law[middle : middle + 200] / law[middle + 1 : middle + 201])
    assert ratios.max() <= 1 / b + 1e-9
    assert ratios[-1] >= 0.96 / b


def test_what_it_was_run_as_is_not_delivered():
    """Whoever averages releases sees a user: at 'epsilon = 1' she is found far more often than e times by chance.

    The mean of 400 releases, whose noise is known, is compared with a threshold midway; in 400 worlds each a DP
    mechanism with epsilon = 1 has a likelihood ratio of at most e. False alarms have a chance below 1e-9.
    """
    source, releases, worlds = NoiseSource(2), 400, 400
    noise, mean = Refreshed(releases, 2 * worlds, "laplace"), np.zeros(2 * worlds)
    weights = np.array([1 / noise.spread(step) ** 2 for step in range(1, releases + 1)])
    for weight in weights / weights.sum():
        mean += weight * noise.advance(source, np.ones(2 * worlds))
    found = (mean[:worlds] + 1.0 > 0.5).mean(), (mean[worlds:] > 0.5).mean()
    assert found[0] > 0.9
    assert found[1] < 0.1
    assert refreshed_cost(((1, 1.0),), 1.0, 1.0, releases, 0.0) == (400.0, 0.0)


def test_users_are_served_as_on_any_billboard():
    agent = DPUCBVI("TabularPolicy", board(), seed=0).learn(20 * H)
    assert agent.board.release.users == 20
    assert agent.guarantee.epsilon == pytest.approx(6 * H * 40 * 0.5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: board(counting="binary-tree"),
        lambda: board(noise="laplace"),
        lambda: board(statistic="linear", env=mixed()),
        lambda: SDPPE("TabularPolicy", board()),
    ],
)
def test_other_choices_are_refused(make):
    with pytest.raises(ValueError, match="calibration='released' is an experiment on counts"):
        make()


def test_no_report_of_a_user_is_inside():
    with pytest.raises(ValueError, match="put no billboard around reports"):
        board(ldp(river()))


def test_noise_is_not_always_zero_however_large_the_printed_epsilon():
    made = board(epsilon=60.0, users=50, batch_size=50)
    assert made._scale >= 1.0 / 30.0
    assert made.ledger.epsilon == pytest.approx(6 * H * 30.0)

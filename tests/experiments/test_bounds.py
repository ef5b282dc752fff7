"""Bounds as functions: the constants that the papers print, and how they grow."""

import math

import pytest

from private_rl_gym.experiments import bounds


def test_the_constants_of_lemma_10():
    value = bounds.pac_lower_bound(horizon=10, start_states=4, n_actions=4, epsilon=0.5, alpha=0.1, beta=0.1)
    assert value == pytest.approx(10 * 4 * 3 / (336 * 0.5 * 0.1) * math.log(7 / (4 + 2.4)))


def test_the_constants_of_lemma_8():
    assert bounds.best_arm_pulls(0.5, 0.2, 0.05) == pytest.approx(math.log(5) / (24 * 0.5 * 0.2))


@pytest.mark.parametrize(
    ("bound", "arguments"),
    [
        (bounds.private_regret_lower_bound, (20, 6, 2, 50_000)),
        (bounds.pucb_regret, (20, 6, 2, 50_000)),
        (bounds.dp_ucbvi_regret, (20, 6, 2, 50_000)),
        (bounds.sdp_pe_regret, (20, 6, 2, 50_000)),
    ],
)
def test_privacy_costs_less_as_epsilon_grows_and_never_nothing(bound, arguments):
    values = [bound(*arguments, epsilon) for epsilon in (0.1, 1.0, 10.0, 1e9)]
    assert values == sorted(values, reverse=True)
    assert values[-1] > 0
    more = (*arguments[:3], 4 * arguments[3])
    assert bound(*more, 1e9) == pytest.approx(2 * values[-1], rel=0.05)  # the square root of the users


def test_local_privacy_costs_a_factor_and_joint_privacy_a_term():
    joint, local = (
        [
            bounds.dp_ucbvi_regret(20, 6, 2, users, 1.0, local=kind) - bounds.dp_ucbvi_regret(20, 6, 2, users, 1e12)
            for users in (1_000, 4_000)
        ]
        for kind in (False, True)
    )
    assert joint[1] == pytest.approx(joint[0], rel=1e-6)
    assert local[1] == pytest.approx(2 * local[0], rel=1e-6)


def test_other_bounds():
    assert bounds.pucb_mistakes(5, 3, 2, 1.0, 0.1) == pytest.approx(6 * 625 / 0.01 + 18 * 625 / 0.1)
    assert bounds.linopt_regret(20, 3, 1000, 1.0, 1e-6) > bounds.linopt_regret(20, 3, 1000, 10.0, 1e-6) > 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: bounds.pac_lower_bound(10, 4, 4, 0.5, 0.1, 0.2),
        lambda: bounds.best_arm_pulls(0.5, 0.2, 0.25),
        lambda: bounds.pucb_regret(10, 4, 4, 100, 0.0),
    ],
)
def test_outside_its_premises_a_bound_says_so(call):
    with pytest.raises(ValueError, match="the bound holds"):
        call()

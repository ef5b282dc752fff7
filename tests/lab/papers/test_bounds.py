"""Bounds as functions: the constants that the papers print, and how they grow."""

import math
import re
from functools import partial

import pytest

from private_rl_gym.agents import RLSVI
from private_rl_gym.agents.tabular.rlsvi import printed_epsilon
from private_rl_gym.envs import TabularModel
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.lab.papers import bounds
from private_rl_gym.wrappers import OpenBillboard


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


UPPER = {row.learner + row.guarantee: row.regret for row in bounds.TABLES if row.guarantee} | {
    "theorem 4": bounds.pucb_regret
}
SIZES = {"H": 10, "S": 6, "A": 3, "K": 10_000}


@pytest.mark.parametrize("name", UPPER)
@pytest.mark.parametrize("axis", range(4))
def test_upper_bounds_grow_with_the_problem_and_with_users(name, axis):
    sizes = list(SIZES.values())
    larger = [size * (2 if axis == place else 1) for place, size in enumerate(sizes)]
    assert UPPER[name](*larger, 1.0) > UPPER[name](*sizes, 1.0)


@pytest.mark.parametrize("name", UPPER)
def test_a_private_bound_is_above_the_one_without_privacy_and_falls_towards_it(name):
    sizes, free = SIZES.values(), UPPER[name](*SIZES.values(), math.inf)
    values = [UPPER[name](*sizes, epsilon) for epsilon in (0.1, 1.0, 10.0)]
    assert values == sorted(values, reverse=True)
    assert values[-1] > free
    assert free >= bounds.regret_lower_bound(*sizes) * (1 - 1e-12)


@pytest.mark.parametrize("users", [100, 10_000, 10_000_000])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("sizes", [(2, 5, 2), (10, 6, 3), (20, 50, 10)])
def test_lower_bounds_are_below_the_upper_bounds_of_joint_privacy(sizes, users, epsilon):
    joint = [bound for name, bound in UPPER.items() if name.endswith("JDP")] + [bounds.pucb_regret]
    least = min(bound(*sizes, users, epsilon) for bound in joint)
    assert bounds.private_regret_lower_bound(*sizes, users, epsilon) < least
    alpha, beta = 0.1, 0.05
    most = bounds.pucb_mistakes(*sizes, epsilon, alpha)
    assert bounds.pucb_mistakes_lower_bound(*sizes, epsilon, alpha, beta) < most
    assert bounds.pac_lower_bound(*sizes, epsilon, alpha, beta) < most


def test_who_needs_less_trust_has_a_larger_bound():
    joint, local, shuffled = (
        UPPER[f"{name}"](*SIZES.values(), 1.0) for name in ("DP-UCBVIJDP", "DP-UCBVILDP", "SDP-PESDP")
    )
    assert joint < local
    assert joint < shuffled


def test_the_private_regret_lower_bound_counts_users():
    assert bounds.private_regret_lower_bound(20, 6, 2, 50_000, 1.0) == pytest.approx(
        math.sqrt(20 * 6 * 2 * 50_000) + 6 * 2 * 20 * math.log(50_000 / 6)
    )
    with pytest.raises(ValueError, match=r"the bound holds from S\^1.1 = 7.2 on"):
        bounds.private_regret_lower_bound(20, 6, 2, 7, 1.0)


@pytest.mark.parametrize("row", bounds.TABLES, ids=lambda row: f"{row.table}, {row.learner}, {row.guarantee}")
def test_a_row_of_a_table_is_its_formula(row):
    H, S, A, K, epsilon = 7, 5, 3, 11_000, 0.3
    text = row.formula.replace(r"\varepsilon", "epsilon")
    text = re.sub(r"\\sqrt{([^}]*)}", r"sqrt(\1)", text)
    text = re.sub(r"\^(\d)", r"**\1", text)
    text = re.sub(r"(?<=[SAHKT\d)])(?=[SAHKT]|sqrt)", "*", text.replace("sqrt", "~")).replace("~", "sqrt")
    text = re.sub(r"(?<=[A\d])(?=sqrt)", "*", text)
    names = {"S": S, "A": A, "H": H, "K": K, "T": H * K, "epsilon": epsilon, "sqrt": math.sqrt}
    assert row.regret(H, S, A, K, epsilon) == pytest.approx(eval(text, names))


def test_bounds_of_linear_learners():
    sizes = {"horizon": 10, "d": 4, "users": 10_000}
    free, private = (bounds.linopt_regret(**sizes, epsilon=e, delta=1e-6) for e in (math.inf, 1.0))
    assert free == pytest.approx(4 * math.sqrt(10_000 * 10**4))
    assert free < private < bounds.linopt_po_regret(**sizes, n_actions=3, epsilon=1.0, delta=1e-6)
    general = partial(bounds.linopt_regret_of_regularizers, **sizes, alpha=0.1)
    quiet, loud = (general(smallest=noise, largest=3 * noise, shift=noise**0.5) for noise in (1.0, 1e6))
    assert quiet < loud
    assert quiet < general(smallest=1.0, largest=3.0, shift=1.0, n_actions=3)


def test_bounds_of_rivals():
    sizes = {"horizon": 6, "d": 5, "users": 10_000}
    upper = [bounds.ldp_ucrl_vtr_regret(**sizes, epsilon=epsilon, delta=0.1) for epsilon in (0.1, 1.0, 10.0)]
    assert upper == sorted(upper, reverse=True)
    assert upper[0] == pytest.approx(10 * upper[2])
    lower = [bounds.ldp_ucrl_vtr_lower_bound(**sizes, epsilon=epsilon) for epsilon in (1.0, 10.0)]
    assert lower[0] == pytest.approx(30 * math.sqrt(60_000) / (math.e * (math.e - 1)))
    assert lower[1] < lower[0] < upper[1]
    gaps = (0.1, 0.2, 0.0, 0.2)
    assert bounds.dp_se_regret(gaps, 50_000, 1.0) == pytest.approx(math.log(50_000) * (10 + 5 + 5 + 4))
    assert bounds.dp_se_regret(gaps, 50, 1.0) == pytest.approx(10)
    with pytest.raises(ValueError, match=r"largest_gap is 0\.0"):
        bounds.dp_se_regret((0.0,), 50, 1.0)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 10.0])
def test_local_lower_bounds_are_below_the_local_upper_bounds(epsilon):
    sizes = SIZES.values()
    lower = bounds.ldp_regret_lower_bound(*sizes, epsilon)
    assert lower <= min(bound(*sizes, epsilon) for name, bound in UPPER.items() if name.endswith("LDP"))
    assert lower == pytest.approx(10 * math.sqrt(18 * 10_000) / min(math.exp(epsilon) - 1, 1.0))


def test_rlsvis_theorem_at_the_best_order_is_its_corollary():
    sizes = (20, 6, 2, 50_000, 1e-5)
    assert bounds.rlsvi_epsilon(*sizes) == pytest.approx(printed_epsilon(*sizes))
    assert bounds.rlsvi_epsilon(*sizes) < min(bounds.rlsvi_epsilon(*sizes, order=order) for order in (1.05, 2.0))
    with pytest.raises(ValueError, match="above 1"):
        bounds.rlsvi_epsilon(*sizes, order=1.0)


def test_the_first_of_rlsvis_plans_is_made_without_data_and_spends_nothing():
    """The figures of docs/findings.md: 20 users, 19 plans."""
    env = TabularEnv(TabularModel([[[0.5, 0.5]] * 2] * 2, [[0.2, 0.8], [0.6, 0.4]], horizon=1))
    agent = RLSVI("TabularPolicy", OpenBillboard(env, users=20, schedule=1), constants="theory", delta=1e-5)
    assert agent.learn(20).guarantee.epsilon == pytest.approx(16.75, abs=0.005)
    assert printed_epsilon(1, 2, 2, 19, 1e-5) == pytest.approx(77.57, abs=0.005)
    assert printed_epsilon(1, 2, 2, 20, 1e-5) == pytest.approx(80.56, abs=0.005)


def test_errors_of_counters():
    assert bounds.counter_error(50_000, 1.0, 0.1) == pytest.approx(4 * math.log(10) * math.log(50_000) ** 2.5)
    assert bounds.pucb_error(20, 6, 2, 50_000, 1.0, 0.1) > 20 * bounds.counter_error(50_000, 1.0, 0.1) / 4
    assert bounds.dp_ucbvi_error(20, 400, 2.0, local=True) == 20 * bounds.dp_ucbvi_error(20, 400, 2.0)

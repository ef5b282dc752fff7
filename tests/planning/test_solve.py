"""The compiled solvers agree with their numpy twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_rl_gym.planning import (
    Policy,
    backward_induction,
    evaluate_policy,
    occupancy,
    optimistic_backward_induction,
)
from tests.planning import twins
from tests.strategies import models, policies, seeds

close = {"rtol": 0, "atol": 1e-12}


@given(models())
def test_backward_induction(model):
    plan = backward_induction(model.transitions, model.rewards, model.horizon)
    q, v = twins.backward_induction(model.transitions, model.rewards, model.horizon)
    np.testing.assert_allclose(plan.q, q, **close)
    np.testing.assert_allclose(plan.v, v, **close)
    np.testing.assert_array_equal(plan.actions, plan.q.argmax(axis=2))


@given(models(), seeds, st.booleans())
def test_optimistic_backward_induction(model, seed, with_previous):
    rng = np.random.default_rng(seed)
    H, S, A = model.horizon, model.n_states, model.n_actions
    bonus = rng.exponential(size=(H, S, A))
    ceiling = np.arange(H, 0, -1.0)[:, None, None]
    previous = H * rng.random((H, S, A)) if with_previous else None
    plan = optimistic_backward_induction(model.transitions, model.rewards, bonus, previous=previous)
    top = ceiling if previous is None else np.minimum(ceiling, previous)
    q, v = twins.backward_induction(model.transitions, model.rewards, H, bonus, top)
    np.testing.assert_allclose(plan.q, q, **close)
    np.testing.assert_allclose(plan.v, v, **close)


@given(models())
def test_a_bonus_of_zero_and_a_high_ceiling_change_nothing(model):
    bonus = np.zeros((model.horizon, model.n_states, model.n_actions))
    plain = backward_induction(model.transitions, model.rewards, model.horizon)
    optimistic = optimistic_backward_induction(model.transitions, model.rewards, bonus, ceiling=np.inf)
    np.testing.assert_array_equal(plain.q, optimistic.q)
    np.testing.assert_array_equal(plain.actions, optimistic.actions)


@given(st.data())
def test_evaluate_policy_and_occupancy(data):
    model = data.draw(models())
    policy = data.draw(policies(model))
    v = evaluate_policy(model.transitions, model.rewards, policy)
    np.testing.assert_allclose(
        v, twins.evaluate_policy(model.transitions, model.rewards, policy.probabilities), **close
    )
    visits = occupancy(model.transitions, model.initial, policy)
    np.testing.assert_allclose(visits, twins.occupancy(model.transitions, model.initial, policy.probabilities), **close)
    np.testing.assert_allclose(visits.sum(axis=(1, 2)), 1.0, **close)
    # Two roads to one number: values backwards, visits forwards.
    earned = (visits * twins.staged(model.rewards, model.horizon)).sum()
    assert model.value_of(policy) == pytest.approx(earned, abs=1e-10)


@given(st.data())
def test_no_policy_beats_the_optimum(data):
    model = data.draw(models())
    policy = data.draw(policies(model))
    assert (model.values_of(policy) <= model.optimum.v + 1e-12).all()
    assert model.value_of(model.optimal_policy()) == pytest.approx(model.optimal_value(), abs=1e-12)


def test_arrays_that_do_not_fit_get_a_sentence():
    """The compiled functions do not look where they step, so the door has to be narrow."""
    P, r = np.ones((1, 2, 2, 2)) / 2, np.zeros((1, 2, 2))
    policy = Policy.uniform(horizon=3, n_states=3, n_actions=2)
    with pytest.raises(ValueError, match=r"transitions have shape \(2, 2, 2, 2\)"):
        backward_induction(np.concatenate([P, P]), r, 3)
    with pytest.raises(ValueError, match=r"rewards have shape \(1, 1, 2\)"):
        backward_induction(P, r[:, :1], 3)
    with pytest.raises(ValueError, match=r"Policy.*S=2, A=2"):
        evaluate_policy(P, r, policy)
    with pytest.raises(ValueError, match=r"Policy.*S=2, A=2"):
        occupancy(P, np.array([1.0, 0.0]), policy)
    with pytest.raises(ValueError, match=r"bonus has shape \(3, 2, 1\)"):
        optimistic_backward_induction(P, r, np.zeros((3, 2, 1)))


def test_whole_numbers_are_numbers():
    P, r = np.ones((1, 1, 1, 1)), np.ones((1, 1, 1))
    plan = optimistic_backward_induction(P, r, np.zeros((2, 1, 1), dtype=int), ceiling=np.array([1.5, 0.5]))
    assert plan.v[0, 0] == 1.5
    assert plan.v[1, 0] == 0.5


def test_ties_go_to_the_first_action():
    plan = backward_induction(np.ones((1, 1, 3, 1)), np.array([[[0.5, 1.0, 1.0]]]), horizon=2)
    assert plan.actions.tolist() == [[1], [1]]

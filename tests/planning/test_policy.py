"""Policies of every shape, and sentences for the wrong ones."""

import numpy as np
import pytest

from private_rl_gym.planning import Policy

sizes = {"horizon": 3, "n_states": 2, "n_actions": 2}


@pytest.mark.parametrize(
    ("table", "deterministic"),
    [
        ([1, 0], True),
        ([[1, 0], [1, 0], [1, 0]], True),
        ([[0.0, 1.0], [1.0, 0.0]], False),
        ([[[0.0, 1.0], [1.0, 0.0]]] * 3, False),
    ],
)
def test_one_policy_in_four_shapes(table, deterministic):
    policy = Policy.of(table, **sizes)
    assert policy.deterministic is deterministic
    assert [policy.action(h, 0, 0.5) for h in range(3)] == [1, 1, 1]
    assert [policy.action(h, 1, 0.5) for h in range(3)] == [0, 0, 0]
    np.testing.assert_array_equal(policy.probabilities, [[[0, 1], [1, 0]]] * 3)


def test_a_stochastic_policy_never_takes_an_action_of_probability_zero():
    third = 1 / 3  # three of them do not add up to one exactly
    policy = Policy.of([[third, third, third, 0.0]], horizon=1, n_states=1, n_actions=4)
    assert policy.action(0, 0, np.nextafter(1.0, 0.0)) == 2
    first_impossible = Policy.of([[0.0, 1.0]], horizon=1, n_states=1, n_actions=2)
    assert first_impossible.action(0, 0, 0.0) == 1


def test_a_policy_is_its_own_copy():
    table = np.array([[0.5, 0.5], [0.5, 0.5]])
    policy = Policy.of(table, **sizes)
    table[:] = 0.0
    assert policy.probabilities.sum() == 6.0
    with pytest.raises(ValueError, match="read-only"):
        policy.table[0, 0] = 1


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ([0, 2], r"action outside 0..1: its entries run from 0 to 2"),
        ([0, -1], r"action outside 0..1"),
        ([0, 1, 1], r"shape \(3,\): with 3 stages, 2 states and 2 actions it must be integers \(3, 2\) or \(2,\)"),
        ([[0.5, 0.6], [1, 0]], r"policy\[0\] sums to 1.1, not to 1"),
        ([[1.5, -0.5], [1, 0]], r"policy\[0, 1\] is -0.5: a probability cannot be negative"),
        ([[float("nan"), 1], [1, 0]], r"policy\[0, 0\] is not a finite number"),
    ],
)
def test_a_wrong_policy_gets_a_sentence(table, sentence):
    with pytest.raises(ValueError, match=sentence):
        Policy.of(table, **sizes)


def test_a_stochastic_policy_asks_for_its_uniform():
    with pytest.raises(ValueError, match="needs a uniform"):
        Policy.uniform(**sizes).action(0, 0)


def test_repr_says_kind_and_sizes():
    assert repr(Policy.uniform(**sizes)) == "Policy(stochastic, H=3, S=2, A=2)"

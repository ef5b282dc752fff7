"""Policies of every shape, and sentences for the wrong ones."""

import pickle

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
    tenths = [0.1] * 10  # in floating point they add up to less than one
    assert np.cumsum(tenths)[-1] < 1.0
    policy = Policy.of([[*tenths, 0.0]], horizon=1, n_states=1, n_actions=11)
    assert policy.action(0, 0, np.nextafter(1.0, 0.0)) == 9
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
    ("table", "word"),
    [
        ([0, 2], r"0\.\.1.*from 0 to 2"),
        ([0, -1], r"0\.\.1.*from -1 to 0"),
        ([0, 1, 1], r"shape \(3,\).*\(3, 2\) or \(2,\)"),
        ([[0.5, 0.6], [1, 0]], r"policy\[0\] sums to 1.1"),
        ([[1.5, -0.5], [1, 0]], r"policy\[0, 1\] is -0.5"),
        ([[1, 2], [3]], r"rows differ in length"),
        ([[float("nan"), 1], [1, 0]], r"policy\[0, 0\].*finite"),
    ],
)
def test_a_wrong_policy_gets_a_sentence(table, word):
    with pytest.raises(ValueError, match=word):
        Policy.of(table, **sizes)


@pytest.mark.parametrize("uniform", [None, 1.0, -0.1, float("nan")])
def test_a_stochastic_policy_asks_for_its_uniform(uniform):
    with pytest.raises(ValueError, match=r"uniform in \[0, 1\)"):
        Policy.uniform(**sizes).action(0, 0, uniform)


@pytest.mark.parametrize(("stage", "state"), [(3, 0), (-1, 0), (0, 2), (0, -1)])
def test_a_policy_knows_its_stages_and_states(stage, state):
    with pytest.raises(ValueError, match=f"stage {stage} with state {state}"):
        Policy.of([0, 1], **sizes).action(stage, state)


def test_the_constructor_checks_as_well():
    assert Policy([[0, 1], [1, 1]], 2).horizon == 2
    with pytest.raises(ValueError, match=r"action outside 0\.\.1"):
        Policy([[10**6]], 2)
    with pytest.raises(ValueError, match=r"\[h, s\] or \[h, s, a\]"):
        Policy([0, 1], 2)
    with pytest.raises(ValueError, match="n_actions is 0"):
        Policy.uniform(horizon=1, n_states=1, n_actions=0)


def test_single_precision_is_good_enough():
    row = np.array([0.1, 0.2, 0.7], dtype=np.float32)
    row /= row.sum()
    policy = Policy.of([row * np.float32(1 + 3e-7)], horizon=1, n_states=1, n_actions=3)
    assert policy.probabilities.sum() == pytest.approx(1.0, abs=1e-15)


def test_a_pickled_policy_is_the_same_and_closed():
    policy = Policy.uniform(**sizes)
    again = pickle.loads(pickle.dumps(policy))
    np.testing.assert_array_equal(again.table, policy.table)
    assert not again.table.flags.writeable


def test_repr_says_kind_and_sizes():
    assert repr(Policy.uniform(**sizes)) == "Policy(stochastic, H=3, S=2, A=2)"

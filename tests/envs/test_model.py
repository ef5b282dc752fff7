"""Models are checked at the door, and closed behind it."""

import pickle

import numpy as np
import pytest
from hypothesis import given

from private_rl_gym.envs import TabularModel
from tests.strategies import models

coin = [[[0.5, 0.5]], [[0.5, 0.5]]]  # two states, one action
pay = [[0.0], [1.0]]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"transitions": [[[0.5, 0.4]], [[0.5, 0.5]]]}, r"transitions\[0, 0, 0\] sums to 0.9"),
        ({"transitions": [[[1.5, -0.5]], [[0.5, 0.5]]]}, r"transitions\[0, 0, 0, 1\] is -0.5"),
        ({"transitions": [[[np.nan, 0.5]], [[0.5, 0.5]]]}, r"transitions\[0, 0, 0\].*finite"),
        ({"transitions": [[[0.5, 0.5]], [[1.0]]]}, r"transitions is not a regular array"),
        ({"transitions": [[0.5, 0.5], [0.5, 0.5]]}, r"transitions have 2 axes"),
        ({"transitions": [coin, coin]}, r"transitions have shape \(2, 2, 1, 2\).*3 steps"),
        ({"rewards": [[0.0], [1.5]]}, r"rewards\[0, 1, 0\] is 1.5.*rescale"),
        ({"rewards": [[-0.1], [1.0]]}, r"rewards\[0, 0, 0\] is -0.1"),
        ({"rewards": [[0.0]]}, r"rewards have shape \(1, 1, 1\).*\(2, 1\)"),
        ({"rewards": None}, r"needs rewards.*outcome_rewards"),
        ({"outcome_rewards": coin}, r"exactly one of them"),
        ({"horizon": 0}, r"horizon is 0"),
        ({"horizon": -3}, r"horizon is -3"),
        ({"initial": 2}, r"initial is 2: .*0\.\.1"),
        ({"initial": [0.5, 0.4]}, r"initial sums to 0.9"),
        ({"initial": [1.0]}, r"initial has shape \(1,\)"),
        ({"reward_law": "poisson"}, r"reward_law is 'poisson'.*bernoulli, fixed"),
    ],
)
def test_a_wrong_model_gets_a_sentence(arguments, word):
    given = {"transitions": coin, "rewards": pay, "horizon": 3, **arguments}
    with pytest.raises(ValueError, match=word):
        TabularModel(**given)


def test_a_horizon_is_a_whole_number():
    with pytest.raises(TypeError, match=r"horizon is 2\.5"):
        TabularModel(coin, pay, horizon=2.5)


def test_a_model_is_frozen():
    model = TabularModel(coin, pay, horizon=3)
    with pytest.raises(AttributeError):
        model.horizon = 4
    for array in (model.transitions, model.rewards, model.initial, model.optimum.q, model.optimum.v):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


def test_a_model_keeps_a_copy():
    transitions = np.array(coin)
    model = TabularModel(transitions, pay, horizon=3)
    transitions[:] = 0.0
    assert model.transitions.sum() == 2.0


def test_outcome_rewards_average_to_rewards():
    model = TabularModel(coin, outcome_rewards=[[[0.0, 1.0]], [[0.0, 0.5]]], horizon=2)
    np.testing.assert_allclose(model.rewards, [[[0.5], [0.25]]])
    assert model.optimal_value() == pytest.approx(0.5 + 0.5 * 0.5 + 0.5 * 0.25)


def test_stage_dependence_is_stored_only_where_there_is_any():
    assert TabularModel(coin, pay, horizon=3).stationary
    staged = TabularModel(coin, [pay, pay, [[1.0], [0.0]]], horizon=3)
    assert not staged.stationary
    assert staged.transitions.shape == (1, 2, 1, 2)
    assert staged.value_of([0, 0]) == pytest.approx(0.0 + 0.5 + 0.5)


@given(models())
def test_a_model_survives_pickling(model):
    again = pickle.loads(pickle.dumps(model))
    for name in ("transitions", "rewards", "initial", "outcome_rewards"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    assert (again.horizon, again.reward_law, repr(again)) == (model.horizon, model.reward_law, repr(model))
    assert not again.transitions.flags.writeable


def test_value_of_takes_a_policy_in_any_shape():
    model = TabularModel(coin, pay, horizon=3)
    assert model.value_of([0, 0]) == model.value_of([[0, 0]] * 3) == model.value_of([[1.0], [1.0]]) == 1.0

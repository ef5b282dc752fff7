"""The rivers."""

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.envs.river_swim import VARIANTS

LEFT, RIGHT = 0, 1


def make(**arguments):
    return gym.make("PrivateRL/RiverSwim-v0", **arguments).unwrapped.model


def test_the_papers_benchmark():
    model = make(horizon=20)
    assert round(model.optimal_value(), 4) == 3.3973
    np.testing.assert_array_equal(model.transitions[0, 0, RIGHT], [0.4, 0.6, 0, 0, 0, 0])
    np.testing.assert_array_equal(model.transitions[0, 3, RIGHT], [0, 0, 0.05, 0.6, 0.35, 0])
    np.testing.assert_array_equal(model.transitions[0, 5, RIGHT], [0, 0, 0, 0, 0.4, 0.6])
    np.testing.assert_array_equal(model.transitions[0, 3, LEFT], [0, 0, 1, 0, 0, 0])
    assert model.rewards[0, 0, LEFT] == 0.005
    assert model.rewards[0, 5, RIGHT] == 1.0
    assert model.rewards.sum() == 1.005
    np.testing.assert_array_equal(model.initial, [1, 0, 0, 0, 0, 0])


def test_strehl_and_littmans_river():
    model = make(variant="strehl-littman")
    np.testing.assert_array_equal(model.transitions[0, 0, RIGHT], [0.7, 0.3, 0, 0, 0, 0])
    np.testing.assert_array_equal(model.transitions[0, 2, RIGHT], [0, 0.1, 0.6, 0.3, 0, 0])
    np.testing.assert_array_equal(model.transitions[0, 5, RIGHT], [0, 0, 0, 0, 0.7, 0.3])
    assert model.rewards[0, 0, LEFT] == 5 / 10_000
    np.testing.assert_array_equal(model.initial, [0, 0.5, 0.5, 0, 0, 0])


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("n_states", [3, 6, 11])
def test_the_mixture_is_the_same_river(variant, n_states):
    river = make(variant=variant, n_states=n_states)
    mixture = gym.make("PrivateRL/RiverSwimMixture-v0", variant=variant, n_states=n_states).unwrapped
    np.testing.assert_allclose(mixture.model.transitions, river.transitions, rtol=0, atol=1e-15)
    np.testing.assert_allclose(mixture.model.rewards, river.rewards, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(mixture.model.initial, river.initial)
    assert mixture.mixture.features.d == 3


def test_the_open_river_has_the_value_that_linear_learners_are_measured_on():
    assert round(make(variant="open-banks", horizon=20).optimal_value(), 3) == 4.848


def test_an_unknown_variant_is_told_the_known_ones():
    with pytest.raises(ValueError, match=r"'osbant'.*open-banks, osband, strehl"):
        make(variant="osbant")
    with pytest.raises(ValueError, match=r"\['osband'\].*open-banks"):
        make(variant=["osband"])


@pytest.mark.parametrize("id", ["PrivateRL/RiverSwim-v0", "PrivateRL/RiverSwimMixture-v0"])
def test_a_river_needs_water(id):
    with pytest.raises(ValueError, match="n_states is 2"):
        gym.make(id, n_states=2)

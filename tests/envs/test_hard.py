"""The hard instances have exactly the paper's probabilities (PUCB, section 6.2), for every instance."""

import itertools
from fractions import Fraction

import gymnasium as gym
import numpy as np
import pytest

ALPHA = Fraction(1, 5)
HALF = Fraction(1, 2)


def chance_of_plus(action, best):
    """Word for word: 1/2 + alpha/2 for action 0, 1/2 + alpha for I_s where it is not 0, 1/2 for all others."""
    if action == 0:
        return HALF + ALPHA / 2
    return HALF + ALPHA if action == best else HALF


def make(id="PrivateRL/HardMDP-v0", **arguments):
    return gym.make(id, **arguments).unwrapped


@pytest.mark.parametrize(("n", "m", "H"), [(1, 1, 1), (2, 2, 4), (3, 2, 5), (2, 4, 10)])
def test_every_instance(n, m, H):
    for instance in itertools.product(range(m + 1), repeat=n):
        model = make(n=n, m=m, alpha=float(ALPHA), instance=instance, horizon=H).model
        plus, minus = n, n + 1
        for s, a in itertools.product(range(n), range(m + 1)):
            row = np.zeros(n + 2)
            row[plus] = chance_of_plus(a, instance[s])
            row[minus] = 1 - chance_of_plus(a, instance[s])
            np.testing.assert_allclose(model.transitions[0, s, a], row, rtol=0, atol=1e-15)
        for end in (plus, minus):
            np.testing.assert_array_equal(model.transitions[0, end], np.tile(np.eye(n + 2)[end], (m + 1, 1)))
        np.testing.assert_allclose(model.initial, [1 / n] * n + [0, 0])
        closed_form = H * sum(chance_of_plus(best, best) for best in instance) / n
        assert model.optimal_value() == pytest.approx(float(closed_form), abs=1e-12)
        assert model.optimum.actions[0, :n].tolist() == list(instance)


def test_the_default_instance_walks_through_the_actions():
    assert make(n=6, m=3).instance == (1, 2, 3, 0, 1, 2)


def test_an_episode_is_all_ones_or_all_zeros():
    model = make().model
    found = model.rollout(model.optimal_policy(), model.draw_users(np.random.default_rng(0), 1000))
    assert set(found.returns.tolist()) == {0.0, float(model.horizon)}


def test_the_bandit_is_the_smallest_member():
    bandit = make("PrivateRL/HardBandit-v0", m=4, alpha=0.3, instance=2).model
    member = make(n=1, m=4, alpha=0.3, instance=[2], horizon=1).model
    np.testing.assert_array_equal(bandit.transitions, member.transitions)
    np.testing.assert_array_equal(bandit.rewards, member.rewards)
    assert bandit.horizon == 1
    np.testing.assert_allclose(bandit.rewards[0, 0], [0.65, 0.5, 0.8, 0.5, 0.5])


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"alpha": 0.6}, r"alpha is 0.6.*\(0, 1/2\]"),
        ({"alpha": 0.0}, r"alpha is 0.0"),
        ({"n": 0}, r"^n is 0"),
        ({"m": 0}, r"^m is 0"),
        ({"n": 2, "instance": [0]}, r"instance is \[0\].*each of the 2"),
        ({"n": 1, "instance": [4]}, r"instance is \[4\].*0\.\.3"),
        ({"horizon": 0}, r"horizon is 0"),
    ],
)
def test_a_wrong_instance_gets_a_sentence(arguments, word):
    with pytest.raises(ValueError, match=word):
        make(**arguments)

"""Linear mixtures against their tensor product, and random instances."""

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.envs import Mixture
from private_rl_gym.envs.generation import instance_generator, sparse_distributions


def make(id="PrivateRL/LinearMixture-v0", **arguments):
    return gym.make(id, **arguments).unwrapped


@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("instance_seed", range(5))
def test_values_through_features_and_through_the_tensor_product_agree(stationary, instance_seed):
    env = make(stationary=stationary, instance_seed=instance_seed, n_states=15, d=3)
    mixture, model = env.mixture, env.model
    stages = len(mixture.weights)
    V = np.zeros(15)  # by what a linear learner would do with the true weights
    for h in reversed(range(model.horizon)):
        theta, eta = mixture.weights[h % stages], mixture.reward_weights[h % stages]
        Q = mixture.reward_features @ eta + mixture.features_of(V) @ theta
        np.testing.assert_allclose(Q, model.optimum.q[h], rtol=0, atol=1e-12)
        V = Q.max(axis=1)
    dense = sum(  # the tensor product, written out
        np.multiply.outer(mixture.weights[:, i], mixture.kernels[i]) for i in range(mixture.d)
    )
    np.testing.assert_allclose(model.transitions, dense, rtol=0, atol=1e-14)


def test_assumption_one_holds():
    mixture = make(stationary=False).mixture
    d = mixture.d
    assert (np.linalg.norm(mixture.weights, axis=1) <= np.sqrt(d)).all()
    assert (np.linalg.norm(mixture.reward_weights, axis=1) <= np.sqrt(d)).all()
    assert (np.linalg.norm(mixture.reward_features, axis=2) <= 1).all()
    values = np.random.default_rng(0).random(20) * 6
    assert (np.linalg.norm(mixture.features_of(values), axis=2) <= np.sqrt(d) * 6).all()


@pytest.mark.parametrize("id", ["PrivateRL/LinearMixture-v0", "PrivateRL/Garnet-v0"])
def test_the_instance_belongs_to_its_seed_alone(id):
    first, again, other = (make(id, instance_seed=seed).model for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.transitions, again.transitions)
    np.testing.assert_array_equal(first.rewards, again.rewards)
    assert not np.array_equal(first.transitions, other.transitions)
    env = make(id, instance_seed=1)
    env.reset(seed=99)
    np.testing.assert_array_equal(env.model.transitions, first.transitions)


def test_instances_and_users_have_streams_of_their_own():
    env = make("PrivateRL/Garnet-v0")
    env.reset(seed=3)
    users = env.np_random.random(5)
    drawn = [instance_generator(family, 3).random(5) for family in ("garnet", "linear-mixture")]
    assert not np.array_equal(drawn[0], drawn[1])
    assert not any(np.isin(row, np.random.default_rng(3).random(1000)).any() for row in drawn)
    assert not any(np.isin(users, row).any() for row in drawn)


def test_random_distributions_are_uniform_on_their_simplex():
    """The first two moments of a flat Dirichlet, and every state chosen equally often: within five standard errors."""
    rng = instance_generator("test", 0)
    rows = sparse_distributions(rng, (20_000,), 6, 3)
    chosen = (rows > 0).mean(axis=0)
    assert np.abs(chosen - 0.5).max() < 5 * np.sqrt(0.25 / 20_000)
    weights = rows[rows > 0]
    assert abs(weights.mean() - 1 / 3) < 5 * weights.std() / np.sqrt(len(weights))
    squares = weights**2
    assert abs(squares.mean() - 1 / 6) < 5 * squares.std() / np.sqrt(len(squares))  # E w^2 = 2 / (3 * 4)


@pytest.mark.parametrize("id", ["PrivateRL/LinearMixture-v0", "PrivateRL/Garnet-v0"])
def test_stages_differ_where_they_may(id):
    model = make(id, stationary=False).model
    assert len(model.transitions) == model.horizon
    assert (model.transitions[0] != model.transitions[1]).any()
    assert (model.rewards[0] != model.rewards[1]).any()


def test_a_garnet_branches_as_stated():
    model = make("PrivateRL/Garnet-v0", n_states=12, branching=4, stationary=False, horizon=3).model
    assert ((model.transitions > 0).sum(axis=-1) == 4).all()
    assert model.transitions.shape == (3, 12, 3, 12)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"branching": 11}, r"branching is 11: it must be a whole number between 1 and the number of states, 10"),
        ({"branching": 0}, r"branching is 0"),
        ({"instance_seed": -1}, r"instance_seed is -1"),
        ({"n_states": 0}, r"n_states is 0: it must be at least 1"),
        ({"n_actions": 0}, r"n_actions is 0"),
    ],
)
def test_a_wrong_garnet_gets_a_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        make("PrivateRL/Garnet-v0", **arguments)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"weights": [1.0, 2.0]}, r"one weight for each kernel"),
        ({"reward_weights": [1.0, 2.0]}, r"reward_features have shape \(1, 1, 1\) and reward_weights \(1, 2\)"),
        ({"reward_features": [[[2.0]]]}, r"norm 2: the model asks for at most 1"),
        ({"kernels": [[[np.inf]]]}, r"kernels\[0, 0, 0\] is not a finite number"),
    ],
)
def test_a_wrong_mixture_gets_a_sentence(change, sentence):
    fine = {"kernels": [[[[1.0]]]], "weights": [1.0], "reward_features": [[[1.0]]], "reward_weights": [0.5]}
    assert repr(Mixture(**fine)) == "Mixture(d=1, S=1, A=1, 1 reward features)"
    with pytest.raises(ValueError, match=sentence):
        Mixture(**{**fine, **change})

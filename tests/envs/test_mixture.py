"""Linear mixtures against their tensor product, and random instances."""

import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from private_rl_gym.envs import Mixture, SparseModel, TabularModel
from private_rl_gym.envs.generation import instance_generator, sparse_distributions, sparse_rows
from private_rl_gym.planning import LinearFeatures, Policy
from private_rl_gym.wrappers import OpenBillboard


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
        Q = mixture.features.reward_features @ eta + mixture.features.of(V) @ theta
        np.testing.assert_allclose(Q, model.optimum.q[h], rtol=0, atol=1e-12)
        V = Q.max(axis=1)
    dense = sum(  # the tensor product, written out
        np.multiply.outer(mixture.weights[:, i], mixture.features.to_dense()[i]) for i in range(mixture.features.d)
    )
    np.testing.assert_allclose(model.transitions, dense, rtol=0, atol=1e-14)


def test_assumption_one_holds():
    mixture = make(stationary=False).mixture
    d = mixture.features.d
    assert (np.linalg.norm(mixture.weights, axis=1) <= np.sqrt(d)).all()
    assert (np.linalg.norm(mixture.reward_weights, axis=1) <= np.sqrt(d)).all()
    assert (np.linalg.norm(mixture.features.reward_features, axis=2) <= 1).all()
    values = np.random.default_rng(0).random(20) * 6
    assert (np.linalg.norm(mixture.features.of(values), axis=2) <= np.sqrt(d) * 6).all()


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


@pytest.mark.parametrize("sparse", [True, False])
def test_random_distributions_are_uniform_on_their_simplex(sparse):
    """The first two moments of a flat Dirichlet, and every state chosen equally often: within five standard errors."""
    rng = instance_generator("test", 0)
    if sparse:
        states, shares = sparse_rows(rng, (20_000,), 6, 3)
        assert (np.diff(np.sort(states, axis=1), axis=1) > 0).all()  # all different
        rows = np.zeros((20_000, 6))
        np.put_along_axis(rows, states, shares, axis=1)
    else:
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
    ("arguments", "word"),
    [
        ({"branching": 11}, r"branching is 11: .* 10"),
        ({"branching": 0}, r"branching is 0"),
        ({"instance_seed": -1}, r"instance_seed is -1"),
        ({"n_states": 0}, r"n_states is 0"),
        ({"n_actions": 0}, r"n_actions is 0"),
    ],
)
def test_a_wrong_garnet_gets_a_sentence(arguments, word):
    with pytest.raises(ValueError, match=word):
        make("PrivateRL/Garnet-v0", **arguments)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"weights": [1.0, 2.0]}, r"^weights have shape \(1, 2\).*\[h, 1\]"),
        ({"reward_weights": [1.0, 2.0]}, r"^reward_weights have shape"),
        ({"weights": [3.0]}, r"weights have norm 3"),
        ({"weights": [np.nan]}, r"weights\[0\].*finite"),
    ],
)
def test_a_wrong_mixture_gets_a_sentence(change, word):
    fine = {"features": LinearFeatures.dense([[[[1.0]]]], [[[1.0]]]), "weights": [1.0], "reward_weights": [0.5]}
    assert repr(Mixture(**fine)) == "Mixture(d=1, S=1, A=1, 1 reward features)"
    with pytest.raises(ValueError, match=word):
        Mixture(**{**fine, **change})


def test_a_tabular_model_is_a_mixture_of_as_many_kernels_as_it_has_transitions():
    river = make("PrivateRL/RiverSwim-v0").model
    mixture = Mixture.of_tabular(river)
    assert mixture.features.d == 6 * 2 * 6
    np.testing.assert_allclose(mixture.model(0, 20, "fixed").transitions, river.transitions, atol=1e-15)
    values = np.arange(6.0)
    P = mixture.features.of(values) @ mixture.weights[0]
    np.testing.assert_allclose(P, river.transitions[0] @ values, atol=1e-15)


def test_weights_are_for_one_stage_or_for_all():
    features = make().mixture.features
    with pytest.raises(ValueError, match=r"3 stages.*horizon is 6"):
        Mixture(features, np.full((3, 4), 0.25), np.full(4, 0.5)).model(horizon=6)


def test_a_mean_reward_of_one_may_be_off_by_rounding():
    """Found in review: a proper mixture was refused."""
    features = make(n_states=30, d=5).mixture.features
    weights = np.full(5, 0.2)
    model = Mixture(features, weights, np.ones(5)).model(0, 6, "fixed")
    assert model.rewards.max() == 1.0
    assert model.rewards.min() > 1.0 - 1e-12
    with pytest.raises(ValueError, match=r"outside \[0, 1\]"):
        Mixture(features, weights, [2.2, 0, 0, 0, 0]).model(0, 6, "fixed")


def test_ten_thousand_states_stay_sparse():
    """Made, solved and run without an array of S x A x S entries, which alone would be 3 GB."""
    env = make(n_states=10_000)
    model = env.model
    assert sum(array.nbytes for array in model.content()) < 20e6
    with pytest.raises(ValueError, match="stay sparse"):
        _ = model.transitions
    assert 0.0 < model.value_of(np.zeros(10_000, dtype=int)) < model.optimal_value() < 6.0
    best = model.optimal_policy()
    np.testing.assert_allclose(model.occupancy_of(best).sum(axis=(1, 2)), 1.0)
    users = 20_000
    found = model.rollout(best, model.draw_users(np.random.default_rng(0), users)).returns
    assert abs(found.mean() - model.optimal_value()) < 5 * found.std() / np.sqrt(users)


@pytest.mark.parametrize("stationary", [True, False])
def test_sparse_and_dense_models_agree(stationary):
    sparse = make(stationary=stationary, n_states=9).model
    dense = TabularModel(sparse.transitions, sparse.rewards, sparse.initial, sparse.horizon)
    uniform = Policy.uniform(horizon=6, n_states=9, n_actions=4)
    np.testing.assert_allclose(sparse.optimum.q, dense.optimum.q, atol=1e-13)
    for policy in (uniform, dense.optimal_policy()):
        np.testing.assert_allclose(sparse.values_of(policy), dense.values_of(policy), atol=1e-13)
        np.testing.assert_allclose(sparse.occupancy_of(policy), dense.occupancy_of(policy), atol=1e-13)
    np.testing.assert_array_equal(sparse.tables.offsets, dense.tables.offsets)
    np.testing.assert_array_equal(sparse.tables.successors, dense.tables.successors)
    np.testing.assert_allclose(sparse.tables.cumulative, dense.tables.cumulative, atol=1e-15)
    np.testing.assert_array_equal(sparse.outcomes(3, 4), sparse.transitions[3 % len(sparse.transitions), 4])
    again = pickle.loads(pickle.dumps(sparse))
    for first, second in zip(sparse.content(), again.content(), strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"offsets": [0, 1]}, r"2 offsets: .* 3, or 7"),
        ({"successors": [1, 0, 2]}, r"state in 0\.\.1"),
        ({"probabilities": [1.0, 0.5, 0.4]}, r"state 1, action 0 sum to 0.9"),
        ({"probabilities": [1.0, 1.5, -0.5]}, r"state 1, action 0 is -0.5"),
        ({"rewards": [[2.0], [0.0]]}, r"outside \[0, 1\]"),
        ({"rewards": [0.0, 1.0]}, r"rewards have shape"),
        ({"reward_law": "poisson"}, r"reward_law is 'poisson'"),
    ],
)
def test_a_wrong_sparse_model_gets_a_sentence(change, word):
    fine = {"offsets": [0, 1, 3], "successors": [1, 0, 1], "probabilities": [1.0, 0.5, 0.5], "rewards": [[0.0], [1.0]]}
    assert SparseModel(**fine, horizon=3).optimal_value() == 1.5
    with pytest.raises(ValueError, match=word):
        SparseModel(**{**fine, **change}, horizon=3)


@pytest.mark.parametrize("distance", [0.1, 0.5])
def test_a_misspecified_model_is_as_far_from_its_mixture_as_stated(distance):
    env = make(misspecification=distance)
    mixture, model = env.mixture.model(0, 6, "bernoulli"), env.model
    apart = np.abs(model.transitions - mixture.transitions).sum(axis=-1).max() / 2
    assert 0.8 * distance < apart <= distance + 1e-12
    assert np.abs(model.rewards - mixture.rewards).max() <= distance + 1e-12
    assert env.mixture.features.d == 4  # of the hidden kernel nobody tells
    with pytest.raises(ValueError, match="misspecification is 1"):
        make(misspecification=1.0)


@pytest.mark.parametrize("timed", [True, False])
def test_learners_that_want_vectors_get_features(timed):
    id = "PrivateRL/LinearMixture-v0"
    env = gym.make(id, observe_features=True, observe_time=timed)
    check_env(env.unwrapped)
    observation, _ = env.reset(seed=0)
    _, A, j = env.unwrapped.mixture.features.reward_features.shape
    assert observation.shape == (A * j + timed,)
    assert observation.dtype == np.float32
    state, _ = gym.make(id).reset(seed=0)  # the same user, who shows where she stands
    np.testing.assert_array_equal(
        observation[: A * j], env.unwrapped.mixture.features.reward_features[state].ravel().astype("f4")
    )
    for h in range(env.unwrapped.model.horizon):
        observation, *_ = env.step(0)
        assert env.observation_space.contains(observation)
        assert not timed or observation[-1] == np.float32((h + 1) / env.unwrapped.model.horizon)
    many = gym.make_vec(id, num_envs=3, observe_features=True, observe_time=timed)
    tapes = env.unwrapped.model.draw_users(np.random.default_rng(0), 3)
    seen = [many.reset(options={"user": tapes})[0], many.step(np.ones(3, dtype=int))[0]]
    for user, tape in enumerate(tapes):
        np.testing.assert_array_equal(seen[0][user], env.reset(options={"user": tape})[0])
        np.testing.assert_array_equal(seen[1][user], env.step(1)[0])
    with pytest.raises(TypeError, match="without observe_features"):
        OpenBillboard(env)

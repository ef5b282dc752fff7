"""What a linear learner knows, against dense arrays."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_rl_gym.planning import LinearFeatures

numbers = st.integers(0, 2**32 - 1)


def random_features(seed, *, signed=False):
    rng = np.random.default_rng(seed)
    d, S, A, j = rng.integers(1, 5, size=4)
    psi = rng.random((d, S, A, S)) * (rng.random((d, S, A, S)) < 0.6)
    psi[0, 0, 0, 0] = 1.0
    if signed:
        psi *= rng.choice([-1.0, 1.0], size=psi.shape)
    return LinearFeatures.dense(psi, rng.random((S, A, j)) / j), psi, rng


@given(numbers, st.booleans())
def test_features_mixtures_and_bounds_are_those_of_dense_kernels(seed, signed):
    features, psi, rng = random_features(seed, signed=signed)
    d, S, A, _ = psi.shape
    np.testing.assert_array_equal(features.to_dense(), psi)
    values = rng.random(S)
    phi = np.einsum("isat,t->sai", psi, values)
    np.testing.assert_allclose(features.of(values), phi, atol=1e-14)
    assert np.linalg.norm(phi, axis=-1).max() <= features.bound * (1 + 1e-12)
    if not signed:
        largest = np.linalg.norm(features.of(np.ones(S)), axis=-1).max()
        assert features.bound == pytest.approx(largest)
    assert features.nonnegative == bool((psi >= 0).all())
    theta = rng.normal(size=(3, d))
    offsets, successors, found = features.mixed(theta)
    dense = np.zeros((3 * S * A, S))
    rows = np.repeat(np.arange(3 * S * A), np.diff(offsets))
    dense[rows, successors] = found
    assert len(set(zip(rows.tolist(), successors.tolist(), strict=True))) == len(rows)  # no outcome twice
    np.testing.assert_allclose(dense.reshape(3, S, A, S), np.einsum("hi,isat->hsat", theta, psi), atol=1e-13)
    again = pickle.loads(pickle.dumps(features))
    for first, second in zip(features.arrays, again.arrays, strict=True):
        np.testing.assert_array_equal(first, second)


def test_the_norm_bound_is_the_largest_over_all_value_functions():
    """By trying every corner of the cube, where a convex function is largest."""
    for seed in range(20):
        features, psi, _ = random_features(seed)
        S = psi.shape[1]
        corners = (np.arange(2**S)[:, None] >> np.arange(S)) & 1
        largest = max(np.linalg.norm(features.of(corner), axis=-1).max() for corner in corners)
        assert features.bound == pytest.approx(largest)


def test_the_tabular_features_are_one_for_each_transition():
    features = LinearFeatures.tabular(3, 2)
    assert (features.d, features.reward_d) == (18, 6)
    assert features.bound == pytest.approx(np.sqrt(3))
    phi = features.of(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(phi[1, 0], [0, 0, 0, 0, 0, 0, 1, 2, 3] + [0] * 9)


def raw(**change):
    fine = {"rows": [0, 1], "kernels": [0, 1], "successors": [0, 1], "weights": [1.0, 1.0], **change}
    return LinearFeatures(
        **{key: np.array(value) for key, value in fine.items()}, reward_features=np.ones((2, 1, 1)), d=2
    )


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: LinearFeatures.dense(np.zeros((2, 3, 1, 2)), np.zeros((3, 1, 1))), r"with as many s as s'"),
        (lambda: LinearFeatures.dense(np.ones((2, 3, 1, 3)), np.zeros((2, 1, 1))), r"must be \[3, 1, j\]"),
        (lambda: LinearFeatures.dense([[[[np.inf]]]], [[[1.0]]]), r"kernels\[0, 0, 0, 0\].*finite"),
        (lambda: LinearFeatures.dense([[[[1.0]]]], [[[np.nan]]]), r"reward_features\[0, 0, 0\].*finite"),
        (lambda: LinearFeatures.dense([[[[1.0]]]], [[[2.0]]]), r"norm 2"),
        (lambda: LinearFeatures.dense([[[[0.0]]]], [[[1.0]]]), r"zero everywhere"),
        (lambda: LinearFeatures.dense("psi", [[[1.0]]]), r"not a regular array"),
        (lambda: LinearFeatures.sparse([[[[1]]]], [[[[1.0]]]], [[[1.0]]]), r"whole numbers in 0\.\.0"),
        (lambda: LinearFeatures.sparse([[[0]]], [[[[1.0]]]], [[[1.0]]]), r"successors have shape"),
        (lambda: LinearFeatures.dense([[[[1.0]]]], [[[1e-9]]]), r"norms of 1e-09"),
        (lambda: LinearFeatures.dense([[[[1e9]]]], [[[1.0]]]), r"norms of 1e\+09"),
        (lambda: LinearFeatures.tabular(2, 2).of(np.ones(3)), r"values have shape \(3,\)"),
        (lambda: LinearFeatures.tabular(2, 2).bounded(1e-12), r"bound is 1e-12"),
        (lambda: LinearFeatures.tabular(2, 2).bounded(np.nan), r"bound is nan"),
        (lambda: raw(rows=[0, 7]), r"rows must be .*0\.\.1"),
        (lambda: raw(successors=[0, -1]), r"successors must be .*as weights"),
        (lambda: raw(kernels=[0, 1, 1]), r"kernels must be"),
        (lambda: raw(weights=[1.0, np.nan]), r"weight .*finite"),
        (lambda: LinearFeatures.tabular(0, 2), r"n_states is 0"),
        (lambda: LinearFeatures.tabular(100, 4), r"d = 40000 features"),
    ],
)
def test_wrong_features_get_a_sentence(make, word):
    assert raw().d == 2
    with pytest.raises(ValueError, match=word):
        make()

"""The closed form against scipy's linear program."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from private_rl_gym.privacy import project_counts
from tests.strategies import seeds


def best_by_linear_program(m, n, error):
    """The least t with abs(x - m) <= t, x >= 0 and abs(sum x - n) <= error / 4; None if there is no such x."""
    size = len(m)
    eye, ones = np.eye(size), np.ones((size, 1))
    A = np.vstack([np.hstack([eye, -ones]), np.hstack([-eye, -ones])])
    total = np.append(np.ones(size), 0.0)
    A = np.vstack([A, total, -total])
    b = np.concatenate([m, -m, [n + error / 4, error / 4 - n]])
    found = linprog(np.append(np.zeros(size), 1.0), A_ub=A, b_ub=b, bounds=[(0, None)] * (size + 1), method="highs")
    return found.fun if found.status == 0 else None


@given(seeds, st.integers(1, 7), st.sampled_from([0.0, 0.5, 10.0, 100.0]), st.sampled_from([0.1, 1.0, 30.0]))
def test_it_solves_the_papers_program(seed, size, error, spread):
    rng = np.random.default_rng(seed)
    m = spread * rng.standard_normal(size).round(2)
    n = m.sum() + error * rng.standard_normal()
    x, visits = project_counts(m[None, None, None], np.array([[[n]]]), error)
    x = x[0, 0, 0] - error / (2 * size)
    best = best_by_linear_program(m, n, error)
    if best is None:
        assert n < -error / 4
        np.testing.assert_allclose(x, 0.0, atol=1e-12)
    else:
        assert (x >= -1e-9).all()
        assert abs(x.sum() - n) <= error / 4 + 1e-7
        assert np.abs(x - m).max() == pytest.approx(best, abs=1e-6)
    assert visits[0, 0, 0] == pytest.approx(x.sum() + error / 2)


def test_rounding_never_keeps_it_going():
    """Entries on the water line, where rounding could bring up again what has just gone under (it once did)."""
    rng = np.random.default_rng(0)
    for scale in (0.1, 1 / 3, 150.0, 1e9):
        m = scale * rng.integers(-3, 4, size=(20, 50, 20, 6)) + rng.choice([0.0, 1e-16, scale], size=(20, 50, 20, 6))
        for n in (m.sum(axis=-1), np.maximum(m, 0).sum(axis=-1) * rng.choice([0.0, 0.3, 1.0, 1.1], size=m.shape[:-1])):
            x, visits = project_counts(m, n, 0.0)
            assert (x >= 0).all()
            np.testing.assert_allclose(visits, np.maximum(n, 0), atol=1e-6 * scale)


def test_counts_that_fit_already_are_only_raised():
    m = np.array([[[[3.0, 1.0]]]])
    x, n = project_counts(m, np.array([[[4.0]]]), 2.0)
    np.testing.assert_allclose(x, m + 0.5)
    assert n[0, 0, 0] == 5.0


@given(seeds)
def test_visits_are_never_underestimated(seed):
    """Lemma 5.4 of DP-UCBVI: where noisy counts are within error / 4 of the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 20, size=(2, 3, 2, 4)).astype(float)
    error = 8.0
    m = truth + rng.uniform(-error / 4, error / 4, size=truth.shape)
    n = truth.sum(axis=-1) + rng.uniform(-error / 4, error / 4, size=truth.shape[:-1])
    x, visits = project_counts(m, n, error)
    assert (x > 0).all()
    assert (visits >= truth.sum(axis=-1) - 1e-9).all()
    assert (visits <= truth.sum(axis=-1) + error + 1e-9).all()
    assert (np.abs(x - truth) <= error + 1e-9).all()
    np.testing.assert_allclose(x.sum(axis=-1), visits)


def test_a_negative_error_gets_a_sentence():
    with pytest.raises(ValueError, match="The error is -1"):
        project_counts(np.zeros((1, 1, 1, 1)), np.zeros((1, 1, 1)), -1.0)
    with pytest.raises(ValueError, match="The error is nan"):
        project_counts(np.zeros((1, 1, 1, 1)), np.zeros((1, 1, 1)), float("nan"))
    with pytest.raises(ValueError, match=r"m has shape .* n \(1, 1, 2\)"):
        project_counts(np.zeros((1, 1, 1, 2)), np.zeros((1, 1, 2)), 1.0)

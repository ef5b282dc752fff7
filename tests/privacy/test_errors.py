"""Error bounds hold as often as they claim, and are not far too wide."""

import json
import math

import numpy as np
import pytest

from private_rl_gym.privacy import NoiseSource
from private_rl_gym.privacy.errors import (
    BoundedError,
    CombinedError,
    ErrorDistribution,
    GaussianError,
    LaplaceError,
    NoError,
)
from private_rl_gym.privacy.mechanisms import HonakerTree

DRAWS = 200_000


def sums_of_geometrics(scale, count, seed=0):
    total, out, spare = np.zeros(DRAWS), np.empty(DRAWS), np.empty(DRAWS)
    source = NoiseSource(seed)
    for _ in range(count):
        source.geometric(scale, out, spare)
        total += out
    return total


@pytest.mark.parametrize("scale", [0.8, 5.0, 100.0])
@pytest.mark.parametrize("count", [1, 3, 16])
def test_laplace_sums(scale, count):
    law = LaplaceError(scale, ((float(count), 1.0),), 1.0)
    sample = sums_of_geometrics(scale, count)
    assert sample.std() == pytest.approx(law.std, rel=0.02)
    for failure in (0.1, 0.01, 1e-3):
        misses = (np.abs(sample) > law.bound(failure)).mean()
        assert misses <= failure
        assert law.bound(failure) <= 2.5 * np.quantile(np.abs(sample), 1 - failure) + 1.0


def test_weighted_sums_are_those_of_honakers_tree():
    steps, cells = 13, 50_000
    noise, source = HonakerTree(steps, cells, "laplace"), NoiseSource(1)
    units = np.full(cells, 20.0)
    for step in range(1, steps + 1):
        found = noise.advance(source, units)
        law = LaplaceError(20.0, noise.weights(step), 1.0)
        assert found.std() == pytest.approx(law.std, rel=0.03)
        assert (np.abs(found) > law.bound(1e-3)).mean() <= 1e-3


def test_gaussians():
    law = GaussianError(3.0, 1.0)
    sample = 3.0 * np.random.default_rng(0).standard_normal(DRAWS)
    for failure in (0.1, 1e-3):
        assert (np.abs(np.round(sample)) > law.bound(failure)).mean() <= failure
    assert GaussianError(1.0).bound(2 * 0.0013498980316301) == pytest.approx(3.0, abs=1e-6)
    assert law.summed(4).std == 6.0


def test_combined_errors_fail_half_as_often_each():
    law = CombinedError.of(GaussianError(3.0), GaussianError(4.0))
    assert law.std == 5.0
    assert law.bound(0.1) == GaussianError(3.0).bound(0.05) + GaussianError(4.0).bound(0.05)
    assert CombinedError.of(NoError(), GaussianError(4.0)) == GaussianError(4.0)
    assert CombinedError.of(GaussianError(4.0), NoError()) == GaussianError(4.0)
    assert NoError().bound(0.01) == NoError().summed(3).std == NoError().scaled(2.0).std == 0.0


def test_bernstein():
    rng = np.random.default_rng(0)
    p, users = 0.05, 2_000
    sample = rng.binomial(users, p, size=DRAWS) - users * p
    law = BoundedError(users * p * (1 - p), 1.0)
    for failure in (0.1, 1e-3):
        assert (np.abs(sample) > law.bound(failure)).mean() <= failure
    assert law.bound(1e-3) < 5 * law.std
    assert law.scaled(2.0).bound(1e-3) == pytest.approx(2 * law.bound(1e-3))
    assert law.summed(4).std == pytest.approx(2 * law.std)


def test_a_smaller_failure_needs_a_wider_bound():
    for law in (GaussianError(1.0), LaplaceError(1.0, ((2.0, 0.5),), 0.1), BoundedError(1.0, 1.0)):
        bounds = [law.bound(failure) for failure in (0.5, 0.1, 1e-3, 1e-9, 1e-15)]
        assert bounds == sorted(bounds)
        assert math.isfinite(bounds[-1])


@pytest.mark.parametrize(
    "law",
    [
        NoError(),
        GaussianError(5.0, 2.0**-20),
        LaplaceError(2.0, ((10.0, 1.0), (2.0, 0.5)), 1.0),
        BoundedError(25.0, 1.0, 3.0),
        CombinedError(GaussianError(5.0), BoundedError(25.0, 1.0)),
    ],
)
def test_a_law_can_be_written_down(law):
    assert ErrorDistribution.from_dict(json.loads(json.dumps(law.to_dict()))) == law

"""Samplers have the laws that the proofs are about, and the tests would see it if they had not.

Each law is held against 100,000 draws at p > 1e-6, so a false alarm is one in a million; seeds are fixed besides.
"""

import copy
import pickle

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

from private_rl_gym.privacy import NoiseSource
from private_rl_gym.privacy.noise import round_to_grid

DRAWS = 100_000
ALARM = 1e-6


def geometric(scale, seed=1, draws=DRAWS, **options):
    out, spare = np.empty(draws), np.empty(draws)
    NoiseSource(seed, **options).geometric(scale, out, spare)
    return out


def geometric_pmf(k, scale):
    q = np.exp(-1.0 / scale)
    return (1.0 - q) / (1.0 + q) * q ** np.abs(k)


def geometric_p_value(sample, scale):
    """Chi-square over integer cells that hold at least 20 draws each, and the two tails."""
    edge = 0
    while geometric_pmf(edge + 1, scale) * len(sample) >= 20:
        edge += 1
    inner = np.arange(-edge, edge + 1)
    expected = geometric_pmf(inner, scale) * len(sample)
    observed = np.array([(sample == k).sum() for k in inner], dtype=float)
    tails = [(sample < -edge).sum(), (sample > edge).sum()]
    tail = (len(sample) - expected.sum()) / 2
    return stats.chisquare([*observed, *tails], [*expected, tail, tail]).pvalue


@pytest.mark.parametrize("scale", [0.7, 3.0, 40.0])
def test_the_geometric_law(scale):
    sample = geometric(scale)
    assert (sample == np.round(sample)).all()
    assert geometric_p_value(sample, scale) > ALARM
    for wrong in (0.7, 1.3):  # and the test has teeth
        assert geometric_p_value(geometric(wrong * scale), scale) < ALARM


def test_the_geometric_law_at_the_scale_of_rewards():
    """A scale of a hundred million units: compared with the continuous law, as its grid is finer than the eye."""
    scale = 1280 * 2.0**20
    sample = geometric(scale)
    assert stats.kstest(sample, stats.laplace(scale=scale).cdf).pvalue > ALARM
    assert stats.kstest(geometric(1.3 * scale), stats.laplace(scale=scale).cdf).pvalue < ALARM


def test_the_gaussian_law():
    def draw(seed):
        out = np.empty(DRAWS)
        NoiseSource(seed).gaussian(out)
        return out

    assert stats.kstest(draw(2), "norm").pvalue > ALARM
    for wrong in (0.7, 1.3):
        assert stats.kstest(wrong * draw(2), "norm").pvalue < ALARM


def test_the_geometric_law_is_opendps():
    """Two samples, ours and OpenDP's discrete Laplace, come from one law."""
    dp.enable_features("contrib")
    theirs = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), scale=3.0)
    sample = np.array(theirs([0] * 20_000))
    ours = geometric(3.0, draws=20_000)

    def table(mine):
        cells = np.arange(-12, 13)
        return [[(np.clip(found, -12, 12) == k).sum() for k in cells] for found in (mine, sample)]

    assert stats.chi2_contingency(table(ours)).pvalue > ALARM
    assert stats.chi2_contingency(table(geometric(1.3 * 3.0, draws=20_000))).pvalue < ALARM


def test_a_vector_of_scales_gives_each_cell_its_own():
    scales = np.repeat([2.0, 20.0], DRAWS // 2)
    sample = geometric(scales)
    assert geometric_p_value(sample[: DRAWS // 2], 2.0) > ALARM
    assert geometric_p_value(sample[DRAWS // 2 :], 20.0) > ALARM


def test_cells_do_not_share_noise():
    first, second = geometric(5.0).reshape(2, -1)
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(len(first))


def test_noise_has_a_stream_of_its_own():
    """Neither default_rng(seed), which is what Gymnasium gives its environments, nor that of another seed."""
    out = np.empty(1000)
    NoiseSource(7).gaussian(out)
    assert not np.isin(out, np.random.default_rng(7).standard_normal(100_000)).any()
    other, again = np.empty(1000), np.empty(1000)
    NoiseSource(8).gaussian(other)
    NoiseSource(7).gaussian(again)
    assert not np.isin(out, other).any()
    np.testing.assert_array_equal(out, again)


def test_without_a_seed_noise_never_repeats():
    first, second = geometric(50.0, seed=None), geometric(50.0, seed=None)
    assert not np.array_equal(first, second)
    assert not NoiseSource().seeded
    assert NoiseSource(0).seeded


def test_secure_noise_has_the_same_law_and_no_seed():
    source = NoiseSource("secure")
    assert type(source.generator.bit_generator).__name__ == "ChaCha"
    assert geometric_p_value(geometric(3.0, seed="secure"), 3.0) > ALARM
    with pytest.raises(TypeError, match="a generator of its own"):
        NoiseSource(np.random.default_rng(1))
    with pytest.raises(ValueError, match="cannot be saved"):
        source.state()


def test_rounding_does_not_depend_on_the_origin():
    values = np.array([-1.5, -0.5, 0.5, 1.5, 2.49])
    np.testing.assert_array_equal(round_to_grid(values + 1000) - 1000, round_to_grid(values))
    np.testing.assert_array_equal(round_to_grid(values), [-1, 0, 1, 2, 2])
    assert (np.round(values + 1) - 1 != np.round(values)).any()  # numpy's rounding would


def test_a_source_goes_on_where_another_stood():
    first = NoiseSource(3)
    first.uniform(10)
    second = NoiseSource(99)
    second.restore(first.state())
    np.testing.assert_array_equal(first.uniform(5), second.uniform(5))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_noise_is_not_copied(duplicate):
    with pytest.raises(TypeError, match=r"not copied.*save_state"):
        duplicate(NoiseSource(1))


def test_noise_is_not_drawn_in_a_fork(monkeypatch):
    source = NoiseSource(1)
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(RuntimeError, match="forked"):
        source.uniform(1)


def test_repr_tells_no_secret():
    source = NoiseSource(123456)
    assert repr(source) == "NoiseSource(seeded)"

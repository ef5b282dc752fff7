"""Counting mechanisms: their accuracy as specified, their privacy read off the streaming code."""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest

from private_rl_gym.privacy import NoiseSource, gaussian_mu, mechanisms
from private_rl_gym.privacy.mechanisms import (
    MECHANISMS,
    Batched,
    BinaryTree,
    HonakerTree,
    KAryTree,
    MatrixFactorization,
    Mechanism,
    fit_blt,
    k_ary,
)
from private_rl_gym.privacy.mechanisms.k_ary import balanced_digits
from tests.privacy.mechanisms.linear import gaussian_loss, laplace_loss, matrix_of

T = 50_000
PAIRS = [(mechanism, law) for mechanism in MECHANISMS.values() for law in mechanism.laws]
every_mechanism = pytest.mark.parametrize(("mechanism", "law"), PAIRS)


def one_noise(mechanism, law, epsilon=1.0, delta=1e-6):
    """The scale of one standard noise for one unit of sensitivity."""
    sensitivity = mechanism(T, 1, law).sensitivity
    return sensitivity / epsilon if law == "laplace" else sensitivity / gaussian_mu(epsilon, delta)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "law", "specified"),
    [
        (BinaryTree, "laplace", 62.6),
        (HonakerTree, "laplace", 46.5),
        (KAryTree, "laplace", 23.8),
        (BinaryTree, "gaussian", 46.7),
        (MatrixFactorization, "gaussian", 18.4),
    ],
)
def test_error_at_fifty_thousand_releases(mechanism, law, specified):
    """Root mean square error averaged over time, on the real streaming code."""
    cells, grid = 200, 2.0**-10
    scale = one_noise(mechanism, law)
    units = np.full(cells, scale / grid)
    noise, source = mechanism(T, cells, law), NoiseSource(5)
    total = 0.0
    for _ in range(T):
        found = noise.advance(source, units)
        total += np.sqrt(np.mean(found**2))
    measured = total / T * (grid if law == "laplace" else scale)
    assert measured == pytest.approx(specified, rel=0.05)
    exact = np.mean([noise.spread(t) for t in range(1, T + 1, 11)]) * scale * (np.sqrt(2) if law == "laplace" else 1)
    assert measured == pytest.approx(exact, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 7, 10, 11, 12, 40, 100, 1_000, 50_000, 200_000, 1_000_000])
def test_blt_is_within_a_percent_of_the_square_root(steps):
    k = np.arange(1, steps)
    coefficients = np.cumprod(np.append(1.0, (2 * k - 1) / (2 * k)))  # of the square root of the triangle of ones
    exact = (coefficients**2).sum()  # sensitivity and worst error are equal there
    assert fit_blt(steps).worst_error <= 1.01 * exact


def test_blt_at_fifty_thousand_is_the_specified_one():
    blt = fit_blt(T)
    np.testing.assert_allclose(blt.decay, [0.9999756, 0.9993682, 0.9883305, 0.8050035], atol=1e-4)
    np.testing.assert_allclose(blt.scale, [0.0070002, 0.0233783, 0.0986162, 0.3283830], atol=1e-3)
    assert blt.squared_sensitivity == pytest.approx(4.4863, rel=1e-3)
    assert blt.worst_error == pytest.approx(4.527, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [2, 3, 5, 11, 64, 129])
def test_blt_coefficients_and_closed_forms(steps):
    blt = fit_blt(steps)
    C = np.eye(steps)
    for lag in range(1, steps):
        C += np.diag(np.full(steps - lag, (blt.scale * blt.decay ** (lag - 1)).sum()), -lag)
    B = np.tril(np.ones((steps, steps))) @ np.linalg.inv(C)
    assert blt.squared_sensitivity == pytest.approx((C[:, 0] ** 2).sum(), rel=1e-12)
    assert blt.worst_error**2 == pytest.approx(blt.squared_sensitivity * (B[-1] ** 2).sum(), rel=1e-6)
    assert blt.squared_spread(steps) == pytest.approx((B[-1] ** 2).sum(), rel=1e-9)
    np.testing.assert_allclose(matrix_of(MatrixFactorization, steps, "gaussian"), B, atol=1e-9)


@pytest.mark.slow
@every_mechanism
@pytest.mark.parametrize("steps", [1, 2, 5, 16, 21])
def test_spread_is_that_of_the_streaming_code(mechanism, law, steps):
    B = matrix_of(mechanism, steps, law)
    noise = mechanism(steps, 1, law)
    for t in range(1, steps + 1):
        assert noise.spread(t) == pytest.approx(np.linalg.norm(B[t - 1]), rel=1e-9)


@every_mechanism
@pytest.mark.parametrize("steps", [1, 2, 5, 8, 16, 21])
def test_no_user_costs_more_than_is_accounted_for(mechanism, law, steps):
    """White box: the exact privacy loss of the worst user against the sensitivity that calibrates the noise."""
    loss = (laplace_loss if law == "laplace" else gaussian_loss)(matrix_of(mechanism, steps, law))
    claimed = mechanism(steps, 1, law).sensitivity
    assert loss <= claimed * (1 + 1e-6), "a user is in more noises than sensitivity says: the promise is broken"
    assert loss >= 0.7 * claimed, "sensitivity is padded: a user shows less than it says, and noise is wasted"
    if mechanism is HonakerTree and law == "gaussian":
        assert loss == pytest.approx(claimed)  # nor is what estimates show of her


@pytest.mark.parametrize("mechanism", [BinaryTree, HonakerTree])
@pytest.mark.parametrize("k", [1, 3, 10])
def test_a_power_of_two_needs_no_root(mechanism, k):
    assert mechanism(2**k, 1, "laplace").sensitivity == k
    assert mechanism(2**k + 1, 1, "laplace").sensitivity == k + 1


class FreshEveryTime(Batched):
    """Broken on purpose: every release gets new noise on the whole sum, in place of a continual mechanism."""

    apart = False


class RedrawnNodes(BinaryTree):
    """Broken on purpose: nodes are noised anew whenever they are used."""

    def advance(self, source, scale):
        self.step += 1
        nodes = self.step.bit_count()
        return sum(Batched(1, self.cells, self.law).advance(source, scale) for _ in range(nodes))


class MissingLevel(BinaryTree):
    """Broken on purpose: accounts for one level less than there are."""

    @property
    def sensitivity(self):
        return self.levels - 1 if self.law == "laplace" else np.sqrt(self.levels - 1)


class ForgottenNoise(BinaryTree):
    """Broken on purpose: the lowest level is not noised."""

    def advance(self, source, scale):
        lowest = self.step % 2 == 0  # the next release is odd, and ends with a leaf
        return super().advance(Muted(source) if lowest else source, scale)


class Muted:
    """A source of next to no noise."""

    def __init__(self, source):
        self.source = source

    def gaussian(self, out):
        self.source.gaussian(out)
        out *= 1e-3

    def geometric(self, scale, out, spare):
        self.source.geometric(scale, out, spare)
        out *= 1e-3


@pytest.mark.parametrize("broken", [FreshEveryTime, RedrawnNodes, MissingLevel, ForgottenNoise])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_broken_mechanisms_are_caught(broken, law):
    steps = 16
    loss = (laplace_loss if law == "laplace" else gaussian_loss)(matrix_of(broken, steps, law))
    assert loss > 1.05 * broken(steps, 1, law).sensitivity


@every_mechanism
@pytest.mark.parametrize("steps", [1, 2, 5, 40, 333])
def test_the_worst_release_is_the_worst(mechanism, law, steps):
    noise = mechanism(steps, 1, law)
    assert noise.spread(noise.worst_step) == max(noise.spread(t) for t in range(1, steps + 1))


@pytest.mark.parametrize("k", [3, 5, 19])
def test_balanced_digits_are_balanced_and_add_up(k):
    for number in [*range(1, 200), 50_000]:
        digits = balanced_digits(number, k)
        assert sum(digit * k**place for place, digit in enumerate(digits)) == number
        assert all(abs(digit) <= (k - 1) // 2 for digit in digits)


def test_the_k_ary_tree_at_fifty_thousand_is_the_specified_one():
    noise = KAryTree(T, 1, "laplace")
    assert (noise.k, noise.levels) == (19, 4)
    with pytest.raises(ValueError, match=r"counting='k-ary-tree'.*Laplace"):
        KAryTree(T, 1, "gaussian")


@pytest.mark.parametrize("steps", [60, 200])
def test_deep_k_ary_trees_cost_no_more_than_their_levels(steps):
    """The exact loss with several levels, where nodes are subtracted that later users belong to."""
    B = matrix_of(ThreeAry, steps, "laplace")
    noise = ThreeAry(steps, 1, "laplace")
    assert noise.levels >= 4
    users = range(1, steps + 1) if steps < 100 else (1, 40, 41, 121, 200)
    assert laplace_loss(B, users) <= noise.levels * (1 + 1e-6)
    assert laplace_loss(B, users) >= 0.7 * noise.levels


class ThreeAry(KAryTree):
    """The tree with the most levels, and so with the most carrying."""

    def __init__(self, steps, cells, law, monkey=3):
        original = k_ary.best_arity
        k_ary.best_arity = lambda _: monkey
        try:
            super().__init__(steps, cells, law)
        finally:
            k_ary.best_arity = original


@every_mechanism
def test_cells_have_noise_of_their_own(mechanism, law):
    """Sharing one noise sequence between cells would let one cell be subtracted from another."""
    noise, source = mechanism(8, 20_000, law), NoiseSource(3)
    units = np.full(20_000, 10.0)
    for _ in range(8):
        found = noise.advance(source, units)
        first, second = found.reshape(2, -1)
        assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(10_000)


@every_mechanism
def test_memory_grows_with_the_logarithm_of_users_at_most(mechanism, law):
    sizes = [sum(a.size for a in mechanism(steps, 100, law).arrays().values()) for steps in (1_000, 1_000_000)]
    assert sizes[1] <= 2.1 * sizes[0]
    assert sizes[1] <= 100 * 60


def test_every_mechanism_has_a_name_of_its_own_in_the_table():
    """Whatever is written in the folder is tested, budgeted and audited, because all of that goes by the table."""
    written = set()
    for found in pkgutil.iter_modules(mechanisms.__path__, f"{mechanisms.__name__}."):
        for kind in vars(importlib.import_module(found.name)).values():
            if inspect.isclass(kind) and issubclass(kind, Mechanism) and not inspect.isabstract(kind):
                written.add(kind)
    missing = sorted(kind.__name__ for kind in written ^ set(MECHANISMS.values()))
    assert not missing, f"{', '.join(missing)}: put it into the tuple of MECHANISMS, under a name that no other one has"

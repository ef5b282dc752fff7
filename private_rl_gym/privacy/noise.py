"""The source of all privacy noise: two laws, both on a grid.

Values are kept in units of their grid (counts: 1, rewards: a small fraction), as whole numbers. Laplace noise is drawn
as two-sided geometric noise, which is whole; Gaussian noise is drawn as it is and rounded when a sum is published.
Proofs: docs/proofs/geometric.md, docs/proofs/gaussian.md.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.lazy import install
from private_rl_gym.planning.arrays import seed_of, shown

__all__ = [
    "AdditiveNoise",
    "NoiseBitsOfBatches",
    "NoiseSource",
    "Noises",
    "RandomAnswers",
    "Rng",
    "rng_of",
    "round_to_grid",
    "widths_of",
]


@dataclass(frozen=True, slots=True, eq=False)
class AdditiveNoise:
    """The noise in every cell of a sequence of releases, for audits.

    It is ``matrix`` times independent draws.

    Attributes:
        matrix: ``[release, draw]``.
        scale: Scale of one draw, in real units.
        law: ``"laplace"``, ``"gaussian"``, or ``"bits"`` for a binomial distribution with that standard deviation.
    """

    matrix: NDArray[np.float64]
    scale: float
    law: str


@dataclass(frozen=True, slots=True)
class NoiseBitsOfBatches:
    """Binomial noise in every counter of a sequence of batches, for audits.

    Attributes:
        bits: Pairs (number of bits, bias), one for each batch.
    """

    bits: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class RandomAnswers:
    """Randomness in users' answers, which is not added to sums, for audits."""


Noises = list[AdditiveNoise | NoiseBitsOfBatches | RandomAnswers]
"""The independent kinds of noise in releases; an empty list where sums are exact."""


Rng = int | Literal["secure"] | None
"""The values of ``rng=``: a seed, ``"secure"``, or None for a seed from the operating system."""


def rng_of(rng: Any) -> Rng:
    """Return a checked value of ``rng=``.

    Raises:
        TypeError: If it is a generator, or something else that it cannot be.
    """
    if isinstance(rng, np.random.Generator | np.random.BitGenerator | np.random.RandomState):
        raise TypeError(
            f"rng is a {type(rng).__name__}: privacy noise has a generator of its own. Give a seed for an experiment, "
            "'secure' for a cryptographic generator, or leave rng out."
        )
    if isinstance(rng, str):
        if rng != "secure":
            raise ValueError(f"rng is {shown(rng)}: give a seed, 'secure', or leave it out.")
        return "secure"
    return seed_of(rng, "rng")


class NoiseSource:
    """A generator for privacy noise alone.

    It is apart from those of environments and agents, and never re-seeded.

    Args:
        rng: None draws a seed from the operating system. A number is a seed: it makes an experiment reproducible and
            its guarantee void, because anyone who knows the seed can subtract the noise; ledgers note it. ``"secure"``
            draws from a cryptographic generator (ChaCha with 20 rounds, keyed by the operating system), which needs the
            extra ``secure``.
        role: Name of the stream: boundaries with the same seed and different roles draw different noise.
    """

    __slots__ = ("_generator", "_process", "secure", "seeded")

    def __init__(self, rng: Rng = None, *, role: str = "billboard") -> None:
        rng = rng_of(rng)
        if not isinstance(role, str):
            raise TypeError(f"role is {shown(role)}: it must be the name of a stream.")
        self._process = os.getpid()
        self.secure, self.seeded = rng == "secure", isinstance(rng, int)
        if rng == "secure":
            self._generator = np.random.Generator(_secure_bits())
        else:
            # A spawn key of its own: default_rng(seed) is the very stream that Gymnasium's environments draw from.
            sequence = np.random.SeedSequence(rng, spawn_key=tuple(f"privacy noise, {role}".encode()))
            self._generator = np.random.Generator(np.random.PCG64DXSM(sequence))

    @property
    def generator(self) -> np.random.Generator:
        """The generator of all draws.

        It raises RuntimeError in a forked process, which would draw the same numbers.
        """
        if os.getpid() != self._process:
            raise RuntimeError(
                "This process was forked after the boundary was built, and would draw the same noise for other data. "
                "Build the boundary in the process that uses it."
            )
        return self._generator

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "Privacy noise is not copied or pickled: two copies would put the same noise on different data. Build a "
            "new boundary, or continue this one with save_state and load_state."
        )

    def gaussian(self, out: NDArray[np.float64]) -> None:
        """Fill ``out`` with independent standard normals."""
        self.generator.standard_normal(out=out)

    def geometric(
        self, scale: NDArray[np.float64] | float, out: NDArray[np.float64], spare: NDArray[np.float64]
    ) -> None:
        """Fill ``out`` with two-sided geometric noise.

        It has whole numbers k, with P(k) proportional to exp(-abs(k) / scale). ``spare`` is overwritten. The floor of
        an exponential is geometric, and the difference of two independent geometrics is two-sided.
        """
        for numbers in (out, spare):
            self.generator.standard_exponential(out=numbers)
            np.multiply(numbers, scale, out=numbers)
            np.floor(numbers, out=numbers)
        np.subtract(out, spare, out=out)

    def smooth(self, widths: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return uniform whole numbers, to be added to normals that were rounded.

        ``widths`` come from ``widths_of``, and give the range of each number. A normal in double precision is one of
        some 2^60 numbers. Rounded to a fine grid, a cell gets a few more or fewer of them than its neighbours; spread
        over so many cells, all get alike. Proof: docs/proofs/gaussian.md.
        """
        return np.floor(self.generator.random(len(widths)) * widths) - np.floor(0.5 * widths)

    def uniform(self, size: int) -> NDArray[np.float64]:
        """Return uniforms in [0, 1)."""
        return self.generator.random(size)

    def state(self) -> dict[str, Any]:
        """Return the secret state that is needed to continue drawing."""
        if self.secure:
            raise ValueError(
                "The state of a secure noise source cannot be read: a run with rng='secure' cannot be saved."
            )
        return dict(self.generator.bit_generator.state)

    def restore(self, state: dict[str, Any]) -> None:
        """Continue drawing from the state of another source."""
        self.generator.bit_generator.state = state

    def __repr__(self) -> str:
        kind = "secure" if self.secure else "seeded" if self.seeded else "seeded by the operating system"
        return f"NoiseSource({kind})"


FINE = 2.0**28
"""Steps of a grid in a deviation, up to which its cells are hit by as many doubles as one another, but for 1e-7."""


def widths_of(units: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the widths for ``smooth``, in steps of a grid.

    They are powers of two, at most 2^-13 of these deviations of normals. They add 1e-9 of the variance. The
    result is None where all grids are coarse enough.
    """
    return np.exp2(np.floor(np.log2(units)) - 13.0) if units.max() > FINE else None


def round_to_grid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest whole numbers, with halves rounded upwards.

    Unlike round-half-even, this does not depend on the origin.
    """
    return np.floor(values + 0.5)


def _secure_bits() -> Any:
    try:
        from randomgen import ChaCha
    except ImportError as error:
        raise ImportError(f"rng='secure' needs the package randomgen: run {install('secure')}.") from error
    return ChaCha(rounds=20)  # keyed by the operating system

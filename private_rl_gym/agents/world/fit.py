"""A model of continuous states, and how releases of users' corrections improve it.

* ``WorldModel`` - what is known: where users start, and how states change
* ``corrected``, ``centred``, ``scaled`` - the model after a release about steps, about centres, or about scales
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.polynomials import Basis
from private_rl_gym.privacy.release import DynamicsRelease
from private_rl_gym.privacy.requests import Refinement
from private_rl_gym.privacy.statistics.dynamics import LOWEST, Dynamics

__all__ = ["WorldModel", "centred", "corrected", "rescaled", "scaled"]

CONSTANT = -14
"""Numbers whose changes are smaller than two to this power are taken as constant."""

LONGEST_MEANS = 1.7
"""Clip of a user's means, in multiples of the root of the number of means of one kind."""

FIRST_CLIP = 0.7
"""Clip of the first steps, in multiples of the root of the number of targets."""

THRESHOLD = 1.5
"""Deviations of noise by which coefficients are shrunk."""

JUMP = 8.0
"""The largest change of a number in one step of the model, in its unit."""

GROWN = 1.5
"""Factor by which a scale has to have grown for features to be made anew."""

FLOOR = 0.05
"""Least deviation of a start, in scales."""


@dataclass(frozen=True, eq=False, repr=False)
class WorldModel:
    """A model of continuous states, computed from releases alone.

    States are the numbers that networks see.

    Attributes:
        basis: The features.
        centre, scale: ``[i]``; numbers of a state are standardized by them.
        units: ``[target]``: the unit of each number's change, and of the reward; 0 for what is not learned.
        coefficients: ``[feature, target]``, in these units.
        noise: The same: deviations of the noise in them.
        starts, spreads: ``[i]``: the mean start, and its deviation.
        low, high: ``[i]``: limits of states.
        clip: The clip of the next steps.
    """

    basis: Basis
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    units: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    noise: NDArray[np.float64]
    starts: NDArray[np.float64]
    spreads: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    clip: float = 1.0

    @classmethod
    def unknown(cls, basis: Basis, low: NDArray[np.float64], high: NDArray[np.float64]) -> WorldModel:
        """Return a model in which nothing is known and nothing changes."""
        p = basis.inputs
        zeros, ones, none = np.zeros(p), np.ones(p), np.zeros((basis.size, p + 1))
        return cls(basis, zeros, ones, np.ones(p + 1), none, none, zeros, ones, low, high)

    def question(self, about: str, degree: int = 1) -> Refinement:
        """Return a question to the users of the next batch."""
        clip = LONGEST_MEANS * self.basis.inputs**0.5 if about == "centre" else self.clip
        return Refinement(about, self.centre, self.scale, self.units, self.coefficients, clip, degree)

    def standardized(self, states: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return states in units of their scales, around their centre."""
        return (states - self.centre) / self.scale

    def draw_starts(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw states in which users start, with the released moments."""
        signs = rng.choice([-1.0, 1.0], (count, self.basis.inputs))
        unit = 0.9 * signs + 0.436 * rng.standard_normal((count, self.basis.inputs))  # of variance 1, wide and short
        return np.clip(self.starts + self.spreads * unit, self.low, self.high)

    def changes(self, states: NDArray[np.float64], actions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean change of states and the rewards, ``[row, target]``."""
        features = self.basis.features(self.standardized(states), actions)
        return np.clip(features @ self.coefficients, -JUMP, JUMP) * self.units

    def after(self, states: NDArray[np.float64], changes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the states after these changes."""
        after: NDArray[np.float64] = np.clip(states + changes[:, :-1], self.low, self.high)
        return after


def scaled(model: WorldModel, dynamics: Dynamics, release: DynamicsRelease, *, rewards: bool) -> WorldModel:
    """Return the model with scales from votes, before anything is known of dynamics."""
    p = model.basis.inputs
    sizes = _sizes(dynamics.votes(release))
    units = 2.0 ** sizes[p:]
    units[:p][sizes[p : 2 * p] <= CONSTANT] = 0.0
    if not rewards:
        units[p] = 0.0
    return replace(model, scale=2.0 ** sizes[:p], units=units, clip=FIRST_CLIP * float(np.sqrt((units > 0.0).sum())))


def _sizes(votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of each size: the border between the best pair of neighbouring classes."""
    pairs = votes[:, :-1] + votes[:, 1:]
    around = np.pad(votes, ((0, 0), (1, 1)))
    best = (pairs + 0.5 * (around[:, :-3] + around[:, 3:])).argmax(axis=1)
    return np.asarray(best + LOWEST + 1, dtype=np.float64)


def centred(model: WorldModel, dynamics: Dynamics, release: DynamicsRelease) -> WorldModel:
    """Return the model with a centre, and the law of starts, from means."""
    clip = model.question("centre").clip
    (means, starts, squares), noise = dynamics.means(release, clip)
    kept = np.maximum(0.0, 1.0 - (2.0 * noise) ** 2 / np.maximum(means**2, 1e-12))
    means = np.clip(means * kept, -0.97, 0.97)
    spreads = np.sqrt(np.maximum(2.0 * squares - starts**2, FLOOR**2)) * model.scale
    centre, scale = means * model.scale, model.scale * np.sqrt(1.0 - means**2)
    first = np.clip(starts * model.scale, model.low, model.high)
    return replace(model, centre=centre, scale=scale, starts=first, spreads=spreads)


def corrected(model: WorldModel, dynamics: Dynamics, release: DynamicsRelease, asked: Refinement) -> WorldModel:
    """Return the model after the mean step of a batch.

    Its clip is that of the next batch.
    """
    step, noise = dynamics.step(release, asked)
    size = model.basis.size_up_to(asked.degree)
    coefficients = model.coefficients + step
    if noise > 0.0:
        kept = coefficients[:size]
        kept *= np.maximum(0.0, 1.0 - (THRESHOLD * noise) ** 2 / np.maximum(kept**2, 1e-20))
    noises = model.noise.copy()
    noises[:size] = noise
    coefficients[:, model.units == 0.0] = 0.0
    return replace(model, coefficients=coefficients, noise=noises, clip=dynamics.length(release, asked))


def rescaled(model: WorldModel, dynamics: Dynamics, release: DynamicsRelease, rng: np.random.Generator) -> WorldModel:
    """Return the model with features for larger scales, where states spread farther than before.

    Its coefficients are fitted to the old model on random states. No data is needed for that.
    """
    sizes = 2.0 ** _sizes(dynamics.votes(release))[: model.basis.inputs]
    wider = np.maximum(model.scale, np.sqrt(np.maximum(sizes**2 - model.centre**2, 0.0)))
    if (wider < GROWN * model.scale).all():
        return model
    basis, count = model.basis, 20 * model.basis.size + 2000
    standard = np.clip(1.2 * rng.standard_normal((count, basis.inputs)), -3.0, 3.0)
    fresh = rng.random((count, len(basis.choices) + basis.continuous))
    actions = np.floor(fresh * np.array(basis.choices)) if basis.choices else 2.0 * fresh - 1.0
    told = basis.features(standard, actions) @ model.coefficients
    wide = replace(model, scale=wider)
    features = basis.features(wide.standardized(model.centre + model.scale * standard), actions)
    square = features.T @ features / count + 1e-4 * np.eye(basis.size)
    return replace(wide, coefficients=np.asarray(np.linalg.solve(square, features.T @ told / count), dtype=np.float64))

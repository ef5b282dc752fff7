"""Linear moments: the sums of linear learners, in place of counts.

* ``LinearMoments`` - the moments of a user
* ``MomentLevels`` - the same, rounded at random to a coarse grid
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import positive_integer, read_only
from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.features import LinearFeatures
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.accounting.guarantee import Neighbours
from private_rl_gym.privacy.errors import BoundedError, CellError, CombinedError, ErrorDistribution, NoError
from private_rl_gym.privacy.release import GRID, LinearRelease
from private_rl_gym.privacy.requests import Request, Values
from private_rl_gym.privacy.statistics.base import Alphabet, Sensitivity, Statistic

__all__ = ["LinearMoments", "MomentLevels"]

SLACK = 1.0 + 1e-9
"""A factor on sensitivities for rounding in floating point, which is smaller by far."""

FEWEST_LEVELS, MOST_LEVELS = 16, 1024
"""Bounds on the number of levels in a unit: powers of two, so that the fine grid contains the coarse one."""


class LinearMoments(Statistic):
    """A user's moments by stage: phi phi^T, phi V(s'), varphi varphi^T, varphi r.

    V is the value function that the server sends along with the policy, clipped to [0, H - h - 1] on the user's side,
    and phi(s, a) = sum over s' of psi(s, a, s') V(s'). A row whose norm exceeds the features' stated bound is scaled
    down to it there, phi and V alike: least squares stay unbiased, and the guarantee holds. Every block is divided
    by its sensitivity before noise is added, and multiplied by it again in releases.

    Privacy:
        With norms at most B and values in [0, V], replacing a user moves a Gram matrix by at most sqrt(2) B^2 in L2, a
        vector by 2 B V, or sqrt(2) B V where no feature is negative. Each user adds to every block once: in units of
        their sensitivities, all blocks together move by the square root of their number; where features may be
        negative, a matrix and its vector together move by 5/4 in place of sqrt(2). L1 sensitivity depends on the number
        of features in a row that are not zero. Proof: docs/proofs/linear-sensitivity.md.

    Args:
        features: The known features of the model.
        horizon: Number of stages.
        paper: Whether the noise of every block is in proportion to the sensitivity that LinOpt prints, with equal noise
            on and off the diagonal.

    Example:
        >>> from private_rl_gym.planning import LinearFeatures
        >>> moments = LinearMoments(LinearFeatures.tabular(3, 2), horizon=20)
        >>> moments.cells, round(moments.sensitivity().l2 ** 2, 2)  # 4 blocks a stage; nothing follows the last one
        (4320, 78.0)
    """

    name = "linear"
    title = "linear moments"
    request_type: ClassVar[type[Request] | None] = Values
    release_type = LinearRelease
    unit = GRID

    def __init__(self, features: LinearFeatures, horizon: int, *, paper: bool = False) -> None:
        if not isinstance(features, LinearFeatures):
            raise TypeError(f"Linear moments are made from LinearFeatures, not from {type(features).__name__}.")
        self.features, self.paper, self._known = features, paper, features.arrays
        if paper and features.bound > math.sqrt(features.d) * (1.0 + 1e-9):
            raise ValueError(
                f"calibration='paper': LinOpt assumes features of norm at most sqrt(d) H, and these have a bound of "
                f"{features.bound:g} in place of {math.sqrt(features.d):g}. Scale them down."
            )
        self.horizon = H = positive_integer(horizon, "horizon", "stages")
        self.n_states, self.n_actions = features.n_states, features.n_actions
        d, j = features.d, features.reward_d
        self._sizes = {"gram_p": d * (d + 1) // 2, "vector_p": d, "gram_r": j * (j + 1) // 2, "vector_r": j}
        self._width = sum(self._sizes.values())
        self.cells = H * self._width
        self.tops = np.arange(H - 1.0, -1.0, -1.0)  # the largest value after each stage
        self.row_bounds = self.tops * features.bound
        self._exact_sensitivity = self._distances()
        self.public = {"features": features, "units": self.units, "isometric": not paper}

    def _moved(self) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Return the L1 and L2 sensitivity of each family's block, by stage.

        They are in real units.
        """
        moved = {}
        known = self.features
        for name, bound, top, entries, nonnegative in (
            ("p", self.row_bounds, self.tops, known.nonzeros, known.nonnegative),
            ("r", np.full(self.horizon, known.reward_bound), 1.0, known.reward_nonzeros, known.rewards_nonnegative),
        ):
            triangle = (entries + 1.0) / 2.0 if self.paper else 1.0 + (entries - 1.0) / math.sqrt(2.0)
            moved[f"gram_{name}"] = 2.0 * bound**2 * triangle, math.sqrt(2.0) * bound**2
            far = math.sqrt(2.0) if nonnegative else 2.0
            moved[f"vector_{name}"] = 2.0 * math.sqrt(entries) * bound * top, far * bound * top
        return moved

    @cached_property
    def units(self) -> dict[str, NDArray[np.float64]]:
        """The divisor of each block by stage: its own sensitivity, or the printed one."""
        if not self.paper:
            return {family: read_only(l2) for family, (_, l2) in self._moved().items()}
        H, d = float(self.horizon), float(max(self.features.d, self.features.reward_d))
        printed = {"gram_p": d * H**2, "vector_p": math.sqrt(d) * H**2, "gram_r": 1.0, "vector_r": 1.0}
        return {family: read_only(np.full(self.horizon, unit)) for family, unit in printed.items()}

    def sensitivity(self, load: int = 1, neighbours: Neighbours = Neighbours.REPLACE_ONE) -> Sensitivity:
        """Return how far one user moves the moments, in units of their blocks."""
        if neighbours is not Neighbours.REPLACE_ONE:
            raise ValueError(
                "Sums of moments have a bound for replacing one user with any other: leave public_start out, and write "
                "neighbours='replace'."
            )
        return self._exact_sensitivity

    def coded(self, alphabet: Alphabet) -> Statistic:
        """Return the moments as they are, or in levels."""
        if alphabet is Alphabet.LEVELS and not self.paper:
            return MomentLevels(self.features, self.horizon)
        return super().coded(alphabet)

    def _distances(self) -> Sensitivity:
        """Return the distances by which a user moves the vector, in units.

        Rounding may add half a step on either side, in every entry.
        """
        l1: list[float] = []
        squares = 0.0
        for name, nonnegative in (("p", self.features.nonnegative), ("r", self.features.rewards_nonnegative)):
            pair = []
            for family in (f"gram_{name}", f"vector_{name}"):
                unit, size = self.units[family], self._sizes[family]
                used = unit > 0.0
                by_l1, by_l2 = (norm[used] / unit[used] for norm in self._moved()[family])
                l1 += [float(distance) for distance in by_l1 + size * GRID]
                pair.append(by_l2 + math.sqrt(size) * GRID)
            if nonnegative or self.paper:
                squares += float((pair[0] ** 2).sum() + (pair[1] ** 2).sum())
            else:  # two rows cannot be at right angles and opposite at once: 25 / 16 in place of 2
                rounding = math.sqrt(self._sizes[f"gram_{name}"] + self._sizes[f"vector_{name}"]) * GRID
                squares += len(pair[0]) * (1.25 + rounding) ** 2
        parts = ((len(l1), max(l1) * SLACK),)
        return Sensitivity(math.fsum(l1) * SLACK, math.sqrt(squares) * SLACK, parts, (GRID, GRID))

    @cached_property
    def _steps(self) -> NDArray[np.float64]:  # [h, family]
        """Number of steps of the grid in a real unit."""
        with np.errstate(divide="ignore"):
            steps = 1.0 / (np.stack([self.units[family] for family in LinearRelease.families], axis=1) * GRID)
        return np.where(np.isfinite(steps), steps, 0.0)

    def _add(
        self, users: Trajectories, sums: NDArray[np.int64], request: Request | None, uniforms: NDArray[np.float64]
    ) -> None:
        """Add the moments of some users.

        Without a request, the value function is zero.
        """
        sent = request.values if isinstance(request, Values) else np.zeros((self.horizon + 1, self.n_states))
        ceilings = np.append(self.horizon, self.tops)[:, None]
        values = np.clip(sent, 0.0, ceilings)
        _add_moments(
            users.states,
            users.actions,
            users.rewards,
            values,
            self._known,
            (self.features.d, self.n_actions),
            self.row_bounds,
            self._steps,
            1.0 if self.paper else math.sqrt(2.0),
            sums,
        )

    def sums(self, cells: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Return matrices and vectors in real units."""
        shrink = 1.0 if self.paper else math.sqrt(0.5)
        blocks = cells.reshape(self.horizon, self._width)
        families, start = {}, 0
        for family, size in self._sizes.items():
            block = blocks[:, start : start + size] * self.units[family][:, None]
            start += size
            if family.startswith("gram"):
                dimension = self.features.d if family == "gram_p" else self.features.reward_d
                matrices = np.empty((self.horizon, dimension, dimension))
                _unfold(block, shrink, matrices)
                block = matrices
            families[family] = block
        return families

    def vector(self, sums: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return upper triangles and vectors, in units."""
        stretch = 1.0 if self.paper else math.sqrt(2.0)
        blocks = []
        for family in self._sizes:
            block, unit = sums[family], self.units[family][:, None]
            if family.startswith("gram"):
                rows, columns = np.triu_indices(block.shape[-1])
                block = block[:, rows, columns] * np.where(rows == columns, 1.0, stretch)
            blocks.append(np.divide(block, unit, out=np.zeros_like(block), where=unit > 0.0))
        return np.concatenate(blocks, axis=1).ravel()

    def errors(self, error: CellError, users: int) -> dict[str, ErrorDistribution]:
        """Return the error of one entry, at the stage where it is largest.

        In matrices it is an entry on the diagonal.
        """
        return self._scaled(error(GRID))

    def _scaled(self, error: ErrorDistribution) -> dict[str, ErrorDistribution]:
        return {
            family: error.scaled(float(unit.max())) if unit.any() else NoError() for family, unit in self.units.items()
        }

    @cached_property
    def label(self) -> str:
        """Identity of the sums, which differs between sets of features."""
        digest = hashlib.sha256(np.array([self.features.bound, self.features.d, self.paper]).tobytes())
        for array in self._known:
            digest.update(array.tobytes())
        return f"linear moments {digest.hexdigest()}"


class MomentLevels(LinearMoments):
    """Linear moments in which every entry is a whole number of levels.

    Entries are rounded at random on a user's side, without bias. An entry v from -span to span is 2 span bits, of which
    v + span are set: their sum says v, and no more.

    Privacy:
        Replacing a user moves the vector by at most ``reach`` levels in L2, each entry by at most ``most``.
        Proof: docs/proofs/shuffled-vectors.md.

    Args:
        features: The known features of the model.
        horizon: Number of stages.
    """

    def __init__(self, features: LinearFeatures, horizon: int) -> None:
        super().__init__(features, horizon)
        touched = sum(
            stages * (nonzeros * (nonzeros + 1) // 2 + nonzeros)
            for stages, nonzeros in ((horizon - 1, features.nonzeros), (horizon, features.reward_nonzeros))
        )
        l2 = self._exact_sensitivity.l2
        rounded = math.sqrt(max(1, min(self.cells, 2 * touched)))  # entries that are zero are not rounded
        wanted = 50.0 * rounded / l2  # so that rounding costs two parts in a hundred
        self.levels = int(min(MOST_LEVELS, max(FEWEST_LEVELS, 2 ** math.ceil(math.log2(wanted)))))
        self.reach = self.levels * l2 + rounded
        self.most = math.ceil(self.levels * (1.0 + 1e-6)) + 1
        self.span = math.ceil(self.levels * math.sqrt(0.5) * (1.0 + 1e-6)) + 1
        self.unit, self.draws, self.own_bits = 1.0 / self.levels, self.cells, 2 * self.span

    @property
    def exact(self) -> LinearMoments:
        """The moments without rounding."""
        return LinearMoments(self.features, self.horizon)

    def sensitivity(self, load: int = 1, neighbours: Neighbours = Neighbours.REPLACE_ONE) -> Sensitivity:
        """Return how far one user moves the vector, in levels."""
        super().sensitivity(load, neighbours)
        return Sensitivity(math.inf, self.reach, (), (self.unit, self.unit), self.most)

    def _add(
        self, users: Trajectories, sums: NDArray[np.int64], request: Request | None, uniforms: NDArray[np.float64]
    ) -> None:
        """Add the rounded moments of some users."""
        fine, added = round(1.0 / (GRID * self.levels)), np.zeros_like(sums)  # a power of two, and whole
        for user in range(len(users)):
            vector = np.zeros_like(sums)
            super()._add(users.part(user, user + 1), vector, request, uniforms)
            added += (vector + (uniforms[user] * fine).astype(np.int64)) // fine
        sums += added

    def errors(self, error: CellError, users: int) -> dict[str, ErrorDistribution]:
        """Return the error of one entry, from noise and from rounding to levels.

        Rounding adds a variance of at most a quarter of a squared level for each user.
        """
        rounding = BoundedError(0.0, self.unit, users * self.unit**2 / 4.0) if users else NoError()
        return self._scaled(CombinedError.of(error(self.unit), rounding))

    @cached_property
    def label(self) -> str:
        """Identity of the sums.

        It differs between sets of features and numbers of levels.
        """
        return f"{self.exact.label} in {self.levels} levels"


@compiled
def _add_moments(
    states: Any,
    actions: Any,
    rewards: Any,
    values: Any,  # [h, s]
    known: Any,  # offsets, kernels, successors, weights, and varphi [row, j]
    sizes: Any,  # d, and the number of actions
    row_bounds: Any,  # [h]
    steps: Any,  # [h, family], steps of the grid in a real unit
    stretch: float,  # what entries off the diagonal are multiplied by
    sums: Any,
) -> None:
    offsets, kernels, successors, weights, varphi = known
    users, horizon = actions.shape
    d, n_actions = sizes
    j = varphi.shape[1]
    gram_p, gram_r = d * (d + 1) // 2, j * (j + 1) // 2
    width = gram_p + d + gram_r + j
    phi = np.empty(d)
    for user in range(users):
        for h in range(horizon):
            row = states[user, h] * n_actions + actions[user, h]
            at = h * width
            if row_bounds[h] > 0.0:
                phi[:] = 0.0
                for entry in range(offsets[row], offsets[row + 1]):
                    phi[kernels[entry]] += weights[entry] * values[h + 1, successors[entry]]
                norm = np.sqrt((phi * phi).sum())
                scale = row_bounds[h] / norm if norm > row_bounds[h] else 1.0
                phi *= scale
                _fold(phi, steps[h, 0], stretch, sums[at : at + gram_p])
                _add_vector(phi, steps[h, 1] * scale * values[h + 1, states[user, h + 1]], sums[at + gram_p :])
            at += gram_p + d
            _fold(varphi[row], steps[h, 2], stretch, sums[at : at + gram_r])
            _add_vector(varphi[row], steps[h, 3] * rewards[user, h], sums[at + gram_r :])


@compiled
def _fold(x: Any, step: float, stretch: float, sums: Any) -> None:
    """Add the upper triangle of x x^T, row by row."""
    at = 0
    for i in range(len(x)):
        if x[i] != 0.0:
            sums[at] += int(np.floor(x[i] * x[i] * step + 0.5))
            for k in range(i + 1, len(x)):
                if x[k] != 0.0:
                    sums[at + k - i] += int(np.floor(x[i] * x[k] * stretch * step + 0.5))
        at += len(x) - i


@compiled
def _add_vector(x: Any, times: float, sums: Any) -> None:
    for i in range(len(x)):
        sums[i] += int(np.floor(x[i] * times + 0.5))


@compiled
def _unfold(triangles: Any, shrink: float, matrices: Any) -> None:
    """Fill in symmetric matrices from their upper triangles."""
    for h in range(len(triangles)):
        at = 0
        for i in range(matrices.shape[1]):
            matrices[h, i, i] = triangles[h, at]
            for k in range(i + 1, matrices.shape[1]):
                matrices[h, i, k] = matrices[h, k, i] = triangles[h, at + k - i] * shrink
            at += matrices.shape[1] - i

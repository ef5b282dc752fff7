"""The features of linear learners: base kernels and reward features.

They are sparse: no S x A x S x d tensor is held in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.planning.arrays import as_array, positive_integer, read_only

__all__ = ["LinearFeatures"]

LARGEST_DENSE = 100_000_000
"""Largest number of entries of an array that is made dense on request."""

LARGEST_TABULAR = 1000
"""Largest number of features of a tabular problem that is treated as a mixture."""

SMALLEST = 1e-6
"""Smallest norm of features, and smallest ratio of a stated bound to the norm that it bounds."""

NOTHING = 1e-15
"""A probability up to this size is a rounding error."""


class LinearFeatures:
    """The known half of a linear mixture: psi for transitions, and varphi for rewards.

    Psi is one sparse base kernel for each i.

    A model has these features if there are weights with P_h(s' | s, a) = <psi(s, a, s'), theta_h> and mean rewards
    r_h(s, a) = <varphi(s, a), eta_h>: assumption 1 of Zhou's paper (LinOpt). Build them with :meth:`dense`,
    :meth:`sparse` or :meth:`tabular`.

    Attributes:
        n_states, n_actions: Sizes of the problem.
        d: Number of base kernels.
        reward_features: ``[s, a, j]``, varphi.
        offsets: ``[row + 1]``: row s * A + a owns the entries from ``offsets[row]`` to ``offsets[row + 1]``.
        kernels, successors, weights: ``[entry]``: the i, the s' and the psi of an entry, sorted by s' within a row.
        largest: The largest possible norm of phi(s, a) = sum over s' of psi(s, a, s') V(s') for V in [0, 1].
        bound: The stated bound on that norm, by default ``largest``. See :meth:`bounded`.
        arrays: The arrays for compiled functions: offsets, kernels, successors, weights, and varphi ``[row, j]``.
        reward_bound: The largest norm of varphi(s, a).
        nonnegative, rewards_nonnegative: Whether no entry of psi, or of varphi, is negative.
        nonzeros, reward_nonzeros: Largest possible number of nonzero entries of phi(s, a), and of varphi(s, a).

    Example:
        >>> import numpy as np
        >>> drift, stay = np.array([[[0.0, 1.0]], [[0.0, 1.0]]]), np.eye(2)[:, None, :]
        >>> features = LinearFeatures.dense([drift, stay], reward_features=np.eye(2)[:, None, :])
        >>> features
        LinearFeatures(d=2, S=2, A=1, 2 reward features, 4 entries)
        >>> features.of(np.array([0.0, 3.0]))[0, 0]
        array([3., 0.])
    """

    def __init__(
        self,
        rows: NDArray[np.int64],
        kernels: NDArray[np.int64],
        successors: NDArray[np.int64],
        weights: NDArray[np.float64],
        reward_features: ArrayLike,
        d: int,
        bound: float | None = None,
    ) -> None:
        """Build features from entries in any order, one for each (row, kernel, successor).

        See :meth:`dense` and :meth:`sparse` for other arguments.
        """
        varphi = as_array(reward_features, "reward_features")
        if varphi.ndim != 3 or 0 in varphi.shape:
            raise ValueError(f"reward_features have shape {varphi.shape}: they must be [s, a, j].")
        self.n_states, self.n_actions = varphi.shape[:2]
        self.d = positive_integer(d, "d", "base kernels")
        self.reward_features = read_only(varphi)
        self.reward_bound = float(np.linalg.norm(varphi, axis=-1).max())
        if self.reward_bound > 1.0 + 1e-9:
            raise ValueError(
                f"reward_features have norm {self.reward_bound:g}: the model asks for at most 1. Scale them down."
            )
        self.rewards_nonnegative = bool((varphi >= 0.0).all())
        pairs = self.n_states * self.n_actions
        for what, array, most in (
            ("rows", rows, pairs),
            ("kernels", kernels, d),
            ("successors", successors, self.n_states),
        ):
            if array.shape != weights.shape or (array.size and (array.min() < 0 or array.max() >= most)):
                raise ValueError(f"{what} must be as many whole numbers as weights, in 0..{most - 1}.")
        if not np.isfinite(weights).all():
            raise ValueError("A weight of the base kernels is not a finite number.")
        kept = weights != 0.0
        order = np.lexsort((kernels[kept], successors[kept], rows[kept]))
        counts = np.bincount(rows[kept], minlength=self.n_states * self.n_actions)
        self.offsets = read_only(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
        self.kernels, self.successors, self.weights = (
            read_only(np.ascontiguousarray(array[kept][order])) for array in (kernels, successors, weights)
        )
        self.nonnegative = bool((self.weights >= 0.0).all())
        here = np.repeat(np.arange(pairs), np.diff(self.offsets)) * self.d + self.kernels
        self.nonzeros = int(np.bincount(np.unique(here) // self.d, minlength=pairs).max())
        self.reward_nonzeros = int(np.count_nonzero(varphi, axis=-1).max())
        self.largest = self._largest_norm()
        if self.largest == 0.0:
            raise ValueError("The base kernels are zero everywhere, so that they give no transitions.")
        self.bound = self.largest if bound is None else float(bound)
        if not SMALLEST * self.largest <= self.bound < np.inf:
            raise ValueError(
                f"bound is {bound}: it must be at least {SMALLEST:g} times the largest norm of a row, {self.largest:g}."
            )
        for norm in (self.largest, self.reward_bound):
            if not SMALLEST <= norm <= 1.0 / SMALLEST:
                raise ValueError(f"Features have norms of {norm:g}: scale them to the order of 1.")
        self.arrays = self.offsets, self.kernels, self.successors, self.weights, read_only(varphi.reshape(pairs, -1))
        self._closed = True

    def __setattr__(self, name: str, value: Any) -> None:
        if getattr(self, "_closed", False):
            raise AttributeError("Features are public and shared: they do not change. Build others.")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError("Features are public and shared: they do not change. Build others.")

    @classmethod
    def dense(cls, kernels: ArrayLike, reward_features: ArrayLike) -> LinearFeatures:
        """Build features from an array ``kernels[i, s, a, s']``."""
        psi, varphi = as_array(kernels, "kernels"), as_array(reward_features, "reward_features")
        if psi.ndim != 4 or psi.shape[1] != psi.shape[3] or 0 in psi.shape:
            raise ValueError(f"kernels have shape {psi.shape}: they must be [i, s, a, s'], with as many s as s'.")
        if varphi.ndim != 3 or varphi.shape[:2] != psi.shape[1:3]:
            raise ValueError(
                f"reward_features have shape {varphi.shape}: with these kernels they must be "
                f"[{psi.shape[1]}, {psi.shape[2]}, j]."
            )
        i, s, a, following = np.nonzero(psi)
        return cls(s * psi.shape[2] + a, i, following, psi[i, s, a, following], varphi, len(psi))

    @classmethod
    def sparse(cls, successors: ArrayLike, weights: ArrayLike, reward_features: ArrayLike) -> LinearFeatures:
        """Build features from ``successors[i, s, a, b]`` and ``weights[i, s, a, b]``.

        Each (s, a) has b different next states under each kernel.
        """
        psi = as_array(weights, "weights")
        following = np.asarray(successors)
        if np.issubdtype(following.dtype, np.floating) and (following == np.floor(following)).all():
            following = following.astype(np.int64)
        varphi = as_array(reward_features, "reward_features")
        if psi.ndim != 4 or following.shape != psi.shape or varphi.shape[:2] != psi.shape[1:3]:
            raise ValueError(
                f"successors have shape {following.shape}, weights {psi.shape}, reward_features {varphi.shape}: they "
                "must be [i, s, a, b], the same, and [s, a, j]."
            )
        if not np.issubdtype(following.dtype, np.integer) or following.min() < 0 or following.max() >= psi.shape[1]:
            raise ValueError(f"successors must be whole numbers in 0..{psi.shape[1] - 1}, the states.")
        d, S, A, width = psi.shape
        rows = np.broadcast_to(np.arange(S * A).reshape(S, A, 1), psi.shape).ravel()
        kernels = np.repeat(np.arange(d), S * A * width)
        return cls(rows, kernels, following.astype(np.int64).ravel(), psi.ravel(), varphi, d)

    @classmethod
    def tabular(cls, n_states: int, n_actions: int) -> LinearFeatures:
        """Return the features that every tabular model has.

        There is one for each (s, a, s'), so d = S A S, and one reward feature for each (s, a). They are
        for small problems, because moments have d (d + 1) / 2 entries for each stage.
        """
        S = positive_integer(n_states, "n_states", "states")
        A = positive_integer(n_actions, "n_actions", "actions")
        d = S * A * S
        if d > LARGEST_TABULAR:
            raise ValueError(
                f"{S} states and {A} actions make d = {d} features, whose moments would have {d * (d + 1) / 2:.1e} "
                "entries a stage. Learn from counts, with statistic='tabular'."
            )
        rows, kernels, successors = np.repeat(np.arange(S * A), S), np.arange(d), np.tile(np.arange(S), S * A)
        return cls(rows, kernels, successors, np.ones(d), np.eye(S * A).reshape(S, A, S * A), d)

    def bounded(self, bound: float) -> LinearFeatures:
        """Return the same features with a smaller stated bound on the norm of phi.

        The bound is for V in [0, 1].

        Users scale longer rows down to the bound, so that noise in vectors can shrink in proportion to it, and noise in
        Gram matrices in proportion to its square. Least squares stay unbiased, but long rows get less weight. This is
        useful if few rows are long.
        """
        entries = self._rows, self.kernels, self.successors, self.weights
        return LinearFeatures(*entries, self.reward_features, self.d, min(float(bound), self.largest))

    @property
    def reward_d(self) -> int:
        """Number of reward features."""
        return int(self.reward_features.shape[2])

    def of(self, values: NDArray[np.float64]) -> NDArray[np.float64]:  # [s, a, i]
        """Return phi(s, a), the features that predict the next value linearly.

        phi(s, a) is the sum of psi(s, a, s') V(s') over s'.
        """
        values = np.asarray(values, dtype=np.float64)
        if values.shape != (self.n_states,):
            raise ValueError(f"values have shape {values.shape}: there are {self.n_states} states.")
        phi = self._per_feature(self.weights * values[self.successors])
        return phi.reshape(self.n_states, self.n_actions, self.d)

    def _per_feature(self, entries: NDArray[np.float64]) -> NDArray[np.float64]:  # [row, i]
        """Return the sum of the entries of each row and feature."""
        rows = len(self.offsets) - 1
        sums = np.bincount(self._rows * self.d + self.kernels, entries, rows * self.d)
        return sums.astype(np.float64, copy=False).reshape(rows, self.d)

    @property
    def _rows(self) -> NDArray[np.int64]:
        """Return the row of each entry."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def _largest_norm(self) -> float:
        """Return the largest norm of phi over rows, for values in [0, 1].

        Each feature lies between the sum of its negative entries and that of its positive ones; if none is negative,
        the bound is reached by V = 1.
        """
        above = self._per_feature(np.maximum(self.weights, 0.0))
        below = self._per_feature(np.maximum(-self.weights, 0.0))
        return float(np.linalg.norm(np.maximum(above, below), axis=1).max())

    def to_dense(self) -> NDArray[np.float64]:  # [i, s, a, s']
        """Return psi as one array; raise an error if it would be too large."""
        shape = (self.d, self.n_states, self.n_actions, self.n_states)
        check_dense(shape, "The base kernels")
        psi = np.zeros(shape)
        rows = self._rows
        np.add.at(psi, (self.kernels, rows // self.n_actions, rows % self.n_actions, self.successors), self.weights)
        return psi

    def mixed(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return the transitions <psi, theta> for ``weights[h, i]``, packed.

        The arrays are offsets over rows (h * S + s) * A + a, next states, and numbers.
        """
        rows, count = self._rows, len(self.offsets) - 1
        first = np.empty(len(rows), dtype=np.bool_)  # entries with one row and successor stand side by side
        first[:1] = True
        first[1:] = (np.diff(rows) != 0) | (np.diff(self.successors) != 0)
        starts = np.flatnonzero(first)
        lengths, successors, values = [], [], []
        for theta in weights:
            numbers = np.add.reduceat(self.weights * theta[self.kernels], starts)
            kept = np.abs(numbers) > NOTHING
            lengths.append(np.bincount(rows[starts][kept], minlength=count))
            successors.append(self.successors[starts][kept])
            values.append(numbers[kept])
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
        return offsets, np.concatenate(successors), np.concatenate(values)

    def __reduce__(self) -> tuple[Any, ...]:
        return LinearFeatures, (
            self._rows,
            self.kernels,
            self.successors,
            self.weights,
            self.reward_features,
            self.d,
            self.bound,
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> LinearFeatures:
        """Return the object itself, because it never changes."""
        return self

    def __repr__(self) -> str:
        sizes = f"d={self.d}, S={self.n_states}, A={self.n_actions}"
        return f"LinearFeatures({sizes}, {self.reward_d} reward features, {len(self.weights)} entries)"


def check_dense(shape: tuple[int, ...], what: str) -> None:
    """Raise an error if a dense array would not fit into memory."""
    entries = int(np.prod(shape, dtype=np.int64))
    if entries > LARGEST_DENSE:
        raise ValueError(f"{what} as one array of shape {shape} would have {entries:.1e} entries: they stay sparse.")

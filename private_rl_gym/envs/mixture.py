"""Linear mixtures: known kernels and features, hidden weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.envs.model import RewardLaw, TabularModel
from private_rl_gym.planning.arrays import as_array, read_only

__all__ = ["Mixture"]


@dataclass(frozen=True, init=False, eq=False, repr=False, slots=True)
class Mixture:
    """A linear mixture model: what a linear learner knows of it, and what it has to find out.

    Transitions are P_h(s' | s, a) = <psi(s, a, s'), theta_h> and rewards r_h(s, a) = <varphi(s, a), eta_h>, as in
    assumption 1 of Zhou's paper on linear function approximation (LinOpt).

    Attributes:
        kernels: ``[i, s, a, s']``, the known psi, one base kernel for each i.
        weights: ``[h, i]``, the hidden theta; axis h has length H, or 1 where all stages share them.
        reward_features: ``[s, a, j]``, the known varphi.
        reward_weights: ``[h, j]``, the hidden eta.
    """

    kernels: NDArray[np.float64]
    weights: NDArray[np.float64]
    reward_features: NDArray[np.float64]
    reward_weights: NDArray[np.float64]

    def __init__(
        self, kernels: ArrayLike, weights: ArrayLike, reward_features: ArrayLike, reward_weights: ArrayLike
    ) -> None:
        """Check and keep a mixture; weights without a stage axis stand for all stages."""
        psi, varphi = as_array(kernels, "kernels"), as_array(reward_features, "reward_features")
        theta = np.atleast_2d(as_array(weights, "weights"))
        eta = np.atleast_2d(as_array(reward_weights, "reward_weights"))
        if psi.ndim != 4 or psi.shape[1] != psi.shape[3] or theta.shape[1:] != psi.shape[:1]:
            raise ValueError(
                f"kernels have shape {psi.shape} and weights {theta.shape}: they must be [i, s, a, s'] and [h, i], "
                "with one weight for each kernel."
            )
        if varphi.shape[:2] != psi.shape[1:3] or varphi.ndim != 3 or eta.shape[1:] != varphi.shape[2:]:
            raise ValueError(
                f"reward_features have shape {varphi.shape} and reward_weights {eta.shape}: they must be [s, a, j] "
                "and [h, j], with the kernels' states and actions."
            )
        for name, rows, limit in (
            ("reward_features", varphi, 1.0),
            ("weights", theta, np.sqrt(theta.shape[1])),
            ("reward_weights", eta, np.sqrt(eta.shape[1])),
        ):
            norm = float(np.linalg.norm(rows, axis=-1).max())
            if norm > limit + 1e-9:
                raise ValueError(f"{name} have norm {norm:g}: the model asks for at most {limit:g}. Scale them down.")
        fields = {"kernels": psi, "weights": theta, "reward_features": varphi, "reward_weights": eta}
        for name, value in fields.items():
            object.__setattr__(self, name, read_only(value))

    @property
    def d(self) -> int:
        """Number of base kernels."""
        return int(self.kernels.shape[0])

    def features_of(self, values: NDArray[np.float64]) -> NDArray[np.float64]:  # [s, a, i]
        """phi(s, a) = sum over s' of psi(s, a, s') V(s'): what predicts the next value, linearly."""
        return np.moveaxis(self.kernels @ values, 0, -1)

    def tabular(self, initial: ArrayLike, horizon: int, reward_law: RewardLaw) -> TabularModel:
        """The same model as dense arrays."""
        transitions = np.tensordot(self.weights, self.kernels, axes=1)
        rewards = np.moveaxis(self.reward_features @ self.reward_weights.T, -1, 0)
        return TabularModel(transitions, rewards, initial, horizon, reward_law)

    def __reduce__(self) -> tuple[Any, ...]:
        return Mixture, (self.kernels, self.weights, self.reward_features, self.reward_weights)

    def __repr__(self) -> str:
        d, S, A, _ = self.kernels.shape
        return f"Mixture(d={d}, S={S}, A={A}, {self.reward_features.shape[2]} reward features)"

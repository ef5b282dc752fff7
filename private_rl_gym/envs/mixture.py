"""Linear mixtures: known kernels and features, hidden weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.envs.finite import RewardLaw
from private_rl_gym.envs.model import TabularModel
from private_rl_gym.envs.sparse import SparseModel
from private_rl_gym.planning.arrays import EXACT, as_array, read_only
from private_rl_gym.planning.features import LinearFeatures

__all__ = ["Mixture"]


@dataclass(frozen=True, init=False, eq=False, repr=False, slots=True)
class Mixture:
    """A linear mixture model: features that a linear learner knows, and weights that it has to learn.

    Transitions are P_h(s' | s, a) = <psi(s, a, s'), theta_h> and rewards r_h(s, a) = <varphi(s, a), eta_h>, as in
    assumption 1 of Zhou's paper on linear function approximation (LinOpt).

    Attributes:
        features: The known psi and varphi; all that a learner may be handed.
        weights: ``[h, i]``, the hidden theta; axis h has length H, or 1 where all stages share them.
        reward_weights: ``[h, j]``, the hidden eta.
    """

    features: LinearFeatures
    weights: NDArray[np.float64]
    reward_weights: NDArray[np.float64]

    def __init__(self, features: LinearFeatures, weights: ArrayLike, reward_weights: ArrayLike) -> None:
        """Check and keep a mixture; weights without a stage axis stand for all stages."""
        theta = np.atleast_2d(as_array(weights, "weights"))
        eta = np.atleast_2d(as_array(reward_weights, "reward_weights"))
        for name, rows, wanted in (("weights", theta, features.d), ("reward_weights", eta, features.reward_d)):
            if rows.ndim != 2 or rows.shape[1] != wanted:
                raise ValueError(f"{name} have shape {rows.shape}: with {features} they must be [h, {wanted}].")
            norm, limit = float(np.linalg.norm(rows, axis=-1).max()), np.sqrt(wanted)
            if norm > limit + 1e-9:
                raise ValueError(f"{name} have norm {norm:g}: the model asks for at most {limit:g}. Scale them down.")
        for name, value in (("weights", theta), ("reward_weights", eta)):
            object.__setattr__(self, name, read_only(value))
        object.__setattr__(self, "features", features)

    @classmethod
    def of_tabular(cls, model: TabularModel) -> Mixture:
        """Any tabular model as a mixture, d = S A S: its transitions are the weights."""
        features = LinearFeatures.tabular(model.n_states, model.n_actions)
        return cls(
            features,
            model.transitions.reshape(len(model.transitions), -1),
            model.rewards.reshape(len(model.rewards), -1),
        )

    @property
    def d(self) -> int:
        """Number of base kernels."""
        return self.features.d

    @property
    def kernels(self) -> NDArray[np.float64]:  # [i, s, a, s']
        """Psi as one array; raises ``ValueError`` if it would be too large."""
        return self.features.to_dense()

    @property
    def reward_features(self) -> NDArray[np.float64]:  # [s, a, j]
        """Varphi, the features of rewards."""
        return self.features.reward_features

    def features_of(self, values: NDArray[np.float64]) -> NDArray[np.float64]:  # [s, a, i]
        """phi(s, a) = sum over s' of psi(s, a, s') V(s'), the features that predict the next value linearly."""
        return self.features.of(values)

    def model(self, initial: ArrayLike = 0, horizon: int = 1, reward_law: RewardLaw = "bernoulli") -> SparseModel:
        """The model with these weights."""
        for name, rows in (("weights", self.weights), ("reward_weights", self.reward_weights)):
            if len(rows) not in (1, horizon):
                raise ValueError(f"{name} are for {len(rows)} stages, and the horizon is {horizon}: give one, or all.")
        rewards = np.moveaxis(self.reward_features @ self.reward_weights.T, -1, 0)
        rewards = np.where(
            np.abs(rewards - rewards.clip(0.0, 1.0)) < EXACT, rewards.clip(0.0, 1.0), rewards
        )  # rounding
        return SparseModel(*self.features.mixed(self.weights), rewards, initial, horizon, reward_law)

    def __reduce__(self) -> tuple[Any, ...]:
        return Mixture, (self.features, self.weights, self.reward_weights)

    def __repr__(self) -> str:
        known = self.features
        return f"Mixture(d={known.d}, S={known.n_states}, A={known.n_actions}, {known.reward_d} reward features)"

"""Linear mixtures: known kernels and features, hidden weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.envs.finite import RewardLaw
from private_rl_gym.envs.model import TabularModel
from private_rl_gym.envs.sparse import SparseModel
from private_rl_gym.planning.arrays import EXACT, as_array, read_only, shown
from private_rl_gym.planning.features import LinearFeatures

__all__ = ["Mixture"]


@dataclass(frozen=True, init=False, eq=False, repr=False, slots=True)
class Mixture:
    """A linear mixture model: known features, and hidden weights to learn.

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
        """Check and store a mixture.

        Weights without a stage axis are used at all stages.
        """
        if not isinstance(features, LinearFeatures):
            raise TypeError(f"features is {shown(features)}: give LinearFeatures, such as LinearFeatures.dense(...).")
        theta = np.atleast_2d(as_array(weights, "weights"))
        eta = np.atleast_2d(as_array(reward_weights, "reward_weights"))
        for name, rows, wanted in (("weights", theta, features.d), ("reward_weights", eta, features.reward_d)):
            if rows.ndim != 2 or not len(rows) or rows.shape[1] != wanted:
                raise ValueError(f"{name} have shape {rows.shape}: with {features} they must be [h, {wanted}].")
            norm, limit = float(np.linalg.norm(rows, axis=-1).max()), np.sqrt(wanted)
            if norm > limit + 1e-9:
                raise ValueError(f"{name} have norm {norm:g}: the model asks for at most {limit:g}. Scale them down.")
        for name, value in (("weights", theta), ("reward_weights", eta)):
            object.__setattr__(self, name, read_only(value))
        object.__setattr__(self, "features", features)

    @classmethod
    def of_tabular(cls, model: TabularModel) -> Mixture:
        """Return any tabular model as a mixture with d = S A S.

        Its transitions are the weights.
        """
        features = LinearFeatures.tabular(model.n_states, model.n_actions)
        return cls(
            features,
            model.transitions.reshape(len(model.transitions), -1),
            model.rewards.reshape(len(model.rewards), -1),
        )

    def model(self, initial: ArrayLike = 0, horizon: int = 1, reward_law: RewardLaw = "bernoulli") -> SparseModel:
        """Return the model with these weights."""
        for name, rows in (("weights", self.weights), ("reward_weights", self.reward_weights)):
            if len(rows) not in (1, horizon):
                raise ValueError(f"{name} are for {len(rows)} stages, and the horizon is {horizon}: give one, or all.")
        rewards = np.moveaxis(self.features.reward_features @ self.reward_weights.T, -1, 0)
        clipped = rewards.clip(0.0, 1.0)
        rewards = np.where(np.abs(rewards - clipped) < EXACT, clipped, rewards)  # rounding
        return SparseModel(*self.features.mixed(self.weights), rewards, initial, horizon, reward_law)

    def __reduce__(self) -> tuple[Any, ...]:
        return Mixture, (self.features, self.weights, self.reward_weights)

    def __repr__(self) -> str:
        known = self.features
        return f"Mixture(d={known.d}, S={known.n_states}, A={known.n_actions}, {known.reward_d} reward features)"

"""Models for policy elimination in practice, estimated from all batches so far.

There is a likely model, and an optimistic and a pessimistic one.

* ``WeightedSums`` - the sums of all batches, each weighted by its users over its noise
* ``ModelInterval`` - a likely model, and the same with rewards raised and lowered by their uncertainty

All of it is computed from releases: docs/proofs/post-processing.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.projection import project_counts
from private_rl_gym.planning.search import EstimatedModel, simplex
from private_rl_gym.privacy.release import Release

__all__ = ["ModelInterval", "WeightedSums", "starts_of"]


@dataclass(frozen=True, slots=True, eq=False)
class WeightedSums:
    """Weighted sums over batches.

    The weight of batch i is users / (users + noise^2). It is at most 1, and small where noise dominates. Transitions,
    visits and rewards have the same weights, so their ratios are estimates. A weighted visit is worth at most a visit.

    Attributes:
        m: ``[h, s, a, s']``, transitions.
        n: ``[h, s, a]``, visits.
        r: ``[h, s, a]``, rewards.
        starts: ``[s]``, users by where they started; the last entry counts them all.
        variance: The variance of the noise in an entry of ``n``.
    """

    m: NDArray[np.float64]
    n: NDArray[np.float64]
    r: NDArray[np.float64]
    starts: NDArray[np.float64]
    variance: float = 0.0

    @classmethod
    def nothing(cls, horizon: int, n_states: int, n_actions: int) -> WeightedSums:
        """Return the sums of no batches."""
        visits = np.zeros((horizon, n_states, n_actions))
        return cls(np.zeros((*visits.shape, n_states)), visits, visits, np.zeros(n_states + 1))

    def plus(self, batch: Release, noise: float) -> WeightedSums:
        """Return these sums and another batch.

        ``noise`` is the standard deviation of the noise in its visits.
        """
        weight = 1.0 if noise == 0.0 else batch.users / (batch.users + noise**2)
        return WeightedSums(
            self.m + weight * batch.m,
            self.n + weight * batch.n,
            self.r + weight * batch.r,
            self.starts + weight * starts_of(batch),
            self.variance + (weight * noise) ** 2,
        )


@dataclass(frozen=True, slots=True, eq=False)
class ModelInterval:
    """A likely model, and the same model with raised and with lowered rewards.

    A policy whose value in ``best`` is below the largest value in ``worst`` cannot be the best one, as far as the
    widths hold. A pair of state and action that was seen less than its noise is unknown: it leads to the absorbing
    state, and pays the most that could still be earned in ``best``, and nothing in the other two.
    """

    likely: EstimatedModel
    best: EstimatedModel
    worst: EstimatedModel

    @classmethod
    def of(cls, sums: WeightedSums, iota: float, sampling: float, noise: float) -> ModelInterval:
        """Return the interval around these sums.

        Args:
            sums: All batches.
            iota: The logarithm in the width for sampling.
            sampling: The multiplier of 2 sqrt(Var(V) iota / n) + sqrt(2 iota / n).
            noise: The multiplier of (H - h) sigma / n, where sigma is the noise in a count of visits.
        """
        H, S, A = sums.n.shape
        sigma = math.sqrt(sums.variance)
        m, n = project_counts(sums.m, sums.n, 0.0)
        unknown = n < max(1.0, sigma)
        visits = np.maximum(n, 1.0)
        P = np.where(unknown[..., None], 0.0, m / visits[..., None])  # [h, s, a, s']
        r = np.where(unknown, 0.0, np.clip(sums.r / visits, 0.0, 1.0))  # [h, s, a]
        left = np.arange(H, 0, -1.0)[:, None, None]  # the most that can still be earned
        width = sampling * (2.0 * np.sqrt(_variances(P, r) * iota / visits) + np.sqrt(2.0 * iota / visits))
        width = np.minimum(width + noise * left * sigma / visits, left)
        likely = EstimatedModel.empty(H, S, A).starting(simplex(sums.starts))
        likely.transitions[:, :S, :, :S] = P
        likely.transitions[:, :S, :, S] = np.maximum(0.0, 1.0 - P.sum(axis=-1))
        likely.transitions[:, S, :, S] = 1.0
        likely.rewards[:, :S] = r
        return cls(
            likely,
            _paying(likely, np.where(unknown, left, r + width)),
            _paying(likely, np.where(unknown, 0.0, r - width)),
        )


def starts_of(batch: Release) -> NDArray[np.float64]:
    """Return the number of users who started in each state, and of all users.

    The last entry counts all users of the batch.
    """
    seen = batch.n[0].sum(axis=-1)
    if batch.absorbing is not None:  # where episodes end, none begins
        seen[batch.absorbing] = 0.0
    return np.append(seen, batch.users)


def _variances(P: NDArray[np.float64], r: NDArray[np.float64]) -> NDArray[np.float64]:  # [h, s, a]
    """Return the variance of the next value, by the best policy of this model."""
    variances, V = np.empty_like(r), np.zeros(r.shape[1])
    for h in reversed(range(len(r))):
        mean = P[h] @ V
        variances[h] = np.maximum(P[h] @ V**2 - mean**2, 0.0)
        V = (r[h] + mean).max(axis=-1)
    return variances


def _paying(model: EstimatedModel, rewards: NDArray[np.float64]) -> EstimatedModel:
    """Return the same model with other rewards."""
    paid = model.rewards.copy()
    paid[:, :-1] = rewards
    return replace(model, rewards=paid)

"""A release as a model to train any learner on.

This is post-processing: docs/proofs/post-processing.md.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.envs.model import TabularModel
from private_rl_gym.planning.arrays import among, as_array, shown
from private_rl_gym.planning.projection import project_counts
from private_rl_gym.privacy.release import Published, Release

__all__ = ["Belief", "private_model"]

Belief = Literal["mean", "optimistic", "sampled", "pessimistic"]
"""The view that a model takes where a release says little."""


def private_model(
    release: Published,
    *,
    belief: Belief = "mean",
    start: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
) -> TabularModel:
    """Return the model that is estimated from a release.

    It divides projected counts. A count below its noise is not used: if a state and action were visited less than one
    standard deviation of the noise, all next states are equally likely and the reward is 0. The state in which episodes
    wait that ended early is known without data.

    Args:
        release: The release.
        belief: The model to return. ``"mean"`` is the estimate itself. ``"optimistic"``, for exploration, raises the
            rewards by the possible error from noise and sampling; a state and action whose count is below its noise
            pays 1 at all later steps. ``"sampled"`` is a random model, with more variance where less is known.
            ``"pessimistic"``, for offline learning, lowers the rewards by twice the error from noise: rewards are not
            below 0, so that noise would otherwise raise rare rewards.
        start: The state in which users start, or the probabilities of all, where this is known publicly. Counts that
            are pooled over stages do not say it.
        rng: The generator of a sampled model.
    """
    if not isinstance(release, Release):
        raise ValueError(  # noqa: TRY004 - the boundary is wrong, not the type
            "A release of linear moments makes no model, because it has no start states. Build the boundary with "
            "statistic='tabular'."
        )
    if not among(belief, get_args(Belief)):
        raise ValueError(f"belief is {shown(belief)}: choose {', '.join(map(repr, get_args(Belief)))}.")
    if release.pooled and start is None:
        raise ValueError(
            "Counts pooled over stages have no start states. If the start is publicly known, give start=, a state or "
            "one probability for each state. Otherwise build the boundary without stationary=True."
        )
    horizon, n_states, _ = release.n.shape
    m, n = project_counts(release.m, release.n, 0.0)
    noise = max(release.noise_std["n"], 0.5)
    known = n > noise
    transitions = np.where(known[..., None], m / np.maximum(n, 1e-12)[..., None], 1.0 / n_states)
    rewards = np.where(known, np.clip(release.r / np.maximum(n, 1e-12), 0.0, 1.0), 0.0)
    if belief == "optimistic":
        hidden = (noise + np.sqrt(np.maximum(n, 0.0))) / np.maximum(n, 1e-12)
        rewards = np.where(known, np.minimum(1.0, rewards + hidden), 1.0)
        transitions = np.where(known[..., None], transitions, np.eye(n_states)[:, None])
    elif belief == "pessimistic":
        rewards = np.maximum(0.0, rewards - 2.0 * release.noise_std["r"] / np.maximum(n, 1e-12))
    elif belief == "sampled":
        if rng is None:
            raise ValueError("A sampled model is drawn with rng=, a generator that belongs to the learner.")
        if not isinstance(rng, np.random.Generator):
            raise TypeError(f"rng is {shown(rng)}: give one of numpy's generators, such as np.random.default_rng(0).")
        transitions, rewards = _sampled(transitions, rewards, n, noise, rng)
    if release.absorbing is not None:
        transitions[:, release.absorbing] = np.eye(n_states)[release.absorbing]
        rewards[:, release.absorbing] = release.waiting_reward
    return TabularModel(transitions, rewards, _initial(release, n, start), horizon)


def _sampled(
    transitions: NDArray[np.float64],
    rewards: NDArray[np.float64],
    n: NDArray[np.float64],
    noise: float,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return rows drawn at random around the estimate.

    Their spread is that of an estimate from fewer users without noise.
    """
    n = np.maximum(n, 0.0)
    worth = n**2 / (n + noise**2) + 1.0  # the users whose chance is as large as chance and noise together
    shares = rng.gamma(transitions * worth[..., None] + 1.0 / transitions.shape[-1])
    shares = np.maximum(shares, 1e-300)
    drawn = rng.beta(rewards * worth + 0.5, (1.0 - rewards) * worth + 0.5)
    return shares / shares.sum(axis=-1, keepdims=True), drawn


def _initial(release: Release, n: NDArray[np.float64], start: ArrayLike | None) -> NDArray[np.float64]:
    n_states = n.shape[1]
    if start is not None:
        given = as_array(start, "start")
        if given.ndim:
            return given  # a model checks that these are probabilities
        if given not in range(n_states):
            raise ValueError(f"start is {start}: a state is a whole number from 0 to {n_states - 1}.")
        return np.asarray(np.eye(n_states)[int(given)])
    arrived = n[0].sum(axis=1)  # at stage 0
    if release.absorbing is not None:
        arrived[release.absorbing] = 0.0  # where episodes end, none begins
    total = arrived.sum()
    return arrived / total if total > 0.0 else np.full(n_states, 1.0 / n_states)

"""A release as a model to train any learner on. This is post-processing: docs/proofs/post-processing.md."""

from __future__ import annotations

import numpy as np

from private_rl_gym.envs.model import TabularModel
from private_rl_gym.privacy.projection import project_counts
from private_rl_gym.privacy.release import Published, Release

__all__ = ["private_model"]


def private_model(release: Published) -> TabularModel:
    """The model that is estimated from a release by dividing projected counts.

    A count below its noise is not used: if a state and action were visited less than one standard deviation of the
    noise, all next states are equally likely and the reward is 0. The state in which episodes wait that ended early is
    known without data.
    """
    if not isinstance(release, Release):
        raise ValueError(  # noqa: TRY004 - the boundary is wrong, not the type
            "A release of linear moments makes no model: it does not say where users start. Build the boundary with "
            "statistic='tabular'."
        )
    if release.pooled:
        raise ValueError(
            "Counts that are pooled over stages do not say where users start, so that they make no model: build the "
            "boundary without stationary=True."
        )
    horizon, n_states, _ = release.n.shape
    m, n = project_counts(release.m, release.n, 0.0)
    known = n > max(release.noise_std["n"], 0.5)
    transitions = np.where(known[..., None], m / np.maximum(n, 1e-12)[..., None], 1.0 / n_states)
    rewards = np.where(known, np.clip(release.r / np.maximum(n, 1e-12), 0.0, 1.0), 0.0)
    if release.absorbing is not None:
        transitions[:, release.absorbing] = np.eye(n_states)[release.absorbing]
        rewards[:, release.absorbing] = release.waiting_reward
    arrived = n[0].sum(axis=1)  # at stage 0
    if release.absorbing is not None:
        arrived[release.absorbing] = 0.0  # where episodes end, none begins
    total = arrived.sum()
    initial = arrived / total if total > 0.0 else np.full(n_states, 1.0 / n_states)
    return TabularModel(transitions, rewards, initial, horizon)

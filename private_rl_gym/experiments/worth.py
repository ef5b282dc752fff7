"""The worth of an offline policy, with its errors and its doubts, from a release and public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.envs.model import TabularModel
from private_rl_gym.experiments.evidence import Evidence
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.rewards import RewardRange
from private_rl_gym.privacy.projection import project_counts
from private_rl_gym.privacy.release import Release
from private_rl_gym.wrappers.private_model import private_model

__all__ = ["Planner", "Worth", "doubts", "worth_of"]

Planner = Callable[[Release], Policy]
"""The way in which the policy was planned."""

NUMBERS = 2e7  # numbers that are drawn in all
DRAWS = 40  # at most, where tables are small


@dataclass(frozen=True, slots=True)
class Worth:
    """Mean returns in the units of the table. An error is one standard deviation, of noise and of sampling together.

    Attributes:
        logged: The mean return of the users in the table.
        logged_error: Its error.
        policy: The value of the policy by the noisy model.
        policy_error: Its error, from draws of noise and of users around the release.
        flattery: By how much planning in such draws overstated the worth of the policies that came out. The truth may
            be twice as much: a draw is around a model that is known there, and not around one that noise has made.
        least: The least possible return.
        largest: The largest possible return.
    """

    logged: float
    logged_error: float
    policy: float
    policy_error: float
    flattery: float
    least: float
    largest: float

    @property
    def gain(self) -> float:
        """By how much the policy seems to be better than the users' own choices, without twice what flatters it."""
        return self.policy - 2.0 * max(self.flattery, 0.0) - self.logged


def worth_of(release: Release, policy: Policy, plan: Planner, rewards: RewardRange, *, stationary: bool) -> Worth:
    """The worth of a policy that was planned from a release.

    Its error, and by how much it flatters, are found by a parametric bootstrap: noise of the same law, and the chance
    of so many users, are added to the released counts; the policy is valued again in the model that they make, and so
    are the policies that would have been planned there. The draws are the same for the same release. All of it is
    post-processing.
    """
    horizon, width = len(release.n), rewards.high - rewards.low
    model = _model(release, stationary=stationary)
    value = model.value_of(policy)
    rng = np.random.default_rng(0)
    draws = int(np.clip(NUMBERS / release.m.size, 4, DRAWS))
    again, flattered = [], []
    for _ in range(draws):
        other = _drawn(release, rng)
        theirs = _model(other, stationary=stationary)
        rival = plan(other)
        again.append(theirs.value_of(policy))
        flattered.append(theirs.value_of(rival) - model.value_of(rival))
    logged, noise = _logged(release)
    least, largest = horizon * rewards.low, horizon * rewards.high
    return Worth(
        float(np.clip(least + width * logged, least, largest)),
        width * math.hypot(noise, _deviation(release, model, stationary=stationary) / math.sqrt(release.users)),
        float(np.clip(least + width * value, least, largest)),
        width * float(np.std(again, ddof=1)),
        width * float(np.mean(flattered)),
        least,
        largest,
    )


def doubts(worth: Worth, evidence: Evidence, q: NDArray[np.float64], rewards: RewardRange) -> list[str]:
    """The reasons why a policy should not be trusted, each a sentence or two; none if there are none.

    Args:
        worth: The worth of the policy.
        evidence: The counts that it was planned from.
        q: ``[h, s, a]``, its pessimistic values, without the state where ended episodes wait.
        rewards: The range of rewards.
    """
    found = []
    horizon, n_states, n_actions = q.shape
    visits, noise = evidence.spread(n_states, n_actions), evidence.noise
    if noise > visits:
        found.append(
            f"The noise in a count of visits is {noise:,.1f}, and there are {visits:,.1f} visits to count, were they "
            "spread evenly: most of what was published is noise. Take more users, fewer states or stages, or a larger "
            "epsilon."
        )
    unknown = int((q.max(axis=-1) <= 0.0).sum())
    if 2 * unknown > horizon * n_states:
        found.append(
            f"In {unknown:,} of {horizon * n_states:,} places (a stage and a state) no action is known to be worth "
            "anything: the policy has none there. Its value counts the least reward for what is not known, and its "
            "error does not hold that."
        )
    possible = worth.largest - worth.least
    for name, error in (
        ("the mean of the users in the table", worth.logged_error),
        ("the policy's value", worth.policy_error),
    ):
        if 2.0 * error > possible:
            found.append(
                f"The error of {name} is {error:.3f}, and all that is possible lies between {worth.least:g} and "
                f"{worth.largest:g}: the number says nothing."
            )
    if worth.policy < worth.logged:
        found.append(
            "By these numbers the policy is worth less than what the users did themselves: it is no reason to change "
            "anything."
        )
    elif worth.gain < math.hypot(worth.logged_error, worth.policy_error):
        found.append(
            "By these numbers the policy cannot be told from what the users did themselves: it is ahead of them by "
            f"{worth.policy - worth.logged:.3f}, of which {max(worth.flattery, 0.0):.3f} or more is flattery, and the "
            f"errors are {worth.policy_error:.3f} and {worth.logged_error:.3f}."
        )
    if rewards.low < 0.0 and horizon > 1:  # that anybody left is not looked up
        found.append(
            f"Rewards may be as low as {rewards.low:g}, and whoever leaves before stage {horizon} earns 0 for ever: "
            "where staying costs, an action after which users leave or die looks good. Add to all rewards what makes "
            "the least 0, or give those who leave rows of a state of their own, with what it costs."
        )
    return found


def _model(release: Release, *, stationary: bool) -> TabularModel:
    """The noisy model of a release, of pooled stages where it was planned in them. Users start as they did."""
    seen = Evidence.of(release, stationary=stationary).release
    if not seen.pooled:
        return private_model(seen)
    _, n = project_counts(release.m[:1], release.m[:1].sum(axis=-1), 0.0)
    arrived = n[0].sum(axis=-1)
    if release.absorbing is not None:
        arrived[release.absorbing] = 0.0  # where episodes end, none begins
    total = arrived.sum()
    start = arrived / total if total > 0.0 else np.full(len(arrived), 1.0 / len(arrived))
    return private_model(seen, start=start)


def _drawn(release: Release, rng: np.random.Generator) -> Release:
    """The release with noise of the same law, and the chance of other users, added once more."""
    noise = release.noise_std
    known = np.maximum(release.n, 1.0)
    mean = np.clip(release.r / known, 0.0, 1.0)
    chance = np.sqrt(np.maximum(release.m, 0.0)) * rng.standard_normal(release.m.shape)
    added = noise["m"] * rng.standard_normal(release.m.shape)
    visits, own = added.sum(axis=-1), _own(release)
    shared = 0.5 * visits if own is not None else 0.0
    spread = np.sqrt(np.maximum(release.n, 0.0) * mean * (1.0 - mean))  # that of bits, the largest there is
    r = release.r + mean * chance.sum(axis=-1) + spread * rng.standard_normal(release.r.shape)
    r = r + shared + (noise["r"] if own is None else own) * rng.standard_normal(release.r.shape)
    m = release.m + chance + added
    return replace(release, n=release.n + chance.sum(axis=-1) + visits, m=m, r=r)


def _own(release: Release) -> float | None:
    """Deviation of the noise of rewards beside half that of visits, where they were summed around one half."""
    noise = release.noise_std
    beside = noise["r"] ** 2 - noise["n"] ** 2 / 4.0
    summed = math.isclose(noise["n"], noise["m"] * math.sqrt(release.n.shape[1]))
    return math.sqrt(beside) if beside >= 0.0 and summed else None


def _logged(release: Release) -> tuple[float, float]:
    """Mean return of the users, mapped, and the deviation of its noise. How often they came in all is known."""
    own, surplus = _own(release), float(release.n.sum()) - release.users * len(release.n)
    if own is None:
        return float(release.r.sum()) / release.users, release.noise_std["r"] * math.sqrt(
            release.r.size
        ) / release.users
    return (float(release.r.sum()) - surplus / 2.0) / release.users, own * math.sqrt(release.r.size) / release.users


def _deviation(release: Release, model: TabularModel, *, stationary: bool) -> float:
    """Deviation of a user's return, mapped, by the noisy model and the users' own choices; with bits as rewards."""
    n = Evidence.of(release, stationary=stationary).visits
    total = n.sum(axis=-1, keepdims=True)
    habits = np.where(total > 0.0, n / np.maximum(total, 1e-12), 1.0 / n.shape[-1])
    mean, square = np.zeros(n.shape[1]), np.zeros(n.shape[1])
    for h in range(len(n) - 1, -1, -1):
        P, r = model.transitions[h], model.rewards[h]
        second = r.copy()
        if release.absorbing is not None:
            second[release.absorbing] = r[release.absorbing] ** 2  # who waits earns the same for certain
        q, q_square = r + P @ mean, second + 2.0 * r * (P @ mean) + P @ square
        mean, square = (habits[h] * q).sum(axis=-1), (habits[h] * q_square).sum(axis=-1)
    return math.sqrt(max(float(model.initial @ square) - float(model.initial @ mean) ** 2, 0.0))

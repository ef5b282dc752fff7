"""Mean returns under an offline policy, with intervals and doubts.

All are from a release and public numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.offline.pessimism import NOTHING, USUAL, OfflinePlan, Sums
from private_rl_gym.lab.tables.evidence import COVERED, Evidence, deviations
from private_rl_gym.planning.projection import project_counts
from private_rl_gym.planning.rewards import RewardRange
from private_rl_gym.privacy.release import Release

__all__ = ["Interval", "Planner", "ReturnEstimates", "doubts", "returns_of"]

Planner = Callable[[Release], OfflinePlan]
"""The way in which the policy was planned."""

NUMBERS = 2e7  # numbers that are drawn in all
PAIRS = 100  # of draws, at most, where tables are small
MORE = 0.25  # variance that a draw adds, as a share of what there is: less is closer to the plan, and takes more draws


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate, with the interval that covers the truth with probability ``COVERED``."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:.3f} ({COVERED:.0%} interval {self.low:.3f} to {self.high:.3f})"

    def scaled(self, by: float, first: float, least: float, largest: float) -> Interval:
        """Return the interval of first + by x, within bounds."""
        return Interval(
            *(float(min(max(first + by * x, least), largest)) for x in (self.estimate, self.low, self.high))
        )


@dataclass(frozen=True, slots=True)
class ReturnEstimates:
    """Mean returns in the units of the table.

    Intervals are about the true problem: sampling and noise are in them.

    Attributes:
        logged: The mean return of what the users did.
        policy: The value of the policy, where it is unknown between the least and the largest.
        gain: By how much the policy is better than what the users did.
        flattery: By how much the plan's own counts overstate the policy. It has been taken off ``policy`` and ``gain``.
        least: The least possible return.
        largest: The largest possible return.
    """

    logged: Interval
    policy: Interval
    gain: Interval
    flattery: float
    least: float
    largest: float


def returns_of(
    release: Release, found: OfflinePlan, plan: Planner, rewards: RewardRange, *, stationary: bool
) -> ReturnEstimates:
    """Return estimates of the returns of a plan from the same release.

    The plan is chosen by the counts that also value it, so that its value is overestimated. The bias is estimated with
    a coupled bootstrap (Oliveira, Lei, Tibshirani: Unbiased Risk Estimation in the Normal Means Problem, 2021). Part of
    the privacy noise and of the sampling error is added to the counts, plans are made again, and each plan is valued
    with and without the addition. The variance of the policy's value is estimated from the same draws, as in Stein's
    identity. It is the variance of the counts, and that of the correction, which changes with the plan. Draws are the
    same for the same release. All of it is post-processing.
    """
    horizon, width = len(release.n), rewards.high - rewards.low
    usual = replace(found, reasons=np.full_like(found.reasons, USUAL))

    def values(seen: Release, *plans: OfflinePlan) -> NDArray[np.float64]:
        sums, starts = Sums.of(seen, stationary=stationary), _starts(seen)
        return np.array([_value(sums, starts, one, release.waiting_reward) for one in plans])

    rng = np.random.default_rng(0)
    value, habits = values(release, found, usual)
    moved, turned, flattered = [], [], []
    before = (found, found)
    for _ in range(int(np.clip(NUMBERS / release.m.size, 4, PAIRS))):
        addition = _addition(release, rng)
        others = [_added(release, addition, sign * math.sqrt(MORE)) for sign in (1.0, -1.0)]
        rivals = [plan(other.with_certain_rows()) for other in others]
        seen = np.array([values(other, found, usual, *before) for other in others])
        ours, theirs, first, second = (seen[0] - seen[1]) / 2.0
        moved.append((ours, ours - theirs))
        turned.append((first - second) / 2.0)
        raised = np.mean([values(other, rival)[0] for other, rival in zip(others, rivals, strict=True)])
        raised -= values(release, *rivals).mean()
        flattered.append((raised, raised - (seen[:, 1].mean() - habits)))
        before = (rivals[0], rivals[1])
    flattery, gain_flattery = np.mean(flattered, axis=0) / MORE
    unsure = np.var(flattered, axis=0, ddof=1) / len(flattered) / MORE**2
    chosen = np.mean(np.square(turned)) / MORE**2
    error, gain_error = np.sqrt(np.mean(np.square(moved), axis=0) / MORE + chosen + unsure)

    sums, starts = Sums.of(release, stationary=stationary), _starts(release)
    more = _value(sums, starts, found, release.waiting_reward, unknown=1.0) - value
    logged, noise = _logged(release)
    logged_error = math.hypot(noise, _deviation(release, sums, starts) / math.sqrt(release.users))
    least, largest = horizon * rewards.low, horizon * rewards.high
    bounds = width, least, least, largest
    return ReturnEstimates(
        _around(logged, logged_error).scaled(*bounds),
        _around(value - flattery, error, more).scaled(*bounds),
        _around(value - habits - gain_flattery, gain_error, more).scaled(width, 0.0, least - largest, largest - least),
        width * float(flattery),
        least,
        largest,
    )


def doubts(returns: ReturnEstimates, evidence: Evidence, found: OfflinePlan, rewards: RewardRange) -> list[str]:
    """Return the reasons to doubt a policy, each in one or two sentences.

    Args:
        returns: The returns of the policy.
        evidence: The counts that it was planned from.
        found: The plan.
        rewards: The range of rewards.
    """
    said = []
    there = np.arange(found.reasons.shape[1]) != (-1 if evidence.sums.absorbing is None else evidence.sums.absorbing)
    reasons = found.reasons[:, there]
    horizon, n_states = reasons.shape
    visits, noise = evidence.spread(n_states, found.policy.n_actions), evidence.noise
    if noise > visits:
        said.append(
            f"The noise in a count of visits is {noise:,.1f}, and there are {visits:,.1f} visits to count, were they "
            "spread evenly: most of what was published is noise. Take more users, fewer states or stages, or a larger "
            "epsilon."
        )
    usual, nothing = int((reasons == USUAL).sum()), int((reasons == NOTHING).sum())
    if 2 * (usual + nothing) > reasons.size:
        said.append(
            f"In {usual + nothing:,} of {reasons.size:,} places (a stage and a state) no action is known to be good. "
            "The policy goes on there as the users did."
        )
    if 2 * nothing > reasons.size:
        said.append(
            f"In {nothing:,} of {reasons.size:,} places noise also hides what the users did. There the policy takes "
            "the action that users took most often in all places. Its interval counts the least and the largest reward "
            "for these places."
        )
    possible = returns.largest - returns.least
    for name, interval in (
        ("the mean of the users in the table", returns.logged),
        ("the policy's value", returns.policy),
    ):
        if interval.high - interval.low > 0.9 * possible:
            said.append(
                f"The interval of {name} is {interval.low:.3f} to {interval.high:.3f}, and all that is possible lies "
                f"between {returns.least:g} and {returns.largest:g}: the number says nothing."
            )
    if returns.gain.high <= 0.0 and returns.gain.low < 0.0:
        said.append(
            "By these numbers the value of the policy is below the return of what the users did themselves: it is no "
            "reason to change anything."
        )
    elif returns.gain.low <= 0.0:
        said.append(
            "By these numbers the policy cannot be told from what the users did themselves: it is better than that by "
            f"{returns.gain.low:.3f} to {returns.gain.high:.3f}."
        )
    if rewards.low < 0.0 and horizon > 1:  # whether any user left is not looked up
        said.append(
            f"Rewards may be as low as {rewards.low:g}, and a user who leaves before stage {horizon} earns 0 from then "
            "on. If leaving is bad, such as death or dropout, the policy may seek it: put its cost into the reward of "
            "the last row. If leaving is good, such as a cure, 0 is right, and adding a number to all rewards would "
            "reverse that."
        )
    return said


def _value(sums: Sums, starts: NDArray[np.float64], found: OfflinePlan, waiting: float, unknown: float = 0.0) -> float:
    """Return the value of a plan's actions, by ratios of counts as released.

    The counts are not clipped, because that would be a bias.

    A place where nothing is known earns ``unknown`` at each stage that is left.
    """
    together = sums.m.sum(axis=2), sums.r.sum(axis=2)  # [p, s, s'] and [p, s]
    S = sums.m.shape[1]
    v = np.zeros(S)
    for stage in range(sums.horizon - 1, -1, -1):
        p, left = sums.phase(stage), float(sums.horizon - stage)
        reasons, actions = found.reasons[stage], found.plan.actions[stage]
        usual = reasons == USUAL
        m = np.where(usual[:, None], together[0][p], sums.m[p, np.arange(S), actions])
        r = np.where(usual, together[1][p], sums.r[p, np.arange(S), actions])
        n = m.sum(axis=1)
        known = (reasons != NOTHING) & (n > 0.0)
        q = np.where(known, np.clip((r + m @ v) / np.where(known, n, 1.0), 0.0, left), unknown * left)
        if sums.absorbing is not None:
            q[sums.absorbing] = waiting + v[sums.absorbing]
        v = q
    total = float(starts.sum())
    return float(np.clip(starts @ v / total, 0.0, sums.horizon)) if total > 0.0 else float(v.mean())


def _starts(release: Release) -> NDArray[np.float64]:
    """Return the number of users who started in each state, with noise.

    It is zero in the state where ended episodes wait.
    """
    starts = np.asarray(release.n[0].sum(axis=1))
    if release.absorbing is not None:
        starts[release.absorbing] = 0.0
    return starts


def _addition(release: Release, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return noise and chance to add to a release's transitions and rewards.

    The noise has the distribution of the release's own, and the chance is that of other users.
    """
    noise = release.noise_std
    known = np.maximum(release.n, 1.0)
    mean = np.clip(release.r / known, 0.0, 1.0)
    chance = np.sqrt(np.maximum(release.m, 0.0)) * rng.standard_normal(release.m.shape)
    added = noise["m"] * rng.standard_normal(release.m.shape)
    own = _own(release)
    shared = 0.5 * added.sum(axis=-1) if own is not None else 0.0
    spread = np.sqrt(np.maximum(release.n, 0.0) * mean * (1.0 - mean))  # that of bits, the largest there is
    r = mean * chance.sum(axis=-1) + spread * rng.standard_normal(release.r.shape)
    r += shared + (noise["r"] if own is None else own) * rng.standard_normal(release.r.shape)
    return chance + added, r


def _added(release: Release, addition: tuple[NDArray[np.float64], NDArray[np.float64]], share: float) -> Release:
    """Return the release with a multiple of an addition."""
    m, r = addition
    return replace(release, n=release.n + share * m.sum(axis=-1), m=release.m + share * m, r=release.r + share * r)


def _around(estimate: float, error: float, more: float = 0.0) -> Interval:
    """Return the interval of an estimate with this standard deviation.

    Its upper end is higher by ``more``.
    """
    half = deviations(COVERED) * error
    return Interval(estimate, estimate - half, estimate + half + more)


def _own(release: Release) -> float | None:
    """Return the part of the rewards' noise that visits do not explain.

    It is the standard deviation beside half the noise of visits, where rewards were summed around one half; else None.
    """
    noise = release.noise_std
    beside = noise["r"] ** 2 - noise["n"] ** 2 / 4.0
    summed = math.isclose(noise["n"], noise["m"] * math.sqrt(release.n.shape[1]))
    return math.sqrt(beside) if beside >= 0.0 and summed else None


def _logged(release: Release) -> tuple[float, float]:
    """Return the users' mean return, mapped, and the deviation of its noise.

    The number of all visits is known.
    """
    own, surplus = _own(release), float(release.n.sum()) - release.users * len(release.n)
    if own is None:
        return float(release.r.sum()) / release.users, release.noise_std["r"] * math.sqrt(
            release.r.size
        ) / release.users
    return (float(release.r.sum()) - surplus / 2.0) / release.users, own * math.sqrt(release.r.size) / release.users


def _deviation(release: Release, sums: Sums, starts: NDArray[np.float64]) -> float:
    """Return the standard deviation of a user's return, mapped.

    Users act as they did, and rewards are bits.
    """
    m, n = project_counts(sums.m.sum(axis=2, keepdims=True), sums.visits.sum(axis=2, keepdims=True), 0.0)
    S = len(starts)
    share = np.where(n[..., None] > 0.0, m / np.maximum(n, 1e-12)[..., None], 1.0 / S)[:, :, 0]  # [p, s, s']
    earned = np.clip(sums.r.sum(axis=2) / np.maximum(n[:, :, 0], 1e-12), 0.0, 1.0)  # [p, s]
    mean, square = np.zeros(S), np.zeros(S)
    for stage in range(sums.horizon - 1, -1, -1):
        p = sums.phase(stage)
        r, following = earned[p], share[p] @ mean
        square = r + 2.0 * r * following + share[p] @ square
        mean = r + following
        if release.absorbing is not None:  # users who wait earn the same for certain
            waiting = (sums.horizon - stage) * release.waiting_reward
            mean[release.absorbing], square[release.absorbing] = waiting, waiting**2
    kept = np.maximum(starts, 0.0)
    first = kept / kept.sum() if kept.sum() > 0.0 else np.full(S, 1.0 / S)
    return math.sqrt(max(float(first @ square) - float(first @ mean) ** 2, 0.0))

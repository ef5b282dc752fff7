"""Pessimistic planning from a table of users, whose errors no later user corrects.

* ``Sums`` - the sums of a release that an offline plan is made of, by stage or pooled
* ``OfflinePlan`` - actions that are known to be good, and the users' own actions elsewhere
* ``pessimistic_plan`` - value iteration with the bonus of DP-UCBVI subtracted
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import read_only
from private_rl_gym.planning.bernstein import bernstein_induction
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.projection import project_counts
from private_rl_gym.planning.solve import Plan
from private_rl_gym.privacy.release import Published, Release

__all__ = ["KNOWN", "NOTHING", "USUAL", "OfflinePlan", "Sums", "known_places", "pessimistic_plan", "with_usual_care"]

NOTHING, USUAL, KNOWN = 0, 1, 2
"""The three reasons for an action: none, the habit of the users, or counts that stand out of the noise."""


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Transitions and rewards, with the noise of visits.

    Axis p is a phase: a part of the stages. There is one phase for each stage. Pooled sums of several stages have two
    phases: the stages before the last, and all stages, which only the last stage uses. So no plan depends on the state
    after the last step, which tables often leave open.

    Attributes:
        m: ``[p, s, a, s']``, transitions.
        r: ``[p, s, a]``, sums of rewards.
        noise: ``[p]``, standard deviation of the noise in a count of visits.
        horizon: Number of stages.
        absorbing: The state in which episodes that ended early stay; None if episodes cannot end early.
    """

    m: NDArray[np.float64]
    r: NDArray[np.float64]
    noise: NDArray[np.float64]
    horizon: int
    absorbing: int | None = None

    @classmethod
    def of(cls, release: Release, *, stationary: bool) -> Sums:
        """Return the sums of a release.

        With ``stationary``, they are those of all stages together.
        """
        horizon, noise = len(release.n), release.noise_std["n"]
        if not stationary:
            return cls(release.m, release.r, np.full(horizon, noise), horizon, release.absorbing)
        if release.pooled or horizon == 1:
            return cls(release.m[:1], release.r[:1], np.array([noise]), horizon, release.absorbing)
        m, r = (np.stack([array[:-1].sum(axis=0), array.sum(axis=0)]) for array in (release.m, release.r))
        return cls(m, r, noise * np.sqrt([horizon - 1.0, horizon]), horizon, release.absorbing)

    def phase(self, stage: int) -> int:
        """Return the phase of a stage."""
        return max(0, stage - (self.horizon - len(self.m)))

    @property
    def visits(self) -> NDArray[np.float64]:
        """Visits with noise, ``[p, s, a]``.

        They may be negative.
        """
        return np.asarray(self.m.sum(axis=-1))

    @property
    def taken(self) -> NDArray[np.float64]:
        """The number of times that each action was taken, with noise, ``[a]``."""
        last = self.visits[-1:] if len(self.m) < self.horizon else self.visits
        there = np.arange(last.shape[1]) != (-1 if self.absorbing is None else self.absorbing)
        return np.asarray(last[:, there].sum(axis=(0, 1)))

    @property
    def needed(self) -> NDArray[np.float64]:
        """The visits above which a state and action are known, ``[p]``.

        They are twice the noise.
        """
        return 2.0 * self.noise


@dataclass(frozen=True, slots=True, eq=False)
class OfflinePlan:
    """A plan that recommends known actions, and the users' own actions elsewhere.

    Attributes:
        plan: Pessimistic values. The value of a state without a known action is that of the users' own actions.
        reasons: ``[h, s]``, ``KNOWN``, ``USUAL`` or ``NOTHING``.
        policy: The known action; or the shares in which users took actions there; or the most usual action of all.
    """

    plan: Plan
    reasons: NDArray[np.int8]
    policy: Policy

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether the plan recommends an action, ``[h, s]``."""
        return np.asarray(self.reasons == KNOWN)


def pessimistic_plan(sums: Sums, iota: float, scale: float, noise_scale: float) -> OfflinePlan:
    """Plan by value iteration with the bonus of DP-UCBVI subtracted.

    So uncertain actions have lower values. As in DP-APVI (Qiao, Wang: Offline Reinforcement Learning with Differential
    Privacy, 2022, algorithm 1), the penalty has a term for sampling and one for noise. An action is known if its visits
    exceed twice their noise and its pessimistic value exceeds 0. Elsewhere users act as usual. The value of their own
    actions is estimated from all actions together, by the same rule.

    Args:
        sums: The sums of a release.
        iota: The logarithm in the terms for sampling.
        scale: Their multiplier.
        noise_scale: The margin for noise is noise_scale times the noise's deviation times (H - h) / N.
    """
    n_actions = sums.r.shape[2]
    m, r = (np.concatenate([x, x.sum(axis=2, keepdims=True)], axis=2) for x in (sums.m, sums.r))
    noise = sums.noise[:, None] * np.append(np.ones(n_actions), n_actions**0.5)  # [p, a]
    m, n = project_counts(m, m.sum(axis=-1), 0.0)
    options: Any = {"horizon": sums.horizon, "iota": iota, "scale": -scale, "usual": True}
    plan = bernstein_induction(n, m, r, 2.0 * noise, -noise_scale * noise, **options)
    return with_usual_care(Plan(read_only(plan.q[:, :, :n_actions].copy()), plan.v, plan.actions), sums)


def with_usual_care(plan: Plan, sums: Sums) -> OfflinePlan:
    """Return the plan's known actions, and the users' own actions elsewhere.

    An action counts as known if its pessimistic value exceeds 0.
    """
    stages = [sums.phase(stage) for stage in range(sums.horizon)]
    n_actions = sums.r.shape[2]
    seen = sums.visits.sum(axis=2) > sums.needed[:, None] * n_actions**0.5
    taken = np.maximum(sums.visits, 0.0)
    shares = taken / np.maximum(taken.sum(axis=2, keepdims=True), 1e-12)
    reasons = np.where(seen, USUAL, NOTHING).astype(np.int8)[stages]
    reasons[plan.q.max(axis=2) > 0.0] = KNOWN
    if sums.absorbing is not None:
        reasons[:, sums.absorbing] = KNOWN  # whatever is done there changes nothing
    actions = np.where(reasons == KNOWN, plan.actions, sums.taken.argmax())
    usual = (reasons == USUAL)[..., None]
    table = np.where(usual, shares[stages], np.eye(n_actions)[actions]) if usual.any() else actions
    return OfflinePlan(plan, read_only(reasons), Policy.trusted(read_only(table), n_actions))


def known_places(release: Published, policy: Policy) -> NDArray[np.bool_]:
    """Return whether the actions of the policy are known, ``[h, s]``.

    An action is known if its visits exceed twice the noise of their count. Every action that the policy may take must
    be known. Raises ValueError if the release has no counts.
    """
    if not isinstance(release, Release):
        raise ValueError(  # noqa: TRY004 - no wrong type, but another agent
            "This agent learns from no counts of states and actions, so that it has no mask of known states."
        )
    sums = Sums.of(release, stationary=False)
    known = sums.visits > sums.needed[:, None, None]
    if sums.absorbing is not None:
        known[:, sums.absorbing] = True
    return np.asarray((known | (policy.probabilities == 0.0)).all(axis=2))

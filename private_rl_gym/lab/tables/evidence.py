"""The counts behind an offline policy, from the release alone.

This is post-processing: it costs no privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtri

from private_rl_gym.agents.offline.pessimism import KNOWN, OfflinePlan, Sums
from private_rl_gym.lab.tables.labels import Labels
from private_rl_gym.privacy.release import Release

__all__ = ["COVERED", "RIGHT", "Evidence", "PolicyEntry", "deviations"]

COVERED = 0.9
"""The probability with which a printed interval covers the number that it is about."""

RIGHT = 0.95
"""The probability with which a printed habit of the users is what they did most often."""


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """One entry of a policy, with the counts behind it.

    Attributes:
        action: The recommended action; None where none is known.
        usual: The action that the users took most often there; None where noise may hide it.
        low, high: The interval of the visits of the state, at this stage or, pooled, at all stages together.
    """

    action: int | None
    usual: int | None
    low: int
    high: int

    def actions(self, labels: Labels, as_usual: str = "", not_known: str = "") -> tuple[str, str]:
        """Return the names of both actions, or these words in their place."""
        own = as_usual if self.action is None else labels.action(self.action)
        return own, not_known if self.usual is None else labels.action(self.usual)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The counts of a release that a plan uses.

    They are by stage, or of all stages together.

    Attributes:
        sums: The sums.
        users: Number of users.
    """

    sums: Sums
    users: int

    @classmethod
    def of(cls, release: Release, *, stationary: bool) -> Evidence:
        """Return the evidence in a release."""
        return cls(Sums.of(release, stationary=stationary), release.users)

    @property
    def noise(self) -> float:
        """Standard deviation of the noise in a count of visits of a state and action."""
        return float(self.sums.noise[-1])

    def spread(self, n_states: int, n_actions: int) -> float:
        """Return the mean visits of a count, if all counts were equal.

        Visits are spread over these numbers of states and actions.
        """
        pooled = len(self.sums.m) < self.sums.horizon
        return self.users * (self.sums.horizon if pooled else 1) / (n_states * n_actions)

    def entry(self, found: OfflinePlan, stage: int, state: int) -> PolicyEntry:
        """Return the entry of a plan at a stage and state."""
        sums = self.sums
        phase = stage if len(sums.m) == sums.horizon else -1  # all stages together
        taken = sums.visits[phase, state]
        total, error = float(taken.sum()), deviations(COVERED) * float(sums.noise[phase]) * math.sqrt(len(taken))
        action = int(found.plan.actions[stage, state]) if found.reasons[stage, state] == KNOWN else None
        low, high = (max(0, end) for end in (math.floor(total - error), math.ceil(total + error)))
        return PolicyEntry(action, self._usual(phase, state), low, high)

    def _usual(self, phase: int, state: int) -> int | None:
        """Return the action that users took most often, or None.

        It is None unless the action is ahead of each other action by more than noise explains.
        """
        taken, noise = self.sums.visits[phase, state], float(self.sums.noise[phase])
        rivals = len(taken) - 1
        if not taken.sum() > self.sums.needed[phase] * math.sqrt(len(taken)):
            return None
        if not rivals:
            return 0
        most = int(taken.argmax())
        ahead = taken[most] - max(count for action, count in enumerate(taken) if action != most)
        wrong = (1.0 - RIGHT) / rivals
        return most if ahead > -float(ndtri(wrong)) * noise * math.sqrt(2.0) else None


def deviations(probability: float) -> float:
    """Return the number of standard deviations that covers a Gaussian with this probability."""
    return -float(ndtri((1.0 - probability) / 2.0))

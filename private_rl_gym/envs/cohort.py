"""Cohort: patients with type 2 diabetes, and a table of earlier patients."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.envs.generation import instance_generator
from private_rl_gym.envs.model import TabularModel
from private_rl_gym.envs.rendering import GraphScene
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.planning.policy import Policy

__all__ = ["Cohort"]

# By blood sugar (in range, raised, high), and treatment: the probability that it gets a step better, or worse.
BETTER = np.array([[0.00, 0.00, 0.00, 0.00], [0.08, 0.25, 0.45, 0.50], [0.03, 0.10, 0.30, 0.60]])
WORSE = np.array([[0.35, 0.15, 0.08, 0.06], [0.35, 0.20, 0.10, 0.08], [0.00, 0.00, 0.00, 0.00]])

# By blood sugar: the probability of a first complication, and of an event after it.
COMPLICATION, EVENT = np.array([0.01, 0.03, 0.08]), np.array([0.02, 0.05, 0.12])

LOW_SUGAR = np.array([0.0, 0.0, 0.01, 0.08])  # of an event, by treatment, where blood sugar is in range
LOST = np.array([0.01, 0.01, 0.015, 0.02])  # to care, by treatment
RECOVERY = np.array([0.10, 0.15, 0.25, 0.35])  # from an event, by treatment
DEATH = 0.25  # after an event

# The probability of a good quarter: by blood sugar, less for a complication, less for the burden of a treatment.
GOOD, BOTHER, BURDEN = np.array([0.95, 0.75, 0.45]), 0.15, np.array([0.0, 0.03, 0.08, 0.20])

# Habits of the doctors behind the table, by blood sugar (an event is treated as high): they step up late.
HABITS = np.array([[0.35, 0.50, 0.13, 0.02], [0.15, 0.50, 0.30, 0.05], [0.06, 0.34, 0.42, 0.18]])


TREATMENTS = ("lifestyle", "one drug", "two drugs", "insulin")


class CohortScene(GraphScene):
    """A graph with the names of treatments."""

    def action_name(self, action: int) -> str:
        """Return the treatment."""
        return TREATMENTS[action]


class Cohort(TabularEnv):
    """Patients with type 2 diabetes, treated quarter by quarter.

    ## Description
    A made-up cohort with the shape of a real one, for the way from a table of patients to a policy. Blood sugar gets
    better or worse by chance and by treatment; while it is high, complications come, and after these, events such as a
    stroke. Stronger treatments lower it more, and are a burden of their own; insulin where it is not needed is a
    danger. The doctors behind the table step up late. `Cohort.table(users)` is such a table, and `Cohort.habits()`
    their policy. The numbers are no medical facts.

    ## Observation space
    `Discrete(8)`, `Cohort.states`: blood sugar in range, raised or high; the same three with a complication; after an
    event; and out of care, which is for good. With `observe_time=True`, `MultiDiscrete([horizon, 8])`.

    ## Action space
    `Discrete(4)`, `Cohort.treatments`: lifestyle, one drug, two drugs, insulin.

    ## Rewards
    1 for a good quarter, as the patient reports at the next visit; 0 for a bad one, or out of care.

    ## Start and end
    Most begin with raised blood sugar and no complication. An episode terminates after `horizon` quarters.

    ## Arguments
    - `horizon=12`: quarters.
    - `observe_time=False`, `render_mode=None`: as in all environments.

    ## Version history
    - v0: first release.
    """

    states: ClassVar[tuple[str, ...]] = (
        "in range",
        "raised",
        "high",
        "in range, complication",
        "raised, complication",
        "high, complication",
        "after an event",
        "out of care",
    )
    treatments: ClassVar[tuple[str, ...]] = TREATMENTS
    scene_type = CohortScene

    def __init__(self, horizon: int = 12, *, observe_time: bool = False, render_mode: str | None = None) -> None:
        H = positive_integer(horizon, "horizon", "quarters")
        start = [0.15, 0.50, 0.25, 0.0, 0.05, 0.05, 0.0, 0.0]
        model = TabularModel(_transitions(), _rewards(), start, H)
        super().__init__(model, observe_time=observe_time, render_mode=render_mode)

    @classmethod
    def habits(cls, horizon: int = 12) -> Policy:
        """Return the policy of the doctors behind the table."""
        by_state = HABITS[[0, 1, 2, 0, 1, 2, 2, 0]]
        return Policy.of(by_state, horizon=horizon, n_states=len(cls.states), n_actions=len(cls.treatments))

    @classmethod
    def table(cls, users: int = 20_000, *, horizon: int = 12, instance_seed: int = 0) -> dict[str, NDArray[np.generic]]:
        """Return a synthetic table of patients, with a row for each quarter in care.

        The columns are those of ``board.ingest``. A patient who leaves care has no further rows, and the last
        next state is missing. So boundaries around ``LoggedUsers(7, 4, horizon)`` accept the table. The eighth state
        is that of episodes that ended early.

        Args:
            users: Number of patients.
            horizon: Quarters.
            instance_seed: Number of the table. The same number gives the same table.
        """
        model, rng = cls(horizon).model, instance_generator("cohort", instance_seed)
        tapes = model.draw_users(rng, users)
        met = model.rollout(cls.habits(horizon), tapes, rng.random((users, horizon)))
        gone = len(cls.states) - 1
        user, stage = np.nonzero(met.states[:, :-1] != gone)
        following = met.states[:, 1:][user, stage].astype(np.float64)
        following[following == gone] = np.nan
        names = np.array([f"P{number:07d}" for number in rng.permutation(users)])
        return {
            "user": names[user],
            "stage": stage,
            "state": met.states[:, :-1][user, stage],
            "action": met.actions[user, stage],
            "reward": met.rewards[user, stage],
            "next_state": following,
        }


def _transitions() -> NDArray[np.float64]:  # [s, a, s']
    P = np.zeros((8, 4, 8))
    event, gone = 6, 7
    for ill in (0, 1):
        for sugar in range(3):
            s = 3 * ill + sugar
            for a in range(4):
                harm = EVENT[sugar] if ill else 0.0
                harm += LOW_SUGAR[a] if sugar == 0 else 0.0
                stays = 1.0 - LOST[a] - harm
                P[s, a, gone], P[s, a, event] = LOST[a], harm
                first = 0.0 if ill else COMPLICATION[sugar]
                for after, chance in (
                    (sugar - 1, BETTER[sugar, a]),
                    (sugar + 1, WORSE[sugar, a]),
                    (sugar, 1.0 - BETTER[sugar, a] - WORSE[sugar, a]),
                ):
                    if chance > 0.0:
                        P[s, a, 3 * ill + after] += stays * chance * (1.0 - first)
                        P[s, a, 3 + after] += stays * chance * first
    P[event, :, gone], P[event, :, 4] = DEATH, RECOVERY
    P[event, :, event] = 1.0 - DEATH - RECOVERY
    P[gone, :, gone] = 1.0
    return P


def _rewards() -> NDArray[np.float64]:  # [s, a]
    r = np.zeros((8, 4))
    for s in range(6):
        r[s] = GOOD[s % 3] - BOTHER * (s // 3) - BURDEN
    r[6] = 0.10
    return r

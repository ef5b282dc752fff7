"""Exact dynamic programming, compiled: optimal values, values of policies, and visits.

There is one set of solvers, over packed outcomes. A dense array of transitions is packed without being copied.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.planning.arrays import numbers, positive_integer, read_only, real, shown
from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.memory import check_room
from private_rl_gym.planning.policy import Policy

__all__ = [
    "Outcomes",
    "Plan",
    "backward_induction",
    "evaluate_policy",
    "greedy",
    "occupancy",
    "optimistic_backward_induction",
]


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """Transitions, packed row after row.

    Row (h * S + s) * A + a owns the entries from ``offsets[row]`` to ``offsets[row + 1]``. If one stage stands for all,
    only h = 0 has rows.
    """

    offsets: NDArray[np.int64]  # [row + 1]
    successors: NDArray[np.int64]  # [entry]
    probabilities: NDArray[np.float64]  # [entry]
    n_states: int
    n_actions: int

    @classmethod
    def of(cls, transitions: Outcomes | ArrayLike) -> Outcomes:
        """Return a dense array ``[h, s, a, s']`` as packed outcomes, with all its zeros.

        Outcomes that are packed already are returned as they are.
        """
        if isinstance(transitions, Outcomes):
            return transitions
        P = numbers(transitions, "transitions")
        if P.ndim != 4 or P.shape[1] != P.shape[3]:
            raise ValueError(f"transitions have shape {P.shape}: they must be [h, s, a, s'].")
        stages, n_states, n_actions, _ = P.shape
        offsets, successors = _every_successor(stages * n_states * n_actions, n_states)
        return cls(offsets, successors, P.reshape(-1), n_states, n_actions)

    @property
    def stages(self) -> int:
        """Number of stages that have rows."""
        return (len(self.offsets) - 1) // (self.n_states * self.n_actions)

    @property
    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """The arrays, for compiled functions."""
        return self.offsets, self.successors, self.probabilities

    def checked(self, horizon: int) -> Outcomes:
        """Return these outcomes; raise ``ValueError`` if the number of their stages is wrong.

        It must be one, or the horizon.
        """
        if self.stages not in (1, horizon):
            shape = (self.stages, self.n_states, self.n_actions, self.n_states)
            raise ValueError(f"transitions have shape {shape}: they must be [h, s, a, s'], with one h, or {horizon}.")
        return self


@lru_cache(maxsize=32)
def _every_successor(rows: int, n_states: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    offsets = np.arange(rows + 1, dtype=np.int64) * n_states
    return read_only(offsets), read_only(np.tile(np.arange(n_states, dtype=np.int64), rows))


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A result of planning: values, and the policy that is greedy for them."""

    q: NDArray[np.float64]  # [h, s, a]
    v: NDArray[np.float64]  # [h, s], h = 0..H, zero at the end
    actions: NDArray[np.int64]  # [h, s], the first of the best

    @property
    def policy(self) -> Policy:
        """The greedy policy."""
        return Policy.trusted(read_only(self.actions), self.q.shape[2])

    def __repr__(self) -> str:
        horizon, n_states, n_actions = self.q.shape
        return f"Plan(H={horizon}, S={n_states}, A={n_actions})"


def backward_induction(
    transitions: Outcomes | NDArray[np.float64],  # [h, s, a, s']
    rewards: NDArray[np.float64],  # [h, s, a]
    horizon: int,
) -> Plan:
    """Return the optimal values and policy of a finite-horizon model.

    Axis h of both has length H, or length 1 where one stage stands for all.
    """
    horizon = positive_integer(horizon, "horizon", "stages")
    P = Outcomes.of(transitions).checked(horizon)
    r = _checked_rewards(rewards, P, horizon)
    nothing, unbounded = np.zeros((1, *r.shape[1:])), np.full((1, *r.shape[1:]), math.inf)
    return Plan(*_backward(*P.arrays, r, nothing, -math.inf, unbounded, horizon))


def optimistic_backward_induction(
    transitions: Outcomes | NDArray[np.float64],  # [h, s, a, s']
    rewards: NDArray[np.float64],  # [h, s, a]
    bonus: NDArray[np.float64],  # [h, s, a]
    *,
    ceiling: ArrayLike | None = None,  # [h]
    floor: float = -math.inf,
    previous: NDArray[np.float64] | None = None,  # [h, s, a]
) -> Plan:
    """Plan with a bonus and bounds on values, from the last stage to the first.

    Q = min(ceiling, max(floor, reward + bonus + P V), previous).

    Args:
        transitions: Estimated transitions. Rows need not sum to one.
        rewards: Estimated rewards.
        bonus: Addition to each entry for its uncertainty; its first axis gives the horizon.
        ceiling: The largest value possible from each stage on; H - h by default.
        floor: The smallest value possible.
        previous: An earlier Q that the new one must not exceed, for learners whose Q never rises.
    """
    bonus = numbers(bonus, "bonus")
    if bonus.ndim != 3:
        raise ValueError(f"The bonus has shape {bonus.shape}: it must be [h, s, a].")
    horizon = len(bonus)
    P = Outcomes.of(transitions).checked(horizon)
    r = _checked_rewards(rewards, P, horizon)
    if bonus.shape != (horizon, *r.shape[1:]):
        raise ValueError(f"The bonus has shape {bonus.shape}: with these rewards it must be {(horizon, *r.shape[1:])}.")
    tops = np.arange(horizon, 0, -1.0) if ceiling is None else numbers(ceiling, "ceiling")
    if tops.shape not in ((), (horizon,)) or np.isnan(bonus).any():
        raise ValueError(
            f"The ceiling has shape {tops.shape}, and {np.isnan(bonus).sum()} bonuses are NaN. Give one ceiling, or "
            f"one for each of the {horizon} stages, and a bonus without NaN."
        )
    caps = np.empty(bonus.shape)
    caps[:] = tops[..., None, None]
    if previous is not None:
        earlier = numbers(previous, "previous")
        if earlier.shape != caps.shape:
            raise ValueError(f"previous has shape {earlier.shape}: with this bonus it must be {caps.shape}.")
        np.minimum(caps, earlier, out=caps)
    return Plan(*_backward(*P.arrays, r, bonus, real(floor, "floor"), caps, horizon))


def evaluate_policy(
    transitions: Outcomes | NDArray[np.float64],  # [h, s, a, s']
    rewards: NDArray[np.float64],  # [h, s, a]
    policy: Policy,
) -> NDArray[np.float64]:  # [h, s], h = 0..H
    """Return the value of ``policy`` from every stage and state."""
    P = Outcomes.of(transitions).checked(_policy(policy).horizon)
    r = _checked_rewards(rewards, P, policy.horizon)
    _check_fit(policy, P)
    return np.asarray(_evaluate(*P.arrays, r, policy.probabilities))


def occupancy(
    transitions: Outcomes | NDArray[np.float64],  # [h, s, a, s']
    initial: NDArray[np.float64],  # [s]
    policy: Policy,
) -> NDArray[np.float64]:  # [h, s, a]
    """Return the probability that ``policy`` visits state s and takes action a at stage h."""
    P = Outcomes.of(transitions).checked(_policy(policy).horizon)
    _check_fit(policy, P)
    initial = numbers(initial, "initial")
    if initial.shape != (P.n_states,):
        raise ValueError(f"initial has shape {initial.shape}: it must be one probability a state, {(P.n_states,)}.")
    return np.asarray(_occupancy(*P.arrays, initial, policy.probabilities))


def _policy(policy: Policy) -> Policy:
    if not isinstance(policy, Policy):
        raise TypeError(f"policy is {shown(policy)}: give a Policy, as Policy.of makes it from an array.")
    return policy


def _checked_rewards(rewards: Any, transitions: Outcomes, horizon: int) -> NDArray[np.float64]:
    """Return the rewards as an array of valid shape.

    So compiled functions stay inside the array.
    """
    r = numbers(rewards, "rewards")
    sizes = (transitions.n_states, transitions.n_actions)
    needed = 8 * horizon * transitions.n_states * (2 * transitions.n_actions + 2)
    check_room(needed, f"Values of {horizon:,} stages", "Shorten the horizon.")
    if r.shape not in ((1, *sizes), (horizon, *sizes)):
        raise ValueError(
            f"rewards have shape {r.shape}: with these transitions they must be {(horizon, *sizes)}, or the same with "
            "one h."
        )
    return r


def _check_fit(policy: Policy, transitions: Outcomes) -> None:
    if (policy.n_states, policy.n_actions) != (transitions.n_states, transitions.n_actions):
        raise ValueError(
            f"{policy} does not fit the transitions: they have S={transitions.n_states}, A={transitions.n_actions}."
        )


@compiled
def greedy(q: Any, v: Any, actions: Any) -> None:
    """Write the values and the first best actions of one stage, given Q ``[s, a]``."""
    for s in range(q.shape[0]):
        best = 0
        for a in range(1, q.shape[1]):
            if q[s, a] > q[s, best]:
                best = a
        v[s] = q[s, best]
        actions[s] = best


@compiled
def _expected(successors: Any, probabilities: Any, start: int, stop: int, values: Any) -> float:
    total = 0.0
    for entry in range(start, stop):
        total += probabilities[entry] * values[successors[entry]]
    return total


@compiled
def _backward(
    offsets: Any, successors: Any, probabilities: Any, rewards: Any, bonus: Any, floor: float, caps: Any, horizon: int
) -> Any:
    _, n_states, n_actions = rewards.shape
    rows = len(offsets) - 1
    q = np.empty((horizon, n_states, n_actions))
    v = np.zeros((horizon + 1, n_states))
    actions = np.empty((horizon, n_states), dtype=np.int64)
    for h in range(horizon - 1, -1, -1):
        r, b, top = rewards[h % rewards.shape[0]], bonus[h % bonus.shape[0]], caps[h % caps.shape[0]]
        row = h * n_states * n_actions % rows
        for s in range(n_states):
            for a in range(n_actions):
                value = r[s, a] + b[s, a]
                value += _expected(successors, probabilities, offsets[row], offsets[row + 1], v[h + 1])
                q[h, s, a] = min(top[s, a], max(floor, value))
                row += 1
        greedy(q[h], v[h], actions[h])
    return q, v, actions


@compiled
def _evaluate(offsets: Any, successors: Any, probabilities: Any, rewards: Any, chances: Any) -> Any:
    horizon, n_states, n_actions = chances.shape
    rows = len(offsets) - 1
    v = np.zeros((horizon + 1, n_states))
    for h in range(horizon - 1, -1, -1):
        r = rewards[h % rewards.shape[0]]
        row = h * n_states * n_actions % rows
        for s in range(n_states):
            for a in range(n_actions):
                if chances[h, s, a] > 0.0:
                    ahead = _expected(successors, probabilities, offsets[row], offsets[row + 1], v[h + 1])
                    v[h, s] += chances[h, s, a] * (r[s, a] + ahead)
                row += 1
    return v


@compiled
def _occupancy(offsets: Any, successors: Any, probabilities: Any, initial: Any, chances: Any) -> Any:
    horizon, n_states, n_actions = chances.shape
    rows = len(offsets) - 1
    reached = initial.copy()
    visits = np.zeros((horizon, n_states, n_actions))
    for h in range(horizon):
        following = np.zeros(n_states)
        row = h * n_states * n_actions % rows
        for s in range(n_states):
            for a in range(n_actions):
                mass = reached[s] * chances[h, s, a]
                visits[h, s, a] = mass
                if mass > 0.0:
                    for entry in range(offsets[row], offsets[row + 1]):
                        following[successors[entry]] += mass * probabilities[entry]
                row += 1
        reached = following
    return visits

"""Models that are known in part: expected reports, plans that explore, and values from below.

Arrays are ``[g, s, a, s']`` and ``[g, s, a]``: stage h is described by block h of g, or by the only one where the model
is the same at every stage. A cell (g, s, a) may be unknown. ``spread`` of a value function is the Euclidean norm of its
differences from its mean: noise of deviation e in every probability of a row moves an expected value by e times the
spread.

* ``expected_reports`` - the reports that a user of a policy is expected to make of each (s, a)
* ``expected_visits`` - the expected visits of such a user, stage by stage
* ``plan`` - backward induction with bonuses, or penalties, for noise and sampling
* ``optimism`` - the share of each cell in the bonuses along a policy
* ``value_from_below`` - the value of a policy, less its noise
"""

from __future__ import annotations

from typing import Any

import numpy as np

from private_rl_gym.planning.compiled import compiled

__all__ = ["expected_reports", "expected_visits", "optimism", "plan", "value_from_below"]


@compiled
def expected_visits(P: Any, initial: Any, actions: Any) -> Any:
    """Return the probability of each ``[h, s, a]`` under a policy."""
    G, S, A, _ = P.shape
    H = len(actions)
    out, visits = np.zeros((H, S, A)), initial.copy()
    for h in range(H):
        later = np.zeros(S)
        for s in range(S):
            if visits[s] > 0.0:
                a = actions[h, s]
                out[h, s, a] = visits[s]
                for t in range(S):
                    later[t] += visits[s] * P[h % G, s, a, t]
        visits = later
    return out


@compiled
def expected_reports(
    P: Any, initial: Any, actions: Any, wanted: Any, anywhere: float, starts: float, most: int, out: Any
) -> None:
    """Add to ``out`` the reports of each (s, a) expected of a user.

    Reports are counted over all stages. A limit ``most`` above 1 is assumed not to be reached.
    """
    G, S, A, _ = P.shape
    H = len(actions)
    if most == 1:
        visits, silent = initial.copy(), (1.0 - anywhere - starts) * initial  # silent: has reported nothing so far
        for h in range(H):
            next_visits, next_silent = np.zeros(S), np.zeros(S)
            for s in range(S):
                if visits[s] <= 0.0:
                    continue
                a, quiet = actions[h, s], silent[s]
                out[s, a] += anywhere * visits[s] / H
                if wanted[s, a]:
                    out[s, a] += quiet
                    quiet = 0.0
                for t in range(S):
                    next_visits[t] += visits[s] * P[h % G, s, a, t]
                    next_silent[t] += quiet * P[h % G, s, a, t]
            visits, silent = next_visits, next_silent
        return
    for cell in range(S * A):  # the probability that it is ever visited
        s0, a0 = cell // A, cell % A
        chosen = False
        for h in range(H):
            chosen |= actions[h, s0] == a0
        if not (wanted[s0, a0] and chosen):
            continue
        silent = initial.copy()
        for h in range(H):
            next_silent = np.zeros(S)
            for s in range(S):
                if silent[s] <= 0.0:
                    continue
                a = actions[h, s]
                if s == s0 and a == a0:
                    out[s, a] += silent[s]
                    continue
                for t in range(S):
                    next_silent[t] += silent[s] * P[h % G, s, a, t]
            silent = next_silent


@compiled
def _bonus(row: Any, v: Any, noise: float, n: float, by_noise: float, by_sampling: float) -> float:
    """Return the bonus of a cell for noise and for sampling.

    The bonus for noise is along the spread of v. The bonus for sampling is the deviation of v among next states, and of
    a reward.
    """
    mean, square, centre, spread = 0.0, 0.0, 0.0, 0.0
    S = len(v)
    for t in range(S):
        mean += row[t] * v[t]
        square += row[t] * v[t] ** 2
        centre += v[t] / S
    for t in range(S):
        spread += (v[t] - centre) ** 2
    variance = max(square - mean * mean, 0.0) + 0.25
    return float(by_noise * noise * np.sqrt(spread + 1.0) + by_sampling * np.sqrt(variance / n))


@compiled
def plan(
    P: Any, r: Any, known: Any, noise: Any, n: Any, H: int, by_noise: float, by_sampling: float, unknown: float
) -> Any:
    """Return optimistic values Q ``[h, s, a]`` and V ``[h, s]``.

    An unknown cell is worth ``unknown`` times H - h.
    """
    G, S, A, _ = P.shape
    q, v = np.zeros((H, S, A)), np.zeros((H + 1, S))
    for h in range(H - 1, -1, -1):
        g, most = h % G, float(H - h)
        for s in range(S):
            for a in range(A):
                if known[g, s, a]:
                    mean = 0.0
                    for t in range(S):
                        mean += P[g, s, a, t] * v[h + 1, t]
                    bonus = _bonus(P[g, s, a], v[h + 1], noise[g, s, a], n[g, s, a], by_noise, by_sampling)
                    q[h, s, a] = min(most, r[g, s, a] + mean + bonus)
                else:
                    q[h, s, a] = unknown * most
            v[h, s] = q[h, s].max()
    return q, v


@compiled
def optimism(
    P: Any, known: Any, noise: Any, n: Any, initial: Any, actions: Any, v: Any, by_noise: float, by_sampling: float
) -> Any:
    """Return the share of each (s, a) in the bonuses of a policy's users.

    The share is expected visits times bonus. ``v`` has H + 1 stages.
    """
    G, S, A, _ = P.shape
    H = len(actions)
    out, visits = np.zeros((S, A)), initial.copy()
    for h in range(H):
        g, later = h % G, np.zeros(S)
        for s in range(S):
            if visits[s] <= 0.0:
                continue
            a, most = actions[h, s], float(H - h)
            if not known[g, s, a]:
                out[s, a] += visits[s] * most
                continue
            bonus = _bonus(P[g, s, a], v[h + 1], noise[g, s, a], n[g, s, a], by_noise, by_sampling)
            out[s, a] += visits[s] * min(bonus, most)
            for t in range(S):
                later[t] += visits[s] * P[g, s, a, t]
        visits = later
    return out


@compiled
def value_from_below(P: Any, r: Any, noise: Any, initial: Any, actions: Any, by_noise: float) -> float:
    """Return the value of a policy, less ``by_noise`` deviations of noise at every step.

    No value is below 0, from any state.
    """
    G, S, v = len(P), len(initial), np.zeros(len(initial))
    for h in range(len(actions) - 1, -1, -1):
        g, earlier, spread = h % G, np.zeros(S), 0.0
        for t in range(S):
            spread += (v[t] - v.mean()) ** 2
        for s in range(S):
            a = actions[h, s]
            q = r[g, s, a] - by_noise * noise[g, s, a] * np.sqrt(spread)
            for t in range(S):
                q += P[g, s, a, t] * v[t]
            earlier[s] = max(q, 0.0)
        v = earlier
    return float((initial * v).sum())

"""Search for the active policies that visit a state and action most often.

After SDP-PE, algorithms 2 and 3.

* ``Everyone`` - a list of all deterministic policies: exact, and for tiny problems only
* ``NearBest`` - all policies whose value is within a gap of the best, without a list

Models here have one more state than the problem. It is absorbing; outcomes that are too rare to estimate lead to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.solve import greedy

__all__ = ["EstimatedModel", "Everyone", "NearBest", "PolicyMixture", "shares", "simplex"]


@dataclass(frozen=True, slots=True, eq=False)
class EstimatedModel:
    """An estimated model; the last state is absorbing, and pays nothing."""

    transitions: NDArray[np.float64]  # [h, s, a, s'], with the absorbing state
    rewards: NDArray[np.float64]  # [h, s, a], with the absorbing state
    initial: NDArray[np.float64]  # [s], with the absorbing state

    @classmethod
    def empty(cls, horizon: int, n_states: int, n_actions: int) -> EstimatedModel:
        """Return a model of zeros, to be filled in."""
        shape = (horizon, n_states + 1, n_actions)
        return cls(np.zeros((*shape, n_states + 1)), np.zeros(shape), np.zeros(n_states + 1))

    @classmethod
    def unknown(cls, horizon: int, n_states: int, n_actions: int) -> EstimatedModel:
        """Return a model in which everything leads to the absorbing state, from any start."""
        model = cls.empty(horizon, n_states, n_actions)
        model.transitions[..., n_states] = 1.0
        return model.starting(np.append(np.full(n_states, 1.0 / n_states), 0.0))

    def starting(self, initial: NDArray[np.float64]) -> EstimatedModel:
        """Return the same model, with other starts."""
        return replace(self, initial=initial)


@dataclass(frozen=True, slots=True, eq=False)
class PolicyMixture:
    """Two deterministic policies, each run by a share of the users.

    ``share`` is that of the first.
    """

    first: NDArray[np.int64]  # [h, s]
    second: NDArray[np.int64]  # [h, s]
    share: float
    visits: float  # the probability of a visit

    def split(self, users: int) -> list[tuple[NDArray[np.int64], int]]:
        """Return the policies, each with the number of users who run it.

        The numbers sum to ``users``.
        """
        first = round(self.share * users)
        return [(table, count) for table, count in ((self.first, first), (self.second, users - first)) if count]


class NearBest:
    """Policies whose value in a model is within ``gap`` of the best.

    They are searched by backward induction. The most visiting one maximises visits + lambda value, for the least lambda
    at which its value is large enough.

    Args:
        mixing: If no single policy meets the bound exactly, two policies on its two sides are mixed. The policy beyond
            the bound is run by this share of the users that the mixture gives to it. With 0, all users run a policy
            that is active itself.
    """

    def __init__(self, *, mixing: float = 1.0) -> None:
        self.mixing = mixing

    def most_visiting(self, model: EstimatedModel, layer: int, gap: float) -> list[PolicyMixture]:
        """Return the most visiting policies for every (s, a) at stage ``layer``, by state.

        The absorbing state is not included.
        """
        P, r, d = model.transitions, model.rewards, model.initial
        firsts, seconds, shares, visits = _lagrangian(P, r, d, layer, gap, self.mixing)
        return [
            PolicyMixture(firsts[i][:, :-1], seconds[i][:, :-1], float(shares[i]), float(visits[i]))
            for i in range(len(shares))
        ]

    def best(self, model: EstimatedModel) -> tuple[NDArray[np.int64], float]:
        """Return the best policy, and its value."""
        P, r, d = model.transitions, model.rewards, model.initial
        actions = np.empty(r.shape[:2], dtype=np.int64)
        _greedy(P, r, 1.0, -1, 0, 0, actions)
        _, value = _worth(P, r, d, actions, 0, 0, 0)
        return actions[:, :-1], float(value)


class Everyone:
    """All A^(S H) deterministic policies, of which some are still active.

    A policy has one of A^S rules at each stage, and its number has one digit for each stage. Visits depend on the rules
    before a stage, and values on the rules after it, so each beginning and each end is computed once.

    Args:
        horizon, n_states, n_actions: Sizes of the problem, without the absorbing state.
        most: The largest number of policies to list.
    """

    def __init__(self, horizon: int, n_states: int, n_actions: int, most: int) -> None:
        if n_states * horizon * np.log(n_actions) > np.log(most) + 1e-9:
            raise ValueError(
                f"There are {n_actions}^{n_states * horizon} deterministic policies, and search='enumerate' lists at "
                f"most {most:,}: take search='lagrangian', or a smaller problem."
            )
        self.horizon, self.n_states, self.n_actions = horizon, n_states, n_actions
        count = n_actions**n_states
        self.rules = np.array([np.unravel_index(i, (n_actions,) * n_states) for i in range(count)])  # [rule, s]
        self.active = np.ones((count,) * horizon, dtype=bool)

    def table(self, number: int) -> NDArray[np.int64]:
        """Return the policy with this number, ``[h, s]``."""
        return self.rules[list(np.unravel_index(number, self.active.shape))]

    def values(self, model: EstimatedModel) -> NDArray[np.float64]:  # as `active`
        """Return the value of every policy."""
        S, count = self.n_states, len(self.rules)
        states = np.arange(S)
        V = np.zeros((1, S + 1))  # [end, s]
        for h in reversed(range(self.horizon)):
            reward = model.rewards[h][states, self.rules]  # [rule, s]
            step = model.transitions[h][states, self.rules]  # [rule, s, s']
            inside = reward[:, None] + np.einsum("rst,et->res", step, V)
            V = np.concatenate([inside, np.zeros((count, len(V), 1))], axis=2).reshape(-1, S + 1)
        return np.asarray(V @ model.initial).reshape(self.active.shape)

    def most_visiting(self, model: EstimatedModel, layer: int, gap: float = 0.0) -> list[PolicyMixture]:
        """Return the most visiting policy for every (s, a) at stage ``layer``, by state.

        The gap has no effect here, because ``eliminate`` has used it. Of policies that visit equally
        often, the one with the largest value is returned: steps after the visit matter to the user.
        """
        S, A, count = self.n_states, self.n_actions, len(self.rules)
        reach = model.initial[None]  # [beginning, s]
        for h in range(layer):
            step = model.transitions[h][np.arange(S), self.rules]  # [rule, s, s']
            onwards = np.einsum("bs,rst->brt", reach[:, :S], step)
            onwards[..., S] += reach[:, None, S]
            reach = onwards.reshape(-1, S + 1)
        values = np.where(self.active, self.values(model), -np.inf).reshape(len(reach), count, -1)
        ends, worth = values.argmax(axis=2), values.max(axis=2)  # [beginning, rule]
        any_end = worth > -np.inf
        mixtures = []
        for s in range(S):
            for a in range(A):
                fits = any_end & (self.rules[:, s] == a)
                visits = np.where(fits, reach[:, s, None], -1.0)
                place = int(np.argmax(np.where(fits, visits + 1e-9 * worth, -np.inf)))
                if visits.flat[place] < 0.0:  # no active policy does a there
                    place = int(np.argmax(worth))
                table = self.table(place * values.shape[2] + int(ends.flat[place]))
                mixtures.append(PolicyMixture(table, table, 1.0, float(max(visits.flat[place], 0.0))))
        return mixtures

    def eliminate(self, model: EstimatedModel, gap: float) -> None:
        """Deactivate policies whose value is more than ``gap`` below that of the best active one."""
        values = np.where(self.active, self.values(model), -np.inf)
        self.active &= values >= values.max() - gap

    def best(self, model: EstimatedModel) -> tuple[NDArray[np.int64], float]:
        """Return the best active policy, and its value."""
        values = np.where(self.active, self.values(model), -np.inf)
        number = int(np.argmax(values))
        return self.table(number), float(values.flat[number])


def shares(users: int, parts: int) -> list[int]:
    """Return the sizes of ``parts`` parts of all ``users``, as equal as possible."""
    each, more = divmod(users, parts)
    return [each + (part < more) for part in range(parts)]


def simplex(starts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distribution nearest to noisy counts with a known sum.

    It has one more entry, 0, for the absorbing state of models.

    One number is subtracted from every count, so that the results above 0 sum to the number of users. Sorting gives
    this number.
    """
    counts, users = starts[:-1], max(float(starts[-1]), 1.0)
    ordered = np.sort(counts)[::-1]
    excess = (np.cumsum(ordered) - users) / np.arange(1, len(ordered) + 1)
    shift = excess[np.flatnonzero(ordered > excess)[-1]]
    share = np.maximum(counts - shift, 0.0)
    return np.append(share / share.sum(), 0.0)


@compiled
def _greedy(P: Any, r: Any, weight: float, layer: int, s0: int, a0: int, actions: Any) -> None:
    """Maximise weight * r, plus 1 at (s0, a0) of stage ``layer``, by backward induction.

    The best actions are written to ``actions``.
    """
    H, S, A = r.shape
    following, v, q = np.zeros(S), np.zeros(S), np.zeros((S, A))
    for h in range(H - 1, -1, -1):
        for s in range(S):
            for a in range(A):
                q[s, a] = weight * r[h, s, a]
                if h == layer and s == s0 and a == a0:
                    q[s, a] += 1.0
                for t in range(S):
                    q[s, a] += P[h, s, a, t] * following[t]
        greedy(q, v, actions[h])
        following, v = v, following


@compiled
def _worth(P: Any, r: Any, d: Any, actions: Any, layer: int, s0: int, a0: int) -> Any:
    """Return the visits to (s0, a0) at stage ``layer``, and the value, of one policy."""
    H, S, _ = r.shape
    reach, value, visits = d.copy(), 0.0, 0.0
    for h in range(H):
        if h == layer and actions[h, s0] == a0:
            visits = reach[s0]
        onwards = np.zeros(S)
        for s in range(S):
            a = actions[h, s]
            value += reach[s] * r[h, s, a]
            for t in range(S):
                onwards[t] += reach[s] * P[h, s, a, t]
        reach = onwards
    return visits, value


@compiled
def _lagrangian(P: Any, r: Any, d: Any, layer: int, gap: float, mixing: float) -> Any:
    """Return the most visiting mixtures for all (s, a) of a stage.

    The value of each is at least best - gap.
    """
    H, S, A = r.shape
    pairs = (S - 1) * A
    firsts, seconds = np.zeros((pairs, H, S), dtype=np.int64), np.zeros((pairs, H, S), dtype=np.int64)
    shares, mixed_visits = np.ones(pairs), np.zeros(pairs)
    trial = np.zeros((H, S), dtype=np.int64)
    best = np.zeros((H, S), dtype=np.int64)
    _greedy(P, r, 1.0, -1, 0, 0, best)
    _, largest = _worth(P, r, d, best, 0, 0, 0)
    least = largest - gap
    for pair in range(pairs):
        s, a = pair // A, pair % A
        low, high = 1e-9, 1e3
        _greedy(P, r, low, layer, s, a, firsts[pair])
        visits, value = _worth(P, r, d, firsts[pair], layer, s, a)
        if value >= least:
            seconds[pair], mixed_visits[pair] = firsts[pair], visits
            continue
        seconds[pair] = best  # on the other side of the bound
        other_visits, other_value = _worth(P, r, d, best, layer, s, a)
        for _ in range(40):
            middle = math.sqrt(low * high)
            _greedy(P, r, middle, layer, s, a, trial)
            now_visits, now_value = _worth(P, r, d, trial, layer, s, a)
            if now_value >= least:
                high, other_visits, other_value = middle, now_visits, now_value
                seconds[pair] = trial
            else:
                low, visits, value = middle, now_visits, now_value
                firsts[pair] = trial
        share = (other_value - least) / max(other_value - value, 1e-300)
        shares[pair] = mixing * min(1.0, max(0.0, share))
        mixed_visits[pair] = shares[pair] * visits + (1.0 - shares[pair]) * other_visits
    return firsts, seconds, shares, mixed_visits

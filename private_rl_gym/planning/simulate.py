"""The trajectories of many users under one policy, compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import numbers, shown
from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.sampling import SamplingTables, check_tapes

__all__ = ["Trajectories", "rollout"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trajectories:
    """The episodes of some users.

    This is raw user data, which must stay inside a trust boundary.
    """

    states: NDArray[np.int32]  # [user, h], h = 0..H
    actions: NDArray[np.int32]  # [user, h]
    rewards: NDArray[np.float64]  # [user, h]

    def __len__(self) -> int:
        return int(self.actions.shape[0])

    def part(self, start: int, stop: int) -> Trajectories:
        """Return some of the users, without copying."""
        return Trajectories(self.states[start:stop], self.actions[start:stop], self.rewards[start:stop])

    @property
    def returns(self) -> NDArray[np.float64]:  # [user]
        """Each user's sum of rewards."""
        return np.asarray(self.rewards.sum(axis=1))

    def __repr__(self) -> str:  # the sizes alone: raw data does not belong in logs
        return f"Trajectories({len(self)} users, H={self.actions.shape[1]})"


def rollout(
    tables: SamplingTables,
    policy: Policy,
    tapes: NDArray[np.float64],
    action_uniforms: NDArray[np.float64] | None = None,
) -> Trajectories:
    """Let the users with these tapes run ``policy``.

    Args:
        tables: The model, as ``TabularModel.tables``.
        policy: The policy that all of them run.
        tapes: The users, ``[user, uniform]``.
        action_uniforms: For a stochastic policy, the uniforms ``[user, h]`` that it draws its actions with. They
            belong to the code that runs the policy, not to the user.
    """
    if not isinstance(tables, SamplingTables) or not isinstance(policy, Policy):
        raise TypeError(f"tables is {shown(tables)} and policy {shown(policy)}: give SamplingTables and a Policy.")
    tapes = np.ascontiguousarray(check_tapes(tapes, tables.horizon))
    if (policy.horizon, policy.n_states, policy.n_actions) != (
        tables.horizon,
        tables.n_states,
        tables.n_actions,
    ):
        raise ValueError(
            f"{policy} does not fit the model: it has H={tables.horizon}, S={tables.n_states}, A={tables.n_actions}."
        )
    users, horizon = len(tapes), tables.horizon
    states = np.empty((users, horizon + 1), dtype=np.int32)
    actions = np.empty((users, horizon), dtype=np.int32)
    rewards = np.empty((users, horizon), dtype=np.float64)
    table, choices, uniforms = policy.table, np.empty((0, 0, 0)), np.empty((0, 0))
    if not policy.deterministic:
        wanted = f"action_uniforms of shape {(users, horizon)}, one uniform in [0, 1) for each user and stage"
        if action_uniforms is None:
            raise ValueError(f"A stochastic policy needs {wanted}.")
        uniforms = numbers(action_uniforms, "action_uniforms")
        if uniforms.shape != (users, horizon) or not ((uniforms >= 0.0) & (uniforms < 1.0)).all():
            raise ValueError(
                f"A stochastic policy needs {wanted}; got shape {uniforms.shape}, or values outside [0, 1)."
            )
        table, choices = np.empty((0, 0), dtype=np.int64), policy.cumulative
    allowed = _rollout(
        tables.offsets,
        tables.cumulative,
        tables.successors,
        tables.rewards,
        tables.initial_cumulative,
        tables.initial_states,
        (tables.n_states, tables.n_actions, tables.stationary, tables.bernoulli),
        table,
        choices,
        uniforms,
        tapes,
        states,
        actions,
        rewards,
    )
    if not allowed:
        raise ValueError(f"The policy chooses an action outside 0..{tables.n_actions - 1}.")
    return Trajectories(states, actions, rewards)


@compiled
def _first_above(cumulative: Any, start: int, stop: int, uniform: float) -> int:
    """Return the first entry in start..stop-1 whose cumulative probability exceeds ``uniform``.

    If none does, it is the last one.
    """
    if stop - start <= 8:
        while start < stop - 1 and cumulative[start] <= uniform:
            start += 1
        return start
    low, high = start, stop - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] <= uniform:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _rollout(
    offsets: Any,  # [row + 1]
    cumulative: Any,  # [entry]
    successors: Any,
    means: Any,
    initial_cumulative: Any,
    initial_states: Any,
    sizes: tuple[int, int, bool, bool],
    table: Any,  # [h, s] of a deterministic policy, else empty
    choices: Any,  # [h, s, a] cumulative, of a stochastic one, else empty
    uniforms: Any,  # [user, h] to draw its choices with
    tapes: Any,  # [user, uniform]
    states: Any,
    actions: Any,
    rewards: Any,
) -> bool:
    """Fill in the episodes; return False if the policy leaves the action space."""
    n_users, horizon = actions.shape
    n_states, n_actions, stationary, bernoulli = sizes
    deterministic = table.size > 0
    for user in range(n_users):
        s = initial_states[_first_above(initial_cumulative, 0, len(initial_cumulative), tapes[user, 0])]
        states[user, 0] = s
        for h in range(horizon):
            a = table[h, s] if deterministic else _first_above(choices[h, s], 0, n_actions, uniforms[user, h])
            if a < 0 or a >= n_actions:
                return False
            row = ((0 if stationary else h) * n_states + s) * n_actions + a
            entry = _first_above(cumulative, offsets[row], offsets[row + 1], tapes[user, 2 + 2 * h])
            reward = means[entry]
            if bernoulli:
                reward = 1.0 if tapes[user, 1 + 2 * h] < reward else 0.0
            s = successors[entry]
            actions[user, h] = a
            rewards[user, h] = reward
            states[user, h + 1] = s
    return True

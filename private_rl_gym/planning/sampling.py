"""Tables that turn a user's tape into their episode.

Every engine reads them in the same way.

A tape is the vector of uniforms in [0, 1) behind one episode of H steps, of length 2H + 1::

    tape[0]         their initial state
    tape[1 + 2h]    their reward at stage h
    tape[2 + 2h]    their next state at stage h

Each uniform is turned into an outcome by inverse distribution function: outcome j is the first whose cumulative
probability exceeds the uniform. The step loop, the vector environment and the compiled rollout compare the same
doubles in the same way, and so agree to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import cumulative, read_only

__all__ = ["SamplingTables", "check_tapes", "tape_length"]


def tape_length(horizon: int) -> int:
    """Return the number of uniforms behind one episode."""
    return 2 * horizon + 1


def check_tapes(tapes: Any, horizon: int, users: int | None = None, *, one: bool = False) -> NDArray[np.float64]:
    """Return ``tapes`` as a valid array ``[user, uniform]``; raise ``ValueError`` if it is not.

    It has ``users`` rows, or any number of rows by default. With ``one``, it is the tape of one user,
    ``[uniform]``.

    Values of a tape are a user's data, so the error message does not contain them.
    """
    length = tape_length(horizon)
    wanted = f"{length} uniforms (1 + 2 * horizon)"
    if not one:
        wanted += " for each user" if users is None else f" for each of {users} users"
    try:
        array = np.asarray(tapes, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"The tape is not an array of numbers: it must hold {wanted}.") from None
    if users is None and array.ndim == 2:
        users = len(array)
    shape = (length,) if one else (1 if users is None else users, length)
    if array.shape != shape:
        raise ValueError(f"The tape has shape {array.shape}, not {shape}: it must hold {wanted}.")
    if not ((array >= 0.0) & (array < 1.0)).all():
        raise ValueError("The tape holds a value outside [0, 1): a tape is made of uniforms, as rng.random() draws.")
    return array


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SamplingTables:
    """The possible outcomes of every (stage, state, action), packed row after row.

    Row ``(h * S + s) * A + a`` (with h = 0 in a stationary model) owns the entries from ``offsets[row]`` to
    ``offsets[row + 1]``. Impossible outcomes have no entry.
    """

    n_states: int
    n_actions: int
    horizon: int
    stationary: bool
    bernoulli: bool  # rewards are bits with the given mean, else the mean itself
    offsets: NDArray[np.int64]  # [row + 1]
    cumulative: NDArray[np.float64]  # [entry], the last of each row is exactly 1
    successors: NDArray[np.int64]  # [entry]
    rewards: NDArray[np.float64]  # [entry], mean reward of that outcome
    initial_cumulative: NDArray[np.float64]  # [possible initial state]
    initial_states: NDArray[np.int64]

    @classmethod
    def build(
        cls,
        transitions: NDArray[np.float64],  # [h, s, a, s']
        rewards: NDArray[np.float64],  # [h, s, a] or [h, s, a, s']
        initial: NDArray[np.float64],  # [s]
        *,
        horizon: int,
        bernoulli: bool,
    ) -> SamplingTables:
        """Pack a model's dense arrays.

        Axis h has length 1 where a stage-independent array stands for all stages.
        """
        _, n_states, n_actions, _ = transitions.shape
        stages = max(transitions.shape[0], rewards.shape[0])
        if rewards.ndim == 3:
            rewards = rewards[..., None]
        dense = np.broadcast_to(transitions, (stages, *transitions.shape[1:]))
        offsets, successors, sums = _pack(dense.reshape(-1, n_states))
        means = np.broadcast_to(rewards, dense.shape)[dense > 0]
        _, initial_states, initial_cumulative = _pack(initial[None, :])
        return cls(
            n_states=n_states,
            n_actions=n_actions,
            horizon=horizon,
            stationary=stages == 1,
            bernoulli=bernoulli,
            offsets=read_only(offsets),
            cumulative=read_only(sums),
            successors=read_only(successors),
            rewards=read_only(np.ascontiguousarray(means)),
            initial_cumulative=read_only(initial_cumulative),
            initial_states=read_only(initial_states),
        )

    @classmethod
    def packed(
        cls,
        outcomes: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]],
        rewards: NDArray[np.float64],  # [h, s, a]
        initial: NDArray[np.float64],  # [s]
        *,
        stages: int,
        horizon: int,
        bernoulli: bool,
    ) -> SamplingTables:
        """Build tables from packed outcomes.

        Outcomes of one stage are repeated if they stand for several.
        """
        offsets, successors, probabilities = outcomes
        _, n_states, n_actions = rewards.shape
        lengths = np.diff(offsets)
        copies = stages * n_states * n_actions // len(lengths)
        sums, so_far = np.empty(len(probabilities)), np.zeros(len(lengths))
        for place in range(int(lengths.max())):  # the first outcome of every row, then the second, ...
            rows = np.flatnonzero(lengths > place)
            so_far[rows] += probabilities[offsets[rows] + place]
            sums[offsets[rows] + place] = np.minimum(so_far[rows], 1.0)
        sums[offsets[1:] - 1] = 1.0
        lengths = np.tile(lengths, copies)
        means = np.broadcast_to(rewards, (stages, n_states, n_actions)).ravel()
        _, initial_states, initial_cumulative = _pack(initial[None, :])
        return cls(
            n_states=n_states,
            n_actions=n_actions,
            horizon=horizon,
            stationary=stages == 1,
            bernoulli=bernoulli,
            offsets=read_only(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)),
            cumulative=read_only(np.tile(sums, copies)),
            successors=read_only(np.tile(successors, copies)),
            rewards=read_only(np.repeat(means, lengths)),
            initial_cumulative=read_only(initial_cumulative),
            initial_states=read_only(initial_states),
        )

    def __repr__(self) -> str:
        return (
            f"SamplingTables(S={self.n_states}, A={self.n_actions}, H={self.horizon}, "
            f"{len(self.successors)} possible outcomes)"
        )


def _pack(
    distributions: NDArray[np.float64],  # [row, outcome]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return offsets, outcomes and cumulative probabilities of the possible outcomes of each row."""
    possible = distributions > 0
    offsets = np.concatenate([[0], np.cumsum(possible.sum(axis=1))]).astype(np.int64)
    outcomes = np.nonzero(possible)[1].astype(np.int64)
    return offsets, outcomes, cumulative(distributions)[possible]

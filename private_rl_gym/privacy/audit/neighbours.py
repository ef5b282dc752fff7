"""Neighbouring sequences of users: worst cases, built from tapes.

* ``disjoint_paths`` - the two users farthest apart among tapes of zeros, halves and ones
* ``opposite_rewards`` - two users on the same path, one with every reward and one with none
* ``one_stage`` - two users who differ only at the first stage
* ``random_paths`` - the two users farthest apart among random tapes
* ``searched_paths`` - the better of the disjoint and the random pair, improved place by place
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.sampling import SamplingTables, tape_length

__all__ = [
    "NEIGHBOURS",
    "Worlds",
    "disjoint_paths",
    "neighbours",
    "one_stage",
    "opposite_rewards",
    "random_paths",
    "searched_paths",
]

LAST = float(np.nextafter(1.0, 0.0))
"""The largest uniform number: the last double below 1."""

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]
Distance = Callable[[NDArray[np.float64], NDArray[np.float64]], float]
"""Distance between two users: the norm of the difference of their contributions."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Worlds:
    """Two sequences of users that differ in one user.

    Attributes:
        tapes: ``[user, uniform]``, the users of world 0.
        other: ``[uniform]``, the user of world 1 who is in place of one of world 0.
        place: Index of the user who is replaced.
        again: Other places of the user, for further episodes.
    """

    tapes: NDArray[np.float64]
    other: NDArray[np.float64]
    place: int
    again: tuple[int, ...] = ()

    @property
    def places(self) -> tuple[int, ...]:
        """All places in which the two worlds differ."""
        return (self.place, *self.again)

    def world(self, which: int) -> NDArray[np.float64]:
        """Return the users of world 0 or 1."""
        if which == 0:
            return self.tapes
        tapes = self.tapes.copy()
        tapes[list(self.places)] = self.other
        return tapes

    def __repr__(self) -> str:  # tapes are users' data
        return f"Worlds({len(self.tapes)} users, different in number {self.place})"


def disjoint_paths(tables: SamplingTables, distance: Distance, _rng: np.random.Generator) -> Pair:
    """Return the farthest pair of users among simple tapes.

    A tape has any start, one uniform number for all transitions, and all rewards or none.
    """
    starts = (np.concatenate([[0.0], tables.initial_cumulative[:-1]]) + tables.initial_cumulative) / 2.0
    starts = starts[np.unique(np.linspace(0, len(starts) - 1, min(len(starts), 8)).astype(int))]
    tapes = []
    for start in starts:
        for way in (0.0, 0.5, LAST):
            for reward in (0.0, LAST):
                tape = np.empty(tape_length(tables.horizon))
                tape[0], tape[1::2], tape[2::2] = min(start, LAST), reward, way
                tapes.append(tape)
    return _farthest(tapes, distance)


def random_paths(tables: SamplingTables, distance: Distance, rng: np.random.Generator) -> Pair:
    """Return the farthest pair among 24 users with random tapes."""
    return _farthest(list(rng.random((24, tape_length(tables.horizon)))), distance)


def searched_paths(tables: SamplingTables, distance: Distance, rng: np.random.Generator) -> Pair:
    """Return the better of the disjoint and random pairs, improved place by place."""
    one, other = max(
        (disjoint_paths(tables, distance, rng), random_paths(tables, distance, rng)), key=lambda pair: distance(*pair)
    )
    best = distance(one, other)
    for tape, place, value in _changes(one, other, rng):
        before = tape[place]
        tape[place] = value
        changed = distance(one, other)
        if changed >= best:
            best = changed
        else:
            tape[place] = before
    return one, other


def opposite_rewards(tables: SamplingTables, _distance: Distance, _rng: np.random.Generator) -> Pair:
    """Return two users on one path, with all rewards and with none.

    They are for guarantees about rewards only. The path begins at the last start state, so that other users can start
    elsewhere.
    """
    one = np.empty(tape_length(tables.horizon))
    one[0], one[1::2], one[2::2] = LAST, LAST, 0.5
    other = one.copy()
    other[1::2] = 0.0
    return one, other


def one_stage(tables: SamplingTables, distance: Distance, rng: np.random.Generator) -> Pair:
    """Return two users who differ only at the first stage.

    They differ in the first reward, and also in the start if that makes them farther apart. They are closer than users
    who differ at every stage, but an attack can compare stages, and so cancel noise that stages share. If no such users
    differ, the pair is that of ``searched_paths``.
    """
    one = np.empty(tape_length(tables.horizon))
    one[0], one[1::2], one[2::2] = 0.0, LAST, 0.0
    others = []
    for start in (LAST, 0.0):
        other = one.copy()
        other[0], other[1] = start, 0.0
        others.append(other)
    far = [distance(one, other) for other in others]
    return (one, others[int(np.argmax(far))]) if max(far) > 0.0 else searched_paths(tables, distance, rng)


def _farthest(tapes: list[NDArray[np.float64]], distance: Distance) -> Pair:
    pairs = [(distance(one, other), i, j) for i, one in enumerate(tapes) for j, other in enumerate(tapes[:i])]
    _, i, j = max(pairs)
    return tapes[j].copy(), tapes[i].copy()


def _changes(
    one: NDArray[np.float64], other: NDArray[np.float64], rng: np.random.Generator
) -> Iterator[tuple[NDArray[np.float64], int, float]]:
    """Yield changes of both tapes: three rounds, with three values for each place."""
    for _ in range(3):
        for place in rng.permutation(len(one)):
            for tape in (one, other):
                for value in (0.0, LAST, float(rng.random())):
                    yield tape, int(place), value


NEIGHBOURS: dict[str, Callable[[SamplingTables, Distance, np.random.Generator], Pair]] = {
    "disjoint": disjoint_paths,
    "random": random_paths,
    "searched": searched_paths,
    "rewards": opposite_rewards,
    "one-stage": one_stage,
}
"""The ways to choose a pair of users, by name."""


def neighbours(
    kind: str, tables: SamplingTables, distance: Distance, rng: np.random.Generator, *, users: int, place: int = 0
) -> Worlds:
    """Return two sequences of users that differ in one user.

    At ``place`` each has one user of a pair of this kind. All other users are copies of the first one of the pair. So
    no other user adds to the counts that change in world 1 alone. Where only rewards differ, the others start in
    another state, if there is one, for the same reason.
    """
    if kind not in NEIGHBOURS:
        raise ValueError(f"There are no neighbours {kind!r}: choose one of {', '.join(NEIGHBOURS)}.")
    if not 0 <= place < users:
        raise ValueError(f"place is {place}: the user who differs is one of {users}, counted from 0.")
    one, other = NEIGHBOURS[kind](tables, distance, rng)
    tapes = np.tile(one, (users, 1))
    if kind == "rewards":
        tapes[:, 0], tapes[:, 2::2] = 0.0, 0.0
        tapes[place] = one
    return Worlds(tapes, other, place)

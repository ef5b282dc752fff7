"""Sums that would not fit are refused before they are allocated, with their size."""

import tracemalloc

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.agents import DPUCBVI, FrugalUCBVI
from private_rl_gym.envs import LoggedUsers
from private_rl_gym.privacy.schedule import Schedule
from private_rl_gym.wrappers import Episodes, JDPBillboard, LDPUserSide, OpenBillboard, SDPShuffler, memory

TAXI = next(name for name in reversed(gym.registry) if name.startswith("Taxi-v"))
ENV = LoggedUsers(60, 4, 15)
BOARDS = {
    "open": lambda: OpenBillboard(ENV, users=10),
    "factorization": lambda: JDPBillboard(ENV, 1.0, 1e-6, users=10, schedule=Schedule(releases=50_000)),
    "one release": lambda: JDPBillboard(ENV, 1.0, 1e-6, users=10, schedule=10),
    "k-ary": lambda: JDPBillboard(ENV, 1.0, 0.0, users=10, schedule=Schedule(releases=50_000)),
    "tree": lambda: JDPBillboard(ENV, 1.0, 1e-6, users=10, counting="binary-tree", schedule=Schedule(releases=50_000)),
    "batched": lambda: JDPBillboard(ENV, 1.0, 1e-6, users=10, counting="batched"),
    "one step": lambda: LDPUserSide(ENV, 1.0, users=10),
    "laplace": lambda: LDPUserSide(ENV, 1.0, users=10, randomizer="laplace"),
    "sdp": lambda: SDPShuffler(ENV, 1.0, 1e-6, users=10, schedule=5),
}


def fill(board):
    rng = np.random.default_rng(0)
    shape = (10, 15)
    states = rng.integers(0, 60, (10, 16))
    board.ingest(Episodes(list(range(10)), states, rng.integers(0, 4, shape), rng.random(shape)))
    return board.release


@pytest.mark.parametrize("make", BOARDS.values(), ids=BOARDS)
def test_what_is_stated_is_what_is_taken(make):
    fill(make())  # compiled
    tracemalloc.start()
    board = make()
    built = tracemalloc.get_traced_memory()[1]
    fill(board)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    cells = 8 * board.statistic.cells
    assert built < cells / 2, "a boundary allocates before anybody comes"
    assert taken - cells <= board.memory <= taken + 1.5 * cells


@pytest.mark.parametrize("make", BOARDS.values(), ids=BOARDS)
def test_what_does_not_fit_is_refused_before_it_is_allocated(make, monkeypatch):
    board = make()
    monkeypatch.setattr(memory, "available_memory", lambda: board.memory - 1)
    tracemalloc.start()
    with pytest.raises(MemoryError, match=r"would take [\d.]+ MB of memory, and there are .* H=15, S=61, A=4"):
        _ = board.release
    assert tracemalloc.get_traced_memory()[1] < 4 * board.statistic.cells
    tracemalloc.stop()
    monkeypatch.setattr(memory, "available_memory", lambda: None)  # a machine that does not say
    assert fill(board).users == 10


def test_taxi_of_two_hundred_steps_says_its_size(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 8 * 10**9)
    board = JDPBillboard(gym.make(TAXI, max_episode_steps=200), 1.0, 1e-6, users=1_000, reward_range=(-10, 20))
    said = r"would take 36\.2 GB of memory, and there are 8\.0 GB: 301,802,400 numbers"
    for refused in (lambda: DPUCBVI("TabularPolicy", board), lambda: board.serve([0] * 501), lambda: board.reset()):
        with pytest.raises(MemoryError, match=said):
            refused()
        assert (board.open, board.users_left) == (True, 1_000)  # another agent may be given to it


def test_reports_of_single_steps_fit(monkeypatch):
    """As the refusal says: without the horizon in it."""
    monkeypatch.setattr(memory, "available_memory", lambda: 8 * 10**9)
    board = JDPBillboard(gym.make(TAXI, max_episode_steps=200), 1.0, 1e-6, users=1_000, reward_range=(-10, 20))
    with pytest.raises(MemoryError, match=r"without their stages \(statistic='reports'; FrugalUCBVI with stationary"):
        FrugalUCBVI("TabularPolicy", board)
    FrugalUCBVI("TabularPolicy", board, stationary=True)
    assert board.memory < 10**9
    taxi = gym.make(TAXI, max_episode_steps=200)
    board = JDPBillboard(taxi, 1.0, 1e-6, users=1_000, reward_range=(-10, 20), stationary=True)
    FrugalUCBVI("TabularPolicy", board)
    assert board.memory < 10**9

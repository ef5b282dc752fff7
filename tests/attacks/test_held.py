"""Doors that held when they were tried: forks, threads, interrupts, cuts, vector environments, populations."""

import os
import threading
import warnings
from functools import partial

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.wrappers import BudgetExhausted, JDPBillboard, LDPPerStep, LDPUserSide, OpenBillboard
from tests.attacks.test_doors import interrupted
from tests.wrappers.stacks import BOARDS, A, H, S, jdp, river, same_release

every_board = pytest.mark.parametrize("make", BOARDS.values(), ids=BOARDS)
private_board = pytest.mark.parametrize(
    "make", [make for name, make in BOARDS.items() if name != "open"], ids=[name for name in BOARDS if name != "open"]
)
ONE = np.ones((H, S), dtype=int)


def tapes(users, seed=0):
    return np.random.default_rng(seed).random((users, 2 * H + 1))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@private_board
def test_a_fork_draws_no_noise(make):
    board = make(river())
    board.serve(ONE, 2)
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            board.serve(ONE, 5)
            said = b"served"
        except RuntimeError as error:
            said = str(error).encode()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the parent hears of it
            said = repr(error).encode()
        os.write(writing, said)
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        assert b"was forked" in pipe.read()
    board.serve(ONE, 5)
    assert board.release.users == 7


@every_board
def test_threads_spend_the_budget_once(make):
    board, refused = make(river()), []

    def come():
        for _ in range(15):
            try:
                board.serve(ONE, 1)
            except BudgetExhausted:
                refused.append(1)

    threads = [threading.Thread(target=come) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (board.release.users, board.users_left, len(refused)) == (40, 0, 20)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1e-3, 1e7], ids=["loud", "quiet"])
@every_board
def test_interrupts_at_every_line_leave_no_bare_sums_and_count_nobody_twice(make, epsilon):
    """Loud noise shows that it is there in nearly every cell; quiet noise shows how many users are counted."""
    group, line = tapes(40), 0
    while True:
        line += 1
        options = {} if make is BOARDS["open"] else {"epsilon": epsilon}
        try:
            board = make(river(), users=120, batch_size=20, **options)
        except ValueError:  # around reports epsilon follows from theirs
            board = make(river(), users=120, batch_size=20)
        if not interrupted(partial(board.serve, ONE, group), line):
            break
        try:
            board.serve(ONE, 80)
            if board.closes_early:
                board.publish()
        except RuntimeError as error:
            assert "interrupted" in str(error)  # noqa: PT017 - it may go on, or say why not
        except BudgetExhausted:
            pytest.fail("A user who was interrupted was counted twice.")
        release = board.release
        if not release.version:
            continue
        if make is not BOARDS["open"] and board.ledger.epsilon < 1:
            bare = (release.m == np.rint(release.m)) & (abs(release.m) <= 120)
            assert bare.mean() < 0.5
        assert release.n[0].max() <= release.users + 6.0 * release.noise_std["n"]  # all begin in one cell, once
    assert line > 20


@every_board
@pytest.mark.parametrize("cut", range(0, 13, 2))
def test_a_run_may_be_cut_anywhere(make, cut, tmp_path):
    straight, first, second = (make(river(), batch_size=4) for _ in range(3))
    for board in (straight, first):
        board.unwrapped.reset(seed=9)
        if cut:
            board.serve(ONE, cut)
    first.save_state(tmp_path / "state", key=b"0" * 16)
    second.load_state(tmp_path / "state", key=b"0" * 16)
    for board in (straight, second):
        board.serve(ONE, 40 - cut)
    assert same_release(straight.release, second.release)
    assert str(straight.ledger) == str(second.ledger)


@every_board
def test_vector_environments_see_no_more_than_one(make):
    vector = gym.vector.SyncVectorEnv([lambda: make(river()) for _ in range(2)])
    _, info = vector.reset()
    assert not info
    for _ in range(2 * H + 2):
        _, rewards, _, _, info = vector.step(np.ones(2, dtype=int))
        assert not rewards.any()
        assert set(info) <= {"withheld", "_withheld"}
    for board in vector.envs:
        assert board.release.users <= 3
    vector.close()


@pytest.mark.parametrize("build", [JDPBillboard, LDPUserSide, OpenBillboard])
def test_populations_that_nobody_can_count_are_refused(build):
    options = {OpenBillboard: {}, LDPUserSide: {"epsilon": 1.0}, JDPBillboard: {"epsilon": 1.0, "delta": 1e-6}}[build]
    for users in (10**12 + 1, 10**30, -1, 0, 2.5, "many", float("inf"), float("nan")):
        with pytest.raises((ValueError, TypeError), match="users"):
            build(river(), users=users, **options)
    board = build(river(), users=10, **options)
    for users in (11, 10**12, 10**30, -1, 0):
        with pytest.raises((BudgetExhausted, ValueError), match=r"users|built for 10"):
            board.serve(ONE, users)
    assert board.users_left == 10


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, -1e300, "x", None, [1], 1j])
@pytest.mark.parametrize("make", [jdp, lambda env: LDPPerStep(env, 1.0), lambda env: OpenBillboard(env)])
def test_hostile_rewards_and_observations_are_refused(make, value):
    class Hostile(gym.Wrapper):
        where = 1

        def step(self, action):
            found = list(self.env.step(action))
            found[self.where] = value
            return tuple(found)

    for where in (0, 1):
        env = Hostile(river())
        env.where = where
        board = make(env)
        board.reset()
        with pytest.raises(ValueError, match=r"nothing .* released"):
            board.step(A - 1)

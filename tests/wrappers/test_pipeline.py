"""The pipeline behind a boundary stays whole: interrupts, refusals and threads leave nothing half done."""

import contextlib
import os
import sys
import threading
from functools import partial

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.planning.network import Layers
from private_rl_gym.privacy.requests import Wanted
from private_rl_gym.privacy.schedule import Schedule
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard, memory
from private_rl_gym.wrappers.state import State
from tests.wrappers.stacks import BOARDS, A, S, jdp, ldp, river, same_release
from tests.wrappers.test_boundary import policy

every_board = pytest.mark.parametrize("make", BOARDS.values(), ids=BOARDS)


def interrupted(code, line, call):
    """Whether an interrupt at the line of this number, counted as they run, came while ``call`` ran."""
    passed = 0

    def trace(frame, event, _):
        nonlocal passed
        if frame.f_code is not code:
            return None
        if event == "line":
            passed += 1
            if passed == line:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


# Saved states ---------------------------------------------------------------------------------------------------------


USES = {
    "serve": lambda board, _: board.serve(policy, 3),
    "reset": lambda board, _: board.reset(),
    "publish": lambda board, _: board.publish(),
    "release": lambda board, _: board.release,
    "bind": lambda board, _: board.bind(),
    "save": lambda board, path: board.save_state(path),
}


@every_board
def test_a_state_that_is_restored_in_part_leaves_nothing_usable(make, tmp_path):
    """Noise of the saved run, beside sums of new users: what was published before would tell the difference."""
    code, came, line = State._restore.__code__, True, 1  # at the first line nothing is restored yet
    while came:
        line += 1
        saved, board = make(river(), schedule=3), make(river(), schedule=3)
        saved.serve(policy, 7)
        saved.save_state(tmp_path / f"state {line}")
        came = interrupted(code, line, partial(board.load_state, tmp_path / f"state {line}"))
        for use in USES.values() if came else ():
            with pytest.raises(RuntimeError, match="load_state was interrupted"):
                use(board, tmp_path / "again")
        assert not (tmp_path / "again").exists()
    assert line > 10
    assert board.serve(policy, 3) == 3  # the last one was not interrupted


def test_a_state_of_a_run_that_went_on_elsewhere_is_not_saved_again(tmp_path):
    """Found by attack: the save was refused, but its file stayed, and was a second continuation of the same noise."""
    board, other = jdp(river()), jdp(river())
    board.serve(policy, 5)
    board.save_state(tmp_path / "first")
    other.load_state(tmp_path / "first")
    with pytest.raises(ValueError, match="was continued before"):
        board.save_state(tmp_path / "second")
    assert not (tmp_path / "second").exists()
    other.serve(policy, 1)


@pytest.mark.parametrize("again", [False, True], ids=["first save", "second save"])
def test_an_interrupted_save_does_not_let_two_runs_continue(again, tmp_path, monkeypatch):
    """Wherever the interrupt comes: if this board goes on, no other one does."""
    flushes, sync = 0, os.fsync

    def interrupt(handle):
        nonlocal flushes
        flushes += 1
        if flushes == stop:
            raise KeyboardInterrupt
        sync(handle)

    stop, came = 0, True
    while came:
        stop, came, folder = stop + 1, False, tmp_path / str(stop)
        folder.mkdir()
        board = jdp(river())
        board.serve(policy, 5)
        if again:
            board.save_state(folder / "first")
        flushes = 0
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", interrupt)
            try:
                board.save_state(folder / "state")
            except KeyboardInterrupt:
                came = True
        able = 0
        for path in (folder / "first", folder / "state"):
            if path.exists():
                try:
                    jdp(river()).load_state(path)
                    able += 1
                except ValueError:
                    continue
        try:
            board.serve(policy, 1)
            able += 1
        except ValueError:
            pass
        assert able <= 1
    assert stop > 2


# Threads --------------------------------------------------------------------------------------------------------------


def test_two_threads_make_one_pipeline(monkeypatch):
    board, made, wait = jdp(river()), [], threading.Barrier(2, timeout=0.5)
    check = memory.check

    def slowly(*arguments):
        made.append(arguments)
        with contextlib.suppress(threading.BrokenBarrierError):
            wait.wait()
        check(*arguments)

    monkeypatch.setattr(memory, "check", slowly)
    threads = [threading.Thread(target=lambda: board.users_to_release) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


WAYS = {
    "serve": lambda board, request: board.serve(policy, 1, request),
    "ingest": lambda board, request: board.ingest({}, request=request),
    "request": lambda board, request: setattr(board, "request", request),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_request_is_checked_for_the_statistic_that_answers_it(way, monkeypatch):
    """A thread that binds a board to another statistic waits until a request is checked and answered, or dropped."""
    board = jdp(river(), delta=1e-6)
    asked = Wanted(np.ones((S, A), dtype=bool), 0.0, 0.0, 3)
    kind = type(board.statistic)
    checked, seen = kind.checked, []

    def slowly(self, request):
        binder = threading.Thread(target=lambda: board.bind("reports"))
        binder.start()
        binder.join(timeout=0.3)
        seen.append(binder.is_alive())
        return checked(self, request)

    monkeypatch.setattr(kind, "checked", slowly)
    with pytest.raises(TypeError, match="understand nothing"):
        WAYS[way](board, asked)
    assert seen == [True]


# What was set before an agent comes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", [None, "tabular"])
def test_users_who_were_invited_come_to_the_agent_that_is_built_afterwards(statistic):
    """Found by comparison: a pipeline of the same kind took the place of the one that knew them."""
    tapes = river().unwrapped.model.draw_users(np.random.default_rng(3), 6)
    releases = []
    for bind in (False, True):
        board = OpenBillboard(river(), users=12, statistic=statistic)
        board.invite(tapes)
        if bind:
            board.bind("tabular", apart=True)
        board.serve(policy, 6)
        releases.append(board.release)
    assert same_release(*releases)


def test_a_request_and_the_size_of_a_batch_stay_with_their_statistic():
    board = jdp(river(), statistic="reports", schedule=20)
    board.request = asked = Wanted(np.ones((S, A), dtype=bool), 0.0, 0.0, 3)
    board.begin_batch(4)
    board.bind("reports", apart=True)
    assert board.request.most == asked.most
    assert board.users_to_release == 4


# Guarantees -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 10.0, "delta": 0.01, "users": 2000, "schedule": 3, "noise": "laplace", "visits": 2},
        {"epsilon": 100.0, "delta": 1e-6, "users": 2, "stationary": True, "visits": 2},
    ],
    ids=["laplace", "pooled"],
)
@pytest.mark.parametrize("apart", [False, True])
def test_an_agent_that_needs_batches_apart_makes_no_guarantee_weaker_that_was_stated(apart, options):
    """Found by a search: a tree was stated at delta 0, and noise for each batch was taken, which cost the delta."""
    board = JDPBillboard(river(horizon=1), statistic="tabular", **options)
    before = board.ledger.outside
    board.bind("tabular", apart=apart)
    after = board.ledger.outside
    assert (after.epsilon, after.delta) <= (before.epsilon, before.delta)
    assert after.delta <= before.delta


def test_a_boundary_that_has_an_agent_is_not_put_inside_another_one():
    """Else the agent of the outer one could make the inner ledger state more than it did."""
    inner = ldp(river(), delta=1e-6)
    inner.bind("tabular")
    assert inner.ledger.outside.delta == 0.0
    with pytest.raises(ValueError, match="has met an agent"):
        jdp(inner)
    inner.serve(policy, 1)  # it is as it was


def test_layers_that_were_given_are_all_that_is_stated_about():
    env = gym.make("CartPole-v1", max_episode_steps=5)
    board = LDPUserSide(env, 1.0, 1e-6, users=40, statistic=Layers((3,)))
    assert not board.open
    assert board.ledger.outside.delta == 0.0
    board.bind("gradient")
    assert board.ledger.outside.delta == 0.0


# Refusals -------------------------------------------------------------------------------------------------------------


def test_a_table_that_is_refused_ends_no_batch():
    board = jdp(river(), users=40, schedule=Schedule(10, releases=20), visits=2)
    board.serve(policy, 4)
    with pytest.raises(ValueError, match="choose 'refuse', or 'empty'"):
        board.ingest({"user": [1]}, bad_rows="drop")
    assert board.release.version == 0

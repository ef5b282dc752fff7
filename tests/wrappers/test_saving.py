"""A long run survives a restart, once."""

import json
import shutil
import stat

import numpy as np
import pytest

from private_rl_gym.wrappers import checkpoint
from tests.wrappers.stacks import BOARDS, A, S, jdp, river, same_release
from tests.wrappers.test_boundary import policy

every_board = pytest.mark.parametrize("make", BOARDS.values(), ids=BOARDS)


@every_board
@pytest.mark.parametrize("before", [0, 1, 13])
def test_going_on_equals_never_having_stopped(make, before, tmp_path):
    straight, first, second = (make(river(), schedule=3) for _ in range(3))
    for board in (straight, first):
        board.unwrapped.reset(seed=4)
    if before:
        straight.serve(policy, before)
        first.serve(policy, before)
    first.save_state(tmp_path / "state")
    second.load_state(tmp_path / "state")
    assert same_release(first.release, second.release)
    for users in (1, 6, 7):
        straight.serve(policy, users)
        second.serve(policy, users)
        assert same_release(straight.release, second.release)
    assert second.ledger == straight.ledger
    assert second.users_left == straight.users_left


def test_the_file_is_secret_and_says_so(tmp_path):
    board = jdp(river())
    board.serve(policy, 5)
    path = tmp_path / "state"
    board.save_state(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with np.load(path, allow_pickle=False) as file:
        meta = json.loads(file["meta"].tobytes())
    assert meta["label"].startswith("SECRET")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["state"]  # nothing temporary is left


@every_board
def test_a_state_is_continued_once(make, tmp_path):
    board = make(river())
    board.serve(policy, 5)
    board.save_state(tmp_path / "state")
    shutil.copy(tmp_path / "state", tmp_path / "copy")
    make(river()).load_state(tmp_path / "state")
    for path in (tmp_path / "state", tmp_path / "copy"):
        with pytest.raises(ValueError, match="was continued before"):
            make(river()).load_state(path)


def test_going_on_without_loading_is_also_going_on(tmp_path):
    """The run that saved and kept going has used the noise that the file would replay."""
    for action in (lambda board: board.serve(policy, 1), lambda board: board.reset()):
        board = jdp(river())
        board.serve(policy, 5)
        board.save_state(tmp_path / "state")
        action(board)
        with pytest.raises(ValueError, match="was continued before"):
            jdp(river()).load_state(tmp_path / "state")


def test_the_run_that_was_loaded_elsewhere_cannot_go_on(tmp_path):
    board, other = jdp(river()), jdp(river())
    board.serve(policy, 5)
    board.save_state(tmp_path / "state")
    other.load_state(tmp_path / "state")
    with pytest.raises(ValueError, match="was continued before"):
        board.serve(policy, 1)
    other.serve(policy, 1)


def test_a_spent_state_stops_its_board_for_good(tmp_path):
    """Found by attack: the second try went through."""
    board, other = jdp(river()), jdp(river())
    board.serve(policy, 5)
    board.save_state(tmp_path / "state")
    other.load_state(tmp_path / "state")
    for _ in range(3):
        with pytest.raises(ValueError, match="was continued before"):
            board.serve(policy, 1)


def test_a_save_that_fails_spends_nothing(tmp_path):
    board = jdp(river())
    board.serve(policy, 5)
    board.save_state(tmp_path / "state")
    with pytest.raises(FileNotFoundError):
        board.save_state(tmp_path / "missing" / "state")
    jdp(river()).load_state(tmp_path / "state")


def test_saving_again_takes_the_place_of_the_older_state(tmp_path):
    board = jdp(river())
    board.serve(policy, 5)
    board.save_state(tmp_path / "first")
    board.save_state(tmp_path / "second")
    with pytest.raises(ValueError, match="was continued before"):
        jdp(river()).load_state(tmp_path / "first")
    jdp(river()).load_state(tmp_path / "second")


def test_a_run_may_be_saved_again_and_again(tmp_path):
    straight = jdp(river())
    straight.unwrapped.reset(seed=0)
    straight.serve(policy, 40)
    board = jdp(river())
    board.unwrapped.reset(seed=0)
    for _ in range(4):
        board.serve(policy, 10)
        board.save_state(tmp_path / "state")
        board = jdp(river())
        board.load_state(tmp_path / "state")
    assert same_release(board.release, straight.release)


def test_a_crash_while_saving_leaves_the_old_state(tmp_path, monkeypatch):
    board = jdp(river())
    board.serve(policy, 5)
    board.save_state(tmp_path / "state")
    before = (tmp_path / "state").read_bytes()
    other = jdp(river())
    other.serve(policy, 7)

    def full(_):
        raise OSError("No space left on device")

    monkeypatch.setattr(checkpoint.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        other.save_state(tmp_path / "state")
    assert (tmp_path / "state").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["state"]


def test_where_nothing_can_be_written_down_nothing_is_continued(tmp_path, monkeypatch):
    board = jdp(river())
    board.save_state(tmp_path / "state")

    def refuse(*_):
        raise PermissionError("read-only")

    fresh = jdp(river())
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.os, "open", refuse)
        with pytest.raises(ValueError, match="folder writable"):
            fresh.load_state(tmp_path / "state")
    assert fresh.release.version == 0
    fresh.load_state(tmp_path / "state")


def test_nothing_is_written_outside_the_folder_of_a_state(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "folder").mkdir()
    jdp(river()).save_state(tmp_path / "folder" / "state")
    jdp(river()).load_state(tmp_path / "folder" / "state")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    assert len(list((tmp_path / "folder").iterdir())) == 2


def test_a_state_of_an_older_version_is_refused_with_a_sentence(tmp_path):
    """Formats 1 to 3 were written by versions whose sums were laid out otherwise."""
    meta = np.frombuffer(json.dumps({"label": "SECRET", "format": 2}).encode(), dtype=np.uint8)
    np.savez(tmp_path / "old.npz", meta=meta, seal=np.zeros(32, dtype=np.uint8))
    with pytest.raises(ValueError, match=r"format 2.*format 4"):
        jdp(river()).load_state(tmp_path / "old.npz")


def test_a_state_with_parts_missing_is_refused_before_anything_is_taken_up(tmp_path):
    board = jdp(river())
    board.serve(policy, 5)
    board.save_state(tmp_path / "state")
    with np.load(tmp_path / "state") as file:
        arrays = {name: file[name] for name in file.files if name != "noise.total"}
    with (tmp_path / "cut").open("wb") as file:
        np.savez(file, **arrays)
    fresh = jdp(river())
    with pytest.raises(ValueError, match=r"cut is damaged"):
        fresh.load_state(tmp_path / "cut")
    assert fresh.users_left == 40
    fresh.load_state(tmp_path / "state")  # and the whole one is not spent


def test_links_to_a_state_are_that_state(tmp_path):
    board = jdp(river())
    board.save_state(tmp_path / "state")
    (tmp_path / "link").symlink_to(tmp_path / "state")
    jdp(river()).load_state(tmp_path / "link")
    with pytest.raises(ValueError, match="was continued before"):
        jdp(river()).load_state(tmp_path / "state")


def test_a_seed_is_confessed_after_loading_too(tmp_path):
    for make in (jdp, BOARDS["ldp one-step"]):
        board = make(river(), rng=7)
        board.save_state(tmp_path / "state")
        other = make(river(), rng=None)
        other.load_state(tmp_path / "state")
        assert "seeded" in str(other.ledger)


@pytest.mark.parametrize(
    ("other", "word"),
    [
        (lambda: jdp(river(), epsilon=2.0), "guarantee, scale of noise:"),
        (lambda: jdp(river(), users=41), "guarantee, number of releases, number of users"),
        (lambda: jdp(river(), schedule=2), "batch_size, guarantee, number of releases"),
        (lambda: jdp(river(n_states=5)), "environment, sizes"),
        (lambda: jdp(river(variant="osband")), "in environment:"),
        (lambda: jdp(river(), counting="batched"), "in guarantee"),
        (lambda: jdp(river(), rng="secure"), "kind of generator"),
        (lambda: BOARDS["ldp one-step"](river()), "guarantee, kind of boundary"),
    ],
)
def test_another_boundary_cannot_take_over(other, word, tmp_path):
    board = jdp(river())
    board.serve(policy, 5)
    board.save_state(tmp_path / "state")
    with pytest.raises(ValueError, match=word):
        other().load_state(tmp_path / "state")
    jdp(river()).load_state(tmp_path / "state")  # and the state is not spent by the attempt


def test_what_is_no_state_gets_a_sentence(tmp_path):
    (tmp_path / "text").write_text("hello")
    np.savez(tmp_path / "arrays.npz", a=np.zeros(3))
    with pytest.raises(FileNotFoundError, match=r"There is no file .*board\.save_state"):
        jdp(river()).load_state(tmp_path / "missing")
    for name in ("text", "arrays.npz"):
        with pytest.raises(ValueError, match="not the saved state"):
            jdp(river()).load_state(tmp_path / name)


def test_misuse_gets_a_sentence(tmp_path):
    board = jdp(river())
    board.reset()
    board.step(1)
    with pytest.raises(ValueError, match="middle of their episode"):
        board.save_state(tmp_path / "state")
    with pytest.raises(ValueError, match="has users already"):
        board.load_state(tmp_path / "state")
    stack = BOARDS["jdp around ldp"](river())
    with pytest.raises(ValueError, match="Call the JDPBillboard"):
        stack.env.save_state(tmp_path / "state")
    with pytest.raises(ValueError, match=r"rng=.secure."):
        jdp(river(), rng="secure").save_state(tmp_path / "state")


def test_unseeded_noise_goes_on_too(tmp_path):
    """The position of an unseeded generator is saved as well, and stays unseeded in the ledger."""
    board, other = jdp(river(), rng=None), jdp(river(), rng=None)
    board.unwrapped.reset(seed=0)
    board.serve(policy, 5)
    board.save_state(tmp_path / "state")
    other.load_state(tmp_path / "state")
    assert same_release(board.release, other.release)
    assert "seeded" not in str(other.ledger)
    assert other.sizes[1:] == (S, A)

"""Stores and sweeps: nothing is lost or torn, whoever is killed, and the end is the same."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from private_rl_gym.lab import references
from private_rl_gym.lab.grids import run as cells
from private_rl_gym.lab.grids.engines import Answer, InProcess, OnJoblib, answer, engine_named
from private_rl_gym.lab.grids.grid import grid_of
from private_rl_gym.lab.grids.record import Record
from private_rl_gym.lab.grids.store import Store, StoreError
from private_rl_gym.lab.grids.summary import as_csv, summarize
from private_rl_gym.lab.grids.sweep import sweep
from private_rl_gym.lab.registry import GridError


def small(count=12, users=30, **change):
    return grid_of(
        {
            "users": users,
            "seeds": count // 3,
            "environment": {"id": "RiverSwim", "horizon": 4},
            "runs": [
                {"agent": "UCBVI", "boundary": "open"},
                {"agent": "DPUCBVI", "boundary": {"name": "jdp", "epsilon": [1.0, 10.0], "delta": 1e-6}},
            ],
            **change,
        }
    )


def contents(store):
    """Every record's bytes, by name."""
    return {path.name: path.read_bytes() for path in sorted((store.path / "records").rglob("*.parquet"))}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An undisturbed run: its records, and its table."""
    store = Store(tmp_path_factory.mktemp("whole") / "store")
    tally = sweep(small(), store, InProcess())
    assert (tally.done, tally.there, tally.failed) == (12, 0, [])
    return contents(store), as_csv(summarize(store.read(small().cells)))


def assert_whole(store, whole):
    records, table = whole
    assert contents(store) == records
    assert as_csv(summarize(store.read(small().cells))) == table
    assert not list((store.path / "incoming").iterdir())


def test_a_change_of_the_packages_code_runs_everything_again(tmp_path, monkeypatch):
    """An unchanged copy of the source finds all records, and one with another default finds none."""
    store, copy = Store(tmp_path / "store"), tmp_path / "private_rl_gym"
    sweep(small(3), store, InProcess())
    shutil.copytree(references.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(references, "PACKAGE", copy)
    assert sweep(small(3), store, InProcess()).sentence == "0 of 3 cells run, 3 were there."
    changed = tmp_path / "changed"
    shutil.copytree(copy, changed)
    source = changed / "agents" / "tabular" / "dp_ucbvi.py"
    source.write_text(source.read_text().replace("bonus_scale: float = ", "bonus_scale: float = 1e-3 + "))
    assert source.read_text() != (copy / "agents" / "tabular" / "dp_ucbvi.py").read_text()
    monkeypatch.setattr(references, "PACKAGE", changed)
    assert sweep(small(3), store, InProcess()).sentence == "3 of 3 cells run."


def test_a_record_is_read_as_it_was_written():
    cell = small().cells[-1]
    outcome = cells.run_cell(cell)
    content = outcome.to_bytes()
    assert outcome.to_bytes() == content
    record = Record.from_bytes(cell.key, content)
    assert record.about == outcome.about
    for name in ("users", "regret", "noise"):
        np.testing.assert_array_equal(getattr(record, name), getattr(outcome, name))
    assert record.epsilon == 10.0


@pytest.mark.slow
def test_the_order_of_cells_and_the_number_of_workers_change_nothing(tmp_path, whole):
    backwards = Store(tmp_path / "backwards")
    for cell in reversed(small().cells):
        backwards.add(cell, answer(cell).content)
    assert_whole(backwards, whole)
    spread = Store(tmp_path / "spread")
    assert sweep(small(), spread, OnJoblib(2)).done == 12
    assert_whole(spread, whole)


def test_resuming_runs_what_is_missing(tmp_path, whole):
    store = Store(tmp_path / "store")
    sweep(grid_of_first(5), store, InProcess())
    ran = []
    tally = sweep(small(), store, InProcess(), lambda _tally, found: ran.append(found))
    assert (tally.there, tally.done) == (5, 7)
    assert len(ran) == 8  # the start, and seven cells
    assert_whole(store, whole)
    assert sweep(small(), store, InProcess()).done == 0


def grid_of_first(count):
    from dataclasses import replace

    return replace(small(), cells=small().cells[:count])


def run_forever(path):
    sweep(small(), Store(path), InProcess())


@pytest.mark.slow
def test_a_driver_that_is_killed_again_and_again_loses_nothing(tmp_path, whole):
    """Twenty times SIGKILL while it runs, at random moments, then one run to the end."""
    rng = np.random.default_rng(0)
    fork = multiprocessing.get_context("fork")
    path, killed, grown = tmp_path / "store", 0, 0
    while killed < 20:
        driver = fork.Process(target=run_forever, args=(path,))
        driver.start()
        time.sleep(rng.uniform(0.0, 0.06))
        if driver.is_alive():
            os.kill(driver.pid, signal.SIGKILL)
            killed += 1
        driver.join()
        there = Store(path) if path.is_dir() else None
        if there is not None:
            before = contents(there)
            assert before.items() <= whole[0].items()  # nothing torn, whenever it was killed
            assert len(before) >= grown  # nothing lost
            grown = len(before)
            if grown == 12:
                shutil.rmtree(path)
                grown = 0
    missing = 12 - grown
    tally = sweep(small(), Store(path), InProcess())
    assert tally.done == missing
    assert_whole(Store(path), whole)


def workers_of(command):
    """Loky's workers whose environment names this run."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if b"popen_loky" in (path / "cmdline").read_bytes() and command.encode() in (path / "environ").read_bytes():
                found.append(path.name)
        except OSError:
            continue
    return found


@pytest.mark.slow
def test_a_command_that_is_killed_goes_on_where_it_was(tmp_path):
    grid = tmp_path / "grid.toml"
    grid.write_text(
        'users = 3000\nseeds = 8\nenvironment = "RiverSwim"\n[[runs]]\nagent = "DPUCBVI"\n'
        'boundary = { name = "jdp", epsilon = [1.0, 10.0], delta = 1e-6, batch_size = 3 }\n'
    )
    store = tmp_path / "store"
    command = [
        sys.executable,
        "-m",
        "private_rl_gym.lab.cli.app",
        "sweep",
        str(grid),
        "--store",
        str(store),
        "--workers",
        "2",
    ]
    quiet = {
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "env": {**os.environ, "OF_THIS_RUN": str(grid)},
    }
    driver = subprocess.Popen(command, start_new_session=True, **quiet)
    deadline = time.time() + 120
    while time.time() < deadline and not list(store.glob("records/*/*.parquet")):
        time.sleep(0.02)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    deadline = time.time() + 20
    while time.time() < deadline and workers_of(str(grid)):
        time.sleep(0.1)
    assert not workers_of(str(grid))  # workers end with their driver, however that ended
    first = contents(Store(store))
    assert first
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert f"{16 - len(first)} to run" in done.stderr
    again = contents(Store(store))
    assert len(again) == 16
    assert first.items() <= again.items()
    assert (store / "grid" / "report.html").is_file()


def workers_of_this_process():
    """Children that run joblib's workers."""
    listed = [path.read_text().split() for path in Path("/proc/self/task").glob("*/children")]
    children = [int(child) for part in listed for child in part]
    return [child for child in children if "popen_loky" in Path(f"/proc/{child}/cmdline").read_text()]


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_nothing_but_time(tmp_path, whole):
    store, deaths = Store(tmp_path / "store"), []

    def told(tally, found):
        if found is not None and len(deaths) < 2:
            for process in workers_of_this_process()[:1]:
                os.kill(process, signal.SIGKILL)
                deaths.append(process)

    tally = sweep(small(), store, OnJoblib(2), told)
    assert deaths
    assert (tally.done, tally.failed) == (12, [])
    assert_whole(store, whole)


def kills(cell, driver, work):
    """In a worker: dies on one cell, every time."""
    if cell.seed == 1 and cell.agent.name == "UCBVI":
        os.kill(os.getpid(), signal.SIGKILL)
    return answer(cell)


@pytest.mark.slow
def test_a_cell_that_kills_its_worker_is_written_down_and_the_rest_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("private_rl_gym.lab.grids.engines.in_worker", kills)
    store = Store(tmp_path / "store")
    tally = sweep(small(), store, OnJoblib(2))
    assert [(cell.agent.name, cell.seed) for cell in tally.failed] == [("UCBVI", 1)]
    assert tally.done == 11
    assert "worker process died" in store.failure(tally.failed[0])


def test_a_cell_that_fails_is_recorded_with_its_traceback_and_the_rest_goes_on(tmp_path, monkeypatch, whole):
    original = cells.train_cell

    def fails(cell):
        if cell.seed == 2:
            raise ZeroDivisionError("on purpose")
        return original(cell)

    store = Store(tmp_path / "store")
    with monkeypatch.context() as patch:
        patch.setattr(cells, "train_cell", fails)
        tally = sweep(small(), store, InProcess())
    assert (tally.done, len(tally.failed)) == (9, 3)
    assert "ZeroDivisionError: on purpose" in store.failure(tally.failed[0])
    assert "3 failed" in tally.sentence
    tally = sweep(small(), store, InProcess())  # what failed is missing, and is tried again
    assert (tally.done, tally.failed) == (3, [])
    assert not list((store.path / "failed").iterdir())
    assert_whole(store, whole)


def test_two_processes_may_share_a_store(tmp_path, whole):
    store = Store(tmp_path / "store")
    workers = [threading.Thread(target=sweep, args=(small(), Store(store.path), InProcess())) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert_whole(store, whole)


def mounted(path, size):
    path.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], capture_output=True, check=False
    )
    return done.returncode == 0


def test_a_full_disk_loses_nothing(tmp_path, whole):
    """A tmpfs of a few records: a sentence, whole records, and the rest once there is room."""
    place = tmp_path / "disk"
    if not mounted(place, "28k"):
        pytest.skip("mounting a small tmpfs needs the rights to; the next test fills a disk that is none")
    try:
        with pytest.raises(StoreError, match="No space left"):
            sweep(small(), Store(place / "store"), InProcess())
        found = contents(Store(place / "store"))
        assert 0 < len(found) < 12
        assert found.items() <= whole[0].items()
        subprocess.run(["mount", "-o", "remount,size=2m", str(place)], check=True)
        tally = sweep(small(), Store(place / "store"), InProcess())
        assert tally.done == 12 - len(found)
        assert_whole(Store(place / "store"), whole)
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_disk_that_fills_up_in_the_middle_of_a_record_loses_nothing(tmp_path, monkeypatch, whole):
    store, written = Store(tmp_path / "store"), []
    original = os.fsync

    def full(handle):
        written.append(handle)
        if len(written) == 11:  # the sixth file: each is flushed, and then the folder that it is in
            raise OSError(28, "No space left on device")
        return original(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="Free some space"):
            sweep(small(), store, InProcess())
    assert contents(store).items() <= whole[0].items()
    assert len(contents(store)) == 4  # the label was the first
    assert sweep(small(), Store(store.path), InProcess()).done == 8
    assert_whole(store, whole)


def test_what_is_no_store_is_left_alone(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("dear")
    newer, foreign, torn = (tmp_path / name for name in ("newer", "foreign", "torn"))
    for path, label in (
        (newer, {"store": "private_rl_gym", "format": 99}),
        (foreign, {"store": "wandb", "format": 1}),
        (torn, None),
    ):
        path.mkdir()
        (path / "store.json").write_text("{" if label is None else json.dumps(label))
    file = tmp_path / "file"
    file.write_text("")
    for path, word in (
        (other, "not a store"),
        (newer, "format 99"),
        (foreign, "store of wandb"),
        (torn, "is damaged"),
        (file, "is a file"),
    ):
        before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
        with pytest.raises(StoreError, match=word):
            sweep(small(), Store(path), InProcess())
        assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_an_unwritable_directory_gets_a_sentence(tmp_path, monkeypatch):
    def refused(*_arguments, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refused)
    with pytest.raises(StoreError, match="Permission denied"):
        sweep(small(), Store(tmp_path / "closed"), InProcess())
    assert not (tmp_path / "closed").exists()


def test_leftovers_of_dead_processes_are_swept_up(tmp_path):
    store = Store(tmp_path / "store")
    store.prepare()
    import socket

    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (store.path / "incoming" / f"{socket.gethostname()}-{dead.pid}-abc").write_text("half")
    (store.path / "incoming" / f"{socket.gethostname()}-{os.getpid()}-abc").write_text("mine")
    (store.path / "incoming" / "another.host-1-abc").write_text("theirs")
    Store(store.path).prepare()
    assert {path.read_text() for path in (store.path / "incoming").iterdir()} == {"mine", "theirs"}


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"name": "ray"}, "engine 'ray'"),
        ({"name": "joblib", "workers": 0}, "workers is 0"),
        ({"name": "dask"}, "dask.*address of a scheduler"),
        ({"name": "joblib", "scheduler": "tcp://x:1"}, "^scheduler .*engine='dask'"),
    ],
)
def test_a_wrong_engine_gets_a_sentence(options, word):
    with pytest.raises(GridError, match=word):
        engine_named(**{"workers": None, "scheduler": None, **options})


class Trivial:
    """An engine without work: what is left is the sweep's own cost."""

    def __init__(self, content):
        self.content = content

    def run(self, given):
        for cell in given:
            yield Answer(cell, self.content)


def test_a_thousand_trivial_cells_are_all_written(tmp_path, whole):
    grid = small(count=1000 * 3, runs=[{"agent": "UCBVI", "boundary": "open"}])
    store = Store(tmp_path / "store")
    tally = sweep(grid, store, Trivial(next(iter(whole[0].values()))))
    assert tally.done == 1000
    assert not store.missing(grid.cells)

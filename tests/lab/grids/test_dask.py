"""The same grid on a Dask scheduler and two workers, each a process of its own, on loopback."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from private_rl_gym.lab.grids.engines import InProcess, OnDask
from private_rl_gym.lab.grids.grid import grid_of, read_grid
from private_rl_gym.lab.grids.store import Store
from private_rl_gym.lab.grids.sweep import sweep
from private_rl_gym.lab.registry import GridError

pytestmark = pytest.mark.slow


def contents(store):
    return {path.name: path.read_bytes() for path in sorted((store.path / "records").rglob("*.parquet"))}


@pytest.fixture
def cluster(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    dask = [sys.executable, "-m", "distributed.cli"]
    scheduler = [
        *dask[:2],
        "distributed.cli.dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--no-dashboard",
    ]
    worker = [*dask[:2], "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny"]
    processes = [subprocess.Popen(scheduler, **quiet)]
    deadline = time.time() + 60
    while time.time() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    processes += [subprocess.Popen([*worker, "--name", str(number)], **quiet) for number in range(2)]
    yield address, processes[1:]
    for process in processes:
        process.kill()
        process.wait()


def test_the_demo_grid_on_dask_gives_the_same_records(tmp_path, cluster):
    address, _ = cluster
    grid = read_grid("riverswim", users=500, seeds=2)
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    sweep(grid, here, InProcess())
    tally = sweep(grid, there, OnDask(address))
    assert (tally.done, tally.failed) == (len(grid.cells), [])
    assert contents(here) == contents(there)


def test_a_dask_worker_that_is_gone_costs_nothing_but_time(tmp_path, cluster):
    address, workers = cluster
    run = {"agent": "DPUCBVI", "boundary": {"name": "jdp", "epsilon": 1.0, "delta": 1e-6}, "environment": "RiverSwim"}
    grid = grid_of({"users": 1500, "seeds": 12, **run})
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    sweep(grid, here, InProcess())
    gone = []

    def told(tally, found):
        if found is not None and not gone:
            os.kill(workers[0].pid, signal.SIGKILL)
            gone.append(tally.done)

    tally = sweep(grid, there, OnDask(address), told)
    assert gone
    assert (tally.done, tally.failed) == (12, [])
    assert contents(here) == contents(there)


def test_no_scheduler_gets_a_sentence(tmp_path):
    grid = grid_of({"users": 5, "environment": "RiverSwim", "agent": "UCBVI", "boundary": "open"})
    with pytest.raises(GridError, match=r"scheduler at tcp://127\.0\.0\.1:1"):
        sweep(grid, Store(tmp_path / "store"), OnDask("tcp://127.0.0.1:1"))

"""Engines that run work in this process, other processes, or Dask workers.

Other processes of this machine are those of joblib; Dask's workers may be on any machine.

Every engine turns pieces of work, such as the cells of a grid, into answers, in the order in which they finish. The
result of a piece does not depend on the engine.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, Protocol, TypeVar

from private_rl_gym.lab.grids.cell import Cell
from private_rl_gym.lab.grids.run import run_cell
from private_rl_gym.lab.registry import GridError
from private_rl_gym.lazy import install

__all__ = ["Answer", "Engine", "InProcess", "OnDask", "OnJoblib", "engine_named"]

PATIENCE = 3
"""Number of attempts in a row without a finished cell, before cells run one by one to find the one that kills."""


class Task(Protocol):
    """A piece of work with a unique name."""

    @property
    def key(self) -> str:
        """The unique name."""


T = TypeVar("T", bound=Task)


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """The outcome of a piece of work: its content, or the failure's reason.

    The content for a cell is the bytes of a record.
    """

    cell: T
    content: Any
    failure: str | None = None


def record(cell: Cell) -> bytes:
    """Run a cell of a grid, and return its record as bytes."""
    return run_cell(cell).to_bytes()


class Engine(Protocol):
    """A way to run pieces of work; by default, cells of a grid."""

    def run(self, cells: Sequence[T], work: Callable[[Any], Any] = record) -> Iterator[Answer[T]]:
        """Yield answers as they finish."""


def answer(cell: T, work: Callable[[Any], Any] = record) -> Answer[T]:
    """Do a piece of work, and return any exception as a failure."""
    try:
        return Answer(cell, work(cell))
    except Exception:  # noqa: BLE001 - the rest of the grid goes on
        return Answer(cell, None, traceback.format_exc())


def in_worker(cell: T, driver: int, work: Callable[[T], Any]) -> Answer[T]:
    """Do a piece of work in a process that ends with its driver.

    It ends when the driver process ends, for any reason.
    """
    _end_with(driver)
    return answer(cell, work)


@cache
def _end_with(driver: int) -> None:
    def watch() -> None:
        while os.getppid() == driver:
            time.sleep(0.5)
        os._exit(1)

    if os.getpid() != driver:
        threading.Thread(target=watch, daemon=True).start()


class InProcess:
    """Cells one after the other, in this process."""

    def run(self, cells: Sequence[T], work: Callable[[Any], Any] = record) -> Iterator[Answer[T]]:
        """Yield answers in the order of the cells."""
        for cell in cells:
            yield answer(cell, work)


class OnJoblib:
    """Processes of this machine, with numerical libraries held to one thread.

    A worker that dies (killed, out of memory) does not end the run: the cells that were running are run again in new
    workers, and a cell that kills its worker every time is recorded as failed.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def run(self, cells: Sequence[T], work: Callable[[Any], Any] = record) -> Iterator[Answer[T]]:
        """Yield answers as they finish."""
        waiting = {cell.key: cell for cell in cells}
        barren = 0
        while waiting and barren < PATIENCE:
            before = len(waiting)
            for outcome in self._until_a_worker_dies(list(waiting.values()), work, self.workers):
                del waiting[outcome.cell.key]
                yield outcome
            barren = 0 if len(waiting) < before else barren + 1
        for cell in waiting.values():  # one of them kills workers: each has one of its own
            alone = list(self._until_a_worker_dies([cell], work, 2))  # with one, joblib would run it in this process
            yield alone[0] if alone else Answer(cell, None, "The worker process died: killed, or out of memory.")

    @staticmethod
    def _until_a_worker_dies(cells: list[T], work: Callable[[T], Any], workers: int) -> Iterator[Answer[T]]:
        from joblib import Parallel, delayed, parallel_config
        from joblib.externals.loky.process_executor import BrokenProcessPool

        try:
            with parallel_config(backend="loky", n_jobs=workers, inner_max_num_threads=1):
                yield from Parallel(return_as="generator_unordered", pre_dispatch="2*n_jobs", batch_size="auto")(
                    delayed(in_worker)(cell, os.getpid(), work) for cell in cells
                )
        except BrokenProcessPool:  # joblib makes new workers when it is called again
            return


class OnDask:
    """Workers of a Dask scheduler, here or on other machines.

    They need the same version of this package.
    """

    def __init__(self, scheduler: str) -> None:
        self.scheduler = scheduler

    def run(self, cells: Sequence[T], work: Callable[[Any], Any] = record) -> Iterator[Answer[T]]:
        """Yield answers as they finish.

        Cells of a lost worker are run by another worker.
        """
        try:
            from distributed import Client, as_completed
        except ImportError:
            raise GridError(f"engine='dask' needs the extra dask: run {install('dask')}.") from None
        try:
            client = Client(  # type: ignore[no-untyped-call]
                self.scheduler, timeout="5s", set_as_default=False
            )
        except (OSError, ValueError) as error:
            raise GridError(f"There is no Dask scheduler at {self.scheduler} ({type(error).__name__}).") from None
        with client, client.as_current():
            by_key: dict[Any, T] = {}
            for cell in cells:
                future = client.submit(answer, cell, work, key=f"cell-{cell.key}", pure=True, retries=0)
                by_key[future] = cell
            for future in as_completed(list(by_key)):  # type: ignore[no-untyped-call]
                cell = by_key[future]
                try:
                    yield future.result()
                except Exception as error:  # noqa: BLE001 - a cell that kills its workers; the rest goes on
                    reason = f"{type(error).__name__}: {error}"
                    yield Answer(
                        cell, None, f"Dask gave this cell up, after its workers were lost again and again. {reason}"
                    )
                future.release()


def engine_named(name: str, *, workers: int | None, scheduler: str | None) -> Engine:
    """Return the engine with this name.

    Raise ``GridError`` if the name is unknown, or if options do not fit.
    """
    if workers is not None and not 1 <= workers <= 1000:
        raise GridError(f"workers is {workers}: it must be at least 1, and at most 1000.")
    if name == "dask":
        if scheduler is None:
            raise GridError("engine='dask' needs the address of a scheduler: scheduler='tcp://host:8786'.")
        return OnDask(scheduler)
    if scheduler is not None:
        raise GridError(f"scheduler is for engine='dask', and the engine is {name!r}.")
    if name == "joblib":
        count = workers or os.cpu_count() or 1
        return InProcess() if count == 1 else OnJoblib(count)
    if name == "serial":
        return InProcess()
    raise GridError(f"There is no engine {name!r}: choose 'joblib', 'dask' or 'serial'.")

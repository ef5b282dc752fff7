"""The cost of a sweep beside its cells, and the gain of two workers.

Run with ``make bench``.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rows import Row, ratio, report

from private_rl_gym.lab.grids.engines import Answer, Engine, InProcess, OnJoblib, answer
from private_rl_gym.lab.grids.grid import Cell, Grid, grid_of
from private_rl_gym.lab.grids.store import Store
from private_rl_gym.lab.grids.sweep import sweep


class Trivial:
    """An engine whose cells are done already."""

    def __init__(self, content: bytes | None) -> None:
        self.content = content

    def run(self, cells: Sequence[Cell]) -> Iterator[Answer]:
        """Yield the same answer for all cells."""
        for cell in cells:
            yield Answer(cell, self.content)


def seconds(grid: Grid, engine: Engine) -> float:
    """Return the seconds of a sweep into a new store."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        tally = sweep(grid, Store(Path(folder) / "store"), engine)
        assert tally.done == len(grid.cells)  # noqa: S101 - the run has to be whole
        return time.perf_counter() - start


def overhead() -> Row:
    """Measure a thousand cells without work (keys, records, disk).

    The yardstick is a thousand files of the same size, written and synced.
    """
    grid = grid_of({"users": 10, "seeds": 1000, "environment": "RiverSwim", "agent": "UCBVI", "boundary": "open"})
    content = answer(grid.cells[0]).content
    assert content is not None  # noqa: S101 - the cell has to have an answer

    def write() -> None:
        with tempfile.TemporaryDirectory() as folder:
            for number in range(1_000):
                with Path(folder, str(number)).open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())

    times, whole = ratio(lambda: seconds(grid, Trivial(content)), write, repeats=3)
    return Row("a sweep of trivial cells, against writing as many files", times, 10, aside=f"{whole:.1f} ms a cell")


def through_workers() -> Row:
    """Measure a thousand cells of a few milliseconds through two workers.

    The yardstick is the same cells in this process.
    """
    grid = grid_of({"users": 1, "seeds": 1000, "environment": "HardBandit", "agent": "UCBVI", "boundary": "open"})
    seconds(Grid("warm", "", "", grid.cells[:8]), OnJoblib(2))  # workers start, and import
    times, whole = ratio(lambda: seconds(grid, OnJoblib(2)), lambda: [answer(cell) for cell in grid.cells], repeats=1)
    return Row("a sweep of tiny cells by two workers, against the cells", times, 2, aside=f"{whole:.1f} ms a cell")


def two_workers() -> Row:
    """Measure two workers on real cells of half a second each."""
    run = {"agent": "DPUCBVI", "boundary": {"name": "jdp", "epsilon": 10.0, "delta": 1e-6}, "environment": "RiverSwim"}
    grid = grid_of({"users": 8_000, "seeds": 40, **run})
    seconds(Grid("warm", "", "", grid.cells[:4]), OnJoblib(2))
    seconds(Grid("warm", "", "", grid.cells[:1]), InProcess())
    times = seconds(grid, InProcess()) / seconds(grid, OnJoblib(2))
    return Row("one worker against two, on 40 real cells", times, 1.8, at_least=True)


def main() -> None:
    """Measure everything and print a table."""
    sys.exit(report([overhead, through_workers, two_workers]))


if __name__ == "__main__":
    main()

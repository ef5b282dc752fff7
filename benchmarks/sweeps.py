"""What a sweep costs beside its cells, and what two workers are worth.

Run with ``make bench``.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rows import Row, report

from private_rl_gym.experiments.engines import Answer, Engine, InProcess, OnJoblib, answer
from private_rl_gym.experiments.grid import Cell, Grid, grid_of
from private_rl_gym.experiments.store import Store
from private_rl_gym.experiments.sweep import sweep


class Trivial:
    """An engine whose cells are done already."""

    def __init__(self, content: bytes | None) -> None:
        self.content = content

    def run(self, cells: Sequence[Cell]) -> Iterator[Answer]:
        """The same answer to all."""
        for cell in cells:
            yield Answer(cell, self.content)


def seconds(grid: Grid, engine: Engine) -> float:
    """Of a sweep into a new store."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        tally = sweep(grid, Store(Path(folder) / "store"), engine)
        assert tally.done == len(grid.cells)  # noqa: S101 - the run has to be whole
        return time.perf_counter() - start


def overhead() -> Row:
    """A thousand cells without work: keys, records, disk."""
    grid = grid_of({"users": 10, "seeds": 1000, "environment": "RiverSwim", "agent": "UCBVI", "boundary": "open"})
    one = answer(grid.cells[0]).content
    return Row("a sweep of 1,000 trivial cells, each", seconds(grid, Trivial(one)), "ms", 10, at_least=False)


def through_workers() -> Row:
    """The same through joblib, with cells of a few milliseconds taken off."""
    grid = grid_of({"users": 1, "seeds": 1000, "environment": "HardBandit", "agent": "UCBVI", "boundary": "open"})
    seconds(Grid("warm", "", "", grid.cells[:8]), OnJoblib(2))  # workers start, and import
    whole = seconds(grid, OnJoblib(2))
    start = time.perf_counter()
    for cell in grid.cells[:100]:
        answer(cell)
    alone = (time.perf_counter() - start) * 10 / 2
    return Row("1,000 tiny cells through two workers, beyond their work, each", whole - alone, "ms", 10, at_least=False)


def two_workers() -> Row:
    """Real cells, half a second each."""
    run = {"agent": "DPUCBVI", "boundary": {"name": "jdp", "epsilon": 10.0, "delta": 1e-6}, "environment": "RiverSwim"}
    grid = grid_of({"users": 8_000, "seeds": 40, **run})
    seconds(Grid("warm", "", "", grid.cells[:4]), OnJoblib(2))
    seconds(Grid("warm", "", "", grid.cells[:1]), InProcess())
    return Row(
        "two workers against one, on 40 real cells",
        seconds(grid, InProcess()) / seconds(grid, OnJoblib(2)),
        "times",
        1.8,
        at_least=True,
    )


def main() -> None:
    """Measure everything and print a table."""
    sys.exit(report([overhead, through_workers, two_workers]))


if __name__ == "__main__":
    main()

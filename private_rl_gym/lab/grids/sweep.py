"""Sweeps, which run the cells of a grid that have no record.

Each record is written as soon as its cell finishes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from private_rl_gym.lab.grids.cell import Cell
from private_rl_gym.lab.grids.engines import Answer, Engine
from private_rl_gym.lab.grids.grid import Grid
from private_rl_gym.lab.grids.run import build
from private_rl_gym.lab.grids.store import Store, StoreError
from private_rl_gym.lab.registry import GridError

__all__ = ["Tally", "check", "sweep"]


@dataclass(slots=True)
class Tally:
    """The numbers of cells that were there before, finished or failed."""

    cells: int
    there: int = 0  # before it began
    done: int = 0
    failed: list[Cell] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """The numbers, as a sentence."""
        text = f"{self.done} of {self.cells} cells run"
        text += f", {self.there} were there" if self.there else ""
        return text + (f", {len(self.failed)} failed" if self.failed else "") + "."


def check(grid: Grid) -> None:
    """Build every stack of a grid once, so that errors are raised before anything runs."""
    seen = set()
    for cell in grid.cells:
        stack = (cell.environment.name, str(cell.environment.options), str(cell.boundary), str(cell.agent), cell.users)
        if stack in seen:
            continue
        seen.add(stack)
        try:
            build(cell)
        except (ValueError, TypeError, ArithmeticError, MemoryError, LookupError) as error:
            raise GridError(f"{cell.label}: {error}") from None


def sweep(
    grid: Grid, store: Store, engine: Engine, told: Callable[[Tally, Answer[Cell] | None], None] = lambda *_: None
) -> Tally:
    """Run the cells that have no record.

    Args:
        grid: The cells.
        store: The store to read and write; a new directory becomes a store.
        engine: The engine that runs the cells.
        told: Called with the tally: at the start with None, and after every cell with its answer.
    """
    missing = store.missing(grid.cells)
    tally = Tally(cells=len(grid.cells), there=len(grid.cells) - len(missing))
    store.prepare()
    told(tally, None)
    for outcome in engine.run(missing) if missing else ():
        _write(store, outcome)
        if outcome.content is None:
            tally.failed.append(outcome.cell)
        else:
            tally.done += 1
        told(tally, outcome)
    return tally


def _write(store: Store, outcome: Answer[Cell]) -> None:
    try:
        if outcome.content is None:
            store.add_failure(outcome.cell, outcome.failure or "")
        else:
            store.add(outcome.cell, outcome.content)
    except OSError as error:
        raise StoreError(
            f"{store.path} can no longer be written to ({error.strerror or type(error).__name__}). All stored records "
            "are complete. Free some space, and run the same command again for the missing cells."
        ) from None

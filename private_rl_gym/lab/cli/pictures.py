"""``plot`` and ``table``: the figures and tables of a sweep."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from private_rl_gym.lab.cli import options
from private_rl_gym.lab.cli.screen import sentences
from private_rl_gym.lab.figures.sweeps import WRITERS, curves_of, write_sweep
from private_rl_gym.lab.grids.grid import read_grid
from private_rl_gym.lab.grids.store import Store
from private_rl_gym.lab.grids.summary import CONFIDENCE
from private_rl_gym.lab.registry import GridError, nearest

__all__ = ["plot", "sweep_again", "table"]


def sweep_again(grid: Path | str, store: Path, users: int | None, seeds: int | None) -> str:
    """Return the command that completes a grid and draws it again."""
    words = ["private-rl-gym", "sweep", str(grid), "--store", str(store)]
    words += [] if users is None else ["--users", str(users)]
    return shlex.join(words + ([] if seeds is None else ["--seeds", str(seeds)]))


@sentences
def plot(
    grid: options.GridName,
    store: options.Store = options.STORE,
    out: Annotated[Path | None, typer.Option(help="Folder for the figures; by default STORE/GRID.")] = None,
    users: Annotated[int | None, typer.Option(help="Number of users, if the sweep was run with --users.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds, if the sweep was run with --seeds.")] = None,
    code: options.Code = None,
) -> None:
    """Draw the figures of a grid from the runs that are finished.

    Formats are PNG, SVG and PDF. Numbers, tables and a report are written beside the figures.
    """
    plan = read_grid(grid, users=users, seeds=seeds, code=code or ())
    drawn = write_sweep(plan, Store(store), out or store / plan.name, sweep_again(grid, store, users, seeds))
    for path in drawn.paths:
        typer.echo(str(path))


@sentences
def table(
    grid: options.GridName,
    store: options.Store = options.STORE,
    kind: Annotated[str, typer.Option("--format", help="Format of the table: markdown, latex or csv.")] = "markdown",
    users: Annotated[int | None, typer.Option(help="Number of users, if the sweep was run with --users.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds, if the sweep was run with --seeds.")] = None,
    code: options.Code = None,
) -> None:
    """Print the finished runs of a grid as a table.

    Each row has the regret with its confidence interval, and the actual guarantee.
    """
    if kind not in WRITERS:
        raise GridError(f"There is no format {kind!r}. {nearest(kind, WRITERS)}")
    plan = read_grid(grid, users=users, seeds=seeds, code=code or ())
    typer.echo(WRITERS[kind](curves_of(plan, Store(store)), plan.table), nl=False)
    if plan.table == "learners":
        typer.echo(f"+/-: half of a {CONFIDENCE:.0%} confidence interval of the mean over seeds.", err=True)

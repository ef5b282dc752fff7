"""``private-rl-gym sweep``: a grid of runs, with its figures and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from private_rl_gym.lab.cli.options import STORE, Code, GridName, Scheduler, Workers
from private_rl_gym.lab.cli.pictures import sweep_again
from private_rl_gym.lab.cli.screen import progress, sentences
from private_rl_gym.lab.figures.sweeps import write_sweep
from private_rl_gym.lab.grids import sweep as sweeping
from private_rl_gym.lab.grids.cell import Cell
from private_rl_gym.lab.grids.engines import Answer, Engine, engine_named
from private_rl_gym.lab.grids.grid import Grid, read_grid
from private_rl_gym.lab.grids.store import Store
from private_rl_gym.lab.registry import GridError

__all__ = ["sweep"]


@sentences
def sweep(
    grid: GridName,
    store: Annotated[Path | None, typer.Option(help="Directory of records; by default `runs`.")] = None,
    workers: Workers = None,
    engine: Annotated[
        str | None, typer.Option(help="Engine of the runs: joblib, dask or serial; by default joblib.")
    ] = None,
    scheduler: Scheduler = None,
    out: Annotated[Path | None, typer.Option(help="Folder for figures and tables; by default STORE/GRID.")] = None,
    users: Annotated[int | None, typer.Option(help="Number of users in every run; by default as in the grid.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds of every run; by default as in the grid.")] = None,
    code: Code = None,
    dry: Annotated[
        bool, typer.Option("--dry-run", help="Check the grid, print the number of missing cells, and exit.")
    ] = False,
) -> None:
    """Run the missing cells of a grid, then write its figures, tables and report.

    Each finished cell is stored at once. To continue an interrupted sweep, run the same command again. Several sweeps
    may share a store. Options may also be set in the file, under `[sweep]`.

    Example: `private-rl-gym sweep riverswim`
    """
    plan = read_grid(grid, users=users, seeds=seeds, code=code or ())
    options = plan.options
    target = store or Path(options.get("store", STORE))
    records = Store(target)
    runner = engine_named(
        engine or options.get("engine", "joblib"),
        workers=workers if workers is not None else options.get("workers"),
        scheduler=scheduler or options.get("scheduler"),
    )
    sweeping.check(plan)
    missing = records.missing(plan.cells)
    typer.echo(f"{plan.title}: {len(plan.cells)} cells, {len(missing)} to run. Records: {target}", err=True)
    if dry:
        return
    folder = out or Path(options.get("out", target / plan.name))
    if folder.is_file():
        raise GridError(f"{folder} is a file: figures and tables go into a folder.")
    tally = _run(plan, records, runner)
    typer.echo(tally.sentence, err=True)
    for cell in tally.failed[:5]:
        last = (records.failure(cell) or "").strip().splitlines()[-1:]
        typer.echo(f"  failed: {cell.label}, seed {cell.seed}: {' '.join(last)}", err=True)
    if tally.done + tally.there == 0:
        raise typer.Exit(1)
    drawn = write_sweep(plan, records, folder, sweep_again(grid, target, users, seeds))
    typer.echo(f"{drawn.finding}.")
    typer.echo(f"The figure: {drawn.paths[0]}")
    typer.echo(f"The report: {drawn.paths[-1]}")
    if tally.failed:
        raise typer.Exit(1)


def _run(grid: Grid, records: Store, runner: Engine) -> sweeping.Tally:
    with progress(grid.name, len(grid.cells)) as bar:

        def show_progress(tally: sweeping.Tally, answer: Answer[Cell] | None) -> None:
            bar.update(tally.there + tally.done + len(tally.failed))
            if answer is not None and answer.failure is not None:
                bar.fail(f"failed: {answer.cell.label}, seed {answer.cell.seed}")

        return sweeping.sweep(grid, records, runner, show_progress)

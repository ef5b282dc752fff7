"""``plot`` and ``table``: the figures and tables of a sweep."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from private_rl_gym.commands.screen import sentences
from private_rl_gym.experiments import drawing, figures, summary
from private_rl_gym.experiments.frontier import layout_of
from private_rl_gym.experiments.grid import BUILT_IN, Grid, read_grid
from private_rl_gym.experiments.names import GridError, nearest
from private_rl_gym.experiments.report import report
from private_rl_gym.experiments.store import Store
from private_rl_gym.experiments.summary import Curve

__all__ = ["GRID_ARGUMENT", "Code", "curves_of", "draw_all", "plot", "sweep_again", "table"]

GRID_ARGUMENT = typer.Argument(
    help="A TOML file, or the name of a built-in grid.",
    autocompletion=lambda incomplete: [name for name in BUILT_IN if name.startswith(incomplete)],
)
Code = Annotated[
    list[str] | None,
    typer.Option("--import", help="A module that a file may name code of, as `module:object`; may be repeated."),
]
"""The modules whose code a file may name."""

WRITERS = {"csv": summary.as_csv, "markdown": summary.as_markdown, "latex": summary.as_latex}
ENDINGS = {"csv": "csv", "markdown": "md", "latex": "tex"}


def draw_all(grid: Grid, store: Store, out: Path, again: str = "") -> list[Path]:
    """Write all figures, numbers, tables and the report; returns paths, the main figure first, the report last.

    The report shows the command that makes it ``again``.
    """
    records = list(store.read(grid.cells))
    curves = curves_of(grid, store)
    try:
        out.mkdir(parents=True, exist_ok=True)
        paths = []
        for name, figure in figures.of_grid(grid, curves).items():
            paths += drawing.save(figure, out / name)
        (out / "curves.csv").write_text(summary.curves_csv(curves), "utf-8")
        for kind, write in WRITERS.items():
            (out / f"table.{ENDINGS[kind]}").write_text(write(curves, layout_of(grid, curves)), "utf-8")
        failed = [(cell, text) for cell in grid.cells if (text := store.failure(cell)) is not None]
        page = out / "report.html"
        page.write_text(report(grid, curves, records, failed, again), "utf-8")
    except OSError as error:
        raise GridError(f"{out} cannot be written to ({error.strerror or type(error).__name__}).") from None
    return [*paths, page]


def sweep_again(grid: Path | str, store: Path, users: int | None, seeds: int | None) -> str:
    """The command that runs what is missing of a grid and draws it again."""
    words = ["private-rl-gym", "sweep", str(grid), "--store", str(store)]
    words += [] if users is None else ["--users", str(users)]
    return shlex.join(words + ([] if seeds is None else ["--seeds", str(seeds)]))


def curves_of(grid: Grid, store: Store) -> list[Curve]:
    """The curves of those cells that have run."""
    curves = summary.summarize(store.read(grid.cells))
    if not curves:
        raise GridError(f"{store.path} has no record of this grid yet: run private-rl-gym sweep first.")
    return curves


@sentences
def plot(
    grid: Annotated[str, GRID_ARGUMENT],
    store: Annotated[Path, typer.Option(help="Directory of records.")] = Path("runs"),
    out: Annotated[Path | None, typer.Option(help="Folder; STORE/GRID if nothing is said.")] = None,
    users: Annotated[int | None, typer.Option(help="As it was swept.")] = None,
    seeds: Annotated[int | None, typer.Option(help="As it was swept.")] = None,
    code: Code = None,
) -> None:
    """Draw the figures of what has been run of a grid: PNG, SVG, PDF, with numbers, tables and a report beside them."""
    plan = read_grid(grid, users=users, seeds=seeds, code=code or ())
    paths = draw_all(plan, Store(store), out or store / plan.name, sweep_again(grid, store, users, seeds))
    for path in paths:
        typer.echo(str(path))


@sentences
def table(
    grid: Annotated[str, GRID_ARGUMENT],
    store: Annotated[Path, typer.Option(help="Directory of records.")] = Path("runs"),
    kind: Annotated[str, typer.Option("--format", help="markdown, latex or csv.")] = "markdown",
    users: Annotated[int | None, typer.Option(help="As it was swept.")] = None,
    seeds: Annotated[int | None, typer.Option(help="As it was swept.")] = None,
    code: Code = None,
) -> None:
    """Print what has been run of a grid as a table: regret with its confidence, beside what was really promised."""
    if kind not in WRITERS:
        raise GridError(f"There is no format {kind!r}. {nearest(kind, WRITERS)}")
    plan = read_grid(grid, users=users, seeds=seeds, code=code or ())
    curves = curves_of(plan, Store(store))
    layout = layout_of(plan, curves)
    typer.echo(WRITERS[kind](curves, layout), nl=False)
    if "+/-" in layout.header:
        typer.echo(f"+/-: half of a {summary.CONFIDENCE:.0%} confidence interval of the mean over seeds.", err=True)

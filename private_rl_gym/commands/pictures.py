"""``plot`` and ``table``: the figures and tables of a sweep."""

from __future__ import annotations

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

__all__ = ["GRID_ARGUMENT", "draw_all", "plot", "table"]

GRID_ARGUMENT = typer.Argument(
    help="A TOML file, or the name of a built-in grid.",
    autocompletion=lambda incomplete: [name for name in BUILT_IN if name.startswith(incomplete)],
)
WRITERS = {"csv": summary.as_csv, "markdown": summary.as_markdown, "latex": summary.as_latex}
ENDINGS = {"csv": "csv", "markdown": "md", "latex": "tex"}


def draw_all(grid: Grid, store: Store, out: Path) -> list[Path]:
    """Write all figures, numbers, tables and the report; returns paths, the main figure first, the report last."""
    records = list(store.read(grid.cells))
    curves = _curves(grid, store)
    try:
        out.mkdir(parents=True, exist_ok=True)
        paths = []
        for name, figure in figures.of_grid(grid, curves).items():
            paths += drawing.save(figure, out / name)
        (out / "curves.csv").write_text(summary.curves_csv(curves), "utf-8")
        for kind, write in WRITERS.items():
            (out / f"table.{ENDINGS[kind]}").write_text(write(curves, layout_of(grid)), "utf-8")
        failed = [(cell, text) for cell in grid.cells if (text := store.failure(cell)) is not None]
        page = out / "report.html"
        page.write_text(report(grid, curves, records, failed), "utf-8")
    except OSError as error:
        raise GridError(f"{out} cannot be written to ({error.strerror or type(error).__name__}).") from None
    return [*paths, page]


def _curves(grid: Grid, store: Store) -> list[Curve]:
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
) -> None:
    """Draw the figures of what has been run of a grid: PNG, SVG, PDF, with numbers, tables and a report beside them."""
    plan = read_grid(grid, users=users, seeds=seeds)
    paths = draw_all(plan, Store(store), out or store / plan.name)
    for path in paths:
        typer.echo(str(path))


@sentences
def table(
    grid: Annotated[str, GRID_ARGUMENT],
    store: Annotated[Path, typer.Option(help="Directory of records.")] = Path("runs"),
    kind: Annotated[str, typer.Option("--format", help="markdown, latex or csv.")] = "markdown",
    users: Annotated[int | None, typer.Option(help="As it was swept.")] = None,
    seeds: Annotated[int | None, typer.Option(help="As it was swept.")] = None,
) -> None:
    """Print what has been run of a grid as a table: regret with its confidence, beside what was really promised."""
    if kind not in WRITERS:
        raise GridError(f"There is no format {kind!r}. {nearest(kind, WRITERS)}")
    plan = read_grid(grid, users=users, seeds=seeds)
    typer.echo(WRITERS[kind](_curves(plan, Store(store)), layout_of(plan)), nl=False)

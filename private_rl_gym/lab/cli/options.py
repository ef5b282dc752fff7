"""Options that several commands share, and the values that their texts mean."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from private_rl_gym.lab.grids.grid import BUILT_IN
from private_rl_gym.lab.registry import BOUNDARIES, ENVIRONMENTS, BoundaryEntry, GridError

__all__ = [
    "ENVIRONMENT",
    "STORE",
    "Bins",
    "Boundary",
    "Code",
    "Delta",
    "Epsilon",
    "GridName",
    "High",
    "Horizon",
    "Json",
    "Low",
    "RewardRange",
    "Scheduler",
    "Store",
    "Workers",
    "bounds_of",
    "budget_of",
    "settings_of",
]

STORE = Path("runs")
"""The directory of records if none is given."""

USUAL_EPSILON = 1.0
"""The epsilon of commands if none is given."""


def _usual_delta(board: BoundaryEntry) -> float:
    """Return the default delta of a boundary; 0 if its constructor takes none."""
    return float(board.kind.usual_delta) if board.takes("delta") else 0.0  # type: ignore[attr-defined]


_USUAL = [f"{_usual_delta(board):g} for {name}" for name, board in BOUNDARIES.items() if _usual_delta(board)]

Boundary = Annotated[
    str, typer.Option(help=f"Boundary. One of {', '.join(BOUNDARIES)}.", autocompletion=BOUNDARIES.complete)
]
Epsilon = Annotated[float | None, typer.Option(help="Epsilon of the guarantee to each user; by default 1.")]
Delta = Annotated[
    float | None, typer.Option(help=f"Delta of the guarantee; by default {', '.join(_USUAL)}, and 0 for others.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

# Environments, with adapters for those of other packages.
ENVIRONMENT = typer.Option(
    "--env",
    help="Environment: a name from `private-rl-gym list`, a Gymnasium id, or module:object.",
    autocompletion=ENVIRONMENTS.complete,
)
Horizon = Annotated[
    int | None, typer.Option(help="Number of steps in an episode, H; by default the limit of the environment.")
]
RewardRange = Annotated[
    tuple[float, float] | None,
    typer.Option(help="Least and largest reward; by default 0 and 1.", metavar="LEAST LARGEST"),
]
Bins = Annotated[
    str | None,
    typer.Option(
        help="Number of bins of each entry of a Box observation: one number (8), or one for each entry (1,4,6,6)."
    ),
]
Low = Annotated[
    str | None,
    typer.Option(help="Lower bounds of a Box observation, such as --low=-2.4,-2; by default those of the Box."),
]
High = Annotated[
    str | None,
    typer.Option(help="Upper bounds of a Box observation, such as --high=2.4,2; by default those of the Box."),
]

# Grids.
GridName = Annotated[
    str,
    typer.Argument(
        help="TOML file of the grid, or the name of a built-in grid.",
        autocompletion=lambda incomplete: [name for name in BUILT_IN if name.startswith(incomplete)],
    ),
]
Code = Annotated[
    list[str] | None,
    typer.Option(
        "--import", help="Module whose code a configuration file may name, as `module:object`. May be repeated."
    ),
]
Store = Annotated[Path, typer.Option(help="Directory of records.")]
Workers = Annotated[int | None, typer.Option(help="Number of processes; by default the number of cores.")]
Scheduler = Annotated[
    str | None, typer.Option(help="Address of the Dask scheduler, such as tcp://host:8786. Required by --engine dask.")
]


def budget_of(board: BoundaryEntry, epsilon: float | None, delta: float | None) -> dict[str, float]:
    """Return the budget that a boundary is built with.

    It is the requested one, or else epsilon = 1 and the boundary's usual delta.
    """
    if not board.takes("epsilon"):
        if epsilon is not None or delta is not None:
            raise GridError(f"--epsilon and --delta are for a boundary with a guarantee, and this one is {board.name}.")
        return {}
    budget = {"epsilon": USUAL_EPSILON if epsilon is None else epsilon}
    if delta is None and _usual_delta(board) == 0.0:
        return budget
    return {**budget, "delta": _usual_delta(board) if delta is None else delta}


def settings_of(settings: Iterable[str] | None, *parts: str) -> dict[str, dict[str, Any]]:
    """Return the options in ``--set PART.NAME=VALUE``, by part."""
    found: dict[str, dict[str, Any]] = {part: {} for part in parts}
    for setting in settings or ():
        path, equals, text = setting.partition("=")
        part, dot, name = path.strip().partition(".")
        if not (equals and dot) or part not in found:
            *most, last = (f"{part}.NAME=VALUE" for part in parts)
            raise GridError(f"--set {setting!r}: write it as {', '.join(most)}{' or ' if most else ''}{last}.")
        found[part][name] = _value_of(text.strip())
    return found


def bounds_of(bins: str | None, low: str | None, high: str | None) -> dict[str, Any]:
    """Return the adapters of observations in a Box."""
    return {"bins": _numbers_of(bins, "--bins"), "low": _numbers_of(low, "--low"), "high": _numbers_of(high, "--high")}


def _numbers_of(text: str | None, where: str) -> Any:
    """Return one number, or several with commas between them; None for None."""
    if text is None:
        return None
    parts = [_value_of(part.strip()) for part in text.split(",")]
    if not all(isinstance(part, int | float) for part in parts):
        raise GridError(f"{where} {text}: write numbers with commas between them.")
    return parts[0] if len(parts) == 1 else parts


def _value_of(text: str) -> Any:
    """Return the value of an option's text as JSON, or the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text

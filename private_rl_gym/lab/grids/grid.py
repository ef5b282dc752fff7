"""Grids in files: environments, agents, boundaries, epsilons and seeds, checked before anything runs.

A TOML file names runs; every list in a run is an axis, and the grid is their product::

    name = "river"
    users = 5_000
    seeds = 3
    environment = { id = "RiverSwim", horizon = 20 }

    [[runs]]
    agent = "UCBVI"
    boundary = "open"

    [[runs]]
    agent = "DPUCBVI"
    boundary = { name = "jdp", epsilon = [1.0, 10.0], delta = 1e-6, batch_size = 100 }

A value that is itself a list is written as a list in a list. Environments may be any id that Gymnasium knows, with
``horizon``, ``reward_range``, ``bins``, ``low`` and ``high`` beside the options of their constructor::

    environment = { id = "Blackjack-v1", horizon = 6, reward_range = [[-1.5, 1.5]] }

``module:object`` names an environment, a boundary or an agent of the user's own, and a class that an option takes, such
as ``counting`` or ``randomizer``. It is imported if the user who reads the file names its module.
"""

from __future__ import annotations

import itertools
import math
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from private_rl_gym.lab.grids.cell import Cell, Choice, digest
from private_rl_gym.lab.grids.summary import TABLES
from private_rl_gym.lab.options import LARGEST
from private_rl_gym.lab.references import GridError
from private_rl_gym.lab.registry import AGENTS, BOUNDARIES, ENVIRONMENTS, Catalogue, nearest
from private_rl_gym.planning.arrays import among

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover - the same library under its older name
    import tomli as tomllib

__all__ = ["BUILT_IN", "Cell", "Choice", "Grid", "GridError", "grid_of", "read_grid", "read_table"]

BUILT_IN = tuple(
    sorted(
        entry.name.removesuffix(".toml")
        for entry in resources.files("private_rl_gym.lab.grids").iterdir()
        if entry.name.endswith(".toml")
    )
)
"""Names of the grids that come with the package."""

MOST_CELLS = 100_000
"""Largest number of cells in a grid; to list more would take too long."""

_SWEEP_KEYS = {"store": str, "workers": int, "engine": str, "scheduler": str, "out": str}
_RUN_KEYS = frozenset({"label", "environment", "boundary", "agent", "users", "seeds", "alpha"})
_GRID_KEYS = _RUN_KEYS - {"label"} | {"name", "title", "about", "runs", "figure", "table", "sweep"}
_FIGURE_KEYS = frozenset({"main", "x", "panels", "bounds", "paper", "title"})
MAIN_FIGURES = ("share", "privacy", "frontier")
"""Figures that a grid may ask for in front of the usual ones; the frontier stands alone."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells of a grid, with its name, its description and its options."""

    name: str
    title: str
    about: str
    cells: tuple[Cell, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    figure: Mapping[str, Any] = field(default_factory=dict)
    """The name of the main figure, ``main``; or the axis that it is drawn against, ``x``, and the one that its panels
    differ in, ``panels``. Whether theorems' bounds are drawn, ``bounds``; what a paper's figure said, ``paper``; and a
    title for all figures, ``title``, which have none otherwise."""
    table: str = "learners"

    def __repr__(self) -> str:
        return f"Grid({self.name!r}, {len(self.cells)} cells)"

    @property
    def labels(self) -> list[str]:
        """Labels of the curves, in the order of the file."""
        return list(dict.fromkeys(cell.label for cell in self.cells))


def read_table(source: str | Path) -> dict[str, Any]:
    """Return the table in a TOML file, or in a built-in grid.

    Raise ``GridError`` if there is none.
    """
    path = Path(source)
    if path.suffix != ".toml" and not path.is_file():
        if str(source) not in BUILT_IN:
            suggestion = nearest(str(source), BUILT_IN)
            raise GridError(f"There is no file {path} and no built-in grid {str(source)!r}. {suggestion}")
        text = resources.files("private_rl_gym.lab.grids").joinpath(f"{source}.toml").read_text("utf-8")
    else:
        try:
            text = path.read_text("utf-8-sig")
        except (OSError, ValueError) as error:
            raise GridError(f"{path} cannot be read ({type(error).__name__}).") from None
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise GridError(f"{path} is not TOML: {error}.") from None


def read_grid(
    source: str | Path, *, users: int | None = None, seeds: int | None = None, code: Collection[str] = ()
) -> Grid:
    """Return the grid in a file, or the built-in grid of that name.

    Raise ``GridError`` if it is not valid.

    Args:
        source: A path, or a name.
        users: Number of users of all runs, in place of that in the file.
        seeds: Number of seeds of all runs, in place of that in the file.
        code: Modules that the file may name code of.
    """
    content = read_table(source)
    for key, value in (("users", users), ("seeds", seeds)):
        if value is not None:
            content[key] = value
            runs = content.get("runs", [])
            for run in runs if isinstance(runs, list) else []:
                if isinstance(run, dict):
                    run.pop(key, None)
    return grid_of(content, default_name=Path(source).stem, code=code)


def grid_of(content: Mapping[str, Any], *, default_name: str = "grid", code: Collection[str] = ()) -> Grid:
    """Return the grid in a table.

    Raise ``GridError`` if it is not valid. Only modules in ``code`` are imported.
    """
    _known(content, _GRID_KEYS, "The grid")
    runs = content.get("runs", [{}] if "agent" in content else [])
    if not isinstance(runs, Sequence) or not runs or not all(isinstance(run, Mapping) for run in runs):
        raise GridError("The grid has no runs: write [[runs]] tables, each with an agent and a boundary.")
    shared = {key: content[key] for key in _RUN_KEYS & content.keys()}
    cells = []
    for number, run in enumerate(runs):
        where = f"runs[{number}]"
        _known(run, _RUN_KEYS, where)
        cells += list(_cells({**shared, **run}, where, code))
    repeated = len(cells) - len({cell.key for cell in cells})
    if repeated:
        raise GridError(f"The grid has {repeated} cells twice: two runs are equal, or an axis repeats a value.")
    _one_label_a_configuration(cells)
    for key in ("name", "title", "about"):
        if not isinstance(content.get(key, ""), str):
            raise GridError(f"{key} is {content[key]!r}: it must be a string.")
    name = content.get("name", default_name)
    if not re.fullmatch(r"[A-Za-z0-9][\w. -]{0,99}", name) or name in ("records", "failed", "incoming"):
        raise GridError(f"name is {name!r}: it names a folder, so letters, digits, spaces and . _ - will do.")
    _printable(content.get("title", name), "title")
    figure, table = _figure_options(content, cells), content.get("table", "learners")
    if not among(table, TABLES):
        raise GridError(f"table is {table!r}, and there is no such table. {nearest(str(table), TABLES)}")
    return Grid(
        name, content.get("title", name), content.get("about", ""), tuple(cells), _sweep_options(content), figure, table
    )


def _one_label_a_configuration(cells: Sequence[Cell]) -> None:
    """Raise if cells with the same label differ in more than the seed.

    Such cells would be averaged.
    """
    known: dict[str, Cell] = {}
    for cell in cells:
        first = known.setdefault(cell.label, cell)
        if digest({**first.to_dict(), "seed": 0}) != digest({**cell.to_dict(), "seed": 0}):
            raise GridError(
                f"Two different runs have the label {cell.label!r}, so that they would be averaged. Give each run its "
                "own label."
            )


def _printable(text: str, where: str) -> None:
    if not text.isprintable():
        raise GridError(f"{where} is {text!r}: it must be one line of text.")


def _sweep_options(content: Mapping[str, Any]) -> dict[str, Any]:
    options = content.get("sweep", {})
    if not isinstance(options, Mapping):
        raise GridError(f"sweep is {options!r}: it must be a table.")
    _known(options, frozenset(_SWEEP_KEYS), "sweep")
    for key, value in options.items():
        if not isinstance(value, _SWEEP_KEYS[key]) or isinstance(value, bool):
            wanted = "a whole number" if _SWEEP_KEYS[key] is int else "a string"
            raise GridError(f"sweep.{key} is {value!r}: it must be {wanted}.")
    return dict(options)


def _figure_options(content: Mapping[str, Any], cells: Sequence[Cell]) -> dict[str, Any]:
    options = content.get("figure", {})
    if not isinstance(options, Mapping):
        raise GridError(f"figure is {options!r}: it must be a table.")
    _known(options, _FIGURE_KEYS, "figure")
    paths = sorted({path for cell in cells for path in cell.axes})
    for key, path in options.items():
        if key == "main":
            if path not in MAIN_FIGURES:
                raise GridError(
                    f"figure.main is {path!r}, and there is no such figure. {nearest(str(path), MAIN_FIGURES)}"
                )
        elif key == "bounds":
            if not isinstance(path, bool):
                raise GridError(f"figure.bounds is {path!r}: it must be true or false.")
            for cell in cells if path else ():
                if cell.environment.name not in ENVIRONMENTS:
                    raise GridError(
                        f"figure.bounds is true, and the true model of {str(cell.environment.name)!r} is not known: "
                        "leave bounds out, or name an environment of this package."
                    )
        elif key == "paper":
            if not isinstance(path, str):
                raise GridError(f"figure.paper is {path!r}: it must be a sentence about the paper's figure.")
        elif key == "title":
            if not isinstance(path, str):
                raise GridError(f"figure.title is {path!r}: it must be a string.")
            _printable(path, "figure.title")
        elif path not in paths:
            raise GridError(f"figure.{key} is {path!r}, which does not vary in this grid. {nearest(str(path), paths)}")
    return dict(options)


def _known(table: Mapping[str, Any], keys: frozenset[str], where: str) -> None:
    for key in table:
        if key not in keys:
            raise GridError(f"{where} has an unknown key {key!r}. {nearest(key, keys)}")


def _cells(run: Mapping[str, Any], where: str, code: Collection[str]) -> Iterator[Cell]:
    """Yield the cells of a run: the product of its axes."""
    parts = {}
    for part, catalogue, naming in (
        ("environment", ENVIRONMENTS, "id"),
        ("boundary", BOUNDARIES, "name"),
        ("agent", AGENTS, "name"),
    ):
        if part not in run:
            raise GridError(f"{where} names no {part}. One of: {', '.join(catalogue)}.")
        parts[part] = _alternatives(run[part], catalogue, naming, f"{where}.{part}", code)
    users = _integers(run.get("users"), f"{where}.users", least=1)
    seeds = run.get("seeds", 1)
    numbers: Sequence[int] = _integers(seeds, f"{where}.seeds", least=0)
    if not isinstance(seeds, list):
        if numbers[0] < 1:
            raise GridError(f"{where}.seeds is {seeds}: it must be at least 1, or a list of seeds.")
        numbers = range(numbers[0])
    count = math.prod(map(len, parts.values())) * len(users) * len(numbers)
    if count > MOST_CELLS:
        raise GridError(f"{where} has {count:,} cells, and a grid {MOST_CELLS:,} at most: shorten an axis or split.")
    label, alpha = run.get("label"), run.get("alpha")
    if label is not None and not isinstance(label, str):
        raise GridError(f"{where}.label is {label!r}: it must be a string.")
    _printable(label or "", f"{where}.label")
    if alpha is not None and (isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < LARGEST):
        raise GridError(f"{where}.alpha is {alpha!r}: it is how far from the best a policy may be, a number above 0.")
    varying = {part: _varying(choices) for part, choices in parts.items()}
    several = {part for part, choices in parts.items() if len({choice.name for choice in choices}) > 1}
    for environment in parts["environment"]:
        for boundary, agent, count in itertools.product(parts["boundary"], parts["agent"], users):
            base, axes = label or f"{agent.title}, {boundary.title}", dict[str, Any]()
            for part, choice in (("environment", environment), ("boundary", boundary), ("agent", agent)):
                if part in several and (label or part == "environment"):
                    base += f", {choice.title}"
                own = {
                    key: name.short for key, name in choice.references.items() if key not in {"name", *varying[part]}
                }
                base += "" if label else "".join(f", {name}" for name in own.values())
                axes |= {f"{part}.{key}": choice.options[key] for key in sorted(varying[part] & choice.options.keys())}
            if len(users) > 1:
                axes["users"] = count
            for seed in numbers:
                limit = None if alpha is None else float(alpha)
                yield Cell(environment, boundary, agent, count, seed, limit, base, axes)


def _varying(choices: list[Choice]) -> set[str]:
    """Return the names of options that are not the same in all choices."""
    names = set().union(*(choice.options for choice in choices))
    return {name for name in names if len({digest(choice.options.get(name)) for choice in choices}) > 1}


def _alternatives(
    given: Any, catalogue: Catalogue[Any], naming: str, where: str, code: Collection[str]
) -> list[Choice]:
    """Return every combination of the given names and of their options' values."""
    choices = []
    if isinstance(given, list) and not given:
        raise GridError(f"{where} is an empty list: an axis needs values.")
    for item in given if isinstance(given, list) else [given]:
        table = {naming: item} if isinstance(item, str) else item
        if not isinstance(table, Mapping) or naming not in table:
            raise GridError(f"{where} is {item!r}: write a name, or a table with {naming} = and options.")
        entry = catalogue.find(table[naming], where, code)
        options = {key: table[key] for key in sorted(table) if key != naming}
        entry.check(options, where)
        axes = []
        for key, value in options.items():
            if isinstance(value, list) and not value:
                raise GridError(f"{where}.{key} is an empty list: an axis needs values.")
            option, values = entry.options[key], value if isinstance(value, list) else [value]
            axes.append([option.value(one, f"{where}.{key}", code) for one in values])
        choices += [
            Choice(entry.name, dict(zip(options, combination, strict=True))) for combination in itertools.product(*axes)
        ]
    return choices


def _integers(value: Any, where: str, *, least: int) -> list[int]:
    numbers = value if isinstance(value, list) else [value]
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            raise GridError(f"{where} is {number!r}: it must be a whole number of at least {least}.")
        if number > LARGEST:
            raise GridError(f"{where} is out of range: it is more than {LARGEST:g}.")
    if not numbers:
        raise GridError(f"{where} is an empty list.")
    return list(numbers)

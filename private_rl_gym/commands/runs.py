"""``list``, ``train``, ``sweep`` and ``show``: names, runs and records."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from private_rl_gym.commands.pictures import GRID_ARGUMENT, Code, curves_of, draw_all, sweep_again
from private_rl_gym.commands.screen import progress, screen, sentences
from private_rl_gym.experiments import foreign
from private_rl_gym.experiments import sweep as sweeping
from private_rl_gym.experiments.cell import train_cell
from private_rl_gym.experiments.config import Cell
from private_rl_gym.experiments.engines import Answer, engine_named
from private_rl_gym.experiments.grid import BUILT_IN, Grid, grid_of, read_grid, read_table
from private_rl_gym.experiments.judge import EPISODES
from private_rl_gym.experiments.names import AGENTS, BOUNDARIES, ENVIRONMENTS, Catalogue, GridError, Named
from private_rl_gym.experiments.record import Record
from private_rl_gym.experiments.report import finding_of
from private_rl_gym.experiments.store import Store

__all__ = [
    "DELTA_HELP",
    "Bins",
    "High",
    "Horizon",
    "Low",
    "RewardRange",
    "budget_of",
    "list_",
    "numbers_of",
    "show",
    "sweep",
    "train",
    "value_of",
]

STORE = Path("runs")

# Adapters for an environment of somebody's own, as `train` and `plan` take them.
Horizon = Annotated[int | None, typer.Option(help="Steps of an episode, for environments without a limit.")]
RewardRange = Annotated[
    tuple[float, float] | None,
    typer.Option(help="Least and largest reward, if not 0 and 1.", metavar="LEAST LARGEST"),
]
Bins = Annotated[str | None, typer.Option(help="Bins for observations in a Box: 8, or 1,4,6,6.")]
Low = Annotated[str | None, typer.Option(help="Their lower bounds, as --low=-2.4,-2.")]
High = Annotated[str | None, typer.Option(help="Their upper bounds.")]


def _usual_delta(board: Named) -> float:
    """The delta that a boundary is built with if nothing is said; 0 if its constructor takes none."""
    return float(board.kind.usual_delta) if board.takes("delta") else 0.0  # type: ignore[attr-defined]


_USUAL = [f"{_usual_delta(board):g} for {name}" for name, board in BOUNDARIES.items() if _usual_delta(board)]
DELTA_HELP = f"If nothing is said, {', '.join(_USUAL)}, else 0."


def budget_of(board: Named, epsilon: float | None, delta: float | None, usual: float) -> dict[str, float]:
    """The budget that a boundary is built with: what was asked for, or else its usual delta and a usual epsilon."""
    if not board.takes("epsilon"):
        if epsilon is not None or delta is not None:
            raise GridError(
                f"--epsilon and --delta are for a boundary that promises something, and this one is {board.name}."
            )
        return {}
    budget = {"epsilon": usual if epsilon is None else epsilon}
    if delta is None and _usual_delta(board) == 0.0:
        return budget
    return {**budget, "delta": _usual_delta(board) if delta is None else delta}


@sentences
def list_(
    as_json: Annotated[bool, typer.Option("--json", help="Print names for machines.")] = False,
) -> None:
    """Print what experiments can name: environments, boundaries, agents and built-in grids.

    Names are found however they are written: `DP-UCBVI`, `dpucbvi` and `DPUCBVI` are one.
    """
    grids = {name: read_grid(name) for name in BUILT_IN}
    groups: dict[str, dict[str, str]] = {
        "environments": _lines(ENVIRONMENTS),
        "boundaries": _lines(BOUNDARIES),
        "agents": _lines(AGENTS),
        "grids": {name: f"{grid.title} ({len(grid.cells)} cells)" for name, grid in grids.items()},
    }
    if as_json:
        typer.echo(json.dumps(groups, indent=2))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for group, names in groups.items():
        table.add_row(f"[bold]{group}[/bold]", "")
        for name, summary in names.items():
            table.add_row(f"  {name}", summary)
    screen().print(table)


def _lines(catalogue: Catalogue) -> dict[str, str]:
    return {name: entry.summary for name, entry in catalogue.items()}


@sentences
def train(
    context: typer.Context,
    environment: Annotated[
        str,
        typer.Option(
            "--env",
            help="Name of the environment, any Gymnasium id, or module:object.",
            autocompletion=ENVIRONMENTS.complete,
        ),
    ] = "RiverSwim",
    agent: Annotated[
        str, typer.Option(help="Name of the agent, or module:object.", autocompletion=AGENTS.complete)
    ] = "DPUCBVI",
    boundary: Annotated[
        str, typer.Option(help=f"One of {', '.join(BOUNDARIES)}.", autocompletion=BOUNDARIES.complete)
    ] = "jdp",
    epsilon: Annotated[float | None, typer.Option(help="What each user is promised; 10 if nothing is said.")] = None,
    delta: Annotated[float | None, typer.Option(help=DELTA_HELP)] = None,
    users: Annotated[int, typer.Option(help="How many users come.")] = 10_000,
    batch_size: Annotated[int | None, typer.Option(help="Users in a batch; 100 or more if nothing is said.")] = None,
    seed: Annotated[int, typer.Option(help="Which of several runs.")] = 0,
    option: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any other option, as `agent.bonus_scale=0.1` or `environment.horizon=20`."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="A TOML file with environment, agent, boundary, users, seeds; --users and --seed go before it."
        ),
    ] = None,
    horizon: Horizon = None,
    reward_range: RewardRange = None,
    bins: Bins = None,
    low: Low = None,
    high: High = None,
    code: Code = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the record, the curve and the figure.")] = None,
    save: Annotated[Path | None, typer.Option(help="Save the agent there, as a zip.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record for machines.")] = False,
) -> None:
    """Train one agent behind one boundary, and print what it promised and what it lost.

    The regret is exact, from the true model, which the learner never sees; where nobody knows it, episodes of other
    users tell what policies return. Several runs are a grid: see `private-rl-gym sweep --help`. A `module:object` is
    imported; one that a file given with --config names, only if --import names its module.

    Example: `private-rl-gym train --agent PUCB --boundary jdp --epsilon 3 --users 20000`

    Example: `private-rl-gym train --env Blackjack-v1 --horizon 6 --reward-range -1.5 1.5 --agent FrugalUCBVI`
    """
    if save is not None and not (save.parent.is_dir() and os.access(save.parent, os.W_OK)):
        raise GridError(f"--save {save}: there is no folder {save.parent} to write to.")
    if out is not None and out.is_file():
        raise GridError(f"--out {out} is a file: the record, the curve and the figure go into a folder.")
    given = _from_options(environment, agent, boundary, epsilon, delta, users, batch_size, seed, option or [])
    bounds = {key: numbers_of(text, f"--{key}") for key, text in (("bins", bins), ("low", low), ("high", high))}
    _adapt(given, {"horizon": horizon, "reward_range": reward_range, **bounds})
    trusted = {name.partition(":")[0] for name in (environment, agent) if ":" in name} | set(code or ())
    if config is not None:
        given = _over(read_table(config), given, context)
    cells = grid_of(given, code=trusted).cells
    if len(cells) != 1:
        raise GridError(
            f"This names {len(cells)} runs: train runs one. For more, write a grid and private-rl-gym sweep it."
        )
    plan = Grid("train", cells[0].agent.name, "", cells)
    sweeping.check(plan)
    records = None if out is None else Store(out / "runs")
    start = time.perf_counter()
    with progress() as bar:
        task = None if bar is None else bar.add_task(cells[0].agent.name, total=cells[0].users)
        record, trained = train_cell(
            cells[0], lambda served: None if bar is None or task is None else bar.update(task, completed=served)
        )
    seconds = time.perf_counter() - start
    if save is not None:
        trained.save(save)
    if records is not None and out is not None:
        records.add(cells[0], record.to_bytes())
        draw_all(plan, records, out)
    if as_json:
        typer.echo(json.dumps(record.about, indent=2))
        return
    about = record.about
    config_of = about["config"]
    rows = {
        "environment": _said(config_of["environment"]),
        "agent": _said(config_of["agent"]),
        "guarantee": about["guarantee"],
        "users": f"{config_of['users']:,}",
        **_worth(record),
        "time": f"{seconds:.1f} s",
    }
    if save is not None:
        rows["saved"] = str(save)
    if out is not None:
        rows["record, curve, figure"] = str(out)
    _print_pairs({**rows, **_warned(about)})


def _adapt(given: dict[str, Any], adapted: dict[str, Any]) -> None:
    """Add the typed adapters: to an environment of somebody else, or where this package's have a place for them."""
    said = {key: [list(value)] if isinstance(value, list | tuple) else value for key, value in adapted.items()}
    said = {key: value for key, value in said.items() if value is not None}
    environment = given["environment"]
    if foreign.is_foreign(environment["id"]):
        environment |= said
        return
    if "horizon" in said:
        environment["horizon"] = said.pop("horizon")
    if "reward_range" in said:
        given["boundary"]["reward_range"] = said.pop("reward_range")
    for key in said:
        raise GridError(f"--{key} is for observations in a Box: the states of {environment['id']} are counted already.")


def _worth(record: Record) -> dict[str, str]:
    """Rows for what a run lost, or what its policies return where nobody knows the best."""
    about = record.about
    if record.measure == "return":
        return {
            "first policy returns": f"{record.curve[0]:.3f}, in {EPISODES} episodes of other users",
            "best learned policy returns": f"{about['deployed_value']:.3f}",
            "random actions return": f"{about['blind_value']:.3f}",
        }
    lost = about["regret"] / about["config"]["users"]
    return {
        "regret": f"{about['regret']:,.1f}, or {lost:.4f} of {about['optimal_value']:.4f} a user",
        "best learned policy loses": f"{about['deployed_gap']:.4f} a user",
    }


def _warned(about: dict[str, Any]) -> dict[str, str]:
    """A row for what the agent warned of; records of older versions say nothing of it."""
    return {"warning": " ".join(about["warnings"])} if about.get("warnings") else {}


def numbers_of(text: str | None, where: str) -> Any:
    """One number, or several with commas between them; None for None."""
    if text is None:
        return None
    parts = [value_of(part.strip()) for part in text.split(",")]
    if not all(isinstance(part, int | float) for part in parts):
        raise GridError(f"{where} {text}: write numbers with commas between them.")
    return parts[0] if len(parts) == 1 else parts


def _from_options(
    environment: str,
    agent: str,
    boundary: str,
    epsilon: float | None,
    delta: float | None,
    users: int,
    batch_size: int | None,
    seed: int,
    options: list[str],
) -> dict[str, Any]:
    """The options of ``train`` as a grid of one cell."""
    board = BOUNDARIES.find(boundary, "--boundary")
    if batch_size is None and "batch_size" in board.options:
        batch_size = min(max(100, board.options["batch_size"].default), users)
    stack: dict[str, Any] = {"name": board.name, **budget_of(board, epsilon, delta, usual=10.0)}
    if batch_size is not None:
        stack["batch_size"] = batch_size
    parts: dict[str, dict[str, Any]] = {
        "environment": {"id": environment},
        "agent": {"name": agent},
        "boundary": stack,
    }
    for setting in options:
        path, equals, text = setting.partition("=")
        part, dot, name = path.strip().partition(".")
        if not (equals and dot) or part not in parts:
            raise GridError(
                f"--set {setting!r}: write it as agent.NAME=VALUE, boundary.NAME=VALUE or environment.NAME=VALUE."
            )
        parts[part][name] = value_of(text.strip())
    return {**parts, "users": users, "seeds": [seed]}


def _over(table: dict[str, Any], given: dict[str, Any], context: typer.Context) -> dict[str, Any]:
    """The table of a file, in which the options that were typed replace those of the file."""

    def typed(*names: str) -> bool:
        sources = (context.get_parameter_source(name) for name in names)
        return any(source is not None and source.name == "COMMANDLINE" for source in sources)

    merged = {**given, **table}
    if typed("users"):
        merged["users"] = given["users"]
    if typed("seed"):
        merged["seeds"] = given["seeds"]
    for part, names in (
        ("environment", ("environment", "option", "horizon", "reward_range", "bins", "low", "high")),
        ("agent", ("agent", "option")),
        ("boundary", ("boundary", "epsilon", "delta", "batch_size", "option")),
    ):
        if part in table and typed(*names):
            raise GridError(
                f"{context.params['config']} says what the {part} is, and so do the options: say it in one of both "
                "places."
            )
    return merged


def value_of(text: str) -> Any:
    """The value that an option's text stands for, as JSON; the text itself where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _said(choice: dict[str, Any]) -> str:
    options = ", ".join(f"{key}={value!r}" for key, value in choice.items() if key != "name")
    return f"{choice['name']} ({options})" if options else str(choice["name"])


def _print_pairs(rows: dict[str, str]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, escape(value))
    screen().print(table, highlight=False)


@sentences
def sweep(
    grid: Annotated[str, GRID_ARGUMENT],
    store: Annotated[Path | None, typer.Option(help="Directory of records; `runs` if nothing is said.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; as many as cores if nothing is said.")] = None,
    engine: Annotated[str | None, typer.Option(help="joblib, dask or serial.")] = None,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, tcp://host:8786.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for figures and tables; STORE/GRID if nothing is said.")
    ] = None,
    users: Annotated[int | None, typer.Option(help="Another number of users, for all runs.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Another number of seeds, for all runs.")] = None,
    code: Code = None,
    dry: Annotated[bool, typer.Option("--dry-run", help="Check the grid, say what would run, and stop.")] = False,
) -> None:
    """Run what is missing of a grid, then draw its figures and write its tables and its report.

    Every finished cell is written down at once: interrupt it, lose a machine, run it again, and it goes on where it
    was. Two of these may share a store. Options may stand in the file, under `[sweep]`.

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
    paths = draw_all(plan, records, folder, sweep_again(grid, target, users, seeds))
    typer.echo(f"{finding_of(plan, curves_of(plan, records))}.")
    typer.echo(f"The figure: {paths[0]}")
    typer.echo(f"The report: {paths[-1]}")
    if tally.failed:
        raise typer.Exit(1)


def _run(grid: Grid, records: Store, runner: Any) -> sweeping.Tally:
    with progress() as bar:
        task = None if bar is None else bar.add_task(grid.name, total=len(grid.cells))

        def show_progress(tally: sweeping.Tally, answer: Answer[Cell] | None) -> None:
            if bar is not None and task is not None:
                bar.update(task, completed=tally.there + tally.done + len(tally.failed))
                if answer is not None and answer.failure is not None:
                    bar.console.print(
                        f"failed: {answer.cell.label}, seed {answer.cell.seed}", style="red", markup=False
                    )

        return sweeping.sweep(grid, records, runner, show_progress)


@sentences
def show(
    run: Annotated[str, typer.Argument(help="A record's key or the beginning of one, or the path of its file.")],
    store: Annotated[Path, typer.Option(help="Directory of records.")] = STORE,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it for machines.")] = False,
) -> None:
    """Print one record: its configuration, its promise, and its regret or its return over time."""
    path = Path(run)
    record: Record = Record.from_bytes(path.stem, path.read_bytes()) if path.is_file() else Store(store).get(run)
    about = record.about
    if as_json:
        curves = {name: getattr(record, name).tolist() for name in ("users", "noise")}
        curves[record.measure] = record.curve.tolist()
        typer.echo(json.dumps({**about, **curves}, indent=2))
        return
    config = about["config"]
    _print_pairs(
        {
            "key": record.key,
            **{part: _said(config[part]) for part in ("environment", "boundary", "agent")},
            "users": f"{config['users']:,}",
            "seed": str(config["seed"]),
            "guarantee": about["guarantee"],
            **_worth(record),
            "package": about["package"],
            **_warned(about),
        }
    )
    curve = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    lost = record.measure == "regret"
    for name in ("users", record.measure, *(["a user"] if lost else []), "noise"):
        curve.add_column(name, justify="right")
    for place in sorted({round(share * (len(record.users) - 1)) for share in (0, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)}):
        users, value, noise = record.users[place], record.curve[place], record.noise[place]
        shown = [f"{value:,.1f}", f"{value / users:.4f}"] if lost else [f"{value:,.3f}"]
        curve.add_row(f"{users:,}", *shown, f"{noise:,.4g}")
    screen().print(curve)

"""``private-rl-gym train``: one agent behind one boundary."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from private_rl_gym.lab.cli import options
from private_rl_gym.lab.cli.screen import pairs, progress, sentences
from private_rl_gym.lab.cli.show import rows_of
from private_rl_gym.lab.figures.sweeps import write_sweep
from private_rl_gym.lab.foreign import is_foreign
from private_rl_gym.lab.grids import sweep as sweeping
from private_rl_gym.lab.grids.grid import Grid, grid_of, read_table
from private_rl_gym.lab.grids.run import train_cell
from private_rl_gym.lab.grids.store import Store
from private_rl_gym.lab.registry import AGENTS, BOUNDARIES, GridError

__all__ = ["train"]


@sentences
def train(
    context: typer.Context,
    environment: Annotated[str, options.ENVIRONMENT] = "RiverSwim",
    agent: Annotated[
        str, typer.Option(help="Name of the agent, or module:object.", autocompletion=AGENTS.complete)
    ] = "DPUCBVI",
    boundary: options.Boundary = "jdp",
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    users: Annotated[int, typer.Option(help="How many users come.")] = 10_000,
    batch_size: Annotated[int | None, typer.Option(help="Number of users in a batch; by default 100 or more.")] = None,
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
    horizon: options.Horizon = None,
    reward_range: options.RewardRange = None,
    bins: options.Bins = None,
    low: options.Low = None,
    high: options.High = None,
    code: options.Code = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the record, the curve and the figure.")] = None,
    save: Annotated[Path | None, typer.Option(help="Save the agent there, as a zip.")] = None,
    as_json: options.Json = False,
) -> None:
    """Train one agent behind one boundary, and print its guarantee and its regret.

    The regret is exact, from the true model, which the learner never sees; where it is not known, episodes of other
    users show what policies return. Several runs are a grid: see `private-rl-gym sweep --help`. A `module:object` is
    imported; one that a file given with --config names, only if --import names its module.

    Example: `private-rl-gym train --agent PUCB --boundary jdp --epsilon 3 --users 20000`

    Example: `private-rl-gym train --env Blackjack-v1 --horizon 6 --reward-range -1.5 1.5 --agent FrugalUCBVI`
    """
    if save is not None and not (save.parent.is_dir() and os.access(save.parent, os.W_OK)):
        raise GridError(f"--save {save}: there is no folder {save.parent} to write to.")
    if out is not None and out.is_file():
        raise GridError(f"--out {out} is a file: the record, the curve and the figure go into a folder.")
    board = BOUNDARIES.find(boundary, "--boundary", code=None)
    parts = options.settings_of(option, "agent", "boundary", "environment")
    if batch_size is None and "batch_size" in board.options:
        batch_size = min(max(100, board.options["batch_size"].default), users)
    stack = {"name": board.name, **options.budget_of(board, epsilon, delta)}
    stack |= {} if batch_size is None else {"batch_size": batch_size}
    given: dict[str, Any] = {
        "environment": {"id": environment, **parts["environment"]},
        "agent": {"name": agent, **parts["agent"]},
        "boundary": stack | parts["boundary"],
        "users": users,
        "seeds": [seed],
    }
    _adapt(given, {"horizon": horizon, "reward_range": reward_range, **options.bounds_of(bins, low, high)})
    settings = (setting.partition("=")[2].strip() for setting in option or [])
    typed = (name for name in (environment, agent, boundary, *settings) if ":" in name)
    trusted = {name.partition(":")[0] for name in typed} | set(code or ())
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
    with progress(cells[0].agent.name, cells[0].users) as bar:
        record, trained = train_cell(cells[0], bar.update)
    seconds = time.perf_counter() - start
    if records is not None:
        records.add(cells[0], record.to_bytes())  # which has the ledger: it is on disk before anything else is
    if save is not None:
        trained.save(save)
    if records is not None and out is not None:
        write_sweep(plan, records, out)
    if as_json:
        typer.echo(json.dumps(record.about, indent=2))
        return
    rows = rows_of(record)
    warning = rows.pop("warning", None)
    for name in ("boundary", "seed", "package"):
        del rows[name]
    rows = {name: rows[name] for name in ("environment", "agent", "guarantee", "users")} | rows
    rows["time"] = f"{seconds:.1f} s"
    for name, value in (("saved", save), ("record, curve, figure", out), ("warning", warning)):
        rows |= {} if value is None else {name: str(value)}
    pairs(rows)


def _adapt(given: dict[str, Any], adapted: dict[str, Any]) -> None:
    """Add the adapters that were typed to the environment or the boundary.

    An environment of another package takes all of them. An environment of this package takes a horizon, and its
    boundary takes a range of rewards.
    """
    said = {key: [list(value)] if isinstance(value, list | tuple) else value for key, value in adapted.items()}
    said = {key: value for key, value in said.items() if value is not None}
    environment = given["environment"]
    if is_foreign(environment["id"]):
        environment |= said
        return
    if "horizon" in said:
        environment["horizon"] = said.pop("horizon")
    if "reward_range" in said:
        given["boundary"]["reward_range"] = said.pop("reward_range")
    for key in said:
        raise GridError(f"--{key} is for observations in a Box: the states of {environment['id']} are counted already.")


def _over(table: dict[str, Any], given: dict[str, Any], context: typer.Context) -> dict[str, Any]:
    """Return the table of a file, with the options that were typed.

    These replace the options of the file.
    """

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

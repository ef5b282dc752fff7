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
        str,
        typer.Option(
            help="Agent: a name from `private-rl-gym list`, or module:object.", autocompletion=AGENTS.complete
        ),
    ] = "DPUCBVI",
    boundary: options.Boundary = "jdp",
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    users: Annotated[int, typer.Option(help="Number of users.")] = 10_000,
    batch_size: Annotated[
        int | None, typer.Option(help="Number of users in a batch; by default that of the boundary, but at least 100.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the run.")] = 0,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Any other option, such as `agent.bonus_scale=0.1` or `environment.horizon=20`. May be repeated.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML file with environment, agent, boundary, users and seeds. --users and --seed override it."
        ),
    ] = None,
    horizon: options.Horizon = None,
    reward_range: options.RewardRange = None,
    bins: options.Bins = None,
    low: options.Low = None,
    high: options.High = None,
    code: options.Code = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the record, the curve and the figure; by default none are written.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="File for the trained agent, a zip archive; by default the agent is not saved.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Train one agent behind one boundary, and print its guarantee and its regret.

    The regret is exact if the true model is known; the agent never uses that model. Otherwise the returns of the
    policies are estimated from episodes of other users. To run several seeds or settings, see
    `private-rl-gym sweep --help`.

    A `module:object` on the command line is imported. One in the --config file is imported only if --import names its
    module.

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
            f"These options name {len(cells)} runs, and train runs one. Write a grid, and run private-rl-gym sweep."
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
        raise GridError(
            f"--{key} is for observations in a Box, and {environment['id']} has Discrete ones. Leave --{key} out."
        )


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
                f"The {part} is given in {context.params['config']} and on the command line. Give it in one of the two."
            )
    return merged

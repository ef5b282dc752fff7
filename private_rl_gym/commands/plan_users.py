"""``private-rl-gym plan`` without ``--users``: how many of them it takes."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from private_rl_gym.commands.screen import progress, screen
from private_rl_gym.experiments.advice import LEARNS
from private_rl_gym.experiments.fewest import LADDER, Fewest, fewest_users
from private_rl_gym.experiments.problems import Problem

__all__ = ["plan_users"]


def plan_users(
    problem: Problem,
    environment: str,
    trust: list[str],
    epsilon: float,
    regret: float | None,
    *,
    seconds: float,
    as_json: bool,
    **options: Any,
) -> None:
    """Print how many users it takes under each trust model, and without privacy."""
    wish, begun = LEARNS if regret is None else regret, ["open", *trust]
    rows: dict[str, Fewest] = {}
    with progress() as bar:
        task = None if bar is None else bar.add_task("without privacy", total=len(begun))
        for number, name in enumerate(begun):
            if bar is not None and task is not None and number:
                bar.update(task, completed=number, description=name)
            promise = epsilon if number else math.inf
            rows[name] = fewest_users(problem, name, promise, wish, seconds=seconds / len(begun), **options)
    if as_json:
        typer.echo(json.dumps(_for_machines(problem, wish, rows), indent=2))
        return
    _print(problem, environment, wish, rows)


def _for_machines(problem: Problem, wish: float, rows: dict[str, Fewest]) -> dict[str, Any]:
    horizon, n_states, n_actions = problem.sizes
    found: dict[str, Any] = {}
    for name, row in rows.items():
        found[name] = {"users": row.users, "enough": row.enough, "note": row.note}
        if row.advice is not None:
            epsilon = row.advice.epsilon
            found[name] |= asdict(row.advice) | {"epsilon": epsilon if math.isfinite(epsilon) else None}
    return {
        "horizon": horizon,
        "states": n_states,
        "actions": n_actions,
        "stand_in": not problem.true,
        "regret_wished": wish,
        "rows": found,
    }


def _print(problem: Problem, environment: str, wish: float, rows: dict[str, Fewest]) -> None:
    horizon, n_states, n_actions = problem.sizes
    more = ", one of them for episodes that ended early" if problem.waiting else ""
    console = screen()
    console.print(
        escape(f"{environment} (S = {n_states}{more}, A = {n_actions}, H = {horizon}): {problem.origin}."),
        highlight=False,
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("trust", no_wrap=True)
    table.add_column("agent", overflow="fold")
    for column in ("epsilon", "users", "share", "last"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, row in rows.items():
        table.add_row("none" if name == "open" else name.upper(), *_cells(row), style=None if row.enough else "red")
    console.print(table)
    for row in rows.values():
        if row.note:
            console.print(escape(row.note), highlight=False)
    open_users = rows["open"].users
    if LADDER[0] < open_users and any(row.users <= open_users and row.enough for row in list(rows.values())[1:]):
        console.print("Without privacy fewer may do: its best learner takes too long to simulate, or chance decided.")
    if not problem.true:
        console.print(
            "A stand-in tells orders of magnitude: where rewards are rare or far, it takes several times as many. "
            "(People who were there already, in a table: add --table and --users.)",
            highlight=False,
        )
    console.print(
        f"users: the fewest, of 1, 2 and 5 times powers of ten up to {LADDER[-1]:,}, who together lose at most a share "
        f"of {wish:g} of what actions at random lose (--regret). share: that share. last: what the policy that was "
        "learned last still loses. For all that a plan says of one number of users, give it with --users.",
        style="dim",
        highlight=False,
    )


def _cells(row: Fewest) -> list[str]:
    if row.advice is None:
        return ["not simulated", "", "not known", "", ""]
    users = f"{row.users:,}" if row.enough else f"over {row.users:,}"
    return [
        row.advice.candidate.label,
        f"{row.advice.epsilon:g}",
        users,
        f"{row.advice.share:.3f}",
        f"{row.advice.last:.3f}",
    ]

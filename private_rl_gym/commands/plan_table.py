"""``private-rl-gym plan --table``: whether a table of people who were there already is enough, and at which epsilon."""

from __future__ import annotations

import json
import math
import shlex
from dataclasses import asdict
from typing import Any

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from private_rl_gym.commands.screen import PLAIN, screen
from private_rl_gym.experiments.names import GridError
from private_rl_gym.experiments.table_advice import EPSILONS, TableAdvice, TableAdviser

__all__ = ["check_alone", "plan_table"]


def plan_table(adviser: TableAdviser, epsilon: float | None, *, as_json: bool) -> None:
    """Print what is learned from stand-ins at each epsilon, and the command to run."""
    asked = EPSILONS if epsilon is None else tuple(sorted({*EPSILONS, epsilon}))
    rows = adviser.rows((*asked, math.inf))
    chosen = _chosen(rows, epsilon)
    if as_json:
        typer.echo(json.dumps(_for_machines(adviser, rows, chosen), indent=2))
        return
    console = screen()
    S, A, H = adviser.n_states, adviser.n_actions, adviser.horizon
    console.print(
        escape(
            f"A table of {adviser.users:,} people (S = {S} and one more for those who left, A = {A}, H = {H}), "
            f"{'stages pooled' if adviser.stationary else 'by stage'}: stand-ins are {adviser.done} random Garnets, "
            "with mean rewards between 0.4 and 0.6, whose people take the best action half of the time, and any else."
        ),
        highlight=False,
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("epsilon", "value", "least", "better", "noise", "visits"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row), style="red" if row.verdict == "hopeless" else None)
    console.print(table)
    for sentence in _answers(adviser, rows, chosen):
        console.print(escape(sentence), highlight=False)
    if chosen is not None:
        console.print(f"  {_command(adviser, chosen)}", **PLAIN)
    console.print(
        "value: of the policy that is learned, between that of the habits (0 %) and the best (100 %); least: in the "
        "worst of the stand-ins; better: where it is better than the habits. noise: its deviation in a count of "
        "visits that the plan is made from; visits: the mean of such a count.",
        style="dim",
        highlight=False,
    )


def _chosen(rows: list[TableAdvice], epsilon: float | None) -> TableAdvice | None:
    """The row of the epsilon that was asked for, or else of the smallest that learns, or learns in part."""
    for verdict in ("learns", "in part"):
        for row in rows:
            if math.isfinite(row.epsilon) and row.verdict == verdict and epsilon in (None, row.epsilon):
                return row
    return None


def _cells(row: TableAdvice) -> list[str]:
    return [
        f"{row.epsilon:g}",
        f"{row.gain:.0%}",
        f"{min(row.gains):.0%}",
        f"{row.better} of {len(row.gains)}",
        f"{row.noise:,.0f}",
        f"{row.visits:,.0f}",
        row.verdict,
    ]


def _answers(adviser: TableAdviser, rows: list[TableAdvice], chosen: TableAdvice | None) -> list[str]:
    """Sentences that answer the question."""
    said = []
    if adviser.done < adviser.runs:
        said.append(f"Time ran out after {adviser.done} of {adviser.runs} stand-ins: try --seconds 300.")
    if adviser.simulated < adviser.users:
        said.append(f"{adviser.simulated:,} people were simulated; from more of them more is learned.")
    said.append(
        "Take it for an upper end: people of stand-ins stay to the last step, and did everything. Where many leave, "
        "some actions were hardly ever taken, or all are worth nearly the same, less is learned."
    )
    if chosen is not None:
        said.append(f"At epsilon = {chosen.epsilon:g}, for your own table:")
    elif rows[-1].verdict == "hopeless":
        said.append("Hopeless without privacy too: take a table of more people, or fewer states, actions or steps.")
    elif all(row.verdict == "hopeless" for row in rows[:-1]):
        said.append("Hopeless: take a table of more people, or fewer states, actions or steps.")
    else:
        said.append("Hopeless at this epsilon: take a larger one, a table of more people, or fewer states.")
    if chosen is None and not adviser.stationary:
        said.append("If all stages are alike, --stationary pools their counts.")
    return said


def _command(adviser: TableAdviser, row: TableAdvice) -> str:
    """The command that learns from the table."""
    sizes = {"states": adviser.n_states, "actions": adviser.n_actions, "horizon": adviser.horizon}
    words = ["private-rl-gym", "learn", "TABLE.parquet", "--epsilon", f"{row.epsilon:g}", "--delta"]
    words += [f"{adviser.delta:g}"]
    for name, size in sizes.items():
        words += [f"--{name}", str(size)]
    return shlex.join([*words, *(["--stationary"] if adviser.stationary else [])])


def _for_machines(adviser: TableAdviser, rows: list[TableAdvice], chosen: TableAdvice | None) -> dict[str, Any]:
    return {
        "horizon": adviser.horizon,
        "states": adviser.n_states,
        "actions": adviser.n_actions,
        "stationary": adviser.stationary,
        "delta": adviser.delta,
        "users": adviser.users,
        "simulated": adviser.simulated,
        "stand_ins": adviser.done,
        "command": None if chosen is None else _command(adviser, chosen),
        "rows": [
            {
                **asdict(row),
                "epsilon": row.epsilon if math.isfinite(row.epsilon) else None,
                "gain": row.gain,
                "better": row.better,
                "verdict": row.verdict,
            }
            for row in rows
        ],
    }


def check_alone(
    given: dict[str, Any], purpose: str = "people who are still to come, and --table for those who were there"
) -> None:
    """Refuse options that are for something else."""
    for name, value in given.items():
        if value not in (None, False) and value != []:
            raise GridError(f"{name} is for {purpose}.")

"""``private-rl-gym budget``: the noise that a guarantee costs."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, fields
from typing import Annotated

import typer
from rich.table import Table

from private_rl_gym.lab.cli.options import Json
from private_rl_gym.lab.cli.screen import finite, screen, sentences, table
from private_rl_gym.lab.planner.budget import Deployment, Row
from private_rl_gym.lab.planner.budget import budget as plan_budget
from private_rl_gym.lab.registry import GridError
from private_rl_gym.planning.features import LinearFeatures
from private_rl_gym.planning.memory import available_memory, in_bytes
from private_rl_gym.privacy.accounting.guarantee import plain_number

__all__ = ["budget"]


@sentences
def budget(
    users: Annotated[int, typer.Option(help="Number of users.")],
    horizon: Annotated[int, typer.Option(help="Number of steps in an episode, H.")],
    states: Annotated[int, typer.Option(help="Number of states, S.")],
    actions: Annotated[int, typer.Option(help="Number of actions, A.")],
    epsilon: Annotated[float, typer.Option(help="Epsilon of the guarantee to each user.")],
    delta: Annotated[float, typer.Option(help="Delta of the guarantee; 0 allows pure mechanisms only.")] = 1e-6,
    batch_size: Annotated[int, typer.Option(help="Number of users in a batch; each batch is one release.")] = 1,
    beta: Annotated[float, typer.Option(help="Probability that the error bound fails.")] = 0.05,
    linear: Annotated[
        bool,
        typer.Option("--linear", help="Use the moments of linear learners, with tabular features, in place of counts."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Print the noise in a count under every trust model and mechanism.

    Use this table to plan a deployment. Compare the noise with the mean number of visits in a count. If the noise is
    larger, pool the steps, make larger batches, or choose a smaller statistic.

    Example: `private-rl-gym budget --users 50000 --horizon 20 --states 6 --actions 2 --epsilon 1`
    """
    try:
        features = LinearFeatures.tabular(states, actions) if linear else None
        plan = Deployment(users, horizon, states, actions, epsilon, delta, batch_size, beta, features)
        rows = list(plan_budget(plan))
    except (ValueError, TypeError, MemoryError) as error:
        raise GridError(str(error)) from None
    if as_json:
        mechanisms = [{**asdict(row), "epsilon": finite(row.epsilon)} for row in rows]
        deployment = {field.name: getattr(plan, field.name) for field in fields(plan) if field.name != "features"}
        deployment |= {"features": linear, "releases": plan.releases, "visits": plan.visits}
        typer.echo(json.dumps({"plan": deployment, "rows": mechanisms}, indent=2))
        return
    console = screen()
    console.print(_table(plan, rows))
    console.print(_memory(rows), style="dim", highlight=False)
    console.print(
        f"{_columns(plan)} bound: the error that no entry of any of {plan.releases:,} releases exceeds, with "
        f"probability {1 - plan.beta:g}. spent: the actual (epsilon, delta); ! marks an epsilon above the given one. "
        "won: how many times as much noise a plain account of the same mechanism would need, which adds up budgets "
        "and norms. The guarantee is for replacing one user, with their whole episode.",
        style="dim",
        highlight=False,
    )


def _columns(plan: Deployment) -> str:
    """Return the meaning of the columns of noise, and a number for comparison."""
    if plan.features is None:
        return (
            "n, m, r: standard deviation of the noise in a count of visits n(h,s,a), of transitions m(h,s,a,s') and "
            "of rewards r(h,s,a), after all users. Compare it with the mean number of visits of a (stage, state, "
            f"action): {plan.visits:,.0f} of {plan.users:,} users."
        )
    return (
        "gram, phi V, r: standard deviation of the noise in an entry of the Gram matrix of phi, of the vector phi "
        "V(s') and of the vector of rewards, after all users, at the stage where it is largest. Compare it with "
        f"{plan.users:,} users, each of whom adds phi phi^T; V is at most {plan.horizon - 1}."
    )


def _table(plan: Deployment, rows: list[Row]) -> Table:
    title = f"What epsilon = {plan.epsilon:g}, delta = {plan.delta:g} costs"
    noisy = [">n", ">m", ">r"] if plan.features is None else [">gram", ">phi V", ">r"]
    columns = ["trust", "~mechanism", ">spent", *noisy, ">bound", ">won"]
    shown = table(columns, title=title, title_justify="left")
    shown.columns[1].min_width = 21
    most = 1e7 if plan.features is None else 1e4  # moments are large, and hardly anyone counts their digits
    for row in rows:
        over = math.isfinite(row.epsilon) and row.epsilon > plan.epsilon * (1 + 1e-9)
        spent = f"({_rounded_up(row.epsilon)}, {plain_number(row.delta)})" if math.isfinite(row.epsilon) else "inf"
        numbers = (row.visits_std, row.transitions_std, row.rewards_std, row.bound)
        noise = [f"{number:,.0f}" if number < most else f"{number:.1e}".replace("e+0", "e") for number in numbers]
        won = "" if row.won is None else f"{row.won:.2f}"
        shown.add_row(
            row.model, row.mechanism, spent + (" !" if over else ""), *noise, won, style="red" if over else None
        )
    return shown


def _memory(rows: list[Row]) -> str:
    """Return a sentence about the memory of boundaries and of this machine."""
    least, most = (pick(rows, key=lambda row: row.memory) for pick in (min, max))
    there = available_memory()
    here = "" if there is None else f" This machine has {in_bytes(there)}: what would take more is refused."
    smallest, largest = (f"{in_bytes(row.memory)} ({row.mechanism})" for row in (least, most))
    return f"memory: from {smallest} to {largest} for sums, noise and a release; learners take some of it again.{here}"


def _rounded_up(epsilon: float) -> str:
    """Return the number as text with three digits, rounded up if necessary."""
    text = plain_number(epsilon)
    if len(text) <= 8:
        return text
    unit = 10.0 ** (math.floor(math.log10(epsilon)) - 2)
    return f"{math.ceil(epsilon / unit) * unit:.3g}"

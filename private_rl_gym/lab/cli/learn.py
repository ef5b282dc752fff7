"""``learn``: a policy from a table of users whose episodes are over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from private_rl_gym.lab.cli.options import Boundary, Delta, Epsilon, RewardRange, budget_of
from private_rl_gym.lab.cli.screen import sentences
from private_rl_gym.lab.registry import BOUNDARIES, ENVIRONMENTS, GridError
from private_rl_gym.lab.tables.files import read_table_file
from private_rl_gym.lab.tables.labels import Labels
from private_rl_gym.lab.tables.ledgers import refuse_to_overwrite
from private_rl_gym.lab.tables.ledgers import spent as spent_in
from private_rl_gym.lab.tables.offline import learn_from_table, write, write_bad_rows
from private_rl_gym.wrappers.sources import TableReport

__all__ = ["learn", "spent"]


@sentences
def learn(
    table: Annotated[Path, typer.Argument(help="Parquet or CSV file with one row for each step of each user.")],
    horizon: Annotated[int, typer.Option(help="Largest number of steps in an episode, H. Longer episodes are cut.")],
    states: Annotated[int | None, typer.Option(help="Number of states, S, if the table numbers them from 0.")] = None,
    actions: Annotated[int | None, typer.Option(help="Number of actions, A, if the table numbers them from 0.")] = None,
    state_names: Annotated[
        str | None, typer.Option(help="Public names of the states, such as `mild,severe`. Replaces --states.")
    ] = None,
    action_names: Annotated[
        str | None, typer.Option(help="Public names of the actions, such as `watch,treat`. Replaces --actions.")
    ] = None,
    boundary: Boundary = "jdp",
    epsilon: Epsilon = None,
    delta: Delta = None,
    users: Annotated[
        int | None,
        typer.Option(help="Number of users that noise is calibrated for; by default the number in the table."),
    ] = None,
    reward_range: RewardRange = None,
    stationary: Annotated[
        bool,
        typer.Option("--stationary", help="The model is the same at every stage (time-homogeneous): pool the counts."),
    ] = False,
    column: Annotated[
        list[str] | None, typer.Option(help="Name of a column in the table, such as `user=patient`. May be repeated.")
    ] = None,
    separator: Annotated[
        str | None, typer.Option(help="Separator of a CSV file, one character; by default it is detected.")
    ] = None,
    bad_rows: Annotated[
        str,
        typer.Option(
            help="Treatment of bad rows: `refuse` the table, or `empty` their users, who then count and earn 0."
        ),
    ] = "refuse",
    most_emptied: Annotated[
        float,
        typer.Option(help="Largest share of users that `--bad-rows empty` may empty. Above it, the table is refused."),
    ] = 0.05,
    bad_rows_to: Annotated[
        Path | None,
        typer.Option(help="File for the numbers of bad rows and the reasons. Keep it secret: it has no guarantee."),
    ] = None,
    truth: Annotated[
        str | None,
        typer.Option(help="Environment that synthetic data come from. The true values of policies are then printed."),
    ] = None,
    secure: Annotated[
        bool, typer.Option("--secure", help="Draw noise from a cryptographic generator. Requires the extra `secure`.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the policy, the ledger and the report.")] = Path("learned"),
) -> None:
    """Learn a policy from a table, and write it with its ledger and report.

    The table has the columns user, stage, state, action, reward and next_state. Stages are numbered from 0. An empty
    next_state means that the user left after this row. In the row of the last stage (11 with --horizon 12), next_state
    may be empty, and has no effect on the policy.

    The numbers of states, actions and stages are published. Give them from public knowledge, not from the table.

    Findings about the rows are printed on stderr, for the owner of the table only. All other output is computed from
    the noisy release.

    Example: `private-rl-gym learn cohort.parquet --epsilon 2 --states 7 --actions 4 --horizon 12 --stationary`
    """
    board = BOUNDARIES.find(boundary, "--boundary", code=None)
    options: dict[str, Any] = budget_of(board, epsilon, delta)
    if reward_range is not None:
        options["reward_range"] = reward_range
    if secure and board.takes("secure"):
        options["secure"] = True
    names = dict(_named(setting) for setting in column or [])
    labels = Labels.of(state_names, action_names)
    sizes = (
        horizon,
        _how_many(states, labels.states, "--states", "--state-names"),
        _how_many(actions, labels.actions, "--actions", "--action-names"),
    )
    model = None
    if truth is not None:
        model = ENVIRONMENTS.find(truth, "--truth").model(horizon=horizon)
    if out.is_file():
        raise GridError(f"--out {out} is a file: the policy, the ledger and the report go into a folder.")
    refuse_to_overwrite(out)
    if bad_rows_to is not None and out.resolve() in bad_rows_to.resolve().parents:
        raise GridError(
            f"--bad-rows-to {bad_rows_to} lies in {out}, whose files may be published. Give a file outside that folder."
        )

    def tell(findings: TableReport) -> None:
        for sentence in findings.sentences(emptied=bad_rows == "empty"):
            typer.echo(f"For the owner of the table alone: {sentence}", err=True)
        if bad_rows_to is not None:
            write_bad_rows(findings, bad_rows_to)

    learned = learn_from_table(
        read_table_file(table, separator, names),
        sizes,
        board,
        options,
        users=users,
        columns=names,
        bad_rows=bad_rows,
        most_emptied=most_emptied,
        stationary=stationary,
        truth=model,
        labels=labels,
        owner=tell,
    )
    paths = write(replace(learned, about={"table": table.name, **learned.about}), out)
    returns = learned.returns
    typer.echo(f"{learned.board.ledger}")
    for doubt in learned.doubts:
        typer.echo(f"Warning: {doubt}")
    typer.echo(f"The mean return of the users in the table is {returns.logged}.")
    typer.echo(f"The mean return of the policy is {returns.policy}.")
    typer.echo(f"The policy is better by {returns.gain}.")
    typer.echo("The intervals are for the true problem: they include the privacy noise and the sampling of users.")
    if learned.truth is not None:
        true = learned.true_values
        typer.echo(f"The policy, by the true model: {true['policy']:.3f}; the best: {true['best']:.3f}.")
    for name, path in zip(("policy", "policy as a table", "ledger", "report"), paths, strict=True):
        typer.echo(f"The {name}: {path}")


@sentences
def spent(
    folders: Annotated[list[Path], typer.Argument(help="Folders that `private-rl-gym learn` wrote.")],
    delta: Annotated[
        float | None, typer.Option(help="Delta of the total guarantee; by default the sum of the deltas of the runs.")
    ] = None,
) -> None:
    """Add up the ledgers of several runs.

    The result is the cost of all these runs to a user who is in every table.

    Example: `private-rl-gym spent learned-in-may learned-in-june`
    """
    runs, total = spent_in(folders, delta)
    for name, guarantee in runs:
        typer.echo(f"{name}: {guarantee}")
    typer.echo(f"Together: {total}")


def _how_many(number: int | None, names: tuple[str, ...], option: str, named: str) -> int:
    if number is None and not names:
        raise GridError(f"Give {option} or {named}. They are published, so that they are not read from the table.")
    if number is not None and names and number != len(names):
        raise GridError(f"{option} is {number}, and {named} has {len(names)} names. Give one of the two options.")
    return len(names) if number is None else number


def _named(setting: str) -> tuple[str, str]:
    name, equals, own = setting.partition("=")
    if not equals:
        raise GridError(f"--column {setting!r}: write it as NAME=OWN, such as user=patient.")
    return name.strip(), own.strip()

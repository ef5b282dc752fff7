"""From a table of finished episodes to a policy with its ledger, in one call."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from private_rl_gym.agents.dp_ucbvi import DPUCBVI
from private_rl_gym.envs.finite import FiniteModel
from private_rl_gym.envs.logged import LoggedUsers
from private_rl_gym.experiments import register
from private_rl_gym.experiments.evidence import Choice, Evidence
from private_rl_gym.experiments.labels import Labels
from private_rl_gym.experiments.names import GridError, Named
from private_rl_gym.experiments.tables import check_columns, read_csv, separator_of
from private_rl_gym.experiments.worth import Worth, doubts, worth_of
from private_rl_gym.planning.policy import Policy
from private_rl_gym.privacy.release import Release
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.episodes import COLUMNS, BadRowsError, ids_of
from private_rl_gym.wrappers.findings import Findings

__all__ = ["Learned", "learn_from_table", "read_table_file", "write", "write_bad_rows"]


@dataclass(frozen=True, eq=False)  # no slots: cached_property keeps its value in __dict__
class Learned:
    """A policy that was learned from a table, with the boundary that its guarantee is of.

    Attributes:
        agent: The agent with its policy.
        board: The boundary that took the table in.
        stationary: Whether stages were pooled.
        truth: The true model, where the data are synthetic; the learner never saw it.
        about: What was asked for, for the ledger.
        labels: The names of states and actions.
    """

    agent: DPUCBVI
    board: Boundary
    stationary: bool
    truth: FiniteModel | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    labels: Labels = field(default_factory=Labels)

    @property
    def numbers(self) -> dict[str, float]:
        """Mean returns, in the units of the table: of the logged users and of the policy, from the release alone."""
        worth = self.worth
        found = {
            "logged": worth.logged,
            "logged_error": worth.logged_error,
            "policy": worth.policy,
            "policy_error": worth.policy_error,
            "flattery": worth.flattery,
        }
        if self.truth is not None:
            found["true"] = self.truth.value_of(self._for_truth())
            found["best"] = self.truth.optimal_value()
        return found

    @cached_property
    def worth(self) -> Worth:
        """The worth of the policy and of the users' own choices, with their errors."""
        twin = DPUCBVI("TabularPolicy", self.board, seed=0)  # plans, where the agent keeps what it planned

        def plan(release: Release) -> Policy:
            return twin.plan_offline(release.with_certain_rows(), stationary=self.stationary)

        rewards = self.board.population.rewards
        return worth_of(self.board.release, self.agent.policy, plan, rewards, stationary=self.stationary)

    @property
    def doubts(self) -> list[str]:
        """The reasons why the policy should not be trusted, from the release and public numbers alone."""
        return doubts(self.worth, self.evidence, self.agent.q[:, :-1], self.board.population.rewards)

    @property
    def evidence(self) -> Evidence:
        """The counts that the policy was planned from."""
        return Evidence.of(self.board.release, stationary=self.stationary)

    def choices(self) -> list[list[Choice]]:
        """``[h][s]``, the policy's actions with what speaks for them, margins in the units of the table."""
        evidence, rewards = self.evidence, self.board.population.rewards
        q = self.agent.q[:, :-1]  # without the state where ended episodes wait
        found = [[evidence.choice(q, h, s) for s in range(q.shape[1])] for h in range(len(q))]
        width = rewards.high - rewards.low
        return [[replace(choice, margin=choice.margin * width) for choice in stage] for stage in found]

    def _for_truth(self) -> Policy:
        """The policy for the states of the true model, which may be without the state where ended episodes wait."""
        assert self.truth is not None  # noqa: S101 - its caller has looked
        table = self.agent.policy.table[:, : self.truth.n_states]
        return self.truth.policy(table)


def read_table_file(path: Path, separator: str | None = None, columns: Mapping[str, str] | None = None) -> Any:
    """The Arrow table in a Parquet or CSV file.

    Args:
        path: The file.
        separator: The character between the cells of a CSV file; by default the one that its first line has most of.
        columns: The table's own names of columns, of which those that hold numbers may have decimal commas.
    """
    if not path.is_file():
        raise GridError(f"There is no file {path}.")
    if separator is not None and (len(separator) != 1 or not separator.isascii()):
        raise GridError(f"--separator {separator!r}: it is one character, such as ';'.")
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet

            return pyarrow.parquet.read_table(path)
        if path.suffix == ".csv":
            return read_csv(
                path, separator or separator_of(path), [(columns or {}).get(name, name) for name in COLUMNS]
            )
    except Exception as error:  # noqa: BLE001 - a file may be anything, and messages show rows
        hint = (
            " A CSV file is text in UTF-8 with a row of names, and as many cells in each row."
            if path.suffix == ".csv"
            else ""
        )
        raise GridError(f"{path} cannot be read as a table ({type(error).__name__}).{hint}") from None
    raise GridError(f"{path} is no table that is known here: give a .parquet or a .csv file.")


def learn_from_table(
    table: Any,
    sizes: tuple[int, int, int],
    boundary: Named,
    options: Mapping[str, Any],
    *,
    users: int | None = None,
    columns: Mapping[str, str] | None = None,
    bad_rows: Any = "refuse",
    stationary: bool = False,
    truth: FiniteModel | None = None,
    labels: Labels | None = None,
    owner: Callable[[Findings], None] | None = None,
) -> Learned:
    """Put a boundary around a table, publish once, and plan with pessimism.

    Args:
        table: An Arrow table with a row for each step.
        sizes: Horizon, states and actions, as they are publicly known.
        boundary: The boundary.
        options: Its options.
        users: The number of users that the boundary is built for; by default the number in the table, which is public
            where one user is replaced by another.
        columns: The table's own names of columns.
        bad_rows: As in ``ingest``.
        stationary: Whether stages may be pooled.
        truth: The true model, where the data are synthetic.
        labels: The names of states and actions that the table uses, in the order of their numbers.
        owner: As in ``ingest``: it is told what was found in the rows.
    """
    labels = labels or Labels()
    table = labels.numbered(table, columns)
    horizon, n_states, n_actions = sizes
    if truth is not None:
        theirs = truth.horizon, truth.n_states, truth.n_actions
        if theirs not in ((horizon, n_states, n_actions), (horizon, n_states + 1, n_actions)):
            raise GridError(
                f"The true model has H={theirs[0]}, S={theirs[1]}, A={theirs[2]}, and the table is said to have "
                f"H={horizon}, S={n_states}, A={n_actions}, and a state for those who left: name another model."
            )
    check_columns(table, columns or {})
    if users is None:
        name = (columns or {}).get("user", "user")
        users = len(ids_of(table.column(name)).drop_null().unique())
    if not users:
        raise GridError("There is nobody in this table.")
    if boundary.takes("counting"):  # one batch, which may be smaller than was said; noise is the same
        options = {"counting": "batched", **options}
    try:
        board: Boundary = boundary.kind(
            LoggedUsers(n_states, n_actions, horizon), users=users, batch_size=users, **options
        )
        board.ingest(table, columns=columns, bad_rows=bad_rows, owner=owner)
    except (BadRowsError, TypeError, ValueError, RuntimeError) as error:
        raise GridError(str(error)) from None
    board.publish()  # those of a table that is smaller than was said
    agent = DPUCBVI("TabularPolicy", board, seed=0).learn_offline(stationary=stationary)
    about = {
        "boundary": boundary.kind.__name__,
        "options": dict(options),
        "stages, states, actions": list(sizes),
        "stages pooled": stationary,
        "bad rows": bad_rows,
    }
    if labels.states or labels.actions:
        about |= {"states": list(labels.states), "actions": list(labels.actions)}
    return Learned(agent, board, stationary, truth, about, labels)


def write_bad_rows(findings: Findings, path: Path) -> None:
    """Write the numbers of bad rows and the reasons, for the owner of the table: a file that no guarantee covers."""
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["row", "reason"])  # row 1 is the first below the names of the columns
        lines.writerows(findings.reasons())


def write(learned: Learned, folder: Path) -> list[Path]:
    """Write the policy (for machines and for readers), the ledger and the report. Everything is from the release."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in ("policy.zip", "policy.csv", register.LEDGER, "report.md")]
    learned.agent.save(paths[0])
    with paths[1].open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["stage", "state", "action", "visits", "margin", "usual"])  # docs/howto/patients.md says what
        for h, stage in enumerate(learned.choices()):
            lines.writerows(
                (h, learned.labels.state(s), *_cells(choice, learned.labels)) for s, choice in enumerate(stage)
            )
    paths[2].write_text(json.dumps(register.entry(learned.board, learned.about), indent=2) + "\n")
    paths[3].write_text(report(learned))
    return paths


def _cells(choice: Choice, labels: Labels) -> list[str]:
    """A choice as cells of a table, empty where nothing is known."""
    return [
        "" if choice.action is None else labels.action(choice.action),
        f"{choice.visits:.0f}",
        "" if choice.action is None else f"{choice.margin:.3f}",
        "" if choice.usual is None else labels.action(choice.usual),
    ]


def report(learned: Learned) -> str:
    """The report: what was promised, what was learned, what it is worth."""
    board, numbers = learned.board, learned.numbers
    release = board.release
    horizon, states, actions = board.sizes
    evidence = learned.evidence
    counted = "a state and action, all stages together" if learned.stationary else "a stage, state and action"
    rows = [
        ("users", f"{release.users:,}"),
        ("stages, states, actions", f"{horizon}, {states - 1}, {actions}"),
        ("stages pooled", "yes" if learned.stationary else "no"),
        (f"visits of {counted}, were they spread evenly", f"{evidence.spread(states - 1, actions):,.1f}"),
        ("noise in such a count", f"{evidence.noise:,.1f}"),
        (
            "mean return of the users in the table",
            f"{numbers['logged']:.3f}, give or take {numbers['logged_error']:.3f}",
        ),
        (
            "of the policy, by the noisy model",
            f"{numbers['policy']:.3f}, give or take {numbers['policy_error']:.3f}",
        ),
        ("by which that flatters the policy, or more", f"{max(numbers['flattery'], 0.0):.3f}"),
        ("possible returns", f"{learned.worth.least:g} to {learned.worth.largest:g}"),
    ]
    if "true" in numbers:
        rows += [
            ("of the policy, by the true model", f"{numbers['true']:.3f}"),
            ("of the best policy, by the true model", f"{numbers['best']:.3f}"),
        ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    labels = learned.labels
    cells_of = [[cell or "not known" for cell in _cells(choice, labels)] for choice in learned.choices()[0]]
    first = "\n".join(f"| {labels.state(state)} | {' | '.join(cells)} |" for state, cells in enumerate(cells_of))
    warned = "".join(f"> **Warning.** {doubt}\n\n" for doubt in learned.doubts)
    synthetic = ", except for the lines on the true model, which is known because the data are synthetic"
    return (
        f"# A policy learned from {release.users:,} users\n\n{warned}"
        f"**Guarantee.** {board.ledger}\n\n{register.in_words(board)}\n\n"
        f"Mechanism: {board.ledger.outside.mechanism}.\n\n"
        "Everything in this report and beside it was computed from what this guarantee covers"
        f"{synthetic if learned.truth else ''}. Another run on the same people, with other options too, costs as much "
        "again: the epsilons, and the deltas, of all runs of which anything is shown add up.\n\n"
        f"| | |\n|---|---|\n{table}\n\n"
        "*Give or take* is one standard deviation, of the noise and of the chance of who came. It does not hold that "
        "the value by the noisy model flatters the policy, which was chosen by the same numbers: the row beneath "
        "estimates by how much, and the truth may be twice that. Try a policy with few users before many depend on "
        "it.\n\n"
        "## The policy at the first stage\n\n"
        f"| state | action | visits | margin | usual |\n|---|---|---|---|---|\n{first}\n\n"
        "*Visits* are the noisy visits that the action rests on (of the state, where no action is known to be worth "
        f"anything); their noise is {learned.evidence.noise:,.1f}. *Margin* is by how much of the value it is ahead of "
        "the second best. *Usual* is the action that the users took most often there, where noise does not hide it.\n\n"
        "All stages are in policy.csv. In Python, `from private_rl_gym.agents import DPUCBVI` and "
        '`DPUCBVI.load("policy.zip").policy.action(stage, state)`, with numbers; a policy that is run must act, and '
        "takes action 0 where nothing is known.\n"
    )

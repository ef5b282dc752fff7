"""From a table of finished episodes to a policy with its ledger, in one call."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from private_rl_gym.agents.offline.pessimism import OfflinePlan
from private_rl_gym.agents.tabular.dp_ucbvi import DPUCBVI
from private_rl_gym.envs.finite import FiniteModel
from private_rl_gym.envs.logged import LoggedUsers
from private_rl_gym.lab.registry import BoundaryEntry, GridError
from private_rl_gym.lab.tables import ledgers
from private_rl_gym.lab.tables.evidence import COVERED, RIGHT, Evidence, PolicyEntry
from private_rl_gym.lab.tables.files import check_columns
from private_rl_gym.lab.tables.labels import Labels
from private_rl_gym.lab.tables.returns import ReturnEstimates, doubts, returns_of
from private_rl_gym.privacy.release import Release
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.sources import BadRowsError, TableReport, ids_of

__all__ = ["OfflinePolicy", "learn_from_table", "write", "write_bad_rows"]


@dataclass(frozen=True, eq=False)  # no slots: cached_property keeps its value in __dict__
class OfflinePolicy:
    """A policy from a table, with the boundary that has its guarantee.

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
    def true_values(self) -> dict[str, float]:
        """The true values of the policy and of the best policy.

        The dictionary is empty if the truth is not known.
        """
        if self.truth is None:
            return {}
        table = self.agent.policy.table[:, : self.truth.n_states]  # it may have no state where ended episodes wait
        return {"policy": self.truth.value_of(self.truth.policy(table)), "best": self.truth.optimal_value()}

    def _plan(self, release: Release) -> OfflinePlan:
        """Return the plan that is made from a release."""
        twin = DPUCBVI("TabularPolicy", self.board, seed=0)  # plans, where the agent keeps what it planned
        return twin.plan_offline(release, stationary=self.stationary)

    @cached_property
    def found(self) -> OfflinePlan:
        """The plan of the policy."""
        return self._plan(self.board.release.with_certain_rows())

    @cached_property
    def returns(self) -> ReturnEstimates:
        """Mean returns of the policy and of the users, with their intervals."""
        rewards = self.board.source.rewards
        return returns_of(self.board.release, self.found, self._plan, rewards, stationary=self.stationary)

    @property
    def doubts(self) -> list[str]:
        """The reasons to doubt the policy, from the release and public numbers alone."""
        return doubts(self.returns, self.evidence, self.found, self.board.source.rewards)

    @property
    def evidence(self) -> Evidence:
        """The counts that the policy was planned from."""
        return Evidence.of(self.board.release, stationary=self.stationary)

    def entries(self) -> list[list[PolicyEntry]]:
        """Return the policy's actions with the counts behind them, as ``[h][s]``."""
        evidence, found = self.evidence, self.found
        horizon, n_states = found.reasons.shape  # the last state is the one where ended episodes wait
        return [[evidence.entry(found, h, s) for s in range(n_states - 1)] for h in range(horizon)]


def learn_from_table(
    table: Any,
    sizes: tuple[int, int, int],
    boundary: BoundaryEntry,
    options: Mapping[str, Any],
    *,
    users: int | None = None,
    columns: Mapping[str, str] | None = None,
    bad_rows: Any = "refuse",
    most_emptied: float = 0.05,
    stationary: bool = False,
    truth: FiniteModel | None = None,
    labels: Labels | None = None,
    owner: Callable[[TableReport], None] | None = None,
) -> OfflinePolicy:
    """Return a policy that is learned from a table.

    A boundary is put around the table and publishes once. Planning is pessimistic.

    Args:
        table: An Arrow table with a row for each step.
        sizes: Horizon, states and actions, as they are publicly known.
        boundary: The boundary.
        options: Its options.
        users: The number of users that the boundary is built for; by default the number in the table, which is public
            where one user is replaced by another.
        columns: The table's own names of columns.
        bad_rows: As in ``ingest``.
        most_emptied: As in ``ingest``.
        stationary: Whether stages may be pooled.
        truth: The true model, where the data are synthetic.
        labels: The names of states and actions that the table uses, in the order of their numbers.
        owner: As in ``ingest``: it gets what was found in the rows.
    """
    labels = labels or Labels()
    table = labels.numbered(table, columns)
    horizon, n_states, n_actions = sizes
    if truth is not None:
        theirs = truth.horizon, truth.n_states, truth.n_actions
        if theirs not in ((horizon, n_states, n_actions), (horizon, n_states + 1, n_actions)):
            raise GridError(
                f"The true model has H={theirs[0]}, S={theirs[1]}, A={theirs[2]}. The table has H={horizon}, "
                f"S={n_states}, A={n_actions}, and one more state for users who left. Give another model."
            )
    check_columns(table, columns or {})
    if users is None:
        name = (columns or {}).get("user", "user")
        users = len(ids_of(table.column(name))[0])
    if not users:
        raise GridError("The table has no users.")
    if boundary.takes("counting"):  # one batch, which may be smaller than was said; noise is the same
        options = {"counting": "batched", **options}
    try:
        board: Boundary = boundary.build(
            LoggedUsers(n_states, n_actions, horizon), users=users, batch_size=users, **options
        )
        board.ingest(table, columns=columns, bad_rows=bad_rows, most_emptied=most_emptied, owner=owner)
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
    return OfflinePolicy(agent, board, stationary, truth, about, labels)


def write_bad_rows(findings: TableReport, path: Path) -> None:
    """Write the numbers of bad rows and the reasons to a file.

    The file is for the owner of the table. No guarantee covers it.
    """
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["row", "reason"])  # row 1 is the first below the names of the columns
        lines.writerows(findings.reasons())


def write(learned: OfflinePolicy, folder: Path) -> list[Path]:
    """Write the ledger, then the policy and the report, and return their paths.

    The policy is written for machines and for readers. All are from the release.
    """
    ledger = ledgers.write(learned.board, learned.about, folder)
    paths = [folder / "policy.zip", folder / "policy.csv", ledger, folder / "report.md"]
    learned.agent.save(paths[0])
    with paths[1].open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["stage", "state", "action", "usual", "visits_low", "visits_high"])  # docs/howto/patients.md
        for h, stage in enumerate(learned.entries()):
            for s, one in enumerate(stage):
                lines.writerow((h, learned.labels.state(s), *one.actions(learned.labels), one.low, one.high))
    paths[3].write_text(report(learned))
    return paths


def report(learned: OfflinePolicy) -> str:
    """Return the report: the guarantee, the policy, and its value."""
    board, returns = learned.board, learned.returns
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
        ("mean return of what the users did", str(returns.logged)),
        ("mean return of the policy", str(returns.policy)),
        ("by how much the policy is better", str(returns.gain)),
        ("possible returns", f"{returns.least:g} to {returns.largest:g}"),
    ]
    if learned.truth is not None:
        rows += [
            ("of the policy, by the true model", f"{learned.true_values['policy']:.3f}"),
            ("of the best policy, by the true model", f"{learned.true_values['best']:.3f}"),
        ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    labels = learned.labels
    first = "\n".join(
        f"| {labels.state(state)} | {' | '.join(one.actions(labels, 'as usual', 'not known'))} | {one.low:,} to "
        f"{one.high:,} |"
        for state, one in enumerate(learned.entries()[0])
    )
    warned = "".join(f"> **Warning.** {doubt}\n\n" for doubt in learned.doubts)
    synthetic = ", except for the lines on the true model, which is known because the data are synthetic"
    most_usual = labels.action(int(evidence.sums.taken.argmax()))
    return (
        f"# A policy learned from {release.users:,} users\n\n{warned}"
        f"**Guarantee.** {board.ledger}\n\n{ledgers.in_words(board)}\n\n"
        f"Mechanism: {board.ledger.outside.mechanism}.\n\n"
        "Everything in this report and beside it was computed from what this guarantee covers"
        f"{synthetic if learned.truth else ''}. Another run on the same users, with other options too, costs as much "
        "again: the epsilons, and the deltas, of all runs of which anything is shown add up.\n\n"
        f"| | |\n|---|---|\n{table}\n\n"
        f"An *interval* covers the truth in {COVERED:.0%} of tables. It is about the true problem behind the table. It "
        "holds the noise and the chance of which users came. The policy was chosen by the same counts, which flatter "
        f"it: {max(returns.flattery, 0.0):.3f} was taken off for that. Where nothing is known, the interval counts the "
        "least and the largest reward. It does not hold what is not in the table, such as reasons for an action that "
        "no state shows. Try a policy with few users before many depend on it.\n\n"
        "## The policy at the first stage\n\n"
        f"| state | action | usual | visits |\n|---|---|---|---|\n{first}\n\n"
        "*Action* is the action that the policy recommends. It is 'as usual' where none is known to be good. *Usual* "
        f"is the action that the users took most often, with probability {RIGHT:.0%}. It is 'not known' where noise "
        "may hide it. "
        f"*Visits* is the {COVERED:.0%} interval of the visits of the state"
        f"{', at all stages together' if learned.stationary else ', at this stage'}.\n\n"
        "All stages are in policy.csv. In Python, `from private_rl_gym.agents import DPUCBVI`, `agent = "
        'DPUCBVI.load("policy.zip")` and `agent.predict(state, (np.array([stage]),))`, with numbers. '
        "`agent.knows(state, (np.array([stage]),))` tells whether the policy recommends its action. Where it is false, "
        "go on as usual: `predict` then takes actions as often as the users took them there. Where noise hides that, "
        f"too, it takes the action that users took most often in all places, {most_usual}.\n"
    )

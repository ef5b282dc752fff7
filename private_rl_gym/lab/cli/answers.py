"""The answers of ``private-rl-gym plan``, for readers and as JSON.

* ``Page`` - what is printed for a question of any kind
* ``of_plan`` - the best candidates for a number of users
* ``of_users`` - the numbers of users that it takes
* ``of_table`` - what is learned from a table
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import typer
from rich.markup import escape

from private_rl_gym.lab.cli.screen import PLAIN, finite, screen, table
from private_rl_gym.lab.foreign import GRADIENTS
from private_rl_gym.lab.planner.advice import Advice, Recommendation, TableAdvice
from private_rl_gym.lab.planner.adviser import EPSILONS, LADDER, Adviser
from private_rl_gym.lab.planner.candidates import TRUST
from private_rl_gym.lab.planner.problems import Problem
from private_rl_gym.planning.memory import in_bytes

__all__ = ["Page", "of_plan", "of_table", "of_users"]


@dataclass(frozen=True)
class Page:
    """The answer to a question.

    Attributes:
        head: The problem, and what was simulated in its place.
        columns: The columns of a table, as ``screen.table`` takes them.
        rows: Its rows, each with a flag that marks what is hopeless.
        sentences: The answer in words.
        commands: Commands that follow from it, with lines about them.
        legend: The meaning of the columns.
        content: The answer as JSON.
    """

    head: str
    columns: Sequence[str]
    rows: Sequence[tuple[Sequence[str], bool]]
    sentences: Sequence[str]
    commands: Sequence[str]
    legend: str
    content: Mapping[str, Any]

    def show(self, *, as_json: bool) -> None:
        """Print the answer."""
        if as_json:
            typer.echo(json.dumps(finite(self.content), indent=2))
            return
        console = screen()
        console.print(escape(self.head), highlight=False)
        shown = table(self.columns)
        for cells, hopeless in self.rows:
            shown.add_row(*cells, style="red" if hopeless else None)
        console.print(shown)
        for sentence in self.sentences:
            console.print(escape(sentence), highlight=False)
        for line in self.commands:
            console.print(line, **PLAIN)
        console.print(self.legend, style="dim", highlight=False)


def of_plan(adviser: Adviser, environment: str, regret: float | None, rows: Mapping[str, Recommendation]) -> Page:
    """Return the best candidate of each trust model, and without privacy (``none``).

    Args:
        adviser: The adviser, with its problem.
        environment: The name of the environment.
        regret: The share of regret that was asked for, or None.
        rows: The answers.
    """
    problem, (low, high) = adviser.problem, adviser.problem.rewards
    commands = []
    for name, answer in rows.items():
        advice = answer.advice
        if advice is not None and name != "none" and advice.verdict not in ("hopeless", "not known"):
            commands += [f"{_short(name)}, {_batches(advice)}:", f"  {_train(problem, advice, adviser.users)}"]
    legend = (
        f"regret: of all users together, in rewards from {low:g} to {high:g}; random actions have a regret of "
        f"{adviser.lost:,.0f}. share: the regret as a share of that of random actions; worst: the share in the worst "
        "run. last: the share of the last policy alone. noise: the standard deviation of the noise in a count of "
        "visits, after all users; visits: the mean of such a count. Regret has heavy tails: another run may have "
        "three times as much. SDP and LDP are simulated by this package, to show what they would cost; real people "
        "take part under JDP."
    )
    content = _sizes(problem) | {
        "users": adviser.users,
        "simulated": adviser.simulated,
        "regret_wished": regret,
        "regret_of_never_learning": adviser.lost,
        "notes": [note for answer in rows.values() for note in answer.notes],
        "rows": {name: _content(answer.advice) | {"verdict": answer.verdict} for name, answer in rows.items()},
    }
    return Page(
        _head(problem, environment),
        ["trust", "~agent", ">epsilon", ">regret", ">share", ">worst", ">last", ">noise", ">visits", "verdict"],
        [
            ([_short(name), *_cells(answer)], answer.advice is not None and answer.verdict == "hopeless")
            for name, answer in rows.items()
        ],
        _sentences(adviser, regret, rows),
        commands,
        legend,
        content,
    )


def _cells(answer: Recommendation) -> list[str]:
    advice = answer.advice
    if advice is None:
        return ["not simulated", *[""] * 7, answer.verdict]
    shares = (f"{share:.3f}" for share in (advice.share, advice.worst, advice.last))
    noise = f"{advice.noise:,.0f}", f"{advice.visits:,.0f}"
    return [advice.candidate.label, f"{advice.epsilon:g}", f"{advice.regret:,.0f}", *shares, *noise, answer.verdict]


def _sentences(adviser: Adviser, regret: float | None, rows: Mapping[str, Recommendation]) -> list[str]:
    """Return the answer for a number of users, as sentences."""
    said = [note for answer in rows.values() for note in answer.notes]
    if adviser.simulated < adviser.users:
        said.append(f"{adviser.simulated:,} users were simulated; the share is smaller with more users.")
    reference = rows["none"].advice
    if regret is not None and reference is not None and reference.share > regret:
        said.append(
            f"A share of {regret:g} is hopeless for {adviser.users:,} users: without privacy it is "
            f"{reference.share:.3f} already."
        )
    private = {name: answer for name, answer in rows.items() if name != "none"}
    short = [name.upper() for name, answer in private.items() if answer.advice is not None and answer.advice.short]
    if short:
        said.append(f"{', '.join(short)}: a share of {regret:g} is not reached even at epsilon = {EPSILONS[-1]:g}.")
    elif all(answer.verdict == "hopeless" for answer in private.values()):
        said.append("Hopeless under every trust model: use more users, fewer states, or a larger epsilon.")
        said += [f"{GRADIENTS}."] if adviser.problem.boxed else []
    if not adviser.problem.true:
        said.append(
            "A stand-in shows sizes, noise and orders of magnitude; it does not show the regret of this problem. (For "
            "users who are already in a table, add --table.)"
        )
    return said


def _short(name: str) -> str:
    return name.upper() if name in TRUST else "none"


def _batches(advice: Advice) -> str:
    """Return a sentence about the batches and the memory of their sums."""
    sizes = sorted(advice.batches) or [0]
    users = f"{sizes[0]:,} to {sizes[-1]:,} users" if sizes[0] < sizes[-1] else f"{sizes[0]:,} users"
    return f"{len(advice.batches):,} batches of {users}, {in_bytes(advice.memory)} of memory"


def _train(problem: Problem, advice: Advice, users: int) -> str:
    """Return the command that runs a row."""
    words = ["private-rl-gym", "train", *problem.typed, *advice.candidate.typed]
    words += ["--epsilon", f"{advice.epsilon:g}"]
    words += ["--delta", f"{advice.delta:g}"] if advice.delta else []
    return shlex.join([*words, "--users", str(users)])


def _head(problem: Problem, environment: str) -> str:
    horizon, n_states, n_actions = problem.sizes
    more = ", one of them for episodes that ended early" if problem.waiting else ""
    return f"{environment} (S = {n_states}{more}, A = {n_actions}, H = {horizon}): {problem.origin}."


def _sizes(problem: Problem) -> dict[str, Any]:
    sizes = dict(zip(("horizon", "states", "actions"), problem.sizes, strict=True))
    return {**sizes, "stand_in": not problem.true}


def _content(advice: Advice | None) -> dict[str, Any]:
    return {} if advice is None else asdict(advice)


def of_users(adviser: Adviser, environment: str, wish: float, rows: Mapping[str, Recommendation]) -> Page:
    """Return the numbers of users that each trust model needs.

    Learning without privacy has a row, too (``open``).

    Args:
        adviser: The adviser, with its problem.
        environment: The name of the environment.
        wish: The share of regret that they may lose.
        rows: The answers.
    """
    shown = []
    for name, answer in rows.items():
        advice, users = answer.advice, f"{answer.users:,}" if answer.enough else f"over {answer.users:,}"
        cells = ["not simulated", "", "not known", "", ""]
        if advice is not None:
            shares = f"{advice.share:.3f}", f"{advice.last:.3f}"
            cells = [advice.candidate.label, f"{advice.epsilon:g}", users, *shares]
        shown.append(([_short(name), *cells], not answer.enough))
    said = [note for answer in rows.values() for note in answer.notes]
    least = rows["open"].users
    if least > LADDER[0] and any(row.users <= least and row.enough for name, row in rows.items() if name != "open"):
        said.append(
            "Without privacy, fewer users may be enough: its best learner takes too long to simulate, or the "
            "difference is random."
        )
    if not adviser.problem.true:
        said.append(
            "A stand-in shows orders of magnitude: if rewards are rare or far away, several times as many users are "
            "needed. (For users who are already in a table, add --table and --users.)"
        )
    legend = (
        f"users: the smallest number, of 1, 2 and 5 times powers of ten up to {LADDER[-1]:,}, with which the regret is "
        f"at most a share of {wish:g} of that of random actions (--regret). share: that share. last: the share of the "
        "last policy alone. For a full plan with one number of users, give it with --users."
    )
    found = {
        name: {"users": row.users, "enough": row.enough, "note": "".join(row.notes)} | _content(row.advice)
        for name, row in rows.items()
    }
    content = _sizes(adviser.problem) | {"regret_wished": wish, "rows": found}
    columns = ["trust", "~agent", ">epsilon", ">users", ">share", ">last"]
    return Page(_head(adviser.problem, environment), columns, shown, said, (), legend, content)


def of_table(adviser: Adviser, rows: Sequence[TableAdvice], epsilon: float | None) -> Page:
    """Return the result of learning from a table, at each epsilon.

    The page has the command to run.

    Args:
        adviser: The adviser, whose problem is that of a table.
        rows: The advice at each epsilon; the last is without privacy.
        epsilon: The epsilon that was asked for, or None.
    """
    horizon, states, actions = adviser.problem.sizes
    states -= 1  # one is for users who left
    done, chosen = len(rows[0].gains), _chosen(rows, epsilon)
    said = []
    if done < adviser.runs:
        said.append(f"Time ran out after {done} of {adviser.runs} stand-ins: try --seconds 300.")
    if adviser.simulated < adviser.users:
        said.append(f"{adviser.simulated:,} people were simulated; more is learned from more people.")
    said.append(
        "Read these values as upper ends: in stand-ins, users stay to the last step and take every action. Less is "
        "learned if many users leave, if some actions are rare, or if all actions have nearly the same value."
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
    sizes, delta = {"states": states, "actions": actions, "horizon": horizon}, adviser.delta_of("jdp")
    command = None
    if chosen is not None:
        words = [
            "private-rl-gym",
            "learn",
            "TABLE.parquet",
            "--epsilon",
            f"{chosen.epsilon:g}",
            "--delta",
            f"{delta:g}",
        ]
        words += [word for name, size in sizes.items() for word in (f"--{name}", str(size))]
        command = shlex.join([*words, *(["--stationary"] if adviser.stationary else [])])
    head = (
        f"A table of {adviser.users:,} people (S = {states} and one more for those who left, A = {actions}, H = "
        f"{horizon}), {'stages pooled' if adviser.stationary else 'by stage'}: stand-ins are {done} random Garnets, "
        "with mean rewards between 0.4 and 0.6, whose people take the best action half of the time, and any else."
    )
    legend = (
        "value: that of the learned policy, between that of the habits (0 %) and the best (100 %); least: in the "
        "worst of the stand-ins; better: the number of stand-ins where it is better than the habits. noise: the "
        "standard deviation of the noise in a count of visits that the plan is made from; visits: the mean of such a "
        "count."
    )
    shown, found = [], []
    for row in rows:
        gains = f"{row.gain:.0%}", f"{min(row.gains):.0%}", f"{row.better} of {done}"
        cells = [f"{row.epsilon:g}", *gains, f"{row.noise:,.0f}", f"{row.visits:,.0f}", row.verdict]
        shown.append((cells, row.verdict == "hopeless"))
        found.append(asdict(row) | {"gain": row.gain, "better": row.better, "verdict": row.verdict})
    content = {
        "horizon": horizon,
        "states": states,
        "actions": actions,
        "stationary": adviser.stationary,
        "delta": delta,
        "users": adviser.users,
        "simulated": adviser.simulated,
        "stand_ins": done,
        "command": command,
        "rows": found,
    }
    columns = [">epsilon", ">value", ">least", ">better", ">noise", ">visits", "verdict"]
    return Page(head, columns, shown, said, [] if command is None else [f"  {command}"], legend, content)


def _chosen(rows: Sequence[TableAdvice], epsilon: float | None) -> TableAdvice | None:
    """Return the row of the requested epsilon, or None if nothing learns there.

    If no epsilon was requested, it is the row of the smallest epsilon that learns, or else that learns in part.
    """
    for verdict in ("learns", "in part"):
        for row in rows:
            if math.isfinite(row.epsilon) and row.verdict == verdict and epsilon in (None, row.epsilon):
                return row
    return None

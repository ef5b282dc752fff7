"""The outcome of a sweep as a table, with confidence over seeds.

Markdown and LaTeX are for readers, CSV is for analysis.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.lab.grids.cell import Cell, curve_name
from private_rl_gym.lab.grids.record import Record
from private_rl_gym.lab.registry import AGENTS, ENVIRONMENTS, AgentEntry, EnvironmentEntry, GridError

__all__ = [
    "FLAGSHIP",
    "HOMOGENEOUS",
    "TABLES",
    "Curve",
    "as_csv",
    "as_latex",
    "as_markdown",
    "rows",
    "summarize",
]

CONFIDENCE = 0.95

HOMOGENEOUS = "time-homogeneous"
"""What is said of agents that know that the problem is the same at every step, and pool stages."""

_TRUST = {"none": "open", "JDP": "jdp", "LDP": "ldp", "SDP": "sdp"}
"""The boundary of this package that has a trust model."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The runs with one label, one for each seed.

    Attributes:
        cell: Its first run.
        trust: The boundary of this package with the same trust model, as the ledger states it.
        epsilon, delta: The true guarantee; epsilon is infinite if nothing is guaranteed.
        covers: The data that are protected.
        guarantee: The guarantee as the ledger states it.
        neighbours: The sequences of users between which it holds.
        users: ``[point]``, numbers of users.
        values, noise: ``[seed, point]``, the measure and the noise after so many users.
        blind: The mean loss of a user under random actions; where the measure is return, their mean return.
        optimum: The mean value of the best policy; NaN where it is not known.
        mistakes: ``[seed]``, numbers of users whose policy was a mistake, if they were counted.
        measure: ``"regret"``, or ``"return"`` where the true model is not known.
    """

    cell: Cell
    trust: str
    epsilon: float
    delta: float
    covers: str
    guarantee: str
    users: NDArray[np.int64]
    values: NDArray[np.float64]
    noise: NDArray[np.float64]
    blind: float
    optimum: float
    mistakes: NDArray[np.float64] | None = None
    measure: str = "regret"
    neighbours: str = ""

    @property
    def regret(self) -> NDArray[np.float64]:  # [seed, point]
        """The regret, where the true model is known."""
        if self.measure != "regret":
            raise GridError(f"{self.label} has no regret: its true model is not known. It has returns.")
        return self.values

    @property
    def label(self) -> str:
        """The name of the curve in figures."""
        return self.cell.label

    @property
    def axes(self) -> Mapping[str, Any]:
        """Values that vary in the grid, by path."""
        return self.cell.axes

    def named(self, *without: str | None) -> str:
        """Return the name without some of the axes.

        It is the same for all curves that differ only in these.
        """
        return curve_name(self.cell.base, {path: value for path, value in self.axes.items() if path not in without})

    @property
    def asked(self) -> float | None:
        """The requested epsilon, or None."""
        return self.cell.epsilon

    @property
    def dearer(self) -> bool:
        """Return whether the true epsilon differs from the requested one.

        It does where constants are printed ones.
        """
        return self.asked is not None and abs(self.asked - self.epsilon) > 1e-6 * self.epsilon

    @property
    def private(self) -> bool:
        """Whether anything is guaranteed."""
        return math.isfinite(self.epsilon)

    @property
    def environment(self) -> EnvironmentEntry:
        """The entry of its environment."""
        return ENVIRONMENTS.find(self.cell.environment.name, "environment")

    @property
    def problem(self) -> str:
        """The name of its problem, with those options that are not defaults."""
        options = self.cell.environment.options
        return self.environment.title + "".join(f", {key} = {value}" for key, value in options.items())

    @property
    def agent(self) -> AgentEntry:
        """The entry of its agent."""
        return AGENTS.find(self.cell.agent.name, "agent")

    @property
    def printed(self) -> bool:
        """Whether the constants of its boundary are printed ones."""
        return self.cell.boundary.options.get("calibration") == "paper"

    @property
    def knows(self) -> str:
        """Knowledge that its agent has of the problem: ``"stationary"``, ``"features"`` of a mixture, or ``"nothing"``.

        An agent or a boundary with ``stationary=True`` knows that the problem is the same at every step.
        """
        homogeneous = any(part.options.get("stationary", False) for part in (self.cell.agent, self.cell.boundary))
        return "stationary" if homogeneous and self.agent.knows == "nothing" else self.agent.knows

    @property
    def learner(self) -> str:
        """Return the name of the agent.

        With other code of the user's own, and whether its constants are printed.
        """
        own = [name.short for name in self.cell.own if name != self.cell.agent.name]
        return ", ".join([self.cell.agent.title, *own]) + (" as printed" if self.printed else "")

    @property
    def line(self) -> str:
        """Return the agent's name and what it knows.

        It may know that the problem is time-homogeneous.
        """
        return self.learner + (f", {HOMOGENEOUS}" if self.knows == "stationary" else "")

    @property
    def seeds(self) -> int:
        """Number of runs."""
        return len(self.values)

    @property
    def mean(self) -> NDArray[np.float64]:  # [point]
        """Mean over seeds."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def sem(self) -> NDArray[np.float64]:  # [point]
        """Standard error of the mean over seeds; NaN for a single run."""
        if self.seeds < 2:
            return np.full(self.values.shape[1], math.nan)
        return np.asarray(self.values.std(axis=0, ddof=1) / math.sqrt(self.seeds))

    @property
    def half_width(self) -> NDArray[np.float64]:  # [point]
        """Return half the width of a 95 % confidence interval of the mean.

        By Student's t; NaN for a single run.
        """
        from scipy.stats import t

        return np.asarray(self.sem * t.ppf(0.5 + CONFIDENCE / 2.0, max(1, self.seeds - 1)))


def summarize(found: Iterable[tuple[Cell, Record]]) -> list[Curve]:
    """Return the curves of all records, one for each label.

    In the order of the grid; runs are sorted by seed.
    """
    by_label: dict[str, list[tuple[Cell, Record]]] = {}
    for cell, record in found:
        by_label.setdefault(cell.label, []).append((cell, record))
    curves = []
    for runs in by_label.values():
        runs.sort(key=lambda run: run[0].seed)
        cell, first = runs[0]
        counted = [record.about["mistakes"] for _, record in runs if "mistakes" in record.about]
        curves.append(
            Curve(
                cell=cell,
                trust=_TRUST[first.about["ledger"]["outside"]["model"]],
                epsilon=first.epsilon,
                delta=float(first.about["delta"]),
                covers=str(first.about["covers"]),
                guarantee=str(first.about["guarantee"]),
                users=first.users,
                values=np.array([record.curve for _, record in runs]),
                noise=np.array([record.noise for _, record in runs]),
                blind=float(np.mean([_blind(record) for _, record in runs])),
                optimum=float(np.mean([r.about.get("optimal_value", math.nan) for _, r in runs])),
                mistakes=np.array(counted, dtype=np.float64) if len(counted) == len(runs) else None,
                measure=first.measure,
                neighbours=str(first.about["ledger"]["outside"]["neighbours"]),
            )
        )
    return curves


def _blind(record: Record) -> float:
    """Return the loss of a user under random actions.

    Their return, where the optimum is not known.
    """
    blind = float(record.about["blind_value"])
    return blind if record.measure == "return" else float(record.about["optimal_value"]) - blind


Column = tuple[str, Callable[[Curve], str]]
"""The head of a column, and its text for a curve."""


def _learners(curves: Sequence[Curve]) -> list[Column]:
    """Return the usual table: guarantees and measures of all curves.

    With confidence over seeds.
    """

    def last(curve: Curve, measure: str, number: float) -> str:
        if measure != curve.measure or math.isnan(number):
            return ""
        return f"{number:.1f}" if measure == "regret" else f"{number:.4g}"

    measured: list[Column] = []
    for measure in sorted({curve.measure for curve in curves}) or ["regret"]:
        measured.append((measure, lambda c, measure=measure: last(c, measure, c.mean[-1])))  # type: ignore[misc]
        measured.append(("+/-", lambda c, measure=measure: last(c, measure, c.half_width[-1])))  # type: ignore[misc]
    return [
        ("learner", lambda curve: curve.label),
        ("true epsilon", lambda curve: f"{curve.epsilon:.4g}"),
        ("delta", lambda curve: f"{curve.delta:g}" if curve.private else ""),
        ("asked", lambda curve: "" if curve.asked is None else f"{curve.asked:g}"),
        ("protects", lambda curve: curve.covers if curve.private else "nothing"),
        ("users", lambda curve: f"{curve.users[-1]}"),
        ("seeds", lambda curve: f"{curve.seeds}"),
        *measured,
        ("last noise", lambda curve: f"{curve.noise[:, -1].mean():.3g}"),
    ]


FLAGSHIP = "FrugalUCBVI"
"""The agent that others are compared with; on an open board it is what the frontier's table calls not private."""


def _frontier(curves: Sequence[Curve]) -> list[Column]:
    """For each curve the true epsilon, regret over seeds, and what to compare it with."""
    exact = {c.problem: f"{c.mean[-1]:.1f}" for c in curves if c.learner == FLAGSHIP and not c.private}

    def finals(curve: Curve) -> list[float]:
        return [float(regret) for regret in curve.regret[:, -1]]

    return [
        ("problem", lambda curve: curve.problem),
        ("trust", lambda curve: curve.trust),
        ("knowledge", lambda curve: curve.knows),
        ("agent", lambda curve: curve.learner),
        ("epsilon", lambda curve: f"{curve.epsilon:.4g}"),
        ("delta", lambda curve: f"{curve.delta:g}" if curve.private else ""),
        ("users", lambda curve: f"{curve.users[-1]}"),
        ("seeds", lambda curve: f"{curve.seeds}"),
        ("regret", lambda curve: f"{statistics.fmean(finals(curve)):.1f}"),
        ("sem", lambda curve: f"{curve.sem[-1]:.1f}" if curve.seeds > 1 else ""),
        ("never_learning", lambda curve: f"{curve.blind * curve.users[-1]:.1f}"),
        ("not_private", lambda curve: exact.get(curve.problem, "")),
        ("median", lambda curve: f"{statistics.median(finals(curve)):.1f}"),
        ("worst", lambda curve: f"{max(finals(curve)):.1f}"),
    ]


TABLES: Mapping[str, Callable[[Sequence[Curve]], list[Column]]] = {"learners": _learners, "frontier": _frontier}
"""Tables that a grid may ask for, with their columns."""


def rows(curves: Sequence[Curve], table: str = "learners") -> list[list[str]]:
    """Return the table as text: its heads, and a row for each curve."""
    columns = TABLES[table](curves)
    return [[head for head, _ in columns], *([text(curve) for _, text in columns] for curve in curves)]


def as_csv(curves: Sequence[Curve]) -> str:
    """Return all curves as tidy CSV.

    One row for each curve and each number of users, with the whole configuration.

    A column such as ``boundary.epsilon`` is an option, empty where the default holds. ``last`` is 1 in the last row of
    a curve. ``mean``, ``sem``, ``half_width``, ``median``, ``lowest`` and ``highest`` are over seeds.
    """
    about = [_about(curve) for curve in curves]
    heads = list(dict.fromkeys(head for head in itertools.chain(*about) if head not in _GUARANTEE)) + list(_GUARANTEE)
    lines = [
        [*(row.get(head, "") for head in heads), *point]
        for row, curve in zip(about, curves, strict=True)
        for point in _points(curve)
    ]
    return _csv([*heads, *_POINT], *lines)


_GUARANTEE: Mapping[str, Callable[[Curve], Any]] = {
    "trust": lambda curve: curve.trust,
    "knowledge": lambda curve: curve.knows,
    "epsilon": lambda curve: f"{curve.epsilon:.6g}",
    "asked": lambda curve: "" if curve.asked is None else f"{curve.asked:.6g}",
    "delta": lambda curve: f"{curve.delta:.6g}" if curve.private else "",
    "neighbours": lambda curve: curve.neighbours,
    "protects": lambda curve: curve.covers if curve.private else "nothing",
    "seeds": lambda curve: curve.seeds,
    "measure": lambda curve: curve.measure,
}
"""Columns of the tidy table that are the same in all rows of a curve, beside its configuration."""

_POINT = ["users", "mean", "sem", "half_width", "median", "lowest", "highest", "random", "optimal", "noise", "last"]


def _about(curve: Curve) -> dict[str, Any]:
    """Return the name, the configuration and the guarantee of a curve, by column."""
    cell = curve.cell
    parts = {"environment": cell.environment, "boundary": cell.boundary, "agent": cell.agent}
    found: dict[str, Any] = {"learner": curve.label, **{name: part.name for name, part in parts.items()}}
    for name, part in parts.items():
        for key, value in part.options.items():
            found[f"{name}.{key}"] = value if isinstance(value, str | int | float) else json.dumps(value)
    found |= {} if cell.alpha is None else {"alpha": cell.alpha}
    return found | {head: value(curve) for head, value in _GUARANTEE.items()}


def _points(curve: Curve) -> Iterator[list[Any]]:
    """Return the values of ``_POINT`` for each number of users."""
    one = np.ones(len(curve.users))
    values, noise = curve.values, curve.noise.mean(axis=0)
    over_seeds = (curve.mean, curve.sem, curve.half_width, np.median(values, axis=0), values.min(0), values.max(0))
    random = curve.blind * (curve.users if curve.measure == "regret" else one)
    for users, *numbers in zip(curve.users, *over_seeds, random, curve.optimum * one, noise, strict=True):
        written = ["" if math.isnan(number) else f"{number:.6g}" for number in numbers]
        yield [int(users), *written, int(users == curve.users[-1])]


def _csv(head: Iterable[str], *lines: Iterable[Any]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([_unformulaic(cell) if isinstance(cell, str) else cell for cell in line] for line in lines)
    return out.getvalue()


def _unformulaic(text: str) -> str:
    """Text that no spreadsheet reads as a formula; numbers stay as they are."""
    try:
        float(text)
    except ValueError:
        return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
    return text


def as_markdown(curves: Sequence[Curve], table: str = "learners") -> str:
    """Return the table as Markdown."""
    head, *lines = rows(curves, table)
    safe = ([escape(cell, quote=False).replace("|", "\\|") for cell in line] for line in lines)
    shown = [f"| {' | '.join(line)} |" for line in (head, *safe)]
    return "\n".join([shown[0], "|" + "---|" * len(head), *shown[1:]]) + "\n"


_SPECIAL = {
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
}


def as_latex(curves: Sequence[Curve], table: str = "learners") -> str:
    """Return the table as LaTeX, for the package booktabs."""

    def safe(text: str) -> str:
        return "".join(_SPECIAL.get(letter, letter) for letter in text)

    head, *lines = (" & ".join(map(safe, line)) + r" \\" for line in rows(curves, table))
    columns = len(TABLES[table](curves)) - 1
    return "\n".join(
        [
            rf"\begin{{tabular}}{{l{'r' * columns}}}",
            r"\toprule",
            head.replace("+/-", r"$\pm$"),
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )

"""The outcome of a sweep as a table: one row for each curve, with confidence over seeds. CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.experiments.config import Cell, curve_name
from private_rl_gym.experiments.names import GridError
from private_rl_gym.experiments.record import Record

__all__ = [
    "HEADER",
    "LEARNERS",
    "Curve",
    "Layout",
    "as_csv",
    "as_latex",
    "as_markdown",
    "curves_csv",
    "learners",
    "rows",
    "summarize",
]

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The runs with one label, one for each seed.

    Attributes:
        base: Its name in figures, without axes.
        axes: Values that vary in the grid, by path.
        config: Configuration of its first run.
        asked: The requested epsilon, or None.
        epsilon, delta: The true guarantee; epsilon is infinite if nothing is guaranteed.
        covers: The data that are protected.
        guarantee: The guarantee as the ledger states it.
        users: ``[point]``, numbers of users.
        measure: ``"regret"``, or ``"return"`` where nobody knows the true model.
        values, noise: ``[seed, point]``, the measure and the noise after so many users.
    """

    base: str
    axes: Mapping[str, Any]
    config: Mapping[str, Any]
    asked: float | None
    epsilon: float
    delta: float
    covers: str
    guarantee: str
    users: NDArray[np.int64]
    values: NDArray[np.float64]
    noise: NDArray[np.float64]
    blind: float  # mean loss of a user under random actions; of returns, their mean return
    optimum: float  # mean value of the best policy; NaN where nobody knows it
    mistakes: NDArray[np.float64] | None = None  # [seed]
    measure: str = "regret"

    @property
    def regret(self) -> NDArray[np.float64]:  # [seed, point]
        """The regret, where the true model is known."""
        if self.measure != "regret":
            raise GridError(f"{self.label} has no regret: nobody knows its true model. It has returns.")
        return self.values

    @property
    def label(self) -> str:
        """The name of the curve in figures."""
        return curve_name(self.base, self.axes)

    def named(self, without: str) -> str:
        """The name without one of the axes: the same for all curves that differ only in that axis."""
        return curve_name(self.base, self.axes, without)

    @property
    def seeds(self) -> int:
        """Number of runs."""
        return len(self.values)

    @property
    def mean(self) -> NDArray[np.float64]:  # [point]
        """Mean over seeds."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def half_width(self) -> NDArray[np.float64]:  # [point]
        """Half width of a 95 % confidence interval of the mean, by Student's t; NaN for a single run."""
        from scipy.stats import t

        if self.seeds < 2:
            return np.full(self.values.shape[1], math.nan)
        error = self.values.std(axis=0, ddof=1) / math.sqrt(self.seeds)
        return np.asarray(error * t.ppf(0.5 + CONFIDENCE / 2.0, self.seeds - 1))


def summarize(found: Iterable[tuple[Cell, Record]]) -> list[Curve]:
    """The curves of all records, one for each label, in the order of the grid; their runs are sorted by seed."""
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
                base=cell.base,
                axes=cell.axes,
                config=cell.to_dict(),
                asked=cell.epsilon,
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
            )
        )
    return curves


def _blind(record: Record) -> float:
    """The loss of a user under random actions; the return under them, where nobody knows the best."""
    blind = float(record.about["blind_value"])
    return blind if record.measure == "return" else float(record.about["optimal_value"]) - blind


HEADER = ("learner", "true epsilon", "delta", "asked", "protects", "users", "seeds", "regret", "+/-", "last noise")


def rows(curves: Sequence[Curve], measures: Sequence[str] = ("regret",)) -> list[tuple[str, ...]]:
    """The table as text, one row for each curve, with two columns for each measure."""
    lines: list[tuple[str, ...]] = []
    for curve in curves:
        half = curve.half_width[-1]
        private = math.isfinite(curve.epsilon)
        last = (_short(curve, curve.mean[-1]), "" if math.isnan(half) else _short(curve, half))
        lines.append(
            (
                curve.label,
                f"{curve.epsilon:.4g}" if private else "inf",
                f"{curve.delta:g}" if private else "",
                "" if curve.asked is None else f"{curve.asked:g}",
                curve.covers if private else "nothing",
                f"{curve.users[-1]}",
                f"{curve.seeds}",
                *(text for measure in measures for text in (last if measure == curve.measure else ("", ""))),
                f"{curve.noise[:, -1].mean():.3g}",
            )
        )
    return lines


def _short(curve: Curve, number: float) -> str:
    return f"{number:.1f}" if curve.measure == "regret" else f"{number:.4g}"


class Layout(NamedTuple):
    """The header of a table, and the function that makes its rows."""

    header: tuple[str, ...]
    rows: Callable[[Sequence[Curve]], list[tuple[str, ...]]]


LEARNERS = Layout(HEADER, rows)
"""The usual table: one row for each curve."""


def learners(curves: Sequence[Curve]) -> Layout:
    """The usual table, with columns for what was measured: regret, or return where nobody knows the true model."""
    measures = sorted({curve.measure for curve in curves})
    if measures in ([], ["regret"]):
        return LEARNERS
    columns = (column for measure in measures for column in (measure, "+/-"))
    return Layout((*HEADER[:7], *columns, HEADER[-1]), partial(rows, measures=measures))


def as_csv(curves: Sequence[Curve], layout: Layout = LEARNERS) -> str:
    """The table as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(layout.header)
    writer.writerows([_unformulaic(text) for text in row] for row in layout.rows(curves))
    return out.getvalue()


def _unformulaic(text: str) -> str:
    """Text that no spreadsheet reads as a formula; numbers stay as they are."""
    try:
        float(text)
    except ValueError:
        return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
    return text


def curves_csv(curves: Sequence[Curve]) -> str:
    """All points of all curves, as CSV: the numbers that figures draw."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    measures = " or ".join(sorted({curve.measure for curve in curves}))
    writer.writerow(("learner", "users", f"mean {measures}", "95 % half width", "lowest", "highest", "mean noise"))
    for curve in curves:
        points = zip(
            curve.users,
            curve.mean,
            curve.half_width,
            curve.values.min(0),
            curve.values.max(0),
            curve.noise.mean(0),
            strict=True,
        )
        writer.writerows(
            (_unformulaic(curve.label), int(users), *(repr(float(number)) for number in rest))
            for users, *rest in points
        )
    return out.getvalue()


def as_markdown(curves: Sequence[Curve], layout: Layout = LEARNERS) -> str:
    """The table as Markdown."""
    lines = ["| " + " | ".join(layout.header) + " |", "|" + "---|" * len(layout.header)]
    lines += [
        "| " + " | ".join(escape(cell, quote=False).replace("|", "\\|") for cell in row) + " |"
        for row in layout.rows(curves)
    ]
    return "\n".join(lines) + "\n"


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


def as_latex(curves: Sequence[Curve], layout: Layout = LEARNERS) -> str:
    """The table as LaTeX, for the package booktabs."""

    def safe(text: str) -> str:
        return (
            "".join(_SPECIAL.get(letter, letter) for letter in text.replace("+/-", "$\\pm$"))
            if text != "+/-"
            else "$\\pm$"
        )

    lines = [r"\begin{tabular}{l" + "r" * (len(layout.header) - 1) + "}", r"\toprule"]
    lines.append(" & ".join(safe(name) for name in layout.header) + r" \\")
    lines.append(r"\midrule")
    lines += [" & ".join(safe(cell) for cell in row) + r" \\" for row in layout.rows(curves)]
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"

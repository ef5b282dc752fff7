"""A web page about a sweep, which needs no network.

It has the finding, figures, table, configurations, ledgers and versions.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Sequence
from html import escape
from importlib import metadata
from typing import NamedTuple

import private_rl_gym
from private_rl_gym.lab.grids.cell import Cell
from private_rl_gym.lab.grids.grid import Grid
from private_rl_gym.lab.grids.record import Record
from private_rl_gym.lab.grids.summary import Curve, rows

__all__ = ["Picture", "report"]

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --faint: #666; --paper: #fff; --line: #ddd; --shade: #f4f4f2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --faint: #a5a5a5; --paper: #131416; --line: #3a3b3e; --shade: #1e2023; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); overflow-wrap: anywhere; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.1rem; margin-top: 2.2rem; }
.finding { font-size: 1.15rem; font-weight: 600; }
figure { margin: 2rem 0; } figure svg { display: block; width: 100%; max-width: 54rem; height: auto; }
figure#frontier svg { max-width: none; }
figcaption, .note { color: var(--faint); font-size: .9rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .85rem; }
th, td { padding: .25rem .4rem; border-bottom: 1px solid var(--line); text-align: right; overflow-wrap: normal; }
th:first-child, td:first-child { text-align: left; }
th button { all: unset; cursor: pointer; font-weight: 600; } th button:focus-visible { outline: 2px solid; }
th[aria-sort=ascending] button::after { content: " \\2191"; }
th[aria-sort=descending] button::after { content: " \\2193"; }
pre { background: var(--shade); padding: .8rem; white-space: pre-wrap; font-size: .85rem; }
summary { cursor: pointer; }
.failed { color: light-dark(#a40000, #ff8a80); }
@media (max-width: 60rem) {
  figure { overflow-x: auto; } figure svg { min-width: 34rem; } figure#frontier svg { min-width: 60rem; }
  thead, .note { display: none; } tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--line); }
  td, td:first-child { display: flex; justify-content: space-between; gap: 1rem; border: 0; padding: .1rem 0; }
  td:empty { display: none; } td:first-child { font-weight: 600; }
  td::before { content: attr(data-name); color: var(--faint); font-weight: 400; text-align: left; }
}
"""

SORT = """
for (const button of document.querySelectorAll("th button")) button.onclick = () => {
  const head = button.parentElement, body = head.closest("table").tBodies[0];
  const down = head.getAttribute("aria-sort") === "ascending", place = head.cellIndex;
  const key = row => {
    const text = row.cells[place].dataset.value, number = text === "inf" ? Infinity : parseFloat(text);
    return [text === "" ? 1 : 0, isNaN(number) ? text : number];
  };
  const order = (a, b) => a[0] - b[0] || (a[1] === b[1] ? 0 : (a[1] < b[1]) === down ? 1 : -1);
  const rows = [...body.rows].map(row => [key(row), row]).sort((a, b) => order(a[0], b[0]));
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.append(...rows.map(([, row]) => row));
};
"""
"""Sorting of a table by a click on a head: numbers as numbers, what is empty last."""


class Picture(NamedTuple):
    """A figure in the page: its name, its finding, its caption and its SVG file."""

    name: str
    finding: str
    caption: str
    svg: str

    @property
    def html(self) -> str:
        """The figure as HTML; the alternative text is the finding and the caption."""
        seen = f"{escape(self.finding)}. {escape(self.caption)}"
        picture = self.svg[self.svg.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{seen}"', 1)
        text = f"<strong>{escape(self.finding)}.</strong> {escape(self.caption)}"
        return f'<figure id="{self.name}">{picture}<figcaption>{text}</figcaption></figure>'


def report(
    grid: Grid,
    curves: Sequence[Curve],
    runs: Sequence[tuple[Cell, Record]],
    finding: str,
    pictures: Sequence[Picture],
    failed: Sequence[tuple[Cell, str]] = (),
    again: str = "",
) -> str:
    """Return the page, as HTML.

    Args:
        grid: What was asked for.
        curves: What was found, by curve.
        runs: The same by cell.
        finding: The finding, as a sentence without its full stop.
        pictures: The figures, the main figure first.
        failed: Cells without a record, each with its error.
        again: The command that makes the page again.
    """
    missing = len(grid.cells) - len(runs) - len(failed)
    parts = [f"<h1>{escape(grid.title)}</h1>", f'<p class="finding">{escape(finding)}.</p>']
    about = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(grid.about.strip()))
    parts += [f"<p>{paragraph}</p>" for paragraph in about.split("\n\n") if paragraph]
    progress = f"{len(runs)} of {len(grid.cells)} cells"
    progress += f", {missing} still to run" if missing else ""
    parts.append(f"<p>{progress}.</p>")
    if again:
        parts.append("<p>The command that makes this page again, from the records that are there:</p>")
        parts.append(f"<pre><code>{escape(again)}</code></pre>")
    parts += [picture.html for picture in pictures]
    header, *lines = rows(curves, grid.table)
    head = "".join(f'<th scope="col"><button type="button">{escape(title)}</button></th>' for title in header)
    body = "".join(f"<tr>{_cells(header, row)}</tr>" for row in lines)
    parts.append('<h2>Table</h2><p class="note">A click on a head sorts by it.</p>')
    parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    if failed:
        parts.append("<h2>Failed</h2>")
        parts += [
            f'<details class="failed"><summary>{escape(cell.label)}, seed {cell.seed}</summary>'
            f"<pre>{escape(text)}</pre></details>"
            for cell, text in failed
        ]
    parts.append("<h2>Guarantees</h2><ul>")
    parts += [f"<li>{escape(curve.label)}: {escape(curve.guarantee)}</li>" for curve in curves]
    parts.append("</ul><h2>Configurations</h2>")
    for cell, record in runs:
        content = json.dumps({"config": record.about["config"], "ledger": record.about["ledger"]}, indent=2)
        parts.append(
            f"<details><summary>{escape(cell.label)}, seed {cell.seed}: <code>{record.key}</code></summary>"
            f"<pre>{escape(content)}</pre></details>"
        )
    packages = ("gymnasium", "numpy", "numba", "scipy", "stable-baselines3", "pyarrow")
    versions = {"private_rl_gym": private_rl_gym.__version__, "python": platform.python_version()}
    versions |= {name: metadata.version(name) for name in packages}
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    parts.append(f"<h2>Versions</h2><p>{escape(listed)}</p>")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(grid.title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>\n<body>\n'
        + "\n".join(parts)
        + f"\n<script>{SORT}</script>\n</body></html>\n"
    )


def _cells(header: Sequence[str], row: Sequence[str]) -> str:
    """Return the cells of a row, with the names of their columns."""
    return "".join(
        f'<td data-name="{escape(name)}" data-value="{escape(text)}">{escape(_separated(text))}</td>'
        for name, text in zip(header, row, strict=True)
    )


def _separated(text: str) -> str:
    """Return a number with commas between thousands, and any other text as it is."""
    whole, point, rest = text.partition(".")
    return f"{int(whole):,}{point}{rest}" if whole.isdigit() and (rest.isdigit() or not point) else text

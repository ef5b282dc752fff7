"""A web page about a sweep: figures, table, configurations, ledgers and versions. It needs no network."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from html import escape
from importlib import metadata

import private_rl_gym
from private_rl_gym.experiments import drawing, figures
from private_rl_gym.experiments.config import Cell
from private_rl_gym.experiments.frontier import layout_of
from private_rl_gym.experiments.grid import Grid
from private_rl_gym.experiments.record import Record
from private_rl_gym.experiments.summary import Curve

__all__ = ["report"]

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1b1b1b; background: #fff; }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2.2rem; }
figure { margin: 1rem 0; } figure svg { width: 100%; height: auto; }
figcaption { color: #555; font-size: .9rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
pre { background: #f6f6f4; padding: .8rem; overflow-x: auto; font-size: .85rem; }
summary { cursor: pointer; }
.failed { color: #a40000; }
"""

CAPTIONS = {
    "regret": "Regret against the number of users: mean over seeds, with a 95 % confidence band.",
    "privacy": "Final regret against the epsilon that is really promised, against replacing one user. A cross marks "
    "the epsilon that was asked for, where printed constants cost another.",
    "against": "Final regret against what varies: mean over seeds, with the range.",
    "share": "Reward of a user as a share of the best possible, against users: mean over seeds, with the range.",
    "frontier": "Final regret against the epsilon that is really promised, a panel for each problem and trust model.",
    "mistakes": "Users whose policy was a mistake, against the epsilon that is really promised.",
    "noise": "Standard deviation of the noise in one released sum, over time.",
}


def report(
    grid: Grid, curves: Sequence[Curve], runs: Sequence[tuple[Cell, Record]], failed: Sequence[tuple[Cell, str]] = ()
) -> str:
    """The page, as HTML."""
    missing = len(grid.cells) - len(runs) - len(failed)
    parts = [f"<h1>{escape(grid.title)}</h1>"]
    parts += [f"<p>{escape(paragraph)}</p>" for paragraph in grid.about.strip().split("\n\n") if paragraph]
    progress = f"{len(runs)} of {len(grid.cells)} cells"
    progress += f", {missing} still to run" if missing else ""
    parts.append(f"<p>{progress}.</p>")
    for name, figure in figures.of_grid(grid, curves).items():
        picture = drawing.svg(figure).replace("<svg", f'<svg role="img" aria-label="{CAPTIONS[name]}"', 1)
        parts.append(f'<figure id="{name}">{picture}<figcaption>{CAPTIONS[name]}</figcaption></figure>')
    layout = layout_of(grid)
    head = "".join(f"<th>{escape(title)}</th>" for title in layout.header)
    cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in layout.rows(curves))
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    parts.append(
        f'<h2>Table</h2><div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )
    if failed:
        parts.append("<h2>Failed</h2>")
        parts += [
            f'<details class="failed"><summary>{escape(cell.label)}, seed {cell.seed}</summary>'
            f"<pre>{escape(text)}</pre></details>"
            for cell, text in failed
        ]
    parts.append("<h2>Promises</h2><ul>")
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
        + "\n</body></html>\n"
    )

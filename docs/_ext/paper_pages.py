"""Pages about the papers: their bounds in numbers, and a map from what they name to what it became here."""

import math
import sys
from pathlib import Path

from private_rl_gym.experiments import bounds

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROWS = Path(__file__).parents[1] / "papers.toml"

SETTINGS = [  # a name, and S, A, H, K
    ("RiverSwim, as in figure 1 of DP-UCBVI", 6, 2, 20, 50_000),
    ("the Garnet of the grid `sdp-pe`", 5, 2, 5, 50_000),
    ("HardMDP of the grid `hard`", 22, 11, 10, 20_000_000),
]
EPSILONS = [0.1, 1.0, 10.0]


def setup(app):
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}


def write_pages(app):
    folder = Path(app.srcdir) / "papers"
    folder.mkdir(exist_ok=True)
    (folder / "bounds.md").write_text(bounds_page())
    (folder / "map.md").write_text(map_page(papers()))


def bounds_page():
    """Tables of the papers with numbers, and one line for each bound that is code."""
    lines = [
        "# Bounds of the papers",
        "",
        "Table 1 of DP-UCBVI and table I of SDP-PE, as `private_rl_gym.experiments.bounds.TABLES`. Numbers are orders",
        "with the constant 1 and no logarithms: they compare growth, and no learner need be below its own. Whoever",
        "learns nothing loses at most H K; where a bound is above that (in italics), it says nothing yet. T = H K is",
        "steps.",
    ]
    for name, S, A, H, K in SETTINGS:
        heads = " | ".join(f"epsilon = {epsilon:g}" for epsilon in EPSILONS)
        lines += ["", f"## S = {S}, A = {A}, H = {H}, K = {K:,}", "", f"That is {name}. H K = {H * K:,}.", ""]
        lines += [f"| table | learner | promise | bound | {heads} |", "|---|---|---|---|" + "---|" * len(EPSILONS)]
        for row in bounds.TABLES:
            cells = [said(row.regret(H, S, A, K, epsilon), H * K) for epsilon in EPSILONS]
            lines.append(f"| {row.table} | {row.learner} | {row.promise} | ${row.formula}$ | {' | '.join(cells)} |")
    lines += ["", "## All bounds that are code", "", "| function | bound |", "|---|---|"]
    for name in bounds.__all__:
        if name.islower():
            lines.append(f"| `{name}` | {getattr(bounds, name).__doc__.splitlines()[0]} |")
    lines += [
        "",
        "Their arguments and formulas are in the [reference](../reference.md); where each theorem went is on the",
        "[map](map.md).",
        "",
    ]
    return "\n".join(lines)


def said(regret, most):
    """A number with its thousands; in italics if it is above all that can be lost, and an order if it is far above."""
    if regret <= most:
        return f"{regret:,.0f}"
    return f"*{regret:,.0f}*" if regret < 1e7 else f"*1e{round(math.log10(regret))}*"


def papers():
    """The papers, each with its name, its title and its rows."""
    return tomllib.loads(ROWS.read_text())["papers"]


def map_page(found):
    """Rows without code first, with the reason; then a table for each paper."""
    rows = [row for paper in found for row in paper["rows"]]
    bare = sum("code" not in row for row in rows)
    lines = [
        "# Map of the papers",
        "",
        f"Everything that the five papers name, and what it became: {len(rows)} rows, of which {bare} have no code.",
        "Modules are those of `private_rl_gym`. What is measured by a grid is run by `private-rl-gym sweep` with its",
        "name. A test resolves every name and every test on this page. Bounds in numbers: [Bounds](bounds.md).",
        "Rows without code stand in the first table alone.",
        "",
        "## Without code",
        "",
        "| paper | rows | reason |",
        "|---|---|---|",
    ]
    for paper in found:
        reasons = {}
        for row in paper["rows"]:
            if "code" not in row:
                reasons.setdefault(row["none"], []).append(row["label"])
        lines += [f"| {paper['name']} | {', '.join(labels)} | {reason} |" for reason, labels in reasons.items()]
    for paper in found:
        lines += ["", f"## {paper['name']}", "", f"{paper['title']}.", ""]
        lines += ["| there | what it says | here | measured | what differs |", "|---|---|---|---|---|"]
        for row in (row for row in paper["rows"] if "code" in row):
            code = " ".join(f"`{name}`" for name in row["code"])
            measured = " ".join(shown(place) for place in row.get("measured", []))
            lines.append(f"| {row['label']} | {row['says']} | {code} | {measured} | {row.get('differs', '')} |")
    return "\n".join([*lines, ""])


def shown(place):
    """A test by its name, a grid, or a link to a proof."""
    kind, _, name = place.partition(" ")
    if kind == "proof":
        return f"[proof](../proofs/{name}.md)"
    return f"the grid `{name}`" if kind == "grid" else f"`{place.removeprefix('tests/')}`"

"""Pages about the papers: their bounds, and a map to the code.

The bounds are in numbers. The map has the code of each result.
"""

import math
import sys
from pathlib import Path

from private_rl_gym.lab.papers import bounds

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
    for name, text in made_pages().items():
        (folder / name).write_text(text, "utf-8")


def made_pages():
    """Return the text of each page by its file name; the repository keeps the files, so that they can be read there."""
    return {"bounds.md": bounds_page(), "map.md": map_page(papers())}


def bounds_page():
    """Return the page of bounds.

    It has the papers' tables in numbers, and one line for each bound in code.
    """
    lines = [
        "# Bounds of the papers",
        "",
        "After this page you can compare the papers' regret bounds at three problem sizes. The tables are table 1 of",
        "DP-UCBVI and table I of SDP-PE, as in `private_rl_gym.lab.papers.bounds.TABLES`. Numbers have the constant 1",
        "and no logarithms, so they compare growth alone, and a learner may be above its own bound. Regret is never",
        "above H K, so bounds above that, in italics, are vacuous. T = H K is the number of steps.",
    ]
    for name, S, A, H, K in SETTINGS:
        heads = " | ".join(f"epsilon = {epsilon:g}" for epsilon in EPSILONS)
        lines += ["", f"## S = {S}, A = {A}, H = {H}, K = {K:,}", "", f"This is {name}. H K = {H * K:,}.", ""]
        lines += [f"| table | learner | guarantee | bound | {heads} |", "|---|---|---|---|" + "---|" * len(EPSILONS)]
        for row in bounds.TABLES:
            cells = [said(row.regret(H, S, A, K, epsilon), H * K) for epsilon in EPSILONS]
            lines.append(f"| {row.table} | {row.learner} | {row.guarantee} | ${row.formula}$ | {' | '.join(cells)} |")
    lines += ["", "## All bounds in code", "", "| function | bound |", "|---|---|"]
    for name in bounds.__all__:
        if name.islower():
            lines.append(f"| `{name}` | {getattr(bounds, name).__doc__.splitlines()[0]} |")
    lines += [
        "",
        "The [reference](../reference.md) has their arguments and formulas. The [map](map.md) has the code of each",
        "theorem.",
        "",
    ]
    return "\n".join(lines)


def said(regret, most):
    """Return a bound as text with thousands separators.

    It is in italics if it is vacuous, and a power of ten if it is large.
    """
    if regret <= most:
        return f"{regret:,.0f}"
    return f"*{regret:,.0f}*" if regret < 1e7 else f"*1e{round(math.log10(regret))}*"


def papers():
    """Return the papers, each with its name, its title and its rows."""
    return tomllib.loads(ROWS.read_text())["papers"]


def map_page(found):
    """Return the page of the map.

    First come rows without code, with the reason, then a table for each paper.
    """
    rows = [row for paper in found for row in paper["rows"]]
    bare = sum("code" not in row for row in rows)
    lines = [
        "# Map of the papers",
        "",
        "After this page you can find the code, the tests and the proofs of each definition, theorem and algorithm of",
        f"the five papers: {len(rows)} rows, of which {bare} have no code and are in the first table alone. Modules",
        "are those of `private_rl_gym`. `private-rl-gym sweep` with the name of a grid runs it. A test resolves every",
        "name on this page. [Bounds](bounds.md) has the bounds in numbers.",
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
        lines += ["| label | statement | code | tests, grids, proofs | difference |", "|---|---|---|---|---|"]
        for row in (row for row in paper["rows"] if "code" in row):
            code = ", ".join(f"`{name}`" for name in row["code"])
            measured = ", ".join(shown(place) for place in row.get("measured", []))
            lines.append(f"| {row['label']} | {row['says']} | {code} | {measured} | {row.get('differs', '')} |")
    return "\n".join([*lines, ""])


def shown(place):
    """Return the text of a place: a test, a grid, or a proof.

    A test has its name, and a proof has a link.
    """
    kind, _, name = place.partition(" ")
    if kind == "proof":
        return f"[proof](../proofs/{name}.md)"
    return f"the grid `{name}`" if kind == "grid" else f"`{place.removeprefix('tests/')}`"

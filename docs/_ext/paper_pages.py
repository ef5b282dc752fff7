"""Pages about the papers: their bounds in numbers, and a map from what they name to what it became here."""

from pathlib import Path

from private_rl_gym.experiments import bounds

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
        "Their arguments and formulas are in the [reference](../reference.md).",
        "",
    ]
    return "\n".join(lines)


def said(regret, most):
    """A number with its thousands; in italics, if it is above all that can be lost."""
    return f"{regret:,.0f}" if regret <= most else f"*{regret:,.0f}*"

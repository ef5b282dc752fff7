"""Figures for pages of boundaries and agents, computed when the site is built."""

from pathlib import Path

import numpy as np

from private_rl_gym.lab.audits import AuditConfig, audit
from private_rl_gym.lab.audits.figure import tradeoff  # on axes that are passed in
from private_rl_gym.lab.figures.drawing import FAINT, finish, label_ends, new_axes, new_panels, save, say
from private_rl_gym.lab.figures.sweeps import of_grid
from private_rl_gym.lab.grids.cell import Choice
from private_rl_gym.lab.grids.engines import OnJoblib
from private_rl_gym.lab.grids.grid import read_grid
from private_rl_gym.lab.grids.store import Store
from private_rl_gym.lab.grids.summary import summarize
from private_rl_gym.lab.grids.sweep import sweep
from private_rl_gym.privacy.accounting.calibration import calibrate
from private_rl_gym.privacy.mechanisms import MECHANISMS
from private_rl_gym.privacy.statistics import TabularCounts

USERS = 50_000
LINES = [
    ("matrix-factorization", "gaussian", "#1f77c0", "-"),
    ("honaker-tree", "gaussian", "#d55e00", "-"),
    ("binary-tree", "gaussian", "#009e73", "-"),
    ("k-ary-tree", "laplace", "#c2569b", "--"),
    ("honaker-tree", "laplace", "#d55e00", "--"),
    ("binary-tree", "laplace", "#009e73", "--"),
]


def setup(app):
    app.connect("builder-inited", draw)
    app.connect("builder-inited", draw_learning)
    app.connect("builder-inited", draw_audits)
    return {"parallel_read_safe": True}


GRIDS = {  # the users and seeds of a page's figure; the command in its caption has more
    "dp-ucbvi": (20_000, 2),
    "trust": (50_000, 3),
    "ucbvi": (5_000, 1),
    "pucb": (5_000, 1),
    "private-ucbvi": (5_000, 1),
    "private-ucbpo": (5_000, 1),
    "rlsvi": (5_000, 1),
    "psrl": (5_000, 1),
    "sdp-pe": (50_000, 1),
    "linopt-river": (5_000, 1),
    "mixtures": (20_000, 2),
    "hard": (4_000_000, 1),
    "ldp-obi": (20_000, 1),
    "dp-se": (50_000, 1),
}
MORE = {"dp-ucbvi": ("privacy", "share"), "trust": ("share",)}  # further figures of a grid


def draw_learning(app):
    """Draw the main figure of the grid that each agent's page names."""
    folder = Path(app.srcdir) / "generated"
    for name, (users, seeds) in GRIDS.items():
        grid, whole = read_grid(name, users=users, seeds=seeds), read_grid(name)
        store = Store(folder / "runs")
        sweep(grid, store, OnJoblib(2))
        drawn = of_grid(grid, summarize(store.read(grid.cells)))
        if grid.cells != whole.cells:
            for figure in drawn.values():
                add_to_note(figure, f"the command has {difference(whole, grid)}")
        save(next(iter(drawn.values())), folder / name, ["svg"])
        for other in MORE.get(name, ()):
            save(drawn[other], folder / f"{name}-{other}", ["svg"])


def difference(whole, part):
    """Return the numbers of users and of seeds of a grid, as text, where those of the other differ."""
    users, fewer = (max(cell.users for cell in grid.cells) for grid in (whole, part))
    seeds, less = (len({cell.seed for cell in grid.cells}) for grid in (whole, part))
    return " and ".join([f"{users:,} users"] * (users != fewer) + [f"{seeds} seeds"] * (seeds != less))


def add_to_note(figure, text):
    """Append a text to the line below the axes."""
    say(figure, figure.get_label(), "; ".join(part for part in (figure.get_supxlabel(), text) if part))


def draw_audits(app):
    """Draw two audits at the same claim.

    One is of a sound billboard, and one of a billboard with fresh noise for every release.
    """
    figure, parts = new_panels(["", ""], 2, (4.6, 4.2))
    bounds = []
    for axes, target, title in (
        (parts[0], None, "JDPBillboard: nothing found"),
        (parts[1], "private_rl_gym.lab.audits.broken:FreshNoise", "fresh noise for every release: broken"),
    ):
        claim = Choice("jdp", {"epsilon": 1.0, "delta": 0.0})
        plan = AuditConfig(claim, target=target, users=16, runs=6000, attacks=("one-release", "stream"))
        report = audit(plan)
        tradeoff(axes, report)
        axes.set_title(title, fontsize=10)
        bounds.append(report.bound)
    text = "Both claim epsilon = 1: attacks prove {:.2g} for the billboard and {:.2g} for fresh noise".format(*bounds)
    save(say(figure, text), Path(app.srcdir) / "generated" / "audit", ["svg"])


def draw(app):
    folder = Path(app.srcdir) / "generated"
    folder.mkdir(exist_ok=True)
    sensitivity = TabularCounts(20, 6, 2).sensitivity()
    steps = np.unique(np.geomspace(1, USERS, 600).astype(int))
    figure, axes = new_axes("RiverSwim, H = 20, 50,000 users, epsilon = 1, delta = 1e-6 (dashed: delta = 0)")
    ends = []
    for counting, law, color, style in LINES:
        noise = MECHANISMS[counting](USERS, 1, law)
        scale, *_ = calibrate(noise, sensitivity, 1.0, 1e-6 if law == "gaussian" else 0.0)
        width = scale * (np.sqrt(2) if law == "laplace" else 1.0)
        spread = [width * noise.spread(int(t)) for t in steps]
        axes.plot(steps, spread, style, color=color)
        ends.append((spread[-1], f"{counting}, {law}", color))
    least = min(ends)
    axes.plot(steps, steps / 12, ":", color=FAINT)
    ends.append((USERS / 12, "mean of a count", FAINT))
    axes.set(
        xscale="log", yscale="log", xlim=(1, USERS), xlabel="users so far", ylabel="noise in a count of transitions"
    )
    finish(axes)
    label_ends(axes, ends)
    most = max(end for end in ends if end[2] != FAINT)
    text = f"Noise after {USERS:,} users: {least[0]:,.0f} ({least[1]}) to {most[0]:,.0f} ({most[1]})"
    save(say(figure, text), folder / "counting", ["svg"])

"""Pictures for the pages about trust boundaries and agents, computed when the site is built."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from private_rl_gym.experiments.auditing import AuditConfig, audit
from private_rl_gym.experiments.auditing.figure import tradeoff  # on axes of ours
from private_rl_gym.experiments.config import Choice
from private_rl_gym.experiments.drawing import FAINT, finish, label_ends, new_axes, new_panels, save, say
from private_rl_gym.experiments.engines import OnJoblib
from private_rl_gym.experiments.figures import of_grid
from private_rl_gym.experiments.grid import read_grid
from private_rl_gym.experiments.store import Store
from private_rl_gym.experiments.summary import summarize
from private_rl_gym.experiments.sweep import sweep
from private_rl_gym.privacy.calibration import calibrate
from private_rl_gym.privacy.counting import COUNTING
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


GRIDS = {  # users and seeds that a page's picture is drawn with; the command in its caption draws more
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
    """Pictures of agents: the main figure of the grid that their page names."""
    folder = Path(app.srcdir) / "generated"
    for name, (users, seeds) in GRIDS.items():
        grid, store = read_grid(name, users=users, seeds=seeds), Store(folder / "runs")
        if grid.cells != read_grid(name).cells:
            grid = replace(grid, title=f"{grid.title}; a smaller run than the command's")
        sweep(grid, store, OnJoblib(2))
        drawn = of_grid(grid, summarize(store.read(grid.cells)))
        save(next(iter(drawn.values())), folder / name, ["svg"])
        for other in MORE.get(name, ()):
            save(drawn[other], folder / f"{name}-{other}", ["svg"])


def draw_audits(app):
    """A sound billboard and one that shares its noise between cells, under the same claim."""
    figure, parts = new_panels(["", ""], 2, (4.6, 4.2))
    bounds = []
    for axes, target, title in (
        (parts[0], None, "JDPBillboard: nothing found"),
        (parts[1], "private_rl_gym.experiments.broken:FreshNoise", "fresh noise for every release: broken"),
    ):
        claim = Choice("jdp", {"epsilon": 1.0, "delta": 0.0})
        plan = AuditConfig(claim, target=target, users=16, runs=6000, attacks=("one-release", "stream"))
        report = audit(plan)
        tradeoff(axes, report)
        axes.set_title(title, fontsize=10)
        bounds.append(report.bound)
    text = "Both claim epsilon = 1: attacks prove {:.2g} of the billboard, and {:.2g} of fresh noise".format(*bounds)
    save(say(figure, text), Path(app.srcdir) / "generated" / "audit", ["svg"])


def draw(app):
    folder = Path(app.srcdir) / "generated"
    folder.mkdir(exist_ok=True)
    statistic = TabularCounts(20, 6, 2)
    steps = np.unique(np.geomspace(1, USERS, 600).astype(int))
    figure, axes = new_axes("RiverSwim, H = 20, 50,000 users, epsilon = 1, delta = 1e-6 (dashed: delta = 0)")
    ends = []
    for counting, law, color, style in LINES:
        noise = COUNTING[counting](USERS, 1, law)
        scale, *_ = calibrate(noise, statistic, 1.0, 1e-6 if law == "gaussian" else 0.0, paper=False)
        width = scale * (np.sqrt(2) if law == "laplace" else 1.0)
        spread = [width * noise.spread(int(t)) for t in steps]
        axes.plot(steps, spread, style, color=color)
        ends.append((spread[-1], f"{counting}, {law}", color))
    least = min(ends)
    axes.plot(steps, steps / 12, ":", color=FAINT)
    ends.append((USERS / 12, "a count itself, on average", FAINT))
    axes.set(
        xscale="log", yscale="log", xlim=(1, USERS), xlabel="users so far", ylabel="noise in one count of transitions"
    )
    finish(axes)
    label_ends(axes, ends)
    most = max(end for end in ends if end[2] != FAINT)
    text = f"After {USERS:,} users {least[1]} has noise of {least[0]:,.0f}, and {most[1]} {most[0]:,.0f}"
    save(say(figure, text), folder / "counting", ["svg"])

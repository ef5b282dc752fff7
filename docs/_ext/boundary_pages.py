"""Pictures for the pages about trust boundaries and agents, computed when the site is built."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from private_rl_gym.experiments.auditing import AuditConfig, audit
from private_rl_gym.experiments.auditing.figure import tradeoff  # on axes of ours
from private_rl_gym.experiments.config import Choice
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
    ("matrix-factorization", "gaussian", "#0072B2", "-"),
    ("honaker-tree", "gaussian", "#D55E00", "-"),
    ("binary-tree", "gaussian", "#009E73", "-"),
    ("k-ary-tree", "laplace", "#CC79A7", "--"),
    ("honaker-tree", "laplace", "#D55E00", "--"),
    ("binary-tree", "laplace", "#009E73", "--"),
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
}


def draw_learning(app):
    """Pictures of agents: the main figure of the grid that their page names."""
    folder = Path(app.srcdir) / "generated"
    for name, (users, seeds) in GRIDS.items():
        grid, store = read_grid(name, users=users, seeds=seeds), Store(folder / "runs")
        sweep(grid, store, OnJoblib(2))
        drawn = of_grid(grid, summarize(store.read(grid.cells)))
        next(iter(drawn.values())).savefig(folder / f"{name}.png", dpi=120)
        if name == "dp-ucbvi":
            drawn["privacy"].savefig(folder / f"{name}-privacy.png", dpi=120)


def draw_audits(app):
    """A sound billboard and one that shares its noise between cells, under the same claim."""
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    parts = figure.subplots(1, 2)
    for axes, target, title in (
        (parts[0], None, "JDPBillboard: not broken"),
        (parts[1], "private_rl_gym.experiments.broken:FreshNoise", "fresh noise for every release: broken"),
    ):
        claim = Choice("jdp", {"epsilon": 1.0, "delta": 0.0})
        plan = AuditConfig(claim, target=target, users=16, runs=6000, attacks=("one-release", "stream"))
        tradeoff(axes, audit(plan))
        axes.set_title(title, fontsize=10)
    figure.savefig(Path(app.srcdir) / "generated" / "audit.png", dpi=130)


def draw(app):
    folder = Path(app.srcdir) / "generated"
    folder.mkdir(exist_ok=True)
    statistic = TabularCounts(20, 6, 2)
    steps = np.unique(np.geomspace(1, USERS, 600).astype(int))
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    for counting, law, color, style in LINES:
        noise = COUNTING[counting](USERS, 1, law)
        scale, *_ = calibrate(noise, statistic, 1.0, 1e-6 if law == "gaussian" else 0.0, paper=False)
        width = scale * (np.sqrt(2) if law == "laplace" else 1.0)
        axes.plot(steps, [width * noise.spread(int(t)) for t in steps], style, color=color, label=f"{counting}, {law}")
    axes.plot(steps, steps / 12, ":", color="#666666", label="a count itself, on average")
    axes.set(xscale="log", yscale="log", xlabel="users so far", ylabel="noise in one count of transitions")
    axes.set_title("RiverSwim, H = 20, 50,000 users, epsilon = 1, delta = 1e-6 (dashed: delta = 0)", fontsize=10)
    axes.legend(frameon=False, fontsize=8, ncols=2)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "counting.png", dpi=130)

"""Pictures for the pages about trust boundaries and agents, computed when the site is built."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from private_rl_gym.experiments import hard, learning, linear
from private_rl_gym.experiments.auditing import Plan, audit
from private_rl_gym.experiments.config import Choice
from private_rl_gym.experiments.figures import tradeoff  # on axes of ours
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


def draw_learning(app):
    found = learning.curves(users=20_000, seeds=2)
    learning.draw(found).savefig(Path(app.srcdir) / "generated" / "learning.png", dpi=130)
    found = learning.curves(users=50_000, seeds=5, agent=learning.TRUST)
    learning.draw(found, learning.TRUST).savefig(Path(app.srcdir) / "generated" / "learning-trust.png", dpi=130)
    for agent in learning.AGENTS:
        found = learning.curves(users=50_000 if agent == "SDPPE" else 5_000, seeds=1, agent=agent)
        learning.draw(found, agent).savefig(Path(app.srcdir) / "generated" / f"learning-{agent}.png", dpi=110)
    linear.main(
        ["--states", "5", "20", "50", "100", "1000", "--seeds", "3", "--out", str(Path(app.srcdir) / "generated")]
    )
    hard.main(["--users", "4000000", "--seeds", "1", "--out", str(Path(app.srcdir) / "generated")])


def draw_audits(app):
    """A sound billboard and one that shares its noise between cells, under the same claim."""
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    parts = figure.subplots(1, 2)
    for axes, target, title in (
        (parts[0], None, "JDPBillboard: not broken"),
        (parts[1], "private_rl_gym.experiments.broken:FreshNoise", "fresh noise for every release: broken"),
    ):
        claim = Choice("jdp", {"epsilon": 1.0, "delta": 0.0})
        plan = Plan(claim, target=target, users=16, runs=6000, attacks=("one-release", "stream"))
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
        scale, _ = calibrate(noise, statistic, 1.0, 1e-6, paper=False)
        width = scale * (np.sqrt(2) if law == "laplace" else 1.0)
        axes.plot(steps, [width * noise.spread(int(t)) for t in steps], style, color=color, label=f"{counting}, {law}")
    axes.plot(steps, steps / 12, ":", color="#666666", label="a count itself, on average")
    axes.set(xscale="log", yscale="log", xlabel="users so far", ylabel="noise in one count of transitions")
    axes.set_title("RiverSwim, H = 20, 50,000 users, epsilon = 1, delta = 1e-6 (dashed: delta = 0)", fontsize=10)
    axes.legend(frameon=False, fontsize=8, ncols=2)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "counting.png", dpi=130)

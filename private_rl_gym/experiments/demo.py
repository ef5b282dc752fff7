"""The first look: solve RiverSwim exactly, simulate many users, and save a figure of both.

Run with ``make demo``, or ``python -m private_rl_gym.experiments.demo --help``.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.envs import TabularModel
from private_rl_gym.planning.policy import Policy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Comparison", "compare", "draw", "main"]

LEFT, RIGHT = 0, 1
COLORS = {"optimal": "#0072B2", "coin flips": "#D55E00", "always left": "#666666"}


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """One policy: what it is worth, and what simulated users earned with it."""

    name: str
    exact: NDArray[np.float64]  # [h], expected reward earned up to and including stage h
    simulated: NDArray[np.float64]  # [h], the users' mean
    error: float  # standard error of the simulated return


def compare(model: TabularModel, users: int, seed: int) -> list[Comparison]:
    """Exact and simulated earnings of three policies, on the same users."""
    sizes = {"horizon": model.horizon, "n_states": model.n_states, "n_actions": model.n_actions}
    policies = {
        "optimal": model.optimal_policy(),
        "coin flips": Policy.uniform(**sizes),
        "always left": Policy.of(np.full(model.n_states, LEFT), **sizes),
    }
    user_stream, action_stream = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    tapes = model.draw_users(user_stream, users)
    uniforms = action_stream.random((users, model.horizon))
    found = []
    for name, policy in policies.items():
        trajectories = model.rollout(policy, tapes, uniforms)
        earned = (model.occupancy_of(policy) * model.rewards).sum(axis=(1, 2))
        found.append(
            Comparison(
                name=name,
                exact=np.cumsum(earned),
                simulated=np.cumsum(trajectories.rewards.mean(axis=0)),
                error=float(trajectories.returns.std() / np.sqrt(users)),
            )
        )
    return found


def draw(env: gym.Env[int, int], comparisons: list[Comparison], users: int) -> Figure:
    """A picture of the river, what the policies earn, and where the optimal swimmer is."""
    from matplotlib.figure import Figure

    model: TabularModel = env.unwrapped.model  # type: ignore[attr-defined]
    figure = Figure(figsize=(10, 8), layout="constrained")
    top, bottom = cast(Any, figure.subfigures(2, 1))
    river = top.subplots()
    river.imshow(_snapshot(env))
    river.set_axis_off()
    river.set_title("RiverSwim: a user of the optimal policy, halfway through her episode")

    earnings, places = bottom.subplots(1, 2)
    steps = np.arange(1, model.horizon + 1)
    for row in comparisons:
        color = COLORS[row.name]
        earnings.plot(steps, row.exact, color=color, label=f"{row.name}: {row.exact[-1]:.3f}")
        earnings.plot(steps, row.simulated, "o", color=color, markersize=4, markerfacecolor="none")
    earnings.set(xlabel="step", ylabel="reward earned so far", title=f"lines: exact, circles: mean of {users:,} users")
    earnings.legend(frameon=False)
    earnings.xaxis.get_major_locator().set_params(integer=True)
    earnings.spines[["top", "right"]].set_visible(False)

    visits = model.occupancy_of(model.optimal_policy()).sum(axis=2)
    extent = (0, model.horizon, -0.5, model.n_states - 0.5)
    image = places.imshow(visits.T, origin="lower", aspect="auto", cmap="Blues", extent=extent)
    places.xaxis.get_major_locator().set_params(integer=True)
    places.set(xlabel="step", ylabel="place in the river", title="where the optimal swimmer is")
    bottom.colorbar(image, ax=places, label="probability")
    return figure


def _snapshot(env: gym.Env[int, int]) -> NDArray[np.uint8]:
    """The river with a user of the optimal policy halfway through her episode."""
    model: TabularModel = env.unwrapped.model  # type: ignore[attr-defined]
    policy = model.optimal_policy()
    state, _ = env.reset(seed=0)
    for h in range(model.horizon // 2):
        state, *_ = env.step(policy.action(h, state))
    frame = env.render()
    return np.asarray(frame, dtype=np.uint8)


def main(arguments: list[str] | None = None) -> Path:
    """Run the demo and say where the figure is."""
    parser = argparse.ArgumentParser(prog="python -m private_rl_gym.experiments.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder of the figure (default: demo)")
    parser.add_argument("--users", type=int, default=50_000, help="users to simulate (default: 50000)")
    parser.add_argument("--horizon", type=int, default=20, help="steps of a user (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="which users, and which coin flips (default: 0)")
    options = parser.parse_args(arguments)
    if options.users < 1:
        parser.error(f"--users is {options.users}: it must be at least 1.")
    if options.seed < 0:
        parser.error(f"--seed is {options.seed}: it must be 0 or more.")
    if options.out.exists() and not options.out.is_dir():
        parser.error(f"--out is {options.out}, which is a file: name a folder.")
    try:
        env = gym.make("PrivateRL/RiverSwim-v0", horizon=options.horizon, render_mode="rgb_array")
    except ValueError as error:
        parser.error(str(error))
    model: TabularModel = env.unwrapped.model  # type: ignore[attr-defined]

    print("Solving RiverSwim (the first run compiles the solvers, for some seconds) ...", flush=True)
    start = time.perf_counter()
    print(f"V* = {model.optimal_value():.4f}, in {time.perf_counter() - start:.1f} s")
    print(f"Simulating {options.users:,} users of {model.horizon} steps under three policies ...", flush=True)
    start = time.perf_counter()
    comparisons = compare(model, options.users, options.seed)
    print(f"done in {time.perf_counter() - start:.1f} s\n")
    print(f"{'policy':<14}{'exact':>9}{'simulated':>11}")
    for row in comparisons:
        print(f"{row.name:<14}{row.exact[-1]:>9.4f}{row.simulated[-1]:>11.4f} +- {row.error:.4f}")

    options.out.mkdir(parents=True, exist_ok=True)
    path: Path = options.out / "riverswim.png"
    draw(env, comparisons, options.users).savefig(path, dpi=120)
    print(f"\nThe figure: {path}")
    return path


if __name__ == "__main__":
    main()

"""Learning curves on RiverSwim: what privacy costs a learner, and what it does not.

Run with ``python -m private_rl_gym.experiments.learning``; ``--help`` lists the options.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.agents import (
    APEVE,
    DPUCBVI,
    PSRL,
    PUCB,
    RLSVI,
    SDPPE,
    UCBVI,
    PrivateLinOptPO,
    PrivateLinOptVI,
    PrivateUCBPO,
    PrivateUCBVI,
)
from private_rl_gym.agents.base import Agent
from private_rl_gym.experiments.oracle import RegretCallback
from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard, SDPShuffler

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Curve", "curves", "draw", "main"]

TRUST = "trust"
COLORS = ("#000000", "#0072B2", "#56B4E9", "#009E73", "#D55E00")


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Regret of one learner after every user, seed by seed."""

    name: str
    promise: str
    regret: NDArray[np.float64]  # [seed, user]


Maker = Callable[[gym.Env[Any, Any]], Agent]


def problem(agent: str | None = None) -> gym.Env[Any, Any]:
    """What is learned: RiverSwim, or a smaller problem for policy elimination, which explores every corner of it."""
    if agent == "SDPPE":
        return gym.make("PrivateRL/Garnet-v0", n_states=5, n_actions=2, horizon=5, branching=2)
    if agent in LINEAR:
        return gym.make("PrivateRL/RiverSwimMixture-v0", horizon=20)
    return gym.make("PrivateRL/RiverSwim-v0", horizon=20)


def learners(users: int, seed: int, agent: str | None = None) -> dict[str, Maker]:
    """What is compared: UCBVI with DP-UCBVI, or the ways to run one agent. Seeds of agent and noise are apart."""

    def plain(kind: type[Agent], **options: Any) -> Maker:
        batch = 100 if issubclass(kind, PrivateLinOptPO) else 1
        return lambda env: kind(
            "TabularPolicy",
            OpenBillboard(env, users, statistic=_summed(kind), publish_every=batch),
            seed=seed,
            **options,
        )

    def jdp(kind: type[Agent], epsilon: float) -> Maker:
        return lambda env: kind(
            "TabularPolicy",
            JDPBillboard(env, epsilon, 1e-6, users, statistic=_summed(kind), publish_every=100, seed=seed),
            seed=seed,
        )

    def ldp(kind: type[Agent], epsilon: float) -> Maker:
        return lambda env: kind(
            "TabularPolicy",
            LDPUserSide(env, epsilon, users=users, statistic=_summed(kind), publish_every=100, seed=seed),
            seed=seed,
        )

    def sdp(kind: type[Agent], epsilon: float, batch: int) -> Maker:
        return lambda env: kind(
            "TabularPolicy", SDPShuffler(env, epsilon, 1e-6, users, batch_size=batch, seed=seed), seed=seed
        )

    reference = {"UCBVI, not private": plain(UCBVI)}
    if agent == TRUST:
        return {
            "exact sums, not private": plain(DPUCBVI),
            "JDP: a billboard is trusted": jdp(DPUCBVI, 10.0),
            "SDP: a shuffler is trusted": sdp(DPUCBVI, 10.0, max(1, users // 25)),
            "LDP: nobody is trusted": ldp(DPUCBVI, 10.0),
        }
    if agent == "SDPPE":
        exact: Maker = lambda env: APEVE(  # noqa: E731 - as the others
            "TabularPolicy", OpenBillboard(env, users, publish_every=users), seed=seed
        )
        return {
            "APEVE, exact sums": exact,
            **{f"SDPPE, SDP, epsilon = {epsilon:g}": sdp(SDPPE, epsilon, users) for epsilon in (10.0, 1.0)},
        }
    if agent is None:
        return {
            **reference,
            "DP-UCBVI, JDP, epsilon = 100": jdp(DPUCBVI, 100.0),
            "DP-UCBVI, JDP, epsilon = 10": jdp(DPUCBVI, 10.0),
            "DP-UCBVI, JDP, epsilon = 1": jdp(DPUCBVI, 1.0),
            "DP-UCBVI, LDP, epsilon = 10": ldp(DPUCBVI, 10.0),
        }
    if agent == "UCBVI":
        return {"Bernstein": plain(UCBVI), "Hoeffding": plain(UCBVI, variant="hoeffding")}
    if agent == "PSRL":
        return {**reference, "PSRL": plain(PSRL)}
    if agent == "RLSVI":
        return {f"RLSVI, beta_scale = {scale:g}": plain(RLSVI, beta_scale=scale) for scale in (1.0, 1e-3, 1e-5)}
    kind = PRIVATE[agent]
    return {
        f"{agent}, exact sums": plain(kind),
        **{f"{agent}, JDP, epsilon = {epsilon:g}": jdp(kind, epsilon) for epsilon in (100.0, 10.0)},
        f"{agent}, LDP, epsilon = 100": ldp(kind, 100.0),
    }


def _summed(kind: type[Agent]) -> Any:
    return kind.learns_from


LINEAR: dict[str, type[Agent]] = {"PrivateLinOptPO": PrivateLinOptPO, "PrivateLinOptVI": PrivateLinOptVI}
PRIVATE: dict[str, type[Agent]] = {
    **LINEAR,
    "DPUCBVI": DPUCBVI,
    "PUCB": PUCB,
    "PrivateUCBPO": PrivateUCBPO,
    "PrivateUCBVI": PrivateUCBVI,
}
AGENTS = ("UCBVI", *PRIVATE, "SDPPE", "RLSVI", "PSRL")


def curves(
    users: int, seeds: int, say: Callable[[str], None] = lambda _: None, agent: str | None = None
) -> list[Curve]:
    """Exact regret of every learner, on the same users for all of them."""
    found = []
    for name in learners(users, 0, agent):
        rows, promise = [], ""
        for seed in range(seeds):
            env = problem(agent)
            env.reset(seed=1000 + seed)
            learner, oracle = learners(users, seed, agent)[name](env), RegretCallback()
            learner.learn(users * learner.horizon, callback=oracle)
            rows.append(oracle.curve)
            assert learner.board is not None  # noqa: S101 - it was given one
            promise = str(learner.guarantee)
        found.append(Curve(name, promise, np.array(rows)))
        say(f"{name:<32} regret {found[-1].regret[:, -1].mean():>10,.0f}")
    return found


def draw(found: list[Curve], agent: str | None = None) -> Figure:
    """Mean regret with the range over seeds, and the line of never learning."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    model = problem(agent).unwrapped.model  # type: ignore[attr-defined]
    users = np.arange(1, found[0].regret.shape[1] + 1)
    never = (model.optimal_value() - model.value_of([0] * model.n_states)) * users
    axes.plot(users, never, ":", color="#999999", label="always action 0")
    for curve, color in zip(found, COLORS, strict=False):
        axes.plot(users, curve.regret.mean(axis=0), color=color, label=curve.name)
        axes.fill_between(users, curve.regret.min(axis=0), curve.regret.max(axis=0), color=color, alpha=0.2, lw=0)
    axes.set(xlabel="users", ylabel="regret", yscale="log", ylim=(10, None))
    where = "Garnet, S = 5, A = 2, H = 5" if agent == "SDPPE" else "RiverSwim, H = 20"
    if agent in LINEAR:
        where = "RiverSwimMixture, d = 3, H = 20"
    if agent == TRUST:
        where += ", DP-UCBVI, epsilon = 10"
    axes.set_title(f"{where}: true epsilon, replace one user, delta = 1e-6, or 0 (LDP)", fontsize=10)
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def main(arguments: list[str] | None = None) -> Path:
    """Run, print, and say where the figure and the numbers are."""
    parser = argparse.ArgumentParser(prog="python -m private_rl_gym.experiments.learning", description=__doc__)
    parser.add_argument("--users", type=int, default=50_000, help="users to learn from (default: 50000)")
    parser.add_argument("--seeds", type=int, default=5, help="runs of every learner (default: 5)")
    parser.add_argument("--agent", choices=AGENTS, help="the ways to run one agent, in place of the comparison")
    parser.add_argument("--trust", action="store_true", help="the three trust models, in place of the comparison")
    parser.add_argument("--out", type=Path, default=Path("learning"), help="folder (default: learning)")
    options = parser.parse_args(arguments)
    try:
        positive_integer(options.users, "--users", "users")
        positive_integer(options.seeds, "--seeds", "runs")
    except ValueError as error:
        parser.error(str(error))
    if options.trust and options.agent:
        parser.error("--trust and --agent are two comparisons: choose one.")
    agent = TRUST if options.trust else options.agent
    print(f"{options.seeds} runs of {options.users:,} users each; some seconds a run.", flush=True)
    found = curves(options.users, options.seeds, lambda line: print(line, flush=True), agent)
    options.out.mkdir(parents=True, exist_ok=True)
    name = "learning" if agent is None else f"learning-{agent}"
    path: Path = options.out / f"{name}.png"
    draw(found, agent).savefig(path, dpi=130)
    numbers = {curve.name: {"promise": curve.promise, "regret": curve.regret[:, -1].tolist()} for curve in found}
    path.with_suffix(".json").write_text(json.dumps(numbers, indent=2))
    print(f"The figure: {path}", file=sys.stdout)
    return path


if __name__ == "__main__":
    main()

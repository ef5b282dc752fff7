"""Returns of policy gradients against users, at several epsilon and without noise: ``python benchmarks/deep.py``.

Every run has defaults only. A curve is the mean return of the policy that the agent would deploy, measured on an
environment of the experimenter's own. Records are kept in a file, so that a second run goes on where the first ended.

    python benchmarks/deep.py CartPole-v1 --users 0.5=50000 1=30000 2=30000 inf=30000 --seeds 3 --records cartpole.json
    python benchmarks/deep.py CartPole-v1 --records cartpole.json --draw docs/images/cartpole.svg
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from private_rl_gym import agents
from private_rl_gym.experiments.drawing import look_of, new_axes, save
from private_rl_gym.wrappers import Boundary, JDPBillboard, OpenBillboard

POINTS = 20  # of a curve
EPISODES = 100  # of an evaluation


def board_of(env_id: str, epsilon: float, users: int, seed: int, horizon: int | None) -> Boundary:
    """The board of one run; epsilon is infinite for one without noise."""
    env = gym.make(env_id)
    env.unwrapped.reset(seed=seed)
    if math.isinf(epsilon):
        return OpenBillboard(env, users=users, horizon=horizon)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return JDPBillboard(env, epsilon, 1e-6, users=users, seed=seed, horizon=horizon)


def mean_return(env_id: str, agent: Any, horizon: int | None, seed: int) -> float:
    """The mean return of the policy that would be deployed, by users who are the experimenter's."""
    test = OpenBillboard(gym.make(env_id), statistic=agent.layers(), horizon=horizon)
    test.unwrapped.reset(seed=10_000 + seed)
    totals: list[Any] = []

    class Returns:
        def left(self, users: Any, _count: int) -> None:
            there = np.arange(users.rewards.shape[1]) < users.lengths[:, None]
            totals.append((users.rewards * there).sum(axis=1))

    test.observe(Returns())
    test.serve(agent.best_policy(), EPISODES, rng=np.random.default_rng(seed))
    return float(np.concatenate(totals).mean())


def curve(
    env_id: str, name: str, epsilon: float, users: int, seed: int, horizon: int | None
) -> list[tuple[int, float]]:
    """Pairs (users, mean return)."""
    board = board_of(env_id, epsilon, users, seed, horizon)
    agent = getattr(agents, name)("MlpPolicy", board, seed=seed)
    points = [(0, mean_return(env_id, agent, horizon, seed))]
    for stop in np.linspace(0, users, POINTS + 1).astype(int)[1:]:
        agent.learn(int(stop - points[-1][0]) * agent.horizon, reset_num_timesteps=False)
        points.append((int(stop), mean_return(env_id, agent, horizon, seed)))
    return points


def draw(records: list[dict[str, Any]], env_id: str, target: Path) -> None:
    """Curves of the mean over seeds, one for each epsilon, and the range of seeds around it."""
    canvas, panel = new_axes(f"{env_id}: return against users (delta = 1e-6, replace one user)")
    pairs = sorted({(record["epsilon"], record["users"]) for record in records}, reverse=True)
    for number, (epsilon, most) in enumerate(pairs):
        look = look_of(number)
        runs = [
            np.array(record["points"]) for record in records if (record["epsilon"], record["users"]) == (epsilon, most)
        ]
        users, returns = runs[0][1:, 0], np.array([run[1:, 1] for run in runs])
        label = "not private" if math.isinf(epsilon) else f"epsilon = {epsilon:g}"
        panel.plot(users, returns.mean(axis=0), label=f"{label} ({len(runs)} seeds)", **look)
        panel.fill_between(users, returns.min(axis=0), returns.max(axis=0), color=look["color"], alpha=0.15, lw=0)
    null = np.mean([record["points"][0][1] for record in records])
    panel.axhline(null, color="0.5", linestyle=":", label="random play")
    panel.set(xlabel="users", ylabel="mean return of the policy", xscale="log")
    panel.legend(frameon=False)
    save(canvas, target.with_suffix(""), [target.suffix.removeprefix(".")])


def main() -> None:
    """Run what is missing, print a table, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("env")
    parser.add_argument("--agent", default="DPPolicyGradient")
    parser.add_argument("--users", nargs="*", default=[], metavar="EPSILON=USERS")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--horizon", type=int)
    parser.add_argument("--records", type=Path, default=Path("deep.json"))
    parser.add_argument("--draw", type=Path)
    given = parser.parse_args()
    records = json.loads(given.records.read_text()) if given.records.exists() else []
    for seed in range(given.seeds):
        for pair in given.users:
            epsilon, users = float(pair.split("=")[0]), int(pair.split("=")[1])
            about = {"env": given.env, "agent": given.agent, "epsilon": epsilon, "users": users, "seed": seed}
            if not any(about.items() <= record.items() for record in records):
                points = curve(given.env, given.agent, epsilon, users, seed, given.horizon)
                records.append({**about, "points": points})
                given.records.write_text(json.dumps(records))
    mine = [record for record in records if (record["env"], record["agent"]) == (given.env, given.agent)]
    for epsilon, users in sorted({(record["epsilon"], record["users"]) for record in mine}):
        last = [r["points"][-1][1] for r in mine if (r["epsilon"], r["users"]) == (epsilon, users)]
        print(f"{given.env} {given.agent} epsilon={epsilon:g} users={users}: {np.round(last, 1).tolist()}")
    if given.draw:
        draw(mine, given.env, given.draw)


if __name__ == "__main__":
    main()

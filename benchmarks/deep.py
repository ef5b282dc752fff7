"""Returns of policy gradients against users: ``python benchmarks/deep.py``.

Curves are at several epsilon and without noise.

Every run has defaults only. A curve is the mean return of the policy that the agent would deploy, measured on an
environment of the experimenter's own. Each run is one line of a file of records; runs that are there are not run again.

    python benchmarks/deep.py CartPole-v1 --users 0.5=50000 1=10000 inf=10000 --seeds 3 --records deep.jsonl
    python benchmarks/deep.py CartPole-v1 --agent PPO --steps 100000 --seeds 2 --records deep.jsonl
    python benchmarks/deep.py --records deep.jsonl --table
    python benchmarks/deep.py CartPole-v1 Acrobot-v1 --records deep.jsonl --draw docs/images/deep.svg
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from pathlib import Path
from typing import Any

import classic
import gymnasium as gym
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

from private_rl_gym import agents
from private_rl_gym.lab.figures.drawing import COLORS, FAINT, finish, label_ends, new_panels, save, say
from private_rl_gym.lab.registry import EXACT
from private_rl_gym.wrappers import Boundary, JDPBillboard, OpenBillboard

EPISODES = 100  # of an evaluation
SHORT = 50  # steps: episodes that are shorter are evaluated
MANY = 5_000  # times, because little is earned in each
CHANCE = 0.1  # of the first return: a gain without noise that is smaller is no learning
FEW = 10  # of one of Stable-Baselines3's PPO, which meets one user at a time
HUES = {math.inf: EXACT, 8.0: COLORS[1], 2.0: COLORS[2], 1.0: COLORS[5], 0.5: COLORS[4]}  # the same in every figure
NEAR = 0.9  # of the gain without noise

Points = list[tuple[int, float, int]]
"""Users, mean return of the policy, and steps of the environment so far."""


class Watch:
    """Steps and returns of users, for the experimenter."""

    def __init__(self) -> None:
        self.steps = 0
        self.returns: list[Any] = []

    def left(self, users: Any, _count: int) -> None:
        """Record a group of users."""
        if hasattr(users, "lengths"):  # users of tables have none
            there = np.arange(users.rewards.shape[1]) < users.lengths[:, None]
            self.steps += int(users.lengths.sum())
            self.returns.append((users.rewards * there).sum(axis=1))


def make(env_id: str) -> gym.Env[Any, Any]:
    """Return the environment; of a MiniGrid, only the picture is observed.

    Its missions are sentences.
    """
    if not env_id.startswith("MiniGrid"):
        return gym.make(env_id)
    from minigrid.wrappers import ImgObsWrapper  # needs `pip install minigrid`

    return ImgObsWrapper(gym.make(env_id))  # type: ignore[no-any-return]


def board_of(env_id: str, epsilon: float, users: int, seed: int, horizon: int | None) -> Boundary:
    """Return the board of one run; infinite epsilon means no noise."""
    env = make(env_id)
    env.unwrapped.reset(seed=seed)
    if math.isinf(epsilon):
        return OpenBillboard(env, users=users, horizon=horizon)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return JDPBillboard(env, epsilon, 1e-6, users=users, rng=seed, horizon=horizon)


def mean_return(env_id: str, agent: Any, horizon: int | None, seed: int) -> float:
    """Return the mean return of the policy that would be deployed.

    It is measured with users of the experimenter.
    """
    if not hasattr(agent, "layers"):
        return float(make(env_id).unwrapped.model.value_of(agent.best_policy()))  # type: ignore[attr-defined] # exact
    test = OpenBillboard(make(env_id), statistic=agent.layers(), horizon=horizon)
    test.unwrapped.reset(seed=10_000 + seed)
    watch = Watch()
    test.audit.observe(watch)
    test.serve(agent.best_policy(), MANY if agent.horizon < SHORT else EPISODES, rng=np.random.default_rng(seed))
    return float(np.concatenate(watch.returns).mean())


def curve(
    env_id: str, name: str, epsilon: float, users: int, seed: int, horizon: int | None, points: int, **options: Any
) -> Points:
    """Return the curve of one run of a learner of this package."""
    board, watch = board_of(env_id, epsilon, users, seed, horizon), Watch()
    kind = getattr(agents, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one without noise says so
        agent = kind(kind.policies[0], board, seed=seed, **options)
    board.audit.observe(watch)
    found = [(0, mean_return(env_id, agent, horizon, seed), 0)]
    for stop in np.linspace(0, users, points + 1).astype(int)[1:]:
        agent.learn(int(stop - found[-1][0]) * agent.horizon, reset_num_timesteps=False)
        found.append((int(stop), mean_return(env_id, agent, horizon, seed), watch.steps))
    return found


def signal(env_id: str, horizon: int | None, users: int = 1_000) -> str:
    """Return a table row with the mean clipped gradient before learning, and its noise.

    The row has the norm of the mean.

    The square of the norm of the mean is the product of the means of two batches, so that chance does not add to it.
    """
    board = board_of(env_id, math.inf, 20 * 200, 0, horizon)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agent: Any = agents.DPPolicyGradient("MlpPolicy", board, seed=0, batch_size=users, learning_rate=0.0)
    means = []
    for stop in (200 + 2 * users, users):  # users who say how large returns are, and what they expect; gradients
        agent.learn(stop * agent.horizon, reset_num_timesteps=False)
        means.append(board.batch.gradient / (agent.shares[0] * board.batch.users))
    size, row = agent.network.size, [env_id]
    row += [f"{size:,}", f"{math.sqrt(max(0.0, float(means[0] @ means[1]))):.3f}"]
    for epsilon in (2.0, 8.0):
        private = board_of(env_id, epsilon, 20, 0, horizon)
        agents.DPPolicyGradient("MlpPolicy", private)  # settles what is summed
        row.append(f"{private.expected_noise(1) / agent.shares[0] * math.sqrt(size):,.0f}")
    return "| " + " | ".join(row) + " |"


class Evaluations(BaseCallback):
    """Evaluations of a learner of Stable-Baselines3 at evenly spaced steps."""

    def __init__(self, env_id: str, every: int) -> None:
        super().__init__()
        self.test, self.every, self.found = Monitor(make(env_id)), every, [(0, math.nan, 0)]

    def _on_step(self) -> bool:
        if self.num_timesteps % self.every == 0:
            mean = evaluate_policy(self.model, self.test, n_eval_episodes=FEW, deterministic=False)[0]
            self.found.append((0, float(mean), self.num_timesteps))
        return True


def peer(env_id: str, steps: int, seed: int, points: int) -> Points:
    """Return the curve of Stable-Baselines3's PPO with its defaults, by steps."""
    watch = Evaluations(env_id, steps // points)
    PPO("MlpPolicy", make(env_id), seed=seed, device="cpu").learn(steps, callback=watch)
    return watch.found


def run(given: argparse.Namespace, records: list[dict[str, Any]]) -> None:
    """Run the missing configurations, and append each run to the file."""
    pairs = [(float(pair.split("=")[0]), int(pair.split("=")[1])) for pair in given.users]
    pairs += [(math.inf, given.steps)] if given.steps else []
    for seed in range(given.seeds):
        for env_id in given.envs:
            for epsilon, users in pairs:
                about = {"env": env_id, "agent": given.agent, "epsilon": epsilon, "users": users, "seed": seed}
                about |= {"options": given.options} if given.options else {}
                if any(about.items() <= record.items() for record in records):
                    continue
                points = (
                    peer(env_id, users, seed, given.points)
                    if given.agent == "PPO"
                    else curve(
                        env_id, given.agent, epsilon, users, seed, given.horizon, given.points, **(given.options or {})
                    )
                )
                records.append({**about, "horizon": given.horizon, "points": points})
                with given.records.open("a") as file:
                    file.write(json.dumps(records[-1]) + "\n")


def grouped(records: list[dict[str, Any]]) -> dict[tuple[str, str, float, int], list[dict[str, Any]]]:
    """Return groups of runs that differ only in their seed, in order."""
    groups: dict[tuple[str, str, float, int], list[dict[str, Any]]] = {}
    for record in sorted(records, key=lambda r: (r["env"], r["agent"], r["epsilon"], r["users"], r["seed"])):
        key = record["env"], record["agent"], record["epsilon"], record["users"]
        groups.setdefault(key, []).append(record)
    return groups


def table(records: list[dict[str, Any]]) -> str:
    """Return a table of last policies in Markdown.

    The last column is the gain over random play, as a share of the gain without noise.
    """
    groups = grouped(records)
    last = {key: np.array([record["points"][-1][1] for record in group]) for key, group in groups.items()}
    lines = ["| environment | learner | epsilon | users | seeds | mean return (least, most) | share |"]
    lines.append("|---|---|---|---|---|---|---|")
    for (env_id, agent, epsilon, users), values in last.items():
        null = np.mean([record["points"][0][1] for record in groups[env_id, agent, epsilon, users]])
        same = [one.mean() for key, one in last.items() if key[:2] == (env_id, agent) and math.isinf(key[2])]
        most = max(same, default=null) - null
        share = (values.mean() - null) / most if most > CHANCE * abs(null) else math.nan
        told = "" if math.isinf(epsilon) or math.isnan(share) else f"{share:.2f}"
        who = f"{users:,} steps" if agent == "PPO" else f"{users:,}"
        spread = f"{values.mean():.4g} ({values.min():.4g}, {values.max():.4g})"
        noise = "not private" if math.isinf(epsilon) else f"{epsilon:g}"
        lines.append(f"| {env_id} | {agent} | {noise} | {who} | {len(values)} | {spread} | {told} |")
    return "\n".join(lines)


def needed(records: list[dict[str, Any]], goal: float) -> str:
    """Return a line for each group of runs, with the steps they needed.

    These are the steps of the environment before the first evaluation at the goal, by seed.
    """
    lines = []
    for (env_id, agent, epsilon, users), group in grouped(records).items():
        firsts = [next((steps for _, mean, steps in r["points"] if mean >= goal), math.inf) for r in group]
        lines.append(f"{env_id} {agent} epsilon={epsilon:g} users={users}: {', '.join(f'{n:,}' for n in firsts)}")
    return "\n".join(lines)


def finding(records: list[dict[str, Any]], env_ids: list[str], agent: str) -> str:
    """Return a sentence about the problems that are learned despite noise.

    It has their number by epsilon. For a single problem, it has the least share of the gain without noise.
    """
    shares: dict[float, list[float]] = {}
    for env_id in env_ids:
        here = longest({key: group for key, group in grouped(records).items() if key[:2] == (env_id, agent)})
        last = {epsilon: np.mean([r["points"][-1][1] for r in group]) for epsilon, group in here.items()}
        null = np.mean([record["points"][0][1] for group in here.values() for record in group])
        for epsilon in last:
            if math.isfinite(epsilon) and math.inf in last:
                shares.setdefault(epsilon, []).append(float((last[epsilon] - null) / (last[math.inf] - null)))
    if len(env_ids) == 1:
        least = math.floor(100.0 * min(share for found in shares.values() for share in found)) / 100.0
        learned = f"{env_ids[0]} is learned to {least:g} of what is learned without noise"
        return f"From epsilon = {min(shares):g} on, {learned}"
    counts = [
        f"{sum(share >= NEAR for share in found)} of {len(found)} problems at epsilon = {epsilon:g}"
        for epsilon, found in sorted(shares.items())
    ]
    return f"Learned to {NEAR:g} or more of what is learned without noise: {', and '.join(counts)}"


def longest(groups: dict[tuple[str, str, float, int], list[dict[str, Any]]]) -> dict[float, list[dict[str, Any]]]:
    """Return the runs at each epsilon with the most users."""
    return {epsilon: group for (_, _, epsilon, users), group in sorted(groups.items(), key=lambda g: g[0]) if users > 0}


def draw(records: list[dict[str, Any]], env_ids: list[str], agent: str, target: Path) -> None:
    """Draw a panel for each environment.

    It has the mean over seeds and their range, at each epsilon, and random play.
    """
    columns = min(2, len(env_ids))
    titles = [""] if len(env_ids) == 1 else env_ids
    canvas, panels = new_panels(titles, columns, (8.0, 4.6) if len(env_ids) == 1 else (5.0, 3.4))
    for env_id, panel in zip(env_ids, panels, strict=True):
        here = longest({key: group for key, group in grouped(records).items() if key[:2] == (env_id, agent)})
        most = max(group[0]["points"][-1][0] for group in here.values())
        ends, nulls = [], []
        for epsilon in sorted(here, reverse=True):
            group, color = here[epsilon], HUES.get(epsilon, COLORS[6])
            curves = [np.array(record["points"], dtype=float).T[:2] for record in group]
            users = min((found for found, _ in curves), key=len)  # runs may have been looked at more often
            returns = np.array([np.interp(users, *curve) for curve in curves])
            nulls += [record["points"][0][1] for record in group]
            panel.plot(users, returns.mean(axis=0), color=color)
            panel.fill_between(users, returns.min(axis=0), returns.max(axis=0), color=color, alpha=0.15, lw=0)
            if users[-1] < most:  # the label is farther off
                panel.plot(users[-1], returns[:, -1].mean(), "o", color=color, ms=5)
            name = "not private" if math.isinf(epsilon) else f"epsilon = {epsilon:g}"
            ends.append((float(returns.mean(axis=0)[-1]), f"{name} ({len(group)})", color))
        null = float(np.mean(nulls))
        panel.axhline(null, color=FAINT, linestyle=":")
        panel.set(xlabel="users", ylabel="mean return", xlim=(0, most))
        panel.locator_params(axis="x", nbins=5)
        finish(panel)
        label_ends(panel, [*ends, (null, "random play", FAINT)], apart=0.07)
    drawn = [env_ids[0], agent] if len(env_ids) == 1 else [agent]
    note = "; ".join([", ".join(drawn), "mean over seeds, their number in brackets", "bands: range over seeds"])
    say(canvas, finding(records, env_ids, agent), note)
    save(canvas, target.with_suffix(""), [target.suffix.removeprefix(".")])


def main() -> None:
    """Run the missing configurations, print a table, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("envs", nargs="*", metavar="ENV")
    parser.add_argument("--agent", default="DPPolicyGradient", help="an agent of this package, or PPO")
    parser.add_argument("--users", nargs="*", default=[], metavar="EPSILON=USERS")
    parser.add_argument("--steps", type=int, default=0, help="steps of PPO")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--points", type=int, default=10, help="points of a curve")
    parser.add_argument("--horizon", type=int)
    parser.add_argument("--options", type=json.loads, help="arguments of the agent that are no defaults, in JSON")
    parser.add_argument("--records", type=Path, default=Path(__file__).with_suffix(".jsonl"))
    parser.add_argument("--table", action="store_true", help="print a table of all records")
    parser.add_argument("--goal", type=float, help="print the steps until an evaluation is at least this")
    parser.add_argument("--signal", action="store_true", help="print how large gradients are before learning")
    parser.add_argument("--draw", type=Path, help="draw the curves of these environments")
    parser.add_argument("--at", nargs="*", type=float, help="draw these epsilons alone")
    given = parser.parse_args()
    classic.register()
    records = [json.loads(line) for line in given.records.open()] if given.records.exists() else []
    run(given, records)
    plain = [record for record in records if "options" not in record]
    if given.table:
        print(table(plain))
    if given.goal is not None:
        print(needed(plain, given.goal))
    if given.signal:
        for env_id in given.envs:
            print(signal(env_id, given.horizon))
    if given.draw:
        draw([r for r in plain if not given.at or r["epsilon"] in given.at], given.envs, given.agent, given.draw)


if __name__ == "__main__":
    main()

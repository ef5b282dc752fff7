"""How fast users are, as ratios within one run.

Run with ``make bench``. Machines differ and are shared, so what counts is each ratio against its target; the
absolute times are there to give an idea.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from rows import Row, best_of, report

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.planning import backward_induction

RIVER = "PrivateRL/RiverSwim-v0"
USERS = 1024


def single_step() -> Row:
    """A raw step of RiverSwim against one of FrozenLake-v1."""

    def seconds_per_step(env: gym.Env[Any, Any], steps: int = 20_000) -> float:
        env.reset(seed=0)
        actions = np.random.default_rng(0).integers(env.action_space.n, size=steps).tolist()

        def run() -> None:
            step, reset = env.step, env.reset
            for action in actions:
                if step(action)[2]:
                    reset()

        return best_of(run) / steps

    lake = seconds_per_step(gym.make("FrozenLake-v1").unwrapped)
    river = seconds_per_step(gym.make(RIVER, horizon=20).unwrapped)
    return Row(
        f"raw step against FrozenLake-v1 ({river * 1e9:.0f} ns)",
        lake / river,
        "times faster",
        3,
        at_least=True,
    )


def vector_step() -> Row:
    """1,024 users in the native vector environment against SyncVectorEnv."""

    def seconds(mode: str, steps: int) -> float:
        envs = gym.make_vec(RIVER, num_envs=USERS, vectorization_mode=mode, horizon=20)
        envs.reset(seed=0)
        actions = np.random.default_rng(0).integers(2, size=(steps, USERS))
        time_taken = best_of(lambda: [envs.step(row) for row in actions], repeats=5)
        envs.close()
        return time_taken / steps

    native, sync = seconds("vector_entry_point", 420), seconds("sync", 42)
    what = f"{USERS} vector users against SyncVectorEnv ({native * 1e6:.0f} us a step)"
    return Row(what, sync / native, "times faster", 40, at_least=True)


def compiled_rollout(*, stochastic: bool) -> Row:
    """Steps a second of the compiled rollout."""
    model = gym.make(RIVER, horizon=20).unwrapped.model
    rng = np.random.default_rng(0)
    tapes, uniforms = model.draw_users(rng, 50_000), rng.random((50_000, model.horizon))
    policy = model.policy(np.full((6, 2), 0.5)) if stochastic else model.optimal_policy()
    model.rollout(policy, tapes, uniforms)  # compiles
    seconds = best_of(lambda: model.rollout(policy, tapes, uniforms))
    what = f"compiled rollout, {'stochastic' if stochastic else 'deterministic'} policy"
    return Row(what, tapes.shape[0] * model.horizon / seconds, "steps/s", 5e6, at_least=True)


def planning() -> Row:
    """Exact planning for RiverSwim."""
    model = gym.make(RIVER, horizon=20).unwrapped.model
    plan = lambda: backward_induction(model.transitions, model.rewards, model.horizon)  # noqa: E731
    plan()  # compiles
    seconds = best_of(lambda: [plan() for _ in range(2_000)]) / 2_000
    return Row("backward induction, RiverSwim, H = 20", seconds * 1e6, "microseconds", 10, at_least=False)


def import_time() -> Row:
    """Importing the package against importing gymnasium, each in fresh processes, alternating."""

    def seconds(module: str) -> float:
        code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
        return float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)

    pairs = [(seconds("private_rl_gym"), seconds("gymnasium")) for _ in range(15)]
    ratio = min(ours for ours, _ in pairs) / min(theirs for _, theirs in pairs)
    return Row("import private_rl_gym against import gymnasium", ratio, "times", 1.3, at_least=False)


def main() -> None:
    """Measure everything and print a table."""
    rollouts = (partial(compiled_rollout, stochastic=kind) for kind in (False, True))
    sys.exit(report((import_time, single_step, vector_step, *rollouts, planning)))


if __name__ == "__main__":
    main()

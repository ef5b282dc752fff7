"""The speed of users, as ratios within one run.

Run with ``make bench``. Machines differ and are shared, so what counts is each ratio against its target.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from rows import Row, best_of, ratio, report

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.planning import backward_induction

RIVER = "PrivateRL/RiverSwim-v0"
USERS = 1024


def lake_steps(steps: int) -> Callable[[], None]:
    """Return a function that takes raw steps of FrozenLake-v1, the yardstick."""
    return steps_of(gym.make("FrozenLake-v1").unwrapped, steps)


def steps_of(env: gym.Env[Any, Any], steps: int) -> Callable[[], None]:
    """Return a function that takes random steps."""
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(env.action_space.n, size=steps).tolist()

    def run() -> None:
        step, reset = env.step, env.reset
        for action in actions:
            if step(action)[2]:
                reset()

    return run


def single_step(steps: int = 20_000) -> Row:
    """Measure a raw step of RiverSwim against one of FrozenLake-v1."""
    times, seconds = ratio(lake_steps(steps), steps_of(gym.make(RIVER, horizon=20).unwrapped, steps))
    aside = f"{seconds / times / steps * 1e9:.0f} ns"
    return Row("a raw step of FrozenLake-v1 against one of RiverSwim", times, 3, at_least=True, aside=aside)


def vector_step() -> Row:
    """Measure 1,024 users in the native vector environment against SyncVectorEnv."""

    def seconds(mode: str, steps: int) -> float:
        envs = gym.make_vec(RIVER, num_envs=USERS, vectorization_mode=mode, horizon=20)
        envs.reset(seed=0)
        actions = np.random.default_rng(0).integers(2, size=(steps, USERS))
        time_taken = best_of(lambda: [envs.step(row) for row in actions], repeats=5)
        envs.close()
        return time_taken / steps

    native, sync = seconds("vector_entry_point", 420), seconds("sync", 42)
    what = f"a step of {USERS} users in SyncVectorEnv against the native vector"
    return Row(what, sync / native, 40, at_least=True, aside=f"{native * 1e6:.0f} us a step")


def compiled_rollout(*, stochastic: bool) -> Row:
    """Measure a raw step of FrozenLake-v1 against a compiled one of RiverSwim."""
    model = gym.make(RIVER, horizon=20).unwrapped.model
    rng = np.random.default_rng(0)
    tapes, uniforms = model.draw_users(rng, 50_000), rng.random((50_000, model.horizon))
    policy = model.policy(np.full((6, 2), 0.5)) if stochastic else model.optimal_policy()
    rollout = lambda: model.rollout(policy, tapes, uniforms)  # noqa: E731
    rollout()  # compiles
    steps = 20_000
    times, seconds = ratio(rollout, lake_steps(steps))
    each = tapes.shape[0] * model.horizon
    what = (
        f"a raw step of FrozenLake-v1 against a compiled one, {'stochastic' if stochastic else 'deterministic'} policy"
    )
    aside = f"{each / seconds / 1e6:.0f} million steps a second"
    return Row(what, each / steps / times, 100, at_least=True, aside=aside)


def planning() -> Row:
    """Measure exact planning for RiverSwim against the same in NumPy.

    NumPy plans stage by stage.
    """
    model = gym.make(RIVER, horizon=20).unwrapped.model
    plan = lambda: backward_induction(model.transitions, model.rewards, model.horizon)  # noqa: E731
    plan()  # compiles

    def in_numpy() -> None:
        value = np.zeros(model.n_states)
        for _ in range(model.horizon):
            value = (model.rewards[0] + model.transitions[0] @ value).max(axis=1)

    times, seconds = ratio(lambda: [in_numpy() for _ in range(500)], lambda: [plan() for _ in range(500)])
    aside = f"{seconds / times / 500 * 1e6:.0f} us"
    return Row("backward induction of RiverSwim in NumPy against ours", times, 5, at_least=True, aside=aside)


def import_time() -> Row:
    """Measure the import of the package against that of gymnasium.

    Fresh processes of both alternate.
    """

    def seconds(module: str) -> float:
        code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
        return float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)

    pairs = [(seconds("private_rl_gym"), seconds("gymnasium")) for _ in range(15)]
    times = min(ours for ours, _ in pairs) / min(theirs for _, theirs in pairs)
    return Row("import private_rl_gym against import gymnasium", times, 1.3)


def main() -> None:
    """Measure everything and print a table."""
    rollouts = (partial(compiled_rollout, stochastic=kind) for kind in (False, True))
    sys.exit(report((import_time, single_step, vector_step, *rollouts, planning)))


if __name__ == "__main__":
    main()

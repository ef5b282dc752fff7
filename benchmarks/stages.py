"""Problems whose stages differ: ``python benchmarks/stages.py``.

FrugalUCBVI's page shows the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.agents import DPUCBVI, FrugalUCBVI
from private_rl_gym.agents.base import Agent
from private_rl_gym.envs import TabularEnv, TabularModel
from private_rl_gym.lab.regret import learn_with_regret
from private_rl_gym.wrappers import JDPBillboard

USERS, HALF, H = 50_000, 10, 20


def river(turns: bool) -> TabularEnv:
    """Return a RiverSwim whose stages differ.

    Its actions change places half way, or it pays in the second half alone.
    """
    still = gym.make("PrivateRL/RiverSwim-v0", horizon=H).unwrapped.model  # type: ignore[attr-defined]
    P, R = (np.repeat(array, H, axis=0) for array in (still.transitions, still.rewards))
    if turns:
        P[HALF:], R[HALF:] = P[HALF:, :, ::-1], R[HALF:, :, ::-1]
    else:
        R[:HALF] = 0.0
    return TabularEnv(TabularModel(P, R, still.initial, H))


PROBLEMS: dict[str, Callable[[], gym.Env[Any, Any]]] = {
    "turning river": lambda: river(turns=True),
    "late river": lambda: river(turns=False),
    "Garnet, stationary=False": lambda: gym.make("PrivateRL/Garnet-v0", stationary=False),
}
LEARNERS: dict[str, tuple[type[Agent], dict[str, Any], dict[str, Any]]] = {
    "time-homogeneous": (FrugalUCBVI, {"stationary": True}, {}),
    "steps may differ": (FrugalUCBVI, {}, {}),
    "DPUCBVI": (DPUCBVI, {}, {"schedule": 100}),
}


def regret(env: gym.Env[Any, Any], learner: str, epsilon: float, seed: int) -> float:
    """Return the regret of all users."""
    agent, arguments, options = LEARNERS[learner]
    board = JDPBillboard(env, epsilon, 1e-6, users=USERS, rng=1000 + seed, **options)
    board.unwrapped.reset(seed=seed)
    return float(learn_with_regret(agent("TabularPolicy", board, seed=seed, **arguments), USERS)[-1])


if __name__ == "__main__":
    print(f"{'':28}" + "".join(f"{name:>26}" for name in LEARNERS))
    for problem, make in PROBLEMS.items():
        for epsilon in (1.0, 4.0):
            means = [np.mean([regret(make(), name, epsilon, seed) for seed in range(3)]) for name in LEARNERS]
            print(f"{problem}, {epsilon:g}".ljust(28) + "".join(f"{mean:>26,.0f}" for mean in means), flush=True)

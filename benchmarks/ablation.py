"""FrugalUCBVI without each of its parts: ``python benchmarks/ablation.py``.

The agent's page shows the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import gymnasium as gym
import numpy as np

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.agents import FrugalUCBVI
from private_rl_gym.agents.tabular import frugal_constants, frugal_ucbvi
from private_rl_gym.lab.regret import learn_with_regret
from private_rl_gym.privacy.requests import Wanted
from private_rl_gym.wrappers import JDPBillboard

USERS, DELTA = 50_000, 1e-6
PROBLEMS = {  # environment, epsilon, seeds
    "RiverSwim, 1": (lambda: gym.make("PrivateRL/RiverSwim-v0", horizon=20), 1.0, range(16)),
    "RiverSwim, 4": (lambda: gym.make("PrivateRL/RiverSwim-v0", horizon=20), 4.0, range(16)),
    "HardMDP, 1": (lambda: gym.make("PrivateRL/HardMDP-v0"), 1.0, range(8)),
    "Garnet, 1": (lambda: gym.make("PrivateRL/Garnet-v0"), 1.0, range(8)),
}


def constant(**values: float) -> list[Any]:
    """Return patches that set other constants of the agent, or of its model."""
    return [patch.object(frugal_constants, name, value) for name, value in values.items()]


def asking(change: Callable[[Wanted], Wanted]) -> list[Any]:
    """Return a patch of the request that the agent makes to users.

    ``change`` maps the agent's own request to another one.
    """
    original = FrugalUCBVI._choose_request

    def asked(self: FrugalUCBVI, *arguments: Any, **options: Any) -> Wanted:
        return change(original(self, *arguments, **options))

    return [patch.object(FrugalUCBVI, "_choose_request", asked)]


def without_trials() -> list[Any]:
    """Return a patch that makes all others run the policy that looks best.

    These are all users who do not explore.
    """

    def judge(self: Any, model: Any, best: Any) -> None:
        del model
        self.incumbent = best

    return [patch.object(frugal_ucbvi._Contest, "judge", judge)]


def anything(request: Wanted) -> Wanted:
    """Return the same request, with all cells wanted."""
    return replace(request, cells=np.ones_like(request.cells))


VARIANTS = {
    "as it is": (dict, []),
    "batches that double": (dict, constant(GROWTH=1.0, GROWTH_LATER=1.0)),
    "numbers of reports as received, not as predicted": (dict, constant(FORESIGHT=1e6)),
    "wanted cells alone, no random stage": (dict, asking(lambda request: replace(request, anywhere=0.0))),
    "no steering: any cell is wanted": (dict, asking(anything)),
    "one report of each user, always": (dict, constant(LONG_BATCH=10**9)),
    "long batches as soon as all cells are known": (dict, constant(SETTLED=0.0)),
    "the contest goes on where there is little noise": (dict, constant(QUIET=0.0)),
    "required value that never falls": (dict, constant(HOPE=float("inf"), TRIES=10**9)),
    "no drawn models": (dict, constant(DRAWN=0)),
    "draws that ignore other actions": (dict, constant(OTHERS=0.0, ANYTHING=1.0)),
    "everyone explores": (lambda: {"explorers": 1.0}, []),
    "no trials: the newest policy for all": (dict, without_trials()),
    "no bonus for noise": (lambda: {"noise_bonus": 0.0}, []),
    "no bonus for sampling": (lambda: {"sampling_bonus": 0.0, "explorers_bonus": 0.0}, []),
}


def regret(make: Callable[[], Any], epsilon: float, options: Mapping[str, float], seed: int) -> float:
    """Return the regret of one run."""
    env = make()
    env.reset(seed=seed)
    agent = FrugalUCBVI(
        env=JDPBillboard(env, epsilon, DELTA, users=USERS, rng=seed), seed=seed, stationary=True, **options
    )
    return float(learn_with_regret(agent, USERS)[-1])


def main() -> None:
    """Print a row for each variant."""
    print(f"delta = {DELTA}, {USERS} users; mean regret over seeds (the worst), in hundreds", flush=True)
    print(f"| without | {' | '.join(PROBLEMS)} |", flush=True)
    for name, (options, patches) in VARIANTS.items():
        cells = []
        with ExitStack() as stack:
            for change in patches:
                stack.enter_context(change)
            for make, epsilon, seeds in PROBLEMS.values():
                runs = np.array([regret(make, epsilon, options(), seed) for seed in seeds])
                cells.append(f"{runs.mean() / 100:.0f} ({runs.max() / 100:.0f})")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

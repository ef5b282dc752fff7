"""FrugalUCBVI without each of its parts: python benchmarks/ablation.py. The agent's page shows the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import gymnasium as gym
import numpy as np

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.agents import FrugalUCBVI, frugal_ucbvi, reported_model
from private_rl_gym.experiments.regret import stretches
from private_rl_gym.privacy.asks import Wanted
from private_rl_gym.wrappers import JDPBillboard

USERS, DELTA = 50_000, 1e-6
PROBLEMS = {  # environment, epsilon, seeds
    "RiverSwim, 1": (lambda: gym.make("PrivateRL/RiverSwim-v0", horizon=20), 1.0, range(16)),
    "RiverSwim, 4": (lambda: gym.make("PrivateRL/RiverSwim-v0", horizon=20), 4.0, range(16)),
    "HardMDP, 1": (lambda: gym.make("PrivateRL/HardMDP-v0"), 1.0, range(8)),
    "Garnet, 1": (lambda: gym.make("PrivateRL/Garnet-v0"), 1.0, range(8)),
}


def constant(**values: float) -> list[Any]:
    """Other values of the constants of the agent, or of its model."""
    modules = {name: frugal_ucbvi if hasattr(frugal_ucbvi, name) else reported_model for name in values}
    return [patch.object(modules[name], name, value) for name, value in values.items()]


def asking(change: Callable[[Wanted], Wanted]) -> list[Any]:
    """Users asked otherwise: ``change`` maps the request that the agent makes to another one."""
    original = FrugalUCBVI._ask_for

    def asked(self: FrugalUCBVI, *arguments: Any, **options: Any) -> Wanted:
        return change(original(self, *arguments, **options))

    return [patch.object(FrugalUCBVI, "_ask_for", asked)]


def without_trials() -> list[Any]:
    """The policy that looks best is run by all who do not explore."""

    def judge(self: Any, model: Any, best: Any) -> None:
        del model
        self.incumbent = best

    return [patch.object(frugal_ucbvi._Contest, "judge", judge)]


def anything(ask: Wanted) -> Wanted:
    """The same request, where all cells are wanted."""
    return replace(ask, cells=np.ones_like(ask.cells))


VARIANTS = {
    "as it is": (dict, []),
    "batches that double": (dict, constant(GROWTH=1.0, GROWTH_LATER=1.0)),
    "numbers of reports as received, not as the model predicts them": (dict, constant(FORESIGHT=1e6)),
    "wanted cells alone, no random stage": (dict, asking(lambda ask: replace(ask, anywhere=0.0))),
    "no steering: any cell is wanted": (dict, asking(anything)),
    "one report of each user, always": (dict, constant(LONG_BATCH=10**9)),
    "long batches as soon as all cells are known": (dict, constant(SETTLED=0.0)),
    "the contest goes on where there is little noise": (dict, constant(QUIET=0.0)),
    "hope that never falls": (dict, constant(HOPE=float("inf"), TRIES=10**9)),
    "no drawn models": (dict, constant(DRAWN=0)),
    "draws that know nothing of other actions": (dict, constant(OTHERS=0.0, ANYTHING=1.0)),
    "everyone explores": (lambda: {"explorers": 1.0}, []),
    "no trials: the newest policy for all": (dict, without_trials()),
    "no bonus for noise": (lambda: {"noise_bonus": 0.0}, []),
    "no bonus for sampling": (lambda: {"sampling_bonus": 0.0, "explorers_bonus": 0.0}, []),
}


def regret(make: Callable[[], Any], epsilon: float, options: Mapping[str, float], seed: int) -> float:
    """The regret of one run."""
    env = make()
    env.reset(seed=seed)
    agent = FrugalUCBVI(env=JDPBillboard(env, epsilon, DELTA, USERS, seed=seed), seed=seed, **options)
    return sum(stretch.gap * (stretch.stop - stretch.start) for stretch in stretches(agent, USERS))


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

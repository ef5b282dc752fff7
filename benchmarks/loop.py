"""Stable-Baselines3's PPO on private models, on users themselves, and on what users say under local privacy.

Run with ``python benchmarks/loop.py``. The same learner, with the same hyperparameters and as many steps, is trained

* on the users' environment, without privacy;
* on the model that 50,000 users behind a ``JDPBillboard`` make, to whom ``ModelLoop`` sends policies in rounds; what a
  learner does between rounds are steps in models too, 12,800 in all;
* on ``LDPPerStep``, whose steps are users' steps, so that fewer of them come.

The value of each last policy is exact, as a share of the best. PPO differs much from seed to seed, with privacy and
without; FrozenLake, whose only reward is far away, has twice the steps of RiverSwim.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial

import gymnasium as gym
import numpy as np
from rows import Row, report
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.agents import ModelLoop
from private_rl_gym.planning.policy import Policy
from private_rl_gym.wrappers import JDPBillboard, LDPPerStep

USERS, EPSILON, DELTA = 50_000, 2.0, 1e-6
STEPS = {"RiverSwim": 80_000, "FrozenLake": 160_000}
EACH, ROUNDS, ENVS, H = 3_200, 5, 16, 20
SEEDS = (0, 1, 2)
HYPER = {"n_steps": 40, "batch_size": 160, "n_epochs": 5, "learning_rate": 1e-3, "ent_coef": 0.01, "gamma": 1.0}
TARGET = 0.85


def users(name: str, seed: int) -> gym.Env:
    """The users, who show the stage; both problems are the same at every stage, and start in state 0."""
    env = gym.make(f"PrivateRL/{name}-v0", horizon=H, observe_time=True)
    env.unwrapped.reset(seed=1_000 + seed)
    return env


def several(name: str, seed: int, wrapped: Callable[[gym.Env, int], gym.Env] = lambda env, _: env) -> DummyVecEnv:
    """Users side by side."""
    return DummyVecEnv(
        [partial(lambda n: wrapped(users(name, 100 * seed + n), 100 * seed + n), n) for n in range(ENVS)]
    )


def learner(env: VecEnv, seed: int) -> PPO:
    """The learner."""
    return PPO("MlpPolicy", env, seed=seed, device="cpu", **HYPER)


def share(name: str, policy: Policy) -> float:
    """The value of a policy as a share of the best."""
    model = users(name, 0).unwrapped.model
    return model.value_of(policy) / model.optimal_value()


def played(model: PPO, name: str) -> Policy:
    """The learner's best actions as a table."""
    truth = users(name, 0).unwrapped.model
    places = np.stack(np.meshgrid(np.arange(H), np.arange(truth.n_states), indexing="ij"), axis=-1)
    actions, _ = model.predict(places.reshape(-1, 2), deterministic=True)
    return Policy(np.asarray(actions, dtype=np.int64).reshape(H, -1), truth.n_actions)


def on_users(name: str, seed: int) -> float:
    """Without privacy."""
    return share(name, played(learner(several(name, seed), seed).learn(STEPS[name]), name))


def on_models(name: str, seed: int) -> float:
    """On the models of a billboard."""
    board = JDPBillboard(
        users(name, seed), EPSILON, DELTA, users=USERS, batch_size=USERS // ROUNDS, stationary=True, seed=seed
    )
    loop = ModelLoop(
        partial(learner, seed=seed),
        board,
        timesteps=EACH,
        last=STEPS[name],
        rounds=ROUNDS,
        belief="sampled",
        start=0,
        n_envs=ENVS,
        seed=seed,
    )
    return share(name, loop.learn(USERS).policy)


def on_reports(name: str, seed: int) -> float:
    """On steps that users randomize."""
    told = several(name, seed, lambda env, number: LDPPerStep(env, EPSILON, seed=number))
    return share(name, played(learner(told, seed).learn(STEPS[name]), name))


def measure(name: str, seeds: tuple[int, ...]) -> Row:
    """Run all three, and hold the models against the users."""
    found = {run.__name__: [run(name, seed) for seed in seeds] for run in (on_users, on_models, on_reports)}
    print(name, json.dumps({kind: [round(value, 3) for value in values] for kind, values in found.items()}), flush=True)
    means = {kind: float(np.mean(values)) for kind, values in found.items()}
    ratio = means["on_models"] / max(means["on_users"], 1e-9)
    aside = f"{means['on_models']:.2f} of the best; users {means['on_users']:.2f}, reports {means['on_reports']:.2f}"
    return Row(f"PPO on private models against PPO on users, {name}", ratio, TARGET, at_least=True, aside=aside)


if __name__ == "__main__":
    sys.exit(report(partial(measure, name, SEEDS) for name in STEPS))

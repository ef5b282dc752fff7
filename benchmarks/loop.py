"""Stable-Baselines3's PPO and DQN on private models, on users, and under local privacy.

Run with ``python benchmarks/loop.py``. The same learner, with the same hyperparameters and as many steps, is trained

* on the users' environment, without privacy;
* on the model of 50,000 users behind a ``JDPBillboard``. For PPO, ``ModelLoop`` sends its policies to users in rounds;
  between rounds, PPO takes steps in models, too, 12,800 in all. For DQN, ``PSRL`` sends the users to explore;
* on ``LDPPerStep``, whose steps are users' steps, so that there are fewer users.

The value of each last policy is exact, as a share of the best. PPO differs much from seed to seed, with privacy and
without, and DQN differs less. FrozenLake has its only reward far away, and gets twice the steps of RiverSwim.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial

import gymnasium as gym
import numpy as np
from rows import Row, report
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.agents import PSRL, ModelLoop
from private_rl_gym.planning.policy import Policy
from private_rl_gym.wrappers import JDPBillboard, LDPPerStep

USERS, EPSILON, DELTA = 50_000, 2.0, 1e-6
STEPS = {"RiverSwim": 80_000, "FrozenLake": 160_000}
EACH, ROUNDS, ENVS, H = 3_200, 5, 16, 20
SEEDS = (0, 1, 2)
HYPER = {"n_steps": 40, "batch_size": 160, "n_epochs": 5, "learning_rate": 1e-3, "ent_coef": 0.01, "gamma": 1.0}
HYPER_DQN = {
    "learning_rate": 1e-3,
    "gamma": 1.0,
    "exploration_fraction": 0.5,
    "exploration_final_eps": 0.1,
    "target_update_interval": 2_000,
    "train_freq": 1,
    "batch_size": 128,
    "buffer_size": 160_000,
    "learning_starts": 5_000,
}
TARGET = 0.85

Learner = Callable[[VecEnv, int], PPO | DQN]


def users(name: str, seed: int) -> gym.Env:
    """Return users who observe the stage.

    Both problems are the same at every stage, and start in state 0.
    """
    env = gym.make(f"PrivateRL/{name}-v0", horizon=H, observe_time=True)
    env.unwrapped.reset(seed=1_000 + seed)
    return env


def several(name: str, seed: int, wrapped: Callable[[gym.Env, int], gym.Env] = lambda env, _: env) -> DummyVecEnv:
    """Return several users side by side."""
    return DummyVecEnv(
        [partial(lambda n: wrapped(users(name, 100 * seed + n), 100 * seed + n), n) for n in range(ENVS)]
    )


def ppo(env: VecEnv, seed: int) -> PPO:
    """Return PPO, which forgets the steps that it has learned from."""
    return PPO("MlpPolicy", env, seed=seed, device="cpu", **HYPER)


def dqn(env: VecEnv, seed: int) -> DQN:
    """Return DQN, which remembers the steps that it has learned from."""
    return DQN("MlpPolicy", env, seed=seed, device="cpu", **HYPER_DQN)


def share(name: str, policy: Policy) -> float:
    """Return the value of a policy as a share of the best."""
    model = users(name, 0).unwrapped.model
    return model.value_of(policy) / model.optimal_value()


def played(model: PPO | DQN, name: str) -> Policy:
    """Return the learner's best actions as a table."""
    truth = users(name, 0).unwrapped.model
    places = np.stack(np.meshgrid(np.arange(H), np.arange(truth.n_states), indexing="ij"), axis=-1)
    actions, _ = model.predict(places.reshape(-1, 2), deterministic=True)
    return Policy(np.asarray(actions, dtype=np.int64).reshape(H, -1), truth.n_actions)


def on_users(name: str, seed: int, learner: Learner) -> float:
    """Return the value that is learned without privacy."""
    return share(name, played(learner(several(name, seed), seed).learn(STEPS[name]), name))


def on_explored(name: str, seed: int, learner: Learner) -> float:
    """Return the value that is learned on one pessimistic model.

    Posterior sampling sends the users to explore, in 20 batches, and they make the model.
    """
    board = JDPBillboard(
        users(name, seed), EPSILON, DELTA, users=USERS, schedule=USERS // 20, stationary=True, rng=seed
    )
    PSRL("TabularPolicy", board, seed=seed).learn(USERS * H)
    models = DummyVecEnv([partial(board.private_model, belief="pessimistic", start=0)] * ENVS)
    models.seed(seed)
    return share(name, played(learner(models, seed).learn(STEPS[name]), name))


def on_models(name: str, seed: int, learner: Learner) -> float:
    """Return the value that is learned on models of a billboard, in rounds."""
    board = JDPBillboard(
        users(name, seed), EPSILON, DELTA, users=USERS, schedule=USERS // ROUNDS, stationary=True, rng=seed
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


def on_reports(name: str, seed: int, learner: Learner) -> float:
    """Return the value that is learned on steps that users randomize."""
    told = several(name, seed, lambda env, number: LDPPerStep(env, EPSILON, rng=number))
    return share(name, played(learner(told, seed).learn(STEPS[name]), name))


def measure(name: str, seeds: tuple[int, ...], learner: Learner, models: Callable[[str, int, Learner], float]) -> Row:
    """Run all three, and measure the models against the users."""
    found = {run.__name__: [run(name, seed, learner) for seed in seeds] for run in (on_users, models, on_reports)}
    who = learner.__name__.upper()
    told = {kind: [round(value, 3) for value in values] for kind, values in found.items()}
    print(who, name, json.dumps(told), flush=True)
    of_users, of_models, of_reports = (float(np.mean(values)) for values in found.values())
    aside = f"{of_models:.2f} of the best; users {of_users:.2f}, reports {of_reports:.2f}"
    what = f"{who} on private models against {who} on users, {name}"
    return Row(what, of_models / max(of_users, 1e-9), TARGET, at_least=True, aside=aside)


if __name__ == "__main__":
    pairs = ((ppo, on_models), (dqn, on_explored))
    sys.exit(report(partial(measure, name, SEEDS, *pair) for name in STEPS for pair in pairs))

"""Stable-Baselines3's PPO with users who randomize every step.

Two lines of a usual script are different. Each patient reports noisy states and noisy rewards, at epsilon for their
whole episode, and has to trust neither the learner nor its operator. PPO is Stable-Baselines3's own, without changes.
You see the values of its policies, without privacy and with the guarantee, beside random treatments. No other boundary
needs so little trust, and none costs as much: at a small epsilon, or in long episodes, PPO learns nothing this way.

    python examples/ppo_per_step.py --users 5000 --epsilon 30
"""

import argparse
from typing import Any

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.envs import Cohort
from private_rl_gym.wrappers import LDPPerStep  # the first line

parser = argparse.ArgumentParser(description="PPO with users who randomize every step.")
parser.add_argument("--users", type=int, default=5_000)
parser.add_argument("--epsilon", type=float, default=30.0)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.set_num_threads(1)  # networks this small are slower on more

HORIZON = 6
truth = Cohort(horizon=HORIZON).model  # known to the experimenter


def worth(**changed: Any) -> float:
    """Run the usual script, and return the exact value of its likeliest treatments."""
    env = make_vec_env("PrivateRL/Cohort-v0", 50, args.seed, env_kwargs={"horizon": HORIZON}, **changed)
    model = PPO("MlpPolicy", env, n_steps=2 * HORIZON, batch_size=150, n_epochs=5, learning_rate=3e-3, seed=args.seed)
    model.learn(args.users * HORIZON)
    actions, _ = model.predict(list(range(truth.n_states)), deterministic=True)
    return truth.value_of(actions)


told = {"wrapper_class": LDPPerStep, "wrapper_kwargs": {"epsilon": args.epsilon}}  # the second line

print(f"guarantee             {LDPPerStep(Cohort(horizon=HORIZON), args.epsilon).ledger}")
print(f"treatments at random  {truth.value_of([[1.0 / truth.n_actions] * truth.n_actions] * truth.n_states):.2f}")
print(f"PPO, not private      {worth():.2f}")
print(f"PPO, private          {worth(**told):.2f}")
print(f"the best policy       {truth.optimal_value():.2f} good quarters of {HORIZON}")

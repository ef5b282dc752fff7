"""Stable-Baselines3's learners: their usual settings in a model, and the networks that act in them.

* ``trained`` - a learner of a class, trained in a simulation; ``worth`` - its return there
* ``parameters_of`` - those of its policy as a plain network, for users
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.world.fit import WorldModel
from private_rl_gym.agents.world.simulation import Simulation

__all__ = ["GAMMA", "SETTINGS", "parameters_of", "trained"]

GAMMA = 0.98
"""The usual factor on rewards for each further step."""

TRIALS = 32
"""Users of a model who try a learner's best actions."""

GREEDY = 100.0
"""Factor on values of actions, for which the best one is chosen nearly always."""

SPREAD = -0.7
"""Logarithm of the deviation of actions, for learners whose deviations depend on the state or are none."""

SETTINGS: dict[str, tuple[int, dict[str, Any]]] = {
    "PPO": (
        16,
        {"n_steps": 128, "batch_size": 256, "n_epochs": 10, "learning_rate": 7e-4, "gamma": GAMMA, "gae_lambda": 0.9},
    ),
    "A2C": (16, {"n_steps": 16, "gamma": GAMMA, "gae_lambda": 0.9}),
    "SAC": (8, {"gamma": GAMMA, "learning_starts": 1000, "train_freq": 8, "gradient_steps": 24, "learning_rate": 1e-3}),
    "TD3": (8, {"gamma": GAMMA, "learning_starts": 1000, "train_freq": 8, "gradient_steps": 24, "learning_rate": 1e-3}),
    "DDPG": (
        8,
        {"gamma": GAMMA, "learning_starts": 1000, "train_freq": 8, "gradient_steps": 24, "learning_rate": 1e-3},
    ),
    "DQN": (
        8,
        {
            "gamma": GAMMA,
            "learning_rate": 2e-3,
            "batch_size": 128,
            "buffer_size": 100_000,
            "learning_starts": 1000,
            "train_freq": 8,
            "gradient_steps": 32,
            "target_update_interval": 50,
            "exploration_fraction": 0.3,
            "exploration_final_eps": 0.04,
        },
    ),
}
"""For each learner: users side by side, and arguments. From Stable-Baselines3's tuned ones for classic control."""


def trained(
    kind: type, make: Callable[[int, int], Simulation], steps: int, seed: int, options: Mapping[str, Any], rivals: int
) -> tuple[Any, float]:
    """Return a learner after so many steps in a simulation, and its return there.

    Of several rivals, which take a third of the steps, the best one goes on.

    Args:
        kind: The class of the learner.
        make: Returns a simulation with so many users and this seed.
        steps: Number of steps.
        seed: The seed of the first rival; others count on from there.
        options: Arguments of the learner, in place of the usual ones.
        rivals: Number of rivals.
    """
    count, usual = SETTINGS[kind.__name__]
    arguments, first = {**usual, "device": "cpu", "verbose": 0, **options}, steps if rivals == 1 else steps // 3
    begun = [
        kind("MlpPolicy", make(count, one), seed=one, **arguments).learn(first) for one in range(seed, seed + rivals)
    ]
    values = [worth(learner, make(TRIALS, seed)) for learner in begun]
    best = begun[int(np.argmax(values))]
    if rivals == 1:
        return best, values[0]
    best.learn(steps - first, reset_num_timesteps=False)
    return best, worth(best, make(TRIALS, seed))


def worth(learner: Any, simulation: Simulation) -> float:
    """Return the mean return of a learner's best actions in a simulation."""
    seen = simulation.reset()
    for _ in range(simulation.rules.horizon):
        actions, _state = learner.predict(seen, deterministic=True)
        simulation.step_async(actions)
        seen, *_ = simulation.step_wait()
    return float(np.mean(simulation.returns))


def parameters_of(learner: Any, model: WorldModel) -> NDArray[np.float64]:
    """Return the parameters of the network in a learner.

    They are for states that are not standardized.
    """
    policy, factor = learner.policy, 1.0
    stds: NDArray[np.float64] = np.full(model.basis.continuous, SPREAD)
    if hasattr(policy, "mlp_extractor"):  # on-policy
        parts = [*policy.mlp_extractor.policy_net, policy.action_net]
        if model.basis.continuous:
            stds = policy.log_std.detach().double().numpy()
    elif hasattr(policy, "q_net"):  # DQN
        parts, factor = [*policy.q_net.q_net], GREEDY
    elif hasattr(policy.actor, "latent_pi"):  # SAC
        parts = [*policy.actor.latent_pi, policy.actor.mu]
    else:  # TD3, DDPG
        parts = [*policy.actor.mu]
    linear = [part for part in parts if hasattr(part, "weight")]
    weights = [part.weight.detach().double().numpy().T.copy() for part in linear]
    biases = [part.bias.detach().double().numpy().copy() for part in linear]
    biases[0] -= (model.centre / model.scale) @ weights[0]
    weights[0] /= model.scale[:, None]
    weights[-1], biases[-1] = weights[-1] * factor, biases[-1] * factor
    return np.concatenate([array.ravel() for pair in zip(weights, biases, strict=True) for array in pair] + [stds])

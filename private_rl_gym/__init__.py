"""Private reinforcement learning as ordinary Gymnasium code.

Importing this package registers its environments under the ``PrivateRL/`` namespace. It stays light: neither
torch nor numba is loaded until something needs them.

Example:
    >>> import gymnasium as gym
    >>> import private_rl_gym
    >>> env = gym.make("PrivateRL/RiverSwim-v0", horizon=20)
    >>> round(env.unwrapped.model.optimal_value(), 4)
    3.3973
"""

from __future__ import annotations

from gymnasium.envs.registration import register, registry

__all__ = ["ENVIRONMENTS", "__version__"]

__version__ = "0.1.0"

ENVIRONMENTS: dict[str, tuple[str, str]] = {
    "PrivateRL/RiverSwim-v0": ("river_swim", "RiverSwim"),
    "PrivateRL/HardMDP-v0": ("hard", "HardMDP"),
    "PrivateRL/HardBandit-v0": ("hard", "HardBandit"),
    "PrivateRL/LinearMixture-v0": ("linear_mixture", "LinearMixture"),
    "PrivateRL/RiverSwimMixture-v0": ("river_swim_mixture", "RiverSwimMixture"),
    "PrivateRL/Garnet-v0": ("garnet", "Garnet"),
    "PrivateRL/FrozenLake-v0": ("frozen_lake", "FrozenLake"),
    "PrivateRL/Cohort-v0": ("cohort", "Cohort"),
}
"""Every registered id, with the module of ``private_rl_gym.envs`` and the class behind it."""

for _id, (_module, _family) in ENVIRONMENTS.items():
    if _id not in registry:  # importlib.reload must not register twice
        register(
            id=_id,
            entry_point=f"private_rl_gym.envs.{_module}:{_family}",
            vector_entry_point=f"private_rl_gym.envs.{_module}:{_family}Vector",
        )

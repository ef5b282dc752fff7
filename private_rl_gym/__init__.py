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

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gymnasium.envs.registration import register, registry

if TYPE_CHECKING:
    from private_rl_gym.agents.base import Agent

__all__ = ["ENVIRONMENTS", "__version__", "make_private"]

__version__ = "0.1.0"

ENVIRONMENTS: dict[str, tuple[str, str]] = {
    "PrivateRL/RiverSwim-v0": ("river_swim", "RiverSwim"),
    "PrivateRL/HardMDP-v0": ("hard", "HardMDP"),
    "PrivateRL/HardBandit-v0": ("hard", "HardBandit"),
    "PrivateRL/LinearMixture-v0": ("linear_mixture", "LinearMixture"),
    "PrivateRL/HardLinearMixture-v0": ("hard_mixture", "HardLinearMixture"),
    "PrivateRL/RiverSwimMixture-v0": ("river_swim_mixture", "RiverSwimMixture"),
    "PrivateRL/Garnet-v0": ("garnet", "Garnet"),
    "PrivateRL/FrozenLake-v0": ("frozen_lake", "FrozenLake"),
    "PrivateRL/Cohort-v0": ("cohort", "Cohort"),
}
"""Every registered id, with the module of ``private_rl_gym.envs`` and the class behind it."""

_ROOMS = ("agents", "envs", "planning", "privacy", "wrappers")


def __getattr__(name: str) -> ModuleType:
    """Return a package inside this one, which is loaded on first access."""
    if name in _ROOMS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}: there are {', '.join(_ROOMS)}.")


def __dir__() -> list[str]:
    special = (name for name in globals() if name.startswith("__"))
    return sorted({*special, *__all__, *_ROOMS})  # not what this file imports


for _id, (_module, _family) in ENVIRONMENTS.items():
    if _id not in registry:  # importlib.reload must not register twice
        register(
            id=_id,
            entry_point=f"private_rl_gym.envs.{_module}:{_family}",
            vector_entry_point=f"private_rl_gym.envs.vector:{_family}",
        )


BOARDS = {"JDP": "JDPBillboard", "LDP": "LDPUserSide", "SDP": "SDPShuffler", "PerStep": "LDPPerStep"}
"""Boundaries that ids name, as ``PrivateRL/RiverSwim-JDP-v0``, with their classes."""

for _id in ENVIRONMENTS:
    for _short, _class in BOARDS.items():
        _boarded = _id.replace("-v", f"-{_short}-v")
        if _boarded not in registry:
            register(
                id=_boarded,
                entry_point="private_rl_gym.wrappers.ids:boarded",
                kwargs={"kind": _class, "inside": _id},
                order_enforce=False,  # a boundary does so itself, and is what agents are given
                disable_env_checker=True,
            )


def make_private(
    agent: Any,
    env: Any,
    *,
    epsilon: float,
    delta: float = 1e-6,
    users: int,
    horizon: int | None = None,
    **options: Any,
) -> Agent:
    """Return a private agent for an environment.

    It learns behind a ``JDPBillboard``. Each episode is one user.

    Privacy:
        That of ``JDPBillboard``: (epsilon, delta)-joint differential privacy under replacing one user.

    Example:
        >>> from stable_baselines3 import PPO
        >>> agent = make_private(PPO, "CartPole-v1", epsilon=1.0, users=10_000)
        >>> print(agent.guarantee)
        (1.0, 1e-06)-JDP, replace one user, 10000 users

    Args:
        agent: An agent of this package or its class, or Stable-Baselines3's ``PPO``, ``A2C``, ``SAC``, ``TD3``,
            ``DDPG`` or ``DQN`` or an agent of these, whose discount, layers and seed are taken over. It is trained in
            a private model of the world (``WorldModelAgent``) if it replays steps, or if ``terminated`` or ``reward``
            is given; ``terminated=None`` says that episodes never end early. Else ``PPO`` becomes a ``DPPPO``, and
            ``A2C`` a ``DPPolicyGradient``.
        env: An environment, the id of one, or a ``VecEnv`` with one in it.
        epsilon: For a user's whole episode, over all releases.
        delta: As in ``JDPBillboard``.
        users: The number of users that may come.
        horizon: Largest number of steps in an episode, if the environment does not define it.
        options: Further arguments of the agent, and of the boundary, such as ``reward_range`` and ``visits``.
            ``seed`` and ``batch_size`` are the agent's; ``rng`` and ``schedule`` are the boundary's.
    """
    from private_rl_gym.agents.make_private import make_private

    return make_private(agent, env, epsilon=epsilon, delta=delta, users=users, horizon=horizon, **options)

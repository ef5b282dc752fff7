"""Vector forms of three of Gymnasium's classic problems, for benchmarks.

Many users are simulated at a time, with the same dynamics.

``register`` checks that their steps are the same as those of Gymnasium's classes. Then it makes them the vector entry
points of Gymnasium's own ids, and boundaries serve many users at a time.
"""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.envs.classic_control import AcrobotEnv, Continuous_MountainCarEnv, PendulumEnv
from numpy.typing import NDArray

__all__ = ["register"]

Array = NDArray[np.float64]


class Classic(gym.vector.VectorEnv[Any, Any, Any]):
    """Users of a problem, side by side.

    States and rewards after the end of a user's episode have no meaning.
    """

    single: ClassVar[type[gym.Env[Any, Any]]]

    def __init__(self, num_envs: int = 1, **_: Any) -> None:
        self.num_envs = num_envs
        one: Any = self.single()
        self.single_observation_space, self.single_action_space = one.observation_space, one.action_space
        self.observation_space = gym.vector.utils.batch_space(one.observation_space, num_envs)
        self.action_space = gym.vector.utils.batch_space(one.action_space, num_envs)
        self.metadata = {"autoreset_mode": gym.vector.AutoresetMode.DISABLED}

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start the episodes of new users."""
        del options
        super().reset(seed=seed)
        self.state = self.start(self.np_random, self.num_envs)  # [user, i]
        return self.seen(), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Take one step of every user."""
        rewards, terminated = self.move(np.asarray(actions, dtype=np.float64).reshape(self.num_envs))
        return self.seen(), rewards, terminated, np.zeros(self.num_envs, dtype=np.bool_), {}

    def start(self, rng: np.random.Generator, count: int) -> Array:
        """Return the first states."""
        raise NotImplementedError

    def move(self, a: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Go to the next states, and return rewards and ends."""
        raise NotImplementedError

    def seen(self) -> NDArray[np.float32]:
        """Return the observations of the states."""
        raise NotImplementedError


class Pendulum(Classic):
    """Pendulum-v1: an angle and its speed."""

    single = PendulumEnv

    def start(self, rng: np.random.Generator, count: int) -> Array:
        return rng.uniform((-np.pi, -1.0), (np.pi, 1.0), size=(count, 2))

    def move(self, a: Array) -> tuple[Array, NDArray[np.bool_]]:
        angle, speed = self.state.T
        u = np.clip(a, -2.0, 2.0)
        costs = ((angle + np.pi) % (2.0 * np.pi) - np.pi) ** 2 + 0.1 * speed**2 + 0.001 * u**2
        speed = np.clip(speed + (15.0 * np.sin(angle) + 3.0 * u) * 0.05, -8.0, 8.0)
        self.state = np.stack([angle + speed * 0.05, speed], axis=1)
        return -costs, np.zeros(self.num_envs, dtype=np.bool_)

    def seen(self) -> NDArray[np.float32]:
        angle, speed = self.state.T
        return np.stack([np.cos(angle), np.sin(angle), speed], axis=1, dtype=np.float32)


class MountainCarContinuous(Classic):
    """MountainCarContinuous-v0: a place and a speed."""

    single = Continuous_MountainCarEnv

    def start(self, rng: np.random.Generator, count: int) -> Array:
        return np.stack([rng.uniform(-0.6, -0.4, size=count), np.zeros(count)], axis=1)

    def move(self, a: Array) -> tuple[Array, NDArray[np.bool_]]:
        place, speed = self.state.T
        speed = np.clip(speed + np.clip(a, -1.0, 1.0) * 0.0015 - 0.0025 * np.cos(3.0 * place), -0.07, 0.07)
        place = np.clip(place + speed, -1.2, 0.6)
        speed = np.where((place == -1.2) & (speed < 0.0), 0.0, speed)
        there = (place >= 0.45) & (speed >= 0.0)
        self.state = np.stack([place, speed], axis=1).astype(np.float32).astype(np.float64)
        return 100.0 * there - 0.1 * a**2, there

    def seen(self) -> NDArray[np.float32]:
        return self.state.astype(np.float32)


class Acrobot(Classic):
    """Acrobot-v1: two angles and their speeds.

    A step is a Runge-Kutta step of the equations in Sutton and Barto's book.
    """

    single = AcrobotEnv

    def start(self, rng: np.random.Generator, count: int) -> Array:
        return rng.uniform(-0.1, 0.1, size=(count, 4))

    def move(self, a: Array) -> tuple[Array, NDArray[np.bool_]]:
        y, torque, dt = self.state.T, a - 1.0, 0.2
        k1 = _slopes(y, torque)
        k2 = _slopes(y + dt / 2.0 * k1, torque)
        k3 = _slopes(y + dt / 2.0 * k2, torque)
        k4 = _slopes(y + dt * k3, torque)
        y = y + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        y[:2] = (y[:2] + np.pi) % (2.0 * np.pi) - np.pi
        y[2] = np.clip(y[2], -4.0 * np.pi, 4.0 * np.pi)
        y[3] = np.clip(y[3], -9.0 * np.pi, 9.0 * np.pi)
        self.state = y.T
        there = -np.cos(y[0]) - np.cos(y[0] + y[1]) > 1.0
        return there - 1.0, there

    def seen(self) -> NDArray[np.float32]:
        first, second, *speeds = self.state.T
        waves = np.cos(first), np.sin(first), np.cos(second), np.sin(second)
        return np.stack([*waves, *speeds], axis=1, dtype=np.float32)


def _slopes(y: Array, torque: Array) -> Array:
    """Return the derivatives of two angles and two speeds.

    Both links have mass, length and inertia 1, and centres at 0.5.
    """
    first, second, speed, other = y
    cosine, sine = np.cos(second), np.sin(second)
    d1 = 0.25 + (1.25 + cosine) + 2.0
    d2 = 0.25 + 0.5 * cosine + 1.0
    phi2 = 4.9 * np.sin(first + second)
    phi1 = -0.5 * other**2 * sine - other * speed * sine + 14.7 * np.sin(first) + phi2
    second_up = (torque + d2 / d1 * phi1 - 0.5 * speed**2 * sine - phi2) / (1.25 - d2**2 / d1)
    return np.stack([speed, other, -(d2 * second_up + phi1) / d1, second_up])


IDS = {"Pendulum-v1": Pendulum, "MountainCarContinuous-v0": MountainCarContinuous, "Acrobot-v1": Acrobot}


def register() -> None:
    """Register these as the vector entry points of Gymnasium's ids.

    Raise if a step differs from Gymnasium's.
    """
    for name, kind in IDS.items():
        _compare(kind)
        gym.registry[name].vector_entry_point = kind


def _compare(kind: type[Classic], steps: int = 200) -> None:
    """Raise if steps differ from those of the single environment.

    The steps are from states along an episode.
    """
    one: Any = kind.single()
    many = kind(1)
    one.reset(seed=0)
    one.action_space.seed(0)
    many.reset(seed=0)
    for step in range(steps):
        many.state = np.array(one.state, dtype=np.float64)[None]
        action = one.action_space.sample()
        wanted, reward, terminated, *_ = one.step(action)
        got, rewards, ends, *_ = many.step(np.array([action]))
        same = np.allclose(got[0], wanted, rtol=1e-5, atol=1e-5) and abs(rewards[0] - reward) < 1e-5
        if not same or ends[0] != terminated:
            raise AssertionError(f"Step {step} of {kind.__name__} is not that of Gymnasium's class.")
        if terminated:
            one.reset()

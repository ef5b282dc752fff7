"""The common part of agents with policy networks.

It has ``policy_kwargs``, predictions, files and schedules.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from private_rl_gym.agents.batched import BatchedAgent
from private_rl_gym.planning.arrays import as_array, flag, real, shown
from private_rl_gym.planning.network import Layers, Network, NetworkPolicy
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.sources import ActionCode, ObservationCode

__all__ = ["GradientAgent", "NetworkAgent", "Schedule"]

Schedule = float | Callable[[float], float] | Sequence[float]
"""A number; or one for each part of the run that is left, as a function of it (from 1 to 0) or as its values."""

MARKS = 101
"""Number of values of a schedule that are kept."""


class NetworkAgent(BatchedAgent):
    """A batched learner whose policies are networks."""

    policies = ("MlpPolicy",)
    parameter_name = "parameters"
    takes_large_batches = True

    @property
    @abstractmethod
    def network(self) -> Network:
        """The network that users run."""

    # Acting ----------------------------------------------------------------------------------------------------------

    def predict(  # type: ignore[override] # networks carry no stage
        self,
        observation: Any,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Return actions for one observation, or for the observations of several users.

        There is no state to carry.
        """
        policy: Any = self.best_policy()
        space = self.observation_space or _nothing()
        code, acts = ObservationCode.of(space), ActionCode.of(self.action_space or _nothing())
        try:
            rows, single = _rows(code, space, observation)
        except (TypeError, ValueError, KeyError, IndexError):
            raise ValueError(
                f"An observation is not in {space}: give predict one observation, or those of several users as a "
                "vector environment returns them."
            ) from None
        network = policy.network
        draws = None if flag(deterministic, "deterministic") else network.draws(self._predict_rng, len(rows), 1)[:, 0]
        actions = acts.actions(policy.act(rows, draws))
        return (actions[0] if single else actions), state

    # Files and logs --------------------------------------------------------------------------------------------------

    def policy_of(self, array: NDArray[Any], sizes: tuple[int, int, int]) -> Any:
        """Return the policy with these parameters."""
        return NetworkPolicy(self.network, array, sizes[0])


class GradientAgent(NetworkAgent):
    """A batched learner whose users report gradients of its network."""

    statistic = "gradient"
    keeps_policy = True  # the first users run what was brought, and it is learned on from there

    takes_critic: ClassVar[bool] = False
    """Whether ``policy_kwargs`` may ask for a value network, as ``vf`` in ``net_arch``; there is none by default."""

    policy_kwargs: dict[str, Any] | None
    _start: NDArray[np.float64] | None = None

    def layers(self) -> Layers:
        """Return the layers in ``policy_kwargs``, which has the form of Stable-Baselines3."""
        given = dict(self.policy_kwargs or {})
        chosen = given.pop("net_arch", list(Layers().hidden))
        named = given.pop("activation_fn", "tanh")
        if given:
            raise ValueError(
                f"policy_kwargs name {', '.join(sorted(given))}: this agent's are net_arch and activation_fn."
            )
        activation = (named if isinstance(named, str) else getattr(named, "__name__", "")).lower()
        if not isinstance(chosen, Mapping):
            chosen = {"pi": chosen}
        critic = chosen.get("vf") if self.takes_critic else None
        return Layers(tuple(chosen.get("pi", ())), activation, None if critic is None else tuple(critic))

    @staticmethod
    def plain_kwargs(policy_kwargs: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Return ``policy_kwargs`` as lists and words, to be saved."""
        if policy_kwargs is None:
            return None
        if not isinstance(policy_kwargs, Mapping) or not all(isinstance(name, str) for name in policy_kwargs):
            raise TypeError(
                f"policy_kwargs is {shown(policy_kwargs)}: give a dictionary, such as {{'net_arch': [32]}}."
            )
        plain = dict(policy_kwargs)
        if "activation_fn" in plain and not isinstance(plain["activation_fn"], str):
            plain["activation_fn"] = getattr(plain["activation_fn"], "__name__", "").lower()
        if "net_arch" in plain:
            arch = plain["net_arch"]
            parts = arch if isinstance(arch, Mapping) else {"pi": arch}
            if not all(isinstance(widths, list | tuple) for widths in parts.values()):
                raise TypeError(f"net_arch is {shown(arch)}: give the units of each hidden layer, such as [32, 32].")
            plain["net_arch"] = {name: list(parts[name]) for name in parts} if parts is arch else list(arch)
        return plain

    @property
    def network(self) -> Network:
        """The network that users run."""
        if self.board is not None:
            known: Network = self._board.network
            return known
        acts = ActionCode.of(self.action_space or _nothing())
        inputs = ObservationCode.of(self.observation_space or _nothing()).size
        return Network(inputs, self.layers(), acts.choices, acts.continuous)

    def needs(self, board: Boundary) -> Layers:
        """Return the layers whose gradients the agent needs."""
        return self.layers()

    def check(self, board: Boundary) -> None:
        """Raise ValueError unless this boundary sums gradients for the layers of this agent."""
        there = board.network.layers
        if there != self.layers():
            raise ValueError(
                f"The {type(board).__name__} sums gradients of {there}, and this agent learns {self.layers()}: build "
                "the boundary without statistic=, or give both the same layers."
            )

    def first_parameters(self) -> NDArray[np.float64]:
        """Return the first parameters: those that were set, or random ones."""
        drawn = self.network.start(self.plan_rng)
        return drawn if self._start is None else self._start.copy()

    def prepare(self) -> None:
        """Begin again, from parameters brought from elsewhere if there are any."""
        brought = self._brought
        elsewhere = brought is not None and brought.board != self._board.identity
        self._start = np.array(brought.policy.parameters) if brought is not None and elsewhere else None
        super().prepare()

    def _begin_from(self, policy: Any) -> None:
        """Learn from these parameters on, if no user has come yet.

        Without an environment, play them.
        """
        if self.board is None:
            super()._begin_from(policy)
            return
        if self._received or self._since is not None:
            raise ValueError(
                f"This {type(self).__name__} has met users, and learns from their reports about its own parameters: "
                "set parameters before learn, in an agent around a new board."
            )
        self._start = np.array(policy.parameters)
        self._restart(self._random_start)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all received releases, and the parameters that were set at the start."""
        arrays = super().state()
        return {**arrays, "start": self._start} if arrays and self._start is not None else arrays

    def set_state(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Run the generator again, from the same start."""
        others = dict(arrays)
        start = others.pop("start", None)
        if start is not None and self.board is not None:
            self._start = np.asarray(NetworkPolicy(self.network, start, self.horizon).parameters)
        super().set_state(others)

    def pace(self, schedule: float | list[float], left: int | None) -> float:
        """Return the value of a schedule with this number of users left.

        ``left`` is None where any number of users may come.
        """
        if not isinstance(schedule, list):
            return schedule
        part = 1.0 if left is None or not self.known_users else left / self.known_users
        return float(np.interp(1.0 - part, np.linspace(0.0, 1.0, len(schedule)), schedule))


def tabulated(schedule: Schedule, name: str) -> float | list[float]:
    """Return a schedule as a number or a list of numbers, which can be saved."""
    values: Any = schedule
    if callable(schedule) and not isinstance(schedule, type):
        values = [real(schedule(1.0 - part), name) for part in np.linspace(0.0, 1.0, MARKS)]
    numbers = as_array(values, name)
    if not numbers.size or numbers.ndim > 1 or (numbers < 0.0).any():
        raise ValueError(f"{name} is {shown(schedule)}: it is a number, 0 or more, or a schedule of such numbers.")
    plain: float | list[float] = numbers.tolist()
    return plain


def _nothing() -> Any:
    raise ValueError("The agent has no environment: give it one with set_env.")


def _rows(code: ObservationCode, space: gym.Space[Any], observation: Any) -> tuple[NDArray[np.float64], bool]:
    """Return the observations as rows of numbers, and whether there is only one.

    Raises ValueError if one is not in the space.
    """
    single = _is_single(space, observation)
    batch = [observation] if single else observation
    count = len(next(iter(batch.values()))) if isinstance(batch, Mapping) else len(batch)
    if isinstance(batch, Mapping):
        batch = [{key: value[row] for key, value in batch.items()} for row in range(count)]
    rows = np.empty((count, code.size))
    if not code.rows(batch, rows).all():
        raise ValueError
    return rows, single


def _is_single(space: gym.Space[Any], observation: Any) -> bool:
    """Return whether this is one observation, and not a batch."""
    if isinstance(space, spaces.Tuple):
        return isinstance(observation, tuple)
    if isinstance(space, spaces.Dict):
        key, part = next(iter(space.spaces.items()))
        return _is_single(part, observation[key])
    return np.ndim(observation) == len(space.shape or ())

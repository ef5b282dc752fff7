"""The common part of agents with policy networks: ``policy_kwargs``, predictions, files and schedules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from private_rl_gym.agents.batched import BatchedAgent
from private_rl_gym.planning.network import Layers, Network, NetworkPolicy
from private_rl_gym.privacy.guarantee import Guarantee, weakest
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.encoding import ActionCode, ObservationCode

__all__ = ["NetworkAgent", "Schedule"]

Schedule = float | Callable[[float], float] | Sequence[float]
"""A number; or one for each part of the run that is left, as a function of it (from 1 to 0) or as its values."""

MARKS = 101
"""Number of values of a schedule that are kept."""


class NetworkAgent(BatchedAgent):
    """A batched learner whose policies are networks, and whose users report gradients."""

    policies = ("MlpPolicy",)
    statistic = "gradient"
    parameter_name = "parameters"
    takes_large_batches = True

    takes_critic: ClassVar[bool] = False
    """Whether ``policy_kwargs`` may ask for a value network, as ``vf`` in ``net_arch``; there is none by default."""

    policy_kwargs: dict[str, Any] | None
    _start: NDArray[np.float64] | None = None

    def layers(self) -> Layers:
        """The layers that ``policy_kwargs`` ask for, in the words of Stable-Baselines3."""
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
        """``policy_kwargs`` in lists and words, to be saved."""
        if policy_kwargs is None:
            return None
        plain = dict(policy_kwargs)
        if "activation_fn" in plain and not isinstance(plain["activation_fn"], str):
            plain["activation_fn"] = getattr(plain["activation_fn"], "__name__", "").lower()
        if "net_arch" in plain:
            arch = plain["net_arch"]
            several = isinstance(arch, Mapping)
            plain["net_arch"] = {name: list(arch[name]) for name in arch} if several else list(arch)
        return plain

    @property
    def network(self) -> Network:
        """The network that users run."""
        if self.board is not None:
            network: Network = self._board.statistic.network  # type: ignore[attr-defined]
            return network
        acts = ActionCode.of(self.action_space or _nothing())
        inputs = ObservationCode.of(self.observation_space or _nothing()).size
        return Network(inputs, self.layers(), acts.choices, acts.continuous)

    def _settle(self, board: Boundary) -> None:
        board.settle(self.layers(), apart=True)
        super()._settle(board)
        there: Layers = board.statistic.network.layers  # type: ignore[attr-defined]
        if there != self.layers():
            raise ValueError(
                f"The {type(board).__name__} sums gradients of {there}, and this agent learns {self.layers()}: build "
                "the boundary without statistic=, or give both the same layers."
            )

    def first_parameters(self) -> NDArray[np.float64]:
        """The parameters to begin with: those that were set, or drawn ones."""
        drawn = self.network.start(self.plan_rng)
        return drawn if self._start is None else self._start.copy()

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee to users against anyone who sees what this agent learned: the strongest in the ledger.

        A loaded agent learns from its parameters on: it states the guarantee that it was saved with, and once it has
        met users of another board, the weaker of both.
        """
        if self._earlier is None or self.board is None or not (self._received or self._since is not None):
            return super().guarantee
        return weakest((self._earlier, self.promise))

    def _learns_here(self) -> None:
        """The parameters of a file stay in those that are learned from here."""

    def _meet(self, board: Boundary, *, acts_on: bool) -> None:
        if acts_on and self._loaded is not None and self._loaded[0] != board.identity and self._loaded[-1] is not None:
            self._start = np.array(self._loaded[-1].parameters)  # type: ignore[attr-defined]
        super()._meet(board, acts_on=acts_on)

    def begin_from(self, policy: Any) -> None:
        """Learn from these parameters on, if nobody has come yet; without an environment, play them."""
        if self.board is None:
            super().begin_from(policy)
            return
        if self._received or self._since is not None:
            raise ValueError(
                f"This {type(self).__name__} has met users, and learns from what they said about its own parameters: "
                "set parameters before learn, in an agent around a new board."
            )
        self._start = np.array(policy.parameters)
        self._begin(self._random_start)

    def state(self) -> dict[str, NDArray[Any]]:
        """All releases that were received, and the parameters that were set at the start."""
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
        """The value of a schedule when so many users are left; None for any number."""
        if not isinstance(schedule, list):
            return schedule
        part = 1.0 if left is None or not self.known_users else left / self.known_users
        return float(np.interp(1.0 - part, np.linspace(0.0, 1.0, len(schedule)), schedule))

    # Acting ----------------------------------------------------------------------------------------------------------

    def predict(  # type: ignore[override] # networks carry no stage
        self,
        observation: Any,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Actions for one observation, or for the observations of several users. There is no state to carry."""
        del episode_start
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
        draws = None if deterministic else network.draws(self._predict_rng, len(rows), 1)[:, 0]
        actions = acts.actions(policy.act(rows, draws))
        return (actions[0] if single else actions), state

    # Files and logs --------------------------------------------------------------------------------------------------

    def policy_array(self, policy: Any) -> NDArray[Any]:
        """The parameters."""
        return np.asarray(policy.parameters)

    def policy_of(self, array: NDArray[Any], sizes: tuple[int, int, int]) -> Any:
        """The policy with these parameters."""
        return NetworkPolicy(self.network, array, sizes[0])

    def spaces(self) -> list[Any] | None:
        """Both spaces as lists of words and numbers."""
        if self.observation_space is None or self.action_space is None:
            return None
        return [_described(self.observation_space), _described(self.action_space)]

    def set_spaces(self, plain: list[Any]) -> None:
        """Restore both spaces."""
        self.observation_space, self.action_space = (_space(part) for part in plain)


def tabulated(schedule: Schedule, name: str) -> float | list[float]:
    """A schedule as a number or a list of numbers, which can be saved."""
    values: Any = schedule
    if callable(schedule):
        values = [float(schedule(1.0 - part)) for part in np.linspace(0.0, 1.0, MARKS)]
    plain = [float(value) for value in np.atleast_1d(np.asarray(values, dtype=np.float64))]
    if not plain or not all(np.isfinite(value) and value >= 0.0 for value in plain):
        raise ValueError(f"{name} is {schedule!r}: it is a number, 0 or more, or a schedule of such numbers.")
    return plain[0] if np.ndim(values) == 0 else plain


def _nothing() -> Any:
    raise ValueError("The agent has no environment: give it one with set_env.")


def _rows(code: ObservationCode, space: gym.Space[Any], observation: Any) -> tuple[NDArray[np.float64], bool]:
    """The observations as rows of numbers, and whether there is one alone. Raises ValueError if one is not in space."""
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
    """Whether this is one observation, and not a batch."""
    if isinstance(space, spaces.Tuple):
        return isinstance(observation, tuple)
    if isinstance(space, spaces.Dict):
        key, part = next(iter(space.spaces.items()))
        return _is_single(part, observation[key])
    return np.ndim(observation) == len(space.shape or ())


def _described(space: gym.Space[Any]) -> list[Any]:
    if isinstance(space, spaces.Discrete):
        return ["Discrete", int(space.n), int(space.start)]
    if isinstance(space, spaces.MultiDiscrete):
        return ["MultiDiscrete", space.nvec.tolist(), space.start.tolist()]
    if isinstance(space, spaces.MultiBinary):
        return ["MultiBinary", space.n if isinstance(space.n, int) else list(space.shape)]
    if isinstance(space, spaces.Box):
        bounds = [[str(value) for value in bound.ravel()] for bound in (space.low, space.high)]
        return ["Box", *bounds, list(space.shape), str(space.dtype)]
    if isinstance(space, spaces.Tuple):
        return ["Tuple", [_described(part) for part in space.spaces]]
    assert isinstance(space, spaces.Dict)  # noqa: S101 - others were refused by the boundary
    return ["Dict", [[key, _described(part)] for key, part in space.spaces.items()]]


def _space(plain: list[Any]) -> gym.Space[Any]:
    kind, *rest = plain
    if kind == "Discrete":
        return spaces.Discrete(rest[0], start=rest[1])
    if kind == "MultiDiscrete":
        return spaces.MultiDiscrete(rest[0], start=rest[1])
    if kind == "MultiBinary":
        return spaces.MultiBinary(rest[0])
    if kind == "Box":
        kinds = {"float32": np.float32, "float64": np.float64, "uint8": np.uint8, "int32": np.int32, "int64": np.int64}
        number: Any = kinds[rest[3]]
        low, high = (np.array([float(value) for value in bound]).reshape(rest[2]).astype(number) for bound in rest[:2])
        return spaces.Box(low, high, dtype=number)
    if kind == "Tuple":
        return spaces.Tuple([_space(part) for part in rest[0]])
    if kind == "Dict":
        return spaces.Dict({key: _space(part) for key, part in rest[0]})
    raise ValueError("The saved space is of no known kind.")

"""The common part of optimistic agents: constants of a theorem, or practical multiples of its main terms."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.base import Agent
from private_rl_gym.planning.arrays import read_only
from private_rl_gym.planning.solve import Plan

__all__ = ["Constants", "NoisyOptimist", "Optimist", "check_constants", "check_multiplier", "log_factor"]

Constants = Literal["practical", "theory"]
"""The values of ``constants=``."""


class Optimist(Agent):
    """An agent that acts by optimistic values, which it keeps from plan to plan."""

    def __init__(self, policy: str | None = "TabularPolicy", env: Any = None, **options: Any) -> None:
        self._plan: Plan | None = None
        super().__init__(policy, env, **options)

    def prepare(self) -> None:
        """Forget the values of another environment."""
        self._plan = None

    @property
    def iota(self) -> float:
        """log(30 H S A T / beta), T being all steps of all users."""
        return log_factor(self)

    @property
    def q(self) -> NDArray[np.float64]:  # [h, s, a]
        """The optimistic values of the current plan."""
        _ = self.policy
        if self._plan is None:
            raise ValueError("These values belong to sums of another board; there are new ones with the next release.")
        return self._plan.q

    def progress(self) -> dict[str, float]:
        """The largest of the optimistic values."""
        return {} if self._plan is None else {"plan/largest_value": float(self._plan.v[0].max())}

    def state(self) -> dict[str, NDArray[Any]]:
        """The values of the current plan, which the next plan by theory must not exceed."""
        return {} if self._plan is None else {"q": self._plan.q, "v": self._plan.v, "actions": self._plan.actions}

    def set_state(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore a saved plan."""
        if not arrays:
            return
        q, v, actions = (read_only(arrays[name].copy()) for name in ("q", "v", "actions"))
        whole = q.ndim == 3 and v.shape == (len(q) + 1, q.shape[1]) and actions.shape == q.shape[:2]
        numbers = q.dtype == v.dtype == np.float64 and actions.dtype == np.int64
        if not (whole and numbers and np.isfinite(q).all() and np.isfinite(v).all()):
            raise ValueError("The saved plan is damaged: its arrays do not fit each other.")
        self._plan = Plan(q, v, actions)


class NoisyOptimist(Agent):
    """An agent whose bonus depends on numbers of visits, and allows for noise in them."""

    saved_arguments: ClassVar[tuple[str, ...]] = ("beta", "constants", "bonus_scale", "noise_scale")

    def __init__(
        self,
        policy: str | None = "TabularPolicy",
        env: Any = None,
        *,
        constants: Constants = "practical",
        bonus_scale: float = 0.02,
        noise_scale: float = 0.1,
        **options: Any,
    ) -> None:
        check_constants(constants)
        check_multiplier("bonus_scale", bonus_scale, "the bonus")
        check_multiplier("noise_scale", noise_scale, "a margin for noise", zero=True)
        self.constants, self.bonus_scale, self.noise_scale = constants, bonus_scale, noise_scale
        super().__init__(policy, env, **options)


def check_constants(constants: str) -> None:
    """Raise ValueError unless ``constants`` is one of its values."""
    if constants not in ("practical", "theory"):
        raise ValueError(f"constants is {constants!r}: choose 'practical', or 'theory' for the theorem's.")


def check_multiplier(name: str, value: float, what: str, *, zero: bool = False) -> None:
    """Raise an error unless the value is a finite number above 0; with ``zero``, 0 is allowed too."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"{name} is {value!r}: it multiplies {what}, and must be a number.")
    if not (math.isfinite(value) and (value > 0.0 or (zero and value == 0.0))):
        raise ValueError(f"{name} is {value}: it multiplies {what}, and must be {'at least' if zero else 'above'} 0.")


def log_factor(agent: Agent) -> float:
    """Iota = log(30 H S A T / beta). Where any number of users may come, T is the steps of a million users."""
    horizon, n_states, n_actions = agent._board.sizes
    steps = (agent._board.users or 1_000_000) * horizon
    return math.log(30.0 * horizon * n_states * n_actions * steps / agent.beta)

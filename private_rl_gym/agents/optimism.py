"""The common part of optimistic agents.

Constants are those of a theorem, or practical multiples of its main terms.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.base import Agent
from private_rl_gym.planning.arrays import among, read_only, real, shown
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
        """Discard the values of another environment."""
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
            raise ValueError("These values belong to the sums of another boundary. The next release replaces them.")
        return self._plan.q

    def progress(self) -> dict[str, float]:
        """Return the largest of the optimistic values."""
        return {} if self._plan is None else {"plan/largest_value": float(self._plan.v[0].max())}

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the values of the current plan.

        By theory, the next plan must not exceed them.
        """
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
        self.constants = check_constants(constants)
        self.bonus_scale = check_multiplier("bonus_scale", bonus_scale, "the bonus")
        self.noise_scale = check_multiplier("noise_scale", noise_scale, "a margin for noise", zero=True)
        super().__init__(policy, env, **options)


def check_constants(constants: Constants) -> Constants:
    """Return ``constants``; raise ValueError if it is not a known name."""
    if not among(constants, ("practical", "theory")):
        raise ValueError(f"constants is {shown(constants)}: choose 'practical', or 'theory' for the theorem's.")
    return constants


def check_multiplier(name: str, value: float, what: str, *, zero: bool = False) -> float:
    """Return ``value`` as a float; raise an error unless it is a valid multiplier.

    It must be a finite number above 0, or, with ``zero``, at least 0.
    """
    number = real(value, name)
    if not (math.isfinite(number) and (number > 0.0 or (zero and number == 0.0))):
        raise ValueError(
            f"{name} is {shown(value)}: it multiplies {what}, and must be {'at least' if zero else 'above'} 0."
        )
    return number


def log_factor(agent: Agent) -> float:
    """Return iota = log(30 H S A T / beta).

    Where any number of users may come, T is the number of steps of a million users.
    """
    horizon, n_states, n_actions = agent._board.sizes
    steps = agent.expected_users * horizon
    return math.log(30.0 * horizon * n_states * n_actions * steps / agent.beta)

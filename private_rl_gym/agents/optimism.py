"""What optimistic agents share: a bonus that is theory's, or a practical multiple."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np

from private_rl_gym.agents.base import Agent

__all__ = ["Bonus", "NoisyOptimist", "check_bonus", "check_multiplier", "log_factor"]

Bonus = Literal["practical", "theory"]


class NoisyOptimist(Agent):
    """An agent whose bonus counts visits, and allows for noise in them."""

    saved_arguments: ClassVar[tuple[str, ...]] = ("beta", "bonus", "bonus_scale", "noise_scale")

    def __init__(
        self,
        policy: str | None = "TabularPolicy",
        env: Any = None,
        *,
        bonus: Bonus = "practical",
        bonus_scale: float = 0.02,
        noise_scale: float = 0.1,
        **options: Any,
    ) -> None:
        check_bonus(bonus, bonus_scale)
        check_multiplier("noise_scale", noise_scale, "a margin for noise", zero=True)
        self.bonus, self.bonus_scale, self.noise_scale = bonus, bonus_scale, noise_scale
        super().__init__(policy, env, **options)


def check_bonus(bonus: str, bonus_scale: float) -> None:
    """Refuse a bonus that is none."""
    if bonus not in ("practical", "theory"):
        raise ValueError(f"bonus is {bonus!r}: choose 'practical', or 'theory' for the theorem's constants.")
    check_multiplier("bonus_scale", bonus_scale, "the bonus")


def check_multiplier(name: str, value: float, what: str, *, zero: bool = False) -> None:
    """Refuse what is no multiplier: finite, and above 0, or 0 where that means something."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"{name} is {value!r}: it multiplies {what}, and must be a number.")
    if not (math.isfinite(value) and (value > 0.0 or (zero and value == 0.0))):
        raise ValueError(f"{name} is {value}: it multiplies {what}, and must be {'at least' if zero else 'above'} 0.")


def log_factor(agent: Agent) -> float:
    """Iota = log(30 H S A T / beta). Where any number of users may come, T is that of a million."""
    horizon, n_states, n_actions = agent._board.sizes
    steps = (agent._board.users or 1_000_000) * horizon
    return math.log(30.0 * horizon * n_states * n_actions * steps / agent.beta)

"""What optimistic agents share: a bonus that is theory's, or a practical multiple."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

from private_rl_gym.agents.base import Agent

__all__ = ["Bonus", "NoisyOptimist", "check_bonus", "log_factor"]

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
        self.bonus, self.bonus_scale, self.noise_scale = bonus, bonus_scale, noise_scale
        super().__init__(policy, env, **options)


def check_bonus(bonus: str, bonus_scale: float) -> None:
    """Refuse a bonus that is none."""
    if bonus not in ("practical", "theory"):
        raise ValueError(f"bonus is {bonus!r}: choose 'practical', or 'theory' for the theorem's constants.")
    if not (bonus_scale > 0.0 and math.isfinite(bonus_scale)):
        raise ValueError(f"bonus_scale is {bonus_scale}: it multiplies the bonus, and must be above 0.")


def log_factor(agent: Agent) -> float:
    """Iota = log(30 H S A T / beta). Where any number of users may come, T is that of a million."""
    horizon, n_states, n_actions = agent._board.sizes
    steps = (agent._board.users or 1_000_000) * horizon
    return math.log(30.0 * horizon * n_states * n_actions * steps / agent.beta)

"""Mirror descent over policies, computed in logarithms.

It is the step of policy optimisation between evaluations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.optimism import check_multiplier
from private_rl_gym.planning.policy import Policy

if TYPE_CHECKING:
    from private_rl_gym.agents.base import Agent

__all__ = ["MirrorDescent"]


class MirrorDescent:
    """A stochastic policy that starts uniform and improves by mirror descent.

    A step replaces pi by pi exp(eta Q), normalised.

    Args:
        agent: The agent whose policy it is.
        eta: The step size, if it is given.
        eta_scale: Multiplies the step size sqrt(2 log A / (H^2 K)) otherwise. K is the number of releases that the
            board was built for; where any number of users may come, it is that of a million users.
    """

    def __init__(self, agent: Agent, eta: float | None, eta_scale: float) -> None:
        eta_scale = check_multiplier("eta_scale", eta_scale, "the step")
        if eta is not None:
            eta = check_multiplier("eta", eta, "what looked better")
        self._agent, self._eta, self._scale = agent, eta, eta_scale
        self.logits: NDArray[np.float64] | None = None

    @property
    def step_size(self) -> float:
        """The step size eta."""
        if self._eta is not None:
            return self._eta
        board = self._agent._board
        plans = max(board.planned_batches or self._agent.expected_users // board.batch_size, 1)
        horizon, _, n_actions = board.sizes
        return self._scale * math.sqrt(2.0 * math.log(max(n_actions, 2)) / (horizon**2 * plans))

    def begin(self) -> NDArray[np.float64]:
        """Start from the uniform policy."""
        self.logits = np.zeros(self._agent._board.sizes)
        return self.probabilities

    def improve(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """Take one step towards the actions with larger values."""
        assert self.logits is not None  # noqa: S101 - begin was called
        moved = self.logits + self.step_size * q
        self.logits = moved - moved.max(axis=2, keepdims=True)  # a constant changes nothing, and keeps it small
        return self.probabilities

    @property
    def probabilities(self) -> NDArray[np.float64]:  # [h, s, a]
        """The probabilities of actions under the policy."""
        assert self.logits is not None  # noqa: S101 - begin was called
        weights = np.exp(self.logits - self.logits.max(axis=2, keepdims=True))
        return np.asarray(weights / weights.sum(axis=2, keepdims=True))

    def policy(self) -> Policy:
        """Return the policy in the form that users run."""
        horizon, n_states, n_actions = self._agent._board.sizes
        return Policy.of(self.probabilities, horizon=horizon, n_states=n_states, n_actions=n_actions)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the logarithms of the policy."""
        return {} if self.logits is None else {"logits": self.logits}

    def set_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a saved policy."""
        logits = arrays.get("logits")
        if logits is not None and not (logits.ndim == 3 and logits.dtype == np.float64 and np.isfinite(logits).all()):
            raise ValueError("The saved policy is damaged: its logarithms are not finite numbers [h, s, a].")
        self.logits = logits

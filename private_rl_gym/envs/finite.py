"""The common part of known finite models.

It does not depend on how they are stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.planning.arrays import as_array, as_distributions, positive_integer, read_only
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.sampling import SamplingTables, tape_length

if TYPE_CHECKING:
    from private_rl_gym.planning.simulate import Trajectories
    from private_rl_gym.planning.solve import Outcomes, Plan

__all__ = ["FiniteModel", "RewardLaw", "initial_distribution"]

RewardLaw = Literal["bernoulli", "fixed"]


class FiniteModel(ABC):
    """A finite-horizon Markov decision process, with sizes, exact values and users.

    Attributes:
        rewards: ``[h, s, a]``, mean rewards in [0, 1]; axis h has length H, or 1 where one stage stands for all.
        initial: ``[s]``, distribution of the state at stage 0.
        horizon: Number of steps in an episode, H.
        reward_law: ``"bernoulli"`` (a reward is a bit with the given mean) or ``"fixed"`` (it is the mean).
    """

    rewards: NDArray[np.float64]
    initial: NDArray[np.float64]
    horizon: int
    reward_law: RewardLaw

    @property
    def n_states(self) -> int:
        """Number of states, S."""
        return int(self.rewards.shape[1])

    @property
    def n_actions(self) -> int:
        """Number of actions, A."""
        return int(self.rewards.shape[2])

    @property
    @abstractmethod
    def stationary(self) -> bool:
        """Whether every stage has the same transitions and rewards."""

    @abstractmethod
    def outcomes(self, stage: int, state: int) -> NDArray[np.float64]:  # [a, s']
        """Return the probabilities of the next state, for each action in one state."""

    @abstractmethod
    def content(self) -> tuple[NDArray[np.generic], ...]:
        """Return the arrays that define the model."""

    @property
    @abstractmethod
    def _packed(self) -> Outcomes:
        """The transitions in the form that solvers use."""

    @property
    @abstractmethod
    def tables(self) -> SamplingTables:
        """The tables that turn a user's tape into their answers."""

    def policy(self, table: Policy | ArrayLike) -> Policy:
        """Return ``table`` as a policy for this model.

        See :meth:`private_rl_gym.planning.Policy.of`.
        """
        return Policy.of(table, horizon=self.horizon, n_states=self.n_states, n_actions=self.n_actions)

    @cached_property
    def optimum(self) -> Plan:
        """Optimal values and an optimal policy, by backward induction."""
        from private_rl_gym.planning.solve import backward_induction

        plan = backward_induction(self._packed, self.rewards, self.horizon)
        for array in (plan.q, plan.v, plan.actions):
            read_only(array)
        return plan

    def optimal_value(self) -> float:
        """Return the largest expected return of any policy, V*."""
        return float(self.initial @ self.optimum.v[0])

    def optimal_policy(self) -> Policy:
        """Return a deterministic policy with the largest expected return."""
        return self.optimum.policy

    def value_of(self, policy: Policy | ArrayLike) -> float:
        """Return the expected return of a policy."""
        return float(self.initial @ self.values_of(policy)[0])

    def values_of(self, policy: Policy | ArrayLike) -> NDArray[np.float64]:  # [h, s], h = 0..H
        """Return the expected return of a policy from every stage and state."""
        from private_rl_gym.planning.solve import evaluate_policy

        return evaluate_policy(self._packed, self.rewards, self.policy(policy))

    def occupancy_of(self, policy: Policy | ArrayLike) -> NDArray[np.float64]:  # [h, s, a]
        """Return the probability that a policy visits (s, a) at stage h, ``[h, s, a]``."""
        from private_rl_gym.planning.solve import occupancy

        return occupancy(self._packed, self.initial, self.policy(policy))

    @property
    def tape_length(self) -> int:
        """Number of uniforms that decide one user's answers, 2H + 1."""
        return tape_length(self.horizon)

    def draw_users(self, rng: np.random.Generator, users: int) -> NDArray[np.float64]:  # [user, uniform]
        """Return the tapes of new users.

        Repeated calls of ``reset`` draw the same tapes from the same generator.
        """
        if not isinstance(rng, np.random.Generator):
            raise TypeError(f"Users are drawn from a numpy Generator, such as env.np_random, not from {rng!r}.")
        return rng.random((positive_integer(users, "users", "users"), self.tape_length))

    def rollout(
        self, policy: Policy | ArrayLike, tapes: NDArray[np.float64], action_uniforms: NDArray[np.float64] | None = None
    ) -> Trajectories:
        """Return the trajectories of the users with these tapes under a policy.

        See :func:`private_rl_gym.planning.rollout`.
        """
        from private_rl_gym.planning.simulate import rollout

        return rollout(self.tables, self.policy(policy), tapes, action_uniforms)

    def __repr__(self) -> str:
        kind = "stationary" if self.stationary else "stage-dependent"
        sizes = f"S={self.n_states}, A={self.n_actions}, H={self.horizon}"
        return f"{type(self).__name__}({sizes}, {kind}, {self.reward_law} rewards)"


def initial_distribution(values: ArrayLike, n_states: int) -> NDArray[np.float64]:
    """Return a start state, or a distribution of start states, as a distribution."""
    array = as_array(values, "initial")
    if array.ndim == 0:
        state = float(array)
        if state not in range(n_states):
            raise ValueError(f"initial is {state:g}: a start state must be one of 0..{n_states - 1}.")
        start = np.zeros(n_states)
        start[int(state)] = 1.0
        return start
    if array.shape != (n_states,):
        raise ValueError(
            f"initial has shape {array.shape}: it must be a start state, or one probability for each of the "
            f"{n_states} states."
        )
    return as_distributions(array, "initial", "model")

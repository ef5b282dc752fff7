"""Tabular models, with their exact values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.envs.finite import FiniteModel, RewardLaw, initial_distribution
from private_rl_gym.envs.toy_text import read_toy_text
from private_rl_gym.planning.arrays import (
    among,
    as_array,
    as_distributions,
    check_unit_interval,
    positive_integer,
    read_only,
    shown,
)
from private_rl_gym.planning.sampling import SamplingTables

if TYPE_CHECKING:
    import gymnasium as gym

    from private_rl_gym.planning.solve import Outcomes

__all__ = ["RewardLaw", "TabularModel"]


@dataclass(frozen=True, init=False, eq=False, repr=False)  # no slots: cached_property keeps its value in __dict__
class TabularModel(FiniteModel):
    """A finite-horizon Markov decision process with exact values.

    Axis h has length H, or length 1 where the model is stationary and one stage stands for all. Arrays are
    copied, checked, and made read-only.

    Args:
        transitions: Probabilities of the next state, ``[s, a, s']``, or ``[h, s, a, s']`` where they depend on the
            stage. The attribute is ``[h, s, a, s']``.
        rewards: Mean rewards in [0, 1], ``[s, a]`` or ``[h, s, a]``. The attribute is ``[h, s, a]``.
        initial: The start state, or the distribution ``[s]`` of start states, which the attribute is.
        horizon: Number of steps in an episode, H.
        reward_law: ``"bernoulli"`` (a reward is a bit with the given mean) or ``"fixed"`` (it is the mean).
        outcome_rewards: In place of ``rewards``: mean rewards that depend on where the step leads, ``[s, a, s']`` or
            ``[h, s, a, s']``. Then ``rewards`` is their expectation over next states; else the attribute is None.

    Example:
        >>> model = TabularModel([[[1, 0], [0.5, 0.5]], [[0, 1], [0, 1]]], [[0, 0], [1, 1]], horizon=3)
        >>> model
        TabularModel(S=2, A=2, H=3, stationary, bernoulli rewards)
        >>> model.optimal_value()
        1.25
        >>> model.value_of([0, 0])
        0.0
    """

    transitions: NDArray[np.float64]
    rewards: NDArray[np.float64]
    initial: NDArray[np.float64]
    horizon: int
    reward_law: RewardLaw
    outcome_rewards: NDArray[np.float64] | None

    def __init__(
        self,
        transitions: ArrayLike,
        rewards: ArrayLike | None = None,
        initial: ArrayLike = 0,
        horizon: int = 1,
        reward_law: RewardLaw = "bernoulli",
        *,
        outcome_rewards: ArrayLike | None = None,
    ) -> None:
        H = positive_integer(horizon, "horizon", "steps in an episode")
        P = _staged(as_array(transitions, "transitions"), "transitions", "[h, s, a, s']")
        if P.shape[0] not in (1, H) or P.shape[1] != P.shape[3] or 0 in P.shape:
            raise ValueError(
                f"transitions have shape {P.shape}: they must be [s, a, s'] with as many s as s', or [h, s, a, s'] "
                f"with one h for each of the {H} steps."
            )
        P = as_distributions(P, "transitions", "(stage, state, action)")
        _, S, A, _ = P.shape
        if not among(reward_law, get_args(RewardLaw)):
            raise ValueError(f"reward_law is {shown(reward_law)}: it must be one of {', '.join(get_args(RewardLaw))}.")
        if (rewards is None) == (outcome_rewards is None):
            raise ValueError("A model needs rewards, or outcome_rewards in their place: give exactly one of them.")
        outcomes: NDArray[np.float64] | None = None
        if outcome_rewards is not None:
            outcomes = _rewards(outcome_rewards, "outcome_rewards", "[h, s, a, s']", (H, S, A, S))
            stages = max(len(P), len(outcomes))
            means = np.einsum("hsat,hsat->hsa", *(np.broadcast_to(x, (stages, S, A, S)) for x in (P, outcomes)))
            R = np.clip(means, 0.0, 1.0)  # rounding only: outcomes lie in [0, 1]
        else:
            assert rewards is not None  # noqa: S101 - for mypy
            R = _rewards(rewards, "rewards", "[h, s, a]", (H, S, A))
        fields = {
            "transitions": read_only(P),
            "rewards": read_only(R),
            "initial": read_only(initial_distribution(initial, S)),
            "horizon": H,
            "reward_law": reward_law,
            "outcome_rewards": None if outcomes is None else read_only(outcomes),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_gym(
        cls, env: gym.Env[Any, Any], horizon: int | None = None, reward_range: tuple[float, float] | None = None
    ) -> TabularModel:
        """Build a model from the ``P`` table of a toy-text environment of Gymnasium.

        These are FrozenLake, CliffWalking and Taxi.

        A step that ends the episode leads to one more state, absorbing, in which nothing is earned until the
        horizon: every episode has the same length, and values are those of the environment cut at the horizon.
        (Where one action can end an episode with different rewards, each of these rewards has a state of its own.)

        Args:
            env: The environment, wrapped or not.
            horizon: Number of steps in an episode; by default the environment's own limit.
            reward_range: The smallest and largest reward, which are mapped to 0 and 1. It must contain 0, the reward
                after the end. Not needed where rewards are in [0, 1] already. A return G becomes ``(G - horizon * low)
                / (high - low)``, so that the order of policies stays.

        Example:
            >>> import gymnasium as gym
            >>> lake = gym.make("FrozenLake-v1")
            >>> round(TabularModel.from_gym(lake, horizon=100).optimal_value(), 4)
            0.7442
        """
        return cls(**read_toy_text(env, horizon, reward_range))

    @property
    def stationary(self) -> bool:
        """Whether every stage has the same transitions and rewards."""
        return len(self.transitions) == 1 and len(self.rewards) == 1

    def outcomes(self, stage: int, state: int) -> NDArray[np.float64]:  # [a, s']
        """Return the probabilities of the next state, for each action in one state."""
        probabilities: NDArray[np.float64] = self.transitions[stage % len(self.transitions), state]
        return probabilities

    def content(self) -> tuple[NDArray[np.generic], ...]:
        """Return the arrays that define the model."""
        return self.transitions, self.rewards, self.initial

    @cached_property
    def _packed(self) -> Outcomes:
        from private_rl_gym.planning.solve import Outcomes

        return Outcomes.of(self.transitions)

    @cached_property
    def tables(self) -> SamplingTables:
        """The tables that turn a user's tape into their answers."""
        return SamplingTables.build(
            self.transitions,
            self.rewards if self.outcome_rewards is None else self.outcome_rewards,
            self.initial,
            horizon=self.horizon,
            bernoulli=self.reward_law == "bernoulli",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        rewards = self.rewards if self.outcome_rewards is None else None
        fixed = (self.transitions, rewards, self.initial, self.horizon, self.reward_law)
        return partial(TabularModel, outcome_rewards=self.outcome_rewards), fixed


def _staged(array: NDArray[np.float64], name: str, axes: str) -> NDArray[np.float64]:
    """Return ``array`` with a leading axis of stages."""
    wanted = axes.count(",") + 1
    if array.ndim == wanted - 1:
        array = array[None]
    if array.ndim != wanted:
        raise ValueError(f"{name} have {array.ndim} axes: they must be {axes}, or the same without h.")
    return array


def _rewards(values: ArrayLike, name: str, axes: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    array = _staged(as_array(values, name), name, axes)
    if array.shape not in (shape, (1, *shape[1:])):
        raise ValueError(
            f"{name} have shape {array.shape}: with these transitions they must be {shape[1:]} or {shape}."
        )
    check_unit_interval(array, name, "rescale rewards to [0, 1] (from_gym does it, given a reward_range).")
    return array

"""Public requests to the users of a batch, besides the policy that they run.

* ``Request`` - the base class
* ``Values`` - a value function, for users who report the moments of a linear learner
* ``Wanted`` - the cells that are wanted, for users who report single steps
* ``Objective`` - the objective that is differentiated, for users who report gradients
* ``Refinement`` - the model that is corrected, for users who report about dynamics

A request is sent along with the policy: ``board.serve(policy, users, request)``. It is public, and the same for all
users of a batch. It may change *what* users report, but never how far one of them can move a sum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import as_array, positive_integer, read_only, real, shown

__all__ = ["REQUESTS", "Objective", "Refinement", "Request", "Values", "Wanted"]


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A public request to users.

    Each kind of statistic understands one kind of request, or none.
    """

    def checked(self, horizon: int, n_states: int, n_actions: int) -> Request:
        """Return a copy in plain arrays; raise if it does not fit these sizes."""
        raise NotImplementedError

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the request by name, to be saved."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Request:
        """Return the request with these arrays."""
        return cls(**{field.name: arrays[field.name] for field in fields(cls)})


@dataclass(frozen=True, slots=True, eq=False)
class Values(Request):
    """A value function V, whose moments linear users report.

    The moments use phi(s, a) = sum over s' of psi(s, a, s') V(s').

    Attributes:
        values: ``[h, s]``, h = 0..H.
    """

    values: NDArray[np.float64]

    def checked(self, horizon: int, n_states: int, n_actions: int) -> Values:
        """Return a read-only copy; raise if its shape does not fit these sizes."""
        copied = read_only(as_array(self.values, "values"))
        if copied.shape != (horizon + 1, n_states):
            raise ValueError(
                f"values have shape {copied.shape}: they must be {(horizon + 1, n_states)}, one value for each state "
                f"at "
                "each stage and at the end."
            )
        return Values(copied)


@dataclass(frozen=True, slots=True, eq=False)
class Wanted(Request):
    """The steps that users report.

    They are the first ones in wanted cells, or one at a random stage. Each user is, at random, one of three kinds. They
    report the state that they started in (with probability ``starts``), their step at a stage drawn uniformly
    (``anywhere``), or else their first step in each of the first ``most`` wanted cells that they meet. All three
    choices look at the past only, so that next states and rewards are unbiased.

    Attributes:
        cells: ``[s, a]``, whether a step there is wanted.
        anywhere: Probability that a user reports the step at a random stage, wherever it is.
        starts: Probability that a user reports the state that they started in.
        most: Largest number of steps that a user reports. Noise grows with it, so a user who visits many cells reports
            more of them, each less clearly.
        by_stage: Whether users also report at which stage each step was. Then the same cell at another stage is another
            cell, and may be reported too. For sums of ``"staged-reports"``.
    """

    cells: NDArray[np.bool_]
    anywhere: float = 0.0
    starts: float = 0.0
    most: int = 1
    by_stage: bool = False

    def checked(self, horizon: int, n_states: int, n_actions: int) -> Wanted:
        """Return a read-only copy; raise if it does not fit these sizes."""
        cells = np.array(self.cells) if isinstance(self.cells, np.ndarray) else np.zeros(0)
        if cells.shape != (n_states, n_actions) or cells.dtype != np.bool_:
            raise ValueError(
                f"cells have shape {cells.shape} and type {cells.dtype}: say True or False for each of the "
                f"{(n_states, n_actions)} states and actions."
            )
        anywhere, starts = real(self.anywhere, "anywhere"), real(self.starts, "starts")
        if not (anywhere >= 0.0 and starts >= 0.0 and anywhere + starts <= 1.0):
            raise ValueError(
                f"anywhere is {anywhere} and starts is {starts}: both must be 0 or more, and add up to at most 1."
            )
        most = positive_integer(self.most, "most", "reports")
        if most > horizon:
            raise ValueError(f"most is {most}: a user takes {horizon} steps.")
        if type(self.by_stage) is not bool:
            raise TypeError(f"by_stage is of type {type(self.by_stage).__name__}: it is True or False.")
        return Wanted(read_only(cells), anywhere, starts, most, self.by_stage)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the request by name, to be saved."""
        shares = np.array([self.anywhere, self.starts])
        return {"cells": self.cells, "shares": shares, "most": np.array([self.most, self.by_stage])}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Wanted:
        """Return the request with these arrays."""
        anywhere, starts = arrays["shares"]
        most, by_stage = arrays["most"]
        return cls(arrays["cells"], float(anywhere), float(starts), int(most), bool(by_stage))


SHARES = 4
"""Parts of a report: the gradient of the policy, returns by stage, the range of returns, the gradient of the critic."""


@dataclass(frozen=True, slots=True, eq=False)
class Objective(Request):
    """The objective that users differentiate: the surrogate of a policy gradient over the whole episode.

    The advantage of a step is the user's return from there on, less the baseline, divided by ``reach`` and clipped
    to [-1, 1].
    With one local step a user reports the gradient (REINFORCE). With more they climb the clipped objective of PPO on
    their own episode, and report how far they came, as in federated averaging.

    Attributes:
        baseline: ``[h]``, the expected return from each stage on, from releases.
        reach: The distance from the baseline at which advantages are clipped; returns are reported up to it.
        clip: Norm to which a user's gradient is clipped, whatever the length of the episode.
        discount: Factor on rewards for each further step.
        shares: The shares of the policy's gradient, of returns by stage, of the range of returns and of the critic's
            gradient in a report. Its norm is at most that of the shares, which is one or less.
        local_steps: Number of steps that a user climbs.
        local_rate: Length of each of these steps.
        ratio: How far the probability of an action may move, as in PPO.
        critic: ``[parameter]``, the value network that the baseline is added to; empty for none.
        mixing: lambda of generalized advantage estimation, where there is a critic.
        entropy: Weight of the policy's entropy, which is added to the objective at each step.
    """

    baseline: NDArray[np.float64]
    reach: float = 1.0
    clip: float = 1.0
    discount: float = 1.0
    shares: tuple[float, ...] = (0.95, 0.3, 0.0, 0.0)
    local_steps: int = 1
    local_rate: float = 1.0
    ratio: float = 0.2
    critic: NDArray[np.float64] | None = None
    mixing: float = 1.0
    entropy: float = 0.0

    @classmethod
    def plain(cls, horizon: int) -> Objective:
        """Return the default objective, for users who were sent none."""
        return cls(np.zeros(horizon))

    def checked(self, horizon: int, n_states: int, n_actions: int) -> Objective:
        """Return a read-only copy in plain numbers; raise if it does not fit these sizes."""
        baseline = read_only(as_array(self.baseline, "baseline"))
        if baseline.shape != (horizon,):
            raise ValueError(f"baseline has shape {baseline.shape}: give one value for each of the {horizon} stages.")
        numbers = {name: real(getattr(self, name), name) for name in _NUMBERS}
        for name, value in numbers.items():
            if not (math.isfinite(value) and (value > 0.0 or (name == "entropy" and value == 0.0))):
                raise ValueError(f"{name} is {value}: it is a number above 0{', or 0' * (name == 'entropy')}.")
        for name in ("discount", "mixing"):
            if numbers[name] > 1.0:
                raise ValueError(f"{name} is {numbers[name]}: it is at most 1.")
        if not isinstance(self.shares, tuple | list):
            raise TypeError(f"shares are {shown(self.shares)}: give {SHARES} numbers.")
        shares = tuple(real(share, "A share") for share in self.shares)
        if len(shares) != SHARES or not all(share >= 0.0 for share in shares) or not _norm(shares) <= 1.0 + 1e-12:
            raise ValueError(f"shares are {shares}: {SHARES} numbers, 0 or more, whose squares add up to at most 1.")
        steps = positive_integer(self.local_steps, "local_steps", "steps")
        critic = read_only(as_array(np.zeros(0) if self.critic is None else self.critic, "critic"))
        if critic.ndim != 1:
            raise ValueError(f"critic has shape {critic.shape}: give one row of parameters.")
        return Objective(baseline, shares=shares, local_steps=steps, critic=critic, **numbers)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the objective by name, to be saved."""
        numbers = np.array([getattr(self, name) for name in _NUMBERS])
        critic = np.zeros(0) if self.critic is None else self.critic
        whole = np.array([self.local_steps])
        return {
            "baseline": self.baseline,
            "numbers": numbers,
            "shares": np.array(self.shares),
            "critic": critic,
            "steps": whole,
        }

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Objective:
        """Return the objective with these arrays."""
        numbers = dict(zip(_NUMBERS, map(float, arrays["numbers"]), strict=True))
        shares, steps = tuple(map(float, arrays["shares"])), int(arrays["steps"][0])
        return cls(arrays["baseline"], shares=shares, local_steps=steps, critic=arrays["critic"], **numbers)


_NUMBERS = ("reach", "clip", "discount", "local_rate", "ratio", "mixing", "entropy")


def _norm(shares: tuple[float, ...]) -> float:
    return math.sqrt(math.fsum(share * share for share in shares))


ABOUT = ("scales", "centre", "step")
"""The questions about dynamics."""


@dataclass(frozen=True, slots=True, eq=False)
class Refinement(Request):
    """A question about dynamics, and the model that users have.

    Users answer one of three questions. ``"scales"``: the power of two next to the size of each number of their states,
    of its changes, and of rewards. ``"centre"``: the mean of each number, and where they started. ``"step"``: the step
    by which their own episode would correct the coefficients of the model, clipped, and how long it was.

    Attributes:
        about: The question.
        centre, scale: ``[i]``; numbers of a state are standardized by them.
        units: ``[target]``: the unit of each number's change, and of the reward; 0 for what is not learned.
        coefficients: ``[feature, target]``, those of the model, in these units.
        clip: Norm to which a user's step is clipped; for ``"centre"``, that of their means.
        degree: Degree of the largest features whose coefficients are corrected.
    """

    about: str
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    units: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    clip: float = 1.0
    degree: int = 1

    def checked(self, horizon: int, n_states: int, n_actions: int) -> Refinement:
        """Return a read-only copy in plain numbers; raise if it does not fit these sizes."""
        if self.about not in ABOUT:
            raise ValueError(f"about is {shown(self.about)}: choose one of {', '.join(map(repr, ABOUT))}.")
        arrays = {name: read_only(as_array(getattr(self, name), name)) for name in _ARRAYS}
        shapes = {"centre": (n_states,), "scale": (n_states,), "units": (n_states + 1,)}
        for name, shape in shapes.items():
            if arrays[name].shape != shape:
                raise ValueError(f"{name} has shape {arrays[name].shape}: it must be {shape}.")
        if arrays["coefficients"].ndim != 2 or arrays["coefficients"].shape[1] != n_states + 1:
            raise ValueError(f"coefficients have shape {arrays['coefficients'].shape}: give [feature, {n_states + 1}].")
        if not (arrays["scale"] > 0.0).all() or not (arrays["units"] >= 0.0).all():
            raise ValueError("Scales are above 0, and units 0 or more.")
        clip = real(self.clip, "clip")
        if not (math.isfinite(clip) and clip > 0.0):
            raise ValueError(f"clip is {clip}: it is a number above 0.")
        return Refinement(self.about, clip=clip, degree=positive_integer(self.degree, "degree", "factors"), **arrays)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the request by name, to be saved."""
        whole = np.array([ABOUT.index(self.about), self.degree])
        return {name: getattr(self, name) for name in _ARRAYS} | {"clip": np.array([self.clip]), "whole": whole}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Refinement:
        """Return the request with these arrays."""
        about, degree = (int(number) for number in arrays["whole"])
        named = {name: arrays[name] for name in _ARRAYS}
        return cls(ABOUT[about], clip=float(arrays["clip"][0]), degree=degree, **named)


_ARRAYS = ("centre", "scale", "units", "coefficients")

REQUESTS: dict[str, type[Request]] = {kind.__name__: kind for kind in (Values, Wanted, Objective, Refinement)}
"""All kinds of requests, by name."""

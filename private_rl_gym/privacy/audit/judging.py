"""Choice of an attack on half of the runs, and its evaluation on the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import as_array, flag, real, shown
from private_rl_gym.privacy.audit.bounds import clopper_pearson, epsilon_below, epsilon_of_mu, mu_below

__all__ = ["Judged", "Judgement", "Score", "judge"]

CANDIDATES = 400
"""Largest number of thresholds that are tried."""

CAUTION = (0.2, 0.02)
"""Factors on the failure probability of the two bounds while choosing, because the best of many is partly luck."""

FIRST = 1.1
"""Factor by which another score has to beat the first, which knows the distribution that others have to learn."""


class Score(Protocol):
    """A number for every run, which is larger if the run resembles world 1."""

    name: str
    learns: bool  # if not, the whole first half of the runs is used for choosing

    def fit(self, zero: NDArray[np.float64], one: NDArray[np.float64]) -> None:
        """Learn from some runs of both worlds, ``[run, number]``."""

    def __call__(self, runs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return scores of other runs."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One event, counted in runs that were not used to choose it.

    Attributes:
        score: Name of the score whose threshold defines it.
        hits, alarms: Number of runs with the event in the world where it should happen, and in the other.
        trials: Number of runs in each of these worlds.
        rates: The rates of the two kinds of error, and upper bounds on them: ``(alarm, miss, alarm <=, miss <=)``.
    """

    score: str
    hits: int
    alarms: int
    trials: tuple[int, int]
    rates: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """The result of an attack: lower bounds on epsilon.

    They hold together with probability 1 - ``failure``.

    Attributes:
        epsilon: The bound that holds for any mechanism.
        gaussian: The bound that holds if noise is Gaussian; None unless it is stated to be.
        event: The event behind ``epsilon``.
        gaussian_event: The event behind ``gaussian``.
        curve: ``[point, 2]``, both kinds of error of the better score over all thresholds, in the judged half.
        failure: The probability that a bound is wrong.
    """

    epsilon: float
    gaussian: float | None
    event: Judged
    gaussian_event: Judged | None
    curve: NDArray[np.float64]
    failure: float

    @property
    def bound(self) -> float:
        """The larger of the two bounds."""
        return max(self.epsilon, self.gaussian or 0.0)

    @property
    def best(self) -> Judged:
        """The event behind the best bound."""
        gaussian = self.gaussian_event
        return gaussian if gaussian is not None and (self.gaussian or 0.0) > self.epsilon else self.event


def judge(
    zero: NDArray[np.float64],
    one: NDArray[np.float64],
    scores: Sequence[Score],
    *,
    delta: float,
    failure: float = 0.05,
    gaussian: bool = False,
) -> Judgement:
    """Choose an attack on half of the runs, and evaluate it on the rest.

    The bounds on epsilon are computed from the second half.

    Args:
        zero: ``[run, number]``, the observations in world 0; runs are independent.
        one: The observations in world 1.
        scores: The scores to try. They learn on the first quarter of the runs; on the second, one of them is chosen
            together with a threshold: the first score, unless another is clearly better.
        delta: The delta for which epsilon is bounded.
        failure: Probability with which the bounds may be wrong; shared among them where there are two.
        gaussian: Whether noise is stated to be Gaussian, so that a second bound may assume it.
    """
    zero, one = as_array(zero, "zero"), as_array(one, "one")
    if zero.ndim != 2 or one.ndim != 2 or zero.shape[1] != one.shape[1]:
        raise ValueError(f"zero has shape {zero.shape} and one {one.shape}: give rows of equally many numbers.")
    for name, value in (("delta", delta), ("failure", failure)):
        if not 0.0 <= real(value, name) < 1.0:
            raise ValueError(f"{name} is {shown(value)}: it must lie in [0, 1).")
    gaussian = flag(gaussian, "gaussian")
    if min(len(zero), len(one)) < 40:
        raise ValueError(f"There are {len(zero)} and {len(one)} runs: an attack is chosen and judged on 40 at least.")
    parts = [_parts(runs) for runs in (zero, one)]
    failure_each = failure / 2.0 if gaussian else failure
    scored = [_scored(score, parts) for score in scores]
    trials = (len(parts[0][2]), len(parts[1][2]))

    def best(objective: Any) -> tuple[int, float, bool]:
        """Return the best score, with its threshold and direction, on the second quarter."""
        tried = []
        for number, ((zero_scores, one_scores), _) in enumerate(scored):
            for upwards in (True, False):
                thresholds, value = _tried(zero_scores, one_scores, upwards, objective)
                place = int(np.argmax(value))
                worth = float(value[place]) * (FIRST if number == 0 else 1.0)
                tried.append((worth, -number, upwards, float(thresholds[place])))
        _, number, upwards, threshold = max(tried)
        return -number, threshold, upwards

    def count(choice: tuple[int, float, bool], share: float) -> Judged:
        number, threshold, upwards = choice
        zero_scores, one_scores = scored[number][1]
        above = [int((values > threshold).sum()) for values in (zero_scores, one_scores)]
        here, there = (one_scores, zero_scores) if upwards else (zero_scores, one_scores)
        hits, alarms = (above[1], above[0]) if upwards else (trials[0] - above[0], trials[1] - above[1])
        sizes = (len(here), len(there))
        least, _ = clopper_pearson(hits, sizes[0], share / 2.0)
        _, most = clopper_pearson(alarms, sizes[1], share / 2.0)
        rates = (alarms / sizes[1], 1.0 - hits / sizes[0], float(most), 1.0 - float(least))
        return Judged(scores[number].name, hits, alarms, sizes, rates)

    choice = best(lambda hits, alarms, sizes: epsilon_below(hits, alarms, sizes, delta, failure_each * CAUTION[0]))
    event = count(choice, failure_each)
    epsilon = float(epsilon_below(event.hits, event.alarms, event.trials, delta, failure_each))
    of_mu, gaussian_event = None, None
    if gaussian:
        choice = best(lambda hits, alarms, sizes: mu_below(hits, alarms, sizes, failure_each * CAUTION[1]))
        gaussian_event = count(choice, failure_each)
        mu = float(mu_below(gaussian_event.hits, gaussian_event.alarms, gaussian_event.trials, failure_each))
        of_mu = epsilon_of_mu(mu, delta)
    return Judgement(epsilon, of_mu, event, gaussian_event, _curve(*scored[choice[0]][1], upwards=choice[2]), failure)


def _parts(runs: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Return the first quarter of the runs, the second quarter, and the second half."""
    quarter, half = len(runs) // 4, len(runs) // 2
    return runs[:quarter], runs[quarter:half], runs[half:]


def _scored(score: Score, parts: Any) -> tuple[Any, Any]:
    """Return the scores to choose by and the scores to evaluate, in both worlds."""
    if not score.learns:
        early = [np.nan_to_num(score(np.concatenate(part[:2]))) for part in parts]
        return tuple(early), tuple(np.nan_to_num(score(part[2])) for part in parts)
    score.fit(parts[0][0], parts[1][0])
    return tuple(tuple(np.nan_to_num(score(part[place])) for part in parts) for place in (1, 2))  # type: ignore[return-value]


def _tried(zero: NDArray[Any], one: NDArray[Any], upwards: bool, objective: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return thresholds, and the value of the objective at each."""
    pooled = np.unique(np.concatenate([zero, one]))
    if len(pooled) > CANDIDATES:  # evenly spaced ones, and all at both ends, where rare events are
        ends = np.arange(CANDIDATES // 8)
        inner = np.linspace(0, len(pooled) - 1, CANDIDATES - 2 * len(ends)).astype(int)
        pooled = pooled[np.unique(np.concatenate([ends, inner, len(pooled) - 1 - ends]))]
    above = [len(values) - np.searchsorted(np.sort(values), pooled, side="right") for values in (zero, one)]
    if upwards:
        return pooled, objective(above[1], above[0], (len(one), len(zero)))
    return pooled, objective(len(zero) - above[0], len(one) - above[1], (len(zero), len(one)))


def _curve(zero: NDArray[Any], one: NDArray[Any], *, upwards: bool) -> NDArray[np.float64]:
    """Return the rates of alarms and misses at every threshold, thinned to a hundred points."""
    pooled = np.unique(np.concatenate([zero, one]))
    pooled = pooled[np.unique(np.linspace(0, len(pooled) - 1, 100).astype(int))]
    above = [1.0 - np.searchsorted(np.sort(values), pooled, side="right") / len(values) for values in (zero, one)]
    alarms, misses = (above[0], 1.0 - above[1]) if upwards else (1.0 - above[1], above[0])
    ends = np.array([[0.0, 1.0], [1.0, 0.0]])
    points = np.concatenate([ends, np.stack([alarms, misses], axis=1)])
    return points[np.lexsort((-points[:, 1], points[:, 0]))]

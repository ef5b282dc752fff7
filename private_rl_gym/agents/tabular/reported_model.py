"""Models that are estimated from batches of reports.

Each batch is weighted by its reports over its noise.

* ``ReportedBatch`` - a batch in the past: its release, and how it came about
* ``Estimate`` - rows of transitions and rewards that are known in part
* ``ReportedModel`` - the model: an estimate pooled over stages, which the data of single stages may overrule
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.tabular import frugal_constants as chosen
from private_rl_gym.planning.reporting import expected_reports, expected_visits, plan, value_from_below
from private_rl_gym.planning.search import simplex
from private_rl_gym.planning.sparse import likely_rows
from private_rl_gym.privacy.release import CERTAIN, ReportRelease
from private_rl_gym.privacy.requests import Wanted

__all__ = ["Estimate", "ReportedBatch", "ReportedModel", "Table"]

Table = NDArray[np.int64]  # [h, s], the actions of a deterministic policy


NONE = 1e-9
"""A number of reports that is as good as none: it keeps quotients finite."""


@dataclass(frozen=True, slots=True, eq=False)
class ReportedBatch:
    """A past batch: its release, noise, policies and request.

    The noise is that of a cell. Each policy has the number of its users.
    """

    release: ReportRelease
    noise: float
    runs: Sequence[tuple[Table, int]]
    request: Wanted

    @property
    def users(self) -> int:
        """Number of users in the batch."""
        return sum(count for _, count in self.runs)


@dataclass(frozen=True, slots=True, eq=False)
class _Observed:
    """Observed and expected reports of a batch in the cells of an estimate.

    The noise is given for every block.
    """

    reports: NDArray[np.float64]  # [g, s, a, s', bit]
    expected: NDArray[np.float64]  # [g, s, a]
    noise: float | NDArray[np.float64]  # of every block

    def in_blocks(self, blocks: int) -> _Observed:
        """Return the same reports in fewer blocks.

        Stage h is in block h * blocks // H.
        """
        H = len(self.expected)
        starts = -(-np.arange(blocks) * H // blocks)
        noise = self.noise * np.sqrt(np.diff(np.append(starts, H)))[:, None, None]
        return _Observed(np.add.reduceat(self.reports, starts), np.add.reduceat(self.expected, starts), noise)


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Estimated rows of cells ``[g, s, a]``.

    Block g stands for consecutive stages. Blocks differ by at most one stage in length.

    Attributes:
        rows: ``[g, s, a, s', bit]``, probabilities.
        known: Whether a row is known.
        noise: The deviation of noise in a probability.
        n: The effective number of reports.
        raw: The rows before they were made probabilities; of an estimate that has merged with others, ``rows``.
        sampled: The number of reports that would have the same deviation by sampling.
    """

    rows: NDArray[np.float64]
    known: NDArray[np.bool_]
    noise: NDArray[np.float64]
    n: NDArray[np.float64]
    raw: NDArray[np.float64]
    sampled: NDArray[np.float64]

    @classmethod
    def of_nothing(cls, blocks: int, S: int, A: int) -> Estimate:
        """Return an estimate in which nothing is known."""
        shape = blocks, S, A
        rows, none = np.full((*shape, S, 2), 0.5 / S), np.full(shape, NONE)
        return cls(rows, np.zeros(shape, dtype=bool), np.ones(shape), none, rows, none)

    def updated(self, batches: Sequence[_Observed]) -> Estimate:
        """Return the estimate from all batches.

        It puts some trust in the expected numbers of reports. The weight of a batch in a cell is reports / (reports +
        noise^2): a cell that was visited in one batch only does not receive the noise of all batches.
        """
        shape, S = self.known.shape, self.known.shape[1]
        sums, expected, noise, sampling = np.zeros((*shape, S, 2)), *np.zeros((3, *shape))
        for batch in batches:
            reports = batch.expected + NONE
            weight = reports / (reports + batch.noise**2)
            sums += weight[..., None, None] * batch.reports
            noise += (weight * batch.noise) ** 2
            expected += weight * reports
            sampling += weight**2 * reports
        received, precision = sums.sum(axis=(-2, -1)), 1.0 / (2 * S * noise + sampling + NONE)
        trust = 1.0 / (chosen.FORESIGHT * expected + NONE) ** 2
        n = (trust * expected + precision * received) / (trust + precision)
        deviation = np.sqrt(noise)
        known = (n > 1.0) & ((n > chosen.DOUBT * deviation) | (self.known & (n > chosen.STAYS * deviation)))
        n = np.maximum(n, NONE)
        raw = sums / n[..., None, None]
        scale = 1.0 / (n * np.sqrt(trust + precision))
        rows = likely_rows(raw.reshape(*shape, -1), deviation / n, scale).reshape(sums.shape)
        rows[~known] = 0.5 / S
        effective = np.maximum(n**2 / (n + S * noise + NONE), NONE)
        sampled = np.maximum(n**2 / (sampling + NONE), NONE)
        return Estimate(rows, known, np.where(known, deviation / n, 1.0), effective, raw, sampled)

    def of_parts(self, parts: Estimate, users: float) -> Estimate:
        """Return an estimate for each part of a block.

        It is the mean of the block's row, with the weight of ``users``, and of the part's own row.
        """
        whole = self._repeated(len(parts.known))
        worth = np.where(whole.known, np.minimum(whole.n, users), 0.0)
        own = np.where(parts.known, parts.n, 0.0)
        known = parts.known | (worth >= chosen.WORTHLESS)
        total = np.where(known, worth + own, 1.0)
        share = np.where(known, worth / total, 0.0)[..., None, None]
        rows = share * whole.rows + (1.0 - share) * parts.rows
        noise = np.where(known, np.hypot(worth * whole.noise, own * parts.noise) / total, 1.0)
        n = np.where(known, np.maximum(total, NONE), NONE)
        return Estimate(rows, known, noise, n, rows, np.maximum(n, NONE))

    def _repeated(self, blocks: int) -> Estimate:
        of = np.arange(blocks) * len(self.known) // blocks
        return Estimate(self.rows[of], self.known[of], self.noise[of], self.n[of], self.raw[of], self.sampled[of])

    def worth_to(self, parts: Estimate) -> float:
        """Return the number of users that rows of the whole count for in its parts.

        It is the variance of a report over the variance of the parts. The variance of the parts around the whole is the
        excess of their squared distances over sampling and noise. As long as chance explains ``PRIOR``, the result is
        ``PRIOR``.
        """
        whole = self._repeated(len(parts.known))
        both = whole.known & parts.known
        if not both.any():
            return chosen.PRIOR
        rows, raw = whole.rows[both], parts.raw[both]
        one = rows * (1.0 - rows)  # the variance of one report
        sampling = 1.0 / whole.sampled[both] + 1.0 / parts.sampled[both]
        noise = whole.noise[both] ** 2 + parts.noise[both] ** 2
        chance = one * sampling[:, None, None] + noise[:, None, None] + NONE
        total = float((1.0 / chance).sum())
        spread = float((((raw - rows) ** 2 - chance) / chance).sum()) / total
        doubt = np.sqrt(2.0 * chance.size) / total
        report = float((one / chance).sum()) / total
        least = report / (max(spread, 0.0) + 2.0 * doubt)
        most = report / (spread - 4.0 * doubt) if spread > 4.0 * doubt else np.inf
        return float(min(max(chosen.PRIOR, least), most))


class ReportedModel:
    """A model that is known in part.

    The arrays are ``[g, s, a, s']`` and ``[g, s, a]``: see ``planning.reporting``.

    Args:
        levels: Estimates, the first of all stages together; where stages may differ, of halves of the episode, and of
            their halves, to single stages.
        initial: ``[s]``, where users start.
        absorbing: A state that no action leaves, and the reward of each step there.

    Attributes:
        alike: Whether chance explains the differences between stages.
    """

    def __init__(
        self, levels: Sequence[Estimate], initial: NDArray[np.float64], absorbing: tuple[int, float] | None = None
    ) -> None:
        self.levels, self.initial, self.alike = levels, initial, True
        merged = levels[0]
        for parts in levels[1:]:
            worth = merged.worth_to(parts)
            self.alike &= worth >= chosen.PRIOR
            merged = merged.of_parts(parts, worth)
        self.known, self.noise, self.n = merged.known.copy(), merged.noise.copy(), merged.n.copy()
        self.P = merged.rows.sum(axis=-1)
        self.r = np.where(self.known, merged.rows[..., 1].sum(axis=-1), 0.0)
        if absorbing is not None:
            state, reward = absorbing
            self.P[:, state], self.r[:, state], self.known[:, state] = 0.0, reward, True
            self.P[:, state, :, state] = 1.0
            self.noise[:, state], self.n[:, state] = 0.0, CERTAIN

    @classmethod
    def of_nothing(cls, H: int, S: int, A: int, *, stationary: bool) -> ReportedModel:
        """Return a model of which nothing is known."""
        blocks = [1]
        while not stationary and blocks[-1] < H:
            blocks.append(min(2 * blocks[-1], H))
        return cls([Estimate.of_nothing(count, S, A) for count in blocks], np.full(S, 1.0 / S))

    @property
    def pooled(self) -> Estimate:
        """The estimate of all stages together."""
        return self.levels[0]

    def updated(self, past: Sequence[ReportedBatch]) -> ReportedModel:
        """Return the model of all batches.

        Each batch is weighted by the reports that the model itself expects of it.
        """
        release, initial = past[0].release, _starts(past, len(self.initial))
        absorbing = None if release.absorbing is None else (release.absorbing, release.waiting_reward)
        model = ReportedModel(self.levels, initial, absorbing)
        for _ in range(chosen.ROUNDS):
            staged = {number: model._by_stage(batch) for number, batch in enumerate(past) if batch.request.by_stage}
            levels = []
            for level in self.levels:
                blocks = len(level.known)
                observed = [
                    staged[number].in_blocks(blocks) if number in staged else model._pooled(batch)
                    for number, batch in enumerate(past)
                    if number in staged or blocks == 1
                ]
                levels.append(level.updated(observed))
            model = ReportedModel(levels, initial, absorbing)
        return model

    def _pooled(self, batch: ReportedBatch) -> _Observed:
        """Return reports without stages.

        They are stored at the first stage, or there are no stages.
        """
        reports = batch.release.reports
        first = reports[:1] if reports.ndim > 4 else reports[None]
        return _Observed(first, self.reports(batch.runs, batch.request)[None], batch.noise)

    def _by_stage(self, batch: ReportedBatch) -> _Observed:
        """Return reports with stages, and the visits that are expected at each stage."""
        visits = sum(count * expected_visits(self.P, self.initial, actions) for actions, count in batch.runs)
        expected = visits / len(batch.release.reports) if batch.request.most == 1 else visits
        return _Observed(batch.release.reports, np.asarray(expected), batch.noise)

    def reports(self, runs: Sequence[tuple[Table, int]], request: Wanted) -> NDArray[np.float64]:  # [s, a]
        """Return the expected number of reports of each cell in a batch.

        Reports are counted over all stages.
        """
        total: NDArray[np.float64] = np.zeros(self.r.shape[1:])
        asked = request.cells, request.anywhere, request.starts, request.most
        for actions, count in runs:
            each = np.zeros_like(total)
            expected_reports(self.P, self.initial, actions, *asked, each)
            total += count * each
        return total

    def plan(self, H: int, by_noise: float, by_sampling: float, unknown: float) -> tuple[Any, Any]:
        """Return Q and V, optimistic where multipliers are positive."""
        q, v = plan(self.P, self.r, self.known, self.noise, self.n, H, by_noise, by_sampling, unknown)
        return q, v

    def drawn(self, rng: np.random.Generator) -> ReportedModel:
        """Draw a model from the posterior.

        A row is drawn from its effective reports, and from some reports of the other actions in its state. So a cell
        with few, unlucky reports gets another chance.
        """
        model, worth = copy.copy(self), np.minimum(self.n, chosen.MOST_WORTH)[..., None]
        others = (worth * self.P).sum(axis=2, keepdims=True) / worth.sum(axis=2, keepdims=True)
        rows = rng.standard_gamma(
            self.n[..., None] * self.P + chosen.OTHERS * others + chosen.ANYTHING / self.P.shape[-1]
        )
        ones, zeros = rng.standard_gamma(np.stack([self.n * self.r, self.n * (1.0 - self.r)]) + 0.5)
        model.P, model.r = rows / rows.sum(axis=-1, keepdims=True), ones / (ones + zeros)
        return model

    def value(self, actions: Table) -> float:
        """Return the value of a policy.

        Unknown cells have value 0.
        """
        return float(value_from_below(self.P, self.r, self.noise, self.initial, actions, 0.0))

    def low_value(self, actions: Table) -> float:
        """Return the value of a policy, less a deviation of noise at every step."""
        return float(value_from_below(self.P, self.r, self.noise, self.initial, actions, 1.0))


def _starts(past: Sequence[ReportedBatch], S: int) -> NDArray[np.float64]:
    """Return the distribution of start states, from all batches that were asked for it.

    Batches are weighted as for the other estimates.
    """
    total, reports = np.zeros(S), 0.0
    for batch in past:
        expected = batch.request.starts * batch.users
        weight = expected / (expected + S * batch.noise**2 + NONE)
        total += weight * batch.release.starts
        reports += weight * expected
    return simplex(np.append(total, max(reports, NONE)))[:-1]

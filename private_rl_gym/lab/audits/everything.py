"""Audits of every boundary, mechanism and calibration, at several epsilons.

At 95 % confidence one audit in twenty may raise a false alarm. The number of alarms is compared with that.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from private_rl_gym.lab.audits.audit import audit
from private_rl_gym.lab.audits.config import AuditConfig
from private_rl_gym.lab.audits.report import Report
from private_rl_gym.lab.grids.cell import Choice, digest
from private_rl_gym.lab.grids.engines import Answer, Engine, InProcess
from private_rl_gym.lab.registry import BOUNDARIES, GridError
from private_rl_gym.privacy.mechanisms import MECHANISMS

__all__ = ["CASES", "EPSILONS", "Case", "Matrix", "alarms_allowed", "everything", "matrix"]

EPSILONS = (0.5, 1.0, 2.0, 4.0)

_DELTA = 1e-6


def _case(boundary: str, delta: float | None = None, inside: str | None = None, **about: Any) -> AuditConfig:
    """Return a stack without its epsilon.

    The options are those of an audit, of the boundary, and of the boundary inside.
    """
    parts = {name: about.pop(name) for name in AuditConfig.__dataclass_fields__ if name in about}
    outer = {} if delta is None else {"delta": delta}
    if inside is not None:
        return AuditConfig(Choice(boundary, outer), inside=Choice(inside, about), **parts)
    return AuditConfig(Choice(boundary, outer | about), **parts)


CASES: dict[str, AuditConfig] = {
    **{
        name: _case(name, _DELTA if board.takes("delta") else None)
        for name, board in BOUNDARIES.items()
        if board.takes("epsilon")
    },
    **{
        f"jdp, {counting}, {law}": _case("jdp", _DELTA if law == "gaussian" else 0.0, counting=counting, noise=law)
        for counting, mechanism in MECHANISMS.items()
        for law in mechanism.laws
    },
    "jdp, delta 0.01": _case("jdp", 0.01),
    "jdp, batches of 2": _case("jdp", _DELTA, batch_size=2),
    "jdp, users who come back": _case("jdp", _DELTA, visits=3),
    "jdp, users who come back, batches": _case("jdp", _DELTA, visits=3, counting="batched"),
    "jdp, users who come back, pure": _case("jdp", 0.0, visits=3),
    "jdp, pooled": _case("jdp", _DELTA, stationary=True, horizon=2),
    "jdp, pooled, Laplace": _case("jdp", 0.0, stationary=True, horizon=2),
    "ldp, pooled": _case("ldp", stationary=True, horizon=2),
    "sdp, pooled": _case("sdp", _DELTA, stationary=True, horizon=2),
    "jdp, printed constants": _case("jdp", 0.0, calibration="paper"),
    "jdp, two stages": _case("jdp", _DELTA, horizon=2),
    "jdp, public start": _case("jdp", 0.0, public_start=True),
    "jdp, moments": _case("jdp", _DELTA, statistic="linear", horizon=2),
    "jdp, moments, Laplace": _case("jdp", 0.0, statistic="linear", horizon=2),
    "jdp, moments, printed constants": _case("jdp", _DELTA, calibration="paper", statistic="linear", horizon=2),
    "ldp, one step": _case("ldp", horizon=2),
    "ldp, unary": _case("ldp", randomizer="unary"),
    "ldp, unary, two stages": _case("ldp", randomizer="unary", horizon=2),
    "ldp, Laplace": _case("ldp", randomizer="laplace"),
    "ldp, Gaussian": _case("ldp", _DELTA, randomizer="gaussian"),
    "ldp, printed constants": _case("ldp", randomizer="laplace", calibration="paper"),
    "ldp, moments": _case("ldp", statistic="linear", horizon=2),
    "sdp, delta 0.01": _case("sdp", 0.01),
    "sdp, moments": _case("sdp", _DELTA, statistic="linear", horizon=2),
    "sdp, messages": _case("sdp", 0.01, simulation="messages"),
    "sdp, printed constants": _case("sdp", _DELTA, calibration="paper"),
    **{
        f"{name}, {horizon} report{'s' * (horizon > 1)}": replace(case, statistic="reports", horizon=horizon)
        for horizon in (1, 5)
        for name, case in {
            "jdp": _case("jdp", _DELTA),
            "jdp, pure": _case("jdp", 0.0),
            "ldp": _case("ldp"),
            "sdp": _case("sdp", _DELTA),
        }.items()
    },
    "jdp, 5 staged reports": _case("jdp", _DELTA, statistic="staged-reports", horizon=5),
    "jdp around ldp, 5 reports": _case("jdp", _DELTA, "ldp", statistic="reports", horizon=5),
    "sdp around ldp, 5 reports": _case("sdp", None, "ldp", statistic="reports", horizon=5),
    "jdp, gradients": _case("jdp", _DELTA, statistic="gradient"),
    "jdp, gradients, Laplace": _case("jdp", 0.0, statistic="gradient"),
    "ldp, gradients, directions": _case("ldp", randomizer="direction", statistic="gradient"),
    "ldp, gradients, Gaussian": _case("ldp", _DELTA, randomizer="gaussian", statistic="gradient"),
    "jdp, dynamics": _case("jdp", _DELTA, statistic="dynamics"),
    "ldp, dynamics, directions": _case("ldp", randomizer="direction", statistic="dynamics"),
    "sdp around ldp, dynamics": _case("sdp", None, "ldp", statistic="dynamics"),
    "sdp around ldp, gradients": _case("sdp", None, "ldp", statistic="gradient"),
    "jdp around ldp": _case("jdp", _DELTA, "ldp"),
    "jdp around ldp, Laplace": _case("jdp", 0.0, "ldp", randomizer="laplace"),
    "sdp around ldp": _case("sdp", None, "ldp"),
    "sdp around ldp, unary": _case("sdp", None, "ldp", randomizer="unary", horizon=2),
    "sdp around ldp, Laplace": _case("sdp", None, "ldp", randomizer="laplace"),
    "ldp at every step": _case("per-step"),
    "jdp, DP-UCBVI": _case("jdp", _DELTA, agent=Choice("DPUCBVI"), attacks=("black-box",)),
    "jdp, PUCB": _case("jdp", 0.0, agent=Choice("PUCB"), attacks=("black-box",)),
    "ldp, Private-UCB-PO": _case("ldp", agent=Choice("PrivateUCBPO"), attacks=("black-box",)),
    "jdp, LinOpt-VI": _case("jdp", _DELTA, agent=Choice("PrivateLinOptVI"), attacks=("black-box",), horizon=2),
    "RLSVI": _case("open", agent=Choice("RLSVI", {"constants": "theory"}), attacks=("stream",), users=12),
}
"""Stacks by name, in which every audit sets its own epsilon: every boundary and every counting mechanism, and more."""


def everything(
    *, runs: int, seeds: Sequence[int], epsilons: Sequence[float] = EPSILONS
) -> Iterator[tuple[str, AuditConfig]]:
    """Yield all cases at all epsilons, each with its name."""
    for seed, (name, case), epsilon in itertools.product(seeds, CASES.items(), epsilons):
        config = replace(case, boundary=_at(case.boundary, epsilon), runs=runs, seed=seed)
        if case.inside is not None:  # the shuffler's epsilon follows from that of the boundary inside
            outer = case.boundary if case.boundary.name == "sdp" else config.boundary
            config = replace(config, boundary=outer, inside=_at(case.inside, epsilon))
        if name == "RLSVI":  # its epsilon follows from its own noise
            agent = Choice(name, {"constants": "theory", "variance_scale": 4.0 / epsilon**2})
            config = replace(case, agent=agent, runs=runs, seed=seed)
        yield name, config


def _at(choice: Choice, epsilon: float) -> Choice:
    return Choice(choice.name, {**choice.options, "epsilon": epsilon})


@dataclass(frozen=True)
class Case:
    """One audit of many."""

    name: str
    config: AuditConfig

    @property
    def key(self) -> str:
        """A unique name."""
        return digest({"name": self.name, "config": self.config.to_dict()}).hex()[:32]


def _report(case: Case) -> Report:
    return audit(case.config)


@dataclass(frozen=True, slots=True)
class Matrix:
    """The outcome of all audits."""

    cases: tuple[tuple[Case, Report], ...]

    @property
    def alarms(self) -> list[tuple[Case, Report]]:
        """The audits whose bound is above the claim."""
        return [(case, report) for case, report in self.cases if report.broken]

    @property
    def allowed(self) -> int:
        """Number of alarms that chance explains."""
        return alarms_allowed(len(self.cases))

    @property
    def broken(self) -> bool:
        """Whether there are more alarms than chance explains."""
        return len(self.alarms) > self.allowed

    @property
    def sentence(self) -> str:
        """The outcome as a sentence."""
        return (
            f"{len(self.alarms)} of {len(self.cases)} audits found more than is claimed; at 95 % confidence chance "
            f"explains {self.allowed}."
        )


def alarms_allowed(audits: int, confidence: float = 0.95) -> int:
    """Return the number of alarms that chance explains.

    Audits of sound mechanisms exceed it at most one time in a thousand.
    """
    from scipy.stats import binom

    return int(binom.ppf(0.999, audits, 1.0 - confidence))


def matrix(
    plans: Sequence[tuple[str, AuditConfig]],
    engine: Engine | None = None,
    told: Callable[[int, Case | None, Report | None], None] = lambda *_: None,
) -> Matrix:
    """Run all audits and return their outcome."""
    cases = [Case(name, plan) for name, plan in plans]
    order = {case.key: place for place, case in enumerate(cases)}
    reports: list[tuple[Case, Report]] = []
    told(0, None, None)
    answers: Iterator[Answer[Case]] = (engine or InProcess()).run(cases, _report)
    for answer in answers:
        if answer.content is None:
            last = (answer.failure or "").strip().splitlines()[-1:]
            raise GridError(f"{answer.cell.name}: the audit failed. {' '.join(last)}")
        reports.append((answer.cell, answer.content))
        told(len(reports), answer.cell, answer.content)
    return Matrix(tuple(sorted(reports, key=lambda pair: order[pair[0].key])))

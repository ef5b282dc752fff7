"""Every boundary, mechanism and calibration, audited at several epsilons.

At 95 % confidence one audit in twenty may raise a false alarm. The number of alarms is compared with that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from private_rl_gym.experiments.auditing.audit import audit
from private_rl_gym.experiments.auditing.config import AuditConfig
from private_rl_gym.experiments.auditing.report import Report
from private_rl_gym.experiments.config import Choice, digest
from private_rl_gym.experiments.engines import Answer, Engine, InProcess
from private_rl_gym.experiments.names import BOUNDARIES, GridError
from private_rl_gym.privacy.counting import COUNTING

__all__ = ["CASES", "EPSILONS", "Entry", "Matrix", "alarms_allowed", "everything", "matrix"]

EPSILONS = (0.5, 1.0, 2.0, 4.0)

_DELTA = 1e-6


def _jdp(delta: float, **options: Any) -> dict[str, Any]:
    return {"boundary": ("jdp", {"delta": delta, **options})}


def _ldp(**options: Any) -> dict[str, Any]:
    return {"boundary": ("ldp", options)}


CASES: dict[str, dict[str, Any]] = {
    **{
        name: {"boundary": (name, {"delta": _DELTA} if board.takes("delta") else {})}
        for name, board in BOUNDARIES.items()
        if board.takes("epsilon")
    },
    **{
        f"jdp, {counting}, {law}": _jdp(_DELTA if law == "gaussian" else 0.0, counting=counting, noise=law)
        for counting, mechanism in COUNTING.items()
        for law in mechanism.laws
    },
    "jdp, delta 0.01": _jdp(0.01),
    "jdp, batches of 2": _jdp(_DELTA, batch_size=2),
    "jdp, users who come back": _jdp(_DELTA, visits=3),
    "jdp, users who come back, batches": _jdp(_DELTA, visits=3, counting="batched"),
    "jdp, users who come back, pure": _jdp(0.0, visits=3),
    "jdp, pooled": {**_jdp(_DELTA, stationary=True), "horizon": 2},
    "jdp, pooled, Laplace": {**_jdp(0.0, stationary=True), "horizon": 2},
    "ldp, pooled": {**_ldp(stationary=True), "horizon": 2},
    "sdp, pooled": {"boundary": ("sdp", {"delta": _DELTA, "stationary": True}), "horizon": 2},
    "jdp, printed constants": _jdp(0.0, calibration="paper"),
    "jdp, two stages": {**_jdp(_DELTA), "horizon": 2},
    "jdp, public start": _jdp(0.0, public_start=True),
    "jdp, moments": {**_jdp(_DELTA), "statistic": "linear", "horizon": 2},
    "jdp, moments, Laplace": {**_jdp(0.0), "statistic": "linear", "horizon": 2},
    "jdp, moments, printed constants": {**_jdp(_DELTA, calibration="paper"), "statistic": "linear", "horizon": 2},
    "ldp, one step": {**_ldp(), "horizon": 2},
    "ldp, unary": _ldp(randomizer="unary"),
    "ldp, unary, two stages": {**_ldp(randomizer="unary"), "horizon": 2},
    "ldp, Laplace": _ldp(randomizer="laplace"),
    "ldp, Gaussian": _ldp(randomizer="gaussian", delta=_DELTA),
    "ldp, printed constants": _ldp(randomizer="laplace", calibration="paper"),
    "ldp, moments": {**_ldp(), "statistic": "linear", "horizon": 2},
    "sdp, delta 0.01": {"boundary": ("sdp", {"delta": 0.01})},
    "sdp, moments": {"boundary": ("sdp", {"delta": _DELTA}), "statistic": "linear", "horizon": 2},
    "sdp, messages": {"boundary": ("sdp", {"delta": 0.01, "simulation": "messages"})},
    "sdp, printed constants": {"boundary": ("sdp", {"delta": _DELTA, "calibration": "paper"})},
    **{
        f"{name}, {horizon} report{'s' * (horizon > 1)}": {**case, "statistic": "reports", "horizon": horizon}
        for horizon in (1, 5)
        for name, case in {
            "jdp": _jdp(_DELTA),
            "jdp, pure": _jdp(0.0),
            "ldp": _ldp(),
            "sdp": {"boundary": ("sdp", {"delta": _DELTA})},
        }.items()
    },
    "jdp, 5 staged reports": {**_jdp(_DELTA), "statistic": "staged-reports", "horizon": 5},
    "jdp around ldp, 5 reports": {**_jdp(_DELTA), "inside": ("ldp", {}), "statistic": "reports", "horizon": 5},
    "sdp around ldp, 5 reports": {
        "boundary": ("sdp", {"epsilon": None}),
        "inside": ("ldp", {}),
        "statistic": "reports",
        "horizon": 5,
    },
    "jdp, gradients": {**_jdp(_DELTA), "statistic": "gradient"},
    "jdp, gradients, Laplace": {**_jdp(0.0), "statistic": "gradient"},
    "ldp, gradients, directions": {**_ldp(randomizer="direction"), "statistic": "gradient"},
    "ldp, gradients, Gaussian": {**_ldp(randomizer="gaussian", delta=_DELTA), "statistic": "gradient"},
    "sdp around ldp, gradients": {
        "boundary": ("sdp", {"epsilon": None}),
        "inside": ("ldp", {}),
        "statistic": "gradient",
    },
    "jdp around ldp": {**_jdp(_DELTA), "inside": ("ldp", {})},
    "jdp around ldp, Laplace": {**_jdp(0.0), "inside": ("ldp", {"randomizer": "laplace"})},
    "sdp around ldp": {"boundary": ("sdp", {"epsilon": None}), "inside": ("ldp", {})},
    "sdp around ldp, unary": {
        "boundary": ("sdp", {"epsilon": None}),
        "inside": ("ldp", {"randomizer": "unary"}),
        "horizon": 2,
    },
    "sdp around ldp, Laplace": {"boundary": ("sdp", {"epsilon": None}), "inside": ("ldp", {"randomizer": "laplace"})},
    "ldp at every step": {"boundary": ("per-step", {})},
    "jdp, DP-UCBVI": {**_jdp(_DELTA), "agent": ("DPUCBVI", {}), "attacks": ("black-box",)},
    "jdp, PUCB": {**_jdp(0.0), "agent": ("PUCB", {}), "attacks": ("black-box",)},
    "ldp, Private-UCB-PO": {**_ldp(), "agent": ("PrivateUCBPO", {}), "attacks": ("black-box",)},
    "jdp, LinOpt-VI": {
        **_jdp(_DELTA),
        "agent": ("PrivateLinOptVI", {}),
        "attacks": ("black-box",),
        "horizon": 2,
    },
    "RLSVI": {
        "boundary": ("open", {}),
        "agent": ("RLSVI", {"constants": "theory"}),
        "attacks": ("stream",),
        "users": 12,
    },
}
"""Stacks by name, in which every audit sets its own epsilon: every boundary and every counting mechanism, and more."""


def everything(
    *, runs: int, seeds: Sequence[int], epsilons: Sequence[float] = EPSILONS
) -> Iterator[tuple[str, AuditConfig]]:
    """All cases at all epsilons."""
    for seed in seeds:
        for name, case in CASES.items():
            for epsilon in epsilons:
                yield name, _plan(case, epsilon, runs, seed)


def _plan(case: dict[str, Any], epsilon: float, runs: int, seed: int) -> AuditConfig:
    parts = dict(case)
    for part in ("boundary", "inside", "agent"):
        if part not in parts:
            continue
        name, options = parts[part]
        options = dict(options)
        if part == "agent" and name == "RLSVI":
            options["variance_scale"] = 4.0 / epsilon**2  # its epsilon follows from its noise
        elif part != "agent" and name != "open" and options.get("epsilon", 0.0) is not None:
            options["epsilon"] = epsilon
        parts[part] = Choice(name, {key: value for key, value in options.items() if value is not None})
    return AuditConfig(**parts, runs=runs, seed=seed)


@dataclass(frozen=True)
class Entry:
    """One audit of many."""

    name: str
    config: AuditConfig

    @property
    def key(self) -> str:
        """A unique name."""
        return digest({"name": self.name, "config": self.config.to_dict()}).hex()[:32]


def _report(entry: Entry) -> Report:
    return audit(entry.config)


@dataclass(frozen=True, slots=True)
class Matrix:
    """The outcome of all audits."""

    entries: tuple[tuple[Entry, Report], ...]

    @property
    def alarms(self) -> list[tuple[Entry, Report]]:
        """The audits whose bound is above the claim."""
        return [(entry, report) for entry, report in self.entries if report.broken]

    @property
    def allowed(self) -> int:
        """Number of alarms that chance explains."""
        return alarms_allowed(len(self.entries))

    @property
    def broken(self) -> bool:
        """Whether there are more alarms than chance explains."""
        return len(self.alarms) > self.allowed

    @property
    def sentence(self) -> str:
        """The outcome as a sentence."""
        return (
            f"{len(self.alarms)} of {len(self.entries)} audits found more than is claimed; at 95 % confidence chance "
            f"explains {self.allowed}."
        )


def alarms_allowed(audits: int, confidence: float = 0.95) -> int:
    """Number of alarms that audits of sound mechanisms exceed at most one time in a thousand."""
    from scipy.stats import binom

    return int(binom.ppf(0.999, audits, 1.0 - confidence))


def matrix(
    plans: Sequence[tuple[str, AuditConfig]],
    engine: Engine | None = None,
    told: Callable[[int, Entry | None, Report | None], None] = lambda *_: None,
) -> Matrix:
    """Run all audits."""
    entries = [Entry(name, plan) for name, plan in plans]
    order = {entry.key: place for place, entry in enumerate(entries)}
    reports: list[tuple[Entry, Report]] = []
    told(0, None, None)
    answers: Iterator[Answer[Entry]] = (engine or InProcess()).run(entries, _report)
    for answer in answers:
        if answer.content is None:
            last = (answer.failure or "").strip().splitlines()[-1:]
            raise GridError(f"{answer.cell.name}: the audit failed. {' '.join(last)}")
        reports.append((answer.cell, answer.content))
        told(len(reports), answer.cell, answer.content)
    return Matrix(tuple(sorted(reports, key=lambda pair: order[pair[0].key])))

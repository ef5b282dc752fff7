"""Rows of benchmarks: a ratio and its target.

Both sides of a ratio are measured in the same run.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison and its target (infinity for none).

    ``unit`` is ``"times"`` for ratios of two times of one run, which a slow machine does not change, or ``"GB"`` for
    memory, which it does not change either. Absolute times belong in ``aside``: they give an idea, and nothing is
    held against them.
    """

    what: str
    measured: float
    target: float = math.inf
    at_least: bool = False
    unit: str = "times"
    aside: str = ""

    @property
    def met(self) -> bool:
        """Whether the measurement is on the right side of its target."""
        return math.isinf(self.target) or (
            self.measured >= self.target if self.at_least else self.measured <= self.target
        )

    def __str__(self) -> str:
        line = f"{self.what:<72} {self.measured:>10,.2f} {self.unit:<5}"
        if not math.isinf(self.target):
            line += f" {'>=' if self.at_least else '<='} {self.target:>8,.2f}  {'met' if self.met else 'MISSED'}"
        return f"{line}   ({self.aside})" if self.aside else line


def best_of(function: Callable[[], Any], repeats: int = 7) -> float:
    """Return the least of several times, in seconds.

    Other processes disturbed this one least.
    """
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def ratio(measured: Callable[[], Any], yardstick: Callable[[], Any], repeats: int = 7) -> tuple[float, float]:
    """Return the ratio of two times, and the seconds of the first.

    The two functions alternate.
    """
    pairs = [(best_of(measured, 1), best_of(yardstick, 1)) for _ in range(repeats)]
    seconds = min(first for first, _ in pairs)
    return seconds / min(second for _, second in pairs), seconds


def report(measures: Iterable[Callable[[], Row]]) -> int:
    """Measure all and print row by row; return 1 if targets were missed.

    The numbers are written as JSON if requested.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    arguments = parser.parse_args()
    rows = []
    for measure in measures:
        rows.append(measure())
        print(rows[-1], flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=2))
    return 0 if all(row.met for row in rows) else 1

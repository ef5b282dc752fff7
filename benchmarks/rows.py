"""What all benchmarks share: one comparison a row, held against its target."""

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
    """One comparison: what was measured, and the target it is held against; infinity for none."""

    what: str
    measured: float
    unit: str
    target: float
    at_least: bool

    @property
    def met(self) -> bool:
        """Whether the measurement is on the right side of its target."""
        return self.measured >= self.target if self.at_least else self.measured <= self.target

    def __str__(self) -> str:
        start = f"{self.what:<66} {self.measured:>14,.2f} {self.unit:<13}"
        if math.isinf(self.target):
            return start
        return f"{start} {'>=' if self.at_least else '<='} {self.target:>11,.2f}  {'met' if self.met else 'MISSED'}"


def best_of(function: Callable[[], Any], repeats: int = 7) -> float:
    """The least of several times, which is the one that other processes disturbed least."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def report(measures: Iterable[Callable[[], Row]]) -> int:
    """Measure, print row by row, leave the numbers as JSON where asked; 1 if a target is missed."""
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

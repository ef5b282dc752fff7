"""A mechanism of your own: noise on sums that are released again and again.

The library calibrates, saves and audits it. This mechanism adds fresh noise for every batch, so the release after t
batches has t draws. Its proof is one line: a user is in one batch. ``Halved`` makes a mistake: it draws half of the
calibrated noise. Two audits run each of them thousands of times in two worlds that differ in one user. You see that
the audit proves the mistake. It finds nothing against the sound mechanism, which is no proof of privacy.

    python examples/own_mechanism.py --runs 1500

In grids, and on the command line, it is ``own_mechanism:RunningBatches``:

    private-rl-gym train --boundary jdp --delta 0 --set boundary.counting=own_mechanism:RunningBatches
"""

import argparse

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.lab.audits import AuditConfig, audit
from private_rl_gym.lab.grids.cell import Choice
from private_rl_gym.lab.references import Reference
from private_rl_gym.privacy.mechanisms import Mechanism
from private_rl_gym.privacy.noise import NoiseSource


class RunningBatches(Mechanism):
    """Fresh noise for every batch, in all later releases."""

    name = "running-batches"
    sensitivity = 1.0  # a user moves the noise of one batch
    color = "#8a5a00"  # in figures

    def __init__(self, steps: int, cells: int, law: str) -> None:
        super().__init__(steps, cells, law)
        self._total = np.zeros(cells)

    @property
    def worst_step(self) -> int:
        """The release with the most noise."""
        return self.steps

    def weights(self, step: int) -> tuple[tuple[float, float], ...]:
        """Return the noise of a release: ``step`` draws, each with weight 1."""
        return ((float(step), 1.0),)

    def advance(self, source: NoiseSource, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """Draw the noise of the next release."""
        self.step += 1
        self._total += self._draw(source, scale)
        return self._total

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Return the state, which is saved with a boundary."""
        return {"total": self._total}


class Halved(RunningBatches):
    """Half the noise that the ledger states. Never protect a user with it."""

    def _draw(self, source: NoiseSource, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        return super()._draw(source, scale / 2.0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A mechanism of your own, audited.")
    parser.add_argument("--runs", type=int, default=1_500, help="of each world")
    args = parser.parse_args()
    for kind in ("RunningBatches", "Halved"):
        boundary = Choice("jdp", {"epsilon": 2.0, "delta": 0.0, "counting": Reference(f"own_mechanism:{kind}")})
        report = audit(AuditConfig(boundary, attacks=("one-release",), runs=args.runs))
        print(f"{kind}: claims {report.claim}\n  {report.verdict}\n")

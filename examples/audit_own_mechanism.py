"""An audit of a mechanism of your own: does it keep what its ledger says?

Two billboards claim the same epsilon. One halves the noise after it was calibrated, as a refactoring may do by
mistake; no test of averages would notice. The audit runs each thousands of times in two worlds that differ in one
user, and bounds epsilon from below by how well the worlds can be told apart. One sees a verdict for each: the mistake
is proved, and against the sound one nothing is found, which is no proof. From the command line the same is

    private-rl-gym audit --target audit_own_mechanism:Halved --epsilon 2

and here, with the number of runs of each world, in which one user differs:

    python examples/audit_own_mechanism.py --runs 1500
"""

import argparse
from typing import Any

from private_rl_gym.experiments.auditing import AuditConfig, audit
from private_rl_gym.experiments.config import Choice
from private_rl_gym.wrappers import JDPBillboard


class Sound(JDPBillboard):
    """A boundary of your own: here the library's, under another name."""


class Halved(JDPBillboard):
    """Half the noise that its ledger claims. Never protect anybody with it."""

    def design(self, statistic: Any, *, apart: bool) -> None:
        """Calibrate the noise, and then halve its scale."""
        super().design(statistic, apart=apart)
        self._scale /= 2.0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="An audit of a mechanism of your own.")
    parser.add_argument("--runs", type=int, default=1_500, help="of each world")
    args = parser.parse_args()
    for kind in (Sound, Halved):
        config = AuditConfig(
            boundary=Choice("jdp", {"epsilon": 2.0, "delta": 0.0}),
            make=kind,
            attacks=("one-release",),
            runs=args.runs,
        )
        report = audit(config)
        print(f"{kind.__name__}: claims {report.claim}")
        for result in report.results:
            print(f"  {result.title:32} epsilon is at least {result.bound:.2f}")
        print(f"  {report.verdict}\n")

"""The trust boundaries: Gymnasium wrappers that pass on only data that their guarantee allows.

* ``OpenBillboard`` - exact sums, no privacy: the baseline of every comparison
* ``JDPBillboard`` - sums with noise, released again and again (joint differential privacy)
* ``LDPUserSide`` - sums of reports that users noised themselves (local differential privacy)
* ``SDPShuffler`` - sums of shuffled bits, batch by batch (shuffle differential privacy)
* ``LDPPerStep`` - observations and rewards randomized at every step, for any Gym learner
* ``FlattenSpaces``, ``Discretize`` - adapters, for inside a boundary: finite spaces, and boxes in bins, as ``Discrete``
* ``Episodes`` - trajectories as arrays, for ``ingest``; ``BadRowsError`` - its error for rows that it cannot take
* ``TableReport`` - the report on the rows of a table, for its owner alone
* ``Schedule`` - the sizes of batches, and the number of releases
* ``Boundary`` - the base class of the billboards; ``BudgetExhausted`` - its error for too many users
* ``BOUNDARIES`` - the boundaries that sum, by the short names that commands, grids and audits use
"""

from __future__ import annotations

from private_rl_gym.privacy.aggregator import Observer
from private_rl_gym.privacy.schedule import Schedule
from private_rl_gym.wrappers.admission import BudgetExhausted
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.jdp_billboard import JDPBillboard
from private_rl_gym.wrappers.ldp_per_step import LDPPerStep
from private_rl_gym.wrappers.ldp_user_side import LDPUserSide
from private_rl_gym.wrappers.open_billboard import OpenBillboard
from private_rl_gym.wrappers.sdp_shuffler import SDPShuffler
from private_rl_gym.wrappers.sources import BadRowsError, Episodes, TableReport
from private_rl_gym.wrappers.spaces import Discretize, FlattenSpaces

__all__ = [
    "BOUNDARIES",
    "BadRowsError",
    "Boundary",
    "BudgetExhausted",
    "Discretize",
    "Episodes",
    "FlattenSpaces",
    "JDPBillboard",
    "LDPPerStep",
    "LDPUserSide",
    "Observer",
    "OpenBillboard",
    "SDPShuffler",
    "Schedule",
    "TableReport",
]

BOUNDARIES: dict[str, type[Boundary]] = {
    kind.short: kind for kind in (OpenBillboard, JDPBillboard, LDPUserSide, SDPShuffler)
}
"""The boundaries that sum, by their short names. ``may_enclose`` lists the boundaries that each may be put around."""

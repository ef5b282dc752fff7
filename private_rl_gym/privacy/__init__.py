"""The mathematics of privacy, without environments.

* ``TabularCounts`` - what is summed, and its sensitivity (``statistics``)
* ``RANDOMIZERS`` - what users may send in its place (``randomizers``)
* ``NoiseSource`` - where noise comes from (``noise``)
* ``COUNTING`` - releasing sums again and again (``counting``)
* ``Release`` - what the outside may see; ``project_counts`` - counts that a model can have
* ``Guarantee``, ``Ledger`` - what is promised; ``compose``, ``disjoint`` - what several releases cost together
* ``gaussian_mu``, ``gaussian_epsilon``, ``gaussian_delta`` - from budgets to noise and back

The names are loaded on first access, because some of them bring numba with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from private_rl_gym.lazy import lazy_names

if TYPE_CHECKING:
    from private_rl_gym.privacy.composition import compose, disjoint
    from private_rl_gym.privacy.conversion import gaussian_delta, gaussian_epsilon, gaussian_mu
    from private_rl_gym.privacy.counting import COUNTING
    from private_rl_gym.privacy.guarantee import Guarantee, Ledger
    from private_rl_gym.privacy.noise import NoiseSource
    from private_rl_gym.privacy.projection import project_counts
    from private_rl_gym.privacy.randomizers import RANDOMIZERS
    from private_rl_gym.privacy.release import Release
    from private_rl_gym.privacy.statistics import Statistic, TabularCounts

__all__ = [
    "COUNTING",
    "RANDOMIZERS",
    "Guarantee",
    "Ledger",
    "NoiseSource",
    "Release",
    "Statistic",
    "TabularCounts",
    "compose",
    "disjoint",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "project_counts",
]

__getattr__ = lazy_names(
    __name__,
    {
        "COUNTING": "counting",
        "RANDOMIZERS": "randomizers",
        "Guarantee": "guarantee",
        "Ledger": "guarantee",
        "NoiseSource": "noise",
        "Release": "release",
        "Statistic": "statistics",
        "TabularCounts": "statistics",
        "compose": "composition",
        "disjoint": "composition",
        "gaussian_delta": "conversion",
        "gaussian_epsilon": "conversion",
        "gaussian_mu": "conversion",
        "project_counts": "projection",
    },
)

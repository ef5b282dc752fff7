"""The learners: functions from releases to policies, with Stable-Baselines3's ``learn`` and ``predict``.

* ``Agent`` - what they share
* ``UCBVI``, ``UBEV``, ``PSRL`` - non-private references: two kinds of optimism, and posterior sampling
* ``PUCB`` - UBEV on private counters
* ``PrivateUCBVI``, ``PrivateUCBPO`` - value iteration and policy optimisation with a Hoeffding bonus on private counts
* ``DPUCBVI`` - the private Bernstein bonus
* ``PrivateLinOptVI``, ``PrivateLinOptPO`` - linear mixtures, by value iteration or policy optimisation
* ``UCRLVTR``, ``OPPO`` - what they are around exact moments
* ``SDPPE``, ``APEVE`` - policy elimination in batches, and what it is around exact sums
* ``RLSVI`` - exploration by noise, which is a guarantee of its own
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from private_rl_gym.lazy import lazy_names

if TYPE_CHECKING:
    from private_rl_gym.agents.base import Agent
    from private_rl_gym.agents.dp_ucbvi import DPUCBVI
    from private_rl_gym.agents.linear import OPPO, UCRLVTR, PrivateLinOptPO, PrivateLinOptVI
    from private_rl_gym.agents.private_ucbpo import PrivateUCBPO
    from private_rl_gym.agents.private_ucbvi import PrivateUCBVI
    from private_rl_gym.agents.psrl import PSRL
    from private_rl_gym.agents.pucb import PUCB, UBEV
    from private_rl_gym.agents.rlsvi import RLSVI
    from private_rl_gym.agents.sdp_pe import APEVE, SDPPE
    from private_rl_gym.agents.ucbvi import UCBVI

__all__ = [
    "APEVE",
    "DPUCBVI",
    "OPPO",
    "PSRL",
    "PUCB",
    "RLSVI",
    "SDPPE",
    "UBEV",
    "UCBVI",
    "UCRLVTR",
    "Agent",
    "PrivateLinOptPO",
    "PrivateLinOptVI",
    "PrivateUCBPO",
    "PrivateUCBVI",
]

__getattr__ = lazy_names(
    __name__,
    {
        "APEVE": "sdp_pe",
        "Agent": "base",
        "DPUCBVI": "dp_ucbvi",
        "OPPO": "linear",
        "PSRL": "psrl",
        "PUCB": "pucb",
        "PrivateLinOptPO": "linear",
        "PrivateLinOptVI": "linear",
        "PrivateUCBPO": "private_ucbpo",
        "PrivateUCBVI": "private_ucbvi",
        "RLSVI": "rlsvi",
        "SDPPE": "sdp_pe",
        "UBEV": "pucb",
        "UCBVI": "ucbvi",
        "UCRLVTR": "linear",
    },
)

"""The learners: functions from releases to policies, with Stable-Baselines3's ``learn`` and ``predict``.

* ``Agent`` - the base class
* ``UCBVI``, ``UBEV``, ``PSRL`` - non-private references: two kinds of optimism, and posterior sampling
* ``PUCB`` - UBEV on private counters
* ``PrivateUCBVI``, ``PrivateUCBPO`` - value iteration and policy optimisation with a Hoeffding bonus on private counts
* ``DPUCBVI`` - the private Bernstein bonus
* ``LDPOBI`` - optimistic backward induction on counts that users randomize
* ``DPAPVI`` - pessimism, for earlier users
* ``DPSE`` - successive elimination of the arms of a bandit
* ``PrivateLinOptVI``, ``PrivateLinOptPO`` - linear mixtures, by value iteration or policy optimisation
* ``LDPUCRLVTR`` - value-targeted regression on moments that users noise
* ``UCRLVTR``, ``OPPO`` - the same for exact moments
* ``SDPPE``, ``APEVE`` - policy elimination in batches, and the same for exact sums
* ``DPPolicyGradient``, ``DPPPO`` - policy gradients on noisy sums, for environments that cannot be counted
* ``WorldModelAgent`` - any learner of Stable-Baselines3, trained in a privately learned model of the world
* ``RLSVI`` - exploration by noise, which gives a guarantee of its own
* ``ModelLoop`` - any learner, trained on private models between groups of users
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from private_rl_gym.lazy import lazy_names

if TYPE_CHECKING:
    from private_rl_gym.agents.base import Agent as Agent
    from private_rl_gym.agents.batched import Batch as Batch
    from private_rl_gym.agents.batched import BatchedAgent as BatchedAgent
    from private_rl_gym.agents.deep.dp_policy_gradient import DPPolicyGradient as DPPolicyGradient
    from private_rl_gym.agents.deep.dp_ppo import DPPPO as DPPPO
    from private_rl_gym.agents.linear.ldp_ucrl_vtr import LDPUCRLVTR as LDPUCRLVTR
    from private_rl_gym.agents.linear.linopt import OPPO as OPPO
    from private_rl_gym.agents.linear.linopt import UCRLVTR as UCRLVTR
    from private_rl_gym.agents.linear.linopt import PrivateLinOptPO as PrivateLinOptPO
    from private_rl_gym.agents.linear.linopt import PrivateLinOptVI as PrivateLinOptVI
    from private_rl_gym.agents.model_loop import ModelLoop as ModelLoop
    from private_rl_gym.agents.offline.dp_apvi import DPAPVI as DPAPVI
    from private_rl_gym.agents.tabular.dp_se import DPSE as DPSE
    from private_rl_gym.agents.tabular.dp_ucbvi import DPUCBVI as DPUCBVI
    from private_rl_gym.agents.tabular.frugal_ucbvi import FrugalUCBVI as FrugalUCBVI
    from private_rl_gym.agents.tabular.ldp_obi import LDPOBI as LDPOBI
    from private_rl_gym.agents.tabular.private_ucbpo import PrivateUCBPO as PrivateUCBPO
    from private_rl_gym.agents.tabular.private_ucbvi import PrivateUCBVI as PrivateUCBVI
    from private_rl_gym.agents.tabular.psrl import PSRL as PSRL
    from private_rl_gym.agents.tabular.pucb import PUCB as PUCB
    from private_rl_gym.agents.tabular.pucb import UBEV as UBEV
    from private_rl_gym.agents.tabular.rlsvi import RLSVI as RLSVI
    from private_rl_gym.agents.tabular.sdp_pe import APEVE as APEVE
    from private_rl_gym.agents.tabular.sdp_pe import SDPPE as SDPPE
    from private_rl_gym.agents.tabular.ucbvi import UCBVI as UCBVI
    from private_rl_gym.agents.world.world_model import WorldModelAgent as WorldModelAgent

__getattr__, __dir__, __all__ = lazy_names(__name__)

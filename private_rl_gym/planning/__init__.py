"""Exact solvers and simulators over plain arrays, compiled on first use.

* ``backward_induction`` - optimal values and policy of a known model
* ``optimistic_backward_induction`` - the same with a bonus and a cap, for optimistic learners
* ``evaluate_policy`` - the values of a policy
* ``occupancy`` - the probabilities of states and actions under a policy
* ``rollout`` - the trajectories of many users under one policy
* ``LinearFeatures`` - the features of a mixture that a linear learner knows
* ``Policy``, ``Plan``, ``Trajectories``, ``SamplingTables`` - their arguments and results

The names are loaded on first access, because the solvers import numba, which environments do not need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from private_rl_gym.lazy import lazy_names

if TYPE_CHECKING:
    from private_rl_gym.planning.features import LinearFeatures as LinearFeatures
    from private_rl_gym.planning.policy import Policy as Policy
    from private_rl_gym.planning.sampling import SamplingTables as SamplingTables
    from private_rl_gym.planning.simulate import Trajectories as Trajectories
    from private_rl_gym.planning.simulate import rollout as rollout
    from private_rl_gym.planning.solve import Plan as Plan
    from private_rl_gym.planning.solve import backward_induction as backward_induction
    from private_rl_gym.planning.solve import evaluate_policy as evaluate_policy
    from private_rl_gym.planning.solve import occupancy as occupancy
    from private_rl_gym.planning.solve import optimistic_backward_induction as optimistic_backward_induction

__getattr__, __dir__, __all__ = lazy_names(__name__)

"""Exact solvers and simulators over plain arrays, compiled on first use.

* ``backward_induction`` - optimal values and policy of a known model
* ``optimistic_backward_induction`` - the same with a bonus, capped: what optimistic learners plan with
* ``evaluate_policy`` - the values of a policy
* ``occupancy`` - how often a policy is where, and what it does there
* ``rollout`` - the trajectories of many users under one policy
* ``LinearFeatures`` - what a linear learner knows of a mixture
* ``Policy``, ``Plan``, ``Trajectories``, ``SamplingTables`` - what they take and return

The names are loaded on first access, because the solvers bring numba with them and environments do not need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from private_rl_gym.lazy import lazy_names

if TYPE_CHECKING:
    from private_rl_gym.planning.features import LinearFeatures
    from private_rl_gym.planning.policy import Policy
    from private_rl_gym.planning.sampling import SamplingTables
    from private_rl_gym.planning.simulate import Trajectories, rollout
    from private_rl_gym.planning.solve import (
        Plan,
        backward_induction,
        evaluate_policy,
        occupancy,
        optimistic_backward_induction,
    )

__all__ = [
    "LinearFeatures",
    "Plan",
    "Policy",
    "SamplingTables",
    "Trajectories",
    "backward_induction",
    "evaluate_policy",
    "occupancy",
    "optimistic_backward_induction",
    "rollout",
]

__getattr__ = lazy_names(
    __name__,
    {
        "LinearFeatures": "features",
        "Policy": "policy",
        "Trajectories": "simulate",
        "rollout": "simulate",
        "SamplingTables": "sampling",
        "Plan": "solve",
        "backward_induction": "solve",
        "evaluate_policy": "solve",
        "occupancy": "solve",
        "optimistic_backward_induction": "solve",
    },
)

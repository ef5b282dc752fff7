"""Audits of stacks and agents: what ``private-rl-gym audit`` does.

* ``plan`` - what is audited, and how it is built
* ``users`` - two sequences of users that differ in one
* ``mechanisms``, ``learners``, ``coins`` - what can be seen: of boundaries, of agents, in one run
* ``audit`` - attacks, run and judged; ``report`` - claim, bounds, verdict
* ``everything`` - all boundaries, mechanisms and calibrations

The mathematics is in :mod:`private_rl_gym.privacy.audit`.
"""

from __future__ import annotations

from private_rl_gym.experiments.auditing.audit import Attack, audit
from private_rl_gym.experiments.auditing.plan import ATTACKS, Plan
from private_rl_gym.experiments.auditing.report import Report, Result

__all__ = ["ATTACKS", "Attack", "Plan", "Report", "Result", "audit"]

"""Audits of stacks and agents, as ``private-rl-gym audit`` runs them.

* ``config`` - a stack, the attacks on it, and how it is built
* ``users`` - two sequences of users that differ in one user
* ``mechanisms``, ``learners``, ``coins`` - attacks on boundaries, on agents, and on a single run
* ``networks`` - attacks on gradients and on dynamics; ``canaries`` - their users
* ``refusals`` - requests that a sound boundary refuses
* ``audit`` - runs attacks and judges them; ``report`` - claim, bounds, verdict; ``coverage`` - what was seen
* ``everything`` - audits of all boundaries, mechanisms and calibrations

The mathematics is in :mod:`private_rl_gym.privacy.audit`.
"""

from __future__ import annotations

from private_rl_gym.lab.audits.audit import Attack, audit
from private_rl_gym.lab.audits.config import ATTACKS, ON_DYNAMICS, ON_GRADIENTS, AuditConfig
from private_rl_gym.lab.audits.report import Report, Result

__all__ = ["ATTACKS", "ON_DYNAMICS", "ON_GRADIENTS", "Attack", "AuditConfig", "Report", "Result", "audit"]

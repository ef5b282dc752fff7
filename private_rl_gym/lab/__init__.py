"""Experiments, advice and audits with the library, which never imports this package.

* ``registry`` - environments, boundaries and agents by name; ``foreign`` - those of other code, as ``module:object``
* ``regret`` - the regret of a learner, from the true model
* ``grids`` - configurations, runs, records and engines
* ``figures`` - figures, captions and reports of sweeps
* ``planner`` - advice before a deployment
* ``tables`` - policies from tables of finished episodes
* ``audits`` - attacks on boundaries and agents, and mechanisms that are broken on purpose
* ``papers`` - bounds of the papers, beside measured curves
* ``cli`` - the commands of ``private-rl-gym``
"""

from __future__ import annotations

__all__: list[str] = []

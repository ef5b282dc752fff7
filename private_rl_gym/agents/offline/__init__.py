"""Agents that learn from earlier users, without exploring.

* ``DPAPVI`` - pessimistic value iteration
* ``pessimism`` - the plans that ``DPUCBVI`` makes offline, too
"""

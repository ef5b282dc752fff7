"""Agents that learn linear mixtures from moments.

* ``PrivateLinOptVI``, ``PrivateLinOptPO``, ``UCRLVTR``, ``OPPO`` - value iteration and policy optimisation
* ``LDPUCRLVTR`` - value-targeted regression on moments that users noise
"""

"""Agents that learn from counts or reports of states and actions.

* ``UCBVI``, ``DPUCBVI``, ``PUCB``, ``PrivateUCBVI``, ``LDPOBI`` - optimistic value iteration, each with its bonus
* ``PrivateUCBPO`` - policy optimisation
* ``PSRL``, ``RLSVI`` - posterior sampling, and noise on values
* ``SDPPE``, ``DPSE`` - elimination in batches
* ``FrugalUCBVI`` - optimism in the model of single reports
"""

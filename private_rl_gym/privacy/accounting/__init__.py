"""Privacy losses: guarantees and ledgers, and the arithmetic that leads to them.

* ``guarantee`` - the guarantee of a boundary
* ``ledger`` - the guarantees of a stack of boundaries, and of groups of users
* ``calibration`` - the scale of noise for a budget
* ``conversion`` - budgets and noise
* ``composition`` - the cost of several releases together
* ``amplification`` - the gain from a shuffler
"""

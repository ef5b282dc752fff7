"""The mathematics of privacy, without environments.

* ``TabularCounts`` - the counts that are summed, and their sensitivity (``statistics``)
* ``RANDOMIZERS`` - the reports that users may send in their place (``randomizers``)
* ``NoiseSource`` - the source of all noise (``noise``)
* ``MECHANISMS`` - mechanisms that release running sums (``mechanisms``)
* ``Release`` - published sums; ``project_counts`` - their projection onto consistent counts
* ``Guarantee``, ``Ledger`` - the guarantees to users; ``compose`` - the cost of several releases together
* ``Request`` - public requests to users, beside the policy
* ``gaussian_mu``, ``gaussian_epsilon``, ``gaussian_delta`` - conversions between budgets and noise

The names are loaded on first access, because some of them bring numba with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from private_rl_gym.lazy import lazy_names

if TYPE_CHECKING:
    from private_rl_gym.planning.projection import project_counts as project_counts
    from private_rl_gym.privacy.accounting.composition import compose as compose
    from private_rl_gym.privacy.accounting.conversion import gaussian_delta as gaussian_delta
    from private_rl_gym.privacy.accounting.conversion import gaussian_epsilon as gaussian_epsilon
    from private_rl_gym.privacy.accounting.conversion import gaussian_mu as gaussian_mu
    from private_rl_gym.privacy.accounting.guarantee import Covers as Covers
    from private_rl_gym.privacy.accounting.guarantee import Guarantee as Guarantee
    from private_rl_gym.privacy.accounting.guarantee import Neighbours as Neighbours
    from private_rl_gym.privacy.accounting.guarantee import TrustModel as TrustModel
    from private_rl_gym.privacy.accounting.ledger import Ledger as Ledger
    from private_rl_gym.privacy.mechanisms import MECHANISMS as MECHANISMS
    from private_rl_gym.privacy.noise import NoiseSource as NoiseSource
    from private_rl_gym.privacy.randomizers import RANDOMIZERS as RANDOMIZERS
    from private_rl_gym.privacy.release import Release as Release
    from private_rl_gym.privacy.requests import Request as Request
    from private_rl_gym.privacy.requests import Values as Values
    from private_rl_gym.privacy.statistics import Statistic as Statistic
    from private_rl_gym.privacy.statistics import TabularCounts as TabularCounts

__getattr__, __dir__, __all__ = lazy_names(__name__)

"""Audits: attacks on a mechanism, and lower bounds on its epsilon from their success.

An audit runs a mechanism many times in two worlds that differ in one user, and tries to tell them apart. The success
rate gives a lower bound on epsilon, with a stated confidence: docs/proofs/audit.md.

* ``neighbours`` - neighbouring sequences of users: worst cases from tapes
* ``likelihood`` - attacks that know the law of the noise; ``learned`` - attacks that learn from runs
* ``judging`` - the choice of an attack on one half of the runs, and its evaluation on the other
* ``bounds`` - Clopper-Pearson bounds, Gaussian bounds, and bounds from a single run

Stacks and agents are audited by :mod:`private_rl_gym.lab.audits`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from private_rl_gym.lazy import lazy_names

if TYPE_CHECKING:
    from private_rl_gym.privacy.audit.bounds import clopper_pearson as clopper_pearson
    from private_rl_gym.privacy.audit.bounds import epsilon_below as epsilon_below
    from private_rl_gym.privacy.audit.bounds import mu_below as mu_below
    from private_rl_gym.privacy.audit.bounds import one_run_epsilon as one_run_epsilon
    from private_rl_gym.privacy.audit.bounds import one_run_p_value as one_run_p_value
    from private_rl_gym.privacy.audit.judging import Judged as Judged
    from private_rl_gym.privacy.audit.judging import Judgement as Judgement
    from private_rl_gym.privacy.audit.judging import Score as Score
    from private_rl_gym.privacy.audit.judging import judge as judge
    from private_rl_gym.privacy.audit.learned import LastDigits as LastDigits
    from private_rl_gym.privacy.audit.learned import LinearDiscriminant as LinearDiscriminant
    from private_rl_gym.privacy.audit.learned import NaiveBayes as NaiveBayes
    from private_rl_gym.privacy.audit.likelihood import BinomialRatio as BinomialRatio
    from private_rl_gym.privacy.audit.likelihood import LinearRatio as LinearRatio
    from private_rl_gym.privacy.audit.likelihood import Stream as Stream
    from private_rl_gym.privacy.audit.neighbours import NEIGHBOURS as NEIGHBOURS
    from private_rl_gym.privacy.audit.neighbours import Worlds as Worlds
    from private_rl_gym.privacy.audit.neighbours import disjoint_paths as disjoint_paths
    from private_rl_gym.privacy.audit.neighbours import opposite_rewards as opposite_rewards
    from private_rl_gym.privacy.audit.neighbours import random_paths as random_paths
    from private_rl_gym.privacy.audit.neighbours import searched_paths as searched_paths

__getattr__, __dir__, __all__ = lazy_names(__name__)

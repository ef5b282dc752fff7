"""Auditing: attacks on a mechanism, and what their success proves about its epsilon.

An audit runs a mechanism many times in two worlds that differ in one user, and tries to tell them apart. How well that
goes bounds epsilon from below, with a stated confidence: docs/proofs/audit.md.

* ``neighbours`` - users who differ in one: worst cases from tapes
* ``likelihood`` - what somebody sees who knows the noise; ``learned`` - what can be learned without
* ``judging`` - an attack is chosen on one half of the runs, and judged on the other
* ``bounds`` - Clopper-Pearson, Gaussian, and from a single run

Stacks and agents are audited by :mod:`private_rl_gym.experiments.audit`, which knows them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from private_rl_gym.lazy import lazy_names

if TYPE_CHECKING:
    from private_rl_gym.privacy.audit.bounds import (
        clopper_pearson,
        epsilon_below,
        mu_below,
        one_run_epsilon,
        one_run_p_value,
    )
    from private_rl_gym.privacy.audit.judging import Finding, Judged, Score, judge
    from private_rl_gym.privacy.audit.learned import LastDigits, LinearDiscriminant, NaiveBayes
    from private_rl_gym.privacy.audit.likelihood import AdditiveNoise, NoiseBitsOfABatch, Stream, noise_matrix
    from private_rl_gym.privacy.audit.neighbours import (
        NEIGHBOURS,
        Neighbours,
        disjoint_paths,
        opposite_rewards,
        random_paths,
        searched_paths,
    )

_HOMES = {
    "bounds": ("clopper_pearson", "epsilon_below", "mu_below", "one_run_epsilon", "one_run_p_value"),
    "judging": ("Finding", "Judged", "Score", "judge"),
    "learned": ("LastDigits", "LinearDiscriminant", "NaiveBayes"),
    "likelihood": ("AdditiveNoise", "NoiseBitsOfABatch", "Stream", "noise_matrix"),
    "neighbours": (
        "NEIGHBOURS",
        "Neighbours",
        "disjoint_paths",
        "opposite_rewards",
        "random_paths",
        "searched_paths",
    ),
}

__all__ = [
    "NEIGHBOURS",
    "AdditiveNoise",
    "Finding",
    "Judged",
    "LastDigits",
    "LinearDiscriminant",
    "NaiveBayes",
    "Neighbours",
    "NoiseBitsOfABatch",
    "Score",
    "Stream",
    "clopper_pearson",
    "disjoint_paths",
    "epsilon_below",
    "judge",
    "mu_below",
    "noise_matrix",
    "one_run_epsilon",
    "one_run_p_value",
    "opposite_rewards",
    "random_paths",
    "searched_paths",
]

__getattr__ = lazy_names(__name__, {name: home for home, names in _HOMES.items() for name in names})

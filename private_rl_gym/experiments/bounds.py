"""Bounds of the papers' theorems as functions, to be drawn beside measured curves.

Lower bounds of PUCB's lemmas 8 and 10 come with the constants that are proved. All others are orders with the constant
1 and without logarithms, unless their docstring has them: they show how a curve should grow, not where it lies. At
``epsilon=math.inf`` an upper bound is that of the learner without privacy. K is users (episodes), T = H K is steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

__all__ = [
    "TABLES",
    "TableRow",
    "best_arm_pulls",
    "counter_error",
    "dp_se_regret",
    "dp_ucbvi_error",
    "dp_ucbvi_regret",
    "dp_ucbvi_regret_of_error",
    "ldp_obi_regret",
    "ldp_regret_lower_bound",
    "ldp_ucrl_vtr_lower_bound",
    "ldp_ucrl_vtr_regret",
    "linopt_po_regret",
    "linopt_regret",
    "linopt_regret_of_regularizers",
    "lower_bound",
    "pac_lower_bound",
    "private_regret_lower_bound",
    "private_ucbpo_regret",
    "private_ucbvi_regret",
    "pucb_error",
    "pucb_mistakes",
    "pucb_mistakes_lower_bound",
    "pucb_regret",
    "regret_lower_bound",
    "rlsvi_epsilon",
    "sdp_pe_regret",
    "sdp_pe_regret_of_error",
]

# PUCB: lower bounds --------------------------------------------------------------------------------------------------


def best_arm_pulls(epsilon: float, alpha: float, beta: float) -> float:
    """PUCB, lemma 8: pulls of any arm that is ``alpha`` worse, by an epsilon-DP learner that names the best arm.

    For a learner that succeeds with probability 1 - beta, beta < 1/4: at least ln(1 / (4 beta)) / (24 epsilon alpha).
    """
    _positive(epsilon=epsilon, alpha=alpha)
    _below(beta, 0.25)
    return math.log(1.0 / (4.0 * beta)) / (24.0 * epsilon * alpha)


def pac_lower_bound(
    horizon: int, start_states: int, n_actions: int, epsilon: float, alpha: float, beta: float
) -> float:
    """PUCB, lemma 10: users until an epsilon-JDP learner is alpha-optimal on the hard class, beta < 1/8.

    H S (A - 1) / (336 epsilon alpha) ln(7 / (4 + 24 beta)), S being the number of start states. The class has the gap
    alpha' = 14 alpha / H.
    """
    _positive(epsilon=epsilon, alpha=alpha)
    _below(beta, 0.125)
    rate = horizon * start_states * (n_actions - 1) / (336.0 * epsilon * alpha)
    return rate * math.log(7.0 / (4.0 + 24.0 * beta))


def lower_bound(config: Mapping[str, Any], epsilon: float, beta: float = 0.05) -> float | None:
    """Lemma 10 for a run on HardMDP that counts mistakes beyond a gap ``alpha``; None for any other run."""
    environment, alpha = config["environment"], config.get("alpha")
    if environment["name"] != "PrivateRL/HardMDP-v0" or alpha is None:
        return None
    horizon, starts, actions = (
        environment.get(name, default) for name, default in (("horizon", 10), ("n", 4), ("m", 3))
    )
    return pac_lower_bound(horizon, starts, actions + 1, epsilon, alpha, beta)


def pucb_mistakes_lower_bound(
    horizon: int, n_states: int, n_actions: int, epsilon: float, alpha: float, beta: float
) -> float:
    """PUCB, theorem 5, up to constants: users until an epsilon-JDP learner is alpha-optimal, beta < 1/8.

    S A H^2 / alpha^2 + S A H / (alpha epsilon) ln(1 / beta).
    """
    _positive(epsilon=epsilon, alpha=alpha)
    _below(beta, 0.125)
    privacy = n_states * n_actions * horizon / (alpha * epsilon) * math.log(1.0 / beta)
    return n_states * n_actions * horizon**2 / alpha**2 + privacy


def private_regret_lower_bound(horizon: int, n_states: int, n_actions: int, users: int, epsilon: float) -> float:
    """PUCB, theorem 6, up to constants: sqrt(H S A K) + S A H log(K / S) / epsilon, for K >= S^1.1.

    The theorem says "steps" for its T; regret is defined over episodes (definition 2), and what is proved of the second
    term counts episodes, too, T / S from each start state. So T is users here, which is also the weaker claim.
    """
    _positive(epsilon=epsilon)
    if users < n_states**1.1:
        raise ValueError(f"users is {users}: the bound holds from S^1.1 = {n_states**1.1:.1f} on.")
    privacy = n_states * n_actions * horizon * math.log(users / n_states) / epsilon
    return math.sqrt(horizon * n_states * n_actions * users) + privacy


def regret_lower_bound(horizon: int, n_states: int, n_actions: int, users: int) -> float:
    """DP-UCBVI, table 1, and SDP-PE, section V.B, up to constants, for all learners: sqrt(S A H^2 T)."""
    return math.sqrt(n_states * n_actions * horizon**3 * users)


# PUCB: upper bounds --------------------------------------------------------------------------------------------------


def counter_error(users: int, epsilon: float, beta: float) -> float:
    """PUCB, theorem 12: the error of all prefixes of a counter, 4 / epsilon ln(1 / beta) log(K)^(5/2)."""
    _positive(epsilon=epsilon)
    _below(beta, 1.0)
    return 4.0 / epsilon * math.log(1.0 / beta) * math.pow(math.log(users), 2.5)


def pucb_error(horizon: int, n_states: int, n_actions: int, users: int, epsilon: float, beta: float) -> float:
    """PUCB, section 3: E = 3 H / epsilon log((2 S A H + S^2 A H) / beta) log(K)^(5/2) for all counters together."""
    _positive(epsilon=epsilon)
    _below(beta, 1.0)
    counters = n_states * n_actions * horizon * (2 + n_states)
    return 3.0 * horizon / epsilon * math.log(counters / beta) * math.pow(math.log(users), 2.5)


def pucb_mistakes(horizon: int, n_states: int, n_actions: int, epsilon: float, alpha: float) -> float:
    """PUCB, theorem 3, up to logarithms: users whose policy is not alpha-optimal.

    S A H^4 / alpha^2 + S^2 A H^4 / (epsilon alpha).
    """
    _positive(epsilon=epsilon, alpha=alpha)
    sampling = n_states * n_actions * horizon**4 / alpha**2
    return sampling + n_states**2 * n_actions * horizon**4 / (epsilon * alpha)


def pucb_regret(horizon: int, n_states: int, n_actions: int, users: int, epsilon: float) -> float:
    """PUCB, theorem 4, up to logarithms: H^2 sqrt(S A K) + (S A + S^2 A) H^3 / epsilon."""
    _positive(epsilon=epsilon)
    privacy = (n_states + n_states**2) * n_actions * horizon**3 / epsilon
    return horizon**2 * math.sqrt(n_states * n_actions * users) + privacy


# DP-UCBVI, and what it compares itself with --------------------------------------------------------------------------


def dp_ucbvi_regret(
    horizon: int, n_states: int, n_actions: int, users: int, epsilon: float, *, local: bool = False
) -> float:
    """DP-UCBVI, theorems 5.2 and 5.7, up to logarithms.

    sqrt(S A H^2 T) + S^2 A H^3 / epsilon under JDP, sqrt(S A H^2 T) + S^2 A sqrt(H^5 T) / epsilon under LDP.
    """
    return dp_ucbvi_regret_of_error(
        horizon, n_states, n_actions, users, dp_ucbvi_error(horizon, users, epsilon, local=local)
    )


def dp_ucbvi_regret_of_error(horizon: int, n_states: int, n_actions: int, users: int, error: float) -> float:
    """DP-UCBVI, theorem 4.1, up to logarithms, for any boundary whose counts have errors of at most E.

    sqrt(S A H^2 T) + S^2 A H^2 E.
    """
    sampling = math.sqrt(n_states * n_actions * horizon**3 * users)
    return sampling + n_states**2 * n_actions * horizon**2 * error


def dp_ucbvi_error(horizon: int, users: int, epsilon: float, *, local: bool = False) -> float:
    """DP-UCBVI, lemmas 5.1 and 5.6, up to logarithms: E is H / epsilon under JDP, H sqrt(K) / epsilon under LDP."""
    _positive(epsilon=epsilon)
    return horizon * (math.sqrt(users) if local else 1.0) / epsilon


def private_ucbvi_regret(
    horizon: int, n_states: int, n_actions: int, users: int, epsilon: float, *, local: bool = False
) -> float:
    """Private-UCB-VI in DP-UCBVI's table 1, up to logarithms: sqrt(S A H^3 T), and privacy as for DP-UCBVI."""
    return _hoeffding(n_states, horizon, n_states, n_actions, users, epsilon, local=local)


def private_ucbpo_regret(
    horizon: int, n_states: int, n_actions: int, users: int, epsilon: float, *, local: bool = False
) -> float:
    """Private-UCB-PO in DP-UCBVI's table 1, up to logarithms: sqrt(S^2 A H^3 T), and privacy as for DP-UCBVI."""
    return _hoeffding(n_states**2, horizon, n_states, n_actions, users, epsilon, local=local)


def ldp_obi_regret(horizon: int, n_states: int, n_actions: int, users: int, epsilon: float) -> float:
    """LDP-OBI in DP-UCBVI's table 1, up to logarithms, for stages that differ: as Private-UCB-PO under LDP."""
    return private_ucbpo_regret(horizon, n_states, n_actions, users, epsilon, local=True)


def ldp_regret_lower_bound(horizon: int, n_states: int, n_actions: int, users: int, epsilon: float) -> float:
    """LDP-OBI's paper (Garcelon et al.), up to constants, for learners under epsilon-LDP.

    H sqrt(S A K) / min(e^epsilon - 1, 1): local privacy costs a factor 1 / epsilon, not a term.
    """
    _positive(epsilon=epsilon)
    factor = math.expm1(epsilon) if epsilon < 1.0 else 1.0
    return horizon * math.sqrt(n_states * n_actions * users) / min(factor, 1.0)


def _hoeffding(
    width: int, horizon: int, n_states: int, n_actions: int, users: int, epsilon: float, *, local: bool
) -> float:
    privacy = n_states**2 * n_actions * horizon**2 * dp_ucbvi_error(horizon, users, epsilon, local=local)
    return math.sqrt(width * n_actions * horizon**4 * users) + privacy


# SDP-PE --------------------------------------------------------------------------------------------------------------


def sdp_pe_regret(horizon: int, n_states: int, n_actions: int, users: int, epsilon: float) -> float:
    """SDP-PE, theorem 11, up to logarithms: theorem 6 with E = H / epsilon, that of its shuffler (lemma 10)."""
    _positive(epsilon=epsilon)
    return sdp_pe_regret_of_error(horizon, n_states, n_actions, users, horizon / epsilon)


def sdp_pe_regret_of_error(horizon: int, n_states: int, n_actions: int, users: int, error: float) -> float:
    """SDP-PE, theorem 6, up to logarithms: sqrt(H^5 S^2 A K) + S^3 A^2 H^5 E, E bounding errors of counts."""
    sampling = math.sqrt(horizon**5 * n_states**2 * n_actions * users)
    return sampling + n_states**3 * n_actions**2 * horizon**5 * error


# LinOpt --------------------------------------------------------------------------------------------------------------


def linopt_regret(horizon: int, d: int, users: int, epsilon: float, delta: float) -> float:
    """Private-LinOpt-VI, theorem 6.5, up to constants and log T; at epsilon = inf UCRL-VTR, by remark 6.7.

    d sqrt(T H^3) + d^(7/4) sqrt(T H^4) log(H / delta)^(1/4) / sqrt(epsilon).
    """
    _positive(epsilon=epsilon, delta=delta)
    steps = users * horizon
    width = math.pow(math.log(horizon / delta), 0.25) / math.sqrt(epsilon)
    privacy = math.pow(d, 1.75) * math.sqrt(steps * horizon**4) * width
    return d * math.sqrt(steps * horizon**3) + privacy


def linopt_po_regret(horizon: int, d: int, n_actions: int, users: int, epsilon: float, delta: float) -> float:
    """Private-LinOpt-PO, theorem 6.5, up to constants and log T; at epsilon = inf OPPO, by remark 6.7.

    The bound of Private-LinOpt-VI, and sqrt(T H^3) log A. (Theorem 5.1 and remark 6.7 have sqrt(T H^3 log A).)
    """
    mirror = math.sqrt(users * horizon**4) * math.log(n_actions)
    return linopt_regret(horizon, d, users, epsilon, delta) + mirror


def linopt_regret_of_regularizers(
    horizon: int,
    d: int,
    users: int,
    alpha: float,
    *,
    smallest: float,
    largest: float,
    shift: float,
    n_actions: int | None = None,
) -> float:
    """LinOpt, theorems 4.1 (value iteration) and, with ``n_actions``, 5.1 (policy optimisation), up to constants.

    sqrt(T H^3) (ln(H / alpha) + d kappa) + sqrt(T H d kappa) (sqrt(d largest) + shift), with kappa = ln(1 + K H^2 /
    smallest); policy optimisation adds sqrt(T H^3 log A). Regularizers are between ``smallest`` and ``largest``, and
    ``shift`` bounds the noise of vectors in their norm (nu).
    """
    _positive(smallest=smallest, largest=largest)
    _below(alpha, 1.0)
    steps, kappa = users * horizon, math.log(1.0 + users * horizon**2 / smallest)
    sampling = math.sqrt(steps * horizon**3) * (math.log(horizon / alpha) + d * kappa)
    privacy = math.sqrt(steps * horizon * d * kappa) * (math.sqrt(d * largest) + shift)
    return sampling + privacy + (math.sqrt(steps * horizon**3 * math.log(n_actions)) if n_actions else 0.0)


# Rivals --------------------------------------------------------------------------------------------------------------


def ldp_ucrl_vtr_regret(horizon: int, d: int, users: int, epsilon: float, delta: float) -> float:
    """LDP-UCRL-VTR (Liao, He, Gu), up to logarithms of T: d^(5/4) H^(7/4) T^(3/4) log(1 / delta)^(1/4) / sqrt(epsilon).

    It says nothing about the learner without privacy: at epsilon = inf it is 0.
    """
    _positive(epsilon=epsilon)
    _below(delta, 1.0)
    width = math.pow(math.log(1.0 / delta), 0.25) / math.sqrt(epsilon)
    return math.pow(d, 1.25) * math.pow(horizon, 1.75) * math.pow(users * horizon, 0.75) * width


def ldp_ucrl_vtr_lower_bound(horizon: int, d: int, users: int, epsilon: float) -> float:
    """LDP-UCRL-VTR's paper, up to constants, for learners under epsilon-LDP: d H sqrt(T) / (e^eps (e^eps - 1))."""
    _positive(epsilon=epsilon)
    return d * horizon * math.sqrt(users * horizon) / (math.exp(epsilon) * math.expm1(epsilon))


def dp_se_regret(gaps: Sequence[float], users: int, epsilon: float) -> float:
    """DP-SE (Sajed, Sheffet), up to constants: the sum of ln K / gap over worse arms, and of ln K / epsilon over all.

    No learner loses more than the largest gap at each pull, which is therefore the most that is returned.
    """
    _positive(epsilon=epsilon, largest_gap=max(gaps))
    worse = [gap for gap in gaps if gap > 0.0]
    learning = sum(math.log(users) / gap for gap in worse) + len(gaps) * math.log(users) / epsilon
    return min(learning, users * max(worse))


# RLSVI ---------------------------------------------------------------------------------------------------------------


def rlsvi_epsilon(
    horizon: int, n_states: int, n_actions: int, users: int, delta: float, order: float | None = None
) -> float:
    """RLSVI, theorem 13: epsilon for rewards by Renyi divergences of an order above 1; by default the best order.

    2 order A K / (H^2 log(2 H S A)) + log(1 / delta) / (order - 1). At the best order it is corollary 14.
    """
    _below(delta, 1.0)
    rate = 2.0 * n_actions * users / (horizon**2 * math.log(2.0 * horizon * n_states * n_actions))
    best = 1.0 + math.sqrt(math.log(1.0 / delta) / rate)
    order = best if order is None else order
    if not order > 1.0:
        raise ValueError(f"order is {order}: the bound holds above 1.")
    return order * rate + math.log(1.0 / delta) / (order - 1.0)


# Tables --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableRow:
    """One bound of a paper's table.

    Attributes:
        table: The paper and its table.
        learner: The learner's name there.
        promise: The promise that it is for; empty for the lower bound, which is for all learners.
        formula: The bound up to logarithms, in LaTeX, with K users and T = H K.
        regret: The bound as a function of H, S, A, K and epsilon.
    """

    table: str
    learner: str
    promise: str
    formula: str
    regret: Callable[[int, int, int, int, float], float]


def _without_epsilon(horizon: int, n_states: int, n_actions: int, users: int, epsilon: float) -> float:
    del epsilon
    return regret_lower_bound(horizon, n_states, n_actions, users)


_FIRST, _SECOND = "DP-UCBVI, table 1", "SDP-PE, table I"
_JDP, _LDP = r" + S^2AH^3/\varepsilon", r" + S^2A\sqrt{H^5T}/\varepsilon"
TABLES = (
    TableRow(_FIRST, "PUCB", "JDP", r"\sqrt{S^2AH^3T}" + _JDP, private_ucbpo_regret),
    TableRow(_FIRST, "LDP-OBI", "LDP", r"\sqrt{S^2AH^3T}" + _LDP, ldp_obi_regret),
    TableRow(_FIRST, "Private-UCB-PO", "JDP", r"\sqrt{S^2AH^3T}" + _JDP, private_ucbpo_regret),
    TableRow(_FIRST, "Private-UCB-PO", "LDP", r"\sqrt{S^2AH^3T}" + _LDP, partial(private_ucbpo_regret, local=True)),
    TableRow(_FIRST, "Private-UCB-VI", "JDP", r"\sqrt{SAH^3T}" + _JDP, private_ucbvi_regret),
    TableRow(_FIRST, "Private-UCB-VI", "LDP", r"\sqrt{SAH^3T}" + _LDP, partial(private_ucbvi_regret, local=True)),
    TableRow(_FIRST, "DP-UCBVI", "JDP", r"\sqrt{SAH^2T}" + _JDP, dp_ucbvi_regret),
    TableRow(_FIRST, "DP-UCBVI", "LDP", r"\sqrt{SAH^2T}" + _LDP, partial(dp_ucbvi_regret, local=True)),
    TableRow(_FIRST, "lower bound", "", r"\sqrt{SAH^2T}", _without_epsilon),
    TableRow(_SECOND, "DP-UCBVI", "JDP", r"\sqrt{SAH^3K}" + _JDP, dp_ucbvi_regret),
    TableRow(
        _SECOND, "DP-UCBVI", "LDP", r"\sqrt{SAH^3K} + S^2A\sqrt{H^6K}/\varepsilon", partial(dp_ucbvi_regret, local=True)
    ),
    TableRow(_SECOND, "SDP-PE", "SDP", r"\sqrt{S^2AH^5K} + S^3A^2H^6/\varepsilon", sdp_pe_regret),
)
"""The bounds of table 1 of DP-UCBVI and of table I of SDP-PE.

PUCB's row is as that table has it: sqrt(S) larger than PUCB's own theorem 4, which ``pucb_regret`` is.

:meta hide-value:
"""


def _positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if not number > 0.0:
            raise ValueError(f"{name} is {number}: the bound holds above 0.")


def _below(beta: float, limit: float) -> None:
    if not 0.0 < beta < limit:
        raise ValueError(f"beta is {beta}: the bound holds for probabilities of failure in (0, {limit:g}).")

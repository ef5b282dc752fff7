"""Bounds of the papers' theorems as functions, to be drawn beside measured curves.

Lower bounds of PUCB's lemmas 8 and 10 come with the constants that are proved. All others are orders with the constant
1 and without logarithms, unless their docstring has them: they show how a curve should grow, not where it lies. At
``epsilon=math.inf`` an upper bound is that of the learner without privacy. K is users (episodes), T = H K is steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from inspect import signature
from typing import Any, ParamSpec

from private_rl_gym.planning.arrays import flag, real, shown

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

Arguments = ParamSpec("Arguments")

SIZES = ("horizon", "n_states", "n_actions", "start_states", "users", "d")
"""Numbers that are 1 or more."""

POSITIVE = ("epsilon", "alpha", "smallest", "largest", "delta")
"""Numbers above 0; all others are 0 or more."""


def _of_numbers(**limits: float) -> Callable[[Callable[Arguments, float]], Callable[Arguments, float]]:
    """Return a decorator that checks the arguments of a formula.

    Some arguments are probabilities below a limit.

    A bound that no float can hold is infinite.
    """

    def check(name: str, value: Any) -> None:
        number = real(value, name)
        if name in limits and not 0.0 < number < limits[name]:
            raise ValueError(f"{name} is {shown(value)}: the bound holds for probabilities in (0, {limits[name]:g}).")
        if name in POSITIVE and not number > 0.0:
            raise ValueError(f"{name} is {shown(value)}: the bound holds above 0.")
        if not number >= (1.0 if name in SIZES else 0.0):
            raise ValueError(f"{name} is {shown(value)}: the bound holds from {int(name in SIZES)} on.")

    def decorate(formula: Callable[Arguments, float]) -> Callable[Arguments, float]:
        parameters = signature(formula)

        @wraps(formula)
        def checked(*arguments: Arguments.args, **options: Arguments.kwargs) -> float:
            for name, value in parameters.bind(*arguments, **options).arguments.items():
                if name == "local":
                    flag(value, name)
                elif name == "gaps":
                    _check_gaps(value)
                elif value is not None or parameters.parameters[name].default is not None:
                    check(name, value)
            try:
                return formula(*arguments, **options)
            except OverflowError:
                return math.inf

        return checked

    return decorate


def _check_gaps(gaps: Any) -> None:
    if not isinstance(gaps, Sequence) or isinstance(gaps, str | bytes) or not gaps:
        raise TypeError(f"gaps are {shown(gaps)}: give a list of numbers, one for each arm.")
    for gap in gaps:
        if not 0.0 <= real(gap, "A gap") < math.inf:
            raise ValueError(f"A gap is {shown(gap)}: it must be 0 or more, and finite.")
    if not max(gaps) > 0.0:
        raise ValueError(f"largest_gap is {shown(max(gaps))}: the bound holds above 0.")


# PUCB: lower bounds --------------------------------------------------------------------------------------------------


@_of_numbers(beta=0.25)
def best_arm_pulls(epsilon: float, alpha: float, beta: float) -> float:
    """Return PUCB's lower bound on pulls of a bad arm (lemma 8).

    It bounds the pulls of any arm that is ``alpha`` worse, by an epsilon-DP learner that names the best arm.

    For a learner that succeeds with probability 1 - beta, beta < 1/4: at least ln(1 / (4 beta)) / (24 epsilon alpha).
    """
    return math.log(1.0 / (4.0 * beta)) / (24.0 * epsilon * alpha)


@_of_numbers(beta=0.125)
def pac_lower_bound(
    horizon: int, start_states: int, n_actions: int, epsilon: float, alpha: float, beta: float
) -> float:
    """Return PUCB's lower bound on users of the hard class (lemma 10).

    An epsilon-JDP learner needs so many users until it is alpha-optimal, for beta < 1/8:

    H S (A - 1) / (336 epsilon alpha) ln(7 / (4 + 24 beta)), S being the number of start states. The class has the gap
    alpha' = 14 alpha / H.
    """
    rate = horizon * start_states * (n_actions - 1) / (336.0 * epsilon * alpha)
    return rate * math.log(7.0 / (4.0 + 24.0 * beta))


def lower_bound(config: Mapping[str, Any], epsilon: float, beta: float = 0.05) -> float | None:
    """Return lemma 10's bound for a run on HardMDP, or None.

    The run counts mistakes beyond a gap ``alpha``; for any other run it is None.
    """
    if not isinstance(config, Mapping) or not isinstance(config.get("environment"), Mapping):
        raise TypeError(f"config is {shown(config)}: give the configuration of a run, with its environment.")
    environment, alpha = config["environment"], config.get("alpha")
    if environment["name"] != "PrivateRL/HardMDP-v0" or alpha is None:
        return None
    horizon, starts, actions = (
        environment.get(name, default) for name, default in (("horizon", 10), ("n", 4), ("m", 3))
    )
    return pac_lower_bound(horizon, starts, actions + 1, epsilon, alpha, beta)


@_of_numbers(beta=0.125)
def pucb_mistakes_lower_bound(
    horizon: int, n_states: int, n_actions: int, epsilon: float, alpha: float, beta: float
) -> float:
    """Return PUCB's lower bound on users, up to constants (theorem 5).

    An epsilon-JDP learner needs so many users until it is alpha-optimal, for beta < 1/8:

    S A H^2 / alpha^2 + S A H / (alpha epsilon) ln(1 / beta).
    """
    privacy = n_states * n_actions * horizon / (alpha * epsilon) * math.log(1.0 / beta)
    return n_states * n_actions * horizon**2 / alpha**2 + privacy


@_of_numbers()
def private_regret_lower_bound(horizon: int, n_states: int, n_actions: int, users: int, epsilon: float) -> float:
    """Return PUCB's lower bound on private regret, up to constants (theorem 6).

    It is sqrt(H S A K) + S A H log(K / S) / epsilon, for K >= S^1.1.

    The theorem says "steps" for its T; regret is defined over episodes (definition 2), and what is proved of the second
    term counts episodes, too, T / S from each start state. So T is users here, which is also the weaker claim.
    """
    if users < n_states**1.1:
        raise ValueError(f"users is {users}: the bound holds from S^1.1 = {n_states**1.1:.1f} on.")
    privacy = n_states * n_actions * horizon * math.log(users / n_states) / epsilon
    return math.sqrt(horizon * n_states * n_actions * users) + privacy


@_of_numbers()
def regret_lower_bound(horizon: int, n_states: int, n_actions: int, users: int) -> float:
    """Return the lower bound on regret of all learners, up to constants.

    It is sqrt(S A H^2 T), in DP-UCBVI's table 1 and in section V.B of SDP-PE.
    """
    return math.sqrt(n_states * n_actions * horizon**3 * users)


# PUCB: upper bounds --------------------------------------------------------------------------------------------------


@_of_numbers(beta=1.0)
def counter_error(users: int, epsilon: float, beta: float) -> float:
    """Return PUCB's bound on the error of a counter (theorem 12).

    It is 4 / epsilon ln(1 / beta) log(K)^(5/2), for all prefixes of the counter.
    """
    return 4.0 / epsilon * math.log(1.0 / beta) * math.pow(math.log(users), 2.5)


@_of_numbers(beta=1.0)
def pucb_error(horizon: int, n_states: int, n_actions: int, users: int, epsilon: float, beta: float) -> float:
    """Return PUCB's error bound E for all counters together (section 3).

    It is 3 H / epsilon log((2 S A H + S^2 A H) / beta) log(K)^(5/2).
    """
    counters = n_states * n_actions * horizon * (2 + n_states)
    return 3.0 * horizon / epsilon * math.log(counters / beta) * math.pow(math.log(users), 2.5)


@_of_numbers()
def pucb_mistakes(horizon: int, n_states: int, n_actions: int, epsilon: float, alpha: float) -> float:
    """Return PUCB's bound on mistakes, up to logarithms (theorem 3).

    It bounds the number of users whose policy is not alpha-optimal:

    S A H^4 / alpha^2 + S^2 A H^4 / (epsilon alpha).
    """
    sampling = n_states * n_actions * horizon**4 / alpha**2
    return sampling + n_states**2 * n_actions * horizon**4 / (epsilon * alpha)


@_of_numbers()
def pucb_regret(horizon: int, n_states: int, n_actions: int, users: int, epsilon: float) -> float:
    """Return PUCB's bound on regret, up to logarithms (theorem 4).

    It is H^2 sqrt(S A K) + (S A + S^2 A) H^3 / epsilon.
    """
    privacy = (n_states + n_states**2) * n_actions * horizon**3 / epsilon
    return horizon**2 * math.sqrt(n_states * n_actions * users) + privacy


# DP-UCBVI, and what it compares itself with --------------------------------------------------------------------------


@_of_numbers()
def dp_ucbvi_regret(
    horizon: int, n_states: int, n_actions: int, users: int, epsilon: float, *, local: bool = False
) -> float:
    """Return DP-UCBVI's bound on regret, up to logarithms (theorems 5.2 and 5.7).

    sqrt(S A H^2 T) + S^2 A H^3 / epsilon under JDP, sqrt(S A H^2 T) + S^2 A sqrt(H^5 T) / epsilon under LDP.
    """
    return dp_ucbvi_regret_of_error(
        horizon, n_states, n_actions, users, dp_ucbvi_error(horizon, users, epsilon, local=local)
    )


@_of_numbers()
def dp_ucbvi_regret_of_error(horizon: int, n_states: int, n_actions: int, users: int, error: float) -> float:
    """Return DP-UCBVI's bound on regret for counts with errors below E (theorem 4.1).

    It is up to logarithms, and holds for any boundary whose counts have errors of at most E:

    sqrt(S A H^2 T) + S^2 A H^2 E.
    """
    sampling = math.sqrt(n_states * n_actions * horizon**3 * users)
    return sampling + n_states**2 * n_actions * horizon**2 * error


@_of_numbers()
def dp_ucbvi_error(horizon: int, users: int, epsilon: float, *, local: bool = False) -> float:
    """Return DP-UCBVI's error bound E, up to logarithms (lemmas 5.1 and 5.6).

    E is H / epsilon under JDP, and H sqrt(K) / epsilon under LDP.
    """
    return horizon * (math.sqrt(users) if local else 1.0) / epsilon


@_of_numbers()
def private_ucbvi_regret(
    horizon: int, n_states: int, n_actions: int, users: int, epsilon: float, *, local: bool = False
) -> float:
    """Return Private-UCB-VI's bound on regret, up to logarithms (DP-UCBVI, table 1).

    It is sqrt(S A H^3 T), and a term for privacy as for DP-UCBVI.
    """
    privacy = n_states**2 * n_actions * horizon**2 * dp_ucbvi_error(horizon, users, epsilon, local=local)
    return math.sqrt(n_states * n_actions * horizon**4 * users) + privacy


@_of_numbers()
def private_ucbpo_regret(
    horizon: int, n_states: int, n_actions: int, users: int, epsilon: float, *, local: bool = False
) -> float:
    """Return Private-UCB-PO's bound on regret, up to logarithms (DP-UCBVI, table 1).

    It is sqrt(S^2 A H^3 T), and a term for privacy as for DP-UCBVI.
    """
    privacy = n_states**2 * n_actions * horizon**2 * dp_ucbvi_error(horizon, users, epsilon, local=local)
    return math.sqrt(n_states**2 * n_actions * horizon**4 * users) + privacy


@_of_numbers()
def ldp_obi_regret(horizon: int, n_states: int, n_actions: int, users: int, epsilon: float) -> float:
    """Return LDP-OBI's bound on regret, up to logarithms (DP-UCBVI, table 1).

    For stages that differ, it is that of Private-UCB-PO under LDP.
    """
    return private_ucbpo_regret(horizon, n_states, n_actions, users, epsilon, local=True)


@_of_numbers()
def ldp_regret_lower_bound(horizon: int, n_states: int, n_actions: int, users: int, epsilon: float) -> float:
    """Return the lower bound on regret under epsilon-LDP, up to constants (LDP-OBI).

    It is from LDP-OBI's paper (Garcelon et al.):

    H sqrt(S A K) / min(e^epsilon - 1, 1): local privacy costs a factor 1 / epsilon, not a term.
    """
    factor = math.expm1(epsilon) if epsilon < 1.0 else 1.0
    return horizon * math.sqrt(n_states * n_actions * users) / min(factor, 1.0)


# SDP-PE --------------------------------------------------------------------------------------------------------------


@_of_numbers()
def sdp_pe_regret(horizon: int, n_states: int, n_actions: int, users: int, epsilon: float) -> float:
    """Return SDP-PE's bound on regret, up to logarithms (theorem 11).

    It is theorem 6 with E = H / epsilon, that of its shuffler (lemma 10).
    """
    return sdp_pe_regret_of_error(horizon, n_states, n_actions, users, horizon / epsilon)


@_of_numbers()
def sdp_pe_regret_of_error(horizon: int, n_states: int, n_actions: int, users: int, error: float) -> float:
    """Return SDP-PE's bound on regret for counts with errors below E (theorem 6).

    Up to logarithms, it is sqrt(H^5 S^2 A K) + S^3 A^2 H^5 E.
    """
    sampling = math.sqrt(horizon**5 * n_states**2 * n_actions * users)
    return sampling + n_states**3 * n_actions**2 * horizon**5 * error


# LinOpt --------------------------------------------------------------------------------------------------------------


@_of_numbers()
def linopt_regret(horizon: int, d: int, users: int, epsilon: float, delta: float) -> float:
    """Return Private-LinOpt-VI's bound on regret (theorem 6.5).

    It is up to constants and log T. At epsilon = inf it is that of UCRL-VTR, by remark 6.7.

    d sqrt(T H^3) + d^(7/4) sqrt(T H^4) log(H / delta)^(1/4) / sqrt(epsilon).
    """
    steps = users * horizon
    width = math.pow(math.log(horizon / delta), 0.25) / math.sqrt(epsilon)
    privacy = math.pow(d, 1.75) * math.sqrt(steps * horizon**4) * width
    return d * math.sqrt(steps * horizon**3) + privacy


@_of_numbers()
def linopt_po_regret(horizon: int, d: int, n_actions: int, users: int, epsilon: float, delta: float) -> float:
    """Return Private-LinOpt-PO's bound on regret (theorem 6.5).

    It is up to constants and log T. At epsilon = inf it is that of OPPO, by remark 6.7.

    The bound of Private-LinOpt-VI, and sqrt(T H^3) log A. (Theorem 5.1 and remark 6.7 have sqrt(T H^3 log A).)
    """
    mirror = math.sqrt(users * horizon**4) * math.log(n_actions)
    return linopt_regret(horizon, d, users, epsilon, delta) + mirror


@_of_numbers(alpha=1.0)
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
    """Return LinOpt's bound on regret for given regularizers (theorems 4.1 and 5.1).

    Up to constants, it is that of value iteration (4.1) or, with ``n_actions``, of policy optimisation (5.1):

    sqrt(T H^3) (ln(H / alpha) + d kappa) + sqrt(T H d kappa) (sqrt(d largest) + shift), with kappa = ln(1 + K H^2 /
    smallest); policy optimisation adds sqrt(T H^3 log A). Regularizers are between ``smallest`` and ``largest``, and
    ``shift`` bounds the noise of vectors in their norm (nu).
    """
    steps, kappa = users * horizon, math.log(1.0 + users * horizon**2 / smallest)
    sampling = math.sqrt(steps * horizon**3) * (math.log(horizon / alpha) + d * kappa)
    privacy = math.sqrt(steps * horizon * d * kappa) * (math.sqrt(d * largest) + shift)
    return sampling + privacy + (math.sqrt(steps * horizon**3 * math.log(n_actions)) if n_actions else 0.0)


# Rivals --------------------------------------------------------------------------------------------------------------


@_of_numbers(delta=1.0)
def ldp_ucrl_vtr_regret(horizon: int, d: int, users: int, epsilon: float, delta: float) -> float:
    """Return LDP-UCRL-VTR's bound on regret, up to logarithms of T (Liao et al.).

    By Liao, He and Gu, it is d^(5/4) H^(7/4) T^(3/4) log(1 / delta)^(1/4) / sqrt(epsilon).

    It says nothing about the learner without privacy: at epsilon = inf it is 0.
    """
    width = math.pow(math.log(1.0 / delta), 0.25) / math.sqrt(epsilon)
    return math.pow(d, 1.25) * math.pow(horizon, 1.75) * math.pow(users * horizon, 0.75) * width


@_of_numbers()
def ldp_ucrl_vtr_lower_bound(horizon: int, d: int, users: int, epsilon: float) -> float:
    """Return the lower bound on regret under epsilon-LDP, up to constants (LDP-UCRL-VTR).

    It is d H sqrt(T) / (e^eps (e^eps - 1)), from LDP-UCRL-VTR's paper.
    """
    return d * horizon * math.sqrt(users * horizon) / (math.exp(epsilon) * math.expm1(epsilon))


@_of_numbers()
def dp_se_regret(gaps: Sequence[float], users: int, epsilon: float) -> float:
    """Return DP-SE's bound on regret, up to constants (Sajed, Sheffet).

    It is the sum of ln K / gap over worse arms, and of ln K / epsilon over all arms.

    No learner loses more than the largest gap at each pull, which is therefore the most that is returned.
    """
    worse = [gap for gap in gaps if gap > 0.0]
    learning = sum(math.log(users) / gap for gap in worse) + len(gaps) * math.log(users) / epsilon
    return min(learning, users * max(worse))


# RLSVI ---------------------------------------------------------------------------------------------------------------


@_of_numbers(delta=1.0)
def rlsvi_epsilon(
    horizon: int, n_states: int, n_actions: int, users: int, delta: float, order: float | None = None
) -> float:
    """Return the epsilon of RLSVI for rewards (theorem 13).

    The proof uses Renyi divergences of an order above 1; by default the order is the best one.

    2 order A K / (H^2 log(2 H S A)) + log(1 / delta) / (order - 1). At the best order it is corollary 14.
    """
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
        guarantee: The guarantee that it is for; empty for the lower bound, which is for all learners.
        formula: The bound up to logarithms, in LaTeX, with K users and T = H K.
        regret: The bound as a function of H, S, A, K and epsilon.
    """

    table: str
    learner: str
    guarantee: str
    formula: str
    regret: Callable[[int, int, int, int, float], float]


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
    TableRow(_FIRST, "lower bound", "", r"\sqrt{SAH^2T}", lambda H, S, A, K, _: regret_lower_bound(H, S, A, K)),
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

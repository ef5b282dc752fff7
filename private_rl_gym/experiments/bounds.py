"""Bounds of the papers' theorems as functions, to be drawn beside measured curves.

Lower bounds come with the constants that the papers prove. Upper bounds are stated up to constants and logarithms, and
so are these: they show how a curve should grow, not where it lies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = [
    "best_arm_pulls",
    "dp_ucbvi_regret",
    "dp_ucbvi_regret_of_error",
    "linopt_regret",
    "lower_bound",
    "pac_lower_bound",
    "private_regret_lower_bound",
    "pucb_mistakes",
    "pucb_mistakes_lower_bound",
    "pucb_regret",
    "sdp_pe_regret",
]


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


def private_regret_lower_bound(horizon: int, n_states: int, n_actions: int, users: int, epsilon: float) -> float:
    """PUCB, theorem 6, up to constants: sqrt(H S A T) + S A H log(T) / epsilon, T being all steps."""
    _positive(epsilon=epsilon)
    steps = users * horizon
    return (
        math.sqrt(horizon * n_states * n_actions * steps) + n_states * n_actions * horizon * math.log(steps) / epsilon
    )


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


def pucb_mistakes(horizon: int, n_states: int, n_actions: int, epsilon: float, alpha: float) -> float:
    """PUCB, theorem 3, up to logarithms: users whose policy is not alpha-optimal.

    S A H^4 / alpha^2 + S^2 A H^4 / (epsilon alpha).
    """
    _positive(epsilon=epsilon, alpha=alpha)
    sampling = n_states * n_actions * horizon**4 / alpha**2
    return sampling + n_states**2 * n_actions * horizon**4 / (epsilon * alpha)


def pucb_regret(horizon: int, n_states: int, n_actions: int, users: int, epsilon: float) -> float:
    """PUCB, theorem 4, up to logarithms: H^2 sqrt(S A K) + S^2 A H^3 / epsilon, K being users."""
    _positive(epsilon=epsilon)
    return horizon**2 * math.sqrt(n_states * n_actions * users) + n_states**2 * n_actions * horizon**3 / epsilon


def dp_ucbvi_regret(
    horizon: int, n_states: int, n_actions: int, users: int, epsilon: float, *, local: bool = False
) -> float:
    """DP-UCBVI, theorems 5.2 and 5.7, up to logarithms.

    sqrt(S A H^2 T) + S^2 A H^3 / epsilon under JDP, sqrt(S A H^2 T) + S^2 A sqrt(H^5 T) / epsilon under LDP.
    """
    _positive(epsilon=epsilon)
    steps = users * horizon
    privacy = math.sqrt(horizon**5 * steps) if local else float(horizon**3)
    return math.sqrt(n_states * n_actions * horizon**2 * steps) + n_states**2 * n_actions * privacy / epsilon


def dp_ucbvi_regret_of_error(horizon: int, n_states: int, n_actions: int, users: int, error: float) -> float:
    """DP-UCBVI, theorem 4.1, up to logarithms, for any boundary whose counts have errors of at most E.

    sqrt(S A H^2 T) + S^2 A H^2 E, T being all steps.
    """
    steps = users * horizon
    return math.sqrt(n_states * n_actions * horizon**2 * steps) + n_states**2 * n_actions * horizon**2 * error


def sdp_pe_regret(horizon: int, n_states: int, n_actions: int, users: int, epsilon: float) -> float:
    """SDP-PE, theorem 6, up to logarithms: sqrt(H^5 S^2 A K) + S^3 A^2 H^5 E, with E = H / epsilon of its shuffler."""
    _positive(epsilon=epsilon)
    sampling = math.sqrt(horizon**5 * n_states**2 * n_actions * users)
    return sampling + n_states**3 * n_actions**2 * horizon**6 / epsilon


def linopt_regret(horizon: int, d: int, users: int, epsilon: float, delta: float) -> float:
    """Private-LinOpt-VI, theorem 6.5, up to constants and log T.

    d sqrt(T H^3) + d^(7/4) sqrt(T H^4) log(H / delta)^(1/4) / sqrt(epsilon), T being all steps.
    """
    _positive(epsilon=epsilon, delta=delta)
    steps = users * horizon
    width = math.pow(math.log(horizon / delta), 0.25) / math.sqrt(epsilon)
    privacy = math.pow(d, 1.75) * math.sqrt(steps * horizon**4) * width
    return d * math.sqrt(steps * horizon**3) + privacy


def _positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if not number > 0.0:
            raise ValueError(f"{name} is {number}: the bound holds above 0.")


def _below(beta: float, limit: float) -> None:
    if not 0.0 < beta < limit:
        raise ValueError(f"beta is {beta}: the bound holds for probabilities of failure in (0, {limit:g}).")

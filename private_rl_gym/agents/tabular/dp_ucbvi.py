"""DP-UCBVI: the private Bernstein bonus, on projected counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.offline.pessimism import OfflinePlan, Sums, pessimistic_plan
from private_rl_gym.agents.optimism import Constants, Optimist, check_constants, check_multiplier
from private_rl_gym.planning.bernstein import bernstein_induction, moments
from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.projection import project_counts
from private_rl_gym.planning.solve import Plan, greedy
from private_rl_gym.privacy.release import Release

__all__ = ["DPUCBVI", "practical_plan", "theorem_plan"]


class DPUCBVI(Optimist):
    """UCBVI for noisy counts, with a private Bernstein bonus.

    Counts are projected to valid ones, and the bonus allows for their noise.

    Qiao, Wang: Near-Optimal Differentially Private Reinforcement Learning, 2023, algorithm 1 and theorem 4.1. With
    exact counts it gives exactly the numbers of ``UCBVI(variant="bernstein")``. ``learn_offline`` subtracts the bonus.

    Args:
        policy: ``"TabularPolicy"``.
        env: ``JDPBillboard`` (the central privatizer), ``LDPUserSide`` (the local one), or any other board.
        constants: ``"theory"`` for algorithm 1 as printed. E is four times the largest error bound, at beta / 3, of the
            releases so far (the paper has one E for all of them). ``"practical"``, with ``bonus_scale`` times the
            first two terms, and a margin of ``noise_scale`` times the noise's standard deviation. Counts below twice
            their noise are treated as unknown, and counts are projected at E = 0, so that they are not raised.
        bonus_scale: The multiplier of a practical bonus.
        noise_scale: The multiplier of a practical margin for noise.
        options: ``beta``, ``verbose``, ``tensorboard_log``, ``seed``; see the base class.
    """

    def __init__(
        self,
        policy: str | None = "TabularPolicy",
        env: Any = None,
        *,
        constants: Constants = "practical",
        bonus_scale: float = 0.3,
        noise_scale: float = 0.3,
        **options: Any,
    ) -> None:
        self.constants = check_constants(constants)
        self.bonus_scale = check_multiplier("bonus_scale", bonus_scale, "the bonus")
        self.noise_scale = check_multiplier("noise_scale", noise_scale, "a margin for noise", zero=True)
        self._largest_error = 0.0
        super().__init__(policy, env, **options)

    def plan(self, release: Release) -> Policy:
        """Plan by lines 4 to 14 of algorithm 1."""
        if self.constants == "theory":
            E = self._error(release)
            m, n = project_counts(release.m, release.n, E)
            self._plan = theorem_plan(n, m, release.r, self.iota, E, self._plan)
        else:
            m, n = project_counts(release.m, release.n, 0.0)
            noise = release.noise_std["n"]
            self._plan = practical_plan(
                n, m, release.r, self.iota, self.bonus_scale, self.noise_scale * noise, 2.0 * noise
            )
        return self._plan.policy

    def _error(self, release: Release) -> float:
        """Return E of all releases so far.

        The projection assumes that counts are within E / 4 (lemma 5.4). Algorithm 1 has one E. Bounds of single
        releases rise and fall: a tree needs few sums after 2^j batches.
        """
        self._largest_error = max(self._largest_error, 4.0 * release.error_bound(self.beta / 3.0))
        return self._largest_error

    def prepare(self) -> None:
        """Discard the values and the errors of another environment."""
        super().prepare()
        self._largest_error = 0.0

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the values of the current plan, and E."""
        return {**super().state(), "error": np.array(self._largest_error)}

    def set_state(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore a saved plan, and E with it."""
        error = arrays.get("error", np.array(0.0))
        if error.shape != () or error.dtype != np.float64 or not 0.0 <= error < np.inf:
            raise ValueError("The saved plan is damaged: its bound on the error of counts is no number.")
        super().set_state({name: array for name, array in arrays.items() if name != "error"})
        self._largest_error = float(error)

    def plan_offline(self, release: Release, *, stationary: bool) -> OfflinePlan:
        """Plan with the same bonus subtracted.

        With ``stationary``, counts are pooled over stages.
        """
        if self.constants == "theory":
            raise ValueError("constants='theory' is for exploration. To learn offline, give constants='practical'.")
        found = pessimistic_plan(Sums.of(release, stationary=stationary), self.iota, self.bonus_scale, self.noise_scale)
        self._plan = found.plan
        return found


def theorem_plan(
    n: NDArray[np.float64],  # [h, s, a]
    m: NDArray[np.float64],  # [h, s, a, s']
    r: NDArray[np.float64],  # [h, s, a]
    iota: float,
    E: float,
    previous: Plan | None,
) -> Plan:
    """Plan by algorithm 1, whose Q never rises from plan to plan.

    With E = 0 it is the plan of UCBVI with its second bonus.

    Args:
        n: Visits, the sums of ``m`` over next states. Where there are none, Q is H.
        m: Transitions, none negative.
        r: Sums of rewards.
        iota: The logarithm in every term.
        E: A bound on the error of counts.
        previous: The previous plan.
    """
    top = np.full(n.shape, np.inf) if previous is None else previous.q
    return Plan(*_algorithm_1(n, m, r, iota, E, top))


@compiled
def _algorithm_1(n: Any, m: Any, r: Any, iota: float, E: float, previous: Any) -> Any:
    H, S, A = n.shape
    q, v, actions = np.empty((H, S, A)), np.zeros((H + 1, S)), np.empty((H, S), dtype=np.int64)
    slack = np.zeros((H + 1, S))  # the error of a state's estimated value, squared; none at the end
    for h in range(H - 1, -1, -1):
        for s in range(S):
            for a in range(A):
                N, value = n[h, s, a], float(H)
                if N > 0.0:
                    PV, variance, spread = moments(m[h, s, a], N, v[h + 1], slack[h + 1])
                    bonus = (
                        2.0 * np.sqrt(variance * iota / N)
                        + np.sqrt(2.0 * iota / N)
                        + 20.0 * H * S * E * iota / N
                        + 4.0 * np.sqrt(iota) * np.sqrt(spread / N)
                    )
                    value = min(float(H), min(max(r[h, s, a] / N, 0.0), 1.0) + PV + bonus)
                q[h, s, a] = min(value, previous[h, s, a])
            slack[h, s] = _slack(n[h, s].sum(), H, S, A, E, iota)
        greedy(q[h], v[h], actions[h])
    return q, v, actions


@compiled
def _slack(N: float, H: int, S: int, A: int, E: float, iota: float) -> float:
    """Return the slack of a state with N visits.

    It is min(1000^2 (H^3 S A iota^2 / N + (H^4 E^2 + H^6) S^4 A^2 iota^4 / N^2), H^2).
    """
    most = float(H) * H
    if N <= 0.0:
        return most
    first = float(H) ** 3 * S * A * iota**2 / N
    second = (float(H) ** 4 * E**2 + float(H) ** 6) * float(S) ** 4 * A**2 * iota**4 / N**2
    return min(1e6 * (first + second), most)


def practical_plan(
    n: NDArray[np.float64],  # [h, s, a]
    m: NDArray[np.float64],  # [h, s, a, s']
    r: NDArray[np.float64],  # [h, s, a]
    iota: float,
    scale: float,
    noise: float = 0.0,
    unknown_below: float = 0.0,
) -> Plan:
    """Plan with a part of the bonus's first two terms, and a margin for noise.

    Values are at most H - h.

    Args:
        n: Visits, the sums of ``m`` over next states.
        m: Transitions, none negative.
        r: Sums of rewards.
        iota: The logarithm in both terms.
        scale: Their multiplier.
        noise: The margin is noise (H - h) / N.
        unknown_below: Visits up to which the value of a cell is H - h, whatever was observed.
    """
    margin, below = np.full((len(n), n.shape[2]), noise), np.full((len(n), n.shape[2]), unknown_below)
    return bernstein_induction(n, m, r, below, margin, horizon=len(n), iota=iota, scale=scale)

"""RLSVI: exploration by noise on values, with a guarantee of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.base import Agent
from private_rl_gym.agents.optimism import Constants, check_constants, check_multiplier
from private_rl_gym.planning.arrays import flag, real, shown
from private_rl_gym.planning.hoeffding import estimates
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.solve import backward_induction, optimistic_backward_induction
from private_rl_gym.privacy.accounting.conversion import gaussian_epsilon
from private_rl_gym.privacy.accounting.guarantee import Covers, Guarantee, TrustModel
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.release import Release
from private_rl_gym.wrappers.open_billboard import OpenBillboard

__all__ = ["RLSVI", "printed_epsilon", "tight_mu"]


class RLSVI(Agent):
    """Value iteration on empirical counts, with new Gaussian noise for every plan.

    The noise is added to every value.

    Lu, Gajane, Bai, Talebi: Randomized Least Squares Value Iteration itself is Joint Differentially Private, algorithm
    1. The noise explores, and it also protects users: ``agent.guarantee`` states which users and how much. It is a
    guarantee of the agent, not of a boundary: it covers **rewards only**, for neighbours whose states and actions are
    equal, and its epsilon grows with the number of users.

    Args:
        policy: ``"TabularPolicy"``.
        env: An environment or an open board, for which the agent's guarantee is proved. On other boards it learns from
            their releases, and has their guarantee.
        constants: ``"theory"`` for the paper's variance, which protects users but learns almost nothing with any
            realistic number of them; ``"practical"`` for a small part of it, which learns but gives almost no privacy.
            The guarantee states how much.
        variance_scale: Multiplies the variance beta_k = S H^3 log(2 H S A k) / 2; by default 1, or 1e-5 where
            ``constants`` is ``"practical"``.
        clip: Whether to cut every value to [0, H - h] before the previous stage is planned. The guarantee is the same.
        delta: Delta of the guarantee.
        options: ``beta``, ``verbose``, ``tensorboard_log``, ``seed``; see the base class.
    """

    secret_randomness = True
    private = False  # its own noise protects users

    def __init__(
        self,
        policy: str | None = "TabularPolicy",
        env: Any = None,
        *,
        constants: Constants = "practical",
        variance_scale: float | None = None,
        clip: bool = False,
        delta: float = 1e-5,
        **options: Any,
    ) -> None:
        self.constants = check_constants(constants)
        usual = 1.0 if constants == "theory" else 1e-5
        variance_scale = usual if variance_scale is None else variance_scale
        self.variance_scale = check_multiplier("variance_scale", variance_scale, "a variance")
        self.clip = flag(clip, "clip")
        if not 0.0 < real(delta, "delta") < 1.0:
            raise ValueError(f"delta is {shown(delta)}: the guarantee of Gaussian noise needs one in (0, 1).")
        self.delta = float(delta)
        self._squared_mu, self._rate, self._plans = 0.0, 0.0, 0
        self._observer: Callable[[Release, NDArray[np.float64], NDArray[np.float64]], None] | None = None
        self._seeded = False  # whether any noise so far could be drawn again
        super().__init__(policy, env, **options)

    def plan(self, release: Release) -> Policy:
        """Plan by lines 5 to 18 of algorithm 1.

        The noise of a value is added to its reward.
        """
        P, R, noise = self.perturbed(release)
        H = R.shape[0]
        if self.clip:
            return optimistic_backward_induction(P, R, noise, floor=0.0).policy
        return backward_induction(P, R + noise, H).policy

    def perturbed(self, release: Release) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return estimated transitions and rewards, and the noise of a plan.

        The privacy cost of the plan is recorded.
        """
        n = np.maximum(release.n, 0.0)  # counts of a noisy board may be below 0
        H, S, A = n.shape
        beta = self.noise_variance(release.users + 1)
        P, R = estimates(n, release.m, release.r)
        noise = np.empty(n.shape)
        self.noise.gaussian(noise)
        noise *= np.sqrt(beta / (n + 1.0))
        if release.users and self._protects:  # every plan that uses users' data spends privacy, at any request
            self._seeded |= self.seed is not None
            self._squared_mu += 2.0 * H / beta
            self._rate += _printed_rate(H, S, A, self.variance_scale)
            self._plans += 1
        if self._observer is not None:
            self._observer(release, R, noise)
        return P, R, noise

    def observe(self, observer: Callable[[Release, NDArray[np.float64], NDArray[np.float64]], None] | None) -> None:
        """Show every plan to an auditor.

        The auditor sees the release, the estimated rewards, and the noise.
        """
        self._observer = observer

    def noise_variance(self, user: int) -> float:
        """Return beta_k, the variance of a value before user k times visits plus one."""
        return self.variance_scale * _beta(*self._board.sizes, user)

    @property
    def _protects(self) -> bool:
        """Whether the guarantee is that of the agent's own noise.

        It is proved for exact counts only.
        """
        return isinstance(self._board, OpenBillboard)

    @property
    def board_guarantee(self) -> Guarantee:
        """The guarantee to the users so far, over all plans of this agent.

        Other agents on the board are not included: their guarantees compose with this one. On a board with a guarantee
        of its own, it is the board's guarantee: one reward moves the sums there in another way than the proof for the
        agent's own noise assumes.
        """
        if not self._protects:
            return super().board_guarantee
        users = max(self._board.release.users, 1)
        tight = gaussian_epsilon(self.delta, math.sqrt(self._squared_mu))
        printed = self._rate + 2.0 * math.sqrt(self._rate * math.log(1.0 / self.delta))
        return Guarantee(
            TrustModel.JDP,
            min(printed, tight),
            self.delta,
            users,
            "Gaussian noise on the values that actions are chosen by",
            covers=Covers.REWARDS,
            notes=(f"rewards only; printed bound {printed:.4g}, tight account {tight:.4g}", "grows with users"),
            seeded=self._seeded or self.seed is not None,
        )

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the privacy that has been spent."""
        return {"spent": np.array([self._squared_mu, self._rate, float(self._plans), float(self._seeded)])}

    def set_state(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore the privacy that has been spent.

        Privacy that was spent since then stays spent.
        """
        squared_mu, rate, plans, seeded = (float(number) for number in arrays["spent"])
        self._seeded |= bool(seeded)
        self._squared_mu, self._rate = max(self._squared_mu, squared_mu), max(self._rate, rate)
        self._plans = max(self._plans, int(plans))

    def set_random_seed(self, seed: int | None = None) -> None:
        """Restart the random streams and the noise.

        With a seed the guarantee is void, and it states this.
        """
        super().set_random_seed(seed)
        # A NoiseSource raises in a forked process, where the same noise would be drawn twice.
        self.noise = NoiseSource(seed, role="values")
        self.seed = seed if seed is not None else self.seed

    def streams(self) -> dict[str, np.random.Generator]:
        """Return the agent's own generators, and that of the noise."""
        return {**super().streams(), "noise": self.noise.generator}


def _beta(horizon: int, n_states: int, n_actions: int, user: int) -> float:
    return 0.5 * n_states * horizon**3 * math.log(2.0 * horizon * n_states * n_actions * user)


def printed_epsilon(
    horizon: int, n_states: int, n_actions: int, users: int, delta: float, variance_scale: float = 1.0
) -> float:
    """Return epsilon by corollary 14 of the paper.

    Renyi divergences are inversely proportional to the variance.
    """
    rate = users * _printed_rate(horizon, n_states, n_actions, variance_scale)
    return rate + 2.0 * math.sqrt(rate * math.log(1.0 / delta))


def tight_mu(horizon: int, n_states: int, n_actions: int, users: int, variance_scale: float = 1.0) -> float:
    """Return mu of Gaussian privacy.

    A user moves one mean per stage by up to 1 / N, under noise of variance beta_k / (N + 1). At worst N = 1, and mu^2
    is the sum over k and h of 2 / beta_k. Proof: docs/proofs/rlsvi.md.
    """
    k = np.arange(1.0, users + 1.0)
    beta = variance_scale * 0.5 * n_states * horizon**3 * np.log(2.0 * horizon * n_states * n_actions * k)
    return float(np.sqrt((2.0 * horizon / beta).sum()))


def _printed_rate(horizon: int, n_states: int, n_actions: int, variance_scale: float) -> float:
    """Return the Renyi divergence of order alpha that one plan adds, divided by alpha.

    This is lemma 12 of the paper.
    """
    return 2.0 * n_actions / (variance_scale * horizon**2 * math.log(2.0 * horizon * n_states * n_actions))

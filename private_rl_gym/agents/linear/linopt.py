"""LinOpt: optimistic learning of linear mixtures, private or not.

It uses value iteration or policy optimisation.

After Zhou: Differentially Private Reinforcement Learning with Linear Function Approximation, 2022, algorithms 1 and 2
with section 6. Theory's constants are proved in docs/proofs/linear-confidence.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.mirror import MirrorDescent
from private_rl_gym.agents.optimism import Constants, Optimist, check_constants, check_multiplier
from private_rl_gym.planning.arrays import among
from private_rl_gym.planning.linear import Optimism, Regression, linear_induction
from private_rl_gym.planning.policy import Policy
from private_rl_gym.privacy.release import LinearRelease
from private_rl_gym.privacy.requests import Values

__all__ = ["OPPO", "UCRLVTR", "LinearOptimist", "PrivateLinOptPO", "PrivateLinOptVI"]


class LinearOptimist(Optimist):
    """The base class of linear agents, with two regressions for each stage.

    Each has a bonus for uncertainty. Lambda is the released Gram matrix, shifted to be positive definite whatever the
    noise; theta = Lambda^-1 u; and the bonus beta |phi|_{Lambda^-1} allows for sampling, for the shift, and for the
    noise in u.
    """

    statistic = "linear"

    def __init__(
        self,
        policy: str | None = "TabularPolicy",
        env: Any = None,
        *,
        constants: Constants = "practical",
        bonus_scale: float = 0.5,
        shift_scale: float = 1.0,
        **options: Any,
    ) -> None:
        self.constants = check_constants(constants)
        self.bonus_scale = check_multiplier("bonus_scale", bonus_scale, "the bonus")
        self.shift_scale = check_multiplier("shift_scale", shift_scale, "the regularizer that hides noise", zero=True)
        super().__init__(policy, env, **options)

    def next_request(self) -> Values | None:
        """Return the request for moments of the optimistic values."""
        return None if self._plan is None else Values(self._plan.v)

    def regressions(self, release: LinearRelease) -> tuple[Regression, Regression]:
        """Return two regressions, with widths of their confidence sets.

        They are those of the next value on phi and of the reward on varphi.
        """
        known, horizon = release.features, len(release.gram_p)
        tops = np.arange(horizon - 1.0, -1.0, -1.0)
        return (
            self._regression(release, "p", known.bound * tops, tops),
            self._regression(release, "r", np.full(horizon, known.reward_bound), np.ones(horizon)),
        )

    def _regression(
        self,
        release: LinearRelease,
        which: str,
        bounds: NDArray[np.float64],  # [h], on the norm of a row
        tops: NDArray[np.float64],  # [h], the largest target
    ) -> Regression:
        gram, vector = getattr(release, f"gram_{which}"), getattr(release, f"vector_{which}")
        horizon, d = vector.shape
        ridge = bounds**2
        if self.constants == "practical":
            shift = ridge + self.shift_scale * release.typical_norm(f"gram_{which}")
            return Regression(gram, vector, shift, self.bonus_scale * tops / 2.0, width_by_shift=self.bonus_scale)
        alpha = self.beta / 3.0
        failure = alpha / (4.0 * horizon * release.releases)
        noise = release.noise_norm(f"gram_{which}", failure)
        shift = 2.0 * noise + ridge
        sampling = math.sqrt(2.0 * math.log(horizon / alpha) + d * math.log1p(release.users / d))  # B^2 / ridge = 1
        least = np.sqrt(np.maximum(noise + ridge, 1e-300))
        beside = release.noise_norm(f"vector_{which}", failure) / least
        return Regression(gram, vector, shift, tops / 2.0 * sampling + np.sqrt(d * (3.0 * noise + ridge)) + beside)

    def _evaluate(self, release: LinearRelease, policy: NDArray[np.float64] | None = None) -> Optimism:
        """Return the optimistic values of the greedy policy, or of a given one."""
        self._plan = linear_induction(
            release.features,
            *self.regressions(release),
            staged=self.constants == "practical",
            policy=policy,
            absorbing=release.absorbing,
            waiting_reward=release.waiting_reward,
        )
        return self._plan

    def progress(self) -> dict[str, float]:
        """Return the largest value, and the numbers of two problems.

        These are rows longer than stated, and regressions with noise above the shift.
        """
        if not isinstance(self._plan, Optimism):  # none yet, or one that was saved
            return super().progress()
        numbers = {"plan/scaled_rows": float(self._plan.scaled), "plan/raised_shifts": float(self._plan.raised)}
        return super().progress() | numbers


class PrivateLinOptVI(LinearOptimist):
    """Optimistic value iteration on private moments.

    Its cost does not grow with the number of states. Users are sent the greedy policy together with its optimistic
    values, and report moments of these.

    Args:
        policy: ``"TabularPolicy"``.
        env: A boundary with ``statistic="linear"``, or an environment that knows features of its own.
        constants: ``"theory"`` for the constants of lemma 3.1, with which values are optimistic with probability 1 -
            beta; ``"practical"`` for ``bonus_scale`` times half the largest value and the root of the shift, with
            values cut to the range of values of possible next states.
        bonus_scale: The multiplier of a practical bonus.
        shift_scale: The shift of a practical plan, in typical norms of the noise; theory's is two bounds on that norm.
        options: ``beta``, ``verbose``, ``tensorboard_log``, ``seed``; see the base class.

    Example:
        >>> import gymnasium as gym, private_rl_gym
        >>> from private_rl_gym.agents import PrivateLinOptVI
        >>> from private_rl_gym.wrappers import JDPBillboard
        >>> env = gym.make("PrivateRL/LinearMixture-v0", n_states=1000)
        >>> board = JDPBillboard(env, 10.0, 1e-6, users=2000, statistic="linear", schedule=100)
        >>> agent = PrivateLinOptVI("TabularPolicy", board, seed=0).learn(2000 * 6)
        >>> agent.policy
        Policy(deterministic, H=6, S=1000, A=4)
    """

    def plan(self, release: LinearRelease) -> Policy:
        """Return the policy that is greedy for the optimistic values.

        Users receive the values with it.
        """
        return self._evaluate(release).policy


class PrivateLinOptPO(LinearOptimist):
    """Policy optimisation on private moments.

    It evaluates the policy, and moves it towards the actions with larger values. The policy starts uniform and stays
    stochastic. A step replaces pi by pi exp(eta Q), normalised, in logarithms.

    Args:
        policy: ``"TabularPolicy"``.
        env: As in ``PrivateLinOptVI``.
        eta: The step size; by default sqrt(2 log A / (H^2 K)) times ``eta_scale``. K is the number of releases that the
            board was built for; where any number of users may come, it is that of a million users, and it is better to
            give ``users=`` or ``eta=``.
        eta_scale: Multiplies the default step size. By default 60; or 1, as in theory, with ``constants="theory"``,
            which learns slowly.
        constants: As in ``PrivateLinOptVI``.
        bonus_scale: As in ``PrivateLinOptVI``.
        shift_scale: As in ``PrivateLinOptVI``.
        options: ``beta``, ``verbose``, ``tensorboard_log``, ``seed``; see the base class.
    """

    def __init__(
        self,
        policy: str | None = "TabularPolicy",
        env: Any = None,
        *,
        eta: float | None = None,
        eta_scale: float | None = None,
        constants: Constants = "practical",
        **options: Any,
    ) -> None:
        self.eta = eta
        self.eta_scale = (1.0 if among(constants, ("theory",)) else 60.0) if eta_scale is None else eta_scale
        self._mirror = MirrorDescent(self, eta, self.eta_scale)
        super().__init__(policy, env, constants=constants, **options)

    def prepare(self) -> None:
        """Begin with the uniform policy."""
        super().prepare()
        self._mirror.logits = None

    @property
    def step_size(self) -> float:
        """The step size eta."""
        return self._mirror.step_size

    def plan(self, release: LinearRelease) -> Policy:
        """Take one mirror step by the last evaluation, and evaluate the new policy."""
        mirror = self._mirror
        known = self._plan if mirror.logits is not None else None
        probabilities = mirror.begin() if known is None else mirror.improve(known.q)
        self._evaluate(release, probabilities)
        return mirror.policy()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the policy, and the evaluation from which the next one is made."""
        return {**super().state(), **self._mirror.state()}

    def set_state(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore a saved policy."""
        super().set_state(arrays)
        if arrays:
            self._mirror.set_state(arrays)
            if arrays["logits"].shape != arrays["q"].shape:
                raise ValueError("The saved policy is damaged: it does not fit its values.")


class UCRLVTR(PrivateLinOptVI):
    """The non-private algorithm behind Private-LinOpt-VI: the same planning, for exact moments.

    Ayoub, Jia, Szepesvari, Wang, Yang: Model-Based Reinforcement Learning with Value-Targeted Regression, 2020.
    """

    private = False


class OPPO(PrivateLinOptPO):
    """The non-private algorithm behind Private-LinOpt-PO, with rewards learned from users.

    Cai, Yang, Jin, Wang: Provably Efficient Exploration in Policy Optimization, 2020.
    """

    private = False

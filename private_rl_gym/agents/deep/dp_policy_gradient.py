"""Private policy gradients: REINFORCE on noisy sums of clipped gradients, one for each user."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.batched import Batch
from private_rl_gym.agents.deep.networks import GradientAgent, Schedule, tabulated
from private_rl_gym.agents.deep.returns import Returns, largest_return
from private_rl_gym.caller import warn
from private_rl_gym.planning.arrays import positive_integer, real, shown
from private_rl_gym.planning.network import NetworkPolicy
from private_rl_gym.privacy.requests import Objective

__all__ = ["DPPolicyGradient"]

SHARES, SHARES_WITH_CRITIC = (0.95, 0.3, 0.0, 0.0), (0.9, 0.3, 0.0, 0.3)
"""Shares of a report, whose squares sum to at most 1: most is the gradient's, because baselines need less precision."""

CRITIC_NOISE = 0.05
"""Norm of the noise in a step of the value network, for agents that have one: longer steps are cut down to it."""

SCOUTS = 200
"""Users who say how large returns are, at most."""

SMALLEST = 64
"""Users in a batch at least: chance among so many moves the mean of vectors of norm 1 by 0.125, as NOISE does."""

NOISE = 0.12
"""Norm of the noise in the mean gradient of a batch, relative to the clip, that batches are made large enough for."""

BATCHES = 20
"""Batches that a run should have at least, even if they are noisier than that."""

SMALLER: tuple[tuple[int, ...], ...] = ((8,), ())
"""Layers that are advised where noise is large; the last make the policy linear."""

SLOW = 0.05
"""Learning rate below which so few steps as users allow lead nowhere; those of other optimizers are lower still."""

SWAMPED = 0.6
"""Norm of the noise in a mean gradient above which policies were seen to end worse than they began."""


class DPPolicyGradient(GradientAgent):
    """REINFORCE on noisy sums of clipped gradients, one for each user.

    It is for environments that cannot be counted. A first small batch estimates the size of returns. Then every batch
    runs one policy. Its users report the gradient of their return over a baseline, and the numbers that the next
    baseline is computed from. A step follows the mean gradient of the batch, with momentum after the noise.

    Privacy:
        That of the board. Policies, baselines, steps and the sizes of batches are computed from releases and from
        public numbers alone, and each user is in one batch. Proof: docs/proofs/gradients.md.

    Example:
        >>> import gymnasium as gym
        >>> from private_rl_gym.wrappers import JDPBillboard
        >>> board = JDPBillboard(gym.make("CartPole-v1"), epsilon=1.0, delta=1e-6, users=30_000)
        >>> agent = DPPolicyGradient("MlpPolicy", board, seed=0)
        >>> agent.network.size, agent.users_in_batch
        (226, 1115)

    Args:
        policy: ``"MlpPolicy"``.
        env: A boundary, an environment, the id of one, or a ``VecEnv`` of one of these.
        learning_rate: Length of a step where users agree: the mean of their clipped gradients, in units of the clip, is
            multiplied by it, and for actions that are numbers by their standard deviation. A number, or a schedule as
            in Stable-Baselines3.
        batch_size: Users in a batch; by default a number computed from the noise and the number of parameters.
        gamma: Factor on rewards for each further step.
        clip: Norm to which a user's gradient is clipped, where returns are in units of their range.
        momentum: Weight of earlier batches in a step.
        ent_coef: Weight of the policy's entropy in each user's objective, where returns are in units of their range. It
            keeps a policy from giving up actions that it has hardly tried.
        policy_kwargs: ``net_arch`` (by default one hidden layer of 32 units) and ``activation_fn``, as in
            Stable-Baselines3. Noise grows with the square root of the number of parameters.
        verbose, tensorboard_log, seed: As in every agent.
    """

    def __init__(
        self,
        policy: str | None = "MlpPolicy",
        env: gym.Env[Any, Any] | Any = None,
        *,
        learning_rate: Schedule = 3.0,
        batch_size: int | None = None,
        gamma: float = 1.0,
        clip: float = 1.0,
        momentum: float = 0.8,
        ent_coef: float = 0.0,
        policy_kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.learning_rate = tabulated(learning_rate, "learning_rate")
        self.batch_size = None if batch_size is None else positive_integer(batch_size, "batch_size", "users in a batch")
        limits = {"gamma": 1.0, "clip": math.inf, "momentum": 1.0, "ent_coef": math.inf}
        for name, value in zip(limits, (gamma, clip, momentum, ent_coef), strict=True):
            most, may_vanish = limits[name], name in ("momentum", "ent_coef")
            number = real(value, name)
            if not (math.isfinite(number) and 0.0 <= number <= most) or (number == 0.0 and not may_vanish):
                raise ValueError(f"{name} is {shown(value)}: it lies between 0 and {most:g}.")
        self.gamma, self.clip, self.momentum = float(gamma), float(clip), float(momentum)
        self.ent_coef = float(ent_coef)
        self.policy_kwargs = self.plain_kwargs(policy_kwargs)
        self.layers()  # refuses what it does not know
        if env is not None and 0.0 < np.max(self.learning_rate) < SLOW:
            warn(
                f"learning_rate is {np.max(self.learning_rate):g}, and steps are not Adam's here: one is learning_rate "
                "times the mean of clipped gradients, whose norm is 1 at most, so that parameters would hardly move. "
                "Leave it out, or try values around the default of 3."
            )
        super().__init__(policy, env, **options)

    @property
    def shares(self) -> tuple[float, ...]:
        """The shares of a report's parts.

        The parts are the gradient, returns by stage, their range, and the critic's gradient if there is one.
        """
        return SHARES if self.layers().critic is None else SHARES_WITH_CRITIC

    @property
    def users_in_batch(self) -> int:
        """The number of users in a batch.

        It is large enough for the noise in their mean gradient to be small beside the clip.
        """
        least = self._board.least_batch
        if self.batch_size is not None:
            return max(least, self.batch_size)
        wanted = self._quiet_batch
        return max(least, wanted if self.known_users is None else min(wanted, self.known_users // BATCHES))

    @property
    def _quiet_batch(self) -> int:
        """The number of users in whose mean gradient noise is small enough."""
        # n users have noise of variance added + own n, and are to be as many as (added + own n) wide <= n^2.
        one, more = (self._board.expected_noise(users) ** 2 for users in (SMALLEST, 2 * SMALLEST))
        own = max(0.0, more - one) / SMALLEST  # of each user, where users noise their own reports
        wide, added = self.network.size / (NOISE * self.shares[0]) ** 2, max(0.0, one - own * SMALLEST)
        return max(SMALLEST, math.ceil(own * wide / 2.0 + math.sqrt((own * wide / 2.0) ** 2 + added * wide)))

    def _warn_of_noise(self) -> None:
        """Warn if noise is so large that learning may fail.

        The policy may then end worse than it began, or nothing at all is learned.
        """
        size, users = self.users_in_batch, self.known_users
        noise = self._board.expected_noise(size) * math.sqrt(self.network.size) / (self.shares[0] * size)
        if noise <= SWAMPED:
            return
        # Noise grows like the square root of the number of batches, and the sum of gradients at most like their number.
        drowned = users is not None and noise > math.sqrt(max(1.0, users / size))
        worse = "the policy may end worse than it began"
        if drowned:
            worse = f"the noise is louder than all {users:,} users together, so that nothing worth having is learned"
        quiet, kept = self._quiet_batch, self.network
        sizes = {hidden: replace(kept, layers=replace(kept.layers, hidden=hidden)).size for hidden in SMALLER}
        fewer = next((hidden for hidden in SMALLER if sizes[hidden] < kept.size), None)
        smaller = "" if fewer is None else f", or take smaller layers, such as policy_kwargs={{'net_arch': {[*fewer]}}}"
        warn(
            f"Noise in the mean gradient of a batch of {size:,} user{'s' * (size > 1)} has norm "
            f"{noise:{'.2g' if noise < 10.0 else ',.0f'}}, and the gradient 1 at most: {worse}. Let some "
            f"{BATCHES * quiet:,} users come{'' if self.batch_size is None else f' in batches of {quiet:,}'}, or raise "
            f"epsilon{smaller}."
        )

    @property
    def learns_from(self) -> int:
        """The number of users in a batch."""
        return self.users_in_batch

    def batches(self) -> Generator[Batch, Any, Any]:
        """Yield batches until no users are left; take one step after each."""
        network, horizon = self.network, self.horizon
        self._warn_of_noise()
        size, left, least = self.users_in_batch, self.known_users, self._board.least_batch
        if left is not None and least > 1 and left < 3 * least:
            raise ValueError(
                f"{left} users are less than three batches of {least}, the smallest of this boundary: one estimates "
                "the size of returns, one the baseline, and the others train the policy. Let more users come, or "
                "make batch_size= of the boundary smaller, which costs privacy."
            )
        theta, critic = self.first_parameters(), network.critic_start(self.plan_rng)
        zero = np.zeros(horizon)

        # How large are returns? Few users say it, and nothing else.
        scouts = max(least, SCOUTS if left is None else min(SCOUTS, left // BATCHES))
        policy: Any = NetworkPolicy(network, theta, horizon)
        release = yield Batch.of(policy, scouts, Objective(zero, discount=self.gamma, shares=(0.0, 0.0, 1.0, 0.0)))
        reach, returns = largest_return(release), Returns(horizon, self.gamma)

        # The baseline of each stage first: gradients need it.
        shares: tuple[float, ...] = (0.0, 1.0, 0.0, 0.0)
        baseline, velocity = zero, np.zeros(network.size)
        left = None if left is None else left - scouts
        while left is None or left > 0:
            users = size if left is None or left >= 2 * size else left
            policy = NetworkPolicy(network, theta, horizon)
            release = yield Batch.of(policy, users, self.objective(baseline, reach, shares, critic))
            left = None if left is None else left - users
            if shares[0] > 0.0:
                mean = release.gradient / (shares[0] * users)  # the number of users is public; that of steps is not
                velocity = self.momentum * velocity + (1.0 - self.momentum) * mean
                theta = theta + self.pace(self.learning_rate, left) * network.stride(theta) * velocity
            if shares[3] > 0.0:
                noise = release.noise_std["critic"] * math.sqrt(len(critic)) / (shares[3] * users)
                critic = critic + min(1.0, CRITIC_NOISE / max(noise, 1e-12)) * release.critic / (shares[3] * users)
            baseline = returns.add(release, reach, shares[1])
            if abs(returns.mean) > reach / 2.0 + returns.mean_noise:
                reach, critic = 2.0 * reach, network.halved(critic)
            shares = self.shares
        return NetworkPolicy(network, theta, horizon)

    def objective(
        self, baseline: NDArray[np.float64], reach: float, shares: tuple[float, ...], critic: NDArray[np.float64]
    ) -> Objective:
        """Return the objective that users of the next batch differentiate."""
        return Objective(
            baseline, reach=reach, clip=self.clip, discount=self.gamma, shares=shares, entropy=self.ent_coef
        )

"""Gradients: each user differentiates an objective over their episode.

They report a vector of bounded norm. A gradient is computed here, from plain parameters, and not by the learner. It is
clipped as one user's, whatever the length of the episode. The work on one user uses no number of another, so that not
even rounding depends on others.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import read_only
from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.network import LEAST, MOST, Network, NetworkTrajectories, add_slope, forward
from private_rl_gym.privacy.accounting.guarantee import Neighbours
from private_rl_gym.privacy.release import GRID, GradientRelease
from private_rl_gym.privacy.requests import Objective, Request
from private_rl_gym.privacy.statistics.base import Alphabet, Sensitivity, Statistic

__all__ = ["RANGES", "Gradients"]

SLACK = 1.0 + 1e-9
"""A factor on sensitivities for rounding in floating point, which is smaller by far."""

LONGEST = 1.0 + 1e-10
"""The largest squared norm of a user's vector: whatever is longer is not counted."""

RANGES = 2.0 ** np.arange(-16, 32)
"""Lower ends of the classes in which users report the range of their returns; the first class has no lower end."""

TINY = 1e-300
"""The least probability whose logarithm is taken."""

CLASSES = len(RANGES)
LOWEST = -16


class Gradients(Statistic):
    """A user's gradient of an ``Objective``, their returns and their range.

    They are in one vector of norm at most 1. Returns are by stage. Every part is divided by a bound on its norm (a
    gradient, clipped, by the clip) and multiplied by its share.

    Privacy:
        The norm of a user's vector is at most that of the shares, which is 1 or less. Replacing the user moves it by at
        most 2 in L2, and by half a step of the grid in each entry of both vectors for rounding. A number that is not
        finite makes the whole vector zero. Proof: docs/proofs/gradients.md. If a user's data is compared with none in
        their place, it moves by half of that: docs/proofs/zero-out.md.

    Args:
        network: The network whose parameters are learned.
        horizon: Number of stages.

    Example:
        >>> from private_rl_gym.planning.network import Layers
        >>> gradients = Gradients(Network(4, Layers((32,)), choices=(2,)), horizon=500)
        >>> gradients.network.size, round(gradients.sensitivity().l2, 3)
        (226, 2.0)
    """

    name = "gradient"
    title = "clipped gradients"
    request_type = Objective
    randomizers: ClassVar[tuple[str, ...]] = ("direction", "gaussian")
    one_batch = True
    release_type = GradientRelease
    unit = GRID

    def __init__(self, network: Network, horizon: int) -> None:
        self.network, self.horizon, self.choice = network, horizon, network.layers
        self.n_states, self.n_actions = network.inputs, network.outputs
        self.stages = read_only(_segments(horizon))
        self.public = {"stages": self.stages}
        segments = len(self.stages)
        sizes = {"gradient": network.size, "critic": network.critic_size, "rewards": segments, "ends": segments}
        self.shapes = {family: (size,) for family, size in sizes.items()} | {"ranges": (CLASSES,)}
        self.cells = sum(size for (size,) in self.shapes.values())

    def sensitivity(self, load: int = 1, neighbours: Neighbours = Neighbours.REPLACE_ONE) -> Sensitivity:
        """Return how far one user moves the sum, in units of the clip."""
        if neighbours is Neighbours.SAME_START:
            raise ValueError("Gradients hide users from everyone: leave public_start out.")
        users = 1.0 if neighbours is Neighbours.ZERO_OUT else 2.0  # whose vectors are in the difference
        l1 = users * (math.sqrt(self.cells) + self.cells * GRID / 2.0) * SLACK
        l2 = users * (1.0 + math.sqrt(self.cells) * GRID / 2.0) * SLACK
        return Sensitivity(l1, l2, ((1, l1),), (GRID, GRID))

    @property
    def label(self) -> str:
        """Identity of the sums, which differs between networks."""
        return f"gradients of {self.network}"

    def coded(self, alphabet: Alphabet) -> Statistic:
        """Return these vectors, whose norm is at most 1."""
        return self if alphabet is Alphabet.UNIT_VECTOR else super().coded(alphabet)

    def checked(self, request: Request | None) -> Request | None:
        """Return a copy of the objective in plain numbers; raise if users cannot answer it."""
        plain = super().checked(request)
        size = 0 if not isinstance(plain, Objective) or plain.critic is None else len(plain.critic)
        if size not in (0, self.network.critic_size):
            raise ValueError(f"critic has {size} parameters: the value network here has {self.network.critic_size}.")
        return plain

    def in_range(self, users: Any) -> NetworkTrajectories:
        """Return the same episodes.

        Raise ValueError if they are not episodes of this network, or not of its sizes.
        """
        if type(users) is not NetworkTrajectories or users.policy.network != self.network or not self._fits(users):
            raise ValueError("These are no episodes under this network: nothing of them is counted.")
        return users

    def _fits(self, users: NetworkTrajectories) -> bool:
        """Return whether the arrays have the sizes that compiled code reads.

        Choices have to be among the alternatives too.
        """
        network, horizon, count = self.network, self.horizon, len(users.lengths)
        shapes = {
            "inputs": (count, horizon, network.inputs),
            "actions": (count, horizon, network.action_size),
            "rewards": (count, horizon),
            "lengths": (count,),
        }
        if any(getattr(users, name).shape != shape for name, shape in shapes.items()):
            return False
        if not ((users.lengths >= 0) & (users.lengths <= horizon)).all():
            return False
        if not network.choices:
            return True
        walked = np.arange(horizon) < users.lengths[:, None]
        inside = (users.actions >= 0) & (users.actions < network.alternatives)
        return bool(inside[walked].all())

    def _add(
        self,
        users: NetworkTrajectories,
        sums: NDArray[np.int64],
        request: Request | None,
        uniforms: NDArray[np.float64],
    ) -> None:
        """Add the vectors of some users.

        Their norm is bounded here, whatever the episodes hold.
        """
        asked = request if isinstance(request, Objective) else Objective.plain(self.horizon)
        network = self.network
        critic = np.zeros(network.critic_size) if asked.critic is None or not len(asked.critic) else asked.critic
        local = asked.local_steps, asked.local_rate, asked.ratio, asked.entropy
        advantage = asked.discount, asked.mixing, asked.reach, asked.clip
        added = np.zeros_like(sums)
        _add_users(
            users.policy.parameters,
            (network.widths, network.relu, network.alternatives),
            critic,
            network.critic_widths,
            (users.inputs, users.actions, users.rewards, users.lengths),
            asked.baseline,
            advantage,
            local,
            np.array(asked.shares),
            self.stages,
            added,
        )
        sums += added


def _segments(horizon: int) -> NDArray[np.int64]:
    """Return the stages at which segments begin.

    They are 0 and repeated halves of the horizon, finer towards the beginning.
    """
    halves = {horizon >> k for k in range(1, 7)}
    return np.array(sorted({0} | {stage for stage in halves if stage > 0}), dtype=np.int64)


@compiled
def _add_users(
    theta: Any,
    shape: Any,  # widths, whether units are rectified, alternatives of each choice
    critic: Any,
    critic_widths: Any,
    episodes: Any,  # inputs [user, h, i], actions [user, h, k], rewards [user, h], lengths [user]
    baseline: Any,  # [h]
    about: Any,  # discount, mixing, reach, clip
    local: Any,  # steps, rate, ratio, weight of entropy
    shares: Any,
    stages: Any,
    sums: Any,
) -> None:
    """Add the rounded vector of every user."""
    inputs, actions, rewards, lengths = episodes
    widths, relu, _ = shape
    discount, mixing, reach, clip = about
    horizon, segments = rewards.shape[1], len(stages)
    has_critic = len(critic_widths) > 0 and shares[3] > 0.0
    most = max(widths.max(), critic_widths.max() if len(critic_widths) else 0)
    units = np.empty(widths.sum() + critic_widths.sum())
    slopes, spare = np.empty(most), np.empty(most)
    advantages, values, returns = np.empty(horizon), np.empty(horizon + 1), np.empty(horizon + 1)
    before, moved, gradient = np.empty(horizon), np.empty(len(theta)), np.empty(len(theta))
    down = np.empty(len(critic))
    profile = np.empty(segments)
    size, critic_size = len(theta), len(critic)
    vector = np.empty(size + critic_size + 2 * segments + CLASSES)
    for user in range(len(lengths)):
        length = lengths[user]
        if length == 0:
            continue
        vector[:] = 0.0
        # Returns and advantages, in units of the reach.
        returns[length] = values[length] = 0.0
        largest, whole = 0.0, True
        for back in range(length):
            h = length - 1 - back
            returns[h] = rewards[user, h] + discount * returns[h + 1]
            largest = max(largest, abs(returns[h]))
            whole = whole and np.isfinite(returns[h])
            values[h] = baseline[h] / reach
            if has_critic:
                forward(critic, critic_widths, relu, inputs[user, h], units)
                values[h] += units[critic_widths.sum() - 1]
        if not whole:
            continue
        later = 0.0
        for back in range(length):
            h = length - 1 - back
            later = rewards[user, h] / reach + discount * values[h + 1] - values[h] + discount * mixing * later
            advantages[h] = min(max(later, -1.0), 1.0)
        # The policy: the gradient, or some steps up the clipped objective.
        if shares[0] > 0.0:
            moved[:] = 0.0
            for step in range(local[0]):
                gradient[:] = 0.0
                point = theta if step == 0 else theta + moved
                _differentiate(
                    point, shape, inputs[user], actions[user], advantages, length, before, step == 0,
                    local[2], local[3], units, slopes, spare, gradient,
                )  # fmt: skip
                norm = np.sqrt((gradient * gradient).sum())
                pace = 1.0 if local[0] == 1 else local[1] / max(norm, 1e-12)
                for i in range(size):
                    moved[i] += pace * gradient[i]
            _clipped(moved, clip, shares[0], vector[:size])
        # The critic: the gradient of its squared error.
        if has_critic:
            down[:] = 0.0
            for h in range(length):
                forward(critic, critic_widths, relu, inputs[user, h], units)
                last = critic_widths.sum() - 1
                target = min(max((returns[h] - baseline[h]) / reach, -1.0), 1.0)
                slopes[0] = target - units[last]
                add_slope(critic, critic_widths, relu, units, slopes, spare, down)
            _clipped(down, clip, shares[3], vector[size : size + critic_size])
        # Returns by stage: both parts have norm at most one, and share theirs.
        at = size + critic_size
        if shares[1] > 0.0:
            profile[:] = 0.0
            segment = 0
            factor = 1.0
            for h in range(length):
                if segment + 1 < segments and h == stages[segment + 1]:
                    segment += 1
                    factor = 1.0
                profile[segment] += factor * rewards[user, h] / reach
                factor *= discount
            half = shares[1] * np.sqrt(0.5)
            _clipped(profile, 1.0, half, vector[at : at + segments])
            vector[at + segments + segment] = half
        if shares[2] > 0.0:
            level = int(np.floor(np.log2(largest))) if largest > 0.0 else LOWEST
            vector[at + 2 * segments + min(max(level - LOWEST, 0), CLASSES - 1)] = shares[2]
        # Whatever came before: the norm is at most one, or the vector is zero (also where it is not a number).
        if not (vector * vector).sum() <= LONGEST:
            continue
        for i in range(len(vector)):
            sums[i] += int(np.floor(vector[i] / GRID + 0.5))


@compiled
def _clipped(vector: Any, bound: float, share: float, out: Any) -> None:
    """Write the vector after clipping, in units of the bound, times its share."""
    largest = np.abs(vector).max()
    if largest == 0.0:
        out[:] = 0.0
        return
    squares = 0.0
    for i in range(len(vector)):
        out[i] = vector[i] / largest  # squares of tiny numbers would vanish, and those of huge ones be infinite
        squares += out[i] * out[i]
    scale = share * min(1.0 / np.sqrt(squares), largest / bound) if np.isfinite(squares) else np.nan
    for i in range(len(vector)):
        out[i] *= scale


@compiled
def _differentiate(
    theta: Any,
    shape: Any,
    inputs: Any,  # [h, i]
    actions: Any,  # [h, k]
    advantages: Any,  # [h]
    length: Any,
    before: Any,  # [h], log probabilities under the policy that was run
    first: Any,  # whether theta is that policy
    ratio: float,
    entropy: float,
    units: Any,
    slopes: Any,
    spare: Any,
    gradient: Any,
) -> None:
    """Add the gradient of PPO's clipped objective, and of entropy, over one episode.

    At the policy that was run, this is the policy gradient.
    """
    widths, relu, choices = shape
    outputs = widths[-1]
    top, log_stds = widths.sum() - outputs, len(theta) - outputs
    for h in range(length):
        forward(theta, widths, relu, inputs[h], units)
        chance = 0.0
        if len(choices) == 0:
            for k in range(outputs):
                log_std = min(max(theta[log_stds + k], LEAST), MOST)
                chance -= 0.5 * ((actions[h, k] - units[top + k]) / np.exp(log_std)) ** 2 + log_std
        else:
            at = top
            for k in range(len(choices)):
                highest = units[at]
                for j in range(1, choices[k]):
                    highest = max(highest, units[at + j])
                total = 0.0
                for j in range(choices[k]):
                    slopes[at - top + j] = np.exp(units[at + j] - highest)
                    total += slopes[at - top + j]
                for j in range(choices[k]):
                    slopes[at - top + j] /= total
                chance += units[at + int(actions[h, k])] - highest - np.log(total)
                at += choices[k]
        weight = advantages[h]
        if first:
            before[h] = chance
        else:
            moved = np.exp(min(chance - before[h], 50.0))
            outside = moved > 1.0 + ratio if weight > 0.0 else moved < 1.0 - ratio
            weight = 0.0 if outside else weight * moved
        if weight == 0.0 and entropy == 0.0:
            continue
        if len(choices) == 0:
            for k in range(outputs):
                log_std = min(max(theta[log_stds + k], LEAST), MOST)
                off = (actions[h, k] - units[top + k]) / np.exp(log_std)
                slopes[k] = weight * off / np.exp(log_std)
                if log_std == theta[log_stds + k]:
                    gradient[log_stds + k] += weight * (off * off - 1.0) + entropy
        else:
            at = 0
            for k in range(len(choices)):
                spread = 0.0
                if entropy > 0.0:
                    for j in range(choices[k]):
                        spread -= slopes[at + j] * np.log(max(slopes[at + j], TINY))
                for j in range(choices[k]):
                    hit, p = (1.0 if j == int(actions[h, k]) else 0.0), slopes[at + j]
                    slopes[at + j] = weight * (hit - p)
                    if entropy > 0.0:
                        slopes[at + j] -= entropy * p * (np.log(max(p, TINY)) + spread)
                at += choices[k]
        add_slope(theta, widths, relu, units, slopes, spare, gradient)

"""Dynamics: each user says how their own episode would correct a model of the world.

They report a vector of bounded norm. It is computed here, from plain parameters, and not by the learner. It is clipped
as one user's, whatever the length of the episode. The work on one user uses no number of another, so that not even
rounding depends on others.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.network import Network, NetworkTrajectories
from private_rl_gym.planning.polynomials import Basis, Polynomials, write_features
from private_rl_gym.privacy.accounting.guarantee import Neighbours
from private_rl_gym.privacy.release import GRID, DynamicsRelease
from private_rl_gym.privacy.requests import Refinement, Request
from private_rl_gym.privacy.statistics.base import Alphabet, Sensitivity, Statistic
from private_rl_gym.privacy.statistics.gradients import LONGEST, SLACK

__all__ = ["LOWEST", "OCTAVES", "Dynamics"]

OCTAVES = 33
"""Classes of sizes, each twice the one before."""

LOWEST = -16
"""The logarithm of the lower end of the lowest class, whose lower end is 0."""

STEP, LENGTH = 0.9, 0.1
"""Shares of a squared norm: of the step, and of the number that says how long it was."""

REACH = 2.0
"""Octaves from the clip, up and down, at which the logarithm of a length is cut off."""

RIDGE = 0.001
"""What is added to the mean square of each feature when a user solves for their step."""

LEVERAGE = 2.0
"""The largest squared norm of a step's features, in multiples of their number."""

RESIDUAL = 4.0
"""The largest residual of a target, in its unit: one contact would else decide a user's step."""

SPREAD = 2.0
"""Distance from zero, in scales, at which numbers of a state are cut off in their mean."""


class Dynamics(Statistic):
    """A user's correction of a model of changes and rewards.

    The last step of an episode is left out, because the state after it may not be observed. Votes on scales count
    sqrt(2) times as much as a vector of norm 1 would allow: two users differ in two entries of a vote.

    Privacy:
        Two users' vectors are 2 apart in L2 at most, whatever they are asked, and half a step of the grid in each entry
        of both vectors for rounding. A number that is not finite makes the whole vector zero. Proof:
        docs/proofs/dynamics.md.

    Args:
        network: A network with the sizes of observations and actions; users may run any with these sizes.
        horizon: Number of stages.
        degree: The largest degree of a product of features.

    Example:
        >>> from private_rl_gym.planning.network import Layers
        >>> dynamics = Dynamics(Network(4, Layers(), choices=(2,)), horizon=500, degree=1)
        >>> dynamics.basis.size, dynamics.cells, round(dynamics.sensitivity().l2, 3)
        (6, 297, 2.0)
    """

    name = "dynamics"
    title = "corrections of a model"
    request_type = Refinement
    randomizers: ClassVar[tuple[str, ...]] = ("direction", "gaussian")
    one_batch = True
    release_type = DynamicsRelease
    unit = GRID

    def __init__(self, network: Network, horizon: int, degree: int, *, in_ball: bool = False) -> None:
        self.network, self.horizon, self.degree, self.in_ball = network, horizon, degree, in_ball
        self.choice = Polynomials(degree)
        self.basis = Basis(network.inputs, network.choices, network.continuous, degree)
        self.n_states, self.n_actions = network.inputs, network.outputs
        self.targets = network.inputs + 1
        votes = (2 * network.inputs + 1) * OCTAVES
        self.cells = max(self.basis.size * self.targets + 1, votes, 3 * network.inputs)
        self.shapes = {"answers": (self.cells,)}

    @property
    def vote(self) -> float:
        """The squared norm of a user's votes, in multiples of a vector's."""
        return 1.0 if self.in_ball else 2.0

    def sensitivity(self, load: int = 1, neighbours: Neighbours = Neighbours.REPLACE_ONE) -> Sensitivity:
        """Return how far one user moves the sum, in units of the clip."""
        if neighbours is Neighbours.SAME_START:
            raise ValueError("Corrections of a model hide users from everyone: leave public_start out.")
        zero_out = neighbours is Neighbours.ZERO_OUT
        far = math.sqrt(self.vote) if zero_out else 2.0
        rounded = self.cells * GRID / 2.0 * (1.0 if zero_out else 2.0)
        l1 = (far * math.sqrt(self.cells) + rounded) * SLACK
        l2 = (far + rounded / math.sqrt(self.cells)) * SLACK
        return Sensitivity(l1, l2, ((1, l1),), (GRID, GRID))

    @property
    def label(self) -> str:
        """Identity of the sums, which differs between sizes and degrees."""
        sizes = self.network.inputs, self.network.choices, self.network.continuous
        return f"corrections of models for {sizes} to degree {self.degree}"

    def coded(self, alphabet: Alphabet) -> Statistic:
        """Return these vectors; in a ball of norm 1, votes count less."""
        if alphabet is Alphabet.UNIT_VECTOR:
            return Dynamics(self.network, self.horizon, self.degree, in_ball=True)
        return super().coded(alphabet)

    def checked(self, request: Request | None) -> Request | None:
        """Return a copy of the question in plain numbers; raise if users cannot answer it."""
        plain = super().checked(request)
        if isinstance(plain, Refinement) and (len(plain.coefficients) != self.basis.size or plain.degree > self.degree):
            raise ValueError(
                f"The model has {len(plain.coefficients)} features of degree {plain.degree}: users here know "
                f"{self.basis.size}, of degree {self.degree} at most."
            )
        return plain

    def in_range(self, users: Any) -> NetworkTrajectories:
        """Return the same episodes; raise ValueError if they are not of these sizes."""
        if type(users) is not NetworkTrajectories or not self._fits(users):
            raise ValueError("These are no episodes of these sizes: nothing of them is counted.")
        return users

    def _fits(self, users: NetworkTrajectories) -> bool:
        """Return whether the arrays have the sizes that compiled code reads."""
        network, horizon, count = self.network, self.horizon, len(users.lengths)
        shapes = {
            "inputs": (count, horizon, network.inputs),
            "actions": (count, horizon, network.action_size),
            "rewards": (count, horizon),
            "lengths": (count,),
        }
        if any(getattr(users, name).shape != shape for name, shape in shapes.items()):
            return False
        return bool(((users.lengths >= 0) & (users.lengths <= horizon)).all())

    def plain(self) -> Refinement:
        """Return the question for users who were sent none."""
        p, features = self.network.inputs, self.basis.size
        zeros, ones = np.zeros(p), np.ones(p)
        return Refinement("scales", zeros, ones, np.ones(p + 1), np.zeros((features, p + 1)))

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
        asked = request if isinstance(request, Refinement) else self.plain()
        added = np.zeros_like(sums)
        episodes = users.inputs, users.actions, users.rewards, users.lengths
        if asked.about == "step":
            size = self.basis.size_up_to(asked.degree)
            frame = asked.centre, asked.scale, asked.units
            _add_steps(episodes, frame, self.basis.arrays, asked.coefficients, size, asked.clip, added)
        elif asked.about == "centre":
            _add_centres(episodes, asked.scale, asked.clip, added)
        else:
            _add_scales(episodes, math.sqrt(self.vote / (2 * self.network.inputs + 1)), added)
        sums += added

    # What answers mean ------------------------------------------------------------------------------------------------

    def votes(self, release: DynamicsRelease) -> NDArray[np.float64]:
        """Return the votes for each size, ``[2 i + 1, class]``."""
        count = 2 * self.network.inputs + 1
        return release.answers[: count * OCTAVES].reshape(count, OCTAVES) / math.sqrt(self.vote / count)

    def means(self, release: DynamicsRelease, clip: float) -> tuple[NDArray[np.float64], float]:
        """Return mean, start and half its square, ``[3, i]``, and the noise in them."""
        p, users = self.network.inputs, max(1, release.users)
        unit = clip / users
        return release.answers[: 3 * p].reshape(3, p) * unit, release.noise_std["answers"] * unit

    def step(self, release: DynamicsRelease, request: Refinement) -> tuple[NDArray[np.float64], float]:
        """Return the mean step, ``[feature, target]``, and the noise in an entry."""
        size = self.basis.size_up_to(request.degree)
        unit = request.clip / (math.sqrt(STEP) * max(1, release.users))
        step = np.zeros((self.basis.size, self.targets))
        step[:size] = release.answers[: size * self.targets].reshape(size, self.targets) * unit
        return step, release.noise_std["answers"] * unit

    def length(self, release: DynamicsRelease, request: Refinement) -> float:
        """Return the typical length of steps: the clip times a mean factor."""
        told = release.answers[self.basis.size * self.targets] / (math.sqrt(LENGTH) * max(1, release.users))
        return float(request.clip * 2.0 ** (REACH * min(max(told, -1.0), 1.0)))


@compiled
def _octave(square: float) -> int:
    """Return the class of the root of this number, or -1 if it is none."""
    if not np.isfinite(square):
        return -1
    if square <= 0.0:
        return 0
    return min(max(int(np.floor(0.5 * np.log2(square))) - LOWEST, 0), OCTAVES - 1)


@compiled
def _add_scales(episodes: Any, weight: float, sums: Any) -> None:
    """Add every user's votes for the sizes of their numbers, of changes, and of rewards."""
    inputs, _, rewards, lengths = episodes
    p = inputs.shape[2]
    vote = int(np.floor(weight / GRID + 0.5))
    classes = np.empty(2 * p + 1, dtype=np.int64)
    for user in range(len(lengths)):
        steps = lengths[user] - 1
        if steps < 1:
            continue
        for i in range(p):
            size, change = 0.0, 0.0
            for h in range(steps):
                x, y = inputs[user, h, i], inputs[user, h + 1, i]
                size += x * x
                change += (y - x) * (y - x)
            classes[i], classes[p + i] = _octave(size / steps), _octave(change / steps)
        paid = 0.0
        for h in range(steps):
            paid += rewards[user, h] * rewards[user, h]
        classes[2 * p] = _octave(paid / steps)
        if classes.min() < 0:
            continue
        for i in range(2 * p + 1):
            sums[i * OCTAVES + classes[i]] += vote


@compiled
def _add_centres(episodes: Any, scale: Any, clip: float, sums: Any) -> None:
    """Add every user's means, with their start and half its square."""
    inputs, _, _, lengths = episodes
    p = inputs.shape[2]
    vector = np.empty(3 * p)
    for user in range(len(lengths)):
        steps = lengths[user] - 1
        if steps < 1:
            continue
        for i in range(p):
            total = 0.0
            for h in range(steps):
                total += min(max(inputs[user, h, i] / scale[i], -SPREAD), SPREAD)
            first = min(max(inputs[user, 0, i] / scale[i], -SPREAD), SPREAD)
            vector[i], vector[p + i], vector[2 * p + i] = total / steps, first, 0.5 * first * first
        _add_clipped(vector, clip, 1.0, sums)


@compiled
def _add_clipped(vector: Any, clip: float, share: float, sums: Any) -> float:
    """Add a clipped vector times its share; return its norm, or -1 for none.

    Whatever came before: the norm of what is added is at most the share, or nothing is added.
    """
    largest, squares = 0.0, 0.0
    for i in range(len(vector)):
        if not np.isfinite(vector[i]):
            return -1.0
        largest = max(largest, abs(vector[i]))
    if largest > 0.0:
        for i in range(len(vector)):
            squares += (vector[i] / largest) ** 2  # squares of huge numbers would be infinite
    norm = largest * np.sqrt(squares)
    if not np.isfinite(norm):
        return -1.0
    scale = share / max(norm, clip)
    total = 0.0
    for i in range(len(vector)):
        vector[i] *= scale
        total += vector[i] * vector[i]
    if not total <= share * share * LONGEST:
        return -1.0
    for i in range(len(vector)):
        sums[i] += int(np.floor(vector[i] / GRID + 0.5))
    return float(norm)


@compiled
def _add_steps(
    episodes: Any,
    frame: Any,  # centre, scale, units
    basis: Any,
    coefficients: Any,  # [feature, target]
    size: int,  # features that are corrected
    clip: float,
    sums: Any,
) -> None:
    """Add every user's step, and how long it is."""
    inputs, actions, rewards, lengths = episodes
    centre, scale, units = frame
    p, features, targets = inputs.shape[2], coefficients.shape[0], coefficients.shape[1]
    table, row = np.empty(basis[1].shape), np.empty(features)
    state, residual = np.empty(p), np.empty(targets)
    square, slope = np.empty((size, size)), np.empty((size, targets))
    flat = np.empty(size * targets)
    for user in range(len(lengths)):
        steps = lengths[user] - 1
        if steps < 1:
            continue
        square[:], slope[:] = 0.0, 0.0
        whole = True
        for h in range(steps):
            for i in range(p):
                state[i] = (inputs[user, h, i] - centre[i]) / scale[i]
                whole = whole and np.isfinite(state[i])
            for k in range(actions.shape[2]):
                whole = whole and np.isfinite(actions[user, h, k])
            if not whole:
                break
            write_features(basis, state, actions[user, h], size, table, row)
            norm = 0.0
            for a in range(size):
                norm += row[a] * row[a]
            trust = min(1.0, LEVERAGE * size / max(norm, 1e-12)) / steps
            for j in range(targets):
                residual[j] = 0.0
                if units[j] > 0.0:
                    told = rewards[user, h] if j == p else inputs[user, h + 1, j] - inputs[user, h, j]
                    guess = 0.0
                    for a in range(size):
                        guess += row[a] * coefficients[a, j]
                    residual[j] = min(max(told / units[j] - guess, -RESIDUAL), RESIDUAL)
                    whole = whole and np.isfinite(residual[j])
            for a in range(size):
                value = trust * row[a]
                for b in range(a + 1):
                    square[a, b] += value * row[b]
                for j in range(targets):
                    slope[a, j] += value * residual[j]
        if not whole:
            continue
        for a in range(size):
            square[a, a] += RIDGE
        if not _solve(square, slope):
            continue
        for a in range(size):
            for j in range(targets):
                flat[a * targets + j] = slope[a, j]
        norm = _add_clipped(flat, clip, np.sqrt(STEP), sums)
        if norm < 0.0:
            continue
        told = -1.0
        if norm > 0.0:
            told = min(max((np.log2(norm) - np.log2(clip)) / REACH, -1.0), 1.0)
        sums[features * targets] += int(np.floor(np.sqrt(LENGTH) * told / GRID + 0.5))


@compiled
def _solve(square: Any, slope: Any) -> bool:
    """Solve ``square x = slope`` in place, for a positive definite matrix.

    Its lower triangle is given.

    Returns False if it is not one.
    """
    size, targets = slope.shape
    for a in range(size):
        for b in range(a + 1):
            total = square[a, b]
            for c in range(b):
                total -= square[a, c] * square[b, c]
            if a == b:
                if not total > 0.0:
                    return False
                square[a, a] = np.sqrt(total)
            else:
                square[a, b] = total / square[b, b]
    for j in range(targets):
        for a in range(size):
            total = slope[a, j]
            for c in range(a):
                total -= square[a, c] * slope[c, j]
            slope[a, j] = total / square[a, a]
        for back in range(size):
            a = size - 1 - back
            total = slope[a, j]
            for c in range(a + 1, size):
                total -= square[c, a] * slope[c, j]
            slope[a, j] = total / square[a, a]
    return True

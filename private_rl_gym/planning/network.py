"""Policies that are neural networks: dense layers with a gradient in closed form.

The functions over plain arrays are compiled.

* ``Layers`` - the hidden layers that a learner chooses
* ``Network`` - layers between the numbers of an observation and those of an action
* ``NetworkPolicy`` - a network with its parameters, as a policy
* ``NetworkTrajectories`` - the episodes of users under such a policy

A network is a few numbers and a vector of parameters. So a policy is handed over a trust boundary as plain data, and
what is computed from users' data there is this package's own code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import among, as_array, positive_integer, read_only, shown
from private_rl_gym.planning.compiled import compiled

__all__ = [
    "LEAST",
    "MOST",
    "ExploringPolicy",
    "Layers",
    "Network",
    "NetworkPolicy",
    "NetworkTrajectories",
    "add_slope",
    "forward",
]

ACTIVATIONS = ("tanh", "relu")

LEAST, MOST = -2.0, 2.0
"""Bounds on the logarithm of an action's standard deviation."""


@dataclass(frozen=True, slots=True)
class Layers:
    """The hidden layers of a policy network.

    Noise grows with the square root of the number of parameters.

    Attributes:
        hidden: Units of each hidden layer; an empty tuple makes the policy linear.
        activation: ``"tanh"`` or ``"relu"``.
        critic: Units of each hidden layer of a value network beside the policy; None for none.
    """

    hidden: tuple[int, ...] = (32,)
    activation: str = "tanh"
    critic: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("hidden", "critic"):
            widths = getattr(self, name)
            if widths is not None:
                if not isinstance(widths, list | tuple):
                    raise TypeError(f"{name} is {shown(widths)}: give the units of each hidden layer, such as (32,).")
                plain = tuple(positive_integer(width, f"{name} layers", "units") for width in widths)
                object.__setattr__(self, name, plain)
        if not among(self.activation, ACTIVATIONS):
            raise ValueError(f"activation is {shown(self.activation)}: choose one of {', '.join(ACTIVATIONS)}.")


@dataclass(frozen=True, slots=True)
class Network:
    """Dense layers from an observation to the numbers that an action is drawn with.

    Attributes:
        inputs: Numbers in an observation.
        layers: Its hidden layers.
        choices: For actions that are choices: the number of alternatives of each. Choices are independent.
        continuous: For actions that are numbers: how many. Each is Gaussian around an output of the network, with a
            standard deviation that is a parameter.
        squashed: Whether numbers of an action are hyperbolic tangents of what is drawn.
    """

    inputs: int
    layers: Layers
    choices: tuple[int, ...] = ()
    continuous: int = 0
    squashed: bool = False

    @property
    def outputs(self) -> int:
        """Numbers that an action is drawn with, besides standard deviations."""
        return sum(self.choices) + self.continuous

    @property
    def action_size(self) -> int:
        """Numbers in an action."""
        return len(self.choices) + self.continuous

    @property
    def widths(self) -> NDArray[np.int64]:
        """Units of each layer, inputs and outputs included."""
        return np.array([self.inputs, *self.layers.hidden, self.outputs], dtype=np.int64)

    @property
    def critic_widths(self) -> NDArray[np.int64]:
        """Units of each layer of the value network; empty if there is none."""
        critic = self.layers.critic
        return np.array([] if critic is None else [self.inputs, *critic, 1], dtype=np.int64)

    @property
    def size(self) -> int:
        """Number of parameters of the policy."""
        return _parameters(self.widths) + self.continuous

    @property
    def critic_size(self) -> int:
        """Number of parameters of the value network."""
        return _parameters(self.critic_widths)

    @property
    def relu(self) -> bool:
        """Whether units are rectified; otherwise they are hyperbolic tangents."""
        return self.layers.activation == "relu"

    @property
    def alternatives(self) -> NDArray[np.int64]:
        """The number of alternatives of each choice."""
        return np.array(self.choices, dtype=np.int64)

    def start(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw initial parameters: orthogonal layers as in Stable-Baselines3, with outputs near zero."""
        return np.concatenate([_orthogonal(self.widths, 0.01, rng), np.zeros(self.continuous)])

    def critic_start(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw initial parameters of the value network, whose values are zero."""
        return _orthogonal(self.critic_widths, 0.0, rng)

    def halved(self, critic: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the parameters of a value network whose values are half as large."""
        if len(critic) == 0:
            return critic
        widths = self.critic_widths
        halved = critic.copy()
        halved[-int((widths[-2] + 1) * widths[-1]) :] /= 2.0
        return halved

    def stride(self, parameters: NDArray[np.float64]) -> float:
        """Return the length of a step, relative to the length at the start.

        It is the geometric mean of the standard deviations of actions, within limits. For choices it is 1. With
        a constant length, one step could reverse a policy whose actions hardly vary any more.
        """
        if not self.continuous:
            return 1.0
        return math.exp(np.clip(parameters[-self.continuous :], LEAST, MOST).mean())

    def draws(self, rng: np.random.Generator, users: int, horizon: int) -> NDArray[np.float64]:
        """Draw random numbers ``[user, h, i]`` for actions.

        Their number does not depend on the users' actions.
        """
        shape = users, horizon, self.action_size
        return rng.standard_normal(shape) if self.continuous else rng.random(shape)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NetworkPolicy:
    """A network with its parameters.

    It does not depend on the stage, unless observations show it.

    Attributes:
        network: The network.
        parameters: ``[parameter]``: for each layer its weights ``[from, to]`` and its biases; then the logarithms of
            standard deviations.
        horizon: Number of steps in an episode.
    """

    network: Network
    parameters: NDArray[np.float64]
    horizon: int

    def __post_init__(self) -> None:
        parameters = read_only(as_array(self.parameters, "parameters"))
        if parameters.shape != (self.network.size,):
            raise ValueError(
                f"parameters have shape {parameters.shape}: this network has {self.network.size} of them, in one row."
            )
        object.__setattr__(self, "parameters", parameters)

    @property
    def deterministic(self) -> bool:
        """False, because actions are drawn."""
        return False

    @property
    def n_states(self) -> int:
        """Numbers in an observation."""
        return self.network.inputs

    @property
    def n_actions(self) -> int:
        """Numbers that an action is drawn with."""
        return self.network.outputs

    def act(self, inputs: NDArray[np.float64], draws: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Return actions ``[row, i]`` for rows of numbers; without draws, the likeliest ones."""
        rows = np.ascontiguousarray(inputs, dtype=np.float64)
        actions = np.zeros((len(rows), self.network.action_size))
        self.choose(rows, draws, np.ones(len(rows), dtype=np.bool_), actions)
        return actions

    def choose(
        self,
        inputs: NDArray[np.float64],
        draws: NDArray[np.float64] | None,
        here: NDArray[np.bool_],
        actions: NDArray[np.float64],
    ) -> None:
        """Write the actions of the rows that are ``here``; without draws, the likeliest ones."""
        network = self.network
        given = np.zeros(actions.shape) if draws is None else np.ascontiguousarray(draws)
        about = network.widths, network.relu, network.alternatives
        _choose(self.parameters, *about, inputs, given, draws is None, here, actions)
        if network.squashed:
            actions[here] = np.tanh(actions[here])

    def draws(self, rng: np.random.Generator, users: int) -> NDArray[np.float64]:
        """Draw random numbers ``[user, h, i]`` for the actions of users.

        Their number does not depend on the users' actions.
        """
        return self.network.draws(rng, users, self.horizon)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.network.size} parameters, H={self.horizon})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExploringPolicy(NetworkPolicy):
    """A network whose users take some actions at random.

    A random action is kept for a while, because a new one at each step would hardly move what is heavy. How long is up
    to the user: means are spread evenly over the logarithms from 1 step to ``longest``.

    Attributes:
        share: Probability that an action is a random one.
        longest: The largest mean number of steps for which a user keeps a random action.
    """

    share: float = 1.0
    longest: float = 1.0

    def draws(self, rng: np.random.Generator, users: int) -> NDArray[np.float64]:
        """Draw numbers for the network, random actions, and whether these are taken.

        The shape is ``[user, h, 2 i + 1]``.
        """
        network, size = self.network, (users, self.horizon)
        own = network.draws(rng, users, self.horizon)
        fresh = rng.random((*size, network.action_size))
        actions = 2.0 * fresh - 1.0 if network.continuous else np.floor(fresh * network.alternatives)
        kept = 1.0 - self.longest ** -rng.random((users, 1))
        begun = np.where(rng.random(size) < kept, 0, np.arange(self.horizon))
        since = np.maximum.accumulate(begun, axis=1)
        held = np.take_along_axis(actions, since[:, :, None], axis=1)
        taken = rng.random(size) < self.share
        return np.concatenate([own, held, taken[:, :, None]], axis=2)

    def choose(
        self,
        inputs: NDArray[np.float64],
        draws: NDArray[np.float64] | None,
        here: NDArray[np.bool_],
        actions: NDArray[np.float64],
    ) -> None:
        """Write the actions of the rows that are ``here``; without draws, the network's likeliest ones."""
        if draws is None:
            NetworkPolicy.choose(self, inputs, None, here, actions)
            return
        size, taken = self.network.action_size, draws[:, -1] > 0.0
        NetworkPolicy.choose(self, inputs, draws[:, :size], here & ~taken, actions)
        actions[here & taken] = draws[here & taken, size : 2 * size]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NetworkTrajectories:
    """The episodes of some users under a network.

    This is raw user data, which must stay inside a trust boundary. Entries after the end of an episode have no
    meaning. An episode that was refused has no steps.
    """

    inputs: NDArray[np.float64]  # [user, h, i]
    actions: NDArray[np.float64]  # [user, h, i]
    rewards: NDArray[np.float64]  # [user, h]
    lengths: NDArray[np.int64]  # [user]
    policy: NetworkPolicy

    def __len__(self) -> int:
        return len(self.lengths)

    def part(self, start: int, stop: int) -> NetworkTrajectories:
        """Return some of the users, without copying."""
        some = slice(start, stop)
        return NetworkTrajectories(
            self.inputs[some], self.actions[some], self.rewards[some], self.lengths[some], self.policy
        )

    def __repr__(self) -> str:  # the sizes alone: raw data does not belong in logs
        return f"NetworkTrajectories({len(self)} users, H={self.rewards.shape[1]})"


def _parameters(widths: NDArray[np.int64]) -> int:
    return sum((before + 1) * after for before, after in pairwise(widths.tolist()))  # whole numbers of any size


def _orthogonal(widths: NDArray[np.int64], last: float, rng: np.random.Generator) -> NDArray[np.float64]:
    parts: list[NDArray[np.float64]] = [np.zeros(0)]
    for layer, (rows, columns) in enumerate(pairwise(widths)):
        gain = last if layer == len(widths) - 2 else math.sqrt(2.0)
        tall = rng.standard_normal((max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(tall)
        q = q * np.sign(np.diag(r))
        parts += [gain * (q if rows >= columns else q.T).ravel(), np.zeros(columns)]
    return np.concatenate(parts)


@compiled
def _tanh(x: Any) -> Any:
    """Return the hyperbolic tangent to a relative error below 4e-7.

    It is a quotient, which compilers can put in vector registers.
    """
    x = min(max(x, -7.9), 7.9)
    y = x * x
    p = -2.76076847742355e-16
    p = p * y + 2.00018790482477e-13
    p = p * y - 8.60467152213735e-11
    p = p * y + 5.12229709037114e-08
    p = p * y + 1.48572235717979e-05
    p = p * y + 6.37261928875436e-04
    p = p * y + 4.89352455891786e-03
    q = 1.19825839466702e-06
    q = q * y + 1.18534705686654e-04
    q = q * y + 2.26843463243900e-03
    q = q * y + 4.89352518554385e-03
    return x * p / q


NARROW = 4
"""Layers of at most so many units are computed unit by unit, wider ones input by input: both faster than the other."""


@compiled
def forward(theta: Any, widths: Any, relu: Any, inputs: Any, units: Any) -> None:
    """Write the units of all layers, layer after layer, for one row of inputs."""
    at, start = 0, 0
    for i in range(widths[0]):
        units[i] = inputs[i]
    for layer in range(len(widths) - 1):  # slices begin at 0, which lets compilers use vector registers
        rows, columns = widths[layer], widths[layer + 1]
        below, out = units[start : start + rows], units[start + rows : start + rows + columns]
        block = theta[at : at + (rows + 1) * columns]
        bias = block[rows * columns :]
        if columns <= NARROW:
            for j in range(columns):
                total = bias[j]
                for i in range(rows):
                    total += below[i] * block[i * columns + j]
                out[j] = total
        else:
            for j in range(columns):
                out[j] = bias[j]
            for i in range(rows):
                value = below[i]
                if value != 0.0:
                    weights = block[i * columns : (i + 1) * columns]
                    for j in range(columns):
                        out[j] += value * weights[j]
        if layer < len(widths) - 2:
            if relu:
                for j in range(columns):
                    out[j] = max(out[j], 0.0)
            else:
                for j in range(columns):
                    out[j] = _tanh(out[j])
        at += (rows + 1) * columns
        start += rows


@compiled
def add_slope(theta: Any, widths: Any, relu: Any, units: Any, slopes: Any, spare: Any, gradient: Any) -> None:
    """Add the gradient in the parameters for one row.

    The arguments are the units of the row and the slopes of its outputs. The slopes are overwritten.
    """
    at, start = 0, 0
    for layer in range(len(widths) - 1):
        at += (widths[layer] + 1) * widths[layer + 1]
        start += widths[layer]
    for back in range(len(widths) - 1):
        layer = len(widths) - 2 - back
        rows, columns = widths[layer], widths[layer + 1]
        at -= (rows + 1) * columns
        start -= rows
        below = units[start : start + rows]
        block, weights = gradient[at : at + (rows + 1) * columns], theta[at : at + rows * columns]
        bias = block[rows * columns :]
        for j in range(columns):
            bias[j] += slopes[j]
        if columns <= NARROW:
            for j in range(columns):
                slope = slopes[j]
                for i in range(rows):
                    block[i * columns + j] += below[i] * slope
        else:
            for i in range(rows):
                value = below[i]
                if value != 0.0:
                    row = block[i * columns : (i + 1) * columns]
                    for j in range(columns):
                        row[j] += value * slopes[j]
        if layer > 0:
            for i in range(rows):
                slope = 0.0
                for j in range(columns):
                    slope += weights[i * columns + j] * slopes[j]
                spare[i] = slope
            for i in range(rows):
                value = below[i]
                slopes[i] = (spare[i] if value > 0.0 else 0.0) if relu else spare[i] * (1.0 - value * value)


@compiled
def _choose(
    theta: Any,
    widths: Any,
    relu: Any,
    choices: Any,
    inputs: Any,  # [row, i]
    draws: Any,  # [row, k]
    likeliest: Any,
    here: Any,  # [row], whether an action is wanted
    actions: Any,  # [row, k], overwritten
) -> None:
    """Draw an action for every row."""
    units = np.empty(widths.sum())
    outputs = widths[-1]
    first, log_stds = len(units) - outputs, len(theta) - outputs
    for row in range(len(inputs)):
        if not here[row]:
            continue
        forward(theta, widths, relu, inputs[row], units)
        if len(choices) == 0:
            for k in range(outputs):
                std = 0.0 if likeliest else np.exp(min(max(theta[log_stds + k], LEAST), MOST))
                actions[row, k] = units[first + k] + std * draws[row, k]
            continue
        at = first
        for k in range(len(choices)):
            count = choices[k]
            top, best = units[at], 0
            for j in range(1, count):
                if units[at + j] > top:
                    top, best = units[at + j], j
            if not likeliest:
                total = 0.0
                for j in range(count):
                    total += np.exp(units[at + j] - top)
                level, reached, best = draws[row, k] * total, 0.0, count - 1
                for j in range(count - 1):
                    reached += np.exp(units[at + j] - top)
                    if level < reached:
                        best = j
                        break
            actions[row, k] = best
            at += count

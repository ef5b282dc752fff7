"""Any learner of Stable-Baselines3, trained in a model of the world that is learned privately."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.batched import Batch
from private_rl_gym.agents.deep.networks import NetworkAgent
from private_rl_gym.agents.world.fit import WorldModel, centred, corrected, rescaled, scaled
from private_rl_gym.agents.world.simulation import Rules, Simulation
from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.planning.network import ExploringPolicy, Layers, Network, NetworkPolicy
from private_rl_gym.planning.polynomials import Basis, Polynomials
from private_rl_gym.privacy.accounting.conversion import gaussian_mu
from private_rl_gym.privacy.requests import Refinement
from private_rl_gym.privacy.statistics.dynamics import Dynamics
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.sources import ActionCode, ObservationCode

__all__ = ["LEARNERS", "WorldModelAgent"]

PHASES = (0.4, 0.3, 0.3)
"""Shares of users who act at random, and of those of whom half follow the first and the second policy."""

ROUNDS = (6, 3, 3)
"""Corrections of the model in each phase."""

RANDOM = 0.3
"""Share of random actions of users who follow a policy."""

HELD = 32.0
"""The largest mean number of steps for which a random action is kept."""

QUIET = 14.0
"""Users who vote on sizes, in deviations of the noise of a vote."""

EXACT = 20.0
"""Users who report means, in deviations of noise times the root of the number of means of one kind."""

EVIDENCE = 1.5
"""Users for each coefficient of a model, in deviations of the noise in an entry, below which a degree is too high."""

HIGHEST = 3
"""The highest degree that is chosen by itself."""

WIDER = 4.0
"""Factor on the clip when policies change, because corrections are larger then."""

LEAST_CLIP = 0.1
"""The least clip after that, in multiples of the root of the number of targets."""

MANY = 20_000
"""Users that a run is planned for if any number of them may come."""

STEPS = {"PPO": 200_000, "A2C": 400_000}
"""Steps of a learner in the last model; of those that replay steps, ``REPLAYED``."""

REPLAYED = 60_000

RIVALS = 4
"""Learners that begin in the last model, of which the best goes on: some find no way to a distant goal."""

BEFORE = 1 / 3
"""Share of these steps in the models of earlier phases, whose policies only have to lead users to new states."""

LEARNERS = ("PPO", "A2C", "SAC", "TD3", "DDPG", "DQN")
"""The learners, by name."""

SQUASHED = ("SAC", "TD3", "DDPG")
"""Learners whose actions are hyperbolic tangents."""


class WorldModelAgent(NetworkAgent):
    """Any learner of Stable-Baselines3, trained in a privately learned model of the world.

    Users report the step by which their own episode would correct the model. Steps become shorter as the model becomes
    better; they are clipped to their typical length, and noise is proportional to it. So a world that is nearly
    deterministic is learned nearly exactly. The learner is trained in the released model for as long as it takes, at no
    cost in privacy. Users of the first phase act at random. In two more phases half of the users follow the learner's
    policy, and it is trained again.

    Privacy:
        That of the board. Models, policies, clips and the sizes of batches are computed from releases and from public
        numbers alone, and each user is in one batch. Proof: docs/proofs/dynamics.md.

    Example:
        >>> import gymnasium as gym
        >>> from private_rl_gym.wrappers import JDPBillboard
        >>> board = JDPBillboard(gym.make("Pendulum-v1"), epsilon=1.0, delta=1e-6, users=3000)
        >>> agent = WorldModelAgent("MlpPolicy", board, learner="SAC", seed=0)
        >>> agent.board.statistic.degree, agent.network.layers.hidden
        (3, (64, 64))

    Args:
        policy: ``"MlpPolicy"``.
        env: A boundary, an environment, the id of one, or a ``VecEnv`` of one of these.
        learner: The learner: ``"PPO"``, ``"A2C"``, ``"SAC"``, ``"TD3"``, ``"DDPG"`` or ``"DQN"``, or such a class.
        degree: Degree of the model's polynomials; by default the highest one up to 3 for which there are enough users.
        timesteps: Number of steps of the learner in the last model, and a third of it in earlier ones. By default
            200,000 for PPO, 400,000 for A2C, and 60,000 for learners that replay steps.
        reward: The rewards as a function of observations, actions and next observations, if it is publicly known. By
            default rewards are learned. Arguments have a row for each of several users.
        terminated: Whether episodes end in observations, as a function of them, if this is publicly known. By default
            episodes of the model go on to the horizon.
        learner_kwargs: Arguments of the learner, in place of the usual ones.
        verbose, tensorboard_log, seed: As in every agent.
    """

    statistic = "dynamics"
    saved_arguments = ("learner", "degree", "timesteps", "learner_kwargs")
    functions = ("reward", "terminated")
    keeps_policy = False

    def __init__(
        self,
        policy: str | None = "MlpPolicy",
        env: gym.Env[Any, Any] | Any = None,
        *,
        learner: str | type = "PPO",
        degree: int | None = None,
        timesteps: int | None = None,
        reward: Callable[..., Any] | None = None,
        terminated: Callable[..., Any] | None = None,
        learner_kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.learner = learner if isinstance(learner, str) else learner.__name__
        self._kind = kind_of(self.learner)
        self.degree = None if degree is None else positive_integer(degree, "degree", "factors of a feature")
        self.timesteps = None if timesteps is None else positive_integer(timesteps, "timesteps", "steps in the model")
        self.reward, self.terminated = reward, terminated
        self.learner_kwargs = dict(learner_kwargs or {})
        self.model: WorldModel | None = None
        """The newest model."""
        self._kept: list[NDArray[np.float64]] = []  # parameters of learners that were trained, from a file
        self._trained: list[NDArray[np.float64]] = []
        self._returns: list[float] = []
        super().__init__(policy, env, **options)

    # What users run and report ----------------------------------------------------------------------------------------

    @property
    def network(self) -> Network:
        """The network that acts."""
        acts, inputs = self._codes()
        arch = self.learner_kwargs.get("policy_kwargs", {}).get("net_arch", [64, 64])
        hidden = arch.get("pi", []) if isinstance(arch, Mapping) else arch
        layers = Layers(tuple(hidden), "tanh" if self.learner in ("PPO", "A2C") else "relu")
        return Network(inputs.size, layers, acts.choices, acts.continuous, self.learner in SQUASHED)

    def needs(self, board: Boundary) -> Polynomials:
        """Return the polynomials of the model, whose degree noise and users allow."""
        if self.degree is not None:
            return Polynomials(self.degree)
        stated, users = board.ledger.outside, board.users or MANY
        inputs = ObservationCode.of(board.observation_space).size
        acts = ActionCode.of(board.action_space)
        deviation = (
            0.0 if not math.isfinite(stated.epsilon) else 2.0 / gaussian_mu(stated.epsilon, stated.delta or 1e-6)
        )
        best = 1
        for degree in range(2, HIGHEST + 1):
            size = Basis(inputs, acts.choices, acts.continuous, degree).size
            if users >= EVIDENCE * deviation * size * (inputs + 1):
                best = degree
        return Polynomials(best)

    def check(self, board: Boundary) -> None:
        """Raise ValueError if the learner takes no actions of this space."""
        acts = ActionCode.of(board.action_space)
        if self.learner == "DQN" and len(acts.choices) != 1:
            raise ValueError(f"DQN takes actions of a Discrete space, and these are of {board.action_space}: take PPO.")
        if self.learner in SQUASHED and not acts.continuous:
            raise ValueError(f"{self.learner} takes actions that are numbers, and these are of {board.action_space}.")

    @property
    def learns_from(self) -> int:
        """The number of users in the first batch."""
        return self._sizes_of_batches()[0]

    def _dynamics(self) -> Dynamics:
        found: Any = self._board.statistic
        return found  # type: ignore[no-any-return] # checked when the board was bound

    def _sizes_of_batches(self) -> tuple[int, int]:
        """Return the numbers of users who vote on sizes, and who report means."""
        users = PHASES[0] * (self.known_users or MANY)
        dynamics, board = self._dynamics(), self._board
        votes = math.sqrt(dynamics.vote / (2 * dynamics.network.inputs + 1))
        scales = self._enough(lambda n: QUIET * board.expected_noise(n) / votes, 0.05 * users, 0.15 * users)
        root = math.sqrt(dynamics.network.inputs)
        centres = self._enough(lambda n: EXACT * root * board.expected_noise(n), 0.05 * users, 0.1 * users)
        return scales, centres

    @staticmethod
    def _enough(wanted: Callable[[int], float], least: float, most: float) -> int:
        """Return the fewest users, between two numbers, who are enough."""
        users = max(1.0, least)
        for _ in range(50):
            users = max(1.0, min(most, max(least, wanted(max(1, int(users))))))
        return math.ceil(users)

    # The algorithm ----------------------------------------------------------------------------------------------------

    def batches(self) -> Generator[Batch, Any, Any]:
        """Yield batches until no users are left; train the learner after each phase."""
        dynamics, rng, total = self._dynamics(), self.plan_rng, self.known_users or MANY
        acting, horizon = self.network, self.horizon
        self._trained, self._returns = [], []
        model = self.model = WorldModel.unknown(dynamics.basis, *self._limits())
        policy = NetworkPolicy(acting, acting.start(rng), horizon)
        wander: Any = ExploringPolicy(acting, policy.parameters, horizon, 1.0, HELD)
        first, middle = self._sizes_of_batches()
        ends = np.round(np.cumsum(PHASES) * total).astype(int)

        release = yield Batch.of(wander, first, model.question("scales"))
        model = scaled(model, dynamics, release, rewards=self.reward is None)
        asked = model.question("centre")
        release = yield Batch.of(wander, middle, asked)
        model = self.model = centred(model, dynamics, release)
        used = first + middle
        for phase, rounds in enumerate(ROUNDS):
            left = int(ends[phase]) - used
            runs = [(wander, 1.0)]
            if phase:
                follow = ExploringPolicy(acting, policy.parameters, horizon, RANDOM, HELD)
                runs = [(wander, 0.5), (follow, 0.5)]
                votes = min(first, int(0.3 * left))
                release = yield self._asking(runs, votes, model.question("scales"), policy)
                model = rescaled(model, dynamics, release, rng)
                targets = math.sqrt(float((model.units > 0.0).sum()))
                model = replace(model, clip=max(WIDER * model.clip, LEAST_CLIP * targets))
                left -= votes
                used += votes
            for turn in range(rounds):
                users = left * (turn + 1) // rounds - left * turn // rounds
                # The lowest degrees come first, because they have the least noise.
                degree = dynamics.degree if phase else min(dynamics.degree, 1 + turn * dynamics.degree // rounds)
                asked = model.question("step", degree)
                release = yield self._asking(runs, users, asked, policy)
                model = self.model = corrected(model, dynamics, release, asked)
                used += users
            policy = NetworkPolicy(acting, self._train(model, phase), horizon)
        return policy

    @staticmethod
    def _asking(runs: list[tuple[Any, float]], users: int, asked: Refinement, deploy: Any) -> Batch:
        users = max(users, len(runs))
        shares = [int(users * share) for _, share in runs]
        shares[-1] += users - sum(shares)
        return Batch(tuple((run, share) for (run, _), share in zip(runs, shares, strict=True)), asked, deploy)

    def _train(self, model: WorldModel, phase: int) -> NDArray[np.float64]:
        """Return the parameters of a learner that is trained in the model."""
        from private_rl_gym.agents.world.learners import GAMMA, parameters_of, trained

        seed, place = int(self.plan_rng.integers(2**31)), len(self._trained)
        if place < len(self._kept):  # a loaded agent was trained already
            self._trained.append(self._kept[place])
            return self._kept[place]
        last = phase == len(PHASES) - 1
        steps = self.timesteps or STEPS.get(self.learner, REPLAYED)
        steps = steps if last else math.ceil(BEFORE * steps)
        options = {**self.learner_kwargs}
        options["policy_kwargs"] = {"net_arch": [64, 64], **options.get("policy_kwargs", {})}
        gamma = options.get("gamma", GAMMA)
        unit = (1.0 - gamma) * (3.0 / model.units[-1] if model.units[-1] > 0.0 else 1.0)
        rules = self._rules()

        def make(count: int, number: int) -> Simulation:
            return Simulation(model, rules, count, unit, np.random.default_rng(number))

        rivals = RIVALS if last and self.learner in STEPS else 1
        learner, value = trained(self._kind, make, steps, seed, options, rivals)
        found = parameters_of(learner, model)
        self._trained.append(found)
        self._returns.append(value)
        return found

    def _serve(self, users: int) -> int:
        """Let users run the policy, and return their number.

        Once all have come, train for the last time, and not at the first prediction.
        """
        served = super()._serve(users)
        if self._board.users_left == 0:
            self.users_to_come()
        return served

    def _limits(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the limits of states: public bounds, or those of what networks see."""
        return self._codes()[1].limits()

    def _codes(self) -> tuple[ActionCode, ObservationCode]:
        if self.observation_space is None or self.action_space is None:
            raise ValueError(f"{type(self).__name__} has no environment: give it one with set_env.")
        return ActionCode.of(self.action_space), ObservationCode.of(self.observation_space)

    def _rules(self) -> Rules:
        """Return what is publicly known, in the numbers of the model."""
        acts, code = self._codes()
        ended, paid = self.terminated, self.reward

        def over(states: NDArray[np.float64]) -> Any:
            assert ended is not None  # noqa: S101 - it was given
            return ended(code.observations(states))

        def worth(states: NDArray[np.float64], actions: NDArray[Any], after: NDArray[np.float64]) -> Any:
            assert paid is not None  # noqa: S101 - it was given
            return paid(code.observations(states), acts.actions(actions), code.observations(after))

        return Rules(self.horizon, None if ended is None else over, None if paid is None else worth)

    # Files and logs ---------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all received releases, and the parameters of learners that were trained on them."""
        arrays = super().state()
        return arrays | {f"trained.{place}": array for place, array in enumerate(self._trained)} if arrays else arrays

    def set_state(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Run the generator again, with the same learners."""
        kept = {name: array for name, array in arrays.items() if name.startswith("trained.")}
        self._kept = [np.asarray(kept[f"trained.{place}"], dtype=np.float64) for place in range(len(kept))]
        super().set_state({name: array for name, array in arrays.items() if name not in kept})
        self._kept = []

    def progress(self) -> dict[str, float]:
        """Return the clip, the number of kept coefficients, and the return in the model."""
        model = self.model
        if model is None:
            return {}
        numbers = {"model/clip": model.clip, "model/kept": float((model.coefficients != 0.0).sum())}
        return numbers | ({"model/return": self._returns[-1]} if self._returns else {})


def kind_of(name: str) -> type:
    """Return the class of a learner of Stable-Baselines3."""
    import stable_baselines3

    if name not in LEARNERS:
        raise ValueError(f"learner is {name!r}: choose one of {', '.join(LEARNERS)}.")
    found: type = getattr(stable_baselines3, name)
    return found

"""A loop of users, releases and training in private models, for any learner.

* ``ModelLoop`` - the loop
* ``Learner`` - the methods that a learner must have: ``learn`` and ``predict``
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike
from stable_baselines3.common.vec_env import DummyVecEnv

from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.planning.policy import Policy
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.private_model import Belief

__all__ = ["Learner", "ModelLoop"]


def _same(model: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Return the model itself, for vector environments, which are made of functions."""
    return model


class Learner(Protocol):
    """A learner in a Gymnasium environment, such as an algorithm of Stable-Baselines3."""

    def learn(self, total_timesteps: int) -> Any:
        """Take this number of steps in the environment, and learn."""

    def predict(self, observation: Any, *, deterministic: bool) -> tuple[Any, Any]:
        """Return the actions for a batch of observations."""


class ModelLoop:
    """A loop that trains a learner on private models, and serves users with it.

    Users run the learner's policy. The learner is trained on a model that is made of their release. A learner that
    needs a million steps would need a million steps of users. Here it takes them in a model, at no cost.
    Users come in rounds, and after each round the learner trains on the newest release. The first users act at random.
    In the following rounds the model is optimistic, so that the learner explores states about which little is known.
    The last training is on a pessimistic model, in which noise earns nothing.

    Privacy:
        The guarantee of the board. The learner sees releases only, and whatever is done with them is post-processing.
        Proof: docs/proofs/post-processing.md.

    Args:
        learner: The learner of an environment, such as ``lambda env: PPO("MlpPolicy", env)``. If it has ``set_env``,
            as Stable-Baselines3's learners do, it goes on in the next model; else a new one is made for it.
        board: The boundary around the users' environment, whose releases make models: of counts, with states that the
            learner observes, and with the stage if the best action depends on it (``observe_time=True``).
        timesteps: Number of steps in the model in each round.
        last: Number of steps of the last training, which then is that of a new learner. Training on earlier models may
            keep a learner from the best policy in the last model. By default, one learner continues.
        rounds: Number of rounds of users.
        belief: The model between rounds: ``"optimistic"``, ``"sampled"`` or ``"mean"``.
        start: Where users start, if that is publicly known. Counts that are pooled over stages do not show it.
        n_envs: Number of models that the learner steps through at once, as Stable-Baselines3's vector environment; of
            sampled ones, each is a draw of its own.
        seed: Of the loop's own draws: actions of the first users, sampled models, and outcomes in models.

    Example:
        >>> import gymnasium as gym
        >>> import private_rl_gym
        >>> from stable_baselines3 import DQN
        >>> from private_rl_gym.agents import ModelLoop
        >>> from private_rl_gym.wrappers import JDPBillboard
        >>> river = gym.make("PrivateRL/RiverSwim-v0", horizon=6, n_states=3, observe_time=True)
        >>> board = JDPBillboard(river, 2.0, 1e-6, users=1000, schedule=100)
        >>> loop = ModelLoop(lambda env: DQN("MlpPolicy", env, seed=0), board, timesteps=200, rounds=2, seed=0)
        >>> loop.learn(1000).policy.deterministic
        True
    """

    def __init__(
        self,
        learner: Callable[[Any], Learner],
        board: Boundary,
        *,
        timesteps: int,
        last: int | None = None,
        rounds: int = 5,
        belief: Belief = "optimistic",
        start: ArrayLike | None = None,
        n_envs: int = 1,
        seed: int | None = None,
    ) -> None:
        self.board, self._make, self._belief, self._start = board, learner, belief, start
        self.timesteps = positive_integer(timesteps, "timesteps", "steps in a model")
        self.last = None if last is None else positive_integer(last, "last", "steps of the last training")
        self.rounds = positive_integer(rounds, "rounds", "rounds of users")
        self.n_envs = positive_integer(n_envs, "n_envs", "models at once")
        self.rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(b"model loop")))
        board.bind("tabular")
        board.private_model(belief=belief, start=start, rng=self.rng)  # what cannot be is refused before users come
        horizon, n_states, n_actions = board.sizes
        self.policy = Policy(np.full((horizon, n_states, n_actions), 1.0 / n_actions), n_actions)
        """The policy that users run next; after ``learn``, the result of learning."""
        self.learner: Learner | None = None
        """The learner, once there was a release."""

    def learn(self, users: int) -> ModelLoop:
        """Serve users in rounds of equal size, and train after each round."""
        positive_integer(users, "users", "users")
        for part in range(self.rounds):
            count = users * (part + 1) // self.rounds - users * part // self.rounds
            if not count:
                continue
            self.board.serve(self.policy, count, rng=None if self.policy.deterministic else self.rng)
            if self.board.closes_early:
                self.board.publish()
            if part < self.rounds - 1:
                self._train(self._belief, self.timesteps)
                continue
            if self.last is not None:
                self.learner = None  # a new one is made
            self._train("pessimistic", self.last or self.timesteps)
        return self

    def _train(self, belief: Belief, timesteps: int) -> None:
        """Train on the newest release, and take the learner's policy over."""
        env = self._models(belief)
        if self.learner is not None and hasattr(self.learner, "set_env"):
            self.learner.set_env(env)
        else:
            self.learner = self._make(env)
        self.learner.learn(timesteps)
        self.policy = self._table(env)

    def _models(self, belief: Belief) -> Any:
        """Return the newest release as an environment, or as several ones side by side."""
        models = []
        for _ in range(self.n_envs):
            models.append(self.board.private_model(belief=belief, start=self._start, rng=self.rng))
            models[-1].reset(seed=int(self.rng.integers(2**31)))
        return models[0] if self.n_envs == 1 else DummyVecEnv([partial(_same, model) for model in models])

    def _table(self, env: Any) -> Policy:
        """Return the learner's best actions, as a table by stage and state."""
        assert self.learner is not None  # noqa: S101 - it has just been trained
        horizon, n_states, n_actions = self.board.sizes
        states = np.arange(n_states)
        if isinstance(env.observation_space, gym.spaces.MultiDiscrete):
            stages = np.repeat(np.arange(horizon), n_states)
            observations = np.stack([stages, np.tile(states, horizon)], axis=1)
            actions, _ = self.learner.predict(observations, deterministic=True)
            return Policy(np.asarray(actions, dtype=np.int64).reshape(horizon, n_states), n_actions)
        actions, _ = self.learner.predict(states, deterministic=True)
        return Policy(np.tile(np.asarray(actions, dtype=np.int64), (horizon, 1)), n_actions)

"""The base class of all learners: Stable-Baselines3's methods around one function, ``plan(release) -> Policy``."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import takewhile
from typing import IO, TYPE_CHECKING, Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.agents import storage
from private_rl_gym.agents.acting import Actor
from private_rl_gym.agents.inputs import single_env, users_of
from private_rl_gym.agents.logs import Logs
from private_rl_gym.agents.watching import tell, watching
from private_rl_gym.caller import warn
from private_rl_gym.planning.policy import Policy
from private_rl_gym.privacy.asks import Ask
from private_rl_gym.privacy.guarantee import Guarantee
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.entrance import BudgetExhausted
from private_rl_gym.wrappers.open_billboard import OpenBillboard
from private_rl_gym.wrappers.population import layers

if TYPE_CHECKING:
    from stable_baselines3.common.logger import Logger
    from stable_baselines3.common.type_aliases import MaybeCallback
    from stable_baselines3.common.vec_env import VecEnv
    from typing_extensions import Self

__all__ = ["Agent"]

OTHERS = "parameters were set: whoever they were learned from is not covered"
"""The note in a guarantee about parameters that came without one."""


class Agent(ABC):
    """A function from releases to policies, with Stable-Baselines3's ``learn`` and ``predict``.

    An agent meets users through ``board.serve`` and learns from ``board.release``; it never touches a trajectory.
    Around an environment without a boundary it puts an ``OpenBillboard``, and says that the run is not private.
    Everything that it logs, saves and prints comes from releases alone.

    Args:
        policy: ``"TabularPolicy"``; the argument exists because Stable-Baselines3's agents have it.
        env: A boundary, an environment, the id of one, or a ``VecEnv`` of one of these.
        beta: Probability with which confidence bounds may fail.
        verbose: 0 for no output, 1 for logs.
        tensorboard_log: A folder for TensorBoard, which has to be installed.
        seed: Seed of the agent's own randomness. The environment and the noise have their own.
    """

    policies: ClassVar[tuple[str, ...]] = ("TabularPolicy",)
    """Names of the policies that the agent can learn; the first is the usual one."""

    saved_arguments: ClassVar[tuple[str, ...]] = ("beta",)
    """Names of the constructor's arguments that are saved, to rebuild the agent when it is loaded."""

    keeps_policy: ClassVar[bool] = True
    """Whether a loaded agent keeps the policy that it learned until another board publishes something new."""

    private: ClassVar[bool] = True
    """Whether the agent is made for users behind a boundary; it then warns if there is none."""

    parameter_name: ClassVar[str] = "table"
    """The name of the numbers of its policies in ``get_parameters``."""

    statistic: str = "tabular"
    """The sums that its boundary has to publish, by the name that boundaries know them by."""

    plans_batches: ClassVar[bool] = False
    """Whether the agent plans its own batches, and so needs a boundary that publishes every batch by itself."""

    takes_large_batches: ClassVar[bool] = False
    """Whether it makes none of its batches smaller than a board's ``least_batch``."""

    secret_randomness: ClassVar[bool] = False
    """Whether the agent's own randomness protects users. If so, it is saved only if a seed was given anyway."""

    def __init__(
        self,
        policy: str | None = "TabularPolicy",
        env: gym.Env[Any, Any] | VecEnv | str | None = None,
        *,
        beta: float = 0.05,
        verbose: int = 0,
        tensorboard_log: str | None = None,
        seed: int | None = None,
    ) -> None:
        if policy is not None and policy not in self.policies:
            kind = type(self).__name__
            if isinstance(policy, str) and policy not in gym.registry:
                raise ValueError(f"policy is {policy!r}: {kind} has one kind, {self.policies[0]!r}.")
            raise ValueError(f"The policy comes first, then the environment: {kind}({self.policies[0]!r}, env).")
        if not 0.0 < beta < 1.0:
            raise ValueError(f"beta is {beta}: a probability of failure lies in (0, 1).")
        self.beta = beta
        self.verbose = verbose
        self.tensorboard_log = tensorboard_log
        self.seed = seed
        self.num_timesteps = 0
        self.observation_space: gym.Space[Any] | None = None
        self.action_space: gym.Space[Any] | None = None
        self.board: Boundary | None = None
        self._policy: Policy | None = None
        self._ask: Ask | None = None  # the request that belongs to it
        self._planned: int | None = None  # the version that the policy was planned from
        self._identity: str | None = None  # of the board that was met last; a restored one has another
        self._loaded: tuple[str | None, dict[str, NDArray[Any]], int | None, Policy | None] | None = None
        self._earlier: Guarantee | None = None  # to the users whom a loaded policy was learned from
        self._in_episode = False  # callbacks are called for a user's steps: her policy is the current one
        self._vec_env: VecEnv | None = None
        self._actor, self._logs = Actor(self), Logs(self)
        self.set_random_seed(seed)
        if env is not None:
            self.set_env(env)

    def __repr__(self) -> str:
        if not hasattr(self, "board"):
            return f"<{type(self).__name__}>"  # half built
        arguments = [f"{name}={getattr(self, name)!r}" for name in self.saved_arguments]
        return f"<{type(self).__name__}: {', '.join(arguments)}; {self.num_timesteps} steps; env: {self.board}>"

    # Methods for agents to define ------------------------------------------------------------------------------------

    @abstractmethod
    def plan(self, release: Any) -> Policy:
        """The policy for the next users, given the newest release."""

    def request(self) -> Ask | None:
        """The request to users who run the plan, besides their actions; None for most agents."""
        return None

    def state(self) -> dict[str, NDArray[Any]]:
        """Arrays that planning carries from release to release, to be saved."""
        return {}

    def set_state(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays of ``state``."""
        del arrays

    def prepare(self) -> None:  # noqa: B027 - most agents have nothing to prepare
        """Prepare for a new environment. Called when it is set, as soon as its sizes are known."""

    # The environment -------------------------------------------------------------------------------------------------

    def set_env(self, env: gym.Env[Any, Any] | VecEnv | str, force_reset: bool = True) -> None:
        """Learn from another environment. If there was one before, sizes must be equal.

        ``force_reset`` is an argument of Stable-Baselines3 without effect here: a boundary always starts with a new
        user.
        """
        del force_reset
        single = single_env(env)
        board = next((layer for layer in layers(single) if isinstance(layer, Boundary)), None)
        bare = board is None
        if board is None:
            if getattr(single, "ledger", None) is not None:
                raise ValueError(
                    f"{type(single).__name__} publishes no sums, which {type(self).__name__} learns from: it is for "
                    "learners that act on observations. Use LDPUserSide."
                )
            board = OpenBillboard(single)
            notice = "This run is not private: there is no trust boundary around the environment."
            if self.private:
                more = "Put one around it, such as JDPBillboard; or an OpenBillboard, if exact sums are meant."
                warnings.warn(f"{notice} {more}", stacklevel=2)
            elif self.verbose:
                print(notice)
        outside = [type(layer).__name__ for layer in takewhile(lambda layer: layer is not board, layers(single))]
        if outside and not bare:
            warnings.warn(
                f"{', '.join(outside)} outside the {type(board).__name__} will see nothing and change nothing: agents "
                "meet users through the boundary. Put wrappers inside it, around the environment.",
                stacklevel=2,
            )
        self._settle(board)
        if self.board is not None and self.board.sizes != board.sizes:
            raise ValueError(f"The environment has sizes {board.sizes}, and this agent learned on {self.board.sizes}.")
        known = self._policy
        if known is not None and (known.horizon, known.n_states, known.n_actions) != board.sizes:
            sizes = (known.horizon, known.n_states, known.n_actions)
            raise ValueError(f"The environment has sizes {board.sizes}, and this agent learned on {sizes}.")
        same, loaded = board is self.board, self.board is None and known is not None
        self.board, self._vec_env = board, None if isinstance(env, str | gym.Env) else env
        self.observation_space, self.action_space = single.observation_space, single.action_space
        if not same:
            self._meet(board, acts_on=loaded)

    def _settle(self, board: Boundary) -> None:
        """Let the boundary publish what this agent needs, if that was left open. Raises ValueError if it does not."""
        board.settle(self.statistic, apart=self.plans_batches)
        kind = type(board).__name__
        if board.statistic.name != self.statistic:
            raise ValueError(
                f"{type(self).__name__} learns from {self.statistic} sums, and the {kind} publishes "
                f"{board.statistic.name} ones: build the boundary without statistic=, or with "
                f"statistic={self.statistic!r} (under a shuffler, the LDPUserSide inside)."
            )
        if self.plans_batches and not (board.closes_early or (self.takes_large_batches and board.least_batch > 1)):
            raise ValueError(
                f"{type(self).__name__} closes batches itself, which would cost this {kind} its promise: use "
                "SDPShuffler, LDPUserSide, or JDPBillboard with counting='batched'."
            )

    def _meet(self, board: Boundary, *, acts_on: bool) -> None:
        """Learn from the sums of this board from now on. If a loaded agent learned from them before, it continues.

        With ``acts_on``, an agent with ``keeps_policy`` keeps its policy until there is a new release.
        """
        self._identity = board.identity
        self.prepare()
        if self._loaded is not None and self._loaded[0] == board.identity:
            _, arrays, self._planned, self._policy = self._loaded
            self.set_state(arrays)
            self._loaded = None
            self._learns_here()
        elif acts_on and self.keeps_policy:
            self._planned = board.release.version
        else:
            self._policy = self._planned = None
            self._earlier = self._earlier if acts_on else None

    def get_env(self) -> VecEnv | None:
        """The environment as a ``VecEnv`` for Stable-Baselines3's callbacks: the given one, if one was given."""
        if self.board is None:
            return None
        if self._vec_env is None:
            from stable_baselines3.common.vec_env import DummyVecEnv

            board = self.board
            self._vec_env = DummyVecEnv([lambda: board])
        return self._vec_env

    def get_vec_normalize_env(self) -> None:
        """None: counts are never normalized."""
        return

    def set_random_seed(self, seed: int | None = None) -> None:
        """Restart the agent's own random streams: one for learning, and one for ``predict``."""
        self.rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(b"agent")))
        self._predict_rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(b"predict")))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee to users against anyone who sees what this agent learned: the strongest in the ledger.

        A loaded agent states the guarantee that it was saved with, until it learns from another board.
        """
        return self.promise if self._earlier is None else self._earlier

    @property
    def promise(self) -> Guarantee:
        """The guarantee to the users of the board."""
        return self._board.ledger.outside

    def streams(self) -> dict[str, np.random.Generator]:
        """The agent's own generators, to be saved where ``secret_randomness`` allows it."""
        return {"rng": self.rng}

    @property
    def horizon(self) -> int:
        """Number of steps in a user's episode."""
        return self._board.sizes[0]

    @property
    def _board(self) -> Boundary:
        if self.board is None:
            raise ValueError(f"{type(self).__name__} has no environment: give it one with set_env.")
        return self.board

    @property
    def ask(self) -> Ask | None:
        """The request to users who run the current policy, besides their actions."""
        return self._ask

    # Learning --------------------------------------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """The policy of the next user; while callbacks are called for a user's steps, the policy of that user."""
        if self._policy is not None and (self._in_episode or self.board is None):
            return self._policy
        self._plan_if_new()
        assert self._policy is not None  # noqa: S101 - planned just now
        return self._policy

    def best_policy(self) -> Policy:
        """The policy that ``predict`` plays: the current one, unless the agent explores with other policies.

        A loaded agent has no board, so use ``self.policy`` and what ``state`` saves, and nothing else.
        """
        return self.policy

    def _plan_if_new(self) -> None:
        if self._board.identity != self._identity:  # the board has continued from a saved state
            self._meet(self._board, acts_on=True)
        release = self._board.release
        if self._policy is None or release.version != self._planned:
            self._policy, self._planned = self.plan(release.with_certain_rows()), release.version
            self._learns_here()
            self._send(self.request())

    def _learns_here(self) -> None:
        """From now on the policy is learned from this board's users, not from those of a file."""
        self._earlier = None

    def _send(self, ask: Ask | None) -> None:
        """Send this request to users, also to those who come by ``reset``."""
        self._ask = ask
        if ask is not None:
            self._board.ask = ask

    def users_to_come(self) -> int:
        """The number of users who run the current policy before it may change."""
        return self._board.users_to_release

    def meet(self, users: int) -> int:
        """Let at most this many users run the current policy, until it may change. Returns the number who did."""
        self._plan_if_new()  # users_to_come is known only after that
        group = self._serve(min(users, self.users_to_come()))
        self.num_timesteps += group * self.horizon
        return group

    def _serve(self, users: int) -> int:
        self._plan_if_new()
        assert self._policy is not None  # noqa: S101 - planned just now
        self._loaded = None  # from now on the agent knows more than was saved
        return self._board.serve(self._policy, users, self._ask, rng=self.rng)

    @property
    def learns_from(self) -> int:
        """The fewest users from whom anything is learned."""
        return 1

    def _warn_of_few(self, total_timesteps: int, users: int) -> None:
        """Say so, before the first users, if a number of steps seems to be one of users, or is too small to learn."""
        horizon, board, size = self.horizon, self._board, self.learns_from
        left = board.users_left
        mistaken = total_timesteps == left and horizon > 1
        if self.num_timesteps or left != board.users or (left is not None and users >= left):
            return
        if not (mistaken or users < size):
            return
        several = "1 user" if users == 1 else f"{users:,} users"
        little = f" A batch has {size:,} users, and nothing is learned from fewer." if users < size else ""
        everyone = (
            f"learn({size} * {horizon}) for a batch" if left is None else f"learn({left} * {horizon}) for all of them"
        )
        coming = "" if left is None else f" of the {left:,} who may come"
        warn(
            f"{total_timesteps:,} steps are {several}{coming}, because each counts as {horizon} steps.{little} "
            f"Write {everyone}."
        )

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int | None = 100,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Serve users for a number of steps, with a new plan after every release.

        Args:
            total_timesteps: Number of steps. Every user takes H; the last one finishes her episode in any case.
            callback: Stable-Baselines3's callbacks, called at every step.
            log_interval: Number of releases between two logs; None for no logs.
            tb_log_name: Name of the run in TensorBoard; by default the agent's.
            reset_num_timesteps: Whether to count steps from 0; else the count continues.
            progress_bar: Whether to show progress, with the time that is left.
        """
        board, horizon = self._board, self.horizon
        users = users_of(total_timesteps, horizon)
        if reset_num_timesteps:  # else somebody counts
            self._warn_of_few(total_timesteps, users)
            self.num_timesteps = 0
        if board.users_left is not None and users > board.users_left:
            raise BudgetExhausted(
                f"{total_timesteps} steps are {users} users of {horizon} steps, and the boundary has room for "
                f"{board.users_left} more of {board.users}. Nothing was released. Learn from fewer steps, or build a "
                "boundary for all who will ever come: one that has begun takes no more."
            )
        name = tb_log_name or type(self).__name__
        self._logs.begin(name, reset=reset_num_timesteps)
        if callback is not None or progress_bar:
            _ = self.logger  # callbacks expect one
        total = self.num_timesteps + users * horizon
        watch = watching(self, callback, total, name, progress_bar=progress_bar)
        served, logged, written = 0, board.release.version, False
        while served < users:
            if watch is None:
                served += self.meet(users - served)
            else:
                served += self._serve(1)
                if not tell(self, watch):
                    break
            if self._logs.wanted and log_interval and board.release.version - logged >= log_interval:
                logged, written = board.release.version, True
                self._logs.write()
        if self._logs.wanted and log_interval and (board.release.version > logged or not written):
            self._logs.write()
        if watch is not None:
            watch.on_rollout_end()
            watch.on_training_end()
        return self

    def learn_offline(self, *, stationary: bool = False) -> Self:
        """Plan from the users who have come, with pessimism in place of optimism, because nobody comes to correct it.

        This is post-processing of the newest release: the ledger of the boundary is that of the policy.

        Args:
            stationary: Whether all stages have the same transitions and rewards, so that their sums may be pooled.
        """
        release = self._board.release
        if not release.users:
            raise ValueError("Nobody has come yet: bring users in with board.ingest(...), or serve them, and publish.")
        self._loaded, self._identity = None, self._board.identity
        self._policy = self.plan_offline(release.with_certain_rows(), stationary=stationary)
        self._planned = release.version
        self._learns_here()
        return self

    def plan_offline(self, release: Any, *, stationary: bool) -> Policy:
        """The policy for users whom nobody will learn from. Raises ValueError for agents that only explore."""
        del release, stationary
        raise ValueError(
            f"{type(self).__name__} learns from users whom it meets, and plans for them with optimism: learn offline "
            "with DPUCBVI or DPAPVI."
        )

    # Logs ------------------------------------------------------------------------------------------------------------

    @property
    def logger(self) -> Logger:
        """Stable-Baselines3's logger."""
        return self._logs.logger

    def set_logger(self, logger: Logger) -> None:
        """Use another logger."""
        self._logs.use(logger)

    def dump_logs(self) -> None:
        """Log now. Stable-Baselines3's LogEveryNTimesteps calls this."""
        self._logs.write()

    def progress(self) -> dict[str, float]:
        """Numbers about the plan, for the logs."""
        return {}

    # Acting ----------------------------------------------------------------------------------------------------------

    def predict(
        self,
        observation: Any,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[np.int64], tuple[NDArray[Any], ...]]:
        """Actions for one observation, or for the observations of several users.

        Policies depend on the stage, which is passed in ``state``, as recurrent policies pass their own. Give each call
        the state that the last one returned, and say in ``episode_start`` where episodes start. Observations that
        contain the stage need no state.
        """
        actions, stages = self._actor.act(observation, state, episode_start, deterministic=deterministic)
        return actions, (stages,)

    # Parameters ------------------------------------------------------------------------------------------------------

    def get_parameters(self) -> dict[str, dict[str, NDArray[Any]]]:
        """The numbers of the policy that ``predict`` plays: copies of arrays, by name."""
        return {"policy": {self.parameter_name: np.array(self.policy_array(self.best_policy()))}}

    def set_parameters(
        self,
        load_path_or_dict: str | os.PathLike[str] | IO[bytes] | Mapping[str, Mapping[str, ArrayLike]],
        exact_match: bool = True,
        device: Any = "auto",
    ) -> None:
        """Play the policy with these numbers.

        An agent that plans from releases plays it until the next release, as a loaded agent does; one that plans its
        own batches takes it only without an environment, unless it learns by steps from a first policy.

        Args:
            load_path_or_dict: The dictionary of ``get_parameters``, or a file that an agent of this kind was saved to.
            exact_match: Whether a name that is missing is an error; if not, a dictionary may be empty.
            device: An argument of Stable-Baselines3 without effect here.
        """
        del device
        given = load_path_or_dict
        earlier = None
        if not isinstance(given, Mapping):
            saved = type(self).load(given)
            earlier, given = saved._earlier, saved.get_parameters()
        found = {(group, name): array for group, arrays in given.items() for name, array in arrays.items()}
        known = ("policy", self.parameter_name)
        if set(found) - {known} or (exact_match and not found):
            raise ValueError(
                f"The parameters of a {type(self).__name__} are {{'policy': {{{self.parameter_name!r}: array}}}}, as "
                f"get_parameters returns them, and these are {sorted(found)}."
            )
        if not found:
            return
        if self.board is None and self._policy is None:
            raise ValueError(f"{type(self).__name__} has no environment yet: give it one with set_env, or load a file.")
        sizes, numbers = self._sizes(), np.array(found[known])
        try:
            policy = self.policy_of(numbers, sizes)
        except (TypeError, ValueError) as error:
            raise ValueError(f"These parameters are of another problem than (H, S, A) = {sizes}: {error}") from None
        own = np.array_equal(numbers, self.policy_array(self.best_policy()))
        self.begin_from(policy)
        if earlier is None and self._earlier is None and self.board is not None and not own:
            earlier = replace(self.promise, notes=(*self.promise.notes, OTHERS))
        self._earlier = earlier or self._earlier

    def begin_from(self, policy: Policy) -> None:
        """Play this policy until there is a new release."""
        if self.board is not None and type(self).request is not Agent.request:
            raise ValueError(
                f"{type(self).__name__} asks users about its own plan, so that they cannot run another policy: serve "
                "it with board.serve(policy, users), or load the agent without an environment."
            )
        self._policy, self._planned = policy, None if self.board is None else self.board.release.version

    def _sizes(self) -> tuple[int, int, int]:
        """Horizon, number of states and number of actions of the board, or of the policy of a loaded agent."""
        if self.board is not None:
            return self.board.sizes
        assert self._policy is not None  # noqa: S101 - one or the other
        return self._policy.horizon, self._policy.n_states, self._policy.n_actions

    # What storage asks -----------------------------------------------------------------------------------------------

    def policy_array(self, policy: Any) -> NDArray[Any]:
        """The numbers of a policy, to be saved."""
        return np.asarray(policy.table)

    def policy_of(self, array: NDArray[Any], sizes: tuple[int, int, int]) -> Any:
        """The policy with these numbers, for these sizes."""
        horizon, n_states, n_actions = sizes
        return Policy.of(array, horizon=horizon, n_states=n_states, n_actions=n_actions)

    def spaces(self) -> list[Any] | None:
        """The spaces of observations and actions, in plain numbers; None if they cannot be saved."""
        return storage.discrete_spaces(self.observation_space, self.action_space)

    def set_spaces(self, plain: list[Any]) -> None:
        """Restore the spaces of an agent without an environment."""
        self.observation_space, self.action_space = storage.spaces_of(plain)

    # Files -----------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str] | IO[bytes], exclude: Iterable[str] | None = None) -> None:
        """Save the agent as a zip of JSON and arrays: what it learned from releases, and nothing of the boundary.

        Args:
            path: A file name, which gets the ending ``.zip`` if it has none, or an open binary file.
            exclude: Names of the constructor's arguments to leave out; they take their defaults when it is loaded.
        """
        storage.save(self, path, frozenset(exclude or ()))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str] | IO[bytes],
        env: gym.Env[Any, Any] | VecEnv | str | None = None,
        device: Any = "auto",
        custom_objects: dict[str, Any] | None = None,
        print_system_info: bool = False,
        force_reset: bool = True,
        **options: Any,
    ) -> Self:
        """Load a saved agent, without pickle.

        Args:
            path: The file that it was saved to.
            env: The environment to continue with.
            device: An argument of Stable-Baselines3 without effect here.
            custom_objects: Arguments of the constructor to use in place of the saved ones.
            print_system_info: Whether to print Stable-Baselines3's description of this system.
            force_reset: As in ``set_env``.
            options: Further arguments of the constructor, in place of the saved ones.
        """
        del device, force_reset
        if print_system_info:
            from stable_baselines3.common.utils import get_system_info

            get_system_info()
        return storage.load(cls, path, env, **{**(custom_objects or {}), **options})

"""The base class of all learners.

It has Stable-Baselines3's methods around one function, ``plan(release) -> Policy``.
"""

from __future__ import annotations

import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.agents import saving
from private_rl_gym.agents.acting import Actor
from private_rl_gym.agents.inputs import board_of, check_statistic, checked_policy, single_env, users_of, vectorized
from private_rl_gym.agents.logs import Logs
from private_rl_gym.agents.offline.pessimism import OfflinePlan, known_places
from private_rl_gym.agents.saving import Learned, Origins, SavedAgent
from private_rl_gym.agents.watching import took_a_step, watching
from private_rl_gym.planning.arrays import file_path, flag, positive_integer, real, seed_of, shown, whole
from private_rl_gym.planning.policy import Policy
from private_rl_gym.privacy.accounting.guarantee import Guarantee
from private_rl_gym.privacy.accounting.ledger import weakest
from private_rl_gym.privacy.errors import NoError
from private_rl_gym.privacy.requests import Request
from private_rl_gym.wrappers.boundary import Boundary

if TYPE_CHECKING:
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.logger import Logger
    from stable_baselines3.common.type_aliases import MaybeCallback
    from stable_baselines3.common.vec_env import VecEnv
    from typing_extensions import Self

__all__ = ["Agent"]

MILLION = 1_000_000


class Agent(ABC):
    """A function from releases to policies, with Stable-Baselines3's ``learn`` and ``predict``.

    An agent meets users through ``board.serve`` and learns from ``board.release``; it never touches a trajectory.
    Around an environment without a boundary it puts an ``OpenBillboard``, and warns that the run is not private.
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
    """Names of the constructor's arguments that are saved, to rebuild the agent: usually all but those of a run."""

    functions: ClassVar[tuple[str, ...]] = ()
    """Names of arguments that are functions, which are not saved."""

    keeps_policy: ClassVar[bool] = True
    """Whether users of another board run the policy of a loaded agent. Then the sums of that board depend on it."""

    private: ClassVar[bool] = True
    """Whether the agent is made for users behind a boundary. If not, it takes sums for exact, whatever noise they have.

    A private agent warns if there is no boundary.
    """

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

    def __init_subclass__(cls) -> None:
        if {"__init__", "saved_arguments"} & vars(cls).keys() == {"__init__"}:
            known = {*cls.saved_arguments, "verbose", "tensorboard_log", "seed"}
            named = inspect.signature(cls.__init__).parameters.values()
            own = (option.name for option in named if option.kind is option.KEYWORD_ONLY and option.name not in known)
            cls.saved_arguments = (*cls.saved_arguments, *own)

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
        checked_policy(type(self), policy)
        if not 0.0 < real(beta, "beta") < 1.0:
            raise ValueError(f"beta is {shown(beta)}: a probability of failure lies in (0, 1).")
        self.beta = float(beta)
        self.verbose = whole(verbose, "verbose", "0, 1 or 2")
        self.tensorboard_log = None if tensorboard_log is None else str(file_path(tensorboard_log, "tensorboard_log"))
        self.seed = seed = seed_of(seed)
        self.num_timesteps = 0
        self.observation_space: gym.Space[Any] | None = None
        self.action_space: gym.Space[Any] | None = None
        self.board: Boundary | None = None
        self.learned = Learned()  # on this board; replaced as a whole
        self._brought: Learned | None = None  # from a file, or by set_parameters; no user has run it yet
        self._in_episode = False  # callbacks are called for a user's steps: their policy is the current one
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
        """Return the policy for the next users, given the newest release."""

    def next_request(self) -> Request | None:
        """Return the request to users who run the plan; None for most agents."""
        return None

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that planning carries from release to release, to be saved."""
        return {}

    def set_state(self, arrays: dict[str, NDArray[Any]]) -> None:  # noqa: B027 - most agents carry nothing
        """Restore the arrays of ``state``."""

    def needs(self, board: Boundary) -> Any:
        """Return the statistic that the agent learns from.

        The boundary is bound to it if its statistic was left open.
        """
        return self.statistic

    def check(self, board: Boundary) -> None:  # noqa: B027 - most agents learn from any board with their statistic
        """Raise ValueError if the agent cannot learn from this boundary.

        The boundary publishes the statistic that ``needs`` returns.
        """

    def prepare(self) -> None:  # noqa: B027 - most agents have nothing to prepare
        """Prepare for a new environment.

        It is called when the environment is set, as soon as its sizes are known.
        """

    # The environment -------------------------------------------------------------------------------------------------

    def set_env(self, env: gym.Env[Any, Any] | VecEnv | str, force_reset: bool = True) -> None:
        """Learn from another environment.

        If there was one before, sizes must be equal.

        ``force_reset`` is an argument of Stable-Baselines3 without effect here: a boundary always starts with a new
        user.
        """
        single = single_env(env)
        board = board_of(single, self)
        board.bind(self.needs(board), apart=self.plans_batches)
        check_statistic(self, board)
        self.check(board)
        if self._sizes() not in (None, board.sizes):
            raise ValueError(f"The environment has sizes {board.sizes}, and this agent learned on {self._sizes()}.")
        same = board is self.board
        self.board, self._vec_env = board, None if isinstance(env, str | gym.Env) else env
        self.observation_space, self.action_space = single.observation_space, single.action_space
        if not same:
            self._begin_on(board)

    def _begin_on(self, board: Boundary) -> None:
        """Learn from the sums of this board from now on.

        If the state that was brought was learned from them, continue from it.

        The policies that users of the last board have run stay in its sums, to which the agent may return. So its
        origins stay.
        """
        left, brought = self.learned, self._brought
        stays = not self.plans_batches  # an agent that plans its batches learns from the users of its own alone
        origins = {name: guarantee for name, guarantee in left.origins.items() if stays and name != left.board}
        self.learned = replace(left, policy=None, planned=None, origins=origins, board=board.identity)
        self.prepare()
        if brought is not None and brought.board == board.identity:
            self._resume(brought)
        elif brought is not None and self.keeps_policy:
            self.learned = replace(self.learned, policy=brought.policy, planned=board.release.version)
        if self.learned.policy is None:
            self.learned = replace(self.learned, known=None)

    def _resume(self, brought: Learned) -> None:
        """Continue from a saved state, on the board that it was learned from."""
        self.learned = replace(self.learned, policy=brought.policy, planned=brought.planned)
        self.set_state(brought.arrays)
        if brought.board in brought.origins:  # else nothing was learned here yet, and what was brought there still is
            self.learned, self._brought = replace(self.learned, origins=brought.origins), None

    def get_env(self) -> VecEnv | None:
        """Return a ``VecEnv`` with the board in it, for Stable-Baselines3's callbacks.

        If a ``VecEnv`` was given to the agent, it is returned. The board itself is ``agent.board``.
        """
        if self.board is not None and self._vec_env is None:
            self._vec_env = vectorized(self.board)
        return self._vec_env

    def get_vec_normalize_env(self) -> None:
        """Return None, because counts are never normalized."""
        return

    def set_random_seed(self, seed: int | None = None) -> None:
        """Restart the agent's own random streams: one for learning, and one for ``predict``."""
        seed = seed_of(seed)
        self.rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(b"agent")))
        self._predict_rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(b"predict")))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee against anyone who sees the contents of this agent.

        It is the guarantee to the users from whose data these contents were learned. For what was learned on one board,
        it is the strongest in the ledger. A loaded agent states the guarantee that it was saved with. Once users of
        another board have run what it learned, it states the weaker of both in each part. For parameters of unknown
        origin it states no privacy.
        """
        return weakest(self.origins.values())

    @property
    def origins(self) -> Origins:
        """The boards whose users the agent has learned from, with their guarantees.

        If there are none, it is the agent's own board.
        """
        held = {**({} if self._brought is None else self._brought.origins), **self.learned.origins}
        if not held or (self.board is not None and self.board.identity in held):
            held[self._board.identity] = self.board_guarantee  # as it is now
        return held

    @property
    def board_guarantee(self) -> Guarantee:
        """The guarantee to the users of the board."""
        return self._board.ledger.outside

    def streams(self) -> dict[str, np.random.Generator]:
        """Return the agent's own generators.

        They are saved where ``secret_randomness`` allows it.
        """
        return {"rng": self.rng}

    @property
    def horizon(self) -> int:
        """Number of steps in a user's episode."""
        return self._board.sizes[0]

    @property
    def expected_users(self) -> int:
        """The number of users that constants are computed for.

        It is the number of users of the board, or a million where any number may come.
        """
        return self._board.users or MILLION

    @property
    def _board(self) -> Boundary:
        if self.board is None:
            raise ValueError(f"{type(self).__name__} has no environment: give it one with set_env.")
        return self.board

    @property
    def request(self) -> Request | None:
        """The request to users who run the current policy, besides their actions."""
        return self.learned.request

    # Learning --------------------------------------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """The policy of the next user.

        While callbacks are called for a user's steps, it is the policy of that user.
        """
        known = self.learned.policy
        if known is None or not (self._in_episode or self.board is None):
            self.users_to_come()
        policy: Policy = self.learned.policy
        return policy

    def best_policy(self) -> Policy:
        """Return the policy that ``predict`` plays.

        It is the current one, unless the agent explores with other policies. A loaded agent has no board, so use
        ``self.policy`` and the arrays of ``state``, and nothing else.
        """
        return self.policy

    def users_to_come(self) -> int:
        """Return how many users run the current plan until the next release.

        Before that, plan from the newest release, if it is a new one.
        """
        board, known = self._board, self.learned
        if board.identity != known.board:  # the board has continued from a saved state
            self._begin_on(board)
            known = self.learned
        release = board.release
        if known.policy is None or release.version != known.planned:
            policy = self.plan(self.seen(release.with_certain_rows()))
            self.learned = replace(self.learned, policy=policy, planned=release.version, known=None)
            if release.users:
                self._learns_here()
            self._send(self.next_request())
        return board.users_to_release

    def seen(self, release: Any) -> Any:
        """Return the release as plans use it.

        It has no errors if the agent treats sums as exact.
        """
        return release if self.private else replace(release, errors=dict.fromkeys(release.families, NoError()))

    def _learns_here(self) -> None:
        """Add this board to the origins of the agent's contents.

        If users may have run a policy that was brought from elsewhere, its origins are added too.
        """
        origins = self.learned.origins
        if self._brought is not None and self.keeps_policy:
            origins = {**origins, **self._brought.origins}
        self._brought = None
        if self._board.identity not in origins:
            origins = {**origins, self._board.identity: self.board_guarantee}
        self.learned = replace(self.learned, origins=origins)

    def _send(self, request: Request | None) -> None:
        """Send this request to users.

        Users of ``reset`` and ``step`` receive it, too.
        """
        self.learned = replace(self.learned, request=request)
        if request is not None:
            self._board.request = request

    def meet(self, users: int) -> int:
        """Let at most this many users run the current policy; return their number.

        Users run it until it may change.
        """
        group = self._serve(positive_integer(users, "users", "users to meet"))
        self.num_timesteps += group * self.horizon
        return group

    def _serve(self, users: int) -> int:
        """Let at most this many users run the current policy; return their number.

        Users run it until it may change.
        """
        count = min(users, self.users_to_come())
        self._learns_here()
        return self._board.serve(self.learned.policy, count, self.learned.request, rng=self.rng)

    @property
    def learns_from(self) -> int:
        """The fewest users from whom anything is learned."""
        return 1

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
            total_timesteps: Number of steps. Every user takes H; the last one finishes their episode in any case.
            callback: Stable-Baselines3's callbacks, called at every step.
            log_interval: Number of releases between two logs; None for no logs.
            tb_log_name: Name of the run in TensorBoard; by default the agent's.
            reset_num_timesteps: Whether to count steps from 0; else the count continues.
            progress_bar: Whether to show progress, with the time that is left.
        """
        flag(progress_bar, "progress_bar")
        users = users_of(self, total_timesteps, first=flag(reset_num_timesteps, "reset_num_timesteps"))
        if reset_num_timesteps:
            self.num_timesteps = 0
        name = self._logs.begin(tb_log_name, log_interval, reset=reset_num_timesteps)
        watch = watching(self, callback, self.num_timesteps + users * self.horizon, name, progress_bar=progress_bar)
        served, going = 0, True
        while served < users and going:
            if watch is None:  # as many as run one policy
                served += self.meet(users - served)
            else:  # one, whose steps are watched
                served += self._serve(1)
                going = self._tell(watch)
            self._logs.write_if_due()
        self._logs.end()
        if watch is not None:
            watch.on_rollout_end()
            watch.on_training_end()
        return self

    def _tell(self, watch: BaseCallback) -> bool:
        """Call the callbacks for each step of a user who was served.

        Returns False if a callback asks to stop.
        """
        going, policy = True, self.learned.policy  # a callback may plan anew; the user ran this one
        try:
            for h in range(self.horizon):
                self.num_timesteps += 1
                self._in_episode = h < self.horizon - 1  # until they are done, no plan from their data is shown
                going = going and took_a_step(watch, policy, done=not self._in_episode)
        finally:
            self._in_episode = False
        return going

    def learn_offline(self, *, stationary: bool = False) -> Self:
        """Plan from the users of the newest release, with pessimism in place of optimism.

        No later user corrects an error of this plan.

        This is post-processing of the newest release: the ledger of the boundary is that of the policy. Where no action
        is known, the policy acts as the users did, and ``knows`` is false.

        Args:
            stationary: Whether all stages have the same transitions and rewards, so that their sums may be pooled.
        """
        release, stationary = self._board.release, flag(stationary, "stationary")
        if not release.users:
            raise ValueError(
                "There is no release yet. Add users with board.ingest(...) or board.serve(...), and publish."
            )
        found = self.plan_offline(self.seen(release.with_certain_rows()), stationary=stationary)
        now = replace(self.learned, policy=found.policy, known=found.known)
        self.learned = replace(now, planned=release.version, board=self._board.identity)
        self._learns_here()
        return self

    def plan_offline(self, release: Any, *, stationary: bool) -> OfflinePlan:
        """Return the plan for users from whom no agent learns.

        Raises ValueError for agents that only explore.
        """
        raise ValueError(
            f"{type(self).__name__} plans for exploration, and cannot learn offline. Use DPUCBVI or DPAPVI."
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
        """Write the logs now.

        Stable-Baselines3's LogEveryNTimesteps calls this.
        """
        self._logs.write()

    def progress(self) -> dict[str, float]:
        """Return numbers about the plan, for the logs."""
        return {}

    # Acting ----------------------------------------------------------------------------------------------------------

    def predict(
        self,
        observation: Any,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[np.int64], tuple[NDArray[Any], ...]]:
        """Return actions for one observation, or for the observations of several users.

        Policies depend on the stage, which is passed in ``state``, as recurrent policies pass their own. Give each call
        the state that the last one returned, and say in ``episode_start`` where episodes start. Observations that
        contain the stage need no state.
        """
        actions, stages = self._actor.act(observation, state, episode_start, deterministic=deterministic)
        return actions, (stages,)

    def knows(self, observation: Any, state: tuple[NDArray[Any], ...] | None = None) -> NDArray[np.bool_]:
        """Return whether the action of ``predict`` rests on counts well above the noise.

        Where it is false, the agent does not know which action is good. An offline policy then goes on as the users of
        the table did; leave the decision to the people who made it before.

        Args:
            observation: As in ``predict``: one observation, or an array with one for each of several users.
            state: As in ``predict``; stage 0 by default.
        """
        return self._actor.look_up(self.known, observation, state)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether actions rest on counts well above the noise, ``[h, s]``.

        Visits must exceed twice the noise of their count.
        """
        known = self.learned.known
        if known is None and self.board is None:
            raise ValueError(
                "This agent has no mask of known states: its policy was set, or saved by an older version."
            )
        return self.known_now() if known is None else known

    def known_now(self) -> NDArray[np.bool_]:
        """Return whether the newest release knows the action of ``predict``, ``[h, s]``."""
        policy = self.best_policy()  # planned from the newest release
        return known_places(self._board.release, policy)

    # Parameters ------------------------------------------------------------------------------------------------------

    def get_parameters(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Return the numbers of the policy that ``predict`` plays.

        They are copies of arrays, by name.
        """
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
        policy, origins = saving.parameters_in(self, load_path_or_dict, exact_match=flag(exact_match, "exact_match"))
        if policy is None:
            return
        own = np.array_equal(self.policy_array(policy), self.policy_array(self.best_policy()))
        self._begin_from(policy)
        if not own:
            beside = {} if self._brought is None else self._brought.origins  # a file brings more than its policy
            self._brought = Learned(policy, beside | origins)

    def _begin_from(self, policy: Policy) -> None:
        """Play this policy until there is a new release."""
        if self.board is not None and type(self).next_request is not Agent.next_request:
            raise ValueError(
                f"{type(self).__name__} makes requests about its own plan, and its users run no other policy. Serve "
                "this policy with board.serve(policy, users), or load the agent without an environment."
            )
        planned = None if self.board is None else self.board.release.version
        self.learned = replace(self.learned, policy=policy, planned=planned, known=None)

    def _sizes(self) -> tuple[int, int, int] | None:
        """Return the horizon, the number of states and the number of actions.

        They are those of the board, or of the policy of a loaded agent.
        """
        policy = self.learned.policy
        if self.board is not None:
            return self.board.sizes
        return None if policy is None else (policy.horizon, policy.n_states, policy.n_actions)

    def policy_array(self, policy: Any) -> NDArray[Any]:
        """Return the numbers of a policy, to be saved."""
        return np.asarray(getattr(policy, self.parameter_name))

    def policy_of(self, array: NDArray[Any], sizes: tuple[int, int, int]) -> Any:
        """Return the policy with these numbers, for these sizes."""
        horizon, n_states, n_actions = sizes
        return Policy.of(array, horizon=horizon, n_states=n_states, n_actions=n_actions)

    # Files -----------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str] | IO[bytes], exclude: Iterable[str] | None = None) -> None:
        """Save the agent as a zip of JSON and arrays.

        The file holds the results of learning from releases, and nothing of the boundary.

        Args:
            path: A file name, which gets the ending ``.zip`` if it has none, or an open binary file.
            exclude: Names of the constructor's arguments to leave out; they take their defaults when it is loaded.
        """
        saving.save(self, path, exclude)

    def _restore(self, saved: SavedAgent, *, seeded: bool) -> None:
        """Restore a new agent from the contents of a file.

        If a seed was given to the new agent (``seeded``), it stays.
        """
        learned, board, sizes = saved.learned, self.board, saved.sizes
        self.num_timesteps = saved.num_timesteps
        if not seeded:  # a given seed begins a stream of its own, and the guarantee says so
            self.seed = saved.seed
            for name, rng in ({} if saved.streams is None else self.streams()).items():
                rng.bit_generator.state = (saved.streams or {})[name]
        same = board is not None and board.identity == learned.board
        if board is None or not (same or self.plans_batches):  # batches are planned again on the board that they are of
            self.set_state(learned.arrays)
        if board is None:
            self.observation_space, self.action_space = saved.spaces
        if learned.policy is None or sizes is None:
            return
        self._brought = brought = replace(learned, policy=self.policy_of(learned.policy, sizes))
        here = self.learned
        self.learned = replace(brought, origins=here.origins, board=here.board, arrays={})
        if same:
            self._resume(brought)

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
        return saving.load(cls, path, env, print_system_info, custom_objects, **options)

"""Logs of an agent, by Stable-Baselines3's logger and from releases alone."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from private_rl_gym.lazy import install
from private_rl_gym.planning.arrays import shown, whole

if TYPE_CHECKING:
    from stable_baselines3.common.logger import Logger

    from private_rl_gym.agents.base import Agent

__all__ = ["Logs"]


class Logs:
    """An agent's logger, created when first needed."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._logger: Logger | None = None
        self._own = True  # whether learn may replace it
        self._started, self._first = time.perf_counter(), 0
        self._interval: int | None = None
        self._logged, self._written = 0, False  # the release of the last entry of this run, and whether there is one

    @property
    def logger(self) -> Logger:
        """Stable-Baselines3's logger, or one without output if none was set."""
        if self._logger is None:
            from stable_baselines3.common.logger import configure

            self._logger = configure(None, [""])
        return self._logger

    def use(self, logger: Logger) -> None:
        """Use this logger from now on."""
        self._logger, self._own = logger, False

    def begin(self, name: Any, interval: Any, *, reset: bool) -> str:
        """Begin the logs of a run, and return its name.

        There is one entry for every ``interval`` releases, or none for None.
        """
        if interval is not None:
            whole(interval, "log_interval", "releases between two logs, or None")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"tb_log_name is {shown(name)}: it must be the name of a run.")
        agent = self._agent
        named: str = name or type(agent).__name__
        self._interval, self._logged, self._written = interval, agent._board.release.version, False
        self._started, self._first = time.perf_counter(), agent.num_timesteps
        if self._own and (agent.verbose or agent.tensorboard_log):
            from stable_baselines3.common.utils import configure_logger

            try:
                self._logger = configure_logger(agent.verbose, agent.tensorboard_log, named, reset)
            except ImportError as error:
                raise ImportError(f"tensorboard_log needs TensorBoard: run {install('train')}.") from error
        return named

    def write_if_due(self) -> None:
        """Write an entry if there were enough releases since the last one."""
        if self._logger is not None and self._interval:
            version = self._agent._board.release.version
            if version - self._logged >= self._interval:
                self._logged, self._written = version, True
                self.write()

    def end(self) -> None:
        """Write the last entry of a run, unless nothing was released since the previous one."""
        missing = not self._written or self._agent._board.release.version > self._logged
        if self._logger is not None and self._interval and missing:
            self.write()

    def write(self) -> None:
        """Write one entry."""
        agent, logger = self._agent, self.logger
        board, stated = agent._board, agent.guarantee
        release = board.release
        seconds = max(time.perf_counter() - self._started, 1e-9)
        logger.record("time/total_timesteps", agent.num_timesteps, exclude="tensorboard")
        logger.record("time/users", agent.num_timesteps // agent.horizon)
        if not (math.isfinite(board.ledger.epsilon) or agent.secret_randomness):
            # The time that users took reveals something about them: logged only where there is no guarantee.
            logger.record("time/fps", int((agent.num_timesteps - self._first) / seconds))
        logger.record("release/version", release.version)
        logger.record("release/noise_std", release.noise_std[release.headline])
        if math.isfinite(stated.epsilon):
            logger.record("privacy/epsilon", stated.epsilon)
            logger.record("privacy/delta", stated.delta)
            logger.record("privacy/seeded", int(stated.seeded))
        if board.users_left is not None:
            logger.record("privacy/users_left", board.users_left)
        for key, value in agent.progress().items():
            logger.record(key, value)
        logger.dump(step=agent.num_timesteps)

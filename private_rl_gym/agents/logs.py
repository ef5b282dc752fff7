"""Logs of an agent, by Stable-Baselines3's logger and from releases alone."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from private_rl_gym.lazy import install

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

    @property
    def wanted(self) -> bool:
        """Whether there is a logger."""
        return self._logger is not None

    @property
    def logger(self) -> Logger:
        """Stable-Baselines3's logger; one without output if no other was set."""
        if self._logger is None:
            from stable_baselines3.common.logger import configure

            self._logger = configure(None, [""])
        return self._logger

    def use(self, logger: Logger) -> None:
        """Use this logger from now on."""
        self._logger, self._own = logger, False

    def begin(self, name: str, *, reset: bool) -> None:
        """Begin the logs of a run."""
        agent = self._agent
        self._started, self._first = time.perf_counter(), agent.num_timesteps
        if self._own and (agent.verbose or agent.tensorboard_log):
            from stable_baselines3.common.utils import configure_logger

            try:
                self._logger = configure_logger(agent.verbose, agent.tensorboard_log, name, reset)
            except ImportError as error:
                raise ImportError(f"tensorboard_log needs TensorBoard: run {install('train')}.") from error

    def write(self) -> None:
        """Write one entry."""
        agent, logger = self._agent, self.logger
        board, promised = agent._board, agent.guarantee
        release = board.release
        seconds = max(time.perf_counter() - self._started, 1e-9)
        logger.record("time/total_timesteps", agent.num_timesteps, exclude="tensorboard")
        logger.record("time/users", agent.num_timesteps // agent.horizon)
        if not (math.isfinite(board.ledger.epsilon) or agent.secret_randomness):
            # The time that users took reveals something about them: logged only where there is no guarantee.
            logger.record("time/fps", int((agent.num_timesteps - self._first) / seconds))
        logger.record("release/version", release.version)
        logger.record("release/noise_std", release.noise_std[release.headline])
        if math.isfinite(promised.epsilon):
            logger.record("privacy/epsilon", promised.epsilon)
            logger.record("privacy/delta", promised.delta)
            logger.record("privacy/seeded", int(promised.seeded))
        if board.users_left is not None:
            logger.record("privacy/users_left", board.users_left)
        for key, value in agent.progress().items():
            logger.record(key, value)
        logger.dump(step=agent.num_timesteps)

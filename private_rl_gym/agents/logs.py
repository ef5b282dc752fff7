"""What an agent logs, through Stable-Baselines3's logger: from releases alone."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stable_baselines3.common.logger import Logger

    from private_rl_gym.agents.base import Agent

__all__ = ["Logs"]


class Logs:
    """An agent's logger, made when it is first needed."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._logger: Logger | None = None
        self._own = True  # whether learn may put another in its place
        self._started, self._first = time.perf_counter(), 0

    @property
    def wanted(self) -> bool:
        """Whether anyone reads them."""
        return self._logger is not None

    @property
    def logger(self) -> Logger:
        """Stable-Baselines3's, quiet if nothing else was asked for."""
        if self._logger is None:
            from stable_baselines3.common.logger import configure

            self._logger = configure(None, [""])
        return self._logger

    def use(self, logger: Logger) -> None:
        """Log there, from now on."""
        self._logger, self._own = logger, False

    def begin(self, name: str, *, reset: bool) -> None:
        """A run begins."""
        agent = self._agent
        self._started, self._first = time.perf_counter(), agent.num_timesteps
        if self._own and (agent.verbose or agent.tensorboard_log):
            from stable_baselines3.common.utils import configure_logger

            self._logger = configure_logger(agent.verbose, agent.tensorboard_log, name, reset)

    def write(self) -> None:
        """One entry."""
        agent, logger = self._agent, self.logger
        release = agent._board.release
        seconds = max(time.perf_counter() - self._started, 1e-9)
        logger.record("time/total_timesteps", agent.num_timesteps, exclude="tensorboard")
        logger.record("time/users", agent.num_timesteps // agent.horizon)
        if not (math.isfinite(agent._board.ledger.epsilon) or agent.secret_randomness):
            # How long users took tells about them: only where nothing is promised.
            logger.record("time/fps", int((agent.num_timesteps - self._first) / seconds))
        logger.record("release/version", release.version)
        logger.record("release/noise_std", release.noise_std[release.headline])
        for key, value in agent.progress().items():
            logger.record(key, value)
        logger.dump(step=agent.num_timesteps)

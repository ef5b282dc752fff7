"""Recorders of episodes outside a trust boundary, which no guarantee covers.

A learner that meets users by ``reset`` and ``step`` sees their steps. Stable-Baselines3's recorders around a boundary
write the lengths of episodes into files and logs. So a boundary lets none of them meet users.
"""

from __future__ import annotations

import inspect

__all__ = ["refuse_recorders", "refused"]

MODULES = {
    "stable_baselines3.common.evaluation": "evaluate_policy",
    "stable_baselines3.common.monitor": "Monitor",
    "stable_baselines3.common.vec_env.vec_monitor": "VecMonitor",
}
"""Modules that record episodes, each with the name of its recorder."""


def refuse_recorders(board: str) -> None:
    """Raise ValueError if a recorder called the method of a boundary that called this function.

    Args:
        board: The kind of the boundary.
    """
    frame = inspect.currentframe()
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module in MODULES:
            raise ValueError(refused(MODULES[module], board))
        frame = frame.f_back


def refused(recorder: str, board: str) -> str:
    """Return the sentences of the error that refuses a recorder."""
    return (
        f"{recorder} keeps the length of every episode, which the guarantee of this {board} does not cover. Evaluate "
        "on the environment itself, or on board.private_model(); put Monitor and other statistics inside the boundary."
    )

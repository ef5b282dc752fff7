"""The output of commands: results on stdout, progress and errors on stderr, each error as one sentence."""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from private_rl_gym.experiments.names import GridError

__all__ = ["PLAIN", "progress", "screen", "sentences"]

PLAIN: dict[str, Any] = {"highlight": False, "markup": False, "soft_wrap": True}
"""Options for text that people copy."""

F = TypeVar("F", bound=Callable[..., Any])


def screen() -> Console:
    """The console for results; its width is fixed if stdout is not a terminal."""
    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 112)


def progress() -> AbstractContextManager[Progress | None]:
    """A progress bar with the time left, on stderr; None if stderr is not a terminal."""
    if not sys.stderr.isatty():
        return nullcontext()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=Console(stderr=True), transient=True)


def _interrupt(_signal: int, _frame: Any) -> None:
    raise KeyboardInterrupt


def sentences(command: F) -> F:
    """Decorator that prints errors as sentences; exit code 2 for a ``GridError``, 130 for an interrupt, else 1."""

    @functools.wraps(command)
    def guarded(*arguments: Any, **options: Any) -> Any:
        with suppress(ValueError):  # only the main thread may
            signal.signal(signal.SIGTERM, _interrupt)
        try:
            return command(*arguments, **options)
        except GridError as error:
            typer.echo(f"private-rl-gym {command.__name__.rstrip('_')}: {error}", err=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            typer.echo("Interrupted. What is finished is written down; run the same again for the rest.", err=True)
            raise typer.Exit(130) from None
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:  # noqa: BLE001 - a traceback does not help at a command line
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            typer.echo(f"private-rl-gym {command.__name__.rstrip('_')}: this did not work. {reason}", err=True)
            raise typer.Exit(1) from None

    return guarded  # type: ignore[return-value]

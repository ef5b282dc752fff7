"""The output of commands: results on stdout, progress and errors on stderr.

Each error is one sentence.
"""

from __future__ import annotations

import functools
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from private_rl_gym.lab.registry import GridError

__all__ = ["PLAIN", "Bar", "finite", "pairs", "progress", "screen", "sentences", "table"]

PLAIN: dict[str, Any] = {"highlight": False, "markup": False, "soft_wrap": True}
"""Options for text that people copy."""

F = TypeVar("F", bound=Callable[..., Any])


def screen() -> Console:
    """Return the console for results.

    Its width is fixed if stdout is not a terminal.
    """
    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 112)


def table(columns: Sequence[str], **options: Any) -> Table:
    """Return a table without rows.

    ``>name`` is a column of numbers, and ``~name`` one of text that may be folded.
    """
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, **options)
    for column in columns:
        name, folded = column.lstrip(">~"), column.startswith("~")
        right: Any = "right" if column.startswith(">") else "left"
        made.add_column(name, justify=right, no_wrap=not folded, overflow="fold" if folded else "ellipsis")
    return made


def pairs(rows: Mapping[str, str]) -> None:
    """Print names and values below each other."""
    made = Table(box=None, show_header=False, pad_edge=False)
    made.add_column(style="dim", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in rows.items():
        made.add_row(name, escape(value))
    screen().print(made, highlight=False)


def finite(content: Any) -> Any:
    """Return content for JSON, which has no infinity.

    None replaces numbers that are not finite.
    """
    if isinstance(content, dict):
        return {key: finite(value) for key, value in content.items()}
    if isinstance(content, list):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


@dataclass(frozen=True)
class Bar:
    """A progress bar on stderr, with the time that is left.

    It shows nothing if stderr is not a terminal.
    """

    shown: Progress | None = None
    task: Any = None

    def update(self, completed: int, **more: Any) -> None:
        """Set the completed amount, and change the bar's description or total."""
        if self.shown is not None:
            self.shown.update(self.task, completed=completed, **more)

    def fail(self, sentence: str) -> None:
        """Print a sentence above the bar."""
        if self.shown is not None:
            self.shown.console.print(sentence, style="red", markup=False)


@contextmanager
def progress(description: str, total: int | None = None) -> Iterator[Bar]:
    """Show a progress bar while a block runs."""
    if not sys.stderr.isatty():
        yield Bar()
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    left = (TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, *left, console=Console(stderr=True), transient=True) as shown:
        yield Bar(shown, shown.add_task(description, total=total))


def _interrupt(_signal: int, _frame: Any) -> None:
    raise KeyboardInterrupt


def sentences(command: F) -> F:
    """Decorate a command so that it prints errors as sentences.

    The exit code is 2 for a ``GridError``, 130 for an interrupt, and otherwise 1.
    """

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
            typer.echo(
                "Interrupted. Everything that is finished is stored; run the same command again for the rest.", err=True
            )
            raise typer.Exit(130) from None
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:  # noqa: BLE001 - a traceback does not help at a command line
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            typer.echo(f"private-rl-gym {command.__name__.rstrip('_')}: this did not work. {reason}", err=True)
            raise typer.Exit(1) from None

    return guarded  # type: ignore[return-value]

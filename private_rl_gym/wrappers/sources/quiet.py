"""Failures of environments, without a user's data in them.

* ``quietly`` - calls an environment; whatever it raises becomes an error that is safe to show
* ``frameless`` - public methods whose errors keep no frames
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, NoReturn, ParamSpec, TypeVar

__all__ = ["BadUserError", "bare", "frameless", "harmless", "quietly", "unheard"]

HARMLESS = ("TimeLimit.truncated",)
"""Keys of ``info`` that reveal nothing beyond a user's observations."""

P = ParamSpec("P")
T = TypeVar("T")


class BadUserError(ValueError):
    """An episode for which no guarantee can be kept, and which is not released."""


def quietly(call: Callable[[], T]) -> tuple[T | None, BadUserError | None]:
    """Call an environment, and return its result or an error.

    The result comes with None, or None comes with an error that is safe to show. Everything that an environment raises
    is the failure of one user, ``SystemExit`` included. Only an interrupt by the operator passes. The message of an
    environment's own exception may be about a user, and the traceback holds their data: both are dropped.
    """
    try:
        with unheard():
            return call(), None
    except KeyboardInterrupt:
        raise
    except BadUserError as error:
        return None, BadUserError(str(error))
    except BaseException as error:  # noqa: BLE001 - its message stays inside
        kind = type(error).__name__
        sentence = f"The environment raised {kind}; nothing of this user is released. Try it without the boundary."
        return None, BadUserError(sentence)


@contextmanager
def unheard() -> Iterator[None]:
    """Drop warnings, because they may be about a user.

    Even whether an environment warns may depend on the user.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def frameless(method: Callable[P, T]) -> Callable[P, T]:
    """Return a public method whose errors keep none of their frames.

    Frames hold users' data. Debuggers, notebooks and crash reporters keep tracebacks, and with them everything that
    their frames refer to.
    """

    @wraps(method)
    def public(*arguments: P.args, **options: P.kwargs) -> T:
        try:
            return method(*arguments, **options)
        except BaseException as error:  # noqa: BLE001 - an interrupt passes the same frames
            held = [error]
        del arguments, options
        return bare(held)

    return public


def bare(held: list[BaseException]) -> NoReturn:
    """Raise the error in a list without its frames.

    Errors that caused it are dropped too. The error is taken out of the list, because the frame of the caller would
    hold it, and with it its new traceback.
    """
    problem = held.pop()
    problem.__traceback__ = problem.__context__ = problem.__cause__ = None
    try:
        raise problem
    finally:
        del problem


def harmless(info: dict[str, Any]) -> dict[str, Any]:
    """Return the harmless keys of ``info`` whose value is True."""
    return {key: True for key in HARMLESS if info.get(key) is True}

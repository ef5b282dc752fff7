"""Files that are written completely, or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

__all__ = ["flush_folder", "whole"]


@contextmanager
def whole(
    target: Path, temporary: Path, mode: int = 0o666, ready: Callable[[], None] | None = None
) -> Iterator[IO[bytes]]:
    """Open a temporary file, and replace the target when it is complete.

    The file is flushed to disk before it is moved. After an error it is removed.

    Args:
        target: The file, which is replaced if it is there.
        temporary: A new name on the same disk.
        mode: The permissions of the file, less the umask of the process.
        ready: Called when the temporary file is on disk, before it is moved. If it raises, the target stays as it is.
    """
    binary = getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | binary, mode), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if ready is not None:
            ready()
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    flush_folder(target.parent)


def flush_folder(folder: Path) -> None:
    """Flush the names in a folder to disk, where the system supports it.

    The name of a new file is not on disk before that.
    """
    with suppress(PermissionError):  # Windows opens no folders
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

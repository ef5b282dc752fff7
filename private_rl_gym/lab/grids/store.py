"""A directory with one record for each cell, written completely or not at all.

A store holds ``store.json``, which identifies it, ``records/`` with a Parquet file for every finished cell, and
``failed/`` with the traceback of every cell that raised. A record is written to ``incoming/`` and moved into place, so
that no reader ever sees an incomplete one. Several processes may share a store, and the same cell gives the same bytes.
"""

from __future__ import annotations

import json
import os
import re
import socket
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from private_rl_gym.durable import whole
from private_rl_gym.lab.grids.cell import Cell
from private_rl_gym.lab.grids.record import Record, StoreError

__all__ = ["Store", "StoreError"]

FORMAT = 1
_FOLDERS = ("records", "failed", "incoming")


class Store:
    """A directory of records.

    Args:
        path: The directory. One that does not exist yet, or is empty, becomes a store when it is first written to.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._ready = False
        if self.path.is_dir():
            self._check()
        elif self.path.exists():
            raise StoreError(f"{self.path} is a file: a store is a directory.")

    def _check(self) -> None:
        """Raise if the directory is not a store that this version can use."""
        label = self.path / "store.json"
        if not label.is_file():
            if any(entry.name not in _FOLDERS for entry in self.path.iterdir()):  # else killed while it was made
                raise StoreError(
                    f"{self.path} is not a store: it has files, and no store.json. Name an empty directory, or a new "
                    "one."
                )
            return
        try:
            content = json.loads(label.read_text("utf-8"))
            kind, version = content["store"], int(content["format"])
        except (OSError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
            raise StoreError(f"{label} is no label of a store, or is damaged ({type(error).__name__}).") from None
        if kind != "private_rl_gym":
            raise StoreError(f"{self.path} is a store of {kind}, not of private_rl_gym.")
        if version > FORMAT:
            raise StoreError(
                f"{self.path} was written by a newer version, in format {version}; this one knows format {FORMAT}. "
                "Update private_rl_gym, or take another directory."
            )

    def prepare(self) -> None:
        """Make the directory a store, and check that it can be written to."""
        if self._ready:
            return
        try:
            for folder in _FOLDERS:
                (self.path / folder).mkdir(parents=True, exist_ok=True)
            if not (self.path / "store.json").is_file():
                self._write(
                    self.path / "store.json", json.dumps({"store": "private_rl_gym", "format": FORMAT}).encode()
                )
            probe = self.path / "incoming" / self._temporary_name()
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written to ({error.strerror or type(error).__name__}).") from None
        self._sweep_up()
        self._ready = True

    def __contains__(self, cell: Cell) -> bool:
        return self._place(cell.key).is_file()

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """Return the cells without a record, in their order."""
        return [cell for cell in cells if cell not in self]

    def add(self, cell: Cell, content: bytes) -> None:
        """Write a finished cell to disk, completely or not at all.

        The cell's earlier failure is removed.
        """
        self.prepare()
        place = self._place(cell.key)
        place.parent.mkdir(exist_ok=True)
        self._write(place, content)
        self._failure(cell.key).unlink(missing_ok=True)

    def add_failure(self, cell: Cell, said: str) -> None:
        """Write the reason why a cell has no record."""
        self.prepare()
        about = {"config": cell.to_dict(), "label": cell.label, "traceback": said}
        self._write(self._failure(cell.key), json.dumps(about, indent=2, sort_keys=True).encode())

    def failure(self, cell: Cell) -> str | None:
        """Return the traceback of a cell, or None if it did not fail."""
        place = self._failure(cell.key)
        return None if not place.is_file() else str(json.loads(place.read_text("utf-8"))["traceback"])

    def get(self, key: str) -> Record:
        """Return the record whose key is ``key``, or begins with it."""
        plain = re.fullmatch("[0-9a-f]{2,32}", key) is not None
        paths = sorted((self.path / "records").glob(f"*/{key}*.parquet")) if plain else []
        if len(paths) != 1:
            count = "no record" if not paths else f"{len(paths)} records"
            raise StoreError(f"{self.path} has {count} whose key begins with {key!r}.")
        return Record.from_bytes(paths[0].stem, paths[0].read_bytes())

    def read(self, cells: Iterable[Cell]) -> Iterator[tuple[Cell, Record]]:
        """Yield each cell that has a record, with its record."""
        for cell in cells:
            place = self._place(cell.key)
            if place.is_file():
                yield cell, Record.from_bytes(cell.key, place.read_bytes())

    def _place(self, key: str) -> Path:
        return self.path / "records" / key[:2] / f"{key}.parquet"

    def _failure(self, key: str) -> Path:
        return self.path / "failed" / f"{key}.json"

    @staticmethod
    def _temporary_name() -> str:
        return f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex}"

    def _write(self, target: Path, content: bytes) -> None:
        """Write a temporary file, flush it to disk, and move it into place."""
        with whole(target, self.path / "incoming" / self._temporary_name()) as file:
            file.write(content)

    def _sweep_up(self) -> None:
        """Remove temporary files of processes of this machine that have ended."""
        for leftover in (self.path / "incoming").iterdir():
            host, _, rest = leftover.name.rpartition("-")[0].rpartition("-")
            if host == socket.gethostname() and rest.isdigit() and not _alive(int(rest)):
                leftover.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # a process of another user
        return True
    return True

"""Code of a user's own, as ``module:object``, and hashes of code.

* ``Reference`` - the name of an object that may be imported
* ``refer`` - makes one, if the user has named its module
* ``package_hash``, ``source_hash`` - notice that code has changed
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Collection
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import private_rl_gym

__all__ = ["GridError", "Reference", "package_hash", "refer", "short", "source_hash"]

PACKAGE = Path(private_rl_gym.__file__).parent
"""The folder with the source of this package."""


class GridError(ValueError):
    """The error for an experiment that is not valid.

    The experiment asks for something that does not exist or is not valid. The message states the correction.
    """


class Reference(str):
    """The name ``module:object`` of an object that may be imported.

    The user has typed it, or has named its module. Only references import code.

    For JSON and for digests it is the string.
    """

    __slots__ = ()

    @property
    def module(self) -> str:
        """The name of the module."""
        return self.partition(":")[0]

    @property
    def short(self) -> str:
        """The name of the object."""
        return self.partition(":")[2]

    @property
    def outside(self) -> bool:
        """Whether the module is outside this package."""
        return self.module.partition(".")[0] != private_rl_gym.__name__

    def load(self) -> Any:
        """Return the object; None if the module has no such object.

        The module may be in the current folder.
        """
        _look_here()
        try:
            return getattr(importlib.import_module(self.module), self.short, None)
        except (ImportError, TypeError, ValueError) as error:
            raise GridError(f"{str(self)!r}: there is no module {self.module!r} to import ({error}).") from None


def refer(name: str, code: Collection[str] | None, where: str) -> Reference:
    """Return a name with a colon as a ``Reference``.

    Args:
        name: ``module:object``.
        code: The modules that may be imported; None if the user has typed the name.
        where: The place of the name, for the error.

    Raises:
        GridError: If the module may not be imported.
    """
    reference = Reference(name)
    if isinstance(name, Reference) or code is None or reference.module in code or not reference.outside:
        return reference
    raise GridError(f"{where} names code, {name!r}: if you trust it, add --import {reference.module}")


def short(value: Any) -> Any:
    """Return the short name of a ``Reference``, and any other value unchanged.

    Figures use it.
    """
    return value.short if isinstance(value, Reference) else value


def package_hash() -> str:
    """Return a hash of all source files of this package.

    It is of their names and their content, as this process first read them.
    """
    return _tree_hash(PACKAGE)


@cache  # the imported code does not change while the process runs
def _tree_hash(folder: Path) -> str:
    content = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        content.update(file.relative_to(folder).as_posix().encode() + b"\0")
        content.update(hashlib.sha256(file.read_bytes()).digest())
    return content.hexdigest()


def source_hash(module: str) -> str | None:
    """Return a hash of the source of a module, or None.

    For a package it covers all its files. It is None if no source is found.

    Modules that it imports are not looked at, so that this is for noticing changes, and no proof that there are none.
    """
    _look_here()
    try:
        spec = None if module == "__main__" else importlib.util.find_spec(module)  # the program that runs is no module
    except Exception:  # noqa: BLE001 - not there, made by hand, or a package whose code fails: said where it is built
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    files = sorted({Path(spec.origin), *(file for folder in folders for file in folder.rglob("*.py"))})
    try:
        return _hash_of(tuple((file, file.stat().st_mtime_ns, file.stat().st_size) for file in files))
    except OSError:
        return None


@lru_cache(maxsize=64)  # a grid asks for each of its cells
def _hash_of(files: tuple[tuple[Path, int, int], ...]) -> str:
    content = hashlib.sha256()
    for file, *_ in files:
        content.update(hashlib.sha256(file.read_bytes()).digest())
    return content.hexdigest()


def _look_here() -> None:
    """Let modules be imported from the current folder."""
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))

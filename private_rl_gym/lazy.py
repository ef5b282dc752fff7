"""Lazy loading of a package's names, and the line that installs an extra."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["install", "lazy_names"]


def install(extra: str) -> str:
    """Return the line that installs an extra, for messages.

    It names no index, because another project may have the name there.
    """
    return f"`pip install -c constraints.txt '.[{extra}]'` in a clone of private_rl_gym"


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return a package's ``__getattr__``, ``__dir__`` and ``__all__``, which load names on first access.

    So nothing heavy is loaded before it is needed. The names are those that its ``__init__`` imports under
    ``TYPE_CHECKING``, so they are written once and known to type checkers. No submodule may have the name of an object
    in another submodule.

    Args:
        package: Name of the package, ``__name__``.
    """
    source = Path(str(sys.modules[package].__file__)).read_text("utf-8")
    guards = (node for node in ast.parse(source).body if isinstance(node, ast.If))
    imports = (node for guard in guards for node in guard.body if isinstance(node, ast.ImportFrom))
    homes = {name.name: str(node.module) for node in imports for name in node.names}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name]), name)

    def names() -> list[str]:
        return sorted({*homes, *vars(sys.modules[package])})

    return load, names, sorted(homes)

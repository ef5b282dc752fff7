"""Packages whose names are loaded when they are first asked for, and those that an extra brings."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["install", "lazy_names"]


def install(extra: str) -> str:
    """The line that installs an extra, for messages. It names no index, where the name may be somebody else's."""
    return f"`pip install -c constraints.txt '.[{extra}]'` in a clone of private_rl_gym"


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """A package's ``__getattr__``, ``__dir__`` and ``__all__``, so that nothing heavy is loaded before it is needed.

    The names are those that its ``__init__`` imports where ``TYPE_CHECKING``: written down once, and known to type
    checkers. No submodule may bear the name of something that another one holds.

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

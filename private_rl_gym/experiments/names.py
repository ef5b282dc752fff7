"""Names for experiments: environments, boundaries and agents, with a one-line summary of each."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_type_hints

import gymnasium as gym

import private_rl_gym
from private_rl_gym import agents, wrappers

__all__ = [
    "AGENTS",
    "BOUNDARIES",
    "ENVIRONMENTS",
    "PER_STEP",
    "GridError",
    "Named",
    "imported",
    "nearest",
    "plain",
    "source_hash",
]


FROM_PYTHON = {"dpppo": "DPPPO", "dppolicygradient": "DPPolicyGradient", "ppo": "PPO", "a2c": "A2C"}
"""Learners that ``make_private`` takes and grids do not, whose problems are counted."""


class GridError(ValueError):
    """An experiment asks for something that does not exist or is not valid; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Named:
    """An environment, a boundary or an agent, with the name that experiments use.

    Attributes:
        name: Its name in configurations.
        summary: One line of description.
        kind: The class.
        reserved: Options that a configuration cannot set, because they follow from the rest.
    """

    name: str
    summary: str
    kind: type
    reserved: frozenset[str] = frozenset()

    @property
    def options(self) -> dict[str, inspect.Parameter]:
        """The options that a configuration can set, by name."""
        return {name: parameter for name, parameter in parameters_of(self.kind).items() if name not in self.reserved}

    def takes(self, option: str) -> bool:
        """Whether its constructor has such an option, reserved or not."""
        return option in parameters_of(self.kind)

    def check(self, options: Mapping[str, Any], where: str) -> None:
        """Refuse options that do not exist."""
        for name in options:
            if name not in self.options:
                raise GridError(f"{where}: {self.name} has no option {name!r}. {nearest(name, self.options)}")


@cache  # a stack is built for every run of an audit
def parameters_of(kind: type) -> Mapping[str, inspect.Parameter]:
    """The parameters of a constructor, including those of parent classes that get the rest."""
    options: dict[str, inspect.Parameter] = {}
    for parent in inspect.getmro(kind):
        if "__init__" not in parent.__dict__:
            continue
        parameters = inspect.signature(parent.__init__).parameters.values()  # type: ignore[misc]
        hints = _hints(parent.__init__)  # type: ignore[misc]
        for parameter in parameters:
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                annotation = hints.get(parameter.name, Any)
                options.setdefault(parameter.name, parameter.replace(annotation=annotation))
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            break
    options.pop("self", None)
    return MappingProxyType(options)


def _hints(function: Any) -> dict[str, Any]:
    """Annotations as types; ``Any`` for names that are not imported at run time."""

    def resolved(annotation: Any) -> Any:
        try:
            holder = type("Holder", (), {"__annotations__": {"it": annotation}, "__module__": function.__module__})
            return get_type_hints(holder)["it"]
        except NameError:
            return Any

    return {name: resolved(annotation) for name, annotation in inspect.get_annotations(function).items()}


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an error message about an unknown name: the nearest known name, or all of them."""
    names = sorted(known)
    by_lower = {plain(candidate): candidate for candidate in names}
    close = difflib.get_close_matches(plain(name), list(by_lower), n=1, cutoff=0.5)
    if close:
        return f"Did you mean {by_lower[close[0]]!r}?"
    return f"There {'are' if names else 'is nothing'}{' ' + ', '.join(names) if names else ''}."


def plain(name: str) -> str:
    """The letters and digits of a name in lower case, so that all its spellings are equal."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def imported(module: str, name: str) -> Any:
    """An object of a module, which may lie in the current folder. Only for names that a command line gives itself."""
    _look_here()
    return getattr(importlib.import_module(module), name)


def source_hash(module: str) -> str | None:
    """A hash of the source of a module, of a package that of all its files; None if it has no source to be found.

    Modules that it imports are not looked at, so that this is for noticing changes, and no proof that there are none.
    """
    _look_here()
    try:
        spec = importlib.util.find_spec(module)
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
    """Let modules be found in the current folder."""
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))


def _summary(kind: type) -> str:
    return inspect.cleandoc(kind.__doc__ or "").splitlines()[0]


class Catalogue(Mapping[str, Named]):
    """Entries by name, in any spelling: ``dpucbvi``, ``DP-UCBVI`` and ``DPUCBVI`` are the same name."""

    def __init__(self, what: str, entries: Iterable[Named], aliases: Mapping[str, str] | None = None) -> None:
        self.what = what
        self._entries = {entry.name: entry for entry in entries}
        self._found = {plain(name): name for name in self._entries}
        for alias, name in (aliases or {}).items():
            self._found.setdefault(plain(alias), name)

    def __getitem__(self, name: str) -> Named:
        return self._entries[name]

    def __iter__(self) -> Any:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def complete(self, incomplete: str) -> list[tuple[str, str]]:
        """Completions for a shell: names that begin with ``incomplete``, each with its summary."""
        return [(name, self[name].summary) for name in self if plain(name).startswith(plain(incomplete))]

    def find(self, name: Any, where: str) -> Named:
        """The entry with this name; raises ``GridError`` with the nearest name if there is none."""
        key = self._found.get(plain(name)) if isinstance(name, str) else None
        if key is None:
            raise GridError(f"{where}: there is no {self.what} {name!r}. {self._instead(str(name))}")
        return self._entries[key]

    def _instead(self, name: str) -> str:
        """The end of an error message: the nearest name, or how something of somebody else is named."""
        if self.what == "agent" and plain(name) in FROM_PYTHON:
            return (
                "Policy gradients are for environments that cannot be counted, and are used from Python: "
                f"private_rl_gym.make_private({FROM_PYTHON[plain(name)]}, env, epsilon=..., users=...)."
            )
        versions = [one for one in gym.registry if one.rpartition("-v")[0] == name.rpartition("-v")[0] or one == name]
        if self.what == "environment" and versions and "-v" in name:
            return f"Did you mean {versions[-1]!r}?"
        found = nearest(name, self._entries)
        if self.what == "boundary" or found.startswith("Did you mean"):
            return found
        ids = " Any id that Gymnasium knows will do too." if self.what == "environment" else ""
        return f"{found}{ids} One of your own is written as module:object."


def _environments() -> Catalogue:
    entries, aliases = [], {}
    for identity, (module, name) in private_rl_gym.ENVIRONMENTS.items():
        kind = getattr(importlib.import_module(f"private_rl_gym.envs.{module}"), name)
        entries.append(
            Named(identity, _summary(kind), kind, frozenset({"render_mode", "observe_time", "observe_features"}))
        )
        aliases[name] = identity
        aliases[identity.split("/")[1]] = identity
    return Catalogue("environment", entries, aliases)


_GIVEN = frozenset({"env", "users", "seed", "secure", "statistic", "horizon"})

ENVIRONMENTS = _environments()
BOUNDARIES = Catalogue(
    "boundary",
    [Named(short, _summary(kind), kind, _GIVEN) for short, kind in wrappers.BOUNDARIES.items()],
    {kind.__name__: short for short, kind in wrappers.BOUNDARIES.items()},
)
AGENTS = Catalogue(
    "agent",
    [
        Named(
            name,
            _summary(getattr(agents, name)),
            getattr(agents, name),
            frozenset({"policy", "env", "verbose", "tensorboard_log", "seed"}),
        )
        for name in agents.__all__
        if inspect.isclass(getattr(agents, name))
        and issubclass(getattr(agents, name), agents.Agent)
        and not inspect.isabstract(getattr(agents, name))
        and "TabularPolicy" in getattr(agents, name).policies  # grids are of finite problems, whose optimum is known
    ],
)
PER_STEP = Named(wrappers.LDPPerStep.short, _summary(wrappers.LDPPerStep), wrappers.LDPPerStep, _GIVEN)
"""The boundary that sums nothing: for audits, and for no grid."""

"""One entry for each environment, boundary and agent.

An entry has the class, options, colour, theorems, and pictures for the documentation.

* ``ENVIRONMENTS``, ``BOUNDARIES``, ``AGENTS`` - the entries by name; ``PER_STEP`` - the boundary that sums nothing
* ``Catalogue.find`` - an entry by any spelling of its name, or one of a user's own by ``module:object``

A class of a user's own may have the attributes ``color``, ``bounds`` and ``knows``, which are those of its entry.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import gymnasium as gym

import private_rl_gym
from private_rl_gym import agents, wrappers
from private_rl_gym.envs.finite import FiniteModel
from private_rl_gym.lab.options import Option, arguments_of, is_kind, options_of
from private_rl_gym.lab.papers import bounds
from private_rl_gym.lab.references import GridError, Reference, refer, short

__all__ = [
    "AGENTS",
    "BOUNDARIES",
    "ENVIRONMENTS",
    "EXACT",
    "INK",
    "PER_STEP",
    "AgentEntry",
    "BoundaryEntry",
    "Catalogue",
    "Entry",
    "EnvironmentEntry",
    "GridError",
    "Regret",
    "nearest",
    "plain",
]

INK, EXACT = "#1b1b1b", "#009e73"
"""The colour of text, and that of learning without privacy."""

Regret = Callable[[int, int, int, int, float], float]
"""A bound as a function of H, S, A, users and epsilon."""


@dataclass(frozen=True)
class Entry:
    """An environment, a boundary or an agent.

    Attributes:
        name: Its name in configurations.
        kind: The class.
    """

    name: str
    kind: type
    reserved: ClassVar[frozenset[str]] = frozenset()
    """Options that a configuration cannot set, because they follow from the rest."""
    base: ClassVar[type | None] = None
    """The class that those of a user's own are subclasses of."""
    stated: ClassVar[tuple[str, ...]] = ()
    """Attributes of a user's own class that its entry has, too."""

    @property
    def summary(self) -> str:
        """One line of description."""
        return inspect.cleandoc(self.kind.__doc__ or "").splitlines()[0]

    @property
    def options(self) -> Mapping[str, Option]:
        """The options that a configuration can set, by name."""
        return {name: option for name, option in options_of(self.kind).items() if name not in self.reserved}

    def takes(self, option: str) -> bool:
        """Return whether the constructor has such an option, reserved or not."""
        return option in options_of(self.kind)

    def build(self, *positional: Any, **options: Any) -> Any:
        """Return a new object with the options of a configuration."""
        return self.kind(*positional, **arguments_of(self.kind, options))

    def check(self, options: Mapping[str, Any], where: str) -> None:
        """Raise if an option does not exist."""
        for name in options:
            if name not in self.options:
                raise GridError(f"{where}: {self.name} has no option {name!r}. {nearest(name, self.options)}")

    def referred(self, options: Mapping[str, Any], where: str, code: Collection[str] | None = ()) -> dict[str, Any]:
        """Return options of this entry in which names of classes are references."""
        known, usual = self.options, Option()
        return {name: known.get(name, usual).reference(one, f"{where}.{name}", code) for name, one in options.items()}

    @classmethod
    def own(cls, reference: Reference, where: str) -> Any:
        """Return the entry of a user's own class, with what its attributes state."""
        kind = reference.load()
        if cls.base is not None and not is_kind(kind, cls.base):
            package = ".".join(cls.base.__module__.split(".")[:2])
            raise GridError(f"{where} {reference}: it must be a subclass of {package}.{cls.base.__name__}.")
        return cls(reference, kind, **{name: getattr(kind, name) for name in cls.stated if hasattr(kind, name)})


@dataclass(frozen=True)
class EnvironmentEntry(Entry):
    """An environment: of this package, of Gymnasium, or a user's own.

    A user's own environment is a function or a class.

    Attributes:
        shapes: Options whose exact values the docs list.
        steps: The number of optimal actions before the picture in the docs.
    """

    kind: Any
    shapes: tuple[Mapping[str, Any], ...] = ()
    steps: int = 0
    reserved = frozenset({"render_mode", "observe_time", "observe_features"})

    @property
    def packaged(self) -> bool:
        """Whether it is part of this package.

        Such an environment has its true model, and checks its options.
        """
        return self.name in private_rl_gym.ENVIRONMENTS

    @property
    def title(self) -> str:
        """Its name in figures."""
        return str(self.kind.__name__) if self.packaged else short(self.name)

    @property
    def options(self) -> Mapping[str, Option]:
        """The options that a configuration can set.

        They have any name, if the constructor checks them.
        """
        return super().options if self.packaged else _AnyOptions()

    def check(self, options: Mapping[str, Any], where: str) -> None:
        """Raise if an option does not exist, or a range of rewards is wrong.

        The range has to be a list in a list.
        """
        if self.packaged:
            super().check(options, where)
            return
        given = options.get("reward_range", [])
        for value in given if isinstance(given, list) else [given]:
            if not (isinstance(value, list) and len(value) == 2):
                raise GridError(
                    f"{where}.reward_range has the value {value!r}: write it as [[least, largest]], because each value "
                    "in a list is a run of its own."
                )

    def model(self, **options: Any) -> FiniteModel:
        """Return the true model, which is known of environments of this package."""
        if not self.packaged:
            raise GridError(f"The true model of {str(self.name)!r} is not known: name an environment of this package.")
        model: FiniteModel = self.kind(**options).model
        return model


class _AnyOptions(dict[str, Option]):
    """An option of any type for every name."""

    def __missing__(self, name: str) -> Option:
        return Option()


@dataclass(frozen=True)
class BoundaryEntry(Entry):
    """A boundary.

    Attributes:
        color: Its colour, where one agent is seen under several boundaries.
        style: The line style of its trust model.
    """

    color: str | None = None
    style: Any = "-"
    reserved = frozenset({"env", "users", "seed", "secure", "statistic", "horizon"})
    base, stated = wrappers.Boundary, ("color",)


@dataclass(frozen=True)
class AgentEntry(Entry):
    """An agent.

    Attributes:
        color: Its colour; None for the next that is free in a figure.
        knows: Knowledge that it has of every problem: ``"nothing"``, or the ``"features"`` of a mixture.
        bounds: Upper bounds on its regret, by boundary.
        dash: The line style of its regret without privacy, where lines are all of one colour.
    """

    color: str | None = None
    knows: str = "nothing"
    bounds: Mapping[str, Regret] = field(default_factory=dict)
    dash: Any = "-."
    reserved = frozenset({"policy", "env", "verbose", "tensorboard_log", "seed"})
    base, stated = agents.Agent, ("color", "knows", "bounds")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message about an unknown name.

    It has the nearest known name, or all names.
    """
    names = sorted(known)
    by_lower = {plain(candidate): candidate for candidate in names}
    close = difflib.get_close_matches(plain(name), list(by_lower), n=1, cutoff=0.5)
    if close:
        return f"Did you mean {by_lower[close[0]]!r}?"
    return f"There {'are' if names else 'is nothing'}{' ' + ', '.join(names) if names else ''}."


def plain(name: str) -> str:
    """Return the letters and digits of a name in lower case.

    All spellings of a name are equal then.
    """
    return "".join(letter for letter in name.lower() if letter.isalnum())


Kind = TypeVar("Kind", bound=Entry)


class Catalogue(Mapping[str, Kind], Generic[Kind]):
    """Entries by name, in any spelling.

    ``dpucbvi``, ``DP-UCBVI`` and ``DPUCBVI`` are the same name.
    """

    def __init__(self, what: str, entries: Iterable[Kind]) -> None:
        self.what = what
        self._entries = {entry.name: entry for entry in entries}
        self._found = {plain(name): name for name in self._entries}
        for name, entry in self._entries.items():
            for alias in (entry.kind.__name__, name.rpartition("/")[2]):
                self._found.setdefault(plain(alias), name)

    def __getitem__(self, name: str) -> Kind:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def complete(self, incomplete: str) -> list[tuple[str, str]]:
        """Return completions for a shell: matching names, each with its summary.

        They begin with ``incomplete``.
        """
        return [(name, self[name].summary) for name in self if plain(name).startswith(plain(incomplete))]

    def find(self, name: Any, where: str, code: Collection[str] | None = ()) -> Kind:
        """Return the entry with this name.

        Args:
            name: A name of this package, in any spelling; ``module:object``; of environments also an id that Gymnasium
                knows.
            where: The place of the name, for errors.
            code: The modules that may be imported; None if the user has typed the name.

        Raises:
            GridError: If there is no such entry, with the nearest name; or if its module may not be imported.
        """
        kind = type(next(iter(self._entries.values())))
        if isinstance(name, str) and ":" in name:
            return kind.own(refer(name, code, where), where)  # type: ignore[no-any-return]
        if isinstance(name, str) and kind is EnvironmentEntry and name in gym.registry and name not in self:
            return kind(name, None)  # type: ignore[arg-type]
        key = self._found.get(plain(name)) if isinstance(name, str) else None
        if key is None:
            raise GridError(f"{where}: there is no {self.what} {name!r}. {self._instead(str(name))}")
        return self._entries[key]

    def _instead(self, name: str) -> str:
        """Return the end of an error message about an unknown name.

        It has the nearest name, or the way to name a user's own part.
        """
        if self.what == "agent" and plain(name) in FROM_PYTHON:
            return (
                "Policy gradients are for environments that cannot be counted, and are used from Python: "
                f"private_rl_gym.make_private({FROM_PYTHON[plain(name)]}, env, epsilon=..., users=...)."
            )
        versions = [one for one in gym.registry if one.rpartition("-v")[0] == name.rpartition("-v")[0] or one == name]
        if self.what == "environment" and versions and "-v" in name:
            return f"Did you mean {versions[-1]!r}?"
        found = nearest(name, self._entries)
        if found.startswith("Did you mean"):
            return found
        ids = " Any id that Gymnasium knows will do too." if self.what == "environment" else ""
        return f"{found}{ids} One of your own is written as module:object."


FROM_PYTHON = {"dpppo": "DPPPO", "dppolicygradient": "DPPolicyGradient", "ppo": "PPO", "a2c": "A2C"}
"""Learners that ``make_private`` takes and grids do not, whose problems are counted."""

# Entries -------------------------------------------------------------------------------------------------------------


def _environment(name: str, steps: int, *shapes: Mapping[str, Any]) -> EnvironmentEntry:
    module, kind = private_rl_gym.ENVIRONMENTS[name]
    made = getattr(importlib.import_module(f"private_rl_gym.envs.{module}"), kind)
    return EnvironmentEntry(name, made, ({}, *shapes), steps)


_RIVERS = {"variant": "strehl-littman"}, {"variant": "open-banks"}

ENVIRONMENTS = Catalogue(
    "environment",
    [
        _environment("PrivateRL/RiverSwim-v0", 10, *_RIVERS, {"horizon": 50}),
        _environment("PrivateRL/HardMDP-v0", 1, {"instance": (0, 0, 0, 0)}, {"alpha": 0.5}),
        _environment("PrivateRL/HardBandit-v0", 1, {"instance": 0}),
        _environment("PrivateRL/LinearMixture-v0", 2, {"instance_seed": 1}, {"stationary": False}, {"n_states": 200}),
        _environment("PrivateRL/HardLinearMixture-v0", 2, {"episodes": 1_000}, {"gap": 0.02}),
        _environment("PrivateRL/RiverSwimMixture-v0", 10, *_RIVERS),
        _environment("PrivateRL/Garnet-v0", 3, {"instance_seed": 1}, {"stationary": False}),
        _environment(
            "PrivateRL/FrozenLake-v0", 3, {"horizon": 100}, {"is_slippery": False}, {"map_name": "8x8", "horizon": 100}
        ),
        _environment("PrivateRL/Cohort-v0", 2, {"horizon": 20}),
    ],
)


def _boundary(kind: type[wrappers.Boundary], color: str, style: Any = "-") -> BoundaryEntry:
    return BoundaryEntry(kind.short, kind, color, style)


BOUNDARIES = Catalogue(
    "boundary",
    [
        _boundary(wrappers.OpenBillboard, EXACT),
        _boundary(wrappers.JDPBillboard, "#1f77c0"),
        _boundary(wrappers.LDPUserSide, "#d55e00", (0, (6, 1.5, 1, 1.5, 1, 1.5))),  # dotted is never learning
        _boundary(wrappers.SDPShuffler, "#8b6ad8", "-."),
    ],
)
PER_STEP = BoundaryEntry(wrappers.LDPPerStep.short, wrappers.LDPPerStep)
"""The boundary that sums nothing: for audits, and for no grid."""


def _agent(name: str, color: str, **about: Any) -> AgentEntry:
    return AgentEntry(name, getattr(agents, name), color, **about)


def _central(regret: Callable[..., float], *, local: bool = False) -> dict[str, Regret]:
    """Return a theorem about a trusted curator, by boundary.

    If ``local``, the theorem is also stated about reports of users.
    """
    return {"open": regret, "jdp": regret, **({"ldp": partial(regret, local=True)} if local else {})}


AGENTS = Catalogue(
    "agent",
    [
        _agent("APEVE", EXACT, bounds={"open": bounds.sdp_pe_regret}),
        _agent("DPAPVI", "#6f7fd0"),
        _agent("DPSE", "#9a6a2f", dash=":"),
        _agent("DPUCBVI", "#1f77c0", bounds=_central(bounds.dp_ucbvi_regret, local=True)),
        _agent("FrugalUCBVI", INK, dash="--"),
        _agent("LDPOBI", "#6f8400", bounds={"ldp": bounds.ldp_obi_regret}),
        _agent("LDPUCRLVTR", "#4a7fb0", knows="features"),
        _agent("OPPO", EXACT, knows="features", dash=(0, (2, 1))),
        _agent("PSRL", "#8b6ad8"),
        _agent("PUCB", "#c2569b", bounds=_central(bounds.pucb_regret)),
        _agent("PrivateLinOptPO", "#7d6b5d", knows="features"),
        _agent("PrivateLinOptVI", "#5b8c1f", knows="features"),
        _agent("PrivateUCBPO", "#a8791c", bounds=_central(bounds.private_ucbpo_regret, local=True)),
        _agent("PrivateUCBVI", "#d55e00", bounds=_central(bounds.private_ucbvi_regret, local=True)),
        _agent("RLSVI", "#b0503c"),
        _agent("SDPPE", "#0f95a8", bounds={"open": bounds.sdp_pe_regret, "sdp": bounds.sdp_pe_regret}),
        _agent("UBEV", EXACT, bounds={"open": bounds.pucb_regret}),
        _agent("UCBVI", EXACT, bounds={"open": bounds.dp_ucbvi_regret}, dash="-."),
        _agent("UCRLVTR", EXACT, knows="features", dash=(0, (9, 2))),
    ],
)
"""Agents of grids. Their problems are finite, so that the optimum is known. Bounds in d are not drawn."""

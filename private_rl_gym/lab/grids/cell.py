"""The configuration of one run, its name, and the seeds of its streams."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from private_rl_gym.lab.references import Reference, package_hash, short, source_hash

__all__ = ["FORMAT", "Cell", "Choice", "curve_name", "digest"]

FORMAT = 2
"""Format of records. It changes when a cell computes something else, or a record has another meaning."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A name with options, such as an agent and its parameters."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Its name in figures."""
        return str(short(self.name))

    @property
    def references(self) -> dict[str, Reference]:
        """The names of a user's own code, of the part and its options."""
        named = {"name": self.name, **self.options}
        return {key: value for key, value in named.items() if isinstance(value, Reference)}

    def to_dict(self) -> dict[str, Any]:
        """Return the name and the options in one dictionary, for JSON."""
        return {"name": self.name, **self.options}


@dataclass(frozen=True)
class Cell:
    """One run: a pure function of this configuration.

    Attributes:
        environment, boundary, agent: The parts of the stack, each with its options.
        users: Number of users.
        seed: Number of the run. The seeds of all random streams are derived from the configuration.
        alpha: A policy whose value is more than this below the best counts as a mistake; None for no count.
        base: The name of the curve in figures, without axes; not part of the configuration.
        axes: Values that vary in the grid, by path, such as ``"boundary.epsilon"``; not part of the configuration.
    """

    environment: Choice
    boundary: Choice
    agent: Choice
    users: int
    seed: int
    alpha: float | None = None
    base: str = field(default="", compare=False)
    axes: Mapping[str, Any] = field(default_factory=dict, compare=False, hash=False)

    @property
    def label(self) -> str:
        """The name of the curve in figures."""
        return curve_name(self.base, self.axes)

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as a dictionary."""
        return {
            "environment": self.environment.to_dict(),
            "boundary": self.boundary.to_dict(),
            "agent": self.agent.to_dict(),
            "users": self.users,
            "seed": self.seed,
            **({} if self.alpha is None else {"alpha": self.alpha}),
        }

    @cached_property
    def key(self) -> str:
        """The hash of the configuration and of everything that determines the result.

        This includes the source of this package, the format of records, and the code of others.
        """
        about = {"cell": self.to_dict(), "package": package_hash(), "format": FORMAT}
        return digest({**about, "code": self._code} if self._code else about).hex()[:32]

    @property
    def _code(self) -> dict[str, str]:
        """Hashes of the modules outside this package whose code is named."""
        parts = (self.environment, self.boundary, self.agent)
        modules = {name.module for part in parts for name in part.references.values() if name.outside}
        return {module: code for module in sorted(modules) if (code := source_hash(module)) is not None}

    @property
    def own(self) -> tuple[Reference, ...]:
        """The user's own boundary, agent, and classes among their options."""
        return (*self.boundary.references.values(), *self.agent.references.values())

    def stream(self, role: str) -> int:
        """Return the seed of a random stream: ``"environment"``, ``"agent"`` or ``"noise"``.

        Users depend only on the environment, their number and the seed, so that all learners meet the same users.
        """
        basis = self.to_dict()
        if role == "environment":
            basis = {key: basis[key] for key in ("environment", "users", "seed")}
        entropy = int.from_bytes(digest(basis), "big")
        words = np.random.SeedSequence(entropy, spawn_key=tuple(role.encode())).generate_state(4)
        return int.from_bytes(words.tobytes(), "little")

    @property
    def epsilon(self) -> float | None:
        """The requested epsilon, or None."""
        epsilon = self.boundary.options.get("epsilon")
        return None if epsilon is None else float(epsilon)


def curve_name(base: str, axes: Mapping[str, Any]) -> str:
    """Return the name ``base`` with the values of all axes."""
    named = dict(axes)
    users = named.pop("users", None)
    parts = [f", {path.rpartition('.')[2]} = {_written(value)}" for path, value in named.items()]
    return base + "".join(parts) + ("" if users is None else f", {users} users")


def _written(value: Any) -> str:
    if not isinstance(value, float):
        return str(short(value))
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)


def digest(content: Any) -> bytes:
    """Return a hash of JSON content, which ignores the order of keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()).digest()

"""The configuration of one run, its name, and the seeds that follow from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

import private_rl_gym
from private_rl_gym.experiments.names import source_hash

__all__ = ["FORMAT", "Cell", "Choice", "curve_name", "digest"]

FORMAT = 2
"""Format of records. It changes when a cell computes something else, or a record has another meaning."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A name with options, such as an agent and its parameters."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The name and the options in one dictionary, for JSON."""
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
        """The configuration as a dictionary."""
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
        """The hash of configuration, package version, environment version (in its id), format, and code of others."""
        about = {"cell": self.to_dict(), "package": private_rl_gym.__version__, "format": FORMAT}
        return digest({**about, "code": self._code} if self._code else about).hex()[:32]

    @property
    def _code(self) -> dict[str, str]:
        """Hashes of the modules outside this package that are named as ``module:object``."""
        named = {choice.name.partition(":")[0] for choice in (self.environment, self.agent) if ":" in choice.name}
        others = sorted(module for module in named if module.partition(".")[0] != private_rl_gym.__name__)
        return {module: code for module in others if (code := source_hash(module)) is not None}

    def stream(self, role: str) -> int:
        """The seed of one stream of randomness: ``"environment"``, ``"agent"`` or ``"noise"``.

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


def curve_name(base: str, axes: Mapping[str, Any], without: str | None = None) -> str:
    """The name ``base`` with the values of all axes except ``without``."""
    named = {path: value for path, value in axes.items() if path != without}
    users = named.pop("users", None)
    parts = [f", {path.rpartition('.')[2]} = {_short(value)}" for path, value in named.items()]
    return base + "".join(parts) + ("" if users is None else f", {users} users")


def _short(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)


def digest(content: Any) -> bytes:
    """A hash of JSON content that does not depend on the order of its keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()).digest()

"""The configuration of an audit, and the stack that it describes."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import gymnasium as gym

from private_rl_gym.agents.base import Agent
from private_rl_gym.lab.audits.canaries import canaries
from private_rl_gym.lab.audits.users import Maker, board_of, quiet, statistic_there, two_rooms
from private_rl_gym.lab.grids.cell import Choice, digest
from private_rl_gym.lab.grids.run import loaded
from private_rl_gym.lab.options import is_kind
from private_rl_gym.lab.planner.problems import stand_in
from private_rl_gym.lab.references import GridError, Reference, refer
from private_rl_gym.lab.registry import AGENTS, BOUNDARIES, ENVIRONMENTS, PER_STEP, BoundaryEntry, Entry, plain
from private_rl_gym.wrappers import Boundary, LDPPerStep

__all__ = [
    "ATTACKS",
    "OF_NETWORKS",
    "ON_DYNAMICS",
    "ON_GRADIENTS",
    "STATISTICS",
    "AuditConfig",
    "as_built",
    "entry_of",
    "environment_of",
    "maker",
    "per_step",
    "target_of",
]

STATISTICS = ("tabular", "linear", "reports", "staged-reports", "gradient", "dynamics")

OF_NETWORKS = ("gradient", "dynamics")
"""Statistics of users who run networks. Their attacks are white boxes."""

ATTACKS = ("one-release", "stream", "late", "black-box", "one-run", "hostile", "early")
"""Names of all attacks on sums of counts, of reports and of moments.

In this order: white box on one user's release, on the stream after a user, on the stream before; black box on an agent;
one run; policies with actions that do not exist; a batch that is closed early.
"""

ON_GRADIENTS = ("one-release", "stream", "others", "parts", "critic", "local-steps", "hostile")
"""Names of all attacks on gradients, which are white boxes.

In this order: one user's gradient, the stream after a user, a batch of several; a report of all parts, of the value
network's gradient, of several steps; and objectives with numbers as small and as large as there are.
"""

ON_DYNAMICS = ("one-release", "stream", "others", "scales", "centre", "hostile")
"""Names of all attacks on corrections of a model, which are white boxes.

In this order: one user's step, the stream after a user, a batch of several; votes on scales, means; and questions with
numbers as small and as large as there are.
"""


@dataclass(frozen=True)
class AuditConfig:
    """A stack and the attacks on it.

    An audit is a pure function of this configuration.

    Attributes:
        boundary: Name and options of the boundary; ``per-step`` is ``LDPPerStep``.
        inside: A boundary inside that one, or None.
        agent: The agent that learns, for the black box; None to audit mechanisms alone.
        environment: The environment of the users; by default two rooms, in which two users may share no count. One
            that Gymnasium knows, or ``module:object``, is audited on its table of transitions, or, where it has none,
            on rooms of its sizes.
        target: A boundary or agent from other code, as ``module:object``.
        statistic: The statistic that the boundary sums, for audits without an agent. Of ``"reports"`` and
            ``"staged-reports"``, users are asked for as many as they take steps; of ``"gradient"``, for the objectives
            of the attacks.
        horizon: Number of steps in the two rooms; users who report gradients take six at least.
        users: Number of users in the stream; the agent meets twice as many.
        runs: Number of runs of each world for white boxes. A fifth of it is that for the black box, and a tenth of it
            the number of users in the one run.
        attacks: The attacks to run, of ``ATTACKS`` or, on gradients, of ``ON_GRADIENTS``; by default those that fit.
        neighbours: The method that chooses the two users.
        confidence: The probability with which all bounds hold together.
        seed: Seed of all random draws.
        make: The target itself, in place of its name.
    """

    boundary: Choice = field(default_factory=lambda: Choice("jdp", {"epsilon": 1.0, "delta": 1e-6}))
    inside: Choice | None = None
    agent: Choice | None = None
    environment: Choice | None = None
    target: str | None = None
    statistic: str = "tabular"
    horizon: int = 1
    users: int = 4
    runs: int = 4_000
    attacks: tuple[str, ...] = ()
    neighbours: str = "searched"
    confidence: float = 0.95
    seed: int = 0
    make: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as a dictionary, for JSON."""
        content = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "make"}
        for name in ("boundary", "inside", "agent", "environment"):
            content[name] = None if content[name] is None else content[name].to_dict()
        return content | {"attacks": list(self.attacks)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], code: Collection[str] = ()) -> AuditConfig:
        """Return the configuration in a dictionary that ``to_dict`` has made.

        It may name code only of the modules in ``code``.
        """
        if not isinstance(content, Mapping):
            raise GridError("The configuration of an audit must be a table, as a report of an audit has it.")
        fields = dict(content)
        for name in fields:
            if name not in cls.__dataclass_fields__ or name == "make":
                raise GridError(
                    f"The configuration of an audit has no {name!r}. Give the configuration in a report of an audit."
                )
        for name in ("boundary", "inside", "agent", "environment"):
            if fields.get(name) is not None:
                if not isinstance(fields[name], Mapping) or "name" not in fields[name]:
                    raise GridError(f"{name} must be a table with a name, and options beside it.")
                options = dict(fields[name])
                entry = entry_of(name, options.pop("name"), code)
                fields[name] = Choice(entry.name, entry.referred(options, name, code))
        if isinstance(fields.get("target"), str) and ":" in fields["target"]:
            refer(fields["target"], code, "target")
        attacks = fields.get("attacks", ())
        if not isinstance(attacks, list | tuple):
            raise GridError(f"attacks is {attacks!r}: it must be a list of names.")
        config = cls(**{**fields, "attacks": tuple(attacks)})
        config._check_types()
        return config

    def _check_types(self) -> None:
        """Raise if a value has a wrong type."""
        kinds: dict[str, tuple[type, ...]] = dict.fromkeys(("horizon", "users", "runs", "seed"), (int,))
        kinds |= {"statistic": (str,), "neighbours": (str,), "confidence": (int, float), "target": (str, type(None))}
        for name, allowed in kinds.items():
            if type(getattr(self, name)) not in allowed:
                raise GridError(f"{name} is {getattr(self, name)!r}: it must be {allowed[0].__name__}.")
        if not isinstance(self.attacks, tuple) or not all(isinstance(name, str) for name in self.attacks):
            raise GridError("attacks must be names.")
        for part in ("boundary", "inside", "agent", "environment"):
            choice = getattr(self, part)
            if choice is not None and not (
                isinstance(choice, Choice)
                and isinstance(choice.name, str)
                and isinstance(choice.options, Mapping)
                and all(map(_plain_value, choice.options.values()))
            ):
                raise GridError(f"{part} must be a name, with options that are numbers, lists, strings, true or false.")

    def __hash__(self) -> int:
        return hash((digest(self.to_dict()), id(self.make)))

    def check(self) -> None:
        """Raise if a value cannot be run."""
        self._check_types()
        networks = self.statistic in OF_NETWORKS
        fitting, where = {
            "gradient": (ON_GRADIENTS, " on gradients"),
            "dynamics": (ON_DYNAMICS, " on dynamics"),
        }.get(self.statistic, (ATTACKS, ""))
        for name in self.attacks:
            if name not in fitting:
                raise GridError(f"There is no attack {name!r}{where}: choose of {', '.join(fitting)}.")
        if networks and per_step(self.boundary):
            raise GridError(f"statistic is {self.statistic!r}, and per-step publishes no sums: choose jdp, ldp or sdp.")
        for part in ("agent", "environment"):
            if networks and getattr(self, part) is not None:
                raise GridError(
                    f"An audit with statistic={self.statistic!r} makes its own users: leave the {part} out."
                )
        for name, least in (("users", 1), ("runs", 200), ("horizon", 1)):
            if getattr(self, name) < least:
                raise GridError(f"{name} is {getattr(self, name)}: it must be {least} at least.")
        if not 0.5 <= self.confidence < 1.0:
            raise GridError(f"confidence is {self.confidence}: it lies in [0.5, 1).")
        if self.statistic not in STATISTICS:
            raise GridError(f"statistic is {self.statistic!r}: choose one of {', '.join(STATISTICS)}.")
        if "black-box" in self.attacks and self.agent is None and self.target is None and self.make is None:
            raise GridError("The black box needs an agent: name one.")


def _plain_value(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(isinstance(number, int | float) for number in value)
    return value is None or isinstance(value, bool | int | float | str)


# Building the stack --------------------------------------------------------------------------------------------------


def target_of(config: AuditConfig) -> Any:
    """Return the target, or None."""
    if config.make is not None:
        return config.make
    if config.target is None:
        return None
    if ":" not in config.target:
        raise GridError(f"target is {config.target!r}: write it as module:object.")
    target = Reference(config.target).load()
    if target is None:
        raise GridError(f"target {config.target!r} cannot be loaded: its module has no such object.")
    if not callable(target):
        raise GridError(
            f"target {config.target!r} is a {type(target).__name__}: it must be a boundary's or an agent's class, or a "
            "function (env, users, seed) that returns one."
        )
    return target


def as_built(config: AuditConfig) -> AuditConfig:
    """Return the configuration with the statistic of the target's own boundary.

    A function may build a boundary for gradients or dynamics, although the configuration does not name them.
    """
    target = target_of(config)
    if target is None or inspect.isclass(target) or config.statistic != "tabular" or config.environment is not None:
        return config
    try:
        board = board_of(maker(config)(environment_of(config, 2), 1, 0, config.statistic))
    except Exception:  # noqa: BLE001 - other code may raise anything; the attacks say what
        return config
    name = getattr(getattr(board, "statistic", None), "name", None)
    return replace(config, statistic=name) if name in OF_NETWORKS else config


def entry_of(part: str, name: Any, code: Collection[str] = ()) -> Entry:
    """Return the entry of a part of the stack."""
    if part == "environment":
        return ENVIRONMENTS.find(name, part, code)
    if part == "agent":
        return AGENTS.find(name, part, code)
    return (
        PER_STEP if isinstance(name, str) and plain(name) == plain(PER_STEP.name) else BOUNDARIES.find(name, part, code)
    )


def maker(config: AuditConfig) -> Maker:
    """Return the function that builds the stack of one run."""
    target = target_of(config)
    if target is not None and not is_kind(target, Agent) and not is_kind(target, gym.Wrapper):
        return lambda env, users, seed, _: quiet(lambda: target(env, users=users, seed=seed))
    agent: Any = target if is_kind(target, Agent) else None
    if agent is None and config.agent is not None:
        agent = entry_of("agent", config.agent.name).kind
    options = {} if config.agent is None else loaded(config.agent.options)
    boundary, inside = config.boundary, config.inside
    outer = entry_of("boundary", boundary.name)
    if target is None:
        outer.check(boundary.options, "boundary")
    elif is_kind(target, gym.Wrapper):
        outer = BoundaryEntry(outer.name, target)
    inner = None if inside is None else entry_of("inside", inside.name)
    if inner is not None and inside is not None:
        inner.check(inside.options, "inside")

    def build(env: gym.Env[Any, Any], users: int, seed: int, statistic: Any) -> Any:
        summed = statistic if agent is None else agent.statistic
        if inner is not None and inside is not None:
            env, summed = _boundary(inner, inside.options, env, users, seed, summed), "tabular"
        board = _boundary(outer, boundary.options, env, users, seed, summed)
        return board if agent is None else agent("TabularPolicy", board, seed=seed, **options)

    return lambda *stack: quiet(lambda: build(*stack))  # what printed constants really cost is in the ledger


def _boundary(
    entry: Entry, given: Mapping[str, Any], env: gym.Env[Any, Any], users: int, seed: int, statistic: Any
) -> Any:
    options = loaded(given)
    if is_kind(entry.kind, LDPPerStep):
        return entry.build(env, seed=seed, **{k: v for k, v in options.items() if not (k == "delta" and v == 0.0)})
    usual = entry.options.get("batch_size")
    if usual is not None and usual.default > 1:  # batches, of which a stream of few users has none
        options["batch_size"] = max(1, min(options.get("batch_size", -(-users // 2)), users))
    if statistic != "tabular" and not isinstance(env, Boundary):
        options["statistic"] = statistic_there(statistic, env)
    if entry.takes("seed"):
        options["seed"] = seed
    return entry.build(env, users=users, **options)


def per_step(choice: Choice) -> bool:
    """Return whether the choice is ``LDPPerStep``, which publishes no sums."""
    return plain(choice.name) == plain(PER_STEP.name)


def environment_of(config: AuditConfig, n_actions: int, stages: int = 1) -> gym.Env[Any, Any]:
    """Return the environment of the users; two rooms have at least ``stages`` stages.

    Where users report each cell once, there is an action for every stage, so that no report is spared. Users who run
    networks are decided by their seeds.
    """
    if config.statistic in OF_NETWORKS:
        return canaries(config.horizon, 1 if config.statistic == "gradient" else 2)
    if config.environment is None:
        stages = max(config.horizon, stages)
        return two_rooms(stages, max(n_actions, stages) if config.statistic.endswith("reports") else n_actions)
    entry, options = ENVIRONMENTS.find(config.environment.name, "environment"), config.environment.options
    if not entry.packaged:
        return stand_in(entry.name, options)
    entry.check(options, "environment")
    return gym.make(entry.name, **options)

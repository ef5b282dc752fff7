"""The configuration of an audit, and the stack that it describes."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import gymnasium as gym

from private_rl_gym.agents.base import Agent
from private_rl_gym.experiments.auditing.canaries import canaries
from private_rl_gym.experiments.auditing.users import Maker, board_of, statistic_there, two_rooms
from private_rl_gym.experiments.config import Choice, digest
from private_rl_gym.experiments.foreign import agent_named, is_foreign
from private_rl_gym.experiments.names import BOUNDARIES, ENVIRONMENTS, PER_STEP, GridError, imported, plain
from private_rl_gym.experiments.problems import stand_in
from private_rl_gym.wrappers import Boundary, LDPPerStep

__all__ = [
    "ATTACKS",
    "ON_GRADIENTS",
    "AuditConfig",
    "as_built",
    "environment_of",
    "is_kind",
    "maker",
    "per_step",
    "target_of",
]

STATISTICS = ("tabular", "linear", "reports", "staged-reports", "gradient")

ATTACKS = ("one-release", "stream", "late", "black-box", "one-run", "hostile", "early")
"""Names of all attacks on sums of counts, of reports and of moments.

In this order: white box on one user's release, on a stream after her, on a stream before her; black box on an agent;
one run; policies with actions that do not exist; a batch that is closed early.
"""

ON_GRADIENTS = ("one-release", "stream", "others", "parts", "critic", "local-steps", "hostile")
"""Names of all attacks on gradients, which are white boxes.

In this order: one user's gradient, a stream after her, a batch of others with her; a report of all parts, of the value
network's gradient, of several steps; and objectives with numbers as small and as large as there are.
"""


@dataclass(frozen=True)
class AuditConfig:
    """A stack and attacks on it: an audit is a pure function of this configuration.

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
        """The configuration, for JSON."""
        content = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "make"}
        for name in ("boundary", "inside", "agent", "environment"):
            content[name] = None if content[name] is None else content[name].to_dict()
        return content | {"attacks": list(self.attacks)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> AuditConfig:
        """The configuration in a dictionary that ``to_dict`` has made."""
        if not isinstance(content, Mapping):
            raise GridError("The configuration of an audit is a table: one that an audit wrote down.")
        fields = dict(content)
        for name in fields:
            if name not in cls.__dataclass_fields__ or name == "make":
                raise GridError(f"An audit has no {name!r}: its configuration is one that an audit wrote down.")
        for name in ("boundary", "inside", "agent", "environment"):
            if fields.get(name) is not None:
                if not isinstance(fields[name], Mapping) or "name" not in fields[name]:
                    raise GridError(f"{name} must be a table with a name, and options beside it.")
                options = dict(fields[name])
                fields[name] = Choice(options.pop("name"), options)
        attacks = fields.get("attacks", ())
        if not isinstance(attacks, list | tuple):
            raise GridError(f"attacks is {attacks!r}: it must be a list of names.")
        config = cls(**{**fields, "attacks": tuple(attacks)})
        config._check_types()
        return config

    def _check_types(self) -> None:
        """Refuse values of a wrong type."""
        kinds: dict[str, tuple[type, ...]] = {
            **dict.fromkeys(("horizon", "users", "runs", "seed"), (int,)),
            **dict.fromkeys(("statistic", "neighbours"), (str,)),
            "confidence": (int, float),
            "target": (str, type(None)),
        }
        for name, allowed in kinds.items():
            if type(getattr(self, name)) not in allowed:
                raise GridError(f"{name} is {getattr(self, name)!r}: it must be {allowed[0].__name__}.")
        if not all(isinstance(name, str) for name in self.attacks):
            raise GridError("attacks must be names.")
        for part in ("boundary", "inside", "agent", "environment"):
            choice = getattr(self, part)
            if choice is not None and not (
                isinstance(choice.name, str) and all(map(_plain_value, choice.options.values()))
            ):
                raise GridError(f"{part} must be a name, with options that are numbers, lists, strings, true or false.")

    def __hash__(self) -> int:
        return hash((digest(self.to_dict()), id(self.make)))

    def check(self) -> None:
        """Refuse values that cannot be run."""
        self._check_types()
        gradients = self.statistic == "gradient"
        fitting, where = (ON_GRADIENTS, " on gradients") if gradients else (ATTACKS, "")
        for name in self.attacks:
            if name not in fitting:
                raise GridError(f"There is no attack {name!r}{where}: choose of {', '.join(fitting)}.")
        if gradients and per_step(self.boundary):
            raise GridError("statistic is 'gradient', and per-step sums nothing: name jdp, ldp or sdp.")
        for part in ("agent", "environment"):
            if gradients and getattr(self, part) is not None:
                raise GridError(
                    f"statistic='gradient' audits what a boundary publishes of users made for it: leave the {part} out."
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
    """The target, or None."""
    if config.make is not None:
        return config.make
    if config.target is None:
        return None
    module, colon, name = config.target.partition(":")
    if not colon:
        raise GridError(f"target is {config.target!r}: write it as module:object.")
    try:
        target = imported(module, name)
    except (ImportError, AttributeError) as error:
        raise GridError(f"target {config.target!r} cannot be loaded. {type(error).__name__}: {error}") from None
    if not callable(target):
        raise GridError(
            f"target {config.target!r} is a {type(target).__name__}: it must be a boundary's or an agent's class, or a "
            "function (env, users, seed) that returns one."
        )
    return target


def as_built(config: AuditConfig) -> AuditConfig:
    """The configuration, with the statistic of a function that builds a boundary for gradients without being asked."""
    target = target_of(config)
    if target is None or inspect.isclass(target) or config.statistic != "tabular" or config.environment is not None:
        return config
    try:
        board = board_of(maker(config)(environment_of(config, 2), 1, 0, config.statistic))
    except Exception:  # noqa: BLE001 - other code may raise anything; whoever attacks it says what
        return config
    name = getattr(getattr(board, "statistic", None), "name", None)
    return replace(config, statistic="gradient") if name == "gradient" else config


def is_kind(kind: Any, base: type) -> bool:
    """Whether ``kind`` is a class, and a subclass of ``base``."""
    return inspect.isclass(kind) and issubclass(kind, base)


def maker(config: AuditConfig) -> Maker:
    """The function that builds the stack of one run."""
    target = target_of(config)
    agent: Any = target if is_kind(target, Agent) else None
    if agent is None and config.agent is not None:
        agent = agent_named(config.agent.name, "agent").kind
    options = {} if config.agent is None else dict(config.agent.options)
    for part in ("boundary", "inside"):
        choice = getattr(config, part)
        if target is None and choice is not None and not per_step(choice):
            BOUNDARIES.find(choice.name, part).check(choice.options, part)

    def board(env: gym.Env[Any, Any], users: int, seed: int, statistic: Any) -> Any:
        inner = env
        if config.inside is not None:
            inner = _boundary(config.inside, None, env, users, seed, statistic)
            statistic = "tabular"
        return _boundary(
            config.boundary, target if is_kind(target, gym.Wrapper) else None, inner, users, seed, statistic
        )

    def make(env: gym.Env[Any, Any], users: int, seed: int, statistic: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # what printed constants really cost is in the ledger
            return build(env, users, seed, statistic)

    def build(env: gym.Env[Any, Any], users: int, seed: int, statistic: Any) -> Any:
        if target is not None and not is_kind(target, Agent) and not is_kind(target, gym.Wrapper):
            return target(env, users=users, seed=seed)
        if agent is None:
            return board(env, users, seed, statistic)
        return agent("TabularPolicy", board(env, users, seed, agent.statistic), seed=seed, **options)

    return make


def _boundary(choice: Choice, kind: Any, env: gym.Env[Any, Any], users: int, seed: int, statistic: Any) -> Any:
    options = dict(choice.options)
    if per_step(choice):
        return (kind or LDPPerStep)(
            env, seed=seed, **{k: v for k, v in options.items() if not (k == "delta" and v == 0.0)}
        )
    entry = BOUNDARIES.find(choice.name, "boundary")
    if kind is not None:  # from other code: treated like the class that it inherits from
        entry = next((known for known in BOUNDARIES.values() if issubclass(kind, known.kind)), entry)
    wrapper, usual = kind or entry.kind, entry.options.get("batch_size")
    large = usual is not None and usual.default > 1  # batches, of which a stream of few users has none
    if large:
        options["batch_size"] = max(1, min(options.get("batch_size", -(-users // 2)), users))
    if statistic != "tabular" and not isinstance(env, Boundary):
        options["statistic"] = statistic_there(statistic, env)
    if entry.takes("seed"):
        options["seed"] = seed
    return wrapper(env, users=users, **options)


def per_step(choice: Choice) -> bool:
    """Whether this is ``LDPPerStep``, which sums nothing."""
    return plain(choice.name) == plain(PER_STEP.name)


def environment_of(config: AuditConfig, n_actions: int, stages: int = 1) -> gym.Env[Any, Any]:
    """The environment of the users; the two rooms have at least ``stages`` stages.

    Where users report each cell once, there is an action for every stage, so that no report is spared. Users who report
    gradients are decided by their seeds.
    """
    if config.statistic == "gradient":
        return canaries(config.horizon)
    if config.environment is None:
        stages = max(config.horizon, stages)
        return two_rooms(stages, max(n_actions, stages) if config.statistic.endswith("reports") else n_actions)
    if is_foreign(config.environment.name):
        return stand_in(config.environment.name, config.environment.options)
    entry = ENVIRONMENTS.find(config.environment.name, "environment")
    entry.check(config.environment.options, "environment")
    return gym.make(entry.name, **config.environment.options)

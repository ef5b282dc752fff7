"""The state of an agent, and files of agents.

A file is a zip of JSON and arrays, read without pickle.

* ``Learned`` - the state of an agent: a policy, and all that came with it
* ``Origins`` - the boards whose users are in something that was learned, each with its guarantee
* ``UNKNOWN`` - the origins of numbers that came without any
* ``SavedAgent`` - the contents of a file: the agent's state, and arguments to build the agent again
* ``save``, ``load`` - files of agents
"""

from __future__ import annotations

import json
import math
import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from private_rl_gym.archive import read_entries, write_entries
from private_rl_gym.durable import whole
from private_rl_gym.planning.arrays import file_path, shown
from private_rl_gym.privacy.accounting.guarantee import Guarantee, TrustModel
from private_rl_gym.privacy.requests import REQUESTS, Request

if TYPE_CHECKING:
    from private_rl_gym.agents.base import Agent

__all__ = ["UNKNOWN", "Learned", "Origins", "SavedAgent", "load", "parameters_in", "save"]

FORMAT = 5
A = TypeVar("A", bound="Agent")


Target = str | os.PathLike[str] | IO[bytes]

Origins = dict[str, Guarantee]
"""Guarantees, by the identity of the board whose users each of them is made to."""

UNKNOWN: Origins = {
    "": Guarantee(TrustModel.NONE, math.inf, 0.0, None, "parameters were set, and nothing says how they were learned")
}
"""The origins of numbers that came without any: they have no guarantee."""


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """The state of an agent: a policy, and all that belongs to it.

    It is saved in files.

    Attributes:
        policy: The policy; None before the first plan.
        origins: The boards whose users the state was learned from.
        board: The identity of the board that was met last, to go on there; None if there was none.
        planned: The version of that board's release that the policy was planned from.
        request: The request that belongs to the policy.
        known: ``[h, s]``, whether the action there is known to be good, of an offline plan; None if none was made.
        arrays: The arrays that the agent carries from release to release of that board.
    """

    policy: Any = None
    origins: Origins = field(default_factory=dict)
    board: str | None = None
    planned: int | None = None
    request: Request | None = None
    known: NDArray[np.bool_] | None = None
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class SavedAgent:
    """The contents of an agent's file.

    Attributes:
        seed: Seed of the agent; None for a random one.
        num_timesteps: Number of steps of users that the agent has counted.
        sizes: Horizon, number of states and number of actions; None if nothing was learned.
        spaces: The spaces of observations and of actions; None for each that is unknown.
        streams: States of the agent's own generators; None if they are secret.
        learned: What was learned, with its policy as an array.
    """

    seed: int | None
    num_timesteps: int
    sizes: tuple[int, int, int] | None
    spaces: tuple[Any, Any]
    streams: dict[str, Any] | None
    learned: Learned


def save(agent: Agent, path: Target, exclude: Any = None) -> None:
    """Save an agent.

    A file name without an ending gets ``.zip``, as in Stable-Baselines3.
    """
    names = () if exclude is None else exclude
    if not (isinstance(names, list | tuple | set | frozenset) and all(isinstance(name, str) for name in names)):
        raise TypeError(f"exclude is {shown(exclude)}: give a list of names of arguments.")
    unknown = sorted({*names} - {*agent.saved_arguments, "seed", "verbose"})
    if unknown:
        raise ValueError(f"exclude names {', '.join(unknown)}, which is not saved.")
    saved = _gathered(agent)
    learned, request = saved.learned, saved.learned.request
    hidden = agent.secret_randomness and (saved.seed is None or "seed" in names)
    about = {
        "format": FORMAT,
        "agent": type(agent).__name__,
        "arguments": {name: getattr(agent, name) for name in agent.saved_arguments if name not in names},
        "seed": None if "seed" in names else saved.seed,
        "verbose": 0 if "verbose" in names else agent.verbose,
        "num_timesteps": saved.num_timesteps,
        "planned": learned.planned,
        "ask": None if request is None else type(request).__name__,
        "board": learned.board,
        "origins": {name: guarantee.to_dict() for name, guarantee in learned.origins.items()},
        "sizes": None if saved.sizes is None else list(saved.sizes),
        "spaces": _plain_spaces(*saved.spaces),
        "streams": None if hidden else saved.streams,
    }
    # The description comes first: it has the guarantees.
    entries = {"agent.json": json.dumps(about, indent=2), "policy": learned.policy, "known": learned.known}
    entries |= {f"ask/{name}": array for name, array in ({} if request is None else request.arrays()).items()}
    entries |= {f"state/{name}": array for name, array in learned.arrays.items()}
    entries = {name: content for name, content in entries.items() if content is not None}
    target = _named(path, there=False)
    if not isinstance(target, Path):
        write_entries(target, entries, compressed=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    real = target.resolve()
    with whole(real, real.with_name(f".{real.name}.{uuid.uuid4().hex}.tmp")) as file:
        write_entries(file, entries, compressed=True)


def _gathered(agent: Agent) -> SavedAgent:
    """Return the contents of a file of this agent.

    Of the boundary, they contain its guarantee alone.
    """
    policy, known, there = None, None, agent._sizes() is not None
    if there:
        policy = agent.best_policy() if agent.plans_batches else agent.policy  # planned from the newest release
    with suppress(ValueError):  # there is no policy, or nothing is counted
        known = agent.known
    learned = replace(
        agent.learned,
        policy=None if policy is None else agent.policy_array(policy),
        origins=agent.origins if there else {},
        board=None if agent.board is None else agent.board.identity,
        known=known,
        arrays=agent.state(),
    )
    streams = {name: rng.bit_generator.state for name, rng in agent.streams().items()}
    spaces = agent.observation_space, agent.action_space
    return SavedAgent(agent.seed, agent.num_timesteps, agent._sizes(), spaces, streams, learned)


def load(
    kind: type[A], path: Target, env: Any, print_system_info: bool = False, custom_objects: Any = None, **options: Any
) -> A:
    """Load an agent of this kind.

    Only known names with values of known types are accepted from the file.
    """
    if print_system_info:
        from stable_baselines3.common.utils import get_system_info

        get_system_info()
    given = {} if custom_objects is None else custom_objects
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise TypeError(f"custom_objects is {shown(custom_objects)}: give arguments of the constructor by name.")
    target = _named(path, there=True)
    about, arrays = _read(target)
    if about["agent"] != kind.__name__:
        raise ValueError(f"{target} holds a {about['agent']}: load it with {about['agent']}.load.")
    try:
        if not set(about["arguments"]) <= set(kind.saved_arguments):
            raise _damaged(target)
        kind(kind.policies[0], None, **about["arguments"])
    except (TypeError, ValueError, OverflowError):
        raise _damaged(target) from None
    agent = kind(kind.policies[0], env, **{"verbose": about["verbose"], **about["arguments"], **given, **options})
    if agent.board is not None and about["sizes"] not in (None, list(agent.board.sizes)):
        raise ValueError(f"{target} learned on sizes {about['sizes']}, and the environment has {agent.board.sizes}.")
    try:
        agent._restore(_saved(about, arrays), seeded="seed" in options or "seed" in given)
    except Exception:  # noqa: BLE001 - arrays in a file may be anything
        raise _damaged(target) from None
    if agent.board is not None and agent.board.identity != about["board"]:
        agent._begin_on(agent.board)  # it has other sums, so what was carried from release to release is void
    return agent


def _saved(about: dict[str, Any], arrays: dict[str, Any]) -> SavedAgent:
    """Return the contents of a file.

    Raises an error if they do not fit each other.
    """
    sizes = None if about["sizes"] is None else tuple(about["sizes"])
    request, known = None, arrays.get("known")
    if sizes is not None and about["ask"] is not None:
        request = REQUESTS[about["ask"]].of(_part(arrays, "ask/")).checked(*sizes)
    if known is not None and (sizes is None or known.dtype != np.bool_ or known.shape != sizes[:2]):
        raise ValueError("The mask of known places is damaged.")
    learned = Learned(
        arrays.get("policy"),
        {name: Guarantee.from_dict(plain) for name, plain in about["origins"].items()} or UNKNOWN,
        about["board"],
        about["planned"],
        request,
        known,
        _part(arrays, "state/"),
    )
    spaces_there = (None, None) if about["spaces"] is None else _spaces_of(about["spaces"])
    return SavedAgent(about["seed"], about["num_timesteps"], sizes, spaces_there, about["streams"], learned)


def _part(arrays: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the arrays whose names begin with ``prefix``, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def parameters_in(agent: Agent, given: Any, *, exact_match: bool) -> tuple[Any, Origins]:
    """Return the policy with the numbers in a dictionary or a file, and its origins.

    The policy is None if a dictionary is empty.
    """
    origins = UNKNOWN
    if not isinstance(given, Mapping):
        other = type(agent).load(given)
        given, origins = other.get_parameters(), other.origins
    groups = {group: arrays if isinstance(arrays, Mapping) else {"": arrays} for group, arrays in given.items()}
    found = {(group, name): array for group, arrays in groups.items() for name, array in arrays.items()}
    wanted, kind, sizes = ("policy", agent.parameter_name), type(agent).__name__, agent._sizes()
    if set(found) - {wanted} or (exact_match and not found):
        raise ValueError(
            f"The parameters of a {kind} are {{'policy': {{{agent.parameter_name!r}: array}}}}, as get_parameters "
            f"returns them, and these are {sorted(map(str, found))}."
        )
    if not found:
        return None, origins
    if sizes is None:
        raise ValueError(f"{kind} has no environment yet: give it one with set_env, or load a file.")
    try:
        return agent.policy_of(np.array(found[wanted]), sizes), origins
    except (TypeError, ValueError) as error:
        raise ValueError(f"These parameters are of another problem than (H, S, A) = {sizes}: {error}") from None


_ABOUT: dict[str, tuple[type, ...]] = {
    "format": (int,),
    "agent": (str,),
    "arguments": (dict,),
    "seed": (int, type(None)),
    "verbose": (int,),
    "num_timesteps": (int,),
    "planned": (int, type(None)),
    "ask": (str, type(None)),
    "board": (str, type(None)),
    "origins": (dict,),
    "sizes": (list, type(None)),
    "spaces": (list, type(None)),
    "streams": (dict, type(None)),
}
"""The contents of a file's description: exactly these names, with values of exactly these types."""


def _read(target: Path | IO[bytes]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the contents of a file, read without pickle."""
    if isinstance(target, Path) and not target.is_file():
        raise FileNotFoundError(f"There is no file {target}. Agents are written by agent.save(path).")
    try:
        arrays = read_entries(target)
        about = json.loads(arrays.pop("agent.json"))
    except Exception as error:  # noqa: BLE001 - a file may be anything
        raise _damaged(target, error) from None
    if isinstance(about, dict) and about.get("format") in (3, 4):  # 3 does not say how it was learned, 4 not where
        stated = about.pop("guarantee", None)
        about |= {"format": FORMAT, "origins": {} if stated is None else {"": stated}}
    if isinstance(about, dict) and about.get("format") != FORMAT:
        raise ValueError(f"{target} was saved in format {about.get('format')!r}; this version reads format {FORMAT}.")
    known = isinstance(about, dict) and set(about) == set(_ABOUT)
    if not (known and all(type(about[name]) in kinds for name, kinds in _ABOUT.items())):
        raise _damaged(target)
    if not (_plain(about["arguments"]) and about["num_timesteps"] >= 0):
        raise _damaged(target)
    return about, arrays


def _plain(value: Any) -> bool:
    """Return whether a value consists of numbers, words, lists and dictionaries."""
    if isinstance(value, dict):
        return all(map(_plain, value.values()))
    return all(map(_plain, value)) if isinstance(value, list) else type(value) in (bool, int, float, str, type(None))


def _damaged(target: Path | IO[bytes], error: Exception | None = None) -> ValueError:
    why = "" if error is None else f" ({type(error).__name__})"
    return ValueError(f"{target} is not a saved agent, or is damaged{why}.")


def _named(path: Target, *, there: bool) -> Path | IO[bytes]:
    """Return an open file, or a path with an ending.

    With ``there``, the name of an existing file needs no ending.
    """
    if not isinstance(path, str | os.PathLike) and hasattr(path, "read" if there else "write"):
        return path
    target = file_path(path)
    if target.name in ("", "..") or (there and not target.name):
        raise ValueError(f"path is {shown(path)}: it names no file.")
    return target if target.suffix or (there and target.is_file()) else target.with_suffix(".zip")


def _plain_spaces(seen: Any, done: Any) -> list[Any] | None:
    """Return the spaces of observations and actions in words and numbers.

    Returns None if these do not describe them completely. Where both are discrete they are four numbers: sizes and
    first numbers.
    """
    if isinstance(done, spaces.Discrete) and isinstance(seen, spaces.Discrete):
        return [[int(seen.n)], int(seen.start), int(done.n), int(done.start)]
    timed = isinstance(seen, spaces.MultiDiscrete) and seen.nvec.shape == (2,) and not seen.start.any()
    if isinstance(done, spaces.Discrete) and timed:
        return [seen.nvec.tolist(), 0, int(done.n), int(done.start)]
    described = [_described(seen), _described(done)]
    return None if None in described else described


def _spaces_of(plain: list[Any]) -> tuple[Any, Any]:
    """Return the spaces of observations and actions from these words and numbers."""
    if len(plain) == 2:
        return _space(plain[0]), _space(plain[1])
    sizes, start, n_actions, first = plain
    seen: spaces.Space[Any] = spaces.Discrete(sizes[0], start=start)
    return spaces.MultiDiscrete(sizes) if len(sizes) > 1 else seen, spaces.Discrete(n_actions, start=first)


def _described(space: Any) -> list[Any] | None:
    """Return a space in words and numbers; None for a space of another kind."""
    if isinstance(space, spaces.Discrete):
        return ["Discrete", int(space.n), int(space.start)]
    if isinstance(space, spaces.MultiDiscrete):
        return ["MultiDiscrete", space.nvec.tolist(), space.start.tolist()]
    if isinstance(space, spaces.MultiBinary):
        return ["MultiBinary", space.n if isinstance(space.n, int) else list(space.shape)]
    if isinstance(space, spaces.Box):
        bounds = [[str(value) for value in bound.ravel()] for bound in (space.low, space.high)]
        return ["Box", *bounds, list(space.shape), str(space.dtype)]
    if isinstance(space, spaces.Tuple):
        return ["Tuple", [_described(part) for part in space.spaces]]
    if isinstance(space, spaces.Dict):
        return ["Dict", [[key, _described(part)] for key, part in space.spaces.items()]]
    return None


def _space(plain: list[Any]) -> spaces.Space[Any]:
    kind, *rest = plain
    if kind == "Discrete":
        return spaces.Discrete(rest[0], start=rest[1])
    if kind == "MultiDiscrete":
        return spaces.MultiDiscrete(rest[0], start=rest[1])
    if kind == "MultiBinary":
        return spaces.MultiBinary(rest[0])
    if kind == "Box":
        kinds = {"float32": np.float32, "float64": np.float64, "uint8": np.uint8, "int32": np.int32, "int64": np.int64}
        number: Any = kinds[rest[3]]
        low, high = (np.array([float(value) for value in bound]).reshape(rest[2]).astype(number) for bound in rest[:2])
        return spaces.Box(low, high, dtype=number)
    if kind == "Tuple":
        return spaces.Tuple([_space(part) for part in rest[0]])
    if kind == "Dict":
        return spaces.Dict({key: _space(part) for key, part in rest[0]})
    raise ValueError("The saved space is of no known kind.")

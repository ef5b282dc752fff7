"""Agents on disk: a zip of JSON and arrays, read without pickle."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import numpy as np
from gymnasium import spaces

from private_rl_gym.privacy.asks import ASKS
from private_rl_gym.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from private_rl_gym.agents.base import Agent

__all__ = ["discrete_spaces", "load", "save", "spaces_of"]

FORMAT = 4
LARGEST = 2**33
"""The largest total size of the entries of a file, in bytes. Larger files are refused."""
A = TypeVar("A", bound="Agent")


Target = str | os.PathLike[str] | IO[bytes]


def save(agent: Agent, path: Target, exclude: frozenset[str] = frozenset()) -> None:
    """Save an agent. A file name without an ending gets ``.zip``, as in Stable-Baselines3."""
    unknown = sorted(exclude - {*agent.saved_arguments, "seed", "verbose"})
    if unknown:
        raise ValueError(f"exclude names {', '.join(unknown)}, which is not saved.")
    arrays = {}
    if agent.board is not None or agent._policy is not None:
        policy = agent.best_policy() if agent.plans_batches else agent.policy  # planned from the newest release
        arrays["policy"] = agent.policy_array(policy)
        if agent.ask is not None:
            arrays |= {f"ask/{name}": array for name, array in agent.ask.arrays().items()}
    arrays |= {f"state/{name}": array for name, array in agent.state().items()}
    secret = agent.secret_randomness and (agent.seed is None or "seed" in exclude)
    about = {
        "format": FORMAT,
        "agent": type(agent).__name__,
        "arguments": {name: getattr(agent, name) for name in agent.saved_arguments if name not in exclude},
        "seed": None if "seed" in exclude else agent.seed,
        "verbose": 0 if "verbose" in exclude else agent.verbose,
        "num_timesteps": agent.num_timesteps,
        "planned": agent._planned,
        "ask": None if agent.ask is None else type(agent.ask).__name__,
        "board": None if agent.board is None else agent.board.identity,
        "guarantee": _promised(agent),
        "sizes": None if agent.board is None else list(agent.board.sizes),
        "spaces": agent.spaces(),
        "streams": None if secret else {name: rng.bit_generator.state for name, rng in agent.streams().items()},
    }
    target = _named(path, there=False)
    if isinstance(target, Path):
        target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("agent.json", json.dumps(about, indent=2))
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array, allow_pickle=False)
            archive.writestr(f"{name}.npy", content.getvalue())


def load(kind: type[A], path: Target, env: Any, **options: Any) -> A:
    """Load an agent of this kind. Only known names with values of known types are accepted from the file."""
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
    agent = kind(kind.policies[0], env, **{"verbose": about["verbose"], **about["arguments"], **options})
    if agent.board is not None and about["sizes"] not in (None, list(agent.board.sizes)):
        raise ValueError(f"{target} learned on sizes {about['sizes']}, and the environment has {agent.board.sizes}.")
    try:
        _restore(agent, about, arrays, seeded="seed" in options)
    except Exception:  # noqa: BLE001 - arrays in a file may be anything
        raise _damaged(target) from None
    if agent.board is not None and agent.board.identity != about["board"]:
        # Another board has other sums, so the state that was carried from release to release is void.
        agent._meet(agent.board, acts_on=True)
    elif agent.board is not None:
        agent._learns_here()
    return agent


def _promised(agent: Agent) -> dict[str, Any] | None:
    """The guarantee of what is saved, if the agent has met or loaded anything."""
    if agent.board is None and agent._earlier is None:
        return None
    return agent.guarantee.to_dict()


def _restore(agent: Agent, about: dict[str, Any], arrays: dict[str, Any], *, seeded: bool) -> None:
    """Restore a new agent from the contents of a file."""
    agent.num_timesteps = about["num_timesteps"]
    if not seeded:  # a given seed begins a stream of its own, and the guarantee says so
        agent.seed = about["seed"]
        if about["streams"] is not None:
            for name, rng in agent.streams().items():
                rng.bit_generator.state = about["streams"][name]
    state = {name.split("/", 1)[1]: array for name, array in arrays.items() if name.startswith("state/")}
    if not agent.plans_batches or agent.board is None or agent.board.identity == about["board"]:
        agent.set_state(state)  # batches are planned again from their releases, on the board that they are of
    if agent.board is None and about["spaces"] is not None:
        agent.set_spaces(about["spaces"])
    if "policy" in arrays and about["sizes"] is not None:
        horizon, n_states, n_actions = about["sizes"]
        agent._policy = agent.policy_of(arrays["policy"], (horizon, n_states, n_actions))
        agent._planned = about["planned"]
        if about["ask"] is not None:
            asked = {name.split("/", 1)[1]: array for name, array in arrays.items() if name.startswith("ask/")}
            agent._ask = ASKS[about["ask"]].of(asked).checked(horizon, n_states, n_actions)
    agent._earlier = None if about["guarantee"] is None else Guarantee.from_dict(about["guarantee"])
    agent._loaded = about["board"], state, about["planned"], agent._policy


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
    "guarantee": (dict, type(None)),
    "sizes": (list, type(None)),
    "spaces": (list, type(None)),
    "streams": (dict, type(None)),
}
"""The contents of a file's description: exactly these names, with values of exactly these types."""


def _read(target: Path | IO[bytes]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The contents of a file, read without pickle."""
    if isinstance(target, Path) and not target.is_file():
        raise FileNotFoundError(f"There is no file {target}. Agents are written by agent.save(path).")
    try:
        with zipfile.ZipFile(target) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
            about = json.loads(archive.read("agent.json"))
            names = [name for name in archive.namelist() if name.endswith(".npy") and size <= LARGEST]
            arrays = {
                name[: -len(".npy")]: np.load(io.BytesIO(archive.read(name)), allow_pickle=False) for name in names
            }
    except Exception as error:  # noqa: BLE001 - a file may be anything
        raise _damaged(target, error) from None
    if isinstance(about, dict) and about.get("format") == 3:  # which did not say under which guarantee it was learned
        about |= {"format": FORMAT, "guarantee": None}
    if isinstance(about, dict) and about.get("format") != FORMAT:
        raise ValueError(f"{target} was saved in format {about.get('format')!r}; this version reads format {FORMAT}.")
    known = isinstance(about, dict) and set(about) == set(_ABOUT) and size <= LARGEST
    if not (known and all(type(about[name]) in kinds for name, kinds in _ABOUT.items())):
        raise _damaged(target)
    if not (_plain(about["arguments"]) and about["num_timesteps"] >= 0):
        raise _damaged(target)
    return about, arrays


def _plain(value: Any) -> bool:
    """Whether a value consists of numbers, words, lists and dictionaries."""
    if isinstance(value, dict):
        return all(map(_plain, value.values()))
    return all(map(_plain, value)) if isinstance(value, list) else type(value) in (bool, int, float, str, type(None))


def _damaged(target: Path | IO[bytes], error: Exception | None = None) -> ValueError:
    why = "" if error is None else f" ({type(error).__name__})"
    return ValueError(f"{target} is not a saved agent, or is damaged{why}.")


def _named(path: Target, *, there: bool) -> Path | IO[bytes]:
    """An open file, or a path with an ending; with ``there``, an existing file needs none."""
    if not isinstance(path, str | os.PathLike):
        return path
    target = Path(path)
    return target if target.suffix or (there and target.is_file()) else target.with_suffix(".zip")


def discrete_spaces(seen: Any, done: Any) -> list[Any] | None:
    """Sizes and first numbers of observations and actions; None if actions are not Discrete."""
    if not isinstance(done, spaces.Discrete):
        return None
    if isinstance(seen, spaces.Discrete):
        return [[int(seen.n)], int(seen.start), int(done.n), int(done.start)]
    return [[int(n) for n in getattr(seen, "nvec", [])], 0, int(done.n), int(done.start)]


def spaces_of(plain: list[Any]) -> tuple[spaces.Space[Any], spaces.Space[Any]]:
    """The spaces of observations and actions from these numbers."""
    sizes, start, n_actions, first = plain
    seen: spaces.Space[Any] = spaces.Discrete(sizes[0], start=start)
    return spaces.MultiDiscrete(sizes) if len(sizes) > 1 else seen, spaces.Discrete(n_actions, start=first)

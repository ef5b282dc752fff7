"""Boundaries on disk: a long run survives a restart, and its promise with it.

A state holds raw sums and the position of the noise generators. It is secret, and it may be continued **once**: two
runs that go on from the same state would put the same noise on different data, and their difference would show the
data bare. So a state is spent by whoever goes on from it first, be it ``load_state`` or the boundary that saved it.
That it is spent is written down in a directory of the user's (``$PRIVATE_RL_GYM_STATE``, by default
``~/.local/state/private_rl_gym``), under an identity that copies of the file share, and beside the file.

What this cannot see is a copy that is carried to another machine, or opened with another directory of that kind. Keep
states where only the run can read them.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import uuid
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from private_rl_gym.envs.finite import FiniteModel
    from private_rl_gym.wrappers.boundary import Boundary

__all__ = ["Saved", "load", "save"]

FORMAT = 1
LABEL = (
    "SECRET. Raw sums of users' data, and the state of the noise that hides them. Whoever reads this file can undo the "
    "privacy of everyone in it. It may be continued once."
)


@dataclass(frozen=True, slots=True)
class Saved:
    """A state on disk."""

    path: Path
    identity: str

    def spend(self) -> None:
        """Write down that it has been continued, or refuse because it was before."""
        registry = _registry()
        try:
            registry.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(self.path, registry, error) from None
        beside = self.path.with_name(f"{self.path.name}.{self.identity}.continued")
        try:
            _mark(registry / self.identity)
            with contextlib.suppress(PermissionError, FileNotFoundError):
                _mark(beside)
        except FileExistsError:
            raise ValueError(
                f"{self.path} was continued before: going on from it again would put the same noise on different "
                "data, and break the promise. Start anew, with a budget of its own."
            ) from None
        except OSError as error:
            raise _unwritable(self.path, registry, error) from None


def _mark(path: Path) -> None:
    """Make an empty file that is not there yet."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _unwritable(path: Path, registry: Path, error: OSError) -> ValueError:
    return ValueError(
        f"It cannot be written down in {registry} that {path} is continued ({type(error).__name__}), and without that "
        "it could be continued twice. Make it a writable directory; $PRIVATE_RL_GYM_STATE names another."
    )


def save(board: Boundary, path: str | os.PathLike[str]) -> Saved:
    """Write a boundary's state: whole or not at all, readable by its owner alone."""
    if board._outer is not None:
        raise ValueError(f"{type(board).__name__} lies inside {type(board._outer).__name__}: save that one.")
    if board._innermost._recorder is not None:
        raise ValueError("A user is in the middle of her episode: finish it, then save.")
    sums, target, identity = board._board, Path(path).resolve(), uuid.uuid4().hex
    if sums.noise is not None:
        sums.noise.check()
    meta = {
        "label": LABEL,
        "format": FORMAT,
        "identity": identity,
        "board": _fingerprint(board),
        "arrived": board._arrived,
        "boundary": board.identity,
        "counters": {name: getattr(sums, name) for name in _COUNTERS},
        "noise_step": None if sums.noise is None else sums.noise.counting.step,
        "released_users": board.release.users,
        "seeded": {name: source.seeded for name, source in sums.sources().items()},
        "sources": {name: source.state() for name, source in sums.sources().items()},
        "users": board.unwrapped.np_random.bit_generator.state,
    }
    content = io.BytesIO()
    arrays = {**sums.arrays(), **_released(board)}
    if board.values is not None:
        arrays["values"] = board.values
    np.savez(content, meta=np.frombuffer(json.dumps(meta, default=_plain).encode(), dtype=np.uint8), **arrays)
    temporary = target.with_name(f".{target.name}.{identity}.tmp")
    try:
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content.getvalue())
            file.flush()
            os.fsync(file.fileno())
        board._touch()  # an older state of the same moment: this one takes its place
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return Saved(target, identity)


def load(board: Boundary, path: str | os.PathLike[str]) -> None:
    """Put a saved state into a new boundary, and spend it."""
    sums, target = board._board, Path(path).resolve()
    if board._arrived or board._outer is not None:
        raise ValueError(
            "This boundary has met users, or lies inside another: load a state into the new, outermost one."
        )
    if not target.is_file():
        raise ValueError(f"There is no file {target}.")
    try:
        with np.load(target, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        meta = json.loads(arrays.pop("meta").tobytes())
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{target} is not the saved state of a boundary, or is damaged ({type(error).__name__})."
        ) from None
    if meta.get("format") != FORMAT:
        raise ValueError(f"{target} was saved in format {meta.get('format')}; this version reads format {FORMAT}.")
    wanted = json.loads(json.dumps(_fingerprint(board)))
    different = sorted(key for key in wanted if wanted[key] != meta["board"].get(key))
    if different:
        raise ValueError(
            f"{target} was saved by a boundary that differs in {', '.join(different)}: build this one with the same "
            "arguments."
        )
    _check_contents(target, board, arrays, meta)
    Saved(target, meta["identity"]).spend()
    for name, array in sums.arrays().items():
        array[...] = arrays[name]
    board._arrived, board._identity = meta["arrived"], meta["boundary"]
    for name, value in meta["counters"].items():
        setattr(sums, name, value)
    if sums.noise is not None:
        sums.noise.counting.step = meta["noise_step"]
    for name, source in sums.sources().items():
        source.restore(_arrays_again(meta["sources"][name]))
        source.seeded = meta["seeded"][name]
    board.unwrapped.np_random.bit_generator.state = _arrays_again(meta["users"])
    released = {family: arrays[f"release.{family}"] for family in sums.release.families}
    sums.release = sums.restored(released, meta["released_users"])
    if "values" in arrays:
        board.values = arrays["values"]


_COUNTERS = ("gone", "pending", "version")


def _released(board: Boundary) -> dict[str, Any]:
    return {f"release.{family}": array for family, array in board.release.sums().items()}


def _check_contents(target: Path, board: Boundary, arrays: dict[str, Any], meta: dict[str, Any]) -> None:
    """Everything that will be taken up has to be there, in its shape, before anything is taken up or spent."""
    sums = board._board
    wanted = {**sums.arrays(), **_released(board)}
    whole = all(
        name in arrays and arrays[name].shape == array.shape and arrays[name].dtype == array.dtype
        for name, array in wanted.items()
    )
    generators = {name: source.generator.bit_generator for name, source in sums.sources().items()}
    generators["the environment"] = board.unwrapped.np_random.bit_generator
    found = {**meta.get("sources", {}), "the environment": meta.get("users", {})}
    whole &= all(_fits(kind, found.get(name)) for name, kind in generators.items())
    whole &= all(isinstance(meta.get("counters", {}).get(name), int) for name in _COUNTERS)
    whole &= all(key in meta for key in ("identity", "boundary", "arrived", "noise_step", "released_users", "seeded"))
    if not whole:
        raise ValueError(f"{target} is damaged, or belongs to another kind of generator. Nothing was taken up.")


def _fits(generator: Any, state: Any) -> bool:
    """Whether a state can be taken up by a generator of this kind; tried on one that nobody draws from."""
    try:
        type(generator)(0).state = _arrays_again(state)
    except (TypeError, ValueError, KeyError):
        return False
    return True


def _fingerprint(board: Boundary) -> dict[str, Any]:
    """What has to be the same on both sides."""
    noise = board._board.noise
    return {
        "kind of boundary": type(board).__name__,
        "promise": board._terms,
        "statistic": board._board.statistic.label,
        "sizes": [board._inside.horizon, board._inside.n_states, board._inside.n_actions],
        "publish_every": board.publish_every,
        "number of users": board.users,
        "kind of generator": [source.secure for source in board._board.sources().values()],
        "environment": _digest(board._inside.model),
        "scale of noise": None if noise is None else noise.scale,
        "number of releases": None if noise is None else noise.counting.steps,
    }


def _digest(model: FiniteModel | None) -> str | None:
    """Tells one known environment from another of the same size."""
    if model is None:
        return None
    found = hashlib.sha256()
    for array in model.content():
        found.update(array.tobytes())
    return found.hexdigest()


def _registry() -> Path:
    given = os.environ.get("PRIVATE_RL_GYM_STATE")
    return Path(given).resolve() if given else Path.home() / ".local" / "state" / "private_rl_gym"


def _plain(value: Any) -> Any:
    """Arrays and numbers of numpy in the state of a generator, for JSON."""
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": str(value.dtype)}
    if not isinstance(value, int | np.integer):
        raise TypeError(f"{type(value).__name__} is no part of a saved state.")
    return int(value)


def _arrays_again(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"array", "dtype"}:
            return np.array(value["array"], dtype=value["dtype"])
        return {key: _arrays_again(inner) for key, inner in value.items()}
    return value

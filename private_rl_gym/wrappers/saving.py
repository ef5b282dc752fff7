"""Boundaries on disk: a long run survives a restart, and its promise with it.

A state holds raw sums and the position of the noise generators. It is secret, and it may be continued **once**: two
runs that go on from the same state would put the same noise on different data, and their difference would show the
data bare. So a state is spent by whoever goes on from it first, be it ``load_state`` or the boundary that saved it.
That it is spent is written down in a directory of the user's (``$PRIVATE_RL_GYM_STATE``, by default
``~/.local/state/private_rl_gym``), under an identity that copies of the file share, and beside the file.

What this cannot see is a copy that is carried to another machine, or opened with another directory of that kind. Keep
states where only the run can read them.

Whoever can write a state can write one whose noise is known. So a state is trusted as code is, unless it was saved with
a key: then one that anybody else has touched is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import io
import json
import os
import re
import uuid
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from private_rl_gym.envs.finite import FiniteModel
    from private_rl_gym.wrappers.boundary import Boundary

__all__ = ["Saved", "load", "save"]

FORMAT = 2
LARGEST = 2**33
"""Bytes; a file that says it holds more is no state."""
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


def save(board: Boundary, path: str | os.PathLike[str], key: bytes | None = None) -> Saved:
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
        "noise_step": 0 if sums.noise is None else sums.noise.counting.step,
        "released_users": board.release.users,
        "seeded": {name: source.seeded for name, source in sums.sources().items()},
        "sources": {name: source.state() for name, source in sums.sources().items()},
        "users": board.unwrapped.np_random.bit_generator.state,
    }
    arrays = {**sums.arrays(), **_released(board)}
    if board.values is not None:
        arrays["values"] = board.values
    text = json.dumps(meta, default=_plain).encode()
    arrays |= {"meta": np.frombuffer(text, dtype=np.uint8), "seal": _seal(text, arrays, key)}
    content = io.BytesIO()
    np.savez(content, **arrays)
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


def load(board: Boundary, path: str | os.PathLike[str], key: bytes | None = None) -> None:
    """Put a saved state into a new boundary, and spend it."""
    sums, target = board._board, Path(path).resolve()
    if board._arrived or board._outer is not None:
        raise ValueError(
            "This boundary has met users, or lies inside another: load a state into the new, outermost one."
        )
    arrays, text = _read(target)
    meta = _parsed(target, text)
    if not hmac.compare_digest(arrays.pop("seal").tobytes(), _seal(text, arrays, key).tobytes()):
        raise ValueError(
            f"{target} is damaged, or was changed by somebody without its key, or was saved with another key= than the "
            "one that was given here, if any. Nothing was taken up."
        )
    wanted = json.loads(json.dumps(_fingerprint(board)))
    different = sorted(name for name in wanted if wanted[name] != meta["board"].get(name))
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
    for name in _COUNTERS:
        setattr(sums, name, meta["counters"][name])
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


def _seal(text: bytes, arrays: dict[str, Any], key: bytes | None) -> NDArray[np.uint8]:
    """A digest of everything else in the file; with a key, one that nobody makes without it."""
    if key is not None and not (isinstance(key, bytes) and len(key) >= LEAST_KEY):
        raise ValueError(f"key: give {LEAST_KEY} bytes or more, such as secrets.token_bytes(32), and keep them apart.")
    digest = hmac.new(b"" if key is None else key, text, hashlib.sha256)
    for name in sorted(set(arrays) - {"meta", "seal"}):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)


def _read(target: Path) -> tuple[dict[str, NDArray[Any]], bytes]:
    """The arrays in a file, without pickle, and its text."""
    if not target.is_file():
        raise ValueError(f"There is no file {target}.")
    try:
        with zipfile.ZipFile(target) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size <= LARGEST:
            with np.load(target, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            text = arrays.pop("meta").tobytes()
    except Exception as error:  # noqa: BLE001 - a file may be anything
        raise _damaged(target, error) from None
    if size > LARGEST or not isinstance(arrays.get("seal"), np.ndarray):
        raise _damaged(target, ValueError())
    if not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise _damaged(target, TypeError())
    return arrays, text


def _parsed(target: Path, text: bytes) -> dict[str, Any]:
    """What a file says of itself: known names of known types, and nothing else."""
    try:
        meta: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(target, error) from None
    if isinstance(meta, dict) and meta.get("format") != FORMAT:
        raise ValueError(f"{target} was saved in format {meta.get('format')!r}; this version reads format {FORMAT}.")
    if not _has(meta, _META) or not _has(meta["counters"], dict.fromkeys(_COUNTERS, int)):
        raise _damaged(target, ValueError())
    names = [meta["identity"], meta["boundary"]]
    numbers = [meta["arrived"], meta["noise_step"], meta["released_users"], *meta["counters"].values()]
    flags = all(type(flag) is bool for flag in meta["seeded"].values())
    if not (flags and all(map(_NAME.fullmatch, names)) and all(0 <= number < 2**53 for number in numbers)):
        raise _damaged(target, ValueError())
    return meta


def _has(content: Any, wanted: dict[str, type]) -> bool:
    """Whether these names are there, with values of exactly these types, and no others."""
    return (
        isinstance(content, dict)
        and set(content) == set(wanted)
        and all(type(content[name]) is kind for name, kind in wanted.items())
    )


def _damaged(target: Path, error: Exception) -> ValueError:
    return ValueError(f"{target} is not the saved state of a boundary, or is damaged ({type(error).__name__}).")


LEAST_KEY = 16
_NAME = re.compile("[0-9a-f]{32}")  # of states and boundaries; it becomes the name of a file
_META: dict[str, type] = {
    "label": str,
    "format": int,
    "identity": str,
    "board": dict,
    "arrived": int,
    "boundary": str,
    "counters": dict,
    "noise_step": int,
    "released_users": int,
    "seeded": dict,
    "sources": dict,
    "users": dict,
}
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
    found = {**meta["sources"], "the environment": meta["users"]}
    whole &= set(meta["sources"]) == set(meta["seeded"]) == set(generators) - {"the environment"}
    whole &= all(_fits(kind, found.get(name)) for name, kind in generators.items())
    whole &= set(arrays) <= {*wanted, "values"}
    whole &= "values" not in arrays or arrays["values"].shape == (board.sizes[0] + 1, board.sizes[1])
    counters, steps = meta["counters"], 0 if sums.noise is None else sums.noise.counting.steps
    whole &= counters["pending"] <= counters["gone"] <= meta["arrived"] <= (board.users or meta["arrived"])
    whole &= meta["released_users"] <= counters["gone"] and meta["noise_step"] <= steps
    if not whole:
        raise ValueError(f"{target} is damaged, or belongs to another kind of generator. Nothing was taken up.")


def _fits(generator: Any, state: Any) -> bool:
    """Whether a state can be taken up by a generator of this kind; tried on one that nobody draws from."""
    try:
        type(generator)(0).state = _arrays_again(state)
    except Exception:  # noqa: BLE001 - whatever it says, it is none
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

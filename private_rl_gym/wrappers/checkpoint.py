"""Saved states of boundaries, to continue long runs after a restart.

A run continues under the same guarantee.

A state holds raw sums and the position of the noise generators. It is secret, and it may be continued **once**: two
runs that continue from the same state would add the same noise to different data, and their difference would reveal the
data. So the first run that continues from a state spends it, by ``load_state`` or in the boundary that saved it. A file
in the same folder marks the state as spent, under an identity that all copies of the state share.

A copy in another folder is not known to be spent. Keep states where only the run can read them.

Anyone who can write a state can write one whose noise is known. So trust a state only as you trust code, unless it was
saved with a key: then a state that was changed by someone without the key is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.archive import read_entries, write_entries
from private_rl_gym.durable import flush_folder, whole
from private_rl_gym.planning.arrays import file_path

if TYPE_CHECKING:
    from private_rl_gym.envs.finite import FiniteModel

__all__ = ["Loaded", "Saved", "digest", "read", "write"]

FORMAT = 4

LEAST_KEY = 16

LABEL = (
    "SECRET. Raw sums of users' data, and the state of the noise that hides them. A reader of this file can undo the "
    "privacy of everyone in it. It may be continued once."
)
REQUEST = "request."
"""Prefix of the arrays of the last request to users."""

CAME = "came."
"""Prefix of the digests of users who came with an id."""

OPTIONAL = (REQUEST, CAME)
"""Prefixes of arrays that a state may lack."""

_NAME = re.compile("[0-9a-f]{32}")  # of states and boundaries; it becomes the name of a file

_META: dict[str, type] = {
    "label": str,
    "format": int,
    "identity": str,
    "terms": dict,
    "boundary": str,
    "arrived": int,
    "counters": dict,
    "noise": dict,
    "seeded": dict,
    "sources": dict,
    "users": dict,
}
"""The contents of a file's text: exactly these names, with values of exactly these types."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A state on disk."""

    path: Path
    identity: str

    def spend(self) -> None:
        """Mark the state as continued, by a file beside it.

        Raise ValueError if the mark is there already.
        """
        mark = self.path.with_name(f"{self.identity}.continued")
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            flush_folder(mark.parent)
        except FileExistsError:
            raise ValueError(
                f"{self.path} was continued before: to continue it again would put the same noise on different data, "
                "and break the guarantee. Start a new run, with a new budget."
            ) from None
        except OSError as error:
            raise ValueError(
                f"The mark that {self.path} is continued cannot be written ({type(error).__name__}). Without the mark "
                "it could be continued twice. Make its folder writable."
            ) from None


def write(
    path: str | os.PathLike[str],
    state: Mapping[str, Any],
    arrays: Mapping[str, Any],
    key: bytes | None,
    ready: Callable[[Saved], None],
) -> None:
    """Write a boundary's state to a file, completely or not at all.

    Only its owner can read the file.

    Args:
        path: The file.
        state: The state of the boundary.
        arrays: Its arrays.
        key: The key of the seal.
        ready: Called with the state that is about to be in place. If it raises, the state is never there.
    """
    target, identity = file_path(path).resolve(), uuid.uuid4().hex
    meta = {"label": LABEL, "format": FORMAT, "identity": identity, **state}
    text = json.dumps(meta, default=_plain).encode()
    entries = {**arrays, "meta": np.frombuffer(text, dtype=np.uint8), "seal": _seal(text, arrays, key)}
    temporary = target.with_name(f".{target.name}.{identity}.tmp")
    with whole(target, temporary, 0o600, lambda: ready(Saved(target, identity))) as file:
        write_entries(file, entries)


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """A state that was read, with a valid seal.

    Its names and types are known. Reading does not spend it.
    """

    path: Path
    meta: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]

    def check_terms(self, terms: Mapping[str, Any]) -> None:
        """Raise ValueError if the boundary was built with other arguments."""
        wanted = json.loads(json.dumps(terms))
        different = sorted(name for name in wanted if wanted[name] != self.meta["terms"].get(name))
        if different:
            raise ValueError(
                f"{self.path} was saved by a boundary that differs in {', '.join(different)}: build this one with the "
                "same arguments."
            )

    def into(
        self,
        state: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        take: Callable[[Mapping[str, Any], Mapping[str, NDArray[Any]]], None],
    ) -> None:
        """Spend the state, and hand it to a new boundary.

        If it does not fit, raise ValueError and hand over nothing.

        Args:
            state: The state of the new boundary.
            arrays: The arrays of the new boundary.
            take: Called with the state and the arrays to restore.
        """
        restored = {**self.meta, "users": _arrays_again(self.meta["users"])}
        restored["sources"] = {role: _arrays_again(source) for role, source in self.meta["sources"].items()}
        if not (self._has_arrays(arrays) and self._has_numbers(state)):
            raise ValueError(f"{self.path} is damaged, or belongs to another kind of generator. Nothing was loaded.")
        Saved(self.path, self.meta["identity"]).spend()
        take(restored, self.arrays)

    def _has_arrays(self, wanted: Mapping[str, NDArray[Any]]) -> bool:
        """Return whether every array is there, with its shape and type."""
        mine, optional = self.arrays, {name for name in self.arrays if name.startswith(OPTIONAL)}
        return set(mine) - optional == {name for name in wanted if not name.startswith(OPTIONAL)} and all(
            mine[name].shape == wanted[name].shape and mine[name].dtype == wanted[name].dtype
            for name in set(mine) - optional
        )

    def _has_numbers(self, state: Mapping[str, Any]) -> bool:
        """Return whether counters and generators fit such a boundary.

        They have to be consistent with each other.
        """
        meta, counters = self.meta, self.meta["counters"]
        noise = meta["noise"]
        same = _has(counters, dict.fromkeys(state["counters"], int)) and _has(noise, dict.fromkeys(state["noise"], int))
        if not same:
            return False
        if not set(meta["sources"]) == set(meta["seeded"]) == set(state["sources"]):
            return False
        pairs = [(state["users"], meta["users"])]
        pairs += [(state["sources"][role], meta["sources"][role]) for role in state["sources"]]
        numbers = [meta["arrived"], *noise.values(), *counters.values()]
        most = state["terms"]["number of users"] or meta["arrived"]
        return (
            all(0 <= number < 2**53 for number in numbers)
            and all(_fits(mine, theirs) for mine, theirs in pairs)
            and counters["pending"] + counters["discarded"] <= counters["gone"] <= meta["arrived"] <= most
            and counters["released_users"] <= counters["gone"]
            and all(step <= meta["arrived"] for step in noise.values())  # an interrupt loses noise that was drawn
        )


def read(path: str | os.PathLike[str], key: bytes | None) -> Loaded:
    """Read a saved state, without pickle.

    Raise ValueError if it is damaged or its seal is wrong.
    """
    target = file_path(path).resolve()
    arrays, text = _read(target)
    meta = _parsed(target, text)
    seal = arrays.pop("seal", np.zeros(0))
    if not hmac.compare_digest(seal.tobytes(), _seal(text, arrays, key).tobytes()):
        raise ValueError(
            f"{target} is damaged, or was changed without its key, or was saved with another key= than the one given "
            "here. Nothing was loaded."
        )
    return Loaded(target, meta, arrays)


def _seal(text: bytes, arrays: Mapping[str, Any], key: bytes | None) -> NDArray[np.uint8]:
    """Return a digest of everything else in the file.

    With a key, it cannot be computed without the key.
    """
    if key is not None and not (isinstance(key, bytes) and len(key) >= LEAST_KEY):
        raise ValueError(
            f"key: give {LEAST_KEY} bytes or more, such as secrets.token_bytes(32), and store the key in another "
            "place than the file."
        )
    mac = hmac.new(b"" if key is None else key, text, hashlib.sha256)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        mac.update(f"{name} {array.dtype.str} {array.shape}".encode())
        mac.update(array.tobytes())
    return np.frombuffer(mac.digest(), dtype=np.uint8)


def _read(target: Path) -> tuple[dict[str, NDArray[Any]], bytes]:
    """Return the arrays in a file, read without pickle, and its text."""
    if not target.is_file():
        raise FileNotFoundError(f"There is no file {target}. States are written by board.save_state(path).")
    try:
        arrays = read_entries(target)
        text = arrays.pop("meta").tobytes()
    except Exception as error:  # noqa: BLE001 - a file may be anything
        raise _damaged(target, error) from None
    if not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise _damaged(target, TypeError())
    return arrays, text


def _parsed(target: Path, text: bytes) -> dict[str, Any]:
    """Return the parsed text of a file.

    Raise ValueError unless it has the known names and types, and nothing else.
    """
    try:
        meta: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(target, error) from None
    if isinstance(meta, dict) and meta.get("format") != FORMAT:
        raise ValueError(
            f"{target} was saved in format {meta.get('format')!r}; this version reads format {FORMAT}. Finish that run "
            "with the version that began it."
        )
    names_and_flags = _has(meta, _META) and all(type(flag) is bool for flag in meta["seeded"].values())
    if not (names_and_flags and _NAME.fullmatch(meta["identity"]) and _NAME.fullmatch(meta["boundary"])):
        raise _damaged(target, ValueError())
    return meta


def _has(content: Any, wanted: Mapping[str, type]) -> bool:
    """Return whether ``content`` has exactly these names and types of values."""
    return (
        isinstance(content, dict)
        and set(content) == set(wanted)
        and all(type(content[name]) is kind for name, kind in wanted.items())
    )


def _damaged(target: Path, error: Exception) -> ValueError:
    return ValueError(f"{target} is not the saved state of a boundary, or is damaged ({type(error).__name__}).")


def _fits(mine: Any, theirs: Any) -> bool:
    """Return whether a state belongs to a generator of the same kind.

    It is tested on a generator that is not used.
    """
    try:
        kind = getattr(np.random, mine["bit_generator"])
        kind(0).state = _arrays_again(theirs)
    except Exception:  # noqa: BLE001 - any error means that it does not fit
        return False
    return bool(theirs["bit_generator"] == mine["bit_generator"])


def digest(model: FiniteModel | None) -> str | None:
    """Return a digest of a known environment; None for an unknown one.

    It distinguishes known environments of the same size.
    """
    if model is None:
        return None
    content_hash = hashlib.sha256()
    for array in model.content():
        content_hash.update(array.tobytes())
    return content_hash.hexdigest()


def _plain(value: Any) -> Any:
    """Convert NumPy arrays and whole numbers for JSON.

    They are those in the state of a generator.
    """
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

"""The users who have come with an id: nobody comes twice, and no id is kept."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Members"]

DIGEST = 16  # bytes, so that two of a billion users are mistaken for each other with probability 1e-21


class Members:
    """Digests of ids, under a key that this boundary alone has.

    An id is compared as text: 7, 7.0 and "7" are one user.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._came: set[bytes] = set()

    def digests(self, ids: Iterable[Any]) -> list[bytes]:
        """The digests of these ids, in their order."""
        hashed = hashlib.blake2b(key=self._key, digest_size=DIGEST)
        found = []
        for identity in ids:
            one = hashed.copy()
            one.update(str(identity).encode() if type(identity) is int else _text(identity))
            found.append(one.digest())
        return found

    def known(self, digests: Iterable[bytes]) -> int:
        """The number of those who have come before."""
        return sum(digest in self._came for digest in digests)

    def add(self, digests: Iterable[bytes]) -> None:
        """Remember that they came."""
        self._came.update(digests)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The key and the digests, to be saved; nothing if nobody came with an id. Secret."""
        if not self._came:
            return {}
        joined = np.frombuffer(b"".join(sorted(self._came)), dtype=np.uint8)
        return {"key": np.frombuffer(self._key, dtype=np.uint8), "digests": joined}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take up a saved key and digests."""
        if arrays:
            joined = arrays["digests"].tobytes()
            self._key = arrays["key"].tobytes()
            self._came = {joined[start : start + DIGEST] for start in range(0, len(joined), DIGEST)}

    def __repr__(self) -> str:
        return "Members()"


def _text(identity: Any) -> bytes:
    if isinstance(identity, bytes):
        return identity
    if isinstance(identity, str):
        return identity.encode(errors="surrogatepass")
    if isinstance(identity, float | np.floating) and float(identity).is_integer():
        identity = int(identity)
    return str(identity).encode(errors="surrogatepass")

"""The users who have come with an id, and how often: nobody comes too often, and no id is kept."""

from __future__ import annotations

import hashlib
import math
import re
import secrets
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Members"]

DIGEST = 16  # bytes, so that two of a billion users are mistaken for each other with probability 1e-21


class Members:
    """Digests of ids, under a key that this boundary alone has.

    An id is compared as text, whole numbers without their zeros: 7, 7.0, "7" and "7.0" are one user.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._came: dict[bytes, int] = {}

    def digests(self, ids: Iterable[Any]) -> list[bytes]:
        """The digests of these ids, in their order."""
        hashed = hashlib.blake2b(key=self._key, digest_size=DIGEST)
        found = []
        for identity in ids:
            one = hashed.copy()
            if type(identity) is str and identity[:1].isalpha():  # no number: the usual id, quickly
                one.update(identity.encode(errors="surrogatepass"))
            else:
                one.update(str(identity).encode() if type(identity) is int else _text(identity))
            found.append(one.digest())
        return found

    def known(self, digests: Iterable[bytes], visits: int = 1) -> int:
        """The number of those who have come ``visits`` times before."""
        return sum(self._came.get(digest, 0) >= visits for digest in digests)

    def add(self, digests: Iterable[bytes]) -> None:
        """Remember that they came once more."""
        self._came.update({digest: self._came.get(digest, 0) + 1 for digest in digests})  # no interrupt divides it

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The key, the digests and the visits, to be saved; nothing if nobody came with an id. Secret."""
        if not self._came:
            return {}
        known = sorted(self._came)
        return {
            "key": np.frombuffer(self._key, dtype=np.uint8),
            "digests": np.frombuffer(b"".join(known), dtype=np.uint8),
            "visits": np.array([self._came[digest] for digest in known], dtype=np.int64),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take up a saved key, digests and visits."""
        if arrays:
            joined = arrays["digests"].tobytes()
            self._key = arrays["key"].tobytes()
            known = (joined[start : start + DIGEST] for start in range(0, len(joined), DIGEST))
            self._came = dict(zip(known, arrays["visits"].tolist(), strict=True))

    def __repr__(self) -> str:
        return "Members()"


_WHOLE = re.compile(rb"\s*([+-]?\d+)(?:\.0*)?\s*")


def _text(identity: Any) -> bytes:
    if isinstance(identity, float | np.floating | Decimal) and math.isfinite(identity) and identity == int(identity):
        identity = int(identity)
    text = identity if isinstance(identity, bytes) else str(identity).encode(errors="surrogatepass")
    whole = _WHOLE.fullmatch(text)
    return text if whole is None else whole[1]

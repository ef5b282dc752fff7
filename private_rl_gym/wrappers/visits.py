"""The number of tables that each user with an id has been in.

Ids themselves are not kept.
"""

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

from private_rl_gym.wrappers.sources.report import BadRowsError

__all__ = ["Visits", "plain_id"]

DIGEST = 16  # bytes, so that two of a billion users are mistaken for each other with probability 1e-21


class Visits:
    """The visits of users with an id, counted by digests.

    Digests are under a key that this boundary alone has. An id is compared as text, whole numbers without their zeros:
    7, 7.0, "7" and "7.0" are one user.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._came: dict[bytes, int] = {}

    def digests(self, ids: Iterable[Any]) -> list[bytes]:
        """Return the digests of these ids, in their order."""
        hashed = hashlib.blake2b(key=self._key, digest_size=DIGEST)
        digests = []
        for identity in ids:
            one = hashed.copy()
            if type(identity) is str and identity[:1].isalpha():  # no number: the usual id, quickly
                one.update(identity.encode(errors="surrogatepass"))
            else:
                one.update(plain_id(identity))
            digests.append(one.digest())
        return digests

    def checked(self, ids: Iterable[Any], visits: int) -> list[bytes]:
        """Return the digests of these ids, after a check of their visits.

        Each user may be in ``visits`` tables.

        Raises:
            BadRowsError: If one of them has come as often before, or is there twice.
        """
        came = self.digests(ids)
        twice = self.known(came, visits) + len(came) - len(set(came))
        if twice:
            often, covered = (
                ("", "come once") if visits == 1 else (f" {visits} times", f"are in at most {visits} tables")
            )
            raise BadRowsError(
                f"{twice:,} of {len(came):,} users have come before{often}, or are in the table twice. Nothing was "
                f"admitted, because the guarantee is for users who {covered}. (This message is about single users: it "
                "is for the owner of the table only.)"
            )
        return came

    def known(self, digests: Iterable[bytes], visits: int = 1) -> int:
        """Return the number of users who have come ``visits`` times before."""
        return sum(self._came.get(digest, 0) >= visits for digest in digests)

    def add(self, digests: Iterable[bytes]) -> None:
        """Record that these users came once more."""
        self._came.update({digest: self._came.get(digest, 0) + 1 for digest in digests})  # no interrupt divides it

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the key, the digests and the visits, to be saved.

        There are none if no user came with an id. They are secret.
        """
        if not self._came:
            return {}
        known = sorted(self._came)
        return {
            "key": np.frombuffer(self._key, dtype=np.uint8),
            "digests": np.frombuffer(b"".join(known), dtype=np.uint8),
            "visits": np.array([self._came[digest] for digest in known], dtype=np.int64),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a saved key, with its digests and visits."""
        if arrays:
            joined = arrays["digests"].tobytes()
            self._key = arrays["key"].tobytes()
            known = (joined[start : start + DIGEST] for start in range(0, len(joined), DIGEST))
            self._came = dict(zip(known, arrays["visits"].tolist(), strict=True))

    def __repr__(self) -> str:
        return "Visits()"


_WHOLE = re.compile(rb"\s*([+-]?\d+)(?:\.0*)?\s*")


def plain_id(identity: Any) -> bytes:
    """Return the text by which an id is compared.

    The ids 7, 7.0, "7", "7.0" and " 7 " are one id.
    """
    if isinstance(identity, float | np.floating | Decimal) and math.isfinite(identity) and identity == int(identity):
        identity = int(identity)
    if type(identity) is int and abs(identity) >> 64:
        return hex(identity).encode()  # the text of a number may have no more than 4,300 digits
    text = identity if isinstance(identity, bytes) else str(identity).encode(errors="surrogatepass")
    whole = _WHOLE.fullmatch(text)
    return text if whole is None else whole[1]

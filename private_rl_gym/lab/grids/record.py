"""The record of a finished run: its configuration, its guarantee and its curves."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.lab.registry import GridError

__all__ = ["Record", "StoreError"]

_ABOUT = b"private_rl_gym"


class StoreError(GridError):
    """The error for a wrong store directory, or for a wrong record file.

    Nothing was changed.
    """


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A finished cell.

    Attributes:
        key: Its name, the hash of its configuration.
        about: Configuration, ledger, versions and numbers, ready for JSON.
        users, curve, noise: Curves: numbers of users, and the measure and the noise in released sums after them.
    """

    key: str
    about: dict[str, Any]
    users: NDArray[np.int64]
    curve: NDArray[np.float64]
    noise: NDArray[np.float64]

    @property
    def measure(self) -> str:
        """The measure of the curve: ``"regret"``, or ``"return"`` without a true model."""
        return str(self.about.get("measure", "regret"))

    @property
    def regret(self) -> NDArray[np.float64]:
        """The curve of a run whose regret is known."""
        if self.measure != "regret":
            raise GridError(f"{self.key} has no regret: its true model is not known. It has returns.")
        return self.curve

    @property
    def epsilon(self) -> float:
        """The true epsilon; infinite if nothing is guaranteed."""
        epsilon = self.about["epsilon"]
        return float("inf") if epsilon is None else float(epsilon)

    def to_bytes(self) -> bytes:
        """Return the record as a Parquet file.

        The same record gives the same bytes.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        about = json.dumps(self.about, sort_keys=True).encode()
        columns = {"users": self.users, self.measure: self.curve, "noise": self.noise}
        table = pa.table(columns).replace_schema_metadata({_ABOUT: about})
        content = io.BytesIO()
        pq.write_table(table, content, compression="zstd")
        return content.getvalue()

    @classmethod
    def from_bytes(cls, key: str, content: bytes) -> Record:
        """Return the record in a Parquet file.

        Raise ``StoreError`` if the file is damaged.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(io.BytesIO(content))
            about = json.loads(table.schema.metadata[_ABOUT])
            names = ("users", str(about.get("measure", "regret")), "noise")
            users, curve, noise = (table.column(name).to_numpy() for name in names)
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{key} is no record, or is damaged ({type(error).__name__}): remove the file, and run the sweep again."
            ) from None
        return cls(key, about, users, curve, noise)

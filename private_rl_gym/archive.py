"""Zips of arrays and texts, written and read without pickle.

Files of agents and of boundaries are such zips.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

__all__ = ["read_entries", "write_entries"]

LARGEST = 2**33
"""The largest total size of the entries of a file, in bytes. Larger files are refused."""


def write_entries(file: IO[bytes], entries: Mapping[str, Any], *, compressed: bool = False) -> None:
    """Write a zip with an entry for each text and each array.

    The entry of an array is ``name.npy``.
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            if isinstance(content, str):
                archive.writestr(name, content)
                continue
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.save(entry, content, allow_pickle=False)


def read_entries(source: Path | IO[bytes]) -> dict[str, Any]:
    """Return the entries of a zip by name: arrays, and all others as bytes.

    Raises an error of any type if the zip is damaged.
    """
    with zipfile.ZipFile(source) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > LARGEST:
            raise ValueError("The file is too large.")
        entries = {name: archive.read(name) for name in archive.namelist()}
    found: dict[str, Any] = {}
    for name, content in entries.items():
        array = name.endswith(".npy")
        found[name.removesuffix(".npy")] = np.load(io.BytesIO(content), allow_pickle=False) if array else content
    return found

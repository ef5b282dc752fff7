"""Checks that arrays fit into the available memory."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["available_memory", "check_room", "in_bytes"]

LITTLE = 2**26
"""Bytes that are always there: the system is not asked for so few."""


def available_memory() -> int | None:
    """Return the bytes available without swapping; None where the machine does not report them."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def check_room(needed: int, what: str, advice: str) -> None:
    """Raise MemoryError if fewer than ``needed`` bytes are available.

    Args:
        needed: The number of bytes.
        what: What takes them: the subject of the message.
        advice: What the caller can change, as a sentence.
    """
    there = available_memory() if needed > LITTLE else None
    if there is not None and needed > there:
        raise MemoryError(f"{what} would take {in_bytes(needed)} of memory, and there are {in_bytes(there)}. {advice}")


def in_bytes(number: float) -> str:
    """Return a number of bytes in units that are easy to read.

    Example:
        >>> in_bytes(36_200_000_000), in_bytes(12_000)
        ('36.2 GB', '0.01 MB')
    """
    if number >= 1e9:
        return f"{number / 1e9:.1f} GB"
    return f"{number / 1e6:.1f} MB" if number >= 1e5 else f"{number / 1e6:.2f} MB"

"""Memory that is asked for, and memory that is there."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["available_memory", "in_bytes"]


def available_memory() -> int | None:
    """Bytes that this machine can give without swapping; None where it does not say."""
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


def in_bytes(number: float) -> str:
    """A number of bytes for readers.

    Example:
        >>> in_bytes(36_200_000_000), in_bytes(12_000)
        ('36.2 GB', '0.01 MB')
    """
    if number >= 1e9:
        return f"{number / 1e9:.1f} GB"
    return f"{number / 1e6:.1f} MB" if number >= 1e5 else f"{number / 1e6:.2f} MB"

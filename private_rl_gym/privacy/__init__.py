"""The mathematics of privacy: statistics, noise, counting, accounting."""

from __future__ import annotations

__all__: list[str] = []

"""The trust boundaries: Gymnasium wrappers that pass on only what their guarantee allows."""

from __future__ import annotations

__all__: list[str] = []

"""Figures of sweeps, their captions and findings, and the report that shows them."""

from __future__ import annotations

__all__: list[str] = []

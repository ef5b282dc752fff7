"""Runs, their figures, and what they show."""

from __future__ import annotations

__all__: list[str] = []

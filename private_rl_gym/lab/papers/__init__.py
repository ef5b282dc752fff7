"""Theorems of the papers: bounds as functions, and the settings of their measurements."""

from __future__ import annotations

__all__: list[str] = []

"""Policies from tables of finished episodes, with their ledgers and reports."""

from __future__ import annotations

__all__: list[str] = []

"""Grids of runs: configurations, cells, records and curves.

A file of configurations becomes cells. Each cell becomes a record in a store, and records become curves.
"""

from __future__ import annotations

__all__: list[str] = []

"""Advice before a deployment, by simulation.

It recommends a boundary, an agent, an epsilon and a number of users.
"""

from __future__ import annotations

__all__: list[str] = []

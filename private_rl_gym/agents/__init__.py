"""The learners: functions from releases to policies."""

from __future__ import annotations

__all__: list[str] = []

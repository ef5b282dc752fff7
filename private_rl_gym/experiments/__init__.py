"""Experiments: configurations, runs, records, figures and audits."""

from __future__ import annotations

__all__: list[str] = []

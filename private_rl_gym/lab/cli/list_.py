"""``private-rl-gym list``: the names that experiments can use."""

from __future__ import annotations

import json
from typing import Any

import typer

from private_rl_gym.lab.cli.options import Json
from private_rl_gym.lab.cli.screen import screen, sentences, table
from private_rl_gym.lab.grids.grid import BUILT_IN, read_grid
from private_rl_gym.lab.registry import AGENTS, BOUNDARIES, ENVIRONMENTS, Catalogue

__all__ = ["list_"]


@sentences
def list_(as_json: Json = False) -> None:
    """Print the names of environments, boundaries, agents and built-in grids.

    Case and hyphens do not matter: `DP-UCBVI`, `dpucbvi` and `DPUCBVI` are the same name.
    """
    catalogues: dict[str, Catalogue[Any]] = {"environments": ENVIRONMENTS, "boundaries": BOUNDARIES, "agents": AGENTS}
    groups = {group: {name: entry.summary for name, entry in found.items()} for group, found in catalogues.items()}
    grids = {name: read_grid(name) for name in BUILT_IN}
    groups["grids"] = {name: f"{grid.title} ({len(grid.cells)} cells)" for name, grid in grids.items()}
    if as_json:
        typer.echo(json.dumps(groups, indent=2))
        return
    shown = table(["", "~"], show_header=False)
    for group, names in groups.items():
        shown.add_row(f"[bold]{group}[/bold]", "")
        for name, summary in names.items():
            shown.add_row(f"  {name}", summary)
    screen().print(shown)

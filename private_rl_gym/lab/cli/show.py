"""``private-rl-gym show``: one record, as rows that ``train`` prints, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from private_rl_gym.lab.cli import options
from private_rl_gym.lab.cli.screen import pairs, screen, sentences, table
from private_rl_gym.lab.grids.record import Record
from private_rl_gym.lab.grids.store import Store
from private_rl_gym.lab.regret import EPISODES

__all__ = ["rows_of", "show"]


@sentences
def show(
    run: Annotated[
        str, typer.Argument(help="Key of the record, the first characters of the key, or the path of its file.")
    ],
    store: options.Store = options.STORE,
    as_json: options.Json = False,
) -> None:
    """Print one record: its configuration, its guarantee, and its curve.

    The curve is the regret, or the return, as a function of the number of users.
    """
    path = Path(run)
    record: Record = Record.from_bytes(path.stem, path.read_bytes()) if path.is_file() else Store(store).get(run)
    if as_json:
        curves = {name: getattr(record, name).tolist() for name in ("users", "noise")}
        curves[record.measure] = record.curve.tolist()
        typer.echo(json.dumps({**record.about, **curves}, indent=2))
        return
    pairs({"key": record.key, **rows_of(record)})
    lost = record.measure == "regret"
    curve = table([">users", f">{record.measure}", *([">a user"] if lost else []), ">noise"])
    for place in sorted({round(share * (len(record.users) - 1)) for share in (0, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)}):
        users, value, noise = record.users[place], record.curve[place], record.noise[place]
        shown = [f"{value:,.1f}", f"{value / users:.4f}"] if lost else [f"{value:,.3f}"]
        curve.add_row(f"{users:,}", *shown, f"{noise:,.4g}")
    screen().print(curve)


def rows_of(record: Record) -> dict[str, str]:
    """Return the facts of a record, by name."""
    about = record.about
    config = about["config"]
    rows = {part: _said(config[part]) for part in ("environment", "boundary", "agent")}
    rows |= {"users": f"{config['users']:,}", "seed": str(config["seed"]), "guarantee": about["guarantee"]}
    rows |= {**_worth(record), "package": about["package"]}
    return rows | ({"warning": " ".join(about["warnings"])} if about.get("warnings") else {})


def _worth(record: Record) -> dict[str, str]:
    """Return the regret of a run, or returns where the best is unknown.

    The returns are those of its policies.
    """
    about = record.about
    if record.measure == "return":
        return {
            "first policy returns": f"{record.curve[0]:.3f}, in {EPISODES} episodes of other users",
            "best learned policy returns": f"{about['deployed_value']:.3f}",
            "random actions return": f"{about['blind_value']:.3f}",
        }
    lost = about["regret"] / about["config"]["users"]
    return {
        "regret": f"{about['regret']:,.1f}, or {lost:.4f} of {about['optimal_value']:.4f} a user",
        "best learned policy loses": f"{about['deployed_gap']:.4f} a user",
    }


def _said(choice: dict[str, Any]) -> str:
    options = ", ".join(f"{key}={value!r}" for key, value in choice.items() if key != "name")
    return f"{choice['name']} ({options})" if options else str(choice["name"])

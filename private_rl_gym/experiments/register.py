"""Registers of guarantees: what was promised to the people in a table, run by run, and what all runs cost together."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import private_rl_gym
from private_rl_gym.experiments.names import GridError
from private_rl_gym.privacy.guarantee import Guarantee, Ledger, TrustModel, plain_number
from private_rl_gym.wrappers.boundary import Boundary

__all__ = ["LEDGER", "entry", "in_words", "refuse_to_overwrite", "spent"]

LEDGER = "ledger.json"


def entry(board: Boundary, about: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of a register: the ledger, in words too, with the date and whatever makes the run again.

    Nothing in it is computed from the table. There is no fingerprint either, by which a guess at the table could be
    tested.
    """
    kinds = {source.secure for source in board.sources().values()}
    noise = "a cryptographic generator, keyed" if kinds == {True} else "a generator that is not cryptographic, seeded"
    return {
        **board.ledger.to_dict(),
        "in words": in_words(board),
        "run": {
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "private_rl_gym": private_rl_gym.__version__,
            "noise": f"{noise} by {'a seed' if board.guarantee.seeded else 'the operating system'}",
            **about,
        },
    }


def in_words(board: Boundary) -> str:
    """The guarantee to people whose episodes were over when the table was taken in, in full sentences."""
    promised = board.ledger.outside
    if promised.model is TrustModel.NONE:
        return promised.sentence()
    chance = f", but for a chance of {plain_number(promised.delta)}" if promised.delta else ""
    simulated = (
        ""
        if promised.model is TrustModel.JDP
        else f" The {type(board).__name__} was simulated by the owner of the table, who holds all rows: this is no "
        f"{promised.model.full_name}, which is for users who keep theirs to themselves."
    )
    return (
        f"Each of the users in the table has ({plain_number(promised.epsilon)}, {plain_number(promised.delta)})-"
        f"differential privacy against everybody who sees what is published, now or later: it would have been at most "
        f"{math.exp(min(promised.epsilon, 700.0)):.3g} times as likely, had another user been in her place{chance}. "
        f"This covers all her rows: {promised.covers}. Whoever holds the table sees all of it.{simulated} "
        f"{' '.join(f'Warning: {warning}.' for warning in promised.warnings)}"
    ).strip()


def refuse_to_overwrite(folder: Path) -> None:
    """Raise GridError if the folder holds the ledger of an earlier run."""
    if (folder / LEDGER).exists():
        raise GridError(
            f"{folder} holds the ledger of an earlier run, whose cost stays whatever becomes of its policy: give "
            "another --out. `private-rl-gym spent` adds ledgers up."
        )


def spent(folders: Iterable[Path], delta: float | None = None) -> tuple[list[tuple[str, Guarantee]], Guarantee]:
    """The runs in these folders, and what all of them cost somebody who is in the tables of all.

    Args:
        folders: Folders of ``learn``, or their ledgers.
        delta: The delta that may be spent in all; by default the sum of theirs.
    """
    runs = [_read(folder / LEDGER if folder.is_dir() else folder) for folder in folders]
    promises = [promise for _, promise in runs]
    first, *others = (Ledger((promise,)) for promise in promises)
    try:
        total = first.compose(
            *others, delta=math.fsum(promise.delta for promise in promises) if delta is None else delta
        )
    except ValueError as error:
        raise GridError(str(error)) from None
    return runs, total


def _read(path: Path) -> tuple[str, Guarantee]:
    try:
        content = json.loads(path.read_text())
        run = content.get("run", {})
        name = f"{run.get('date', 'no date')}, {run.get('table', 'no table named')}"
        return f"{path.parent}: {name}", Guarantee.from_dict(content["outside"])
    except OSError:
        raise GridError(f"There is no ledger {path}. `private-rl-gym learn` writes one.") from None
    except (AttributeError, KeyError, TypeError, ValueError):
        raise GridError(f"{path} is no ledger, as `private-rl-gym learn` writes them.") from None

"""Ledgers of tables: the guarantee of each run, and of all together.

The guarantees are to the users in a table.
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import private_rl_gym
from private_rl_gym.durable import whole
from private_rl_gym.lab.registry import GridError
from private_rl_gym.privacy.accounting.guarantee import Guarantee, TrustModel, plain_number
from private_rl_gym.privacy.accounting.ledger import Ledger
from private_rl_gym.wrappers.boundary import Boundary

__all__ = ["LEDGER", "entry", "in_words", "refuse_to_overwrite", "spent", "write"]

LEDGER = "ledger.json"


def entry(board: Boundary, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of a register.

    It has the ledger, in words too, the date, and everything that is needed to run it again.

    Nothing in it is computed from the table. There is no fingerprint either, by which a guess at the table could be
    tested.
    """
    noise = "a cryptographic generator, keyed" if board.secure else "a generator that is not cryptographic, seeded"
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


def write(board: Boundary, about: Mapping[str, Any], folder: Path) -> Path:
    """Write the entry of a run to disk.

    Call this before anything of the run is shown: what is shown has been spent.
    """
    folder.mkdir(parents=True, exist_ok=True)
    content, target = json.dumps(entry(board, about), indent=2) + "\n", folder / LEDGER
    with whole(target, folder / f".{LEDGER}.{uuid.uuid4().hex}.tmp") as file:
        file.write(content.encode())
        refuse_to_overwrite(folder)  # another run may have ended there since this one began
    return target


def in_words(board: Boundary) -> str:
    """Return the guarantee to the users in a table, in full sentences."""
    stated = board.ledger.outside
    if stated.model is TrustModel.NONE:
        return stated.sentence()
    chance = f", except with probability {plain_number(stated.delta)}" if stated.delta else ""
    simulated = (
        ""
        if stated.model is TrustModel.JDP
        else f" The {type(board).__name__} was simulated by the owner of the table, who holds all rows: this is no "
        f"{stated.model.full_name}, which is for users who keep theirs to themselves."
    )
    return (
        f"Each user in the table has ({plain_number(stated.epsilon)}, {plain_number(stated.delta)})-differential "
        f"privacy against all readers of what is published, now and later. Every published result is at most "
        f"{math.exp(min(stated.epsilon, 700.0)):.3g} times as likely as with another user in their place{chance}. "
        f"This covers all their rows: {stated.covers}. The owner of the table sees all rows.{simulated} "
        f"{' '.join(f'Warning: {warning}.' for warning in stated.warnings)}"
    ).strip()


def refuse_to_overwrite(folder: Path) -> None:
    """Raise GridError if the folder holds the ledger of an earlier run."""
    if (folder / LEDGER).exists():
        raise GridError(
            f"{folder} holds the ledger of an earlier run, which must be kept. Give another --out. To add up ledgers, "
            "use `private-rl-gym spent`."
        )


def spent(folders: Iterable[Path], delta: float | None = None) -> tuple[list[tuple[str, Guarantee]], Guarantee]:
    """Return the runs in these folders, and their total cost.

    The cost is that to a user who is in the tables of all.

    Args:
        folders: Folders of ``learn``, or their ledgers.
        delta: The delta that may be spent in all; by default the sum of theirs.
    """
    runs = [_read(folder / LEDGER if folder.is_dir() else folder) for folder in folders]
    guarantees = [guarantee for _, guarantee in runs]
    first, *others = (Ledger((guarantee,)) for guarantee in guarantees)
    try:
        total = first.compose(
            *others, delta=math.fsum(guarantee.delta for guarantee in guarantees) if delta is None else delta
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

"""The stack that was audited, in sentences.

The sentences state the mechanism, the number of users, and the two worlds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from private_rl_gym.lab.audits.config import AuditConfig, environment_of, maker
from private_rl_gym.lab.audits.users import board_of, quiet
from private_rl_gym.privacy.accounting.guarantee import Guarantee
from private_rl_gym.privacy.mechanisms import MECHANISMS

__all__ = ["Coverage", "coverage_of"]

DEPLOYED = 50_000
"""Number of users of a deployment, where another mechanism may be the most accurate one."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The stack that was audited.

    Attributes:
        mechanisms: All mechanisms that were attacked, as ledgers describe them, and which attacks were on each.
        horizon: Steps of an episode.
        users: Users of the longest stream.
        releases: Number of releases in it.
        pair: The two users who make the difference between both worlds.
        deployed: The mechanism of a deployment with many users, and the options that audit it, if it is another one.
    """

    mechanisms: dict[str, list[str]]
    horizon: int
    users: int
    releases: int
    pair: str
    deployed: str | None

    @property
    def sentences(self) -> list[str]:
        """The same facts as sentences."""
        several = len(self.mechanisms) > 1  # the most accurate one depends on the number of users
        lines = [
            f"Mechanism: {mechanism}" + (f" ({'; '.join(attacks)})" if several else "")
            for mechanism, attacks in self.mechanisms.items()
        ]
        if self.pair:
            sizes = [(self.users, "user"), (self.horizon, "step"), (self.releases, "release")]
            said = ", ".join(f"{size} {name}{'s' * (size != 1)}" for size, name in sizes if size)
            lines.append(f"Seen: {said}. In one world {self.pair}.")
        lines.append("Not seen: noise that changes after the last user who was audited.")
        return lines if self.deployed is None else [*lines, self.deployed]

    def to_dict(self) -> dict[str, Any]:
        """Return the same facts as a dictionary, for JSON."""
        return asdict(self)


def coverage_of(config: AuditConfig, claims: Iterable[tuple[str, Guarantee]], games: Iterable[Any]) -> Coverage:
    """Return the coverage of an audit, from its longest stream.

    Args:
        config: The audit.
        claims: The names of all attacks, and their claims.
        games: The attacks; white boxes have a ``view``: steps, users, releases and the two users.
    """
    views = [game.view for game in games if hasattr(game, "view")]
    horizon, users, releases, pair = max(views, key=lambda view: (view[2], view[1]), default=(0, 0, 0, ""))
    mechanisms: dict[str, list[str]] = {}
    for title, claim in claims:
        mechanisms.setdefault(claim.mechanism, []).append(title)
    return Coverage(mechanisms, horizon, users, releases, pair, _deployed(config))


def _deployed(config: AuditConfig) -> str | None:
    """Return a sentence about a deployment with many users, or None.

    There is a sentence if such a deployment would use another mechanism.
    """
    try:
        env, make = environment_of(config, 2), maker(config)
        stacks = [quiet(partial(make, env, users, 0, config.statistic)) for users in (config.users, DEPLOYED)]
        here, there = (board_of(stack).audit.plan.terms["mechanism"] for stack in stacks)
    except Exception:  # noqa: BLE001 - no such mechanism, or none for so many users
        return None
    if here == there:
        return None
    counting, law = there
    options = f"--set boundary.counting={counting}"
    if len(MECHANISMS[counting].laws) > 1:
        options += f" --set boundary.noise={law}"
    return f"With {DEPLOYED:,} users it would be {counting} sums with {law} noise: audit that by {options}."

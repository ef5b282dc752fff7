"""The memory that a boundary will take, checked before anything is allocated."""

from __future__ import annotations

from private_rl_gym.planning.memory import available_memory, in_bytes
from private_rl_gym.privacy.protocols import ProtocolPlan
from private_rl_gym.privacy.randomizers.base import UserSide
from private_rl_gym.wrappers.sources import Source

__all__ = ["check", "needed"]

SUMS = 7
"""Arrays with a number for each cell that sums and releases take, without noise."""


def needed(side: UserSide, plan: ProtocolPlan) -> int:
    """Return an estimate of the bytes that sums, noise and a release take."""
    own = 0 if side.randomizer is None else side.randomizer.arrays
    return 8 * side.statistic.cells * (SUMS + plan.arrays + own)


def check(name: str, source: Source, side: UserSide, plan: ProtocolPlan) -> None:
    """Raise MemoryError if the sums, or the users in memory, do not fit.

    Args:
        name: Name of the boundary.
        source: The users.
        side: What they send.
        plan: What the protocol does.
    """
    there, users, sums = available_memory(), source.memory, needed(side, plan)
    if there is None or sums + users <= there:
        return
    sizes = f"at H={source.horizon}, S={source.n_states}, A={source.n_actions}"
    if users > there:
        raise MemoryError(
            f"An episode would take {in_bytes(users)} of memory, and there are {in_bytes(there)}: {sizes}. Shorten the "
            "horizon."
        )
    advice = "Shorten the horizon, make fewer states, or let users report single steps without their stages "
    advice += "(statistic='reports'; FrugalUCBVI with stationary=True), which hardly grows with the horizon."
    if side.statistic.name == "gradient":
        sizes, advice = f"at H={source.horizon}", "Take a smaller network, such as policy_kwargs={'net_arch': [32]}."
    raise MemoryError(
        f"The sums of this {name} would take {in_bytes(sums)} of memory, and there are {in_bytes(there)}: "
        f"{side.statistic.cells:,} numbers, {sizes}, several times over. {advice}"
    )

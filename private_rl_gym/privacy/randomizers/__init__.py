"""Noise on the user's side (local differential privacy).

* ``Randomizer``, ``UserSide`` - the interface
* ``RANDOMIZERS`` - all randomizers, by their value of ``randomizer=``
* ``randomized`` - what leaves the users' side under a randomizer, or under the one with the least noise
* ``answers`` - randomized answers about single values, for boundaries that publish no sums

A randomizer of your own is a subclass of ``Randomizer``: give the class in place of a name.
"""

from __future__ import annotations

import inspect

from private_rl_gym.privacy.accounting.conversion import check_budget
from private_rl_gym.privacy.errors import no_error
from private_rl_gym.privacy.randomizers.additive import Additive, Gaussian, Laplace
from private_rl_gym.privacy.randomizers.base import Randomizer, UserSide
from private_rl_gym.privacy.randomizers.directions import Cap, Direction
from private_rl_gym.privacy.randomizers.subsets import OneStep, Subset, Subsets, Unary, add_subset
from private_rl_gym.privacy.statistics.base import Statistic

__all__ = [
    "RANDOMIZERS",
    "Additive",
    "Cap",
    "Direction",
    "Gaussian",
    "Laplace",
    "OneStep",
    "Randomizer",
    "Subset",
    "Subsets",
    "Unary",
    "UserSide",
    "add_subset",
    "randomized",
]

RANDOMIZERS: dict[str, type[Randomizer]] = {
    kind.name: kind for kind in (OneStep, Unary, Laplace, Gaussian, Subset, Direction)
}

MANY = 1_000_000
"""Number of users for whom the noise of randomizers is compared."""


def randomized(
    statistic: Statistic,
    epsilon: float,
    delta: float,
    name: str | type[Randomizer] | None = None,
    *,
    printed: bool = False,
) -> Randomizer:
    """Return the randomizer of a statistic.

    Args:
        statistic: The exact statistic.
        epsilon: Epsilon of a user.
        delta: Delta of a user.
        name: A name in ``RANDOMIZERS``, a subclass of ``Randomizer``, or None for the one with the least noise.
        printed: Whether the papers' printed constants are taken, which are those of Laplace noise.

    Raises:
        ValueError: If the randomizer does not fit the statistic or the budget.
    """
    check_budget(epsilon, delta)

    def made(kind: type[Randomizer]) -> Randomizer:
        if printed and not issubclass(kind, Laplace):
            raise ValueError(
                f"calibration='paper' is for randomizer='laplace', the papers' own; {kind.name!r} has exact constants "
                "only."
            )
        options = {"printed": True} if printed else {}
        return kind(statistic.coded(kind.alphabet), epsilon, delta, **options)

    if inspect.isclass(name) and issubclass(name, Randomizer):
        return made(name)
    allowed = statistic.randomizers
    if name is not None:
        if name not in allowed:
            raise ValueError(
                f"randomizer is {name!r}: {statistic.title} are sent by {' or '.join(map(repr, allowed))}, or by a "
                "subclass of Randomizer."
            )
        return made(RANDOMIZERS[name])
    if printed:
        return made(Laplace)
    fitting = [made(RANDOMIZERS[one]) for one in allowed if one != "gaussian" or delta > 0.0]

    diluted = any(randomizer.statistic.dilution is not None for randomizer in fitting)

    def noise(randomizer: Randomizer) -> float:
        sent = randomizer.statistic
        error = sent.errors(randomizer.error(MANY, no_error), MANY)[sent.headline]
        # Users are in fewer entries where they say less: then entries without users are compared.
        return (sent.dilution or 1.0) * (error.unvisited_std if diluted else error.std)

    return min(fitting, key=noise)

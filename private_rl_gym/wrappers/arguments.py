"""The arguments of all boundaries, and the check of a call.

* ``CommonOptions`` - the options of all boundaries, and what they mean
* ``CommonArguments`` - their types, where constructors pass them on
* ``StatisticChoice`` - the values of ``statistic=``
* ``signature_of`` - the whole signature of a constructor
* ``bound_arguments`` - the arguments of a call by name
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_type_hints

from private_rl_gym.planning.arrays import flag, positive_integer
from private_rl_gym.planning.features import LinearFeatures
from private_rl_gym.planning.network import Layers
from private_rl_gym.planning.polynomials import Polynomials
from private_rl_gym.privacy.noise import NoiseSource, Rng, rng_of
from private_rl_gym.privacy.schedule import Schedule

if TYPE_CHECKING:
    from private_rl_gym.wrappers.base import Sealed
    from private_rl_gym.wrappers.boundary import Boundary

__all__ = ["CommonArguments", "CommonOptions", "StatisticChoice", "bound_arguments", "signature_of"]

StatisticName = Literal["tabular", "linear", "reports", "staged-reports", "gradient", "dynamics"]
StatisticChoice = StatisticName | LinearFeatures | Layers | Polynomials
"""The values of ``statistic=``."""


class CommonArguments(TypedDict, total=False):
    """The arguments that all boundaries take and pass on.

    ``CommonOptions`` describes them.
    """

    statistic: StatisticChoice | None
    schedule: int | Schedule
    stationary: bool
    horizon: int | None
    reward_range: tuple[float, float] | None
    rng: Rng


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """The checked options of all boundaries.

    Attributes:
        users: The number of users that may come; None for any number.
        visits: The number of tables that a user may be in.
        statistic: The kind of sums: ``"tabular"`` counts; ``"reports"`` of single steps, or ``"staged-reports"`` with
            their stages; ``"linear"`` moments, for linear learners, with the features that the environment knows or
            with ``LinearFeatures`` of your own; the ``"gradient"`` of a policy network, with ``Layers`` for others
            than the usual ones; or the ``"dynamics"`` of a model, with ``Polynomials`` for another degree. By default
            the kind that the agent needs.
        schedule: The number of users in a batch; there is a release after every batch, and the last batch may be
            smaller. Larger batches need fewer releases and less noise. ``Schedule(batch_size, growth, releases)`` makes
            batches grow, or plans more releases.
        stationary: Says that the problem is the same at every stage. Then a user counts once in each (s, a), all stages
            are pooled, and every stage of a release has the same counts.
        horizon: Largest number of steps in an episode, if the environment does not define it.
        reward_range: The least and the largest reward, which are mapped to 0 and 1; they must contain 0, which an
            episode that ended early earns while it waits. By default rewards are in [0, 1] already.
        rng: A seed, for experiments that can be repeated: it voids the guarantee, and the ledger says so. ``"secure"``
            draws noise from a cryptographic generator. By default noise is seeded by the operating system.
    """

    users: int | None = None
    visits: int = 1
    statistic: Any = None
    schedule: Schedule = field(default_factory=Schedule)
    stationary: bool = False
    horizon: int | None = None
    reward_range: tuple[float, float] | None = None
    rng: Rng = None

    def __post_init__(self) -> None:
        users = None if self.users is None else positive_integer(self.users, "users", "users")
        object.__setattr__(self, "users", users)
        object.__setattr__(self, "visits", positive_integer(self.visits, "visits", "episodes of one user"))
        object.__setattr__(self, "rng", rng_of(self.rng))
        flag(self.stationary, "stationary")

    @classmethod
    def of(
        cls,
        kind: type[Boundary],
        given: CommonArguments,
        *,
        users: int | None,
        visits: int = 1,
        printed: bool = False,
    ) -> CommonOptions:
        """Return the options of a boundary of this class.

        With printed constants, the statistic is counts if none is named.
        """
        rest: dict[str, Any] = dict(given)
        schedule, statistic = Schedule.of(rest.pop("schedule", kind.usual_batch)), rest.pop("statistic", None)
        if schedule.releases is not None and not kind.plans_releases:
            raise ValueError(
                f"{kind.__name__} plans no number of releases: leave it out of the schedule. It is for JDPBillboard."
            )
        if printed and statistic is None:
            statistic = "tabular"
        return cls(users=users, visits=visits, schedule=schedule, statistic=statistic, **rest)

    def source(self, role: str) -> NoiseSource:
        """Return a stream of random numbers of this boundary, for one role."""
        return NoiseSource(self.rng, role=role)


RENAMED = {
    "batch_size": "schedule=500",
    "growth": "schedule=Schedule(500, growth=0.25)",
    "releases": "schedule=Schedule(500, releases=20)",
    "seed": "rng=3",
    "secure": "rng='secure'",
}
"""Arguments of other names, and what to write in their place."""


def signature_of(kind: type[Sealed]) -> inspect.Signature:
    """Return the signature of a constructor.

    It names each of the options that the constructor passes on.
    """
    own = list(inspect.signature(kind.__init__).parameters.values())[1:]
    kinds = {parameter.kind: parameter.name for parameter in own}
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return inspect.signature(kind.__mro__[1])  # everything is passed on
    rest = kinds.get(inspect.Parameter.VAR_KEYWORD)
    if rest is None:
        return inspect.Signature(own)
    if rest == "common":
        usual = {item.name: item.default for item in fields(CommonOptions)} | {"schedule": kind.usual_batch}
        passed = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=usual[name], annotation=hint)
            for name, hint in get_type_hints(CommonArguments).items()
        ]
    else:
        above = inspect.signature(kind.__mro__[1]).parameters
        names = {parameter.name for parameter in own}
        passed = [one.replace(kind=one.KEYWORD_ONLY) for name, one in above.items() if name not in names]
    return inspect.Signature([*own[:-1], *passed])


def bound_arguments(kind: type[Sealed], positional: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a constructor by name, with defaults.

    Raises:
        TypeError: If they do not fit, with the line to write.
    """
    signature, name = inspect.signature(kind), kind.__name__
    for old in named:
        if old in RENAMED and old not in signature.parameters:
            raise TypeError(f"{name} takes no {old}: write {RENAMED[old]}.")
    try:
        bound = signature.bind(*positional, **named)
    except TypeError as error:
        parameters = signature.parameters.values()
        places = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
        given = {*places[: len(positional)], *named}
        lacks = [f"{one.name}=" for one in parameters if one.default is one.empty and one.name not in given]
        missing = f" It needs {', '.join(lacks)}." if lacks else ""
        raise TypeError(
            f"{name}: {error}.{missing} Its arguments are {', '.join(places)}, and by name "
            f"{', '.join(one.name for one in parameters if one.kind is one.KEYWORD_ONLY)}."
        ) from None
    bound.apply_defaults()
    return dict(bound.arguments)

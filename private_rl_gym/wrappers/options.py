"""The common part of the constructors of boundaries.

It chooses a statistic, finds the boundary inside, and writes notes.

* ``statistic_of`` - the statistic for some users
* ``inside`` - the boundary that another one is put around
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from private_rl_gym.planning.arrays import among, shown
from private_rl_gym.planning.features import LinearFeatures
from private_rl_gym.planning.network import Layers
from private_rl_gym.planning.polynomials import Polynomials
from private_rl_gym.privacy.statistics import (
    Dynamics,
    Gradients,
    LinearMoments,
    PooledCounts,
    Reports,
    Statistic,
    TabularCounts,
)
from private_rl_gym.wrappers.arguments import CommonOptions
from private_rl_gym.wrappers.base import Sealed
from private_rl_gym.wrappers.sources import (
    TRANSPARENT,
    EnvironmentSource,
    NetworkSource,
    Source,
    countable,
    layers,
)

if TYPE_CHECKING:
    from private_rl_gym.wrappers.boundary import Boundary

__all__ = [
    "about_networks",
    "calibration_notes",
    "inside",
    "source_of",
    "statistic_of",
    "uses_printed_constants",
]


def inside(outer: Boundary, env: gym.Env[Any, Any], options: CommonOptions) -> Boundary | None:
    """Return the boundary that another one is put around, or None.

    Raises:
        ValueError: If the combination makes no sense.
    """
    name, between = type(outer).__name__, []
    for layer in layers(env):
        kind = type(layer).__name__
        if getattr(layer, "randomizes_steps", False):
            raise ValueError(
                f"{name} around {kind} makes no sense: its rewards are noisy, and sums need rewards in [0, 1]. Use "
                "LDPUserSide, whose reports are made to be summed."
            )
        if not isinstance(layer, Sealed):
            between += [] if isinstance(layer, TRANSPARENT) else [kind]
            continue
        inner: Any = layer
        if inner.short not in outer.may_enclose:
            allowed = f", or around {' or '.join(outer.may_enclose)}" if outer.may_enclose else " alone"
            raise ValueError(
                f"{name} around {kind} makes no sense: users' data has left their trust there already. {name} may "
                f"be put around a bare environment{allowed}."
            )
        if between:
            raise ValueError(
                f"{', '.join(between)} between {kind} and {name} would see nothing and change nothing: put it "
                "inside both, around the environment."
            )
        _check_around(name, kind, inner, options)
        return inner  # type: ignore[no-any-return]
    return None


def _check_around(name: str, kind: str, inner: Boundary, options: CommonOptions) -> None:
    """Raise ValueError if the boundary inside is taken, or if options belong to it."""
    if inner._outer is not None:
        raise ValueError(f"{kind} lies inside a {inner._outer} already: build another one.")
    if inner._admission.arrived or inner._pipeline.fixed:
        met = "users" if inner._admission.arrived else "an agent, or has taken up a saved state,"
        raise ValueError(f"{kind} has met {met} already: build the whole stack first.")
    if options.reward_range is not None:
        raise ValueError(
            f"reward_range is {options.reward_range!r}: rewards are mapped where users are met. Give it to the {kind} "
            "inside."
        )
    if options.users is not None and inner.users is not None and inner.users < options.users:
        raise ValueError(f"users is {options.users}: the {kind} inside was built for {inner.users}.")
    if options.stationary:
        raise ValueError(f"stationary=True is for the {kind} inside, where users report.")
    if options.visits > 1:
        raise ValueError(
            f"visits is {options.visits}: no joint calibration is proved for reports that users noise themselves. "
            f"Leave it out, or put {name}(..., visits={options.visits}) around the bare environment."
        )
    if options.statistic is not None and inner._options.statistic is not None:
        raise ValueError(
            f"statistic is {options.statistic!r}, and the {kind} inside has one already: what is summed is decided "
            "where users report. Leave it out."
        )


def about_networks(wanted: Any) -> str | None:
    """Return the name of the statistic that is asked for, if its users run networks."""
    if isinstance(wanted, Layers) or (isinstance(wanted, str) and wanted == "gradient"):
        return "gradient"
    return "dynamics" if isinstance(wanted, Polynomials) or (isinstance(wanted, str) and wanted == "dynamics") else None


def source_of(board: Boundary, env: gym.Env[Any, Any], options: CommonOptions, statistic: Any) -> Source:
    """Return the source of users that a statistic needs.

    Users are in states that are counted, or run networks.
    """
    named = about_networks(statistic)
    if named is not None and not board.differentiates:
        raise ValueError(
            f"{type(board).__name__} publishes no {'gradients' if named == 'gradient' else 'dynamics'}: use "
            "JDPBillboard or LDPUserSide around the environment itself, or OpenBillboard for a run without privacy."
        )
    uncounted = statistic is None and board.differentiates and not countable(env)
    if named is None and not uncounted:
        return EnvironmentSource(env, options.horizon, options.reward_range)
    if options.reward_range is not None:
        raise ValueError("reward_range is for sums of rewards: networks take rewards of any size. Leave it out.")
    if named == "dynamics":
        return NetworkSource(env, options.horizon, None)
    return NetworkSource(env, options.horizon, statistic if isinstance(statistic, Layers) else Layers())


def statistic_of(source: Source, wanted: Any, *, stationary: bool = False, printed: bool = False) -> Statistic:
    """Return the requested statistic for these users.

    Args:
        source: The users.
        wanted: A value of ``statistic=``.
        stationary: Whether counts are pooled over stages.
        printed: Whether the papers' printed constants are taken.

    Raises:
        ValueError: If there is none.
    """
    if (named := about_networks(wanted)) is not None:
        if printed or stationary:
            raise ValueError(f"{named} sums are for calibration='exact', and know no stages: leave the rest out.")
        assert source.network is not None  # noqa: S101 - their users have one
        if named == "gradient":
            return Gradients(source.network, source.horizon)
        degree = wanted.degree if isinstance(wanted, Polynomials) else Polynomials().degree
        return Dynamics(source.network, source.horizon, degree)
    if stationary and (printed or wanted not in ("tabular", "reports")):
        raise ValueError(
            "stationary=True pools 'tabular' counts, with calibration='exact'; 'reports' are pooled as they are. Leave "
            "it out."
        )
    sizes = source.horizon, source.n_states, source.n_actions
    if isinstance(wanted, str) and wanted == "tabular":
        return PooledCounts(*sizes) if stationary else TabularCounts(*sizes, separate_visits=printed)
    if isinstance(wanted, str) and wanted in ("reports", "staged-reports"):
        if printed:
            raise ValueError("Reports are in no paper: leave calibration out.")
        return Reports(*sizes, staged=wanted == "staged-reports")
    features = _known_features(source) if isinstance(wanted, str) and wanted == "linear" else wanted
    if not isinstance(features, LinearFeatures):
        given = repr(wanted) if isinstance(wanted, str) else f"a {type(wanted).__name__}"
        raise ValueError(  # noqa: TRY004 - a choice among some
            f"statistic is {given}: choose 'tabular' counts, 'reports' or 'staged-reports' for single steps, "
            "'gradient' for a policy network's, 'dynamics' for a model's, 'linear' for the features that the "
            "environment knows, or hand over "
            "LinearFeatures, such as mixture.features."
        )
    if (features.n_states, features.n_actions) != (source.n_states, source.n_actions):
        extra = " (the last state is where episodes wait that ended early)" if source.padded else ""
        raise ValueError(f"{features} do not fit the users, who have S={source.n_states}{extra}, A={source.n_actions}.")
    return LinearMoments(features, source.horizon, paper=printed)


def _known_features(source: Source) -> LinearFeatures:
    """Return the features that the environment knows."""
    mixture = getattr(source.env.unwrapped, "mixture", None)
    if mixture is not None:
        return mixture.features  # type: ignore[no-any-return]
    d = source.n_states**2 * source.n_actions
    small = f" LinearFeatures.tabular({source.n_states}, {source.n_actions}) always fits." if d <= 1000 else ""
    raise ValueError(
        f"{source.env} does not say what may be known of it. Tell the boundary, for instance "
        f"OpenBillboard(env, statistic=LinearFeatures.dense(...)).{small}"
    )


def uses_printed_constants(calibration: str) -> bool:
    """Return whether the papers' constants are requested.

    Raise ValueError for an unknown calibration.
    """
    if not among(calibration, ("exact", "paper")):
        raise ValueError(
            f"calibration is {shown(calibration)}: choose 'exact', or 'paper' for the papers' printed constants."
        )
    return calibration == "paper"


def calibration_notes(asked: float, true: float, *, warn: bool = False) -> tuple[str, ...]:
    """Return the note in the ledger about printed constants.

    With ``warn``, also warn.
    """
    if warn:
        why = (
            "count adding a user where one is replaced" if true > asked else "split the budget over stages and counters"
        )
        warnings.warn(
            f"calibration='paper' uses the papers' printed constants, which {why}: "
            f"they print epsilon = {asked:g} and cost {true:.3g}. The ledger states what they cost.",
            stacklevel=4,
        )
    return (f"calibration='paper', printed as epsilon = {asked:g}",)

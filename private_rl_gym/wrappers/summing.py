"""Options that boundaries share: the statistic and the calibration."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal

from private_rl_gym.planning.features import LinearFeatures
from private_rl_gym.planning.network import Layers, Network
from private_rl_gym.privacy.gradients import Gradients
from private_rl_gym.privacy.moments import LinearMoments
from private_rl_gym.privacy.pooled import PooledCounts
from private_rl_gym.privacy.reports import Reports
from private_rl_gym.privacy.statistics import Statistic, TabularCounts

if TYPE_CHECKING:
    from private_rl_gym.wrappers.population import Population

__all__ = ["StatisticChoice", "about_gradients", "calibration_notes", "exact_statistic", "uses_printed_constants"]

StatisticChoice = Literal["tabular", "linear", "reports", "staged-reports", "gradient"] | LinearFeatures | Layers
"""The values of ``statistic=``."""


def about_gradients(wanted: Any) -> bool:
    """Whether this value of ``statistic=`` asks for gradients."""
    return isinstance(wanted, Layers) or (isinstance(wanted, str) and wanted == "gradient")


def exact_statistic(
    population: Population,
    wanted: Any,
    *,
    stationary: bool = False,
    paper: bool = False,
    public_start: bool = False,
    zero_out: bool = False,
) -> Statistic:
    """The requested statistic for these users. Raises ValueError if there is none."""
    if zero_out and public_start:
        raise ValueError("public_start=True replaces a user, and neighbours='zero-out' none: leave one of them out.")
    if about_gradients(wanted):
        if paper or public_start or stationary:
            raise ValueError("Gradients are for calibration='exact', and hide users from everyone: leave the rest out.")
        network: Network = population.network  # type: ignore[attr-defined] # users of gradients have one
        return Gradients(network, population.horizon, zero_out=zero_out)
    if stationary and (paper or public_start or wanted not in ("tabular", "reports")):
        raise ValueError(
            "stationary=True pools 'tabular' counts, with calibration='exact' and without public_start; 'reports' are "
            "pooled as they are. Leave it out."
        )
    if isinstance(wanted, str) and wanted == "tabular":
        sizes = population.horizon, population.n_states, population.n_actions
        if stationary:
            return PooledCounts(*sizes, zero_out=zero_out)
        return TabularCounts(*sizes, separate_visits=paper, public_start=public_start, zero_out=zero_out)
    if isinstance(wanted, str) and wanted in ("reports", "staged-reports"):
        if paper or public_start:
            raise ValueError("Reports are in no paper, and hide users from everyone: leave calibration, public_start.")
        sizes = population.horizon, population.n_states, population.n_actions
        return Reports(*sizes, staged=wanted == "staged-reports", zero_out=zero_out)
    if zero_out:
        raise ValueError("neighbours='zero-out' has no bound for moments of features: write neighbours='replace'.")
    if public_start:
        raise ValueError("public_start=True is for counts: leave statistic='tabular'.")
    features = wanted
    if isinstance(wanted, str) and wanted == "linear":
        mixture = getattr(population.env.unwrapped, "mixture", None)
        if mixture is None:
            d = population.n_states**2 * population.n_actions
            small = (
                f" LinearFeatures.tabular({population.n_states}, {population.n_actions}) always fits."
                if d <= 1000
                else ""
            )
            raise ValueError(
                f"{population.env} does not say what may be known of it. Tell the boundary, for instance "
                f"OpenBillboard(env, statistic=LinearFeatures.dense(...)).{small}"
            )
        features = mixture.features
    if not isinstance(features, LinearFeatures):
        given = repr(wanted) if isinstance(wanted, str) else f"a {type(wanted).__name__}"
        raise ValueError(  # noqa: TRY004 - a choice among four
            f"statistic is {given}: choose 'tabular' for counts, 'reports' or 'staged-reports' for single steps, "
            "'gradient' for a policy network's, 'linear' for the features that the environment knows, or hand over "
            "LinearFeatures, such as "
            "mixture.features."
        )
    if (features.n_states, features.n_actions) != (population.n_states, population.n_actions):
        extra = " (the last state is where episodes wait that ended early)" if population.padded else ""
        raise ValueError(
            f"{features} do not fit the users, who have S={population.n_states}{extra}, A={population.n_actions}."
        )
    return LinearMoments(features, population.horizon, paper=paper)


def uses_printed_constants(calibration: str) -> bool:
    """Whether the papers' constants are requested. Raises ValueError for an unknown calibration."""
    if calibration not in ("exact", "paper"):
        raise ValueError(
            f"calibration is {calibration!r}: choose 'exact', or 'paper' for the papers' printed constants "
            "(or, on a JDPBillboard, 'released')."
        )
    return calibration == "paper"


def calibration_notes(
    asked: float, true: float, *, paper: bool, released: bool = False, warn: bool = False
) -> tuple[str, ...]:
    """The note in the ledger about constants that are not ours; with ``warn``, also a warning."""
    if released:
        if warn:
            warnings.warn(
                f"calibration='released' runs as epsilon = {asked:g} and costs {true:.3g}: its noise is fresh at every "
                "release, so that it averages out, and has no horizon in it. The ledger states what it costs.",
                stacklevel=3,
            )
        return (f"calibration='released', run as epsilon = {asked:g}",)
    if not paper:
        return ()
    if warn:
        why = (
            "count adding a user where one is replaced" if true > asked else "split the budget over stages and counters"
        )
        warnings.warn(
            f"calibration='paper' uses the papers' printed constants, which {why}: "
            f"they print epsilon = {asked:g} and cost {true:.3g}. The ledger states what they cost.",
            stacklevel=3,
        )
    return (f"calibration='paper', printed as epsilon = {asked:g}",)

"""What a boundary sums: counts, or the moments of a linear learner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from private_rl_gym.planning.features import LinearFeatures
from private_rl_gym.privacy.moments import LinearMoments
from private_rl_gym.privacy.statistics import Statistic, TabularCounts

if TYPE_CHECKING:
    from private_rl_gym.wrappers.inside import Inside

__all__ = ["Summed", "exact_statistic"]

Summed = Literal["tabular", "linear"] | LinearFeatures
"""What ``statistic=`` may say."""


def exact_statistic(inside: Inside, wanted: Any, *, paper: bool = False, public_start: bool = False) -> Statistic:
    """The statistic that was asked for, for these users; or a sentence."""
    if isinstance(wanted, str) and wanted == "tabular":
        sizes = inside.horizon, inside.n_states, inside.n_actions
        return TabularCounts(*sizes, separate_visits=paper, public_start=public_start)
    if public_start:
        raise ValueError("public_start=True is for counts: leave statistic='tabular'.")
    features = wanted
    if isinstance(wanted, str) and wanted == "linear":
        mixture = getattr(inside.env.unwrapped, "mixture", None)
        if mixture is None:
            d = inside.n_states**2 * inside.n_actions
            small = f" LinearFeatures.tabular({inside.n_states}, {inside.n_actions}) always fits." if d <= 1000 else ""
            raise ValueError(
                f"{inside.env} does not say what may be known of it. Tell the boundary, for instance "
                f"OpenBillboard(env, statistic=LinearFeatures.dense(...)).{small}"
            )
        features = mixture.features
    if not isinstance(features, LinearFeatures):
        said = repr(wanted) if isinstance(wanted, str) else f"a {type(wanted).__name__}"
        raise ValueError(  # noqa: TRY004 - a choice among three
            f"statistic is {said}: choose 'tabular' for counts, 'linear' for the features that the environment "
            "knows, or hand over LinearFeatures, such as mixture.features."
        )
    if (features.n_states, features.n_actions) != (inside.n_states, inside.n_actions):
        extra = " (the last state is where episodes wait that ended early)" if inside.padded else ""
        raise ValueError(f"{features} do not fit the users, who have S={inside.n_states}{extra}, A={inside.n_actions}.")
    return LinearMoments(features, inside.horizon, paper=paper)

"""Bounds beside measured curves, and captions that say what was found."""

import numpy as np
import pytest

from private_rl_gym.lab.figures.sweeps import caption_of, findings, of_grid
from private_rl_gym.lab.figures.theorems import lower_bound, sizes_of, upper_bound
from private_rl_gym.lab.grids.grid import GridError, grid_of
from private_rl_gym.lab.grids.run import run_cell
from private_rl_gym.lab.grids.summary import summarize
from private_rl_gym.lab.papers import bounds
from private_rl_gym.lab.registry import AGENTS

CONTENT = {
    "name": "small",
    "title": "Small",
    "users": 2_000,
    "seeds": 2,
    "environment": {"id": "RiverSwim", "horizon": 5, "n_states": 3},
    "runs": [
        {"label": "open", "agent": "UCBVI", "boundary": {"name": "open", "batch_size": 100}},
        {
            "label": "jdp",
            "agent": "DPUCBVI",
            "boundary": {"name": "jdp", "epsilon": 30.0, "delta": 1e-6, "batch_size": 100},
        },
        {"label": "none", "agent": "PSRL", "boundary": {"name": "open", "batch_size": 100}},
    ],
    "figure": {"bounds": True, "paper": "The paper's order."},
}


@pytest.fixture(scope="module")
def curves():
    return summarize((cell, run_cell(cell)) for cell in grid_of(CONTENT).cells)


def test_measured_regret_is_below_the_upper_bound_where_it_says_anything(curves):
    """Practical learners on an easy problem, whose theorem's order is generous."""
    said = 0
    for curve in curves:
        upper = upper_bound(curve)
        if upper is not None:
            speaks = ~np.isnan(upper)
            said += speaks.sum()
            assert (curve.regret[:, speaks] <= upper[speaks]).all()
    assert said > 5


def test_a_learner_that_never_learns_rises_above_its_bound(curves):
    """The same comparison fails for regret that is linear in users: most of what there is to lose, every time."""
    curve = curves[0]
    later = np.array([10**4, 10**6, 10**8])
    H, S, A = sizes_of(curve)
    order = np.array([bounds.dp_ucbvi_regret(H, S, A, int(users), np.inf) for users in later])
    assert (0.1 * H * later > order).any()


def test_bounds_are_those_of_the_theorems_at_the_curves_sizes(curves):
    open_, private, none = curves
    assert sizes_of(open_) == (5, 3, 2)
    assert upper_bound(open_)[-1] == pytest.approx(bounds.dp_ucbvi_regret(5, 3, 2, 2_000, np.inf))
    assert upper_bound(private)[-1] == pytest.approx(bounds.dp_ucbvi_regret(5, 3, 2, 2_000, 30.0))
    assert upper_bound(none) is None
    assert np.isnan(upper_bound(open_)[0])  # of a hundred users or fewer it says nothing
    assert (lower_bound(open_) <= np.nan_to_num(upper_bound(open_), nan=np.inf) * (1 + 1e-12)).all()


@pytest.mark.parametrize("agent", [name for name, entry in AGENTS.items() if entry.bounds])
def test_every_bound_is_a_function_of_the_same_sizes(agent):
    for bound in AGENTS[agent].bounds.values():
        assert bound(10, 6, 2, 1_000, 1.0) > 0.0


@pytest.mark.slow
def test_a_grid_draws_its_bounds_if_it_asks_for_them(curves):
    with_bounds, without = (
        of_grid(grid_of({**CONTENT, "figure": figure}), curves)["regret"].axes[0] for figure in (CONTENT["figure"], {})
    )
    assert len(with_bounds.lines) == len(without.lines) + 3  # two theorems, and the lower bound
    texts = [" ".join(text.get_text().split()) for text in with_bounds.texts]
    assert "order of the lower bound" in texts
    assert texts.count("dotted: upper bounds, constant 1") == 1  # in the colours of their curves


def test_a_caption_says_what_the_paper_said_and_what_was_measured(curves):
    caption = caption_of(grid_of(CONTENT), "regret", curves)
    assert "In the paper: The paper's order. Here: From the least regret, " in caption
    ranked = sorted(curves, key=lambda curve: curve.mean[-1])
    places = [caption.index(f"{curve.label} {curve.mean[-1]:,.0f}") for curve in ranked]
    assert places == sorted(places)
    assert caption_of(grid_of(CONTENT), "privacy", curves).endswith(caption[caption.index("In the paper") :])
    assert "In the paper" not in caption_of(grid_of(CONTENT), "noise", curves)
    assert "epsilon = " not in findings(curves[:1])


@pytest.mark.parametrize("figure", [{"bounds": "yes"}, {"paper": 3}, {"title": 3}])
def test_figures_of_another_kind_are_refused(figure):
    with pytest.raises(GridError, match="it must be"):
        grid_of({**CONTENT, "figure": figure})


def test_bounds_are_refused_where_the_true_model_is_not_known():
    lake = {"id": "FrozenLake-v1", "horizon": 5}
    with pytest.raises(GridError, match="true model of 'FrozenLake-v1' is not known: leave bounds out"):
        grid_of({**CONTENT, "environment": lake})
    assert grid_of({**CONTENT, "environment": lake, "figure": {}}).cells


TINY = {"id": "Garnet", "n_states": 2, "n_actions": 2, "horizon": 3, "branching": 2, "instance_seed": 3}
PROMISES = {
    "open": {"name": "open", "batch_size": 100},
    "jdp": {"name": "jdp", "epsilon": 30.0, "delta": 1e-6, "batch_size": 100},
    "ldp": {"name": "ldp", "epsilon": 30.0, "batch_size": 100},
    "sdp": {"name": "sdp", "epsilon": 30.0, "delta": 1e-6, "batch_size": 20_000},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "trust"), [(name, trust) for name, entry in AGENTS.items() for trust in entry.bounds]
)
def test_every_learner_with_a_theorem_keeps_below_it(agent, trust):
    """20,000 users of a tiny problem. On all but SDP-PE's bound, whoever never learns is above."""
    boundary = PROMISES[trust] | ({"batch_size": 20_000} if agent in ("APEVE", "SDPPE") else {})
    content = {**CONTENT, "users": 20_000, "environment": TINY, "figure": {}}
    run = {"label": "one", "agent": agent, "boundary": boundary}
    (curve,) = summarize((cell, run_cell(cell)) for cell in grid_of({**content, "runs": [run]}).cells)
    upper = upper_bound(curve)
    assert upper[-1] < (3.0 if agent in ("APEVE", "SDPPE") else curve.blind) * 20_000
    speaks = ~np.isnan(upper)
    assert (curve.regret[:, speaks] <= upper[speaks]).all()

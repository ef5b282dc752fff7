"""The frontier: one table, one figure, at the true epsilon."""

import math

import numpy as np
import pytest

from private_rl_gym.lab.figures.drawing import label_ends, new_axes
from private_rl_gym.lab.figures.frontier import frontier_figure
from private_rl_gym.lab.figures.glance import glance_figure
from private_rl_gym.lab.figures.plots import share_figure
from private_rl_gym.lab.figures.sweeps import of_grid, write_sweep
from private_rl_gym.lab.grids.engines import InProcess
from private_rl_gym.lab.grids.grid import GridError, grid_of, read_grid
from private_rl_gym.lab.grids.store import Store
from private_rl_gym.lab.grids.summary import as_csv, rows, summarize
from private_rl_gym.lab.grids.sweep import sweep

COLUMNS = "problem trust knowledge agent epsilon delta users seeds regret sem never_learning not_private median worst"

KNOWING = {"name": "FrugalUCBVI", "stationary": True}

SMALL = {
    "name": "small",
    "users": 60,
    "seeds": 2,
    "table": "frontier",
    "figure": {"main": "frontier"},
    "environment": [{"id": "RiverSwim", "horizon": [3, 4]}, "Garnet"],
    "runs": [
        {"label": "frugal", "agent": KNOWING, "boundary": {"name": "jdp", "epsilon": [1.0, 2.0], "delta": 1e-6}},
        {
            "label": "untold",
            "agent": "FrugalUCBVI",
            "boundary": {"name": "jdp", "epsilon": 1.0, "delta": 1e-6},
        },
        {
            "label": "printed",
            "agent": ["DPUCBVI", "PUCB"],
            "boundary": {"name": "jdp", "epsilon": [0.5, 1.0], "calibration": "paper", "batch_size": 20},
        },
        {"label": "open", "agent": [KNOWING, "UCBVI"], "boundary": "open", "seeds": 3},
        {
            "label": "local",
            "agent": KNOWING,
            "boundary": {"name": "ldp", "epsilon": 4.0},
            "environment": "Garnet",
            "seeds": 1,
        },
    ],
}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frontier")
    grid, store = grid_of(SMALL), Store(folder / "runs")
    sweep(grid, store, InProcess())
    return grid, summarize(store.read(grid.cells)), folder, write_sweep(grid, store, folder).paths


@pytest.mark.slow
def test_the_table_has_its_columns_and_a_row_for_each_curve(drawn):
    grid, curves, folder, _ = drawn
    assert " ".join(rows(curves, "frontier")[0]) == COLUMNS
    assert (folder / "table.csv").read_text() == as_csv(curves)
    found = named_rows(curves)
    assert len(found) == len(grid.labels) == 3 * (2 + 1 + 4 + 2) + 1
    for row, curve in zip(found, curves, strict=True):
        finals = curve.regret[:, -1]
        assert float(row["regret"]) == pytest.approx(finals.mean(), abs=0.06)
        assert float(row["median"]) == pytest.approx(np.median(finals), abs=0.06)
        assert float(row["worst"]) == pytest.approx(finals.max(), abs=0.06)
        assert float(row["never_learning"]) == pytest.approx(60 * curve.blind, abs=0.06)
        if curve.seeds == 1:
            assert row["sem"] == ""
        else:
            assert float(row["sem"]) == pytest.approx(finals.std(ddof=1) / math.sqrt(curve.seeds), abs=0.06)
        assert (row["users"], row["seeds"]) == ("60", str(curve.seeds))


def named_rows(curves):
    head, *lines = rows(curves, "frontier")
    return [dict(zip(head, line, strict=True)) for line in lines]


@pytest.mark.slow
def test_rows_say_what_is_known_and_what_is_really_promised(drawn):
    found = named_rows(drawn[1])
    assert {row["problem"] for row in found} == {"RiverSwim, horizon = 3", "RiverSwim, horizon = 4", "Garnet"}
    assert {(row["agent"], row["knowledge"]) for row in found} == {
        ("FrugalUCBVI", "stationary"),
        ("FrugalUCBVI", "nothing"),
        ("DPUCBVI as printed", "nothing"),
        ("PUCB as printed", "nothing"),
        ("UCBVI", "nothing"),
    }
    promised = {(row["agent"], row["trust"]): set() for row in found}
    for row in found:
        promised[row["agent"], row["trust"]].add((row["epsilon"], row["delta"]))
    assert promised["FrugalUCBVI", "jdp"] == {("1", "1e-06"), ("2", "1e-06")}
    assert promised["PUCB as printed", "jdp"] == {("1", "0"), ("2", "0")}  # twice what is printed
    assert promised["FrugalUCBVI", "ldp"] == {("4", "0")}
    assert promised["UCBVI", "open"] == {("inf", "")}
    for problem in {row["problem"] for row in found}:
        exact = {row["regret"] for row in found if (row["agent"], row["trust"]) == ("FrugalUCBVI", "open")} & {
            row["not_private"] for row in found if row["problem"] == problem
        }
        assert len(exact) == 1


def test_the_figure_has_a_panel_for_each_problem_and_trust_model(drawn):
    grid, curves, _, paths = drawn
    names = {f"{figure}.{kind}" for figure in ("frontier", "glance") for kind in ("png", "svg", "pdf")}
    assert {path.name for path in paths} == {*names, "report.html"}
    assert list(of_grid(grid, curves)) == ["frontier", "glance"]
    figure = frontier_figure(curves, "A title")
    panels = {axes.get_title(): axes for axes in figure.axes}
    assert list(panels) == ["RiverSwim, horizon = 3, JDP", "RiverSwim, horizon = 4, JDP", "Garnet, JDP", "Garnet, LDP"]
    assert all(axes.get_xscale() == axes.get_yscale() == "log" for axes in figure.axes)
    (legend,) = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == {
        "FrugalUCBVI, time-homogeneous",
        "FrugalUCBVI",
        "DPUCBVI as printed",
        "PUCB as printed",
        "FrugalUCBVI, time-homogeneous, not private",
        "UCBVI, not private",
        "random policy",
    }
    places = [list(line[0].get_xdata()) for line in panels["Garnet, JDP"].containers]
    assert sorted(places) == [[1.0]] + [[1.0, 2.0]] * 3  # true epsilons, for the printed ones too


def test_at_a_glance_the_best_of_others_stands_beside_the_flagship(drawn):
    _, curves, *_ = drawn
    figure = glance_figure(curves)
    (axes,) = figure.axes
    assert axes.get_title() == ""
    note = figure.get_supxlabel().replace("\n", " ")
    assert note.startswith("Garnet; 60 users; mean over 1 to 2 seeds; bars: one standard error; JDP unless stated")
    assert note.endswith("delta = 0 or 1e-06; neighbours: replace one user")
    assert {text.get_text().replace("\n", " ") for text in axes.texts} == {
        "FrugalUCBVI, time-homogeneous",
        "FrugalUCBVI",
        "FrugalUCBVI, time-homogeneous, local model (LDP)",
        "the papers' best, as printed",
        "non-private",
        "random policy",
    }
    here = [curve for curve in curves if curve.problem == "Garnet"]
    printed = {
        float(epsilon): max(
            1.0 - curve.mean[-1] / (60 * curve.optimum) for curve in here if curve.printed and curve.epsilon == epsilon
        )
        for epsilon in (1.0, 2.0)
    }
    drawn_lines = [dict(zip(line.get_xdata(), line.get_ydata(), strict=True)) for line in axes.lines]
    assert any(line == pytest.approx(printed) for line in drawn_lines if set(line) == set(printed))
    bars = [container for container in axes.containers if container.has_yerr]
    assert len(bars) == 4
    assert "At epsilon = 1, 60 people get" in figure.get_label()


def test_shares_of_the_best_possible_are_drawn_with_names_at_the_ends(drawn):
    _, curves, *_ = drawn
    figure = share_figure([curve for curve in curves if curve.cell.environment.options.get("horizon") == 4], "A title")
    (axes,) = figure.axes
    assert axes.get_legend() is None
    names = [text.get_text() for text in axes.texts]
    assert "random policy" in names
    assert len(names) == len(axes.lines) == 10
    for curve, line in zip(curves, axes.lines[:-1], strict=False):
        assert line.get_xdata()[-1] == 60
        assert (np.asarray(line.get_ydata()) <= 1.0 + 1e-9).all(), curve.label


def test_names_at_the_ends_do_not_touch_and_keep_their_order():
    _, axes = new_axes("A title")
    axes.set_ylim(0.0, 10.0)
    label_ends(
        axes, [(9.99, "first", "#000000"), (10.0, "second", "#000000"), (9.98, "third", "#000000"), (1, "low", "r")]
    )
    heights = {text.get_text(): text.get_position()[1] for text in axes.texts}
    assert list(heights) == ["low", "third", "second", "first"]
    assert heights["low"] == pytest.approx(0.1)
    assert np.diff(list(heights.values())).min() > 0.05
    assert max(heights.values()) <= 1.0


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"table": "frontie"}, r"table is 'frontie'.*'frontier'"),
        ({"figure": {"main": "shares"}}, r"figure.main is 'shares'.*'share'"),
        ({"figure": {"mian": "share"}}, r"figure .*'mian'"),
    ],
)
def test_a_grid_that_asks_for_another_gets_a_sentence(change, word):
    with pytest.raises(GridError, match=word):
        grid_of({**SMALL, **change})


def test_the_frontier_compares_at_the_same_epsilon():
    """Printed constants cost twice the printed epsilon, under a billboard and at home."""
    asked = {}
    for cell in read_grid("frontier").cells:
        calibration = cell.boundary.options.get("calibration")
        if cell.epsilon is not None and cell.boundary.name != "sdp":
            true = cell.epsilon * (2 if calibration == "paper" else 1)
            asked.setdefault((cell.boundary.name, calibration == "paper"), set()).add(true)
    assert asked[("jdp", False)] == asked[("jdp", True)] == {0.5, 1.0, 2.0, 4.0, 8.0}
    assert asked[("ldp", False)] == asked[("ldp", True)] == {1.0, 2.0, 4.0}

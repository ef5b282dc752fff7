"""Figures: colours, labels, references, findings, light and dark."""

import re
import sys
import types
from dataclasses import replace

import numpy as np
import pytest

from private_rl_gym.lab.figures.drawing import (
    COLORS,
    DARK,
    INK,
    finish,
    in_the_dark,
    label_ends,
    new_axes,
    save,
    say,
    svg,
)
from private_rl_gym.lab.figures.findings import finding, finding_of_epsilon, finding_of_noise, finding_of_shares
from private_rl_gym.lab.figures.plots import noise_figure, privacy_figure, regret_figure, return_figure, share_figure
from private_rl_gym.lab.figures.styles import looks
from private_rl_gym.lab.grids.cell import Cell, Choice
from private_rl_gym.lab.grids.summary import Curve
from private_rl_gym.lab.references import Reference
from private_rl_gym.lab.registry import AGENTS, BOUNDARIES, EXACT, GridError

COLORED = {entry.color for catalogue in (AGENTS, BOUNDARIES) for entry in catalogue.values()}
USERS = np.array([1, 10, 100, 1_000, 10_000])


def curve(
    agent="DPUCBVI", trust="jdp", epsilon=1.0, loss=0.5, printed=False, noise=3.0, environment="PrivateRL/RiverSwim-v0"
):
    """Two runs that lose this much a user, of an optimum of 2; actions at random lose 1."""
    axes = {} if np.isinf(epsilon) else {"boundary.epsilon": epsilon}
    asked = {} if np.isinf(epsilon) else {"epsilon": epsilon / 2 if printed else epsilon}
    boundary = Choice(trust, asked | ({"calibration": "paper"} if printed else {}))
    cell = Cell(Choice(environment), boundary, Choice(agent), 10_000, 0, base=f"{agent}, {trust}", axes=axes)
    return Curve(
        cell=cell,
        trust=trust,
        epsilon=epsilon,
        delta=0.0,
        covers="states and rewards",
        guarantee="",
        users=USERS,
        values=np.array([0.9, 1.1])[:, None] * loss * USERS,
        noise=np.full((2, len(USERS)), 0.0 if np.isinf(epsilon) else noise),
        blind=1.0,
        optimum=2.0,
    )


CURVES = [curve("UCBVI", "open", np.inf, 0.01), curve(loss=0.25), curve(epsilon=8.0, loss=0.1)]


def test_everything_that_is_compared_has_a_colour():
    assert None not in COLORED


def test_the_same_thing_has_the_same_colour_and_the_most_private_is_the_strongest():
    found = looks([*CURVES, curve("PUCB"), curve(printed=True, epsilon=2.0)])
    assert [look["color"] for look in found] == [
        EXACT,
        AGENTS["DPUCBVI"].color,
        AGENTS["DPUCBVI"].color,
        AGENTS["PUCB"].color,
        AGENTS["DPUCBVI"].color,
    ]
    assert found[1]["alpha"] > found[2]["alpha"]
    assert [look["linestyle"] for look in found] == ["-", "-", "-", "-", "--"]
    assert looks(CURVES)[1:] == found[1:3]  # whoever else is there


def test_own_code_has_a_colour_for_each_agent():
    def own(agent, name):
        boundary = Choice("jdp", {"epsilon": 1.0, "counting": Reference(name)})
        one = curve(agent)
        return replace(one, cell=replace(one.cell, boundary=boundary))

    trees = "private_rl_gym.privacy.mechanisms:BinaryTree", "private_rl_gym.privacy.mechanisms:HonakerTree"
    curves = [curve(), curve("PUCB"), *(own(agent, name) for name in trees for agent in ("DPUCBVI", "PUCB"))]
    colors = [look["color"] for look in looks(curves)]
    assert len(set(colors)) == 6
    assert colors[:2] == [AGENTS[name].color for name in ("DPUCBVI", "PUCB")]


def test_one_agent_under_several_trust_models_has_their_colours():
    found = looks([curve("UCBVI", "open", np.inf), curve(), curve(trust="sdp"), curve(trust="ldp")])
    assert [look["color"] for look in found] == [BOUNDARIES[name].color for name in ("open", "jdp", "sdp", "ldp")]


def test_findings_follow_the_numbers():
    assert finding(CURVES) == (
        "DPUCBVI, jdp, epsilon = 1 has 25 % of the regret of a random policy; without privacy 1.0 %"
    )
    both = [*CURVES, curve("PUCB", loss=0.6)]  # compared at the epsilon that both have
    assert "epsilon = 1 has 25 %" in finding(both)
    assert "and PUCB, jdp, epsilon = 1 has 60 %" in finding(both)
    assert "has 70 %" in finding([CURVES[0], curve(loss=0.7)])
    groups = {"DPUCBVI, jdp": CURVES[1:]}
    assert (
        finding_of_epsilon(CURVES, groups) == "DPUCBVI, jdp has a regret of 2,500 at an actual epsilon of 1, 1,000 at 8"
    )
    others = [curve("PUCB", loss=0.2), curve("PUCB", epsilon=8.0, loss=0.05), curve("PUCB", epsilon=30.0, loss=0.05)]
    compared = {"DPUCBVI, jdp": [*CURVES[1:], curve(epsilon=30.0, loss=0.04)], "PUCB, jdp": others}
    everyone = [curve for group in compared.values() for curve in group]
    assert finding_of_epsilon(everyone, compared) == "PUCB, jdp has the least regret at 2 of 3 values of epsilon"
    printed = curve(printed=True, epsilon=2.0)
    assert finding_of_epsilon([printed], {"x": [printed]}).endswith(
        "printed constants cost up to 2 times what they print"
    )
    assert finding_of_noise(CURVES[:1]) == "Sums are exact: there is no noise"
    assert "noise of 3 (" in finding_of_noise(CURVES)
    assert finding_of_noise([curve(noise=1234.5)]).startswith(
        "After 10,000 users one released sum has noise of 1,234 ("
    )
    assert finding_of_shares(CURVES, [0.99, 0.8, 0.9]) == (
        "With DPUCBVI, jdp, epsilon = 8, the last users get 90 % of the best possible, "
        "and 80 % with DPUCBVI, jdp, epsilon = 1; without privacy 99 %; a random policy 50 %"
    )


def test_problems_of_ids_that_gymnasium_knows_are_told_apart():
    lake, pole = (curve(loss=loss, environment=name) for name, loss in (("FrozenLake-v1", 0.1), ("CartPole-v1", 0.9)))
    assert [one.problem for one in (lake, pole, CURVES[0])] == ["FrozenLake-v1", "CartPole-v1", "RiverSwim"]
    assert "The best private learner of each problem has 10 % to 90 %" in finding([lake, pole])


@pytest.mark.parametrize("draw", [regret_figure, privacy_figure, share_figure])
def test_never_learning_and_no_privacy_are_always_there(draw):
    (axes,) = draw(CURVES, "A title").axes
    names = [text.get_text() for text in axes.texts]
    assert "random policy" in names
    assert any(name.startswith("UCBVI, open") for name in names)
    assert axes.get_legend() is None  # names stand at the ends
    height = 0.5 if draw is share_figure else 10_000.0
    assert any(line.get_linestyle() == ":" and line.get_ydata()[-1] == height for line in axes.lines)


def test_numbers_have_separators():
    figure = regret_figure(CURVES, "A title")
    svg(figure)
    (axes,) = figure.axes
    ticks = {text.get_text() for axis in (axes.xaxis, axes.yaxis) for text in axis.get_ticklabels()}
    assert {"100", "1,000", "10,000"} <= ticks
    assert not [tick for tick in ticks if "$" in tick]


def test_a_curve_below_another_is_seen():
    _, axes = new_axes("A title")
    heights = np.linspace(1.0, 2.0, 20)
    for shift in (0.0, 0.001, -0.5):
        axes.plot(np.arange(20), heights + shift, lw=1.5)
    finish(axes)
    below, above, alone = (line.get_linewidth() for line in axes.lines)
    assert below > 3.0 * above
    assert above == alone == 1.5


def test_names_are_as_near_to_their_ends_as_they_can_be_and_lines_to_them_do_not_cross():
    _, axes = new_axes("A title")
    axes.set_ylim(0.0, 1.0)
    ends = [(0.5, "second", INK), (0.52, "first", INK), (0.48, "third", INK), (0.1, "alone", INK), (0.0, "foot", INK)]
    label_ends(axes, ends)
    heights = {text.get_text(): text.get_position()[1] for text in axes.texts}
    assert sorted(heights, key=heights.get) == ["foot", "alone", "third", "second", "first"]
    assert heights["second"] == pytest.approx(0.5)  # two beside it give way, up and down
    assert heights["first"] - 0.5 == pytest.approx(0.5 - heights["third"])
    assert (heights["alone"], heights["foot"]) == pytest.approx((0.1, 0.0))


def test_names_stand_at_the_ends_on_logarithmic_axes_too():
    _, axes = new_axes("A title")
    axes.set(yscale="log", ylim=(1.0, 10_000.0))
    label_ends(axes, [(100.0, "in the middle", INK), (1_000.0, "a long name, which takes more, epsilon = 10", INK)])
    places = {text.get_text().partition("\n")[0]: text.get_position()[1] for text in axes.texts}
    assert places["in the middle"] == pytest.approx(0.5)
    assert [text.get_text() for text in axes.texts][1].endswith("\nepsilon = 10")  # not broken before its value


@pytest.mark.parametrize("loss", [0.0, 1e-9])
def test_nothing_lost_is_drawn_too(loss):
    """At the foot of logarithmic axes."""
    for draw in (regret_figure, privacy_figure, share_figure, noise_figure):
        text = svg(draw([curve(loss=loss), curve("PUCB", noise=0.0)], "A title"))
        assert "nan" not in text
        assert "inf" not in text


def test_a_figure_takes_the_colours_of_a_dark_page():
    figure = noise_figure(CURVES, "A <title>")
    text = svg(figure)
    assert text.startswith("<svg")
    rules = re.search(r"<style>@media \(prefers-color-scheme: dark\) \{(.*?)\}</style>", text, re.DOTALL)[1]
    drawn = set(re.findall(r"(fill|stroke): (#[0-9a-f]{6})", text.replace(rules, "")))
    assert {color for _, color in drawn} <= {*DARK, *COLORED}  # and no black by default
    for part, light in drawn:
        assert f'[style*="{part}: {light}"] {{ {part}: {in_the_dark(light)} !important }}' in rules
    assert {in_the_dark(light) for light in DARK} == set(DARK.values())
    assert f"<title>{figure.get_label()}</title>" in text
    letters = re.findall(r'<g id="text_\d+">.*?<g (style="[^"]*")?', text, re.DOTALL)
    assert letters
    assert all("fill: #" in style for style in letters)  # without a fill, text would be black on black


def contrast(first, second):
    def light(color):
        parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(first), light(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("color", sorted({*COLORED, *COLORS, *DARK} - {"#ffffff"}))
def test_colours_are_seen_on_light_and_on_dark(color):
    """Ratios of 3 and 4.5 are what accessibility guidelines ask of graphics and of text."""
    assert contrast(color, "#ffffff") >= 3.0
    assert contrast(in_the_dark(color), in_the_dark("#ffffff")) >= 4.5


def test_a_finding_is_the_alternative_text_and_not_in_the_picture():
    figure, axes = new_axes()
    say(figure, "Costs $5 <and> more", "mean over 3 seeds")
    assert figure.get_label() == "Costs $5 <and> more"
    assert figure.get_suptitle() == axes.get_title() == ""
    assert figure.get_supxlabel() == "mean over 3 seeds"
    assert "<title>Costs $5 &lt;and&gt; more</title>" in svg(figure)


def test_where_nobody_knows_the_true_model_returns_are_found_and_drawn():
    found = [replace(c, measure="return", values=c.values / USERS - 4.0, blind=-7.0) for c in CURVES]
    assert finding(found) == (
        "With DPUCBVI, jdp, epsilon = 1, a user gets -3.75, and -3.9 with DPUCBVI, jdp, epsilon = 8; "
        "without privacy -3.99; a random policy gets -7"
    )
    text = svg(return_figure(found, "Returns"))
    assert "random policy" in text
    assert "return per episode" in text
    with pytest.raises(GridError, match="has no regret"):
        _ = found[0].regret


DRAWINGS = {
    regret_figure: "bands: 95 % confidence interval of the mean",
    privacy_figure: "bars: 95 % confidence interval; neighbours: replace one user",
    share_figure: "bands: range over seeds",
    noise_figure: "",
}


@pytest.mark.parametrize(("draw", "bands"), DRAWINGS.items())
def test_the_picture_has_its_seeds_and_the_meaning_of_its_bands_and_no_title(draw, bands):
    curves = [replace(curve, neighbours="replace one user") for curve in CURVES]
    figure = draw(curves)
    note = figure.get_supxlabel().replace("\n", " ")
    assert note.startswith("RiverSwim; 10,000 users; mean over 2 seeds")
    assert bands in note
    assert figure.get_suptitle() == ""
    assert [axes.get_title() for axes in figure.axes] == [""]
    assert draw(curves, "A title").axes[0].get_title() == "A title"
    one = [replace(curve, values=curve.values[:1], noise=curve.noise[:1]) for curve in curves]
    assert "a single seed" in draw(one).get_supxlabel()


@pytest.mark.parametrize("draw", DRAWINGS)
def test_several_environments_have_a_panel_each_in_which_an_agent_keeps_its_colour(draw):
    names = ("PrivateRL/RiverSwim-v0", "PrivateRL/Garnet-v0")
    curves = [curve(agent, environment=name) for name in names for agent in ("DPUCBVI", "PUCB")]
    figure = draw(curves)
    assert [axes.get_title() for axes in figure.axes] == ["RiverSwim", "Garnet"]
    drawn = [[line.get_color() for line in axes.lines if line.get_color() in COLORED] for axes in figure.axes]
    colors = [list(dict.fromkeys(panel)) for panel in drawn]  # an error bar is several lines
    assert colors == [[AGENTS[name].color for name in ("DPUCBVI", "PUCB")]] * 2
    for axes in figure.axes:
        assert len({text.get_text() for text in axes.texts} - {"random policy"}) == 2


def test_text_in_a_pdf_is_in_type_42_fonts(tmp_path):
    (path,) = save(regret_figure(CURVES), tmp_path / "regret", ["pdf"])
    content = path.read_bytes()
    assert b"/CIDFontType2" in content  # TrueType
    assert b"/Type3" not in content


def test_many_unknown_agents_have_colours_that_no_other_agent_of_the_figure_has(monkeypatch):
    parts = types.ModuleType("parts_of_a_user")
    for number in range(12):
        setattr(parts, f"Own{number}", type(f"Own{number}", (), {}))
    monkeypatch.setitem(sys.modules, "parts_of_a_user", parts)

    def own(number):
        one = curve("DPUCBVI")
        boundary = Choice("jdp", {"epsilon": 1.0, "counting": Reference(f"parts_of_a_user:Own{number}")})
        return replace(one, cell=replace(one.cell, boundary=boundary))

    found = looks([*CURVES, curve("PUCB"), *(own(number) for number in range(12))])
    unknown = [look["color"] for look in found[4:]]
    assert len(set(unknown)) == 12
    assert not set(unknown) & {entry.color for entry in AGENTS.values()}
    for color in unknown:
        assert contrast(color, "#ffffff") >= 3.0
        assert contrast(in_the_dark(color), in_the_dark("#ffffff")) >= 4.5

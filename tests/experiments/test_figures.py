"""Figures: colours, labels, references, findings, light and dark."""

import re
from dataclasses import replace

import numpy as np
import pytest

from private_rl_gym.experiments.drawing import DARK, INK, finish, in_the_dark, label_ends, new_axes, say, svg
from private_rl_gym.experiments.figures import noise_figure, privacy_figure, regret_figure, return_figure, share_figure
from private_rl_gym.experiments.finding import finding, finding_of_epsilon, finding_of_noise, finding_of_shares
from private_rl_gym.experiments.looks import AGENT_COLORS, EXACT, TRUST_COLORS, looks
from private_rl_gym.experiments.names import AGENTS, BOUNDARIES, GridError
from private_rl_gym.experiments.summary import Curve

USERS = np.array([1, 10, 100, 1_000, 10_000])


def curve(agent="DPUCBVI", trust="jdp", epsilon=1.0, loss=0.5, printed=False, noise=3.0):
    """Two runs that lose this much a user, of an optimum of 2; actions at random lose 1."""
    boundary = {"name": trust} | ({"calibration": "paper"} if printed else {})
    return Curve(
        base=f"{agent}, {trust}",
        axes={} if np.isinf(epsilon) else {"boundary.epsilon": epsilon},
        config={"environment": {"name": "PrivateRL/RiverSwim-v0"}, "agent": {"name": agent}, "boundary": boundary},
        asked=epsilon / 2 if printed else (None if np.isinf(epsilon) else epsilon),
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
    assert set(AGENTS) <= set(AGENT_COLORS)
    assert set(BOUNDARIES) == set(TRUST_COLORS)


def test_the_same_thing_has_the_same_colour_and_the_most_private_is_the_strongest():
    found = looks([*CURVES, curve("PUCB"), curve(printed=True, epsilon=2.0)])
    assert [look["color"] for look in found] == [
        EXACT,
        AGENT_COLORS["DPUCBVI"],
        AGENT_COLORS["DPUCBVI"],
        AGENT_COLORS["PUCB"],
        AGENT_COLORS["DPUCBVI"],
    ]
    assert found[1]["alpha"] > found[2]["alpha"]
    assert [look["linestyle"] for look in found] == ["-", "-", "-", "-", "--"]
    assert looks(CURVES)[1:] == found[1:3]  # whoever else is there


def test_one_agent_under_several_trust_models_has_their_colours():
    found = looks([curve("UCBVI", "open", np.inf), curve(), curve(trust="sdp"), curve(trust="ldp")])
    assert [look["color"] for look in found] == [TRUST_COLORS[name] for name in ("open", "jdp", "sdp", "ldp")]


def test_findings_follow_the_numbers():
    assert finding(CURVES) == (
        "DPUCBVI, jdp, epsilon = 1 loses 25 % of what actions at random lose; without privacy 1.0 %"
    )
    both = [*CURVES, curve("PUCB", loss=0.6)]  # compared at the epsilon that both have
    assert "epsilon = 1 loses 25 %" in finding(both)
    assert "and PUCB, jdp, epsilon = 1 loses 60 %" in finding(both)
    assert "loses 70 %" in finding([CURVES[0], curve(loss=0.7)])
    groups = {"DPUCBVI, jdp": CURVES[1:]}
    assert finding_of_epsilon(CURVES, groups) == "DPUCBVI, jdp loses 2,500 at a true epsilon of 1, 1,000 at 8"
    others = [curve("PUCB", loss=0.2), curve("PUCB", epsilon=8.0, loss=0.05), curve("PUCB", epsilon=30.0, loss=0.05)]
    compared = {"DPUCBVI, jdp": [*CURVES[1:], curve(epsilon=30.0, loss=0.04)], "PUCB, jdp": others}
    everyone = [curve for group in compared.values() for curve in group]
    assert finding_of_epsilon(everyone, compared) == "PUCB, jdp loses least at 2 of 3 values of epsilon"
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
        "and 80 % with DPUCBVI, jdp, epsilon = 1; without privacy 99 %; never learning 50 %"
    )


@pytest.mark.parametrize("draw", [regret_figure, privacy_figure, share_figure])
def test_never_learning_and_no_privacy_are_always_there(draw):
    (axes,) = draw(CURVES, "A title").axes
    names = [text.get_text() for text in axes.texts]
    assert "never learning" in names
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
    assert {color for _, color in drawn} <= {*DARK, *AGENT_COLORS.values()}  # and no black that nobody chose
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


@pytest.mark.parametrize("color", sorted({*AGENT_COLORS.values(), *TRUST_COLORS.values(), *DARK} - {"#ffffff"}))
def test_colours_are_seen_on_light_and_on_dark(color):
    """Ratios of 3 and 4.5 are what accessibility guidelines ask of graphics and of text."""
    assert contrast(color, "#ffffff") >= 3.0
    assert contrast(in_the_dark(color), in_the_dark("#ffffff")) >= 4.5


def test_a_finding_is_the_title_and_the_alternative_text():
    figure, axes = new_axes("What is drawn")
    say(figure, "Costs $5 <and> more")
    assert figure.get_label() == "Costs $5 <and> more"
    assert axes.get_title(loc="left") == "What is drawn"
    assert "<title>Costs $5 &lt;and&gt; more</title>" in svg(figure)


def test_where_nobody_knows_the_true_model_returns_are_found_and_drawn():
    found = [replace(c, measure="return", values=c.values / USERS - 4.0, blind=-7.0) for c in CURVES]
    assert finding(found) == (
        "With DPUCBVI, jdp, epsilon = 1, a user gets -3.75, and -3.9 with DPUCBVI, jdp, epsilon = 8; "
        "without privacy -3.99; actions at random get -7"
    )
    text = svg(return_figure(found, "Returns"))
    assert "actions at random" in text
    assert "return of a user" in text
    with pytest.raises(GridError, match="has no regret"):
        _ = found[0].regret

"""Figures, tables and the report of a sweep."""

import csv
import io
import json
import math
import re
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from private_rl_gym.lab.figures.sweeps import write_sweep
from private_rl_gym.lab.grids.engines import InProcess
from private_rl_gym.lab.grids.grid import grid_of
from private_rl_gym.lab.grids.store import Store
from private_rl_gym.lab.grids.summary import as_csv, as_latex, as_markdown, summarize
from private_rl_gym.lab.grids.sweep import sweep
from tests.browser import OFFLINE, browser, needs_browser, seen

GRID = grid_of(
    {
        "name": "small",
        "title": "A small <grid> & its title",
        "about": "What it is for.",
        "users": 60,
        "seeds": 3,
        "environment": {"id": "RiverSwim", "horizon": 4},
        "runs": [
            {"label": "open", "agent": "UCBVI", "boundary": "open"},
            {"label": "jdp", "agent": "DPUCBVI", "boundary": {"name": "jdp", "epsilon": [1.0, 10.0], "delta": 1e-6}},
            {
                "label": "printed",
                "agent": "DPUCBVI",
                "boundary": {"name": "jdp", "epsilon": 1.0, "calibration": "paper"},
            },
        ],
    }
)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawn")
    store = Store(folder / "store")
    sweep(GRID, store, InProcess())
    return store, folder / "out", write_sweep(GRID, store, folder / "out", "private-rl-gym sweep small.toml").paths


@pytest.mark.slow
def test_curves_are_means_with_confidence(drawn):
    curves = {curve.label: curve for curve in summarize(drawn[0].read(GRID.cells))}
    assert list(curves) == GRID.labels
    curve = curves["jdp, epsilon = 10"]
    assert curve.seeds == 3
    finals = curve.regret[:, -1]
    assert curve.mean[-1] == pytest.approx(finals.mean())
    assert curve.half_width[-1] == pytest.approx(4.30265 * finals.std(ddof=1) / math.sqrt(3), rel=1e-4)
    assert (curve.epsilon, curve.asked) == (10.0, 10.0)
    assert (curves["printed"].epsilon, curves["printed"].asked) == (2.0, 1.0)
    assert math.isinf(curves["open"].epsilon)


@pytest.mark.slow
def test_tables_hold_the_same_numbers(drawn):
    curves = summarize(drawn[0].read(GRID.cells))
    rows = [row for row in csv.DictReader(io.StringIO(as_csv(curves))) if row["last"] == "1"]
    assert [row["learner"] for row in rows] == GRID.labels
    assert [row["epsilon"] for row in rows] == ["inf", "1", "10", "2"]
    markdown, latex = as_markdown(curves), as_latex(curves)
    for row, curve in zip(rows, curves, strict=True):
        assert float(row["mean"]) == pytest.approx(curve.mean[-1], rel=1e-5)
        assert f"| {curve.mean[-1]:.1f} |" in markdown
        assert f"& {curve.mean[-1]:.1f} &" in latex
    assert latex.startswith(r"\begin{tabular}")
    assert r"\%" not in markdown


@pytest.mark.slow
def test_every_figure_is_there_in_every_format_and_is_the_same_again(drawn, tmp_path):
    store, out, paths = drawn
    assert {path.name for path in paths} == {
        *(f"{name}.{kind}" for name in ("regret", "privacy", "noise", "share") for kind in ("png", "svg", "pdf")),
        "report.html",
    }
    for name in ("regret", "privacy", "noise", "share"):
        picture = np.asarray(Image.open(out / f"{name}.png").convert("L"))
        assert picture.std() > 5  # something is drawn
    again = write_sweep(GRID, store, tmp_path, "private-rl-gym sweep small.toml").paths
    for first, second in zip(paths, again, strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name
    points = list(csv.DictReader(io.StringIO((out / "table.csv").read_text())))
    assert {row["learner"] for row in points} == set(GRID.labels)
    assert float(points[-1]["users"]) == 60


def test_the_tidy_table_keeps_every_configuration_apart(drawn):
    """The same learner, boundary and epsilon, with other options: rows differ even without their labels."""
    runs = [
        {"label": "one", "agent": "DPUCBVI", "boundary": {"name": "jdp", "epsilon": 1.0, "batch_size": [20, 30]}},
        {"label": "two", "agent": {"name": "DPUCBVI", "bonus_scale": [0.1, 0.2]}, "boundary": "jdp"},
    ]
    runs[1]["boundary"] = runs[0]["boundary"] | {"batch_size": 20}
    cells = grid_of({"name": "options", "users": 60, "environment": "Garnet", "runs": runs}).cells
    (first, *_) = summarize(drawn[0].read(GRID.cells))
    curves = [replace(first, cell=cell) for cell in cells]
    found = list(csv.DictReader(io.StringIO(as_csv(curves))))
    assert len(found) == len(curves) * len(first.users)
    assert len({tuple(value for key, value in row.items() if key != "learner") for row in found}) == len(found)
    assert {row["boundary.batch_size"] for row in found} == {"20", "30"}
    assert {row["agent.bonus_scale"] for row in found} == {"", "0.1", "0.2"}
    last = [row for row in found if row["last"] == "1"]
    assert [row["learner"] for row in last] == [cell.label for cell in cells]
    assert {row["seeds"] for row in last} == {"3"}
    assert float(last[0]["sem"]) == pytest.approx(first.values[:, -1].std(ddof=1) / math.sqrt(3), rel=1e-4)
    assert float(last[0]["random"]) == pytest.approx(60 * first.blind, rel=1e-4)


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.sources, self.text = [], [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.sources += [value for name, value in attrs if name in ("src", "href", "xlink:href") and value]

    def handle_data(self, data):
        self.text += data


def test_the_report_stands_alone(drawn):
    text = drawn[2][-1].read_text("utf-8")
    page = Page()
    page.feed(text)
    assert all(source.startswith("#") for source in page.sources)  # nothing is fetched
    assert page.tags.count("script") == 1  # which sorts
    assert "src=" not in text
    assert "@import" not in text
    assert not re.search(r"url\((?!#|&quot;#|\"#)", text)
    assert page.tags.count("figure") == 4
    assert "A small <grid> & its title" in page.text
    assert page.text.count('"neighbours": "replace one user"') == 2 * len(GRID.cells)  # each, and together
    for word in (
        "private_rl_gym 0.",
        "gymnasium",
        "12 of 12 cells",
        "private-rl-gym sweep small.toml",
        "printed as epsilon = 1",
    ):
        assert word in page.text


@pytest.mark.slow
@needs_browser
def test_nothing_in_the_report_is_clipped(drawn, tmp_path):
    assert seen([drawn[2][-1]], tmp_path, part="body") == {"looked": 3, "found": []}


SORTED = """
<script>
const column = number => [...document.querySelectorAll("tbody tr")].map(row => row.cells[number].dataset.value);
const found = [column(7)];
for (let click = 0; click < 2; click++) {
  document.querySelectorAll("th button")[7].click();
  found.push(column(7), column(1));
}
document.body.append(Object.assign(document.createElement("pre"), { id: "found", textContent: JSON.stringify(found) }));
</script>
"""


@pytest.mark.slow
@needs_browser
def test_a_click_sorts_the_table_by_numbers(drawn, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(drawn[2][-1].read_text("utf-8").replace("</body>", SORTED + "</body>"), "utf-8")
    options = [*OFFLINE, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    done = subprocess.run([browser(), *options, page.as_uri()], check=True, capture_output=True, timeout=120)
    before, up, _, down, _ = json.loads(re.search(r'<pre id="found">(.*?)</pre>', done.stdout.decode())[1])
    numbers = sorted(float(text) for text in before)
    assert [float(text) for text in up] == numbers
    assert [float(text) for text in down] == numbers[::-1]
    assert len(set(numbers)) > 2


@pytest.mark.slow
@needs_browser
def test_the_report_opens_in_a_browser_without_a_network(drawn, tmp_path):
    page, picture = drawn[2][-1], tmp_path / "page.png"
    quiet = [*OFFLINE, f"--user-data-dir={tmp_path / 'profile'}"]
    shot = [browser(), *quiet, "--window-size=1100,2400", f"--screenshot={picture}", page.as_uri()]
    subprocess.run(shot, check=True, capture_output=True, timeout=120)
    seen = np.asarray(Image.open(picture).convert("RGB"))
    assert seen.shape[0] >= 2000
    assert seen.std() > 10  # figures and text are painted
    dumped = subprocess.run(
        [browser(), *quiet, "--dump-dom", page.as_uri()], check=True, capture_output=True, timeout=120
    )
    found = Page()
    found.feed(dumped.stdout.decode())
    assert found.tags.count("svg") == 4
    assert found.tags.count("tr") == 1 + len(GRID.labels)

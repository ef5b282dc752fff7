"""A mechanism, a randomizer, a protocol and an agent of a user's own, each in one file: in a grid, and under audit."""

import csv
import shutil
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from private_rl_gym.lab.audits import AuditConfig, audit
from private_rl_gym.lab.cli.app import app
from private_rl_gym.lab.figures.frontier import frontier_figure
from private_rl_gym.lab.figures.styles import looks
from private_rl_gym.lab.grids.cell import Choice
from private_rl_gym.lab.grids.grid import GridError, read_grid
from private_rl_gym.lab.grids.run import run_cell
from private_rl_gym.lab.grids.store import Store
from private_rl_gym.lab.grids.summary import summarize
from private_rl_gym.lab.references import Reference
from private_rl_gym.lab.registry import AGENTS

EXAMPLES = Path(__file__).parents[2] / "examples"
OWN = ("own_mechanism", "own_randomizer", "own_protocol", "own_agent")

GRID = """
name = "own"
users = 300
environment = { id = "RiverSwim", horizon = 3, n_states = 3 }

[[runs]]
agent = "DPUCBVI"
boundary = { name = "jdp", epsilon = 4.0, delta = 0.0, batch_size = 50 }

[[runs]]
agent = "DPUCBVI"
boundary = { name = "jdp", epsilon = 4.0, delta = 0.0, batch_size = 50, counting = "own_mechanism:RunningBatches" }

[[runs]]
agent = "DPUCBVI"
boundary = { name = "ldp", epsilon = 4.0, batch_size = 50, randomizer = "own_randomizer:Flips" }

[[runs]]
agent = "DPUCBVI"
boundary = { name = "own_protocol:NotNegativeBillboard", epsilon = 4.0, delta = 0.0, batch_size = 50 }

[[runs]]
agent = { name = "own_agent:EpsilonGreedy", explore = [0.1, 0.2] }
boundary = { name = "jdp", epsilon = 4.0, delta = 0.0, batch_size = 50 }
"""

BROKEN = '''
from private_rl_gym.privacy.protocols import Central
from private_rl_gym.wrappers import JDPBillboard
from own_randomizer import Flips


class FewFlips(Flips):
    """Half as many flips as the budget needs."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.flip /= 2.0


class HalfNoise(Central):
    def made(self, chosen):
        return super().made(chosen._replace(scale=chosen.scale / 2.0))


class HalfBillboard(JDPBillboard):
    """Half the noise that is stated."""

    protocol = HalfNoise
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in OWN:
        shutil.copy(EXAMPLES / f"{name}.py", tmp_path)
    (tmp_path / "own_broken.py").write_text(BROKEN)
    (tmp_path / "own.toml").write_text(GRID)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in (*OWN, "own_broken"):
        sys.modules.pop(name, None)


def test_a_grid_of_own_parts_has_labels_colours_and_guarantees(folder):
    command = ["sweep", "own.toml", "--engine", "serial", "--store", "runs", "--out", "out"]
    command += [word for name in OWN for word in ("--import", name)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    points = csv.DictReader((folder / "out" / "table.csv").read_text().splitlines())
    table = [row for row in points if row["last"] == "1"]
    assert [row["learner"] for row in table] == [
        "DPUCBVI, jdp",
        "DPUCBVI, jdp, RunningBatches",
        "DPUCBVI, ldp, Flips",
        "DPUCBVI, NotNegativeBillboard",
        "EpsilonGreedy, jdp, explore = 0.1",
        "EpsilonGreedy, jdp, explore = 0.2",
    ]
    assert {row["epsilon"] for row in table} == {"4"}
    assert all(float(row["mean"]) > 0.0 for row in table)
    grid = read_grid("own.toml", code=OWN)
    curves = summarize(Store("runs").read(grid.cells))
    colors = [look["color"] for look in looks(curves)]
    assert colors == [AGENTS["DPUCBVI"].color, "#8a5a00", "#b0006d", "#00807a", "#5a3fc0", "#5a3fc0"]
    assert curves[1].line == "DPUCBVI, RunningBatches"


def test_parts_without_a_colour_get_colours_that_are_free(folder):
    for name in OWN:
        path = folder / f"{name}.py"
        path.write_text("".join(line for line in path.read_text().splitlines(True) if "# in figures" not in line))
    grid = read_grid("own.toml", code=OWN)
    curves = summarize((cell, run_cell(cell)) for cell in grid.cells)
    colors = [look["color"] for look in looks(curves)]
    assert len(set(colors)) == 5
    (legend,) = frontier_figure(curves, "A title").legends
    names = {text.get_text() for text in legend.get_texts()}
    assert {"DPUCBVI", "DPUCBVI, RunningBatches", "DPUCBVI, Flips", "EpsilonGreedy"} <= names
    assert colors[0] == AGENTS["DPUCBVI"].color


def test_an_edit_of_own_code_changes_the_keys_of_its_cells_alone(folder):
    before = read_grid("own.toml", code=OWN).cells
    for number, name in enumerate(OWN, start=1):
        keys = [cell.key for cell in read_grid("own.toml", code=OWN).cells]
        with (folder / f"{name}.py").open("a") as file:
            file.write("# changed\n")
        after = read_grid("own.toml", code=OWN).cells
        changed = [place for place, cell in enumerate(after) if cell.key != keys[place]]
        assert changed == ([number] if name != "own_agent" else [4, 5])
    assert [cell.stream("noise") for cell in after] == [cell.stream("noise") for cell in before]


@pytest.mark.parametrize("left_out", OWN)
def test_a_file_names_own_code_only_if_its_module_is_trusted(folder, left_out):
    code = [name for name in OWN if name != left_out]
    with pytest.raises(GridError, match=f"if you trust it, add --import {left_out}"):
        read_grid("own.toml", code=code)
    assert left_out not in sys.modules


@pytest.mark.parametrize(
    ("part", "name", "word"),
    [
        ("counting", "own_mechanism:np", "must be a subclass of private_rl_gym.privacy.mechanisms"),
        ("counting", "own_mechanism:Nothing", "must be a subclass of private_rl_gym.privacy.mechanisms"),
        ("randomizer", "own_mechanism:RunningBatches", "jdp has no option 'randomizer'"),
        ("noise", "own_mechanism:RunningBatches", "There is no noise 'own_mechanism:RunningBatches'"),
    ],
)
def test_a_name_of_another_kind_is_refused(folder, part, name, word):
    text = 'agent = "UCBVI"\nusers = 5\nenvironment = "RiverSwim"\n[boundary]\nname = "jdp"\nepsilon = 1.0\n'
    text += f'{part} = "{name}"\n'
    (folder / "wrong.toml").write_text(text)
    done = CliRunner().invoke(app, ["sweep", "wrong.toml", "--import", "own_mechanism", "--engine", "serial"])
    assert done.exit_code == 2
    assert word in " ".join(done.output.split())


def test_what_is_typed_is_trusted(folder):
    typed = [
        "--boundary",
        "own_protocol:NotNegativeBillboard",
        "--set",
        "boundary.counting=own_mechanism:RunningBatches",
    ]
    done = CliRunner().invoke(
        app, ["train", "--users", "100", "--delta", "0", "--set", "environment.horizon=3", *typed]
    )
    assert done.exit_code == 0, done.output


JDP = {"epsilon": 2.0, "delta": 0.0}
AUDITED = {
    "own_mechanism": (Choice("jdp", {**JDP, "counting": Reference("own_mechanism:RunningBatches")}), None),
    "own_randomizer": (Choice("ldp", {"epsilon": 2.0, "randomizer": Reference("own_randomizer:Flips")}), None),
    "own_protocol": (Choice(Reference("own_protocol:NotNegativeBillboard"), JDP), None),
    "own_agent": (Choice("jdp", JDP), Choice(Reference("own_agent:EpsilonGreedy"))),
}
HALVED = {
    "own_mechanism": (Choice("jdp", {**JDP, "counting": Reference("own_mechanism:Halved")}), None),
    "own_randomizer": (Choice("ldp", {"epsilon": 2.0, "randomizer": Reference("own_broken:FewFlips")}), None),
    "own_protocol": (Choice(Reference("own_broken:HalfBillboard"), JDP), None),
    "own_agent": (Choice(Reference("own_broken:HalfBillboard"), JDP), Choice(Reference("own_agent:EpsilonGreedy"))),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_own_parts_are_audited(folder, name):
    """Against those that keep their guarantee nothing is found; half the noise is found, in as many runs."""
    sound, broken = (
        audit(AuditConfig(boundary, agent=agent, attacks=("one-release",), runs=1500))
        for boundary, agent in (AUDITED[name], HALVED[name])
    )
    assert not sound.broken, sound.verdict
    assert sound.bound <= 2.0
    assert broken.broken, broken.verdict


@pytest.mark.slow
def test_an_audit_of_own_parts_is_done_again_from_its_report(folder):
    typed = ["audit", "--set", "boundary.counting=own_mechanism:RunningBatches", "--delta", "0", "--runs", "200"]
    first = CliRunner().invoke(
        app, [*typed, "--engine", "serial", "--attack", "one-release", "--out", "audits", "--json"]
    )
    assert first.exit_code == 0, first.output
    (report,) = (folder / "audits").glob("*/report.json")
    sys.modules.pop("own_mechanism")
    again = ["audit", "--config", str(report), "--engine", "serial", "--out", "again"]
    refused = CliRunner().invoke(app, again)
    assert refused.exit_code == 2
    assert "add --import own_mechanism" in refused.output
    assert "own_mechanism" not in sys.modules
    assert CliRunner().invoke(app, [*again, "--import", "own_mechanism"]).exit_code == 0

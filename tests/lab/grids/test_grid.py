"""Grids: what is named, checked and expanded, and seeds that follow from configurations."""

import importlib
import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from private_rl_gym.lab.grids.cell import FORMAT, digest
from private_rl_gym.lab.grids.grid import BUILT_IN, Cell, Choice, GridError, grid_of, read_grid
from private_rl_gym.lab.grids.run import build, run_cell
from private_rl_gym.lab.grids.sweep import check
from private_rl_gym.lab.references import Reference, package_hash
from private_rl_gym.lab.registry import AGENTS, BOUNDARIES, ENVIRONMENTS, BoundaryEntry

SMALL = {"id": "RiverSwim", "horizon": 4}


def grid(**change):
    fine = {"users": 20, "environment": SMALL, "boundary": "open", "agent": "UCBVI"}
    return grid_of({**fine, **change})


def test_every_list_is_an_axis():
    found = grid(
        seeds=2,
        runs=[
            {"agent": ["UCBVI", {"name": "PUCB", "bonus_scale": [0.1, 0.2]}]},
            {"agent": "dp-ucbvi", "boundary": {"name": "jdp", "epsilon": [1.0, 2.0], "delta": 1e-6}, "users": [10, 30]},
        ],
    )
    assert len(found.cells) == 2 * (3 + 4)
    assert found.labels == [
        "UCBVI, open",
        "PUCB, open, bonus_scale = 0.1",
        "PUCB, open, bonus_scale = 0.2",
        "DPUCBVI, jdp, epsilon = 1, 10 users",
        "DPUCBVI, jdp, epsilon = 1, 30 users",
        "DPUCBVI, jdp, epsilon = 2, 10 users",
        "DPUCBVI, jdp, epsilon = 2, 30 users",
    ]
    assert len({cell.key for cell in found.cells}) == len(found.cells)
    nested = grid(environment={"id": "HardMDP", "instance": [[0, 0], [0, 1]], "n": 2, "m": 1, "horizon": 4})
    assert [cell.environment.options["instance"] for cell in nested.cells] == [[0, 0], [0, 1]]
    assert build(nested.cells[1]).horizon == 4


def test_values_that_differ_little_have_labels_of_their_own():
    found = grid(boundary={"name": "jdp", "epsilon": [1, 1.0000001], "delta": 1e-6})
    assert found.labels == ["UCBVI, jdp, epsilon = 1", "UCBVI, jdp, epsilon = 1.0000001"]
    assert found.cells[0].boundary.options["epsilon"] == 1.0


def test_names_are_found_however_they_are_written():
    assert AGENTS.find("dp_ucbvi", "").name == "DPUCBVI"
    assert BOUNDARIES.find("JDPBillboard", "").name == "jdp"
    assert ENVIRONMENTS.find("riverswim", "").name == "PrivateRL/RiverSwim-v0"
    for catalogue in (AGENTS, BOUNDARIES, ENVIRONMENTS):
        for name, entry in catalogue.items():
            assert entry.summary.endswith("."), name


class Parent:
    def __init__(self, env, *, batch_size=1, horizon=None):
        pass


class Strict(Parent):
    def __init__(self, env):
        super().__init__(env)


class Generous(Parent):
    def __init__(self, env, **options):
        super().__init__(env, **options)


@pytest.mark.parametrize(("kind", "taken"), [(Strict, set()), (Generous, {"batch_size", "horizon"})])
def test_options_of_a_parent_are_taken_where_they_are_passed_on(kind, taken):
    named = BoundaryEntry("it", kind)
    assert {option for option in ("batch_size", "horizon", "self") if named.takes(option)} == taken
    assert set(named.options) == taken - {"horizon"}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"agent": "DPUCBV"}, r"agent 'DPUCBV'.*'DPUCBVI'"),
        ({"boundary": "jpd"}, r"boundary 'jpd'.*'jdp'"),
        ({"environment": "RiverSwimm"}, r"environment 'RiverSwimm'.*'PrivateRL/RiverSwim-v0'"),
        ({"boundary": {"name": "jdp", "epsilom": 1.0}}, r"jdp .*'epsilom'.*'epsilon'"),
        ({"agent": {"name": "UCBVI", "bonus_scal": 1.0}}, r"UCBVI .*'bonus_scal'.*'bonus_scale'"),
        ({"environment": {"id": "RiverSwim", "observe_time": True}}, r"option 'observe_time'"),
        ({"boundary": {"name": "jdp", "epsilon": "one"}}, r"boundary.epsilon is 'one'"),
        ({"boundary": {"name": "jdp", "epsilon": []}}, r"epsilon is an empty list"),
        ({"boundary": {"epsilon": 1.0}}, r"boundary.*name ="),
        ({"users": 0}, r"users is 0"),
        ({"users": 2.5}, r"users is 2.5"),
        ({"users": True}, r"users is True"),
        ({"seeds": 0}, r"seeds is 0"),
        ({"seeds": [1, 1]}, r"1 cells twice"),
        ({"usres": 5}, r"'usres'.*'users'"),
        ({"runs": [{"agnt": "UCBVI"}]}, r"runs\[0\] .*'agnt'.*'agent'"),
        ({"runs": []}, r"no runs"),
        ({"runs": [{"label": 3}]}, r"runs\[0\].label is 3"),
        ({"title": 3}, r"title is 3"),
        ({"title": "two\nlines"}, r"title is .*one line"),
        ({"name": "../../elsewhere"}, r"name is '../../elsewhere'"),
        ({"name": "records"}, r"name is 'records'"),
        ({"agent": []}, r"agent is an empty list"),
        ({"boundary": {"name": "jdp", "epsilon": float("inf")}}, r"epsilon is out of range"),
        ({"boundary": {"name": "jdp", "epsilon": float("nan")}}, r"epsilon is out of range"),
        ({"boundary": {"name": "jdp", "epsilon": 10**400}}, r"epsilon is out of range"),
        ({"environment": {"id": "HardMDP", "instance": [[0, float("inf")]]}}, r"instance is out of range"),
        ({"users": 10**30}, r"users is out of range"),
        ({"boundary": {"name": "jdp", "epsilon": [1, 1.0]}}, r"1 cells twice"),
        ({"runs": [{"label": "L", "agent": "UCBVI"}, {"label": "L", "agent": "UBEV"}]}, r"label 'L'"),
        (
            {"runs": [{"label": "L"}, {"label": "L", "boundary": {"name": "jdp", "epsilon": 1.0}}]},
            r"label 'L'",
        ),
        ({"runs": [{"label": "L", "users": 10}, {"label": "L", "users": 20}]}, r"label 'L'"),
        ({"sweep": {"worker": 2}}, r"sweep .*'worker'.*'workers'"),
        ({"sweep": {"workers": "two"}}, r"sweep.workers is 'two'"),
        ({"sweep": 3}, r"sweep is 3"),
    ],
)
def test_a_wrong_grid_gets_a_sentence(change, word):
    with pytest.raises(GridError, match=word):
        grid(**change)


def test_a_grid_without_parts_gets_a_sentence():
    with pytest.raises(GridError, match=r"no boundary.*open, jdp, "):
        grid_of({"users": 5, "environment": "RiverSwim", "agent": "UCBVI"})


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"boundary": {"name": "jdp", "epsilon": -1.0}}, r"epsilon is -1"),
        ({"boundary": {"name": "jdp", "epsilon": 1.0, "counting": "tree"}}, r"mechanism 'tree'"),
        ({"agent": "OPPO"}, r"LinearFeatures"),
        ({"environment": {"id": "RiverSwim", "variant": "styx"}}, r"styx"),
        ({"agent": {"name": "UCBVI", "bonus_scale": -1.0}}, r"bonus_scale is -1"),
    ],
)
def test_what_cannot_be_built_is_said_before_anything_runs(change, word):
    with pytest.raises(GridError, match=word):
        check(grid(**change))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "frontier" else name for name in BUILT_IN]
)
def test_built_in_grids_can_be_run(name):
    found = read_grid(name)
    check(found)
    assert found.about
    assert len(found.cells) >= 10, "a built-in grid has 10 cells at least: more runs, seeds, or values of an option"


def test_a_file_is_read_and_its_numbers_can_be_replaced(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'environment = "RiverSwim"\nusers = 7\nseeds = 3\n[[runs]]\nagent = "UCBVI"\nboundary = "open"\nusers = 9\n'
    )
    assert {cell.users for cell in read_grid(path).cells} == {9}
    found = read_grid(path, users=5, seeds=2)
    assert [(cell.users, cell.seed) for cell in found.cells] == [(5, 0), (5, 1)]
    assert found.name == "mine"
    (tmp_path / "bad.toml").write_text("users = = 3")
    for source, word in (
        (tmp_path / "no.toml", "cannot be read"),
        (tmp_path / "bad.toml", "is not TOML"),
        ("riverswin", "'riverswin'.*'riverswim'"),
    ):
        with pytest.raises(GridError, match=word):
            read_grid(source)


CELL = Cell(
    Choice("PrivateRL/RiverSwim-v0", {"horizon": 4}),
    Choice("jdp", {"epsilon": 1.0, "delta": 1e-6}),
    Choice("DPUCBVI"),
    30,
    0,
)


def test_streams_are_derived_from_the_configuration():
    """Apart from each other, and nothing like seed + i; users are the same for every learner."""
    other_agent = Cell(CELL.environment, CELL.boundary, Choice("PUCB"), 30, 0)
    other_seed = Cell(CELL.environment, CELL.boundary, CELL.agent, 30, 1)
    roles = ("environment", "agent", "noise")
    streams = {role: CELL.stream(role) for role in roles}
    assert len(set(streams.values())) == 3
    assert other_agent.stream("environment") == streams["environment"]
    assert other_agent.stream("agent") != streams["agent"]
    for role in roles:
        assert abs(other_seed.stream(role) - streams[role]) > 2**32
    assert CELL.key != other_agent.key != other_seed.key
    assert replace(CELL, base="another", axes={"users": 3}).key == CELL.key


def test_keys_know_the_code_of_modules_that_are_named_outside_the_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def plain(cell):
        about = {"cell": cell.to_dict(), "package": package_hash(), "format": FORMAT}
        return digest(about).hex()[:32]

    def named(agent):
        return Cell(CELL.environment, CELL.boundary, Choice(Reference(agent) if ":" in agent else agent), 30, 0)

    for name in ("PUCB", "private_rl_gym.agents:PUCB", "no_such_module_of_a_test:Agent", "__main__:Agent"):
        assert named(name).key == plain(named(name)), name
    (tmp_path / "of_a_test").mkdir()
    for path in ("of_a_test/__init__.py", "of_a_test/inner.py", "alone_of_a_test.py"):
        (tmp_path / path).write_text("number = 1\n")
    importlib.invalidate_caches()
    keys = [named(f"{module}:Agent").key for module in ("of_a_test", "alone_of_a_test")]
    assert keys == [named(f"{module}:Agent").key for module in ("of_a_test", "alone_of_a_test")]
    assert keys[1] != plain(named("alone_of_a_test:Agent"))
    (tmp_path / "of_a_test/inner.py").write_text("number = 22\n")  # a file of a package counts, of a module its own
    assert named("of_a_test:Agent").key != keys[0]
    assert named("alone_of_a_test:Agent").key == keys[1]
    assert pickle.loads(pickle.dumps(named("of_a_test:Agent"))) == named("of_a_test:Agent")


@pytest.mark.slow
def test_a_cell_is_the_same_in_another_process(tmp_path):
    code = (
        "import json; from private_rl_gym.lab.grids.grid import *;"
        "from private_rl_gym.lab.grids.run import run_cell;"
        "cell = Cell(Choice('PrivateRL/RiverSwim-v0', {'horizon': 4}), Choice('jdp', {'epsilon': 1.0, 'delta': 1e-6}),"
        "Choice('DPUCBVI'), 30, 0); print(json.dumps([cell.key, cell.stream('noise'), run_cell(cell).regret.tolist()]))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    assert json.loads(done.stdout) == [CELL.key, CELL.stream("noise"), run_cell(CELL).regret.tolist()]


def test_what_a_cell_says_is_exact():
    """Against serving user after user by hand."""
    outcome = run_cell(CELL)
    agent = build(CELL)
    model, regret = agent.board.unwrapped.model, []
    for _ in range(CELL.users):
        regret.append(model.optimal_value() - model.value_of(agent.policy))
        agent.board.serve(agent.policy, 1, rng=agent.rng)
    np.testing.assert_allclose(outcome.regret, np.cumsum(regret)[outcome.users - 1], atol=1e-12)
    assert outcome.users[-1] == CELL.users
    assert outcome.about["regret"] == outcome.regret[-1]
    assert outcome.noise[-1] == agent.board.release.noise_std["m"]
    assert outcome.about["epsilon"] == 1.0
    assert "seeded noise" in outcome.about["guarantee"]
    rlsvi = run_cell(Cell(CELL.environment, Choice("open"), Choice("RLSVI", {"constants": "theory"}), 30, 0)).about
    assert rlsvi["covers"] == "rewards"
    assert rlsvi["epsilon"] > 0

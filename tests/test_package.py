"""What importing the package does, and does not do."""

import ast
import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest

import private_rl_gym

HEAVY = ["torch", "numba", "stable_baselines3", "scipy", "matplotlib", "pygame"]


def run(code):
    """The last line that a fresh process prints."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip().splitlines()[-1]


def test_import_loads_nothing_heavy():
    loaded = run(f"import sys, json, private_rl_gym; print(json.dumps([m for m in {HEAVY} if m in sys.modules]))")
    assert json.loads(loaded) == []


def test_an_episode_needs_no_compiler():
    code = """
        import sys, gymnasium as gym
        env = gym.make("private_rl_gym:PrivateRL/RiverSwim-v0")
        env.reset(seed=0)
        env.step(1)
        print("numba" in sys.modules)
    """
    assert run("\n".join(line.strip() for line in code.strip().splitlines())) == "False"


def test_ids_are_registered_once():
    assert all(id in gym.registry for id in private_rl_gym.ENVIRONMENTS)
    before = dict(gym.registry)
    importlib.reload(private_rl_gym)  # Gymnasium warns of an id registered twice, and warnings are errors here
    assert gym.registry == before


def test_every_environment_is_exported():
    from private_rl_gym import envs

    missing = sorted({name for _, name in private_rl_gym.ENVIRONMENTS.values()} - set(envs.__all__))
    assert not missing, f"{', '.join(missing)}: import it in envs/__init__.py, and name it in __all__ there"


@pytest.mark.parametrize("id", private_rl_gym.ENVIRONMENTS)
def test_every_id_makes_its_class(id):
    assert type(gym.make(id).unwrapped).__name__ == private_rl_gym.ENVIRONMENTS[id][1]


def test_planning_names_are_all_there():
    from private_rl_gym import planning

    gym.make("PrivateRL/RiverSwim-v0").unwrapped.model.rollout([0] * 6, [[0.5] * 41])  # loads the submodules
    assert all(callable(getattr(planning, name)) for name in planning.__all__)
    with pytest.raises(AttributeError, match="no attribute 'plan_b'"):
        planning.plan_b  # noqa: B018


def test_dir_and_tab_know_every_name_and_every_room():
    rooms = {"agents", "envs", "planning", "privacy", "wrappers"}  # the laboratory is imported by its name alone
    assert rooms | {"make_private", "ENVIRONMENTS"} <= set(dir(private_rl_gym))
    for name in [*rooms, "privacy.audit"]:
        package = importlib.import_module(f"private_rl_gym.{name}")
        assert set(getattr(package, "__all__", ())) <= set(dir(package)), name
    assert run("import private_rl_gym as p; print(p.agents.UCBVI.__name__)") == "UCBVI"
    assert run("import private_rl_gym.agents as a; print('UCBVI' in dir(a) and 'UCBVI' not in vars(a))") == "True"
    shown = {name for name in dir(private_rl_gym) if not name.startswith("__")}
    assert shown == {*rooms, "ENVIRONMENTS", "make_private"}  # and nothing that the file imports
    with pytest.raises(AttributeError, match="no attribute 'agent': there are agents, envs"):
        private_rl_gym.agent  # noqa: B018


def test_the_extra_for_training_brings_what_bars_and_logs_need():
    content = (Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8")
    train = re.search(r"^train = \[(.*)\]$", content, re.MULTILINE)
    assert {re.split(r"[<>=]", name)[0] for name in re.findall(r'"([^"]+)"', train[1])} == {
        "rich",
        "tensorboard",
        "tqdm",
    }


def test_the_package_imports_only_what_its_installation_brings():
    """Found in a clean clone: a module that only the development tools brought."""
    source = Path(__file__).parents[1]
    content = (source / "pyproject.toml").read_text("utf-8")
    declared = content[
        content.index("dependencies = [") : content.index("docs = [")
    ]  # with the extras that users install
    names = {re.split(r"[<>=;\[]", name)[0].strip().lower() for name in re.findall(r'"([^"]+)"', declared)}
    modules = {name.replace("-", "_").removesuffix("_ce") for name in names}
    imported = set()
    for path in (source / "private_rl_gym").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.split(".")[0])
    own = {"private_rl_gym", "__future__", "tomllib"}  # which came with Python 3.11; tomli is there before
    foreign = imported - set(sys.stdlib_module_names) - own
    assert foreign - modules <= {"typing_extensions"}  # for types alone; torch brings it
    assert {"joblib", "pyarrow", "typer"} <= foreign


def test_the_floors_that_are_tested_are_those_that_are_stated():
    root = Path(__file__).parents[1]
    content = (root / "pyproject.toml").read_text("utf-8")
    stated = content[content.index("dependencies = [") : content.index("docs = [")]
    floors = {
        name: tuple(map(int, least.split("."))) for name, least in re.findall(r'"([a-z0-9-]+)>=([0-9.]+)', stated)
    }
    pinned = re.findall(r"^([a-z0-9-]+)==([0-9.]+)", (root / "constraints-floor.txt").read_text("utf-8"), re.MULTILINE)
    tested = {name: tuple(map(int, version.split("."))) for name, version in pinned}
    assert len(floors) > 15
    assert {name: tested.get(name, ())[: len(least)] for name, least in floors.items()} == floors


@pytest.mark.slow
def test_what_is_released_builds_installs_and_runs_alone(tmp_path):
    """The wheel is built from the sdist, so both are whole; it then runs with the repository out of sight."""
    source, site = Path(__file__).parents[1], tmp_path / "site"
    python = [sys.executable, "-m"]
    subprocess.run([*python, "build", "--outdir", tmp_path, source], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.stat().st_size < 1_000_000
    subprocess.run([*python, "pip", "install", "-q", "--no-deps", "--target", site, wheel], check=True)
    assert (site / "private_rl_gym" / "py.typed").is_file()
    code = """
import private_rl_gym, gymnasium as gym
from private_rl_gym.lab.grids.grid import BUILT_IN, read_grid
assert "site" in private_rl_gym.__file__, private_rl_gym.__file__
assert all(read_grid(name) for name in BUILT_IN)
print(gym.make("PrivateRL/RiverSwim-v0").reset(seed=0)[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "0"

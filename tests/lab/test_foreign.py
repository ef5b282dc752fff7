"""Environments and agents of somebody else: any Gymnasium id, and module:object, by the command line alone."""

import csv
import json
import sys

import gymnasium as gym
import pytest
from typer.testing import CliRunner

from private_rl_gym.envs import TabularModel
from private_rl_gym.lab.cli.app import app
from private_rl_gym.lab.grids.grid import read_grid
from private_rl_gym.lab.grids.record import Record
from private_rl_gym.lab.grids.store import Store
from private_rl_gym.lab.planner.problems import stand_in
from private_rl_gym.lab.registry import GridError

TAXI = next(name for name in reversed(gym.registry) if name.startswith("Taxi-v"))

MINE = '''
from pathlib import Path
import gymnasium as gym
from gymnasium import spaces
from private_rl_gym.agents import DPUCBVI
from private_rl_gym.envs import RiverSwim

Path("ran").touch()


class Two(gym.Env):
    """Three places, and a light. Each step costs, until the last place is reached."""

    observation_space, action_space = spaces.Tuple((spaces.Discrete(3), spaces.Discrete(2))), spaces.Discrete(2)

    def __init__(self, cost=1.0):
        self.cost = cost

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return (0, 0), {}

    def step(self, action):
        self.place = min(2, self.place + action)
        return (self.place, int(self.np_random.integers(2))), -self.cost, self.place == 2, False, {}


class Mixed(Two):
    """The same, with a thermometer."""

    observation_space = spaces.Dict(where=Two.observation_space, warmth=spaces.Box(-10, 40, (1,)))

    def reset(self, **options):
        place, info = super().reset(**options)
        return {"where": place, "warmth": self.observation_space["warmth"].sample()}, info

    def step(self, action):
        place, *rest = super().step(action)
        return {"where": place, "warmth": self.observation_space["warmth"].sample()}, *rest


class Learner(DPUCBVI):
    """Somebody's own."""


def river(horizon=12):
    return RiverSwim(horizon=horizon)


gym.register("Mine/Two-v0", entry_point=Two, max_episode_steps=6)
number = 3
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "mine_of_a_test.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    gym.registry.pop("Mine/Two-v0", None)
    sys.modules.pop("mine_of_a_test", None)


def run(*arguments):
    return CliRunner().invoke(app, ["train", *map(str, arguments)])


COSTS = ["--reward-range", "-1", "0", "--horizon", "6", "--users", "1000", "--epsilon", "50"]


def test_somebodys_environment_and_agent_learn(folder):
    done = run("--env", "mine_of_a_test:Two", "--agent", "mine_of_a_test:Learner", *COSTS, "--out", "here")
    assert done.exit_code == 0, done.output
    (path,) = (folder / "here" / "runs").glob("records/*/*.parquet")
    record = Record.from_bytes(path.stem, path.read_bytes())
    assert record.about["deployed_value"] == -2.0  # to the goal, in two steps
    assert -6.0 <= record.about["blind_value"] < -2.5
    assert record.about["guarantee"].startswith("(50.0, 1e-06)-JDP, replace one user, 1000 users")
    assert record.about["config"]["environment"]["name"] == "mine_of_a_test:Two"
    curve = list(csv.DictReader((folder / "here" / "table.csv").read_text().splitlines()))
    assert [int(row["users"]) for row in curve][-1] == 1000
    assert curve[-1]["measure"] == "return"
    assert float(curve[-1]["mean"]) > float(curve[0]["mean"])
    assert (folder / "here" / "return.png").stat().st_size > 1_000
    with pytest.raises(GridError, match="its true model is not known"):
        _ = record.regret


def test_a_box_among_other_parts_is_put_into_bins(folder):
    done = run("--env", "mine_of_a_test:Mixed", *COSTS, "--bins", "1", "--low", "0", "--high", "30", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["deployed_value"] == -2.0  # to the goal, in two steps


def test_options_and_registered_ids(folder):
    done = run(
        "--env", "mine_of_a_test:Mine/Two-v0", "--set", "environment.cost=0.5", *COSTS, "--json", "--save", "a.zip"
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["deployed_value"] == -1.0
    assert (folder / "a.zip").is_file()


def test_where_the_truth_is_known_regret_is_told(folder):
    done = run("--env", "mine_of_a_test:river", "--users", "50", "--json")
    assert done.exit_code == 0, done.output
    own = json.loads(done.stdout)
    assert 0 < own["regret"] <= 50 * own["optimal_value"]
    lake = json.loads(run("--env", "FrozenLake-v1", "--horizon", "8", "--users", "50", "--json").stdout)
    assert lake["optimal_value"] == pytest.approx(TabularModel.from_gym(gym.make("FrozenLake-v1"), 8).optimal_value())
    assert lake["regret"] <= 50 * lake["optimal_value"] + 1e-9


@pytest.mark.slow
def test_a_record_a_curve_and_a_figure_as_a_sweep_leaves_them(folder):
    done = run("--users", "40", "--set", "environment.horizon=12", "--out", "river")
    assert done.exit_code == 0, done.output
    names = {path.name for path in (folder / "river").iterdir()}
    assert {"table.csv", "regret.png", "report.html", "runs"} <= names
    assert len(list((folder / "river" / "runs").glob("records/*/*.parquet"))) == 1


@pytest.mark.parametrize("board", ["jdp", "ldp"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("CliffWalking-v1", ["--reward-range", "-100", "0", "--horizon", "15"]),
        ("CartPole-v1", ["--bins", "1,3,3,3", "--low=-2,-2,-0.2,-2", "--high", "2,2,0.2,2", "--horizon", "12"]),
        ("MountainCar-v0", ["--bins", "4", "--reward-range", "-1", "0", "--horizon", "12"]),
        ("FrozenLake-v1", ["--horizon", "8"]),
    ],
)
def test_gymnasiums_ids_run_under_privacy(folder, name, options, board):
    done = run("--env", name, *options, "--boundary", board, "--users", "60", "--batch-size", "30", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["config"]["users"] == 60


@pytest.mark.slow
@pytest.mark.parametrize("board", ["jdp", "ldp"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Blackjack-v1", ["--reward-range", "-1.5", "1.5", "--horizon", "4"]),
        (
            next(i for i in reversed(gym.registry) if i.startswith("Taxi-v")),
            ["--reward-range", "-10", "20", "--horizon", "4"],
        ),
    ],
)
def test_large_ones_run_too(folder, name, options, board):
    done = run("--env", name, *options, "--boundary", board, "--users", "40", "--batch-size", "20", "--json")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--env", "nowhere_at_all:Two"], "there is no module 'nowhere_at_all'"),
        (["--env", "mine_of_a_test:Three"], "mine_of_a_test:Three"),
        (["--env", "mine_of_a_test:Learner", "--horizon", "3"], "must make a gymnasium.Env"),
        (["--env", "mine_of_a_test:Two", "--set", "environment.price=3"], "price"),
        (["--env", "mine_of_a_test:Two", "--users", "5"], "Here: --horizon STEPS, or horizon = STEPS in a grid."),
        (["--env", "Taxi-v0"], "Did you mean 'Taxi-v"),
        (["--env", "Tavern"], "Any id that Gymnasium knows will do too. One of your own is written as module:object."),
        (["--env", "mine_of_a_test:Two", "--horizon", "3", "--users", "5"], "Here: --reward-range LEAST LARGEST"),
        (["--env", "CartPole-v1"], "in a command with --bins 8"),
        (["--env", "CartPole-v1", "--bins", "3"], "Add --low=... --high=..."),
        (["--env", "CartPole-v1", "--bins", "many"], "write numbers with commas"),
        (["--env", "Pendulum-v1", "--bins", "3"], "TransformAction(env, lambda number: ..., spaces.Discrete(n))"),
        (["--env", "mine_of_a_test:Mixed", "--horizon", "3"], "Discretize(env, bins=...) Here: --bins 8"),
        (["--env", "FrozenLake-v1", "--bins", "3"], "need no bins. Leave --bins out."),
        (["--agent", "mine_of_a_test:number"], "must be a subclass"),
        (["--env", "FrozenLake-v1", "--set", "boundary.wrong=3"], "has no option 'wrong'"),
        (["--env", "FrozenLake-v1", "--config", "own.toml"], "Give it in one of the two."),
        (["--config", "own.toml", "--reward-range", "0", "2"], "Give it in one of the two."),
        (["--bins", "3"], "has Discrete ones"),
    ],
)
def test_what_is_missing_is_said(folder, arguments, said):
    (folder / "own.toml").write_text('environment = "RiverSwim"\nagent = "UCBVI"\nboundary = "open"\nusers = 5\n')
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.output.split())


@pytest.mark.parametrize("board", ["jdp", "ldp"])
def test_a_problem_that_does_not_fit_is_refused_with_the_agent_that_does(folder, board, monkeypatch):
    """Taxi's 501 states and 200 steps take some 14 GB of sums; reports of single steps do not grow with the steps."""
    monkeypatch.setattr("private_rl_gym.wrappers.memory.available_memory", lambda: 4 * 10**9)
    taxi = ["--env", TAXI, "--reward-range", "-10", "20", "--boundary", board, "--users", "40"]
    done = run(*taxi)
    assert done.exit_code == 2, done.output
    said = " ".join(done.output.split())
    assert "and there are 4.0 GB" in said
    assert said.endswith("Here: --agent FrugalUCBVI --set agent.stationary=true, or --horizon STEPS for fewer steps.")


@pytest.mark.slow
@pytest.mark.parametrize("board", ["jdp", "ldp"])
def test_taxi_runs_with_all_its_steps(folder, board):
    taxi = ["--env", TAXI, "--reward-range", "-10", "20", "--boundary", board, "--agent", "FrugalUCBVI"]
    taxi += ["--set", "agent.stationary=true"]
    done = run(*taxi, "--users", "40", "--json")
    assert done.exit_code == 0, done.output
    about = json.loads(done.stdout)
    assert 0.0 <= about["deployed_gap"] <= about["optimal_value"]


@pytest.mark.parametrize("part", ["environment", "agent", "boundary", "counting"])
def test_a_file_of_data_imports_nothing(folder, part):
    names = {"environment": "RiverSwim", "agent": "UCBVI", "boundary": "open"}
    names = {name: f'"{value}"' for name, value in names.items()}
    if part == "counting":
        names["boundary"] = '{ name = "jdp", epsilon = 1.0, counting = "mine_of_a_test:Two" }'
    else:
        names[part] = '"mine_of_a_test:Two"'
    text = "".join(f"{name} = {value}\n" for name, value in names.items()) + "users = 5\n"
    (folder / "grid.toml").write_text(text)
    for command in (["train", "--config", "grid.toml"], ["sweep", "grid.toml", "--import", "another"]):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 2, done.output
        assert "add --import mine_of_a_test" in " ".join(done.output.split())
    assert not (folder / "ran").exists()


GRID = """
name = "anybodys"
users = 60
seeds = 2

[[runs]]
environment = { id = "mine_of_a_test:Two", horizon = 6, reward_range = [[-1, 0]], cost = [0.5, 1.0] }
agent = "mine_of_a_test:Learner"
boundary = { name = "jdp", epsilon = 50.0, delta = 1e-6, batch_size = 20 }

[[runs]]
label = "the lake"
environment = { id = "FrozenLake-v1", horizon = 6 }
agent = "DPUCBVI"
boundary = { name = "ldp", epsilon = 8.0, batch_size = 20 }
"""


def test_a_grid_of_anybodys_runs_and_shows_what_is_known(folder):
    """Regret where there is a true model, and the return of a user where there is none, side by side."""
    (folder / "grid.toml").write_text(GRID)
    typed = ["grid.toml", "--import", "mine_of_a_test"]
    done = CliRunner().invoke(app, ["sweep", *typed, "--engine", "serial", "--out", "out"])
    assert done.exit_code == 0, done.output
    points = csv.DictReader((folder / "out" / "table.csv").read_text().splitlines())
    *mine, lake = (row for row in points if row["last"] == "1")
    assert all(row["measure"] == "return" and -6.0 <= float(row["mean"]) <= -1.0 for row in mine)
    assert lake["measure"] == "regret"
    assert 0.0 <= float(lake["mean"]) <= 60.0
    assert {"regret.png", "return.png", "privacy.png", "privacy-of-return.png"} <= {
        path.name for path in (folder / "out").iterdir()
    }
    again = CliRunner().invoke(app, ["sweep", *typed, "--engine", "serial", "--dry-run"])
    assert "0 to run" in again.output
    shown = CliRunner().invoke(app, ["table", *typed, "--format", "csv"])
    assert shown.stdout == (folder / "out" / "table.csv").read_text()
    path = next(path for path in (folder / "runs").glob("records/*/*.parquet") if measured(path) == "return")
    assert "best learned policy returns" in CliRunner().invoke(app, ["show", str(path)]).stdout


def test_changed_code_of_ones_own_is_run_again_and_the_rest_is_there(folder):
    (folder / "grid.toml").write_text(GRID)
    sweep = ["sweep", "grid.toml", "--import", "mine_of_a_test", "--engine", "serial", "--dry-run"]
    cells = read_grid("grid.toml", code=["mine_of_a_test"]).cells
    store = Store(folder / "runs")
    for cell in cells:
        store.add(cell, b"")
    assert "0 to run" in CliRunner().invoke(app, sweep).output
    with (folder / "mine_of_a_test.py").open("a") as file:
        file.write("# changed\n")
    own = sum(":" in cell.environment.name + cell.agent.name for cell in cells)
    assert 0 < own < len(cells)
    assert f"{own} to run" in CliRunner().invoke(app, sweep).output
    again = read_grid("grid.toml", code=["mine_of_a_test"]).cells
    assert [cell.stream("environment") for cell in again] == [cell.stream("environment") for cell in cells]


def measured(path):
    return Record.from_bytes(path.stem, path.read_bytes()).measure


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ('{ id = "Blackjack-v1", horizon = 6, reward_range = [-1.5, 1.5] }', "write it as [[least, largest]]"),
        ('{ id = "Blackjack-v1", horizon = 6, reward_range = 1.5 }', "write it as [[least, largest]]"),
        ('{ id = "Blackjack-v1", reward_range = [[-1.5, 1.5]] }', "has no horizon"),
        ('{ id = "CartPole-v1", horizon = 6 }', "bins = 8"),
        ('{ id = "FrozenLake-v1", horizon = 6, ice = true }', "ice"),
        ('{ id = "mine_of_a_test:river", horizon = 6, bins = 3 }', "has Discrete ones"),
    ],
)
def test_what_a_grid_lacks_is_said_before_it_runs(folder, environment, said):
    (folder / "grid.toml").write_text(f'environment = {environment}\nagent = "UCBVI"\nboundary = "open"\nusers = 5\n')
    done = CliRunner().invoke(app, ["sweep", "grid.toml", "--import", "mine_of_a_test"])
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.output.split())


def audit(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments), "--engine", "serial", "--out", "audits"])


def test_users_who_are_met_again_are_of_the_table_or_of_the_sizes():
    lake = stand_in("FrozenLake-v1", {"horizon": 4})
    assert lake.model.optimal_value() == TabularModel.from_gym(gym.make("FrozenLake-v1"), 4).optimal_value()
    pole = stand_in("CartPole-v1", {"horizon": 4, "bins": [1, 1, 3, 3], "low": -1, "high": 1})
    assert (pole.model.horizon, pole.model.n_states, pole.model.n_actions) == (4, 10, 2)
    with pytest.raises(GridError, match="Leave --env out"):
        stand_in("Blackjack-v1", {"horizon": 4, "reward_range": [-2, 2]})


@pytest.mark.slow
def test_an_audit_of_anybodys_environment_and_agent(folder):
    mine = ["--env", "mine_of_a_test:Two", "--reward-range", -1, 0, "--horizon", 2, "--runs", 200, "--users", 2]
    done = audit(*mine, "--agent", "mine_of_a_test:Learner", "--attack", "one-release", "--attack", "black-box")
    assert done.exit_code == 0, done.output
    (report,) = (folder / "audits").glob("*/report.json")
    asked = json.loads(report.read_text())["config"]
    assert asked["environment"] == {"name": "mine_of_a_test:Two", "horizon": 2, "reward_range": [-1.0, 0.0]}
    sys.modules.pop("mine_of_a_test")
    (folder / "ran").unlink()
    done = audit("--config", report)
    assert done.exit_code == 2
    assert "add --import mine_of_a_test" in " ".join(done.output.split())
    assert not (folder / "ran").exists()


@pytest.mark.slow
def test_an_audit_on_anybodys_environment_catches_a_broken_boundary(folder):
    broken = "private_rl_gym.lab.audits.broken:SharedNoise"
    lake = ["--env", "FrozenLake-v1", "--horizon", 3, "--runs", 400, "--attack", "one-release"]
    assert audit(*lake).exit_code == 0
    assert audit(*lake, "--target", broken).exit_code == 3


GRID_WORLD = """
import gymnasium as gym
import minigrid
from gymnasium import spaces
from gymnasium.wrappers import TransformObservation


def place(size=5):
    env = gym.make("MiniGrid-Empty-5x5-v0")
    parts = spaces.Tuple((spaces.Discrete(size), spaces.Discrete(size), spaces.Discrete(4)))
    return TransformObservation(env, lambda _: (*map(int, env.unwrapped.agent_pos), env.unwrapped.agent_dir), parts)
"""


@pytest.mark.slow
@pytest.mark.parametrize("board", ["jdp", "ldp"])
def test_a_minigrid_runs_by_its_places_or_says_what_to_leave_out(folder, board):
    pytest.importorskip("minigrid", reason="MiniGrid is not a dependency: pip install minigrid")
    (folder / "grid_world_of_a_test.py").write_text(GRID_WORLD)
    few = ["--horizon", "12", "--boundary", board, "--users", "40", "--batch-size", "20", "--json"]
    done = run("--env", "grid_world_of_a_test:place", *few)
    assert done.exit_code == 0, done.output
    assert 0.0 <= json.loads(done.stdout)["deployed_value"] <= 1.0
    done = run("--env", "minigrid:MiniGrid-Empty-5x5-v0", *few)
    assert done.exit_code == 2
    assert "env = gymnasium.wrappers.FilterObservation(env, ['direction'])" in " ".join(done.output.split())

"""Environments and agents of somebody else: any Gymnasium id, and module:object, by the command line alone."""

import csv
import json
import sys

import gymnasium as gym
import pytest
from typer.testing import CliRunner

from private_rl_gym.cli import app
from private_rl_gym.envs import TabularModel

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
    record = json.loads((folder / "here" / "record.json").read_text())
    assert record["value"] == -2.0  # to the goal, in two steps
    assert record["guarantee"].startswith("(50.0, 1e-06)-JDP, replace one user, 1000 users")
    assert record["config"]["environment"]["name"] == "mine_of_a_test:Two"
    curve = list(csv.DictReader((folder / "here" / "curve.csv").read_text().splitlines()))
    assert [int(row["users"]) for row in curve][-1] == 1000
    assert float(curve[-1]["return"]) > float(curve[0]["return"])
    assert (folder / "here" / "return.png").stat().st_size > 1_000


def test_options_and_registered_ids(folder):
    done = run(
        "--env", "mine_of_a_test:Mine/Two-v0", "--set", "environment.cost=0.5", *COSTS, "--json", "--save", "a.zip"
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["value"] == -1.0
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
    assert {"curves.csv", "regret.png", "report.html", "runs"} <= names
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
        (["--env", "mine_of_a_test:Two", "--users", "5"], "has no horizon"),
        (["--env", "mine_of_a_test:Two", "--horizon", "3", "--users", "5"], "Here: --reward-range LEAST LARGEST"),
        (["--env", "CartPole-v1"], "add --bins 8"),
        (["--env", "CartPole-v1", "--bins", "3"], "Add --low=... --high=..."),
        (["--env", "CartPole-v1", "--bins", "many"], "write numbers with commas"),
        (["--env", "Pendulum-v1", "--bins", "3"], "TransformAction"),
        (["--agent", "mine_of_a_test:number"], "must be a subclass"),
        (["--env", "FrozenLake-v1", "--set", "boundary.wrong=3"], "has no option 'wrong'"),
        (["--env", "FrozenLake-v1", "--config", "grid.toml"], "--config names parts of this package only"),
    ],
)
def test_what_is_missing_is_said(folder, arguments, said):
    (folder / "grid.toml").write_text('agent = "UCBVI"\nboundary = "open"\nusers = 5\n')
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.output.split())


@pytest.mark.parametrize("part", ["environment", "agent", "boundary"])
def test_a_file_of_data_imports_nothing(folder, part):
    names = {"environment": "RiverSwim", "agent": "UCBVI", "boundary": "open", part: "mine_of_a_test:Two"}
    text = "".join(f'{name} = "{value}"\n' for name, value in names.items()) + "users = 5\n"
    (folder / "grid.toml").write_text(text)
    for command in (["train", "--config", "grid.toml"], ["sweep", "grid.toml"]):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 2, done.output
        assert f"there is no {part} 'mine_of_a_test:Two'" in " ".join(done.output.split())
    assert not (folder / "ran").exists()

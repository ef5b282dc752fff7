"""The commands that run and show experiments."""

import json

import pytest
from typer.testing import CliRunner

from private_rl_gym.agents import DPUCBVI
from private_rl_gym.lab.cli.app import app
from private_rl_gym.lab.grids.grid import BUILT_IN
from private_rl_gym.lab.registry import AGENTS, BOUNDARIES
from private_rl_gym.wrappers import BOUNDARIES as KINDS

GRID = """
users = 40
seeds = 2
environment = { id = "RiverSwim", horizon = 4 }
[sweep]
engine = "serial"
[[runs]]
agent = "UCBVI"
boundary = "open"
[[runs]]
agent = "DPUCBVI"
boundary = { name = "jdp", epsilon = 1.0, delta = 1e-6 }
"""


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def swept(tmp_path):
    grid = tmp_path / "grid.toml"
    grid.write_text(GRID)
    done = run("sweep", grid, "--store", tmp_path / "runs")
    assert done.exit_code == 0, done.output
    return grid, tmp_path / "runs", done


def test_everything_that_can_be_named_is_listed():
    found = json.loads(run("list", "--json").stdout)
    assert set(found) == {"environments", "boundaries", "agents", "grids"}
    assert set(found["agents"]) == set(AGENTS)
    assert set(found["grids"]) == set(BUILT_IN)
    assert "DPUCBVI" in run("list").stdout


@pytest.mark.slow
def test_a_sweep_names_its_figure_and_goes_on_where_it_was(swept):
    grid, store, done = swept
    assert str(store / "grid" / "regret.png") in done.stdout
    assert "4 cells, 4 to run" in done.stderr
    assert "4 of 4 cells run." in done.stderr
    again = run("sweep", grid, "--store", store)
    assert "4 cells, 0 to run" in again.stderr
    more = run("sweep", grid, "--store", store, "--seeds", "3", "--dry-run")
    assert "6 cells, 2 to run" in more.stderr


@pytest.mark.parametrize("environment", ["RiverSwim", "FrozenLake-v1"])
def test_train_says_what_the_agent_warns_of(environment):
    horizon = ["--set", "environment.horizon=3"] if environment == "RiverSwim" else ["--horizon", "3"]
    few = ["--env", environment, *horizon, "--agent", "sdppe", "--boundary", "open", "--users", "60"]
    said = " ".join(run("train", *few).stdout.split())
    assert "nothing will be eliminated" in said
    assert "nothing will be eliminated" in json.loads(run("train", *few, "--json").stdout)["warnings"][0]
    enough = ["--agent", "ucbvi", "--boundary", "open", "--users", "20"]
    assert "warning" not in run("train", *enough).stdout


@pytest.mark.slow
def test_tables_plots_and_records_are_shown(swept, tmp_path):
    grid, store, _ = swept
    shown = run("table", grid, "--store", store)
    assert shown.stdout.startswith("| learner | true epsilon |")
    assert "95% confidence interval" in shown.output
    assert "confidence" not in shown.stdout  # which is the table alone
    assert run("table", grid, "--store", store, "--format", "latex").stdout.startswith(r"\begin{tabular}")
    drawn = run("plot", grid, "--store", store, "--out", tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere" / "report.html").is_file()
    assert len(drawn.stdout.split()) == 3 * 4 + 1
    record = min(store.glob("records/*/*.parquet"))
    by_key, by_path = run("show", record.stem[:8], "--store", store), run("show", record)
    assert by_key.stdout == by_path.stdout
    for word in ("RiverSwim-v0", "guarantee", "regret", "40"):
        assert word in by_key.stdout
    about = json.loads(run("show", record, "--json").stdout)
    assert about["users"][-1] == 40
    assert about["config"]["users"] == 40


def test_train_takes_epsilon_1_and_delta_1e_6_unless_they_are_given():
    """As learn, audit and plan do: epsilon = 10 would be next to no guarantee."""
    about = json.loads(run("train", "--users", "30", "--set", "environment.horizon=3", "--json").stdout)
    assert (about["epsilon"], about["delta"]) == (1.0, 1e-6)


def test_train_prints_a_promise_and_saves_the_agent(tmp_path):
    done = run(
        "train", "--users", "50", "--set", "environment.horizon=4", "--epsilon", "3", "--save", tmp_path / "a.zip"
    )
    assert done.exit_code == 0, done.output
    for word in ("(3.0, 1e-06)-JDP", "50 users"):
        assert word in " ".join(done.stdout.split())
    assert DPUCBVI.load(tmp_path / "a.zip").num_timesteps == 200
    options = ["--agent", "rlsvi", "--boundary", "open", "--users", "20", "--set", "agent.variance_scale=0.5", "--json"]
    about = json.loads(run("train", *options).stdout)
    assert about["config"]["agent"] == {"name": "RLSVI", "variance_scale": 0.5}
    assert about["covers"] == "rewards"
    config = tmp_path / "one.toml"
    config.write_text('agent = "PrivateLinOptVI"\nenvironment = "LinearMixture"\nusers = 30\n')
    assert json.loads(run("train", "--config", config, "--json").stdout)["config"]["agent"]["name"] == "PrivateLinOptVI"
    about = json.loads(run("train", "--config", config, "--users", "20", "--seed", "4", "--json").stdout)
    assert (about["config"]["users"], about["config"]["seed"]) == (20, 4)
    clash = run("train", "--config", config, "--agent", "UBEV")
    assert clash.exit_code == 2
    assert "The agent is given in" in clash.stderr
    shuffled = json.loads(run("train", "--boundary", "sdp", "--users", "30", "--json").stdout)
    assert shuffled["config"]["boundary"]["batch_size"] == 30


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["sweep", "riverswin"], "Did you mean 'riverswim'?"),
        (["sweep", "riverswim", "--engine", "ray"], "engine 'ray'"),
        (["sweep", "riverswim", "--workers", "0"], "workers is 0"),
        (["table", "riverswim", "--store", "nowhere"], "private-rl-gym sweep"),
        (["table", "riverswim", "--format", "word"], "format 'word'"),
        (["show", "abcdef", "--store", "nowhere"], "begins with 'abcdef'"),
        (["train", "--agent", "DQN"], "agent 'DQN'"),
        (["train", "--agent", "DPPPO"], "used from Python: private_rl_gym.make_private(DPPPO, env, epsilon="),
        (["train", "--agent", "ppo"], "used from Python: private_rl_gym.make_private(PPO, env, epsilon="),
        (["train", "--boundary", "open", "--epsilon", "1"], "this one is open"),
        (["train", "--set", "horizon=4"], "agent.NAME=VALUE"),
        (["train", "--set", "agent.bonus_scal=4"], "Did you mean 'bonus_scale'"),
        (["train", "--epsilon", "inf"], "epsilon is out of range"),
        (["train", "--set", "agent.bonus_scale=1e400"], "out of range"),
        (["train", "--batch-size", "0"], "batch_size is 0"),
        (["train", "--set", "agent.bonus_scale=[1,2]"], "These options name 2 runs"),
        (["train", "--save", "nowhere/at/all.zip"], "folder nowhere/at"),
        (["show", "**", "--store", "nowhere"], "no record"),
        (["sweep", "riverswim", "--workers", "100000000"], "at most 1000"),
        (["train", "--users", "0"], "users is 0"),
        (["train", "--epsilon", "-1"], "epsilon is -1"),
    ],
)
def test_what_is_wrong_gets_a_sentence_and_exit_code_2(arguments, word, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    assert done.exit_code == 2
    assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())  # nothing touched


@pytest.mark.slow
def test_a_sweep_with_a_failure_says_so_and_exits_with_1(tmp_path, monkeypatch):
    from private_rl_gym.lab.grids import run as cells

    original = cells.train_cell

    def fails(cell):
        if cell.seed == 1:
            raise ZeroDivisionError("on purpose")
        return original(cell)

    monkeypatch.setattr(cells, "train_cell", fails)
    grid = tmp_path / "grid.toml"
    grid.write_text(GRID)
    done = run("sweep", grid, "--store", tmp_path / "runs")
    assert done.exit_code == 1
    assert "2 failed" in done.stderr
    assert "ZeroDivisionError: on purpose" in done.stderr
    assert "on purpose" in (tmp_path / "runs" / "grid" / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("label", "word"),
    [
        ({"store": "private_rl_gym", "format": 99}, "was written by a newer version"),
        ({"store": "another", "format": 1}, "is a store of another"),
        (None, "is not a store"),
    ],
)
@pytest.mark.parametrize("command", ["sweep", "table", "plot"])
def test_a_store_that_is_none_is_left_alone(command, label, word, tmp_path):
    (tmp_path / "there").mkdir()
    name, content = ("thesis.tex", "dear") if label is None else ("store.json", json.dumps(label))
    (tmp_path / "there" / name).write_text(content)
    done = run(command, "riverswim", "--store", tmp_path / "there")
    assert done.exit_code == 2
    assert word in done.stderr
    assert [path.read_text() for path in (tmp_path / "there").iterdir()] == [content]


def test_names_are_completed():
    assert [name for name, _ in AGENTS.complete("dpu")] == ["DPUCBVI"]
    assert [name for name, _ in BOUNDARIES.complete("")] == list(KINDS)
    assert [name for name, _ in BOUNDARIES.complete("j")] == ["jdp"]


@pytest.mark.parametrize("name", KINDS)
def test_train_sends_a_boundary_what_its_constructor_takes(name):
    done = run("train", "--boundary", name, "--users", "30", "--set", "environment.horizon=3", "--json")
    assert done.exit_code == 0, done.output
    sent = json.loads(done.stdout)["config"]["boundary"]
    usual = {"epsilon": 1.0, "delta": getattr(KINDS[name], "usual_delta", 0.0), "batch_size": 30}
    wanted = {option: value for option, value in usual.items() if option in BOUNDARIES[name].options and value}
    assert sent == {"name": name, **wanted}


def test_help_names_every_boundary(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for command in ("train", "audit"):
        text = " ".join(run(command, "--help").stdout.split())
        assert f"One of {', '.join(KINDS)}" in text
        assert "1e-06 for jdp" in text


@pytest.mark.slow
def test_damaged_records_get_a_sentence(swept):
    grid, store, _ = swept
    record = min(store.glob("records/*/*.parquet"))
    record.write_bytes(record.read_bytes()[:-7])
    for command in (["table", grid, "--store", store], ["show", record]):
        done = run(*command)
        assert done.exit_code == 2
        assert "is no record, or is damaged" in done.stderr
        assert record.stem in done.stderr


@pytest.mark.slow
def test_dollars_in_labels_are_dollars(tmp_path):
    grid = tmp_path / "grid.toml"
    grid.write_text(GRID.replace("[[runs]]", "[[runs]]\nlabel = 'costs $\\frac{$'", 1))
    done = run("sweep", grid, "--store", tmp_path / "runs")
    assert done.exit_code == 0, done.output
    assert "costs" in (tmp_path / "runs" / "grid" / "table.md").read_text()


def test_help_teaches():
    for command in ("train", "sweep", "plot", "table", "show", "list"):
        done = run(command, "--help")
        assert done.exit_code == 0
        assert len(done.stdout.splitlines()) > 8
    assert "private-rl-gym sweep riverswim" in " ".join(run("sweep", "--help").stdout.split())

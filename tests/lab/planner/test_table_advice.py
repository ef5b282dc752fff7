"""Advice before a table is used: whether so many people are enough, and the command that learns from them."""

import json
import math
import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

from private_rl_gym.envs import LoggedUsers
from private_rl_gym.lab.cli.app import app
from private_rl_gym.lab.planner.advice import TableAdvice
from private_rl_gym.lab.planner.adviser import Adviser
from private_rl_gym.lab.planner.problems import problem_of_table
from private_rl_gym.lab.registry import GridError
from private_rl_gym.wrappers import Episodes, JDPBillboard

SIZES = (4, 2, 6)  # states, actions, horizon
WORDS = ["--table", "--horizon", "6", "--states", "4", "--actions", "2"]


def run(*arguments):
    return CliRunner().invoke(app, ["plan", *map(str, arguments)])


def of_table(users, *, stationary=False, **options):
    return Adviser(problem_of_table(*SIZES, stationary=stationary), users, stationary=stationary, **options)


def test_more_people_and_a_larger_epsilon_teach_more():
    few, many = (of_table(users, stationary=True, runs=3).from_table((0.5, 8.0, math.inf)) for users in (60, 8000))
    assert [row.epsilon for row in few] == [0.5, 8.0, math.inf]
    assert few[0].verdict == "hopeless"  # noise of hundreds in counts of tens
    assert [row.verdict for row in many] == ["learns"] * 3
    assert many[0].noise > many[1].noise > many[2].noise == 0.0
    assert all(gain <= 1.0 + 1e-9 for row in (*few, *many) for gain in row.gains)


@pytest.mark.parametrize("stationary", [True, False])
def test_noise_is_that_of_a_board_around_the_table_with_its_state_for_those_who_left(stationary):
    n_states, n_actions, horizon = SIZES
    board = JDPBillboard(LoggedUsers(n_states, n_actions, horizon), 1.0, 1e-6, users=300, schedule=300)
    nothing = np.zeros((300, horizon), dtype=int)
    board.ingest(Episodes(np.arange(300), np.zeros((300, horizon + 1), dtype=int), nothing, nothing))
    [row] = of_table(300, stationary=stationary, runs=1).from_table((1.0,))
    assert board.sizes[1] == n_states + 1
    pooled = math.sqrt(horizon) if stationary else 1.0
    assert row.noise == pytest.approx(board.release.noise_std["n"] * pooled)
    assert row.visits == pytest.approx(300 * (horizon if stationary else 1) / (n_states * n_actions))


def test_verdicts_follow_what_the_habits_lose():
    for gains, verdict in (
        ((0.8, 0.9), "learns"),
        ((0.3, 0.5), "in part"),
        ((0.05, 0.1), "hopeless"),
        ((1.0, -0.2), "hopeless"),  # a coin toss whether it is better than the habits
    ):
        assert TableAdvice(1.0, gains, 0.0, 1.0).verdict == verdict
    assert TableAdvice(1.0, (0.5, 0.0, -1.0), 0.0, 1.0).better == 1


def test_time_that_runs_out_leaves_one_stand_in_and_is_said():
    assert all(len(row.gains) == 1 for row in of_table(200, runs=5, seconds=1e-9).from_table((8.0,)))
    said = " ".join(run(*WORDS, "--users", 200, "--seconds", 1e-9).stdout.split())
    assert "Time ran out after 1 of 10 stand-ins: try --seconds 300." in said


@pytest.mark.parametrize("stationary", [True, False])
def test_the_command_that_is_printed_learns_from_a_table(stationary, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*WORDS, "--users", 2000, "--runs", 2, *(["--stationary"] if stationary else []))
    assert done.exit_code == 0, done.output
    for part in ("one more for those who left", "verdict", "inf", "noise", "2 of 2"):
        assert part in done.stdout
    command = next(line for line in done.stdout.splitlines() if "private-rl-gym learn" in line)
    _, *words = shlex.split(command)
    assert ("--stationary" in words) == stationary
    rng = np.random.default_rng(0)
    lines = ["user,stage,state,action,reward,next_state"]
    for user in range(50):
        states = rng.integers(4, size=7)
        lines += [f"{user},{h},{states[h]},{rng.integers(2)},{rng.integers(2)},{states[h + 1]}" for h in range(6)]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    learned = CliRunner().invoke(app, ["people.csv" if word == "TABLE.parquet" else word for word in words])
    assert learned.exit_code == 0, learned.output
    assert "-JDP, replace one user, 50 users" in learned.stdout


def test_machines_get_the_same_numbers():
    done = run(*WORDS, "--users", 400, "--runs", 2, "--epsilon", 0.25, "--json")
    assert done.exit_code == 0, done.output
    about = json.loads(done.stdout)
    assert [row["epsilon"] for row in about["rows"]] == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, None]
    assert about["rows"][0]["verdict"] == "hopeless"
    assert about["command"] is None
    assert (about["users"], about["states"], about["stand_ins"]) == (400, 4, 2)
    said = " ".join(run(*WORDS, "--users", 400, "--runs", 2, "--epsilon", 0.25).stdout.split())
    assert "Hopeless at this epsilon" in said
    assert "--stationary pools their counts" in said
    assert "private-rl-gym learn" not in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--table", "--users", "100", "--states", "4"], "--table needs --states, --actions and --horizon"),
        ([*WORDS, "--users", "100", "--env", "RiverSwim"], "--env is for plans without --table"),
        ([*WORDS, "--users", "100", "--regret", "0.3"], "--regret is for plans without --table"),
        ([*WORDS, "--users", "100", "--actions", "1"], "there is nothing to learn"),
        ([*WORDS, "--users", "100", "--states", "9000"], "too many to simulate"),
        (["--users", "100"], "Give --env NAME; or"),
        (["--users", "100", "--env", "RiverSwim", "--states", "4"], "--states and --actions replace --env"),
        (
            ["--users", "100", "--env", "private_rl_gym.envs:LoggedUsers"]
            + [
                word
                for name, size in (("n_states", 5), ("n_actions", 3))
                for word in ("--set", f"environment.{name}={size}")
            ]
            + ["--set", "environment.horizon=8"],
            "In place of --env, give --table --states 5 --actions 3 --horizon 8",
        ),
    ],
)
def test_a_question_that_makes_no_sense_gets_a_sentence(arguments, said):
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_sizes_are_checked():
    with pytest.raises((GridError, ValueError), match="states"):
        problem_of_table(0, 2, 4)

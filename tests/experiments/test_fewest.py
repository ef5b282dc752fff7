"""How many users it takes: the answer is the fewest on the ladder, and time that runs out is said."""

import json

import pytest
from typer.testing import CliRunner

from private_rl_gym.cli import app
from private_rl_gym.experiments.advice import Adviser
from private_rl_gym.experiments.fewest import LADDER, fewest_users
from private_rl_gym.experiments.names import GridError
from private_rl_gym.experiments.problems import problem_of, problem_of_size


def run(*arguments):
    return CliRunner().invoke(app, ["plan", *map(str, arguments)])


def river():
    return problem_of("RiverSwim", {})


def test_so_many_are_enough_and_the_next_fewer_are_not():
    found = fewest_users(river(), "jdp", 1.0, 0.25, runs=2)
    assert found.enough
    assert not found.note
    assert found.advice.share <= 0.25
    assert found.users > LADDER[0]
    fewer = LADDER[LADDER.index(found.users) - 1]
    assert Adviser(river(), fewer, runs=2).within("jdp", 1.0, 0.25).share > 0.25


def test_a_smaller_epsilon_takes_more_users_and_no_privacy_the_fewest():
    users = [fewest_users(river(), trust, epsilon, 0.25, runs=1).users for trust, epsilon in ORDER]
    assert users == sorted(users)
    assert users[0] < users[-1]


ORDER = [("open", float("inf")), ("jdp", 4.0), ("jdp", 1.0), ("ldp", 1.0)]


def test_numbers_that_are_drowned_by_noise_are_not_simulated(monkeypatch):
    asked = []
    simulate = Adviser.within
    monkeypatch.setattr(Adviser, "within", lambda self, *a, **o: asked.append(self.users) or simulate(self, *a, **o))
    assert fewest_users(river(), "ldp", 1.0, 0.25, runs=1).users > 10_000
    assert min(asked) > 5_000


def test_time_that_runs_out_is_said():
    found = fewest_users(river(), "jdp", 1.0, 0.25, seconds=1e-9)
    assert (found.enough, found.advice) == (False, None)
    assert "time ran out" in found.note
    assert "larger --seconds" in found.note


def test_what_is_too_large_to_simulate_has_the_users_for_noise():
    found = fewest_users(problem_of_size(300, 60, 100), "jdp", 1.0, 0.25)
    assert not found.enough
    assert "too large to simulate" in found.note
    assert "--seconds" not in found.note


def test_without_an_environment_a_stand_in_of_the_size_answers():
    problem = problem_of_size(5, 3, 4)
    assert problem.sizes == (4, 5, 3)
    assert not problem.true
    assert problem_of_size(1, 2, 3).sizes == (3, 1, 2)
    for sizes in ((0, 2, 3), (5000, 5, 5)):
        with pytest.raises(GridError, match="take numbers from 1 on"):
            problem_of_size(*sizes)


def test_a_person_sees_how_many_it_takes():
    done = run("--states", 3, "--actions", 2, "--horizon", 4, "--boundary", "jdp", "--runs", 1)
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "a random Garnet of 3 states" in said
    assert "JDP FrugalUCBVI" in said
    machine = run("--states", 3, "--actions", 2, "--horizon", 4, "--boundary", "jdp", "--runs", 1, "--json")
    rows = json.loads(machine.stdout)["rows"]
    assert set(rows) == {"open", "jdp"}
    assert rows["jdp"]["enough"]
    assert f"{rows['jdp']['users']:,}" in said


def test_a_stand_in_is_planned_for_users_too():
    done = run("--states", 3, "--actions", 2, "--horizon", 4, "--users", 3000, "--boundary", "jdp", "--runs", 1)
    assert done.exit_code == 0, done.output
    assert "--env module:YourEnvironment" in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--states", "3"], "Give --env NAME"),
        (["--table", "--states", "3", "--actions", "2", "--horizon", "4"], "--table needs --users"),
        (["--env", "RiverSwim", "--states", "3"], "an environment says its own"),
        (["--env", "RiverSwim", "--stationary"], "--stationary is for --table"),
        (["--states", "3", "--actions", "2", "--horizon", "4", "--bins", "8"], "--bins is for an environment"),
        (["--states", "3", "--actions", "1", "--horizon", "4"], "there is nothing to learn"),
    ],
)
def test_a_question_that_makes_no_sense_gets_a_sentence(arguments, said):
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.output.split())

"""How many users it takes: the answer is the fewest on the ladder, and time that runs out is said."""

import json

import pytest
from typer.testing import CliRunner

from private_rl_gym.lab.cli.app import app
from private_rl_gym.lab.planner import adviser as advising
from private_rl_gym.lab.planner.adviser import LADDER, Adviser
from private_rl_gym.lab.planner.problems import problem_of, problem_of_size
from private_rl_gym.lab.registry import GridError


def run(*arguments):
    return CliRunner().invoke(app, ["plan", *map(str, arguments)])


def river():
    return problem_of("RiverSwim", {})


def test_so_many_are_enough_and_the_next_fewer_are_not():
    adviser = Adviser(river(), runs=2)
    found = adviser.fewest("jdp", 1.0, 0.25)
    assert found.enough
    assert not found.notes
    assert found.advice.share <= 0.25
    assert found.users > LADDER[0]
    fewer = LADDER[LADDER.index(found.users) - 1]
    assert Adviser(river(), fewer, runs=2).at("jdp", 1.0).advice.share > 0.25


def test_a_smaller_epsilon_takes_more_users_and_no_privacy_the_fewest():
    users = [Adviser(river(), runs=1).fewest(trust, epsilon, 0.25).users for trust, epsilon in ORDER]
    assert users == sorted(users)
    assert users[0] < users[-1]


ORDER = [("open", float("inf")), ("jdp", 4.0), ("jdp", 1.0), ("ldp", 1.0)]


def test_numbers_that_are_drowned_by_noise_are_not_simulated(monkeypatch):
    asked = []
    real = advising.learn
    monkeypatch.setattr(
        advising,
        "learn",
        lambda problem, question, *rest: asked.append(question.users) or real(problem, question, *rest),
    )
    assert Adviser(river(), runs=1).fewest("ldp", 1.0, 0.25).users > 10_000
    assert min(asked) > 5_000


def test_time_that_runs_out_is_said():
    found = Adviser(river(), seconds=1e-9).fewest("jdp", 1.0, 0.25)
    assert (found.enough, found.advice) == (False, None)
    [note] = found.notes
    assert "time ran out" in note
    assert "larger --seconds" in note


def test_what_is_too_large_to_simulate_has_the_users_for_noise():
    found = Adviser(problem_of_size(300, 60, 100)).fewest("jdp", 1.0, 0.25)
    assert not found.enough
    [note] = found.notes
    assert "too large to simulate" in note
    assert "--seconds" not in note


def test_without_an_environment_a_stand_in_of_the_size_answers():
    problem = problem_of_size(5, 3, 4)
    assert problem.sizes == (4, 5, 3)
    assert not problem.true
    assert problem_of_size(1, 2, 3).sizes == (3, 1, 2)
    for sizes in ((0, 2, 3), (5000, 5, 5)):
        with pytest.raises(GridError, match="each must be at least 1"):
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
        (["--env", "RiverSwim", "--states", "3"], "the environment has its own"),
        (["--states", "3", "--actions", "2", "--horizon", "4", "--bins", "8"], "--bins is for an environment"),
        (["--states", "3", "--actions", "1", "--horizon", "4"], "there is nothing to learn"),
    ],
)
def test_a_question_that_makes_no_sense_gets_a_sentence(arguments, said):
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.output.split())

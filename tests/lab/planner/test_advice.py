"""Advice before a deployment: which boundary, agent and epsilon, at what cost, and where there is no hope."""

import json
import math
import shlex

import gymnasium as gym
import pytest
from typer.testing import CliRunner

from private_rl_gym.envs import Garnet, RiverSwim, TabularModel
from private_rl_gym.lab.cli.app import app
from private_rl_gym.lab.planner import adviser as advising
from private_rl_gym.lab.planner.advice import Recommendation
from private_rl_gym.lab.planner.adviser import EPSILONS, Adviser
from private_rl_gym.lab.planner.candidates import TRUST
from private_rl_gym.lab.planner.problems import Problem, problem_of
from private_rl_gym.lab.planner.simulate import Outcome, QuickShuffler
from private_rl_gym.lab.registry import BOUNDARIES, GridError
from private_rl_gym.wrappers import SDPShuffler


def run(*arguments):
    return CliRunner().invoke(app, ["plan", *map(str, arguments)])


def river(horizon=8):
    return problem_of("RiverSwim", {}, horizon=horizon)


SMALL = ["--env", "RiverSwim", "--horizon", "8", "--users", "3000", "--runs", "1"]


@pytest.fixture(scope="module")
def planned():
    done = run(*SMALL, "--epsilon", "8", "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.slow
def test_every_trust_model_has_a_row_beside_learning_without_privacy(planned):
    rows = planned["rows"]
    assert list(rows) == ["none", *TRUST]
    assert set(TRUST) == {"jdp", "sdp", "ldp"}
    assert rows["none"]["epsilon"] is None
    assert {name: rows[name]["epsilon"] for name in TRUST} == dict.fromkeys(TRUST, 8.0)
    assert rows["none"]["share"] < rows["jdp"]["share"] < 1.0
    assert rows["none"]["noise"] == 0.0 < rows["jdp"]["noise"] < rows["ldp"]["noise"]
    assert not planned["stand_in"]


@pytest.mark.slow
def test_shares_are_of_what_never_learning_loses(planned):
    never = planned["regret_of_never_learning"]
    truth = RiverSwim(horizon=8).model
    blind = truth.policy([[[0.5, 0.5]] * truth.n_states] * truth.horizon)
    assert never == pytest.approx(3000 * (truth.optimal_value() - truth.value_of(blind)))
    for row in planned["rows"].values():
        assert row["regret"] == pytest.approx(row["share"] * never)
        assert sum(row["batches"]) <= 3000


@pytest.mark.slow
def test_a_person_sees_a_table_and_commands_that_run():
    done = run(*SMALL, "--epsilon", "16", "--boundary", "jdp", "--stationary")
    assert done.exit_code == 0, done.output
    for part in ("simulated on itself", "verdict", "FrugalUCBVI", "JDP", "batches of"):
        assert part in done.stdout
    command = next(line for line in done.stdout.splitlines() if "private-rl-gym train" in line)
    program, *words = shlex.split(command)
    assert program == "private-rl-gym"
    trained = CliRunner().invoke(app, [*words, "--json"])
    assert trained.exit_code == 0, trained.output
    about = json.loads(trained.stdout)
    assert about["config"]["environment"] == {"name": "PrivateRL/RiverSwim-v0", "horizon": 8}
    assert about["config"]["agent"]["name"] in done.stdout
    assert about["guarantee"].startswith("(16.0, 1e-06)-JDP, replace one user, 3000 users")


@pytest.mark.slow
def test_a_billboard_needs_a_smaller_epsilon_than_users_who_trust_nobody():
    adviser = Adviser(river(20), 20_000, runs=1)
    central, local = (adviser.smallest(trust, 0.4).advice for trust in ("jdp", "ldp"))
    assert central.epsilon in EPSILONS
    assert central.epsilon < local.epsilon
    assert not central.short
    assert central.share <= 0.4
    assert central.verdict != "hopeless"


@pytest.mark.slow
def test_a_wish_that_no_epsilon_grants_is_hopeless():
    done = run(*SMALL, "--boundary", "jdp", "--regret", "0.0001")
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    assert "is hopeless for 3,000 users: without privacy it is 0." in said
    assert "JDP: a share of 0.0001 is not reached even at epsilon = 16" in said
    assert "private-rl-gym train" not in said


def test_few_users_who_trust_nobody_are_hopeless():
    advice = Adviser(river(20), 500, runs=1).at("ldp", 0.25).advice
    assert advice.verdict == "hopeless"
    assert advice.last > 0.5


def test_verdicts_follow_what_is_lost():
    from dataclasses import replace

    advice = Adviser(river(4), 200, runs=1).reference().advice
    for share, last, verdict in (
        (0.2, 0.0, "learns"),
        (0.5, 0.05, "learns late"),
        (0.5, 0.4, "in part"),
        (0.5, 0.8, "hopeless"),
        (0.95, 0.0, "hopeless"),
    ):
        assert replace(advice, share=share, last=last).verdict == verdict
    assert replace(advice, share=0.1, last=0.0, short=True).verdict == "hopeless"
    assert replace(advice, share=0.95, last=0.0, alone=True).verdict == "not known"  # another agent may learn
    assert replace(advice, share=0.2, last=0.0, alone=True).verdict == "learns"


@pytest.mark.slow
def test_learning_without_privacy_is_no_worse_than_under_it():
    """On a long problem too, where the usual baseline does not learn."""
    adviser = Adviser(problem_of("FrozenLake-v1", {}, horizon=100), 20_000, runs=1, stationary=True)
    best = adviser.reference().advice
    assert best.share < adviser.at("jdp", 1.0).advice.share
    assert best.verdict == "learns"


def test_a_candidate_that_there_was_no_time_for_is_named(monkeypatch):
    adviser = Adviser(problem_of("Garnet", {"n_states": 60, "n_actions": 3}, horizon=10), 400, runs=1, stationary=True)
    real = advising.learn
    monkeypatch.setattr(
        advising,
        "learn",
        lambda problem, question, one, *rest: None if "Frugal" in one.agent else real(problem, question, one, *rest),
    )
    answer = adviser.at("jdp", 0.25)
    assert answer.advice.candidate.agent == "DPUCBVI"
    assert answer.advice.alone
    assert answer.verdict == "not known"
    said = "JDP: time ran out before FrugalUCBVI, time-homogeneous could be simulated. Try --seconds inf."
    assert answer.notes == (said,)


def test_candidates_are_compared_by_all_runs_and_not_by_their_first(monkeypatch):
    """The first is the better one by luck, in one run of three; the third is too far behind to be run again."""
    shares = {"FrugalUCBVI": {0: 0.4, 1: 0.9, 2: 0.8}, "untold": {0: 0.5, 1: 0.5, 2: 0.5}, "DPUCBVI": {0: 0.7}}
    asked = []

    def learn(problem, question, candidate, run, clock):
        name = "untold" if candidate.about == "steps may differ" else candidate.agent
        asked.append((name, run))
        if asked.count((name, run)) > 1 or (until and len(asked) > until):
            return None
        return Outcome(shares[name][run], 0.0, (1,), 0.0, 1.0, 0)

    monkeypatch.setattr(advising, "learn", learn)
    until = 0
    advice = Adviser(river(), 100, runs=3, stationary=True).at("jdp", 1.0).advice
    assert (advice.candidate.about, advice.runs, advice.share) == ("steps may differ", 3, pytest.approx(0.5))
    assert ("DPUCBVI", 1) not in asked
    asked.clear()
    until = 4  # time runs out after one more run of the first: the others are compared by what they have, too
    advice = Adviser(river(), 100, runs=3, stationary=True).at("jdp", 1.0).advice
    assert (advice.candidate.about, advice.runs) == ("time-homogeneous", 2)


@pytest.mark.slow
def test_the_same_question_has_the_same_answer():
    first, again = (Adviser(river(), 500, runs=2).at("jdp", 4.0).advice for _ in range(2))
    assert first == again
    assert first.runs == 2
    assert first.worst >= first.share


@pytest.mark.slow
def test_agents_pool_stages_only_where_that_is_asked_for():
    told, untold = (
        Adviser(river(), 500, runs=1, stationary=stationary).at("jdp", 8.0).advice for stationary in (True, False)
    )
    assert untold.candidate.about != "time-homogeneous"
    assert not untold.candidate.agent_options
    assert "stationary" not in untold.candidate.boundary_options
    assert untold.share >= told.share
    staged = Problem(Garnet(4, 2, 3, stationary=False).unwrapped.model, "")
    assert Adviser(staged, 300, runs=1).at("jdp", 8.0).advice.candidate.about != "time-homogeneous"
    with pytest.raises(GridError, match="differs from stage to stage"):
        Adviser(staged, 300, runs=1, stationary=True)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 2.0, 8.0])
def test_the_quick_noise_of_a_shuffler_is_that_of_the_real_one(epsilon):
    real, quick = (
        kind(RiverSwim(horizon=4), epsilon=epsilon, delta=1e-6, users=4000, schedule=2000, rng=0, statistic="reports")
        for kind in (SDPShuffler, QuickShuffler)
    )
    for board in (real, quick):
        board.serve([1] * 6, 4000)
    assert quick.release.noise_std["reports"] == pytest.approx(real.release.noise_std["reports"], rel=0.02)


def test_a_table_of_transitions_is_the_truth_and_an_unknown_model_gets_a_stand_in():
    lake = problem_of("FrozenLake-v1", {}, horizon=8)
    assert lake.true
    assert lake.model.optimal_value() == pytest.approx(
        TabularModel.from_gym(gym.make("FrozenLake-v1"), 8).optimal_value()
    )
    pole = problem_of("CartPole-v1", {}, horizon=6, bins=2, low=[-2, -2, -0.2, -2], high=[2, 2, 0.2, 2])
    assert not pole.true
    assert pole.sizes == (6, 17, 2)
    assert "a stand-in of its size takes its place, a random Garnet of 17 states" in pole.origin
    cards = [
        "--env",
        "Blackjack-v1",
        "--horizon",
        "6",
        "--reward-range",
        "-1.5",
        "1.5",
        "--users",
        "1000",
        "--boundary",
        "jdp",
    ]
    said = " ".join(run(*cards).stdout.split())
    assert "Hopeless under every trust model" in said
    assert "JDP: too large to simulate" in said


class Stairs(gym.Env):
    """Ten steps up, each of which costs."""

    observation_space, action_space = gym.spaces.Discrete(10), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.place = 0
        return 0, {}

    def step(self, action):
        self.place = max(0, self.place + (1 if action else -1))
        return self.place, -1.0 if action else -2.0, self.place == 9, False, {}


def test_regret_is_in_the_users_own_units_and_an_added_state_is_explained():
    stairs = ["--env", f"{__name__}:Stairs", "--horizon", "6", "--users", "200", "--boundary", "jdp", "--runs", "1"]
    refused = run(*stairs)
    assert refused.exit_code == 2
    assert "it pays -" in refused.output
    assert "--reward-range LEAST LARGEST" in refused.output
    done = run(*stairs, "--reward-range", "-2", "0")
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    assert "S = 11, one of them for episodes that ended early, A = 2" in said
    assert "Rewards are taken to lie in -2..0 (--reward-range)" in said
    assert "in rewards from -2 to 0" in said
    plain, own = (
        problem_of(f"{__name__}:Stairs", {}, horizon=6, reward_range=between) for between in ((-2.0, 0.0), (-4.0, 0.0))
    )
    assert 2.0 * Adviser(plain, 100).lost == pytest.approx(Adviser(own, 100).lost) == 100 * 4.0 * own.never


def test_hopeless_bins_are_told_of_policy_gradients():
    pole = ["--env", "CartPole-v1", "--horizon", "10", "--bins", "2", "--low=-1,-1,-1,-1", "--high", "1,1,1,1"]
    done = run(*pole, "--users", "300", "--epsilon", "0.1", "--boundary", "jdp", "--runs", "1")
    said = " ".join(done.stdout.split())
    assert "Hopeless under every trust model" in said
    assert "private_rl_gym.make_private learns there by policy gradients: docs/agents/dp-policy-gradient.md" in said


def test_time_that_runs_out_is_said():
    adviser = Adviser(river(), 5000, seconds=1e-9)
    assert adviser.reference() == Recommendation(5000)
    for answer in (adviser.at("jdp", 1.0), adviser.smallest("ldp", 0.5)):
        assert (answer.advice, answer.verdict) == (None, "not known")
        [note] = answer.notes
        assert "time ran out" in note
        assert note.endswith("Try --seconds 300.")


def test_noise_alone_says_hopeless_only_where_there_is_no_doubt():
    verdicts = {}
    for users in (1000, 5000, 200_000):
        answer = Adviser(river(), users, seconds=1e-9).at("ldp", 0.25)
        assert answer.advice is None
        verdicts[users] = answer.verdict, "more than there are" in answer.notes[0]
    assert verdicts == {1000: ("hopeless", True), 5000: ("not known", True), 200_000: ("not known", True)}


def test_a_busy_machine_takes_longer_and_finds_the_same(monkeypatch):
    """Time of the processor counts, unless many threads take more of it than the clock shows."""
    clock = iter(range(0, 10**9, 3600))
    monkeypatch.setattr("private_rl_gym.lab.planner.simulate.time.monotonic", lambda: float(next(clock)))
    answer = Adviser(river(4), 300, runs=1, seconds=600).at("jdp", 8.0)
    assert answer.advice is not None
    assert not answer.notes
    threads = iter(range(0, 10**9, 3600))
    monkeypatch.undo()
    monkeypatch.setattr("private_rl_gym.lab.planner.simulate.time.process_time", lambda: float(next(threads)))
    assert Adviser(river(4), 300, runs=1, seconds=600).at("jdp", 8.0).advice is not None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--env", "RiverSwin"], "Did you mean 'PrivateRL/RiverSwim-v0'?"),
        (["--env", "nowhere_at_all:Two"], "there is no module 'nowhere_at_all'"),
        (["--env", "CartPole-v1"], "with --bins 8, and in a grid"),
        (["--env", "CliffWalking-v1", "--horizon", "9"], "it pays -1, outside the range of rewards 0..1"),
        (["--env", "private_rl_gym.envs:RiverSwin"], "Its environments: "),
        (["--env", "private_rl_gym.envs:RiverSwin"], "RiverSwim"),
        (["--env", "CartPole-v1", "--bins", "20", "--low=-1,-1,-1,-1", "--high", "1,1,1,1"], "too many to simulate"),
        (["--env", "Blackjack-v1"], "Here: --horizon STEPS"),
        (["--env", "HardBandit", "--horizon", "4"], "has no option 'horizon'"),
        (["--env", "RiverSwim", "--set", "horizon=4"], "write it as environment.NAME=VALUE"),
        (["--env", "RiverSwim", "--regret", "1.5"], "--regret is 1.5"),
        (["--env", "RiverSwim", "--regret", "0.5", "--epsilon", "1"], "give two of them"),
        (["--env", "RiverSwim", "--boundary", "open"], "has no guarantee"),
        (["--env", "RiverSwim", "--boundary", "jdb"], "Did you mean 'jdp'?"),
        (["--env", "RiverSwim", "--epsilon", "-1"], "epsilon is -1"),
        (["--env", "RiverSwim", "--delta", "2"], "delta is 2"),
        (["--env", "RiverSwim", "--users", "0"], "at least 1"),
        (["--env", "Garnet", "--set", "environment.n_actions=1"], "there is nothing to learn"),
    ],
)
def test_a_question_that_makes_no_sense_gets_a_sentence(arguments, said):
    done = run("--users", "100", *arguments)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_pure_promises_are_planned_without_a_shuffler():
    with pytest.raises(GridError, match="sdp: "):
        Adviser(river(), 100, delta=0.0).at("sdp", 1.0)
    done = run("--env", "RiverSwim", "--horizon", "4", "--users", "100", "--runs", "1", "--delta", "0", "--json")
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["rows"]
    assert set(rows) == {"none", "jdp", "ldp"}
    assert rows["jdp"]["delta"] == 0.0


@pytest.mark.slow
def test_promises_are_those_of_the_boundaries():
    adviser = Adviser(river(4), 200, runs=1, delta=1e-5)
    assert adviser.at("jdp", 2.0).advice.delta == 1e-5
    assert adviser.at("ldp", 2.0).advice.delta == BOUNDARIES["ldp"].kind.usual_delta == 0.0
    assert math.isinf(adviser.reference().advice.epsilon)

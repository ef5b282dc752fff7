"""The command line says what things cost."""

import json
import math

import gymnasium
import pytest
from typer.testing import CliRunner

from private_rl_gym.lab.cli.app import app
from private_rl_gym.lab.planner.budget import Deployment, budget
from private_rl_gym.planning import LinearFeatures
from private_rl_gym.privacy import TrustModel, gaussian_mu
from private_rl_gym.privacy.mechanisms import MECHANISMS
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, SDPShuffler
from tests.wrappers.stacks import A, H, S, river

PLAN = ["budget", "--horizon", "20", "--states", "6", "--actions", "2", "--epsilon", "1"]


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def rows(*arguments):
    done = run(*PLAN, *arguments, "--json")
    assert done.exit_code == 0, done.output
    return {(row["model"], row["mechanism"]): row for row in json.loads(done.output)["rows"]}


@pytest.mark.slow
def test_the_table_for_a_person(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    done = run(*PLAN, "--users", "50000", "--delta", "1e-6")
    assert done.exit_code == 0
    for part in (
        "matrix-factorization, gaussian",
        "one-step",
        "PUCB's and DP-UCBVI's constants",
        "(2.0, 0) !",
        "4,167",
    ):
        assert part in done.output


@pytest.mark.slow
def test_numbers_for_machines():
    found = rows("--users", "50000", "--delta", "1e-6")
    best = found["JDP", "matrix-factorization, gaussian"]
    assert best["transitions_std"] == pytest.approx(4.53 * math.sqrt(43.75) / gaussian_mu(1, 1e-6), rel=0.01)
    assert best["visits_std"] == pytest.approx(best["transitions_std"] * math.sqrt(6), rel=1e-6)
    assert found["none", "exact sums"]["epsilon"] is None
    for key in (("JDP", "PUCB's and DP-UCBVI's constants"), ("LDP", "DP-UCBVI's constants, laplace")):
        assert found[key]["epsilon"] == pytest.approx(2.0)
    assert all(row["epsilon"] == 1.0 for key, row in found.items() if "constants" not in key[1] and key[0] != "none")


def test_pure_budgets_leave_pure_mechanisms():
    assert not any("gaussian" in mechanism for _, mechanism in rows("--users", "1000", "--delta", "0"))
    assert all(row["delta"] == 0 for key, row in rows("--users", "1000", "--delta", "0").items() if key[0] != "none")
    assert any("gaussian" in mechanism for _, mechanism in rows("--users", "1000"))  # delta = 1e-6


@pytest.mark.slow
def test_the_table_is_what_boundaries_do():
    plan = ["budget", "--users", "40", "--horizon", str(H), "--states", str(S), "--actions", str(A), "--epsilon", "1"]
    done = run(*plan, "--delta", "1e-6", "--json")
    found = {(row["model"], row["mechanism"]): row for row in json.loads(done.output)["rows"]}
    assert json.loads(done.output)["plan"]["releases"] == 40
    for counting, law in [(name, law) for name, kind in MECHANISMS.items() for law in kind.laws]:
        delta = 1e-6 if law == "gaussian" else 0.0
        board = JDPBillboard(river(), 1.0, delta, users=40, counting=counting, noise=law)
        board.serve([1] * S, 40)
        row = found["JDP", f"{counting}, {law}"]
        assert (row["visits_std"], row["transitions_std"], row["rewards_std"]) == tuple(
            board.release.noise_std.values()
        )
        assert row["bound"] >= board.release.error_bound(0.05)
    for name in ("one-step", "unary", "laplace", "gaussian"):
        board = LDPUserSide(river(), 1.0, 1e-6, users=40, randomizer=name)
        board.serve([1] * S, 40)
        row = found["LDP", name]
        assert (row["visits_std"], row["transitions_std"], row["rewards_std"]) == tuple(
            board.release.noise_std.values()
        )
        assert row["bound"] == pytest.approx(board.release.error_bound(0.05))


@pytest.mark.slow
def test_every_trust_model_has_a_row():
    missing = {str(model) for model in TrustModel} - {model for model, _ in rows("--users", "1000", "--delta", "1e-6")}
    assert not missing, f"{', '.join(missing)}: yield a row of it in lab/planner/budget.py"


def test_fewer_releases_mean_less_noise():
    every, batches = rows("--users", "50000"), rows("--users", "50000", "--batch-size", "200")
    key = ("JDP", "k-ary-tree, laplace")
    assert batches[key]["transitions_std"] < 0.6 * every[key]["transitions_std"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--users", "0"], "users is 0"),
        (["--users", "10", "--delta", "1"], "delta is 1.0"),
        (["--users", "10", "--epsilon", "0"], "epsilon is 0.0"),
        (["--users", "10", "--beta", "0"], "beta is 0.0"),
        (["--users", "10", "--batch-size", "0"], "batch_size is 0"),
    ],
)
def test_bad_input_gets_a_sentence_and_exit_code_two(arguments, word):
    done = run(*PLAN, *arguments)
    assert done.exit_code == 2
    assert word in done.output
    assert "Traceback" not in done.output


@pytest.mark.slow
def test_what_is_spent_is_never_rounded_down():
    done = run(
        "budget",
        "--horizon",
        "2",
        "--states",
        "2",
        "--actions",
        "2",
        "--users",
        "9",
        "--epsilon",
        "1.00049",
        "--delta",
        "1.4e-6",
    )
    assert "(1.00049, 1.4e-06)" in done.output
    assert "(1.0, " not in done.output


@pytest.mark.parametrize("columns", ["80", "120"])
def test_names_stay_whole_on_an_ordinary_terminal(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    done = run(*PLAN, "--users", "50000", "--delta", "1e-6")
    assert "matrix-factorization" in done.output
    assert "15,305" in done.output


def test_a_large_plan_takes_no_time():
    found = rows("--users", str(10**11), "--delta", "1e-6")
    assert found["JDP", "matrix-factorization, gaussian"]["transitions_std"] < 1000
    assert run(*PLAN, "--users", str(10**24)).exit_code == 2


def test_the_version():
    import private_rl_gym

    assert private_rl_gym.__version__ in run("--version").output


def test_help_teaches():
    done = run("budget", "--help")
    assert done.exit_code == 0
    assert "deployment" in done.output
    assert "--batch-size" in done.output.replace("\n", "")


@pytest.mark.parametrize(("sizes", "won"), [((2, 1, 5), 1.6), ((4, 2, 10), 5.2), ((6, 2, 20), 8.0)])
def test_linear_moments_win_back_what_is_zero_in_their_rows(sizes, won):
    S, A, H = sizes
    plan = Deployment(999, H, S, A, 1.0, features=LinearFeatures.tabular(S, A))
    found = {row.mechanism: row.won for row in budget(plan)}
    assert found["k-ary-tree, laplace"] == pytest.approx(won, abs=0.06)
    assert found["laplace"] == pytest.approx(won, abs=0.06)


@pytest.mark.parametrize(("counting", "delta"), [("matrix-factorization", 1e-6), ("k-ary-tree", 0.0)])
def test_rows_of_linear_moments_are_what_boundaries_do(counting, delta):
    env = gymnasium.make("PrivateRL/RiverSwimMixture-v0", horizon=4)
    features = env.unwrapped.mixture.features
    plan = Deployment(60, 4, features.n_states, features.n_actions, 1.0, delta, 20, features=features)
    row = next(row for row in budget(plan) if row.mechanism.startswith(counting))
    board = JDPBillboard(env, 1.0, delta, users=60, statistic="linear", schedule=20, counting=counting)
    board.serve([1] * features.n_states, 60)
    noise = board.release.noise_std
    assert (row.visits_std, row.transitions_std) == pytest.approx((noise["gram_p"], noise["vector_p"]))
    assert row.rewards_std == pytest.approx(noise["vector_r"])


def test_the_row_of_shuffled_moments_is_what_the_shuffler_does():
    env = gymnasium.make("PrivateRL/RiverSwimMixture-v0", horizon=4)
    features = env.unwrapped.mixture.features
    plan = Deployment(60, 4, features.n_states, features.n_actions, 1.0, 1e-6, 20, features=features)
    row = next(row for row in budget(plan) if row.model == "SDP")
    board = SDPShuffler(env, 1.0, 1e-6, users=60, statistic="linear", schedule=60)
    board.serve([1] * features.n_states, 60)
    noise = board.release.noise_std
    assert (row.visits_std, row.transitions_std) == pytest.approx((noise["gram_p"], noise["vector_p"]))
    assert row.rewards_std == pytest.approx(noise["vector_r"])


def test_a_table_of_linear_moments_says_what_its_columns_are():
    done = run(*PLAN, "--users", "50000", "--delta", "1e-6", "--linear")
    assert done.exit_code == 0
    assert all(part in done.output for part in ("gram", "phi V", "LinOpt's constants"))
    assert "shuffled bits" in done.output
    assert "shuffled reports" not in done.output
    assert run(*PLAN, "--users", "9", "--states", "60", "--linear").exit_code == 2

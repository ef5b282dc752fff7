"""From a table of patients to a policy: better than the doctors behind the table, with the ledger beside it."""

import csv
import json
import re
import shutil
from pathlib import Path

import gymnasium as gym
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from private_rl_gym.agents import DPUCBVI, PSRL, UCBVI
from private_rl_gym.envs import Cohort, LoggedUsers
from private_rl_gym.lab.cli.app import app
from private_rl_gym.lab.registry import BOUNDARIES
from private_rl_gym.lab.tables.files import read_table_file
from private_rl_gym.lab.tables.labels import Labels
from private_rl_gym.lab.tables.offline import learn_from_table
from private_rl_gym.lab.tables.returns import Interval, ReturnEstimates, doubts
from private_rl_gym.planning.rewards import RewardRange
from private_rl_gym.privacy.accounting.conversion import gaussian_epsilon
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard

HORIZON, USERS = 12, 20_000
TRUTH = Cohort(HORIZON).model
DOCTORS = TRUTH.value_of(Cohort.habits(HORIZON))
ROW = re.compile(r"^\| (none|[\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| (\d+) of 10 \|$", re.MULTILINE)
PAGE = Path(__file__).parents[3] / "docs" / "howto" / "patients.md"


def learned(epsilon, seed, *, stationary=True, users=USERS):
    env = LoggedUsers(7, 4, HORIZON)
    if epsilon is None:
        board = OpenBillboard(env, users=users, schedule=users)
    else:
        board = JDPBillboard(env, epsilon, 1e-6, users=users, schedule=users, rng=seed)
    board.ingest(Cohort.table(users, horizon=HORIZON, instance_seed=seed))
    return DPUCBVI("TabularPolicy", board, seed=0).learn_offline(stationary=stationary)


# The cohort ----------------------------------------------------------------------------------------------------------


def test_the_table_is_made_by_the_model():
    """Returns of the patients have the doctors' value: seeded, six deviations of a mean of 20,000 are 0.15."""
    table = Cohort.table(USERS)
    assert abs(table["reward"].sum() / USERS - DOCTORS) < 0.15
    assert len(set(table["user"])) == USERS
    assert (table["state"] < 7).all()
    left = np.isnan(table["next_state"])
    assert 0 < left.sum() < USERS  # nobody leaves twice
    assert all((Cohort.table(50)[name] == Cohort.table(50)[name]).all() for name in ("user", "state", "reward"))
    assert (
        Cohort.table(50)["reward"] != Cohort.table(50, instance_seed=1)["reward"][: len(Cohort.table(50)["reward"])]
    ).any()


def test_the_table_fits_the_model():
    """Without privacy, its release is that of the same patients in the environment."""
    board = OpenBillboard(LoggedUsers(7, 4, HORIZON))
    board.ingest(Cohort.table(2_000))
    assert board.sizes == (HORIZON, 8, 4)
    assert board.release.n.sum() == 2_000 * HORIZON
    seen, expected = board.release.n.sum(axis=2) / 2_000, TRUTH.occupancy_of(Cohort.habits()).sum(axis=2)
    assert np.abs(seen - expected).max() < 6 * 0.5 / np.sqrt(2_000)  # six deviations of a share, at most


def test_states_and_treatments_have_names():
    env = gym.make("PrivateRL/Cohort-v0")
    assert env.observation_space.n == len(Cohort.states)
    assert env.action_space.n == len(Cohort.treatments)
    assert TRUTH.optimal_value() - 1.0 > DOCTORS


# Learning from it ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_at_epsilon_1_the_policy_is_better_than_the_doctors_in_nine_of_ten_seeds():
    """Pooled over stages, and by stage."""
    for stationary in (True, False):
        values = [TRUTH.value_of(learned(1.0, seed, stationary=stationary).policy) for seed in range(10)]
        assert sum(value > DOCTORS for value in values) >= 9


@pytest.mark.slow
def test_the_page_shows_what_privacy_costs():
    rows = ROW.findall(PAGE.read_text())
    assert [row[0] for row in rows] == ["0.5", "1", "2", "4", "8", "none"]
    for name, mean, least, by_stage, better in rows:
        epsilon = None if name == "none" else float(name)
        values = [TRUTH.value_of(learned(epsilon, seed).policy) for seed in range(10)]
        apart = [TRUTH.value_of(learned(epsilon, seed, stationary=False).policy) for seed in range(10)]
        found = (
            f"{np.mean(values):.2f}",
            f"{min(values):.2f}",
            f"{np.mean(apart):.2f}",
            sum(v > DOCTORS for v in values),
        )
        assert found == (mean, least, by_stage, int(better)), name


def test_pessimism_stays_with_what_is_known():
    """An action that one patient in a thousand got, and that did her good, is not for everyone."""
    states = np.zeros((1_000, 2), dtype=int)
    actions, rewards = np.zeros((1_000, 1), dtype=int), np.full((1_000, 1), 0.6)
    actions[0], rewards[0] = 1, 1.0
    board = OpenBillboard(LoggedUsers(1, 2, 1), schedule=1_000)
    board.ingest({**table_of(states, actions, rewards)})
    agent = DPUCBVI("TabularPolicy", board)
    assert agent.learn_offline().policy.action(0, 0) == 0
    actions[:500], rewards[:500] = 1, 1.0
    often = OpenBillboard(LoggedUsers(1, 2, 1), schedule=1_000)
    often.ingest({**table_of(states, actions, rewards)})
    assert DPUCBVI("TabularPolicy", often).learn_offline().policy.action(0, 0) == 1


def table_of(states, actions, rewards):
    users = len(states)
    columns = {"state": states[:, 0], "action": actions[:, 0], "reward": rewards[:, 0], "next_state": states[:, 1]}
    return {"user": np.arange(users), "stage": np.zeros(users, dtype=int), **columns}


def test_values_are_below_the_true_ones():
    """Exact counts of many patients: the pessimistic value of a policy is below its value."""
    agent = learned(None, 0, users=50_000)
    promised = float(TRUTH.initial @ agent.q[0].max(axis=1))
    assert 0.8 * TRUTH.optimal_value() < promised < TRUTH.value_of(agent.policy)


def test_the_policy_stays_and_is_saved(tmp_path):
    agent = learned(2.0, 0, users=2_000)
    policy = agent.policy
    assert agent.policy is policy
    assert str(agent.guarantee) == "(2.0, 1e-06)-JDP, replace one user, 2000 users; seeded noise: for experiments"
    agent.save(tmp_path / "policy")
    again = DPUCBVI.load(tmp_path / "policy")
    np.testing.assert_array_equal(again.policy.table, policy.table)
    action, _ = again.predict(3, deterministic=True)
    assert action == policy.probabilities[0, 3].argmax()


def test_local_reports_are_planned_from_too():
    board = LDPUserSide(LoggedUsers(7, 4, 4), 4.0, users=USERS, schedule=USERS, rng=0)
    board.ingest(Cohort.table(USERS, horizon=4))
    agent = DPUCBVI("TabularPolicy", board).learn_offline(stationary=True)
    assert agent.policy.table.shape == (4, 8)


def test_whoever_cannot_says_so():
    board = OpenBillboard(LoggedUsers(7, 4, HORIZON), users=100)
    with pytest.raises(ValueError, match="There is no release yet"):
        DPUCBVI("TabularPolicy", board).learn_offline()
    board.ingest(Cohort.table(100))
    for kind in (UCBVI, PSRL):
        with pytest.raises(ValueError, match=f"{kind.__name__} plans for exploration.*Use DPUCBVI"):
            kind("TabularPolicy", board).learn_offline()
    with pytest.raises(ValueError, match="To learn offline, give constants='practical'"):
        DPUCBVI("TabularPolicy", board, constants="theory").learn_offline()
    with pytest.raises(gym.error.Error, match="Add the episodes with"):
        DPUCBVI("TabularPolicy", OpenBillboard(LoggedUsers(7, 4, HORIZON), users=100)).learn(HORIZON)


# The command ---------------------------------------------------------------------------------------------------------

SIZES = ["--states", "7", "--actions", "4", "--horizon", "12"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pa.table(Cohort.table(3_000))
    pyarrow.parquet.write_table(table, "cohort.parquet")
    pyarrow.csv.write_csv(table, "cohort.csv")
    return tmp_path


def run(*arguments):
    if "--out" not in arguments:
        shutil.rmtree("learned", ignore_errors=True)  # a ledger is never overwritten
    return CliRunner().invoke(app, ["learn", *arguments])


@pytest.mark.parametrize("file", ["cohort.parquet", "cohort.csv"])
def test_a_file_becomes_a_policy_a_ledger_and_a_report(files, file):
    done = run(file, *SIZES, "--epsilon", "2", "--stationary", "--truth", "cohort")
    assert done.exit_code == 0, done.output
    assert "(2.0, 1e-06)-JDP, replace one user, 3000 users" in done.output
    ledger = json.loads((files / "learned" / "ledger.json").read_text())
    assert "2.0" in json.dumps(ledger)
    agent = DPUCBVI.load(files / "learned" / "policy.zip")
    lines = (files / "learned" / "policy.csv").read_text().splitlines()
    assert len(lines) == 1 + 12 * 7
    known = [line.split(",") for line in lines[1:] if line.split(",")[2]]
    assert len(known) == agent.known[:, :7].sum() > 12
    assert all(agent.policy.probabilities[int(h), int(s), int(action)] == 1.0 for h, s, action, *_ in known)
    report = (files / "learned" / "report.md").read_text()
    assert "(2.0, 1e-06)-JDP, replace one user, 3000 users" in report
    true = float(re.search(r"of the policy, by the true model \| ([\d.]+)", report)[1])
    assert true == pytest.approx(TRUTH.value_of(agent.policy), abs=5e-4)
    for path in (files / "learned").iterdir():
        assert b"P0000" not in path.read_bytes()


def test_a_ledger_is_an_entry_of_a_register(files):
    """It says what was run and when, and the same for any table of that many users."""
    for name, epsilon in (("first", "1"), ("second", "2")):
        assert run("cohort.csv", *SIZES, "--epsilon", epsilon, "--stationary", "--out", name).exit_code == 0
    ledger = json.loads((files / "first" / "ledger.json").read_text())
    assert ledger["run"]["table"] == "cohort.csv"
    assert ledger["run"]["stages, states, actions"] == [12, 7, 4]
    assert ledger["run"]["stages pooled"] is True
    assert ledger["run"]["noise"] == "a generator that is not cryptographic, seeded by the operating system"
    assert "2.72 times as likely" in ledger["in words"]
    assert "covers all their rows: states, actions and rewards" in ledger["in words"]
    assert ledger["in words"] in (files / "first" / "report.md").read_text()

    other = pa.table(Cohort.table(3_000, instance_seed=1))
    pyarrow.csv.write_csv(other, "cohort.csv")
    assert run("cohort.csv", *SIZES, "--epsilon", "1", "--stationary", "--out", "other").exit_code == 0
    again = json.loads((files / "other" / "ledger.json").read_text())
    for entry in (ledger, again):
        entry["run"].pop("date")
    assert again == ledger

    done = run("cohort.csv", *SIZES, "--out", "first")
    assert done.exit_code == 2
    assert "holds the ledger of an earlier run" in " ".join(done.output.split())

    done = CliRunner().invoke(app, ["spent", "first", "second"])
    assert done.exit_code == 0, done.output
    together = done.output.splitlines()[-1]
    epsilon, delta = map(float, re.search(r"Together: \(([\d.]+), ([\de.-]+)\)", together).groups())
    assert delta == pytest.approx(2e-6)
    apart = [json.loads((files / name / "ledger.json").read_text())["outside"]["mu"] for name in ("first", "second")]
    assert epsilon == pytest.approx(gaussian_epsilon(2e-6, np.hypot(*apart)), rel=1e-6)
    assert 2.0 < epsilon < 3.0
    for folder in ("nowhere", "cohort.csv"):
        done = CliRunner().invoke(app, ["spent", "first", folder])
        assert done.exit_code == 2, done.output


def policy_of(folder):
    return list(csv.DictReader((folder / "policy.csv").read_text().splitlines()))


def test_where_nothing_is_known_no_action_is_written(files):
    """Twenty states are nobody's. Noise lifts one of four counts above twice itself in 9 % of them: above half of them
    with probability below 1e-6."""
    done = run("cohort.csv", "--states", "27", *SIZES[2:], "--epsilon", "8", "--stationary")
    assert done.exit_code == 0, done.output
    rows = policy_of(files / "learned")
    nobodys = [row for row in rows[:27] if int(row["state"]) >= 7]
    assert sum((row["action"], row["usual"], row["visits_low"]) == ("", "", "0") for row in nobodys) > 10
    report = (files / "learned" / "report.md").read_text()
    assert re.search(r"^\| \d+ \| as usual \| not known \| 0 to [\d,]+ \|$", report, re.MULTILINE)
    habits = Cohort.habits(HORIZON)
    taken = TRUTH.occupancy_of(habits).sum(axis=0)
    assert [int(row["usual"]) for row in rows[:3]] == taken[:3].argmax(axis=1).tolist()
    for row in rows[:3]:
        share = taken[int(row["state"])].sum()
        assert float(row["visits_low"]) / 3_000 - 0.1 < share < float(row["visits_high"]) / 3_000 + 0.1


# Mean returns -------------------------------------------------------------------------------------------------------


def told(users, *, epsilon=1.0, stationary=True, boundary="jdp", seed=0):
    options = {} if epsilon is None else {"epsilon": epsilon, "delta": 1e-6, "seed": seed}
    table = pa.table(Cohort.table(users, horizon=HORIZON, instance_seed=seed))
    found = BOUNDARIES.find(boundary, "boundary")
    return learn_from_table(table, (HORIZON, 7, 4), found, options, stationary=stationary, truth=TRUTH)


def test_without_noise_the_error_is_that_of_sampling():
    """The deviation of a mean of 3,000 returns; rewards of the cohort are bits, as the estimate takes them to be."""
    found = told(3_000, epsilon=None, boundary="open")
    table = Cohort.table(3_000, horizon=HORIZON)
    returns = np.bincount(np.unique(table["user"], return_inverse=True)[1], weights=table["reward"])
    logged = found.returns.logged
    assert logged.estimate == pytest.approx(returns.mean())
    half = 1.645 * returns.std() / np.sqrt(3_000)
    assert (logged.high - logged.low) / 2.0 == pytest.approx(half, rel=0.1)
    assert found.doubts == []


def test_too_few_users_are_said_first(files):
    pyarrow.csv.write_csv(pa.table(Cohort.table(49)), "few.csv")
    done = run("few.csv", *SIZES, "--reward-range", "-1", "1")
    assert done.exit_code == 0, done.output
    report = (files / "learned" / "report.md").read_text()
    for said in (" ".join(done.output.split()), " ".join(report.split())):
        assert "most of what was published is noise" in said
        assert "no action is known to be good. The policy goes on there as the users did." in said
    assert report.index("**Warning.**") < report.index("**Guarantee.**")
    for value in re.findall(r"mean return .* is (-?[\d.]+) \(90% interval (-?[\d.]+) to (-?[\d.]+)\)", done.output):
        assert all(-12.0 <= float(number) <= 12.0 for number in value)
    assert run("cohort.csv", *SIZES, "--states", "60").output.count("most of what was published is noise") == 1
    assert "Warning" not in run("cohort.csv", *SIZES, "--epsilon", "60", "--stationary").output


SURE = Interval(1.0, 0.9, 1.1)


@pytest.mark.parametrize(
    ("logged", "policy", "gain", "said"),
    [
        (Interval(4.0, 0.0, 7.5), SURE, SURE, "The interval of the mean of the users in the table is 0.000 to 7.500"),
        (SURE, Interval(4.0, 0.5, 8.0), SURE, "The interval of the policy's value is 0.500 to 8.000"),
        (SURE, SURE, Interval(-1.0, -1.5, -0.5), "is below the return of what the users did themselves"),
        (SURE, SURE, Interval(1.0, -0.5, 2.5), "cannot be told from what the users did"),
        (SURE, SURE, Interval(0.0, 0.0, 0.0), "cannot be told from what the users did"),
        (SURE, SURE, SURE, None),
    ],
)
def test_doubts_are_said(logged, policy, gain, said):
    found = told(3_000, epsilon=None, boundary="open")
    returns = ReturnEstimates(logged, policy, gain, 0.0, 0.0, 8.0)
    doubted = doubts(returns, found.evidence, found.found, RewardRange())
    assert any(said in doubt for doubt in doubted) if said else doubted == []


def leaving(reward_range, shift=0.0):
    """Half of 2,000 users are treated, and leave at once; the others stay, and each of four stages costs a half."""
    treated = np.arange(2_000) % 2 == 0
    length = np.where(treated, 1, 4)
    user = np.repeat(np.arange(2_000), length)
    stage = np.concatenate([np.arange(one) for one in length])
    last = stage == length[user] - 1
    columns = {"user": user, "stage": stage, "state": 0 * user, "action": (treated[user] & (stage == 0)).astype(int)}
    columns |= {"reward": np.full(len(user), shift - 0.5), "next_state": np.where(last, np.nan, 0.0)}
    options = {"epsilon": 8.0, "delta": 1e-6, "reward_range": reward_range, "seed": 0}
    return learn_from_table(pa.table(columns), (4, 1, 2), BOUNDARIES.find("jdp", "boundary"), options)


def test_leaving_looks_good_below_zero_and_that_is_said():
    below, above = leaving((-1.0, 1.0)), leaving((0.0, 2.0), shift=1.0)
    assert below.agent.policy.probabilities[0, 0].argmax() == 1
    assert any("a user who leaves before stage 4 earns 0 from then on" in doubt for doubt in below.doubts)
    assert above.agent.policy.probabilities[0, 0].argmax() == 0
    assert not any("earns 0 from then on" in doubt for doubt in above.doubts)


def test_the_noise_that_is_named_is_that_of_the_counts_that_are_used(files):
    for options, stages in (([], 1), (["--stationary"], 12)):
        assert run("cohort.csv", *SIZES, *options).exit_code == 0
        report = (files / "learned" / "report.md").read_text()
        visits, noise = (float(re.search(rf"{name}[^|]*\| ([\d.,]+)", report)[1].replace(",", "")) for name in (
            "were they spread evenly", "noise in such a count"))  # fmt: skip
        assert visits == pytest.approx(3_000 * stages / 28, abs=0.06)
        board = JDPBillboard(LoggedUsers(7, 4, 12), 1.0, 1e-6, users=3_000, schedule=3_000)
        board.ingest(Cohort.table(3_000))
        assert noise == pytest.approx(board.release.noise_std["n"] * np.sqrt(stages), abs=0.06)


def test_tables_with_names_get_policies_with_names(files):
    table = pa.table(Cohort.table(3_000))
    states, actions = ("in range", "raised", "high", "c0", "c1", "c2", "event"), ("lifestyle", "one", "two", "insulin")

    def named(column, names):
        numbers = table.column(column).to_pylist()
        values = [None if n is None or n != n else names[int(n)] for n in numbers]
        return pa.array(values, pa.string()).dictionary_encode()

    words = table
    for column, names in (("state", states), ("action", actions), ("next_state", states)):
        words = words.set_column(words.column_names.index(column), column, named(column, names))
    pyarrow.parquet.write_table(words, "words.parquet")
    sizes = ["--horizon", "12"]
    told = ["--state-names", ", ".join(states), "--action-names", ",".join(actions)]
    done = run("words.parquet", *sizes, *told, "--epsilon", "8", "--stationary")
    assert done.exit_code == 0, done.output
    rows = policy_of(files / "learned")
    assert [row["state"] for row in rows[:7]] == list(states)
    assert {row["action"] for row in rows} <= {*actions, ""}
    assert "| in range | " in (files / "learned" / "report.md").read_text()
    assert json.loads((files / "learned" / "ledger.json").read_text())["run"]["actions"] == list(actions)
    numbered = Labels(states, actions).numbered(words)
    for column in ("state", "action", "next_state"):
        np.testing.assert_array_equal(
            np.nan_to_num(numbered.column(column).to_numpy(), nan=-9),
            np.nan_to_num(table.column(column).to_numpy(), nan=-9),
        )

    for options, said in (
        (["--states", "7", "--actions", "4"], "Column state holds names"),
        ([*told[:3], "lifestyle,one,two"], "rows cannot be taken"),
        ([*told[:2], "--states", "6", "--actions", "4"], "--states is 6, and --state-names has 7 names"),
        (told[:2], "Give --actions or --action-names"),
        ([*told[:3], "one,one"], "give each name once"),
    ):
        done = run("words.parquet", *sizes, *options)
        assert done.exit_code == 2, done.output
        assert said in " ".join(done.output.split())


@pytest.mark.slow
def test_names_ranges_and_boundaries_are_options(files):
    table = pa.table(Cohort.table(3_000))
    renamed = table.rename_columns(["patient", *table.column_names[1:]])
    pyarrow.parquet.write_table(renamed, "named.parquet")
    for boundary, said in (("ldp", "LDP"), ("sdp", "SDP"), ("open", "no privacy")):
        options = [] if boundary == "open" else ["--epsilon", "3"]
        where = ["--out", boundary]
        done = run("named.parquet", *SIZES, "--column", "user=patient", "--boundary", boundary, *options, *where)
        assert done.exit_code == 0, done.output
        assert said in done.output
        report = (files / boundary / "report.md").read_text()
        assert ("simulated by the owner of the table" in report) == (boundary != "open")
    done = run("named.parquet", *SIZES, "--column", "user=patient", "--reward-range", "-1", "1", "--out", "wide")
    assert done.exit_code == 0, done.output
    numbers = re.search(r"in the table is (-?[\d.]+) \(90% interval (-?[\d.]+) to (-?[\d.]+)\)", done.output).groups()
    logged, low, high = map(float, numbers)
    assert abs(logged - table.column("reward").to_numpy().sum() / 3_000) < 2 * (high - low)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.csv", *SIZES], "There is no file nowhere.csv"),
        (["notes.txt", *SIZES], "give a .parquet or a .csv file"),
        (["broken.parquet", *SIZES], "cannot be read as a table"),
        (["cohort.csv", "--states", "6", *SIZES[2:]], "rows cannot be taken"),
        (["cohort.csv", *SIZES, "--users", "100"], "built for 100"),
        (["cohort.csv", *SIZES, "--column", "patient"], "write it as NAME=OWN"),
        (
            ["cohort.csv", *SIZES, "--column", "user=patient"],
            "has no column patient. It has user, stage, state, action",
        ),
        (["other.csv", *SIZES], "has no column user, stage, next_state. It has patient, visit, state, action, reward."),
        (["headless.csv", *SIZES], "Its first row seems to be one of numbers"),
        (["cohort.csv", *SIZES, "--separator", "|"], "If these are several, name the character between them"),
        (["cohort.csv", *SIZES, "--separator", "||"], "it is one character"),
        (
            ["thousands.csv", *SIZES],
            "Column reward holds string: it must hold numbers. Write them with a decimal point",
        ),
        (["cohort.csv", *SIZES, "--truth", "RiverSwim"], "The true model has H=12, S=6, A=2"),
        (["cohort.csv", *SIZES, "--boundary", "open", "--epsilon", "1"], "this one is open"),
        (["cohort.csv", *SIZES, "--epsilon", "-1"], "epsilon"),
        (["cohort.csv", *SIZES, "--bad-rows", "skip"], "bad_rows is 'skip'"),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(files, arguments, said):
    (files / "notes.txt").write_text("user")
    (files / "broken.parquet").write_text("user")
    (files / "other.csv").write_text("patient,visit,state,action,reward\nOttilie,0,1,2,0.5\n")
    (files / "headless.csv").write_text("Ottilie,0,1,2,0.5,\nbob,0,1,2,0.5,\n")
    (files / "thousands.csv").write_text("user;stage;state;action;reward;next_state\nOttilie;0;1;2;1.000,5;\n")
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.output.split())
    assert "Ottilie" not in done.output
    assert not (files / "learned").exists()


@pytest.mark.parametrize("boundary", ["open", "jdp", "ldp", pytest.param("sdp", marks=pytest.mark.slow)])
def test_fewer_may_come_than_were_planned_for(files, boundary):
    options = ["--boundary", boundary] + ([] if boundary == "open" else ["--epsilon", "4"])
    done = run("cohort.csv", *SIZES, "--users", "5000", *options)
    assert done.exit_code == 0, done.output
    assert "# A policy learned from 3,000 users" in (files / "learned" / "report.md").read_text()
    if boundary != "open":
        assert "replace one user, 5000 users" in done.stdout


def test_the_noise_of_one_batch_is_that_of_the_default():
    """Whatever counts it: the ledger names batches, for there is one."""
    board = told(3_000).board
    plain = JDPBillboard(LoggedUsers(7, 4, HORIZON), 1.0, 1e-6, users=3_000, schedule=3_000)
    assert board.expected_noise(3_000) == plain.expected_noise(3_000)
    assert "batched sums of counts" in board.ledger.sentence()


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_table_from_an_office_is_read(files, separator):
    """Semicolons or tabs, decimal commas, ids with commas: the same table."""
    table = Cohort.table(200)
    table["reward"] = table["reward"] / 2
    table["user"] = np.array([f"{user[1:]},5" for user in table["user"]])
    plain = pa.table(table)
    lines = [separator.join(table)]
    for row in plain.to_pylist():
        cells = [row["user"], row["stage"], row["state"], row["action"], str(row["reward"]).replace(".", ",")]
        after = row["next_state"]
        lines.append(separator.join(map(str, [*cells, "" if np.isnan(after) else int(after)])))
    (files / "office.csv").write_text("\ufeff" + "\r\n".join(lines) + "\r\n", encoding="utf-8")
    for given in (None, separator):
        read = read_table_file(files / "office.csv", given)
        assert read.column_names == plain.column_names
        assert read.column("user").to_pylist() == plain.column("user").to_pylist()
        assert read.column("reward").to_pylist() == plain.column("reward").to_pylist()
    assert run("office.csv", *SIZES, "--boundary", "open").exit_code == 0


def test_help_says_how_a_range_is_written():
    for command in ("learn", "train", "plan"):
        said = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "140"}).output
        assert "LEAST LARGEST" in said
        assert "float,float" not in said


def test_the_owner_is_told_on_stderr_and_nobody_else(files):
    """The fourth row of 3,000 patients and some more have a state that there is not."""
    table = Cohort.table(3_000)
    table["state"] = np.where(np.arange(len(table["state"])) % 1_000 == 3, 9, table["state"])
    pyarrow.csv.write_csv(pa.table(table), "bad.csv")
    count = len(table["state"][3::1_000])
    refused = run("bad.csv", *SIZES, "--bad-rows-to", "bad-rows.csv")
    assert refused.exit_code == 2
    assert f"{count} with a state outside 0..6 (rows 4, 1004, 2004, 3004, 4004, ...)" in refused.stderr
    lines = (files / "bad-rows.csv").read_text().splitlines()
    assert lines[:3] == ["row,reason", "4,with a state outside 0..6", "1004,with a state outside 0..6"]
    assert len(lines) == 1 + count
    done = run("bad.csv", *SIZES, "--bad-rows", "empty")
    assert done.exit_code == 0, done.output
    assert f"Users who were emptied for such rows: {count}, with" in done.stderr
    for text in (done.stdout, *(path.read_text() for path in (files / "learned").iterdir() if path.suffix != ".zip")):
        assert "emptied" not in text
        assert "1004" not in text
    inside = run("bad.csv", *SIZES, "--bad-rows-to", "learned/bad-rows.csv")
    assert inside.exit_code == 2
    assert "whose files may be published" in " ".join(inside.stderr.split())


def test_the_owner_is_told_what_is_cut(files):
    done = run("cohort.csv", "--states", "7", "--actions", "4", "--horizon", "4")
    assert done.exit_code == 0, done.output
    rows = (Cohort.table(3_000)["stage"] >= 4).sum()
    assert f"Rows behind the horizon of 4 stages, which are cut: {rows:,}." in " ".join(done.stderr.split())
    assert "horizon of 4 stages" not in done.stdout + (files / "learned" / "report.md").read_text()
    assert run("cohort.csv", *SIZES).stderr == ""


def test_bad_rows_may_be_left_empty(files):
    done = run("cohort.csv", "--states", "6", *SIZES[2:], "--bad-rows", "empty", "--most-emptied", "1")
    assert done.exit_code == 0, done.output
    assert "cannot be taken" not in done.stdout

"""Tables that gave wrong or harmful answers: each test failed before its repair."""

import dataclasses
import math

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from private_rl_gym.agents import DPAPVI, DPUCBVI, PSRL, FrugalUCBVI, PrivateLinOptVI
from private_rl_gym.envs import Cohort, LoggedUsers
from private_rl_gym.lab.cli.app import app
from private_rl_gym.lab.registry import BOUNDARIES
from private_rl_gym.lab.tables.files import read_table_file
from private_rl_gym.lab.tables.offline import learn_from_table
from private_rl_gym.planning.features import LinearFeatures
from private_rl_gym.wrappers import BadRowsError, JDPBillboard, OpenBillboard
from tests.wrappers.stacks import river

COLUMNS = ("user", "stage", "state", "action", "reward", "next_state")
HORIZON = 12
TRUTH = Cohort(HORIZON).model
DOCTORS = TRUTH.value_of(Cohort.habits(HORIZON))


def learned(columns, sizes=(HORIZON, 7, 4), epsilon=1.0, *, seed=0, reward_range=(0.0, 1.0), **options):
    boundary = BOUNDARIES.find("jdp" if epsilon else "open", "boundary")
    budget = {"reward_range": reward_range}
    budget |= {"epsilon": epsilon, "delta": 1e-6, "rng": seed} if epsilon else {}
    return learn_from_table(pa.table(columns), sizes, boundary, budget, **options)


def cohort(users, seed=0, **options):
    return learned(Cohort.table(users, instance_seed=seed), seed=seed, truth=TRUTH, **options)


# 12: empty text, and tables that would be emptied ------------------------------------------------------------------


@pytest.fixture
def clinic(tmp_path, monkeypatch):
    """200 patients with names for states; an empty next state where they left, and at the horizon."""
    monkeypatch.chdir(tmp_path)
    names = np.array(["mild", "severe", ""])
    lines = [",".join(COLUMNS)]
    rng = np.random.default_rng(0)
    for user in range(200):
        state = 0
        for stage in range(length := int(rng.integers(1, 5))):
            following = int(rng.integers(2)) if stage + 1 < length else 2
            lines.append(f"p{user},{stage},{names[state]},{stage % 2},{rng.integers(2)},{names[following]}")
            state = following
    (tmp_path / "clinic.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


CLINIC = ["learn", "clinic.csv", "--horizon", "4", "--state-names", "mild,severe", "--actions", "2", "--epsilon", "1"]


@pytest.mark.parametrize("blank", ["", " ", "  "])
def test_an_empty_next_state_is_no_name(clinic, blank):
    text = (clinic / "clinic.csv").read_text()
    (clinic / "clinic.csv").write_text(text.replace(",\n", f",{blank}\n"))
    done = CliRunner().invoke(app, CLINIC)
    assert done.exit_code == 0, done.output
    assert done.stderr == ""


def test_blanks_are_missing_in_columns_of_numbers(clinic):
    (clinic / "numbers.csv").write_text(",".join(COLUMNS) + '\na,0,0,1,0.5,1\na,1,1,0,1," "\nb,0,1,0,0," "\n')
    table = read_table_file(clinic / "numbers.csv")
    assert table.column("next_state").to_pylist() == [1.0, None, None]
    board = OpenBillboard(LoggedUsers(2, 2, 3), users=3)
    assert board.ingest(table) == 2
    texts = {name: column.to_pylist() for name, column in zip(COLUMNS, table.columns, strict=True)}
    assert OpenBillboard(LoggedUsers(2, 2, 3), users=3).ingest({**texts, "next_state": ["", " ", ""]}) == 2


def test_nothing_is_spent_on_a_table_that_would_be_emptied(clinic):
    wrong = [*CLINIC[:5], "mild,grave", *CLINIC[6:], "--bad-rows", "empty"]
    done = CliRunner().invoke(app, wrong)
    assert done.exit_code == 2, done.output
    assert "users would be emptied, which is more than 5%" in " ".join(done.stderr.split())
    assert not (clinic / "learned").exists()
    done = CliRunner().invoke(app, [*wrong, "--most-emptied", "1"])
    assert done.exit_code == 0, done.output
    assert "Users who were emptied" in done.stderr
    assert "emptied" not in done.stdout


@pytest.mark.parametrize(("bad", "most", "taken"), [(2, 0.05, True), (3, 0.05, False), (3, 0.1, True), (40, 1, True)])
def test_the_share_of_emptied_users_is_limited_before_any_user_counts(bad, most, taken):
    rows = [(user, 0, 9 if user < bad else 0, 0, 1.0, 0) for user in range(40)]
    board = JDPBillboard(LoggedUsers(2, 2, 1), 1.0, 1e-6, users=40, schedule=40, rng=0)
    ledger, columns = str(board.ledger), dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    if taken:
        assert board.ingest(columns, bad_rows="empty", most_emptied=most) == 40
        return
    with pytest.raises(BadRowsError, match="3 of 40 users would be emptied, which is more than 5%: 3 of 40 rows"):
        board.ingest(columns, bad_rows="empty", most_emptied=most)
    assert (board.users_left, board.release.users, str(board.ledger)) == (40, 0, ledger)


@pytest.mark.parametrize("most", [-0.1, 1.5, math.nan])
def test_a_share_lies_between_0_and_1(most):
    with pytest.raises(ValueError, match="most_emptied is"):
        OpenBillboard(river()).ingest({}, bad_rows="empty", most_emptied=most)


# 13: rows at the horizon -------------------------------------------------------------------------------------------


def test_reaching_the_horizon_is_not_leaving():
    """Tables with and without a next state at the horizon are the same table: 8.26 and 5.67 before."""
    table = Cohort.table(20_000)
    empty = np.where(table["stage"] == HORIZON - 1, np.nan, table["next_state"])
    wrong = np.where(table["stage"] == HORIZON - 1, 0.0, table["next_state"])
    found = [
        learned({**table, "next_state": after}, stationary=True, truth=TRUTH)
        for after in (table["next_state"], empty, wrong)
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(other.agent.policy.table, found[0].agent.policy.table)
        assert other.returns.policy.estimate == pytest.approx(found[0].returns.policy.estimate, abs=0.05)
    assert found[1].returns.policy.low < found[1].true_values["policy"] < found[1].returns.policy.high
    assert abs(found[1].returns.policy.estimate - found[1].true_values["policy"]) < 1.0


def test_a_reward_that_only_the_last_step_pays_is_planned_for():
    """State 1 is met at the last of two stages alone, and only there something is earned."""
    rng, users = np.random.default_rng(0), 4_000
    action = rng.integers(2, size=users)
    first = {"stage": 0 * action, "state": 0 * action, "action": action, "reward": 0.0 * action, "next_state": action}
    last = {
        "stage": 0 * action + 1,
        "state": action,
        "action": 0 * action,
        "reward": action,
        "next_state": np.nan * action,
    }
    columns = {name: np.concatenate([first[name], last[name]]) for name in first}
    found = learned({"user": np.tile(np.arange(users), 2), **columns}, (2, 2, 2), None, stationary=True)
    assert found.found.plan.actions[0, 0] == 1
    assert found.returns.policy.estimate == pytest.approx(1.0, abs=0.02)


# 14: early ends that are good --------------------------------------------------------------------------------------


def test_no_number_is_added_to_rewards_where_leaving_may_be_good():
    """Treatment cures half of its patients, who leave; each stage of illness costs 1, and treatment 0.2 more."""
    rng, rows = np.random.default_rng(0), []
    for user in range(4_000):
        for stage in range(6):
            action = int(rng.integers(2))
            cured = action == 1 and rng.random() < 0.5
            rows.append((user, stage, 0, action, -0.7 - 0.2 * action, None if cured or stage == 5 else 0))
            if cured:
                break
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    found = learned(columns, (6, 1, 2), None, stationary=True, reward_range=(-1.0, 0.0))
    moved = {**columns, "reward": np.array(columns["reward"]) + 1.0}
    shifted = learned(moved, (6, 1, 2), None, stationary=True)
    assert found.found.plan.actions[:3, 0].tolist() == [1, 1, 1]
    assert shifted.found.plan.actions[:3, 0].tolist() == [0, 0, 0]  # treatment ends what now looks good
    said = " ".join(found.doubts)
    assert "If leaving is good, such as a cure, 0 is right" in said
    assert "Add to all rewards" not in said


# 15: places where nothing is known ---------------------------------------------------------------------------------


@pytest.mark.parametrize("stationary", [True, False])
def test_where_nothing_is_known_the_policy_goes_on_as_usual(stationary):
    """Of ten tables of 2,000: as good as the doctors, or all but; action 0 is worth 5.4, and was played."""
    found = [cohort(2_000, seed, stationary=stationary) for seed in range(10)]
    values = [one.true_values["policy"] for one in found]
    assert np.mean(values) > DOCTORS - 0.25
    assert min(values) > 6.4
    for one in found:
        assert one.agent.policy is one.agent.policy
        np.testing.assert_array_equal(one.agent.known, one.found.known)
        np.testing.assert_array_equal(one.agent.policy.table, one.found.policy.table)


def test_an_agent_tells_where_it_knows(tmp_path):
    one = cohort(1_000, stationary=True)
    agent, known = one.agent, one.found.known
    assert 0 < known.sum() < known.size
    agent.save(tmp_path / "policy")
    for found in (agent, DPUCBVI.load(tmp_path / "policy")):
        for stage in (0, 5, HORIZON - 1):
            state = (np.full(8, stage),)
            np.testing.assert_array_equal(found.knows(np.arange(8), state), known[stage])
            actions, _ = found.predict(np.arange(8), state, deterministic=True)
            np.testing.assert_array_equal(actions[known[stage]], one.found.plan.actions[stage][known[stage]])
        assert found.knows(3).shape == ()
        assert found.knows(3) == known[0, 3]
        with pytest.raises(ValueError, match="An observation is not in"):
            found.knows(8)


def test_a_mask_that_does_not_fit_is_a_damaged_file(tmp_path):
    agent = cohort(1_000, stationary=True).agent
    agent.learned = dataclasses.replace(agent.learned, known=np.ones((2, 3), dtype=bool))
    agent.save(tmp_path / "policy")
    with pytest.raises(ValueError, match="is not a saved agent, or is damaged"):
        DPUCBVI.load(tmp_path / "policy")


def test_a_policy_that_was_set_is_not_known():
    agent = cohort(1_000, stationary=True).agent
    agent.set_parameters({"policy": {"table": np.zeros((HORIZON, 8), dtype=np.int64)}})
    counts = agent.board.release
    expected = counts.m[:, :, 0].sum(axis=-1) > 2 * counts.noise_std["n"]
    expected[:, 7] = True  # nothing can be done there
    np.testing.assert_array_equal(agent.known, expected)


@pytest.mark.parametrize("kind", [PSRL, DPUCBVI, DPAPVI, FrugalUCBVI])
def test_learners_who_meet_users_tell_where_they_know(kind, tmp_path):
    """Nothing before any user came; after many, more. The mask is in the file."""
    board = JDPBillboard(river(), 8.0, 1e-6, users=4_000, schedule=4_000, rng=0)
    agent = kind("TabularPolicy", board, seed=0)
    assert not agent.known.any()
    agent.learn(4_000 * board.sizes[0])
    assert agent.known.any()
    agent.save(tmp_path / "agent")
    np.testing.assert_array_equal(kind.load(tmp_path / "agent").known, agent.known)


def test_learners_without_counts_do_not_claim_to_know():
    board = JDPBillboard(river(), 8.0, 1e-6, users=100, statistic=LinearFeatures.tabular(4, 2))
    agent = PrivateLinOptVI("TabularPolicy", board, seed=0)
    with pytest.raises(ValueError, match="has no mask of known states"):
        agent.knows(0)


# 17: ids and numbers of every kind ----------------------------------------------------------------------------------

GOOD = [(user, stage, 0, 1, 1.0, 0) for user in range(40) for stage in range(2)]


def columns_of(rows):
    return {name: list(column) for name, column in zip(COLUMNS, zip(*rows, strict=True), strict=True)}


def small():
    return OpenBillboard(LoggedUsers(3, 2, 2), users=60)


BAD = {
    "state 2^63": ((99, 0, 2**63, 0, 0.0, 0), "1 with a state outside 0..2"),
    "state 2^64": ((99, 0, 2**64, 0, 0.0, 0), "1 with a state outside 0..2"),
    "state below -2^63": ((99, 0, -(2**63) - 1, 0, 0.0, 0), "1 with a state outside 0..2"),
    "state text": ((99, 0, "x", 0, 0.0, 0), "1 with a state outside 0..2"),
    "state tuple": ((99, 0, (1, 2), 0, 0.0, 0), "1 with a state outside 0..2"),
    "state object": ((99, 0, object(), 0, 0.0, 0), "1 with a state outside 0..2"),
    "state blank": ((99, 0, " ", 0, 0.0, 0), "1 without a state"),
    "stage 2^63": ((99, 2**63, 0, 0, 0.0, 0), "1 with a stage that is not a whole number from 0 on"),
    "action 2^70": ((99, 0, 0, 2**70, 0.0, 0), "1 with an action outside 0..1"),
    "next state 2^64": ((99, 0, 0, 0, 0.0, 2**64), "1 with a next state outside 0..2"),
    "reward 10^400": ((99, 0, 0, 0, 10**400, 0), "1 with a reward outside"),
    "reward text": ((99, 0, 0, 0, "much", 0), "1 with a reward outside"),
}


@pytest.mark.parametrize(("row", "said"), BAD.values(), ids=BAD)
def test_a_number_that_no_column_holds_is_one_bad_row(row, said):
    columns = columns_of([*GOOD, row])
    with pytest.raises(BadRowsError, match=said) as caught:
        small().ingest(columns)
    assert str(2**63) not in str(caught.value)
    board = small()
    assert board.ingest(columns, bad_rows="empty") == 41
    assert board.release.n[:, :3].sum() == 80


@pytest.mark.parametrize(
    "identity",
    [2**63, 2**64, -(2**70), 1 << 20_000, "x", (1, "a"), 7.5, b"y", "99"],
    ids=["2^63", "2^64", "-2^70", "2^20000", "text", "tuple", "7.5", "bytes", "99"],
)
def test_an_id_is_a_number_a_text_or_a_tuple(identity):
    board = small()
    assert board.ingest(columns_of([*GOOD, (identity, 0, 0, 0, 0.0, None)])) == 41
    with pytest.raises(BadRowsError, match="1 of 1 users have come before"):
        board.ingest(columns_of([(identity, 0, 0, 0, 0.0, None)]))


@pytest.mark.parametrize("identity", [None, math.nan, "", " ", (), (1, None), {"a": 1}, object(), 1j])
def test_what_is_no_id_is_nobodys_row_and_the_rest_goes_on(identity):
    columns = columns_of([*GOOD, (identity, 0, 0, 0, 0.0, 0)])
    with pytest.raises(BadRowsError, match="1 without a user"):
        small().ingest(columns)
    assert small().ingest(columns, bad_rows="empty") == 40


@pytest.mark.parametrize("form", ["{}.0", " {} ", "{}.", "\t{}"])
def test_ids_that_are_compared_as_equal_are_one_user(form):
    rows = [(str(user) if stage else form.format(user), stage, *rest) for user, stage, *rest in GOOD]
    for table in (columns_of(rows), pa.table(columns_of(rows))):
        board = small()
        assert board.ingest(table) == 40
        assert board.release.n[:, :3].sum() == 80
    found = learned(columns_of(rows), (2, 3, 2), None)
    assert found.board.users == 40
    twice = small()
    assert twice.ingest(columns_of([*rows, ("7.0", 0, 0, 0, 0.0, 0)]), bad_rows="empty") == 40
    assert twice.release.n[:, :3].sum() == 78


def test_a_column_of_tuples_is_a_column_of_ids():
    rows = [((user, "clinic"), *rest) for user, *rest in GOOD]
    assert small().ingest(columns_of(rows)) == 40
    lists = pa.table({**columns_of(GOOD), "user": pa.array([[user, 1] for user, *_ in GOOD])})
    assert small().ingest(lists) == 40


def test_columns_of_other_lengths_are_said():
    columns = columns_of([*GOOD, (2**64, 0, 0, 0, 0.0, 0)])
    with pytest.raises(TypeError, match="differ in length"):
        small().ingest({**columns, "reward": [1.0]})

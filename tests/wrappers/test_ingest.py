"""Finished episodes from arrays and tables are summed as those of users who were served, each user once."""

import re
import sys
import time
import types
import warnings
from dataclasses import replace
from decimal import Decimal

import gymnasium as gym
import numpy as np
import pyarrow as pa
import pytest

from private_rl_gym.envs import LoggedUsers
from private_rl_gym.wrappers import (
    BadRowsError,
    BudgetExhausted,
    Discretize,
    Episodes,
    FlattenSpaces,
    JDPBillboard,
    LDPUserSide,
    OpenBillboard,
    SDPShuffler,
)
from tests.attacks.test_doors import interrupted
from tests.wrappers.stacks import BOARDS, A, H, S, jdp, river, same_release

every_board = pytest.mark.parametrize("make", BOARDS.values(), ids=BOARDS)
policy = np.array([[1, 1, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 1, 1]])


def tapes(users, seed=0):
    return np.random.default_rng(seed).random((users, 2 * H + 1))


def logged(users, seed=0):
    """Episodes of the river, as arrays."""
    found = river().unwrapped.model.rollout(policy, tapes(users, seed))
    ids = [f"patient {seed}-{user}" for user in range(users)]
    return Episodes(ids, found.states, found.actions, found.rewards)


def table(episodes, length=None):
    """The same, with a row for each step."""
    states, actions, rewards = (np.asarray(array) for array in (episodes.state, episodes.action, episodes.reward))
    users, width = actions.shape
    kept = np.arange(width) < (np.full(users, width) if length is None else np.asarray(length))[:, None]
    user, stage = np.nonzero(kept)
    return {
        "user": [episodes.user[one] for one in user],
        "stage": stage,
        "state": states[:, :width][kept],
        "action": actions[kept],
        "reward": rewards[kept],
        "next_state": states[:, 1:][kept],
    }


def lake(**options):
    """Sixteen places and four actions, of which episodes of 1 to 6 steps are known."""
    rng = np.random.default_rng(4)
    length = rng.integers(1, 7, size=30)
    return (
        Episodes(
            list(range(30)),
            rng.integers(0, 16, size=(30, 7)),
            rng.integers(0, 4, size=(30, 6)),
            rng.random((30, 6)).round(1),
            length=length,
        ),
        OpenBillboard(LoggedUsers(16, 4, 6), **options),
    )


def numbers(release):
    return [release.n, release.m, release.r]


def same_sums(first, second):
    return all((one == other).all() for one, other in zip(numbers(first), numbers(second), strict=True))


# The same sums as users who are served -------------------------------------------------------------------------------


def test_what_was_logged_counts_as_what_was_served():
    served, brought = OpenBillboard(river()), OpenBillboard(river())
    served.serve(policy, tapes(40))
    assert brought.ingest(logged(40)) == 40
    assert same_sums(served.release, brought.release)


@pytest.mark.parametrize("batch_size", [1, 7, 40])
@every_board
def test_every_board_takes_them_in_and_accounts_for_them(make, batch_size):
    options = {"smallest_batch": 1} if batch_size > 40 else {}
    board = make(river(), schedule=batch_size, **options)
    assert board.ingest(logged(12)) == 12
    ledger = str(board.ledger)  # of a bound board; before users come, it may state more
    assert board.users_left == 28
    assert board.ingest(table(logged(20, seed=1))) == 20
    with pytest.raises(BudgetExhausted, match="9 more users after 32"):
        board.ingest(logged(9, seed=2))
    board.serve(policy, 8)
    assert board.release.users == 40
    assert str(board.ledger) == ledger
    assert np.isfinite(board.release.n).all()


def test_noise_is_that_of_served_users():
    """One release of a thousand users: apart by the noise that both state, at six deviations."""
    boards = [JDPBillboard(river(), 1.0, 1e-6, users=1_000, schedule=1_000) for _ in range(2)]
    boards[0].serve(policy, tapes(1_000))
    boards[1].ingest(logged(1_000))
    first, second = (board.release for board in boards)
    assert first.noise_std == second.noise_std
    apart = np.abs(first.m - second.m).max()
    assert 0.0 < apart < 6 * np.sqrt(2) * first.noise_std["m"]


def test_reports_are_brought_in_too():
    board = OpenBillboard(river(), statistic="reports", rng=0)
    board.ingest(logged(500))
    assert board.release.reports.sum() + board.release.starts.sum() == 500


# Sources --------------------------------------------------------------------------------------------------------------


def shuffled(columns, seed=0):
    order = np.random.default_rng(seed).permutation(len(columns["user"]))
    return {name: [values[row] for row in order] for name, values in columns.items()}


def frame(columns):
    return pytest.importorskip("pandas").DataFrame(columns)


@pytest.mark.parametrize(
    "form",
    [
        dict,
        pa.table,
        shuffled,
        lambda columns: pa.table(shuffled(columns)).combine_chunks(),
        lambda columns: pa.concat_tables([pa.table(columns).slice(0, 7), pa.table(columns).slice(7)]),
        lambda columns: pa.table({**columns, "user": pa.array(columns["user"]).dictionary_encode()}),
        lambda columns: pa.table({**columns, "reward": np.array(columns["reward"], dtype=np.float32)}),
        lambda columns: pa.table({**columns, "state": np.array(columns["state"], dtype=np.float64)}),
        lambda columns: {**columns, "unused": ["text"] * len(columns["user"])},
        frame,
    ],
    ids=["mapping", "arrow", "any order", "one chunk", "chunks", "categories", "float32", "floats", "more", "pandas"],
)
def test_tables_of_every_form_are_the_same_episodes(form):
    board, arrays = OpenBillboard(river()), OpenBillboard(river())
    arrays.ingest(logged(15))
    assert board.ingest(form(table(logged(15)))) == 15
    assert same_sums(board.release, arrays.release)


def test_columns_may_have_names_of_their_own():
    columns = table(logged(15))
    board = OpenBillboard(river())
    columns["patient"] = columns.pop("user")
    with pytest.raises(TypeError, match=r"has no column user\. Each row is one step.*columns="):
        board.ingest(columns)
    assert board.ingest(columns, columns={"user": "patient"}) == 15
    with pytest.raises(TypeError, match="columns names who"):
        board.ingest(columns, columns={"who": "patient"})


def test_ragged_episodes_wait_in_the_absorbing_state():
    episodes, board = lake()
    assert board.ingest(episodes) == 30
    _, tabled = lake()
    tabled.ingest(table(episodes, episodes.length))
    release, alone = board.release, np.asarray(episodes.length)
    assert same_sums(release, tabled.release)
    for h in range(6):
        assert release.n[h, 16].sum() == (alone <= h).sum()
    waiting = release.m[:, 16]
    assert waiting[:, 0, 16].sum() == waiting.sum()  # action 0, and no way back


def test_ragged_episodes_are_those_of_the_environment_loop():
    """The slippery lake, walked inside a boundary, and the same walks from a table."""
    walked = OpenBillboard(gym.make("FrozenLake-v1", max_episode_steps=8))
    rows = {name: [] for name in ("user", "stage", "state", "action", "reward", "next_state")}
    twin = gym.make("FrozenLake-v1", max_episode_steps=8)
    rng = np.random.default_rng(1)
    for user in range(60):
        state, _ = twin.reset(seed=user)
        walked.reset(seed=user)
        for stage in range(8):
            action = int(rng.integers(4))
            following, reward, terminated, truncated, _ = twin.step(action)
            walked.step(action)
            for name, value in zip(rows, (user, stage, state, action, reward, following), strict=True):
                rows[name].append(value)
            state = following
            if terminated or truncated:
                break
    board = OpenBillboard(gym.make("FrozenLake-v1", max_episode_steps=8))
    assert board.ingest(rows) == 60
    assert same_sums(board.release, walked.release)
    assert board.release.n[7, 16].sum() > 0


def test_what_lies_behind_the_horizon_is_cut():
    long, short = OpenBillboard(LoggedUsers(S, A, H)), OpenBillboard(LoggedUsers(S, A, 3))
    episodes = logged(20)
    long.ingest(episodes)
    short.ingest(table(episodes))
    np.testing.assert_array_equal(short.release.n, long.release.n[:3])


def test_rewards_are_mapped():
    episodes = logged(20)
    board = OpenBillboard(LoggedUsers(S, A, H + 1), reward_range=(-3, 1))
    plain = OpenBillboard(LoggedUsers(S, A, H))
    board.ingest(Episodes(episodes.user, episodes.state, episodes.action, -3.0 + 4.0 * np.asarray(episodes.reward)))
    plain.ingest(episodes)
    np.testing.assert_allclose(board.release.r[:H], plain.release.r, atol=1e-4)
    assert board.release.r[H].sum() == 20 * 0.75  # they ended early, and earn the mapped zero


def test_spaces_that_begin_elsewhere():
    env = LoggedUsers(S, A, H)
    env.observation_space, env.action_space = gym.spaces.Discrete(S, start=1), gym.spaces.Discrete(A, start=-1)
    episodes, board, plain = logged(20), OpenBillboard(env), OpenBillboard(LoggedUsers(S, A, H))
    plain.ingest(episodes)
    with pytest.raises(BadRowsError, match=r"a state outside 1\.\.4"):
        board.ingest(episodes)
    shifted = [np.asarray(episodes.state) + 1, np.asarray(episodes.action) - 1]
    board.ingest(Episodes(episodes.user, *shifted, episodes.reward))
    assert same_sums(board.release, plain.release)


class Minari:
    """The part of a Minari data set that is read."""

    id = "river/expert-v0"
    observation_space, action_space = gym.spaces.Discrete(S), gym.spaces.Discrete(A)

    def __init__(self, episodes):
        self.episodes = episodes

    def iterate_episodes(self):
        for number, (states, actions, rewards) in enumerate(
            zip(self.episodes.state, self.episodes.action, self.episodes.reward, strict=True)
        ):
            yield types.SimpleNamespace(id=number, observations=states, actions=actions, rewards=rewards)


def test_a_minari_data_set_is_brought_in_once():
    board, plain = OpenBillboard(river()), OpenBillboard(river())
    assert board.ingest(Minari(logged(20))) == 20
    plain.ingest(logged(20))
    assert same_sums(board.release, plain.release)
    with pytest.raises(BadRowsError, match="20 of 20 users have come before"):
        board.ingest(Minari(logged(20)))
    with pytest.raises(TypeError, match="around an environment with the same spaces"):
        OpenBillboard(LoggedUsers(S + 1, A, H)).ingest(Minari(logged(20)))


class Thermometer(gym.Env):
    """Where somebody is, and how warm it is; two switches."""

    observation_space = gym.spaces.Dict(place=gym.spaces.Discrete(3, start=1), warmth=gym.spaces.Box(-10, 40, (1,)))
    action_space = gym.spaces.MultiDiscrete([2, 2])


def of_adapters(wrong=()):
    """A data set of two episodes of three steps, stacked part by part as Minari does, and the same as numbers."""
    place, warmth = np.array([[1, 2, 3, 1], [2, 2, 1, 1]]), np.array([[[-5.0], [5], [20], [39]], [[5], [5], [5], [39]]])
    place[tuple(wrong)] = 9 if wrong else place[tuple(wrong)]
    switches, rewards = np.array([[[0, 0], [1, 0], [1, 1]], [[0, 1], [0, 0], [1, 0]]]), np.full((2, 3), 0.5)
    data = types.SimpleNamespace(
        id="warm/expert-v0",
        observation_space=Thermometer.observation_space,
        action_space=Thermometer.action_space,
        iterate_episodes=lambda: (
            types.SimpleNamespace(
                id=number,
                observations={"place": place[number], "warmth": warmth[number]},
                actions=switches[number],
                rewards=rewards[number],
            )
            for number in range(2)
        ),
    )
    states = [[0 * 2 + 0, 1 * 2 + 0, 2 * 2 + 1, 0 * 2 + 1], [1 * 2 + 0, 1 * 2 + 0, 0 * 2 + 0, 0 * 2 + 1]]
    return data, Episodes([7, 8], states, [[0, 2, 3], [1, 0, 2]], rewards)


def test_a_minari_data_set_comes_through_the_adapters_of_its_environment():
    data, numbers = of_adapters()
    board = OpenBillboard(FlattenSpaces(Discretize(Thermometer(), bins=2)), horizon=3)
    plain = OpenBillboard(FlattenSpaces(Discretize(Thermometer(), bins=2)), horizon=3)
    assert board.ingest(data) == plain.ingest(numbers) == 2
    assert same_sums(board.release, plain.release)
    assert board.release.n.sum() == 6
    bad, _ = of_adapters(wrong=(1, 2))
    with pytest.raises(BadRowsError, match=r"2 of 6 rows cannot be taken: 1 with a state .*, 1 with a next state"):
        OpenBillboard(FlattenSpaces(Discretize(Thermometer(), bins=2)), horizon=3).ingest(bad)
    halved = gym.wrappers.TransformObservation(Thermometer(), lambda seen: seen["place"], gym.spaces.Discrete(4))
    with pytest.raises(TypeError, match="add FlattenSpaces and Discretize"):
        OpenBillboard(FlattenSpaces(halved), horizon=3).ingest(data)


def test_minari_itself(tmp_path, monkeypatch):
    minari = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    episodes = logged(5)
    buffers = [
        minari.data_collector.EpisodeBuffer(
            id=number,
            observations=list(states),
            actions=list(actions),
            rewards=list(rewards),
            terminations=[False] * (H - 1) + [True],
            truncations=[False] * H,
        )
        for number, (states, actions, rewards) in enumerate(zip(*arrays(episodes), strict=True))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about authors and requirements
        dataset = minari.create_dataset_from_buffers(
            "river/test-v0",
            buffers,
            observation_space=gym.spaces.Discrete(S),
            action_space=gym.spaces.Discrete(A),
        )
    board, plain = OpenBillboard(river()), OpenBillboard(river())
    assert board.ingest(dataset) == 5
    plain.ingest(episodes)
    assert same_sums(board.release, plain.release)


# Once -----------------------------------------------------------------------------------------------------------------


@every_board
def test_nobody_comes_twice(make):
    board = make(river())
    board.ingest(logged(5))
    for again in (logged(5), table(logged(5)), Episodes(logged(5).user[4:5], *(a[4:5] for a in arrays(logged(5))))):
        with pytest.raises(BadRowsError, match="have come before"):
            board.ingest(again)
    assert board.users_left == 35
    board.ingest(logged(5, seed=1))
    assert board.users_left == 30


def arrays(episodes):
    return np.asarray(episodes.state), np.asarray(episodes.action), np.asarray(episodes.reward)


@pytest.mark.parametrize(
    "ids",
    [
        [7, 8],
        [7.0, 8.0],
        ["7", "8"],
        ["7.0", "8.0"],
        [b"7", b"8"],
        [" 7 ", "8"],
        [Decimal("7.00"), Decimal(8)],
        np.array([7, 8], dtype=np.uint8),
        np.array([7, 8], dtype=np.float32),
    ],
)
def test_an_id_is_compared_as_text(ids):
    board = OpenBillboard(river())
    board.ingest(Episodes([7, 9], *arrays(logged(2))))
    with pytest.raises(BadRowsError, match="1 of 2 users have come before"):
        board.ingest(Episodes(ids, *arrays(logged(2))))


def test_two_rows_of_one_user_in_arrays_are_refused():
    with pytest.raises(BadRowsError, match="1 of 3 users have come before, or are in the table twice"):
        OpenBillboard(river()).ingest(Episodes(["a", "b", "a"], *arrays(logged(3))))


@pytest.mark.parametrize("key", [None, b"0123456789abcdef"])
def test_nobody_comes_twice_after_a_restart_either(tmp_path, key):
    board = jdp(river())
    board.ingest(logged(5))
    board.save_state(tmp_path / "state", key=key)
    again = jdp(river())
    again.load_state(tmp_path / "state", key=key)
    with pytest.raises(BadRowsError, match="5 of 5 users have come before"):
        again.ingest(logged(5))
    assert again.ingest(logged(5, seed=1)) == 5
    again.save_state(tmp_path / "later", key=key)
    assert b"patient" not in (tmp_path / "later").read_bytes()


def test_digests_of_two_boards_have_nothing_in_common():
    boards = [jdp(river()) for _ in range(2)]
    for board in boards:
        board.ingest(logged(5))
    first, second = (board._admission.visits.arrays() for board in boards)
    assert (first["key"] != second["key"]).any()
    assert not {bytes(row) for row in first["digests"].reshape(-1, 16)} & {
        bytes(row) for row in second["digests"].reshape(-1, 16)
    }


# Order ----------------------------------------------------------------------------------------------------------------


def test_the_order_of_a_table_decides_nothing():
    """Who is in the first batch is drawn: the first ten of a table would all be there in every run."""
    states = np.zeros((40, H + 1), dtype=int)
    states[:10] = 1
    first = []
    for _ in range(20):
        board = OpenBillboard(LoggedUsers(S, A, H), schedule=10, users=40)
        seen = []
        board.audit.observe(types.SimpleNamespace(left=lambda users, _, seen=seen: seen.append(users)))
        board.ingest(Episodes(list(range(40)), states, states[:, :H] * 0, states[:, :H] * 0.0))
        first.append(np.concatenate([part.states for part in seen])[:10, 0].sum())
    assert len(set(first)) > 2  # hypergeometric: that few values have probability below 1e-6
    assert max(first) < 10


def test_a_seed_repeats_the_order():
    releases = []
    for _ in range(2):
        board = jdp(river(), schedule=7)
        board.ingest(logged(20))
        releases.append(board.release)
    assert same_release(*releases)


# Bad rows -------------------------------------------------------------------------------------------------------------

BAD = {
    "state": (lambda c: c["state"].__setitem__(3, 99), r"1 with a state outside 0\.\.3"),
    "half a state": (lambda c: c["state"].__setitem__(3, 1.5), r"1 with a state outside 0\.\.3"),
    "no state": (lambda c: c["state"].__setitem__(3, None), "1 without a state"),
    "no action": (lambda c: c["action"].__setitem__(3, None), "1 without an action"),
    "no stage": (lambda c: c["stage"].__setitem__(3, None), "1 without a stage"),
    "negative": (lambda c: c["state"].__setitem__(3, -1), r"1 with a state outside 0\.\.3"),
    "action": (lambda c: c["action"].__setitem__(3, 2), r"1 with an action outside 0\.\.1"),
    "reward": (lambda c: c["reward"].__setitem__(3, 1.01), r"1 with a reward outside \[0, 1\]"),
    "no reward": (lambda c: c["reward"].__setitem__(3, None), "1 without a reward"),
    "infinite": (lambda c: c["reward"].__setitem__(3, float("inf")), r"1 with a reward outside \[0, 1\]"),
    "next": (lambda c: c["next_state"].__setitem__(3, 4), r"1 with a next state outside 0\.\.3"),
    "last next": (lambda c: c["next_state"].__setitem__(4, None), "1 without a next state, where no user may end"),
    "jump": (lambda c: c["next_state"].__setitem__(2, (c["state"][3] + 1) % 4), "1 whose next state is not the state"),
    "stage": (lambda c: c["stage"].__setitem__(3, -2), "1 with a stage that is not a whole number from 0 on"),
    "twice": (lambda c: c["stage"].__setitem__(3, 2), "1 of a user and stage that another row is of"),
    "gap": (lambda c: [c[name].pop(2) for name in c], "2 of users whose stages do not follow each other from 0"),
    "short": (lambda c: [c[name].pop(4) for name in c], "4 of users who have fewer than 5 stages"),
    "nobody": (lambda c: c["user"].__setitem__(3, None), "1 without a user"),
    "blank": (lambda c: c["user"].__setitem__(3, ""), "1 without a user"),
    "spaces": (lambda c: c["user"].__setitem__(3, "  "), "1 without a user"),
}


def spoiled(how, users=6):
    columns = {name: list(values) for name, values in table(logged(users)).items()}
    columns = {name: [v.item() if hasattr(v, "item") else v for v in values] for name, values in columns.items()}
    how(columns)
    return columns


@pytest.mark.parametrize(("how", "said"), BAD.values(), ids=BAD)
def test_bad_rows_are_refused_in_one_sentence(how, said):
    board = jdp(river())
    before = board.release
    with pytest.raises(
        BadRowsError, match=f"of (30|29) rows cannot be taken: .*{said}.*Nothing was admitted"
    ) as caught:
        board.ingest(spoiled(how))
    assert board.release is before
    assert board.users_left == 40
    for secret in ("patient", "99", "1.01"):
        assert secret not in str(caught.value)
    assert caught.value.__context__ is None
    assert board.ingest(logged(6)) == 6  # nobody of them was counted


@pytest.mark.parametrize(("how", "said"), BAD.values(), ids=BAD)
def test_users_with_bad_rows_count_and_contribute_nothing(how, said):
    board = OpenBillboard(river(), users=6)
    assert board.ingest(spoiled(how), bad_rows="empty", most_emptied=1) == 6
    assert board.release.users == 6
    assert board.release.n[0].sum() == 5


def found_in(columns, board=None, **options):
    """The findings in a table, and the board that took it in."""
    told, board = [], OpenBillboard(LoggedUsers(S, A, H)) if board is None else board
    try:
        board.ingest(columns, owner=told.append, **options)
    except BadRowsError as error:
        return told[0], str(error)
    return told[0], board


def test_the_owner_is_told_the_rows_and_nothing_that_is_in_them():
    def how(columns):
        for row in (3, 9, 11, 12, 13, 14, 16):
            columns["state"][row] = 99
        columns["reward"][20] = None
        columns["stage"][27] = columns["stage"][26]

    found, message = found_in(spoiled(how))
    assert "7 with a state outside 0..3 (rows 4, 10, 12, 13, 14, ...)," in message
    assert "1 without a reward (row 21), 1 of a user and stage that another row is of (row 28); row 1 is" in message
    assert [row for row, _ in found.reasons()] == [4, 10, 12, 13, 14, 15, 17, 21, 28]
    assert dict(found.reasons())[21] == "without a reward"
    assert repr(found) == "TableReport(...)"
    arrays = logged(3)
    _, said = found_in(replace(arrays, state=np.asarray(arrays.state) + 90))
    assert "row 1" not in said  # arrays have no rows of a table


@pytest.mark.parametrize(("how", "said"), BAD.values(), ids=BAD)
def test_every_bad_row_is_named_with_its_reason(how, said):
    found, message = found_in(spoiled(how), jdp(river()))
    named = list(found.reasons())
    assert len(named) == sum(count for _, count in found.kinds)
    assert str(len(named)) == re.search(r"^(\d+) of", message)[1]
    assert all(any(kind == reason for kind, _ in found.kinds) for _, reason in named)


def test_stages_from_1_are_asked_for():
    columns = table(logged(6))
    _, message = found_in({**columns, "stage": np.asarray(columns["stage"]) + 1})
    assert "No row has stage 0: do your stages begin at 1? Take 1 off each." in message
    _, message = found_in(spoiled(BAD["state"][0]))
    assert "do your stages begin" not in message


def test_the_owner_is_told_what_was_cut_and_who_was_not_seen_again():
    columns = table(logged(20))
    found, board = found_in(columns, OpenBillboard(LoggedUsers(S, A, 3)))
    assert (found.behind, found.unfollowed) == (20 * (H - 3), 0)
    assert "Rows behind the horizon of 3 stages, which are cut: 40." in found.sentences(emptied=False)[0]
    found, board = found_in(columns, OpenBillboard(LoggedUsers(S, A, H + 1)))
    assert (found.behind, found.unfollowed) == (0, 20)
    assert "before the horizon, and no row for it: 20." in found.sentences(emptied=False)[0]
    assert board.release.m[H - 1, :, :, S].sum() == 20  # they are taken for users who left
    columns["next_state"] = np.where(columns["stage"] == H - 1, np.nan, columns["next_state"])
    found, board = found_in(columns, OpenBillboard(LoggedUsers(S, A, H + 1)))
    assert found.unfollowed == 0
    assert found.sentences(emptied=True) == []


def test_emptied_users_wait_and_earn_nothing():
    """With rewards in -1..1 nothing is the middle of the range."""
    columns = spoiled(BAD["state"][0])
    found, board = found_in(
        columns, OpenBillboard(LoggedUsers(S, A, H), reward_range=(-1, 1)), bad_rows="empty", most_emptied=1
    )
    release = board.release
    assert release.users == 6
    assert release.n[:, S, 0] == pytest.approx(np.ones(H))
    assert release.r[:, S, 0] == pytest.approx(np.full(H, 0.5))
    assert (found.emptied_users, found.emptied_rows, found.without_user) == (1, 5, 0)
    assert "Users who were emptied for such rows: 1, with 5 rows in all." in found.sentences(emptied=True)[0]
    good = {name: np.delete(np.asarray(columns[name]), range(5)) for name in columns}
    earned = 2.0 * release.r.sum() - 6 * H
    assert earned == pytest.approx(np.sum(good["reward"].astype(float)), abs=1e-3)
    found, _ = found_in(spoiled(BAD["nobody"][0]), bad_rows="empty", most_emptied=1)
    assert "Rows without a user, which were left out: 1." in found.sentences(emptied=True)


@pytest.mark.parametrize(
    ("options", "waits"), [({}, True), ({"neighbours": "zero-out"}, False), ({"public_start": True}, False)]
)
def test_emptied_users_wait_only_where_any_two_users_are_neighbours(options, waits):
    """Who waits has no start among those of others, and is not the nobody with whom a user is compared."""
    board = JDPBillboard(LoggedUsers(S, A, H), 1.0, 1e-6, users=6, schedule=6, **options)
    seen = []
    board.audit.observe(types.SimpleNamespace(left=lambda users, count: seen.append((users, count))))
    board.ingest(spoiled(BAD["state"][0]), bad_rows="empty", most_emptied=1)
    nothing = sum(count for users, count in seen if users is None)
    waiting = sum((users.states == S).all(axis=1).sum() for users, _ in seen if users is not None)
    assert (nothing, waiting) == ((0, 1) if waits else (1, 0))


def test_emptied_users_report_nothing():
    """A report of where users start does not say that they start where episodes end."""
    board = OpenBillboard(LoggedUsers(S, A, H), statistic="reports", rng=0)
    board.ingest(
        spoiled(lambda columns: columns["state"].__setitem__(slice(None), [99] * 30)), bad_rows="empty", most_emptied=1
    )
    assert board.release.users == 6
    assert board.release.reports.sum() + board.release.starts.sum() == 0


def test_arrays_of_users_without_an_id_are_refused():
    given = logged(6)
    for blank in (None, "", " "):
        nameless = replace(given, user=[blank, *list(given.user)[1:]])
        with pytest.raises(BadRowsError, match="1 of 6 users have no id"):
            OpenBillboard(river(), users=6).ingest(nameless)


def test_kinds_are_counted_together():
    def how(columns):
        for row, value in ((3, 9), (8, -4), (13, 77)):
            columns["state"][row] = value
        columns["reward"][20] = -0.5

    with pytest.raises(BadRowsError, match=r"^4 of 30 rows cannot be taken: 3 with a state .*, 1 with a reward"):
        OpenBillboard(river()).ingest(spoiled(how))


def test_a_local_user_with_bad_rows_sends_an_empty_report():
    """Noised as any other: the spread of 160 cells lies within a third of the noise that is stated, seeded."""
    board = LDPUserSide(river(), 1.0, randomizer="laplace", users=6, rng=0)
    board.ingest(
        Episodes(list(range(6)), np.full((6, H + 1), -1), *arrays(logged(6))[1:]), bad_rows="empty", most_emptied=1
    )
    assert board.release.users == 6
    assert 0.67 < board.release.m.std() / board.release.noise_std["m"] < 1.33


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (object(), "A object holds no episodes"),
        ([1, 2], "A list holds no episodes"),
        ({"user": [1]}, "has no column stage, state, action, reward, next_state"),
        ({**table(logged(2)), "state": ["mild"] * 10}, "Column state holds string: it must hold numbers"),
        ({**table(logged(2)), "reward": ["0.5"] * 10}, "Column reward holds string"),
        ({**table(logged(2)), "user": [1]}, "differ in length"),
        (Episodes([1], [[0, 1]], [[0]], [[1], [1]]), "There are 1 users"),
        (Episodes([1, 2], [[0, 1]], [[0]], [[1]]), "There are 2 users"),
        (Episodes([1], [[0, 1, 1, 1]], [[0]], [[1]]), "There are 1 users"),
        (Episodes([1, 2], [[0, 1], [0]], [[0], [1]], [[1], [1]]), "state is not an array with a row for each user"),
        (Episodes([1], [[0, 1]], [[0]], [[1]], length=[2]), r"length must be a whole number in 0\.\.1"),
        (Episodes([1], [["a", "b"]], [[0]], [[1]]), "state holds"),
    ],
)
def test_what_is_no_table_is_refused(given, said):
    board = OpenBillboard(river())
    with pytest.raises(TypeError, match=said) as caught:
        board.ingest(given)
    assert "mild" not in str(caught.value)
    assert board.release.users == 0


def test_the_traceback_of_a_refusal_holds_no_rows():
    board = OpenBillboard(river())
    with pytest.raises(BadRowsError) as caught:
        board.ingest(spoiled(BAD["state"][0]))
    found, frame = [], caught.value.__traceback__
    while frame is not None:
        found += [type(value).__name__ for name, value in frame.tb_frame.f_locals.items() if name != "caught"]
        frame = frame.tb_next
    assert not {"TableSource", "Trajectories", "Rows", "Table"} & set(found)


def test_episodes_show_nothing():
    assert repr(logged(3)) == "Episodes(...)"
    board = jdp(river())
    board.ingest(logged(3))
    assert "patient" not in repr(board) + repr(board._admission.visits) + repr(board.release)


# Nobody to meet -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [lambda b: b.serve([0] * 4, 3), lambda b: b.reset()])
def test_logged_users_are_not_met(call):
    board = JDPBillboard(LoggedUsers(3, 2, 5), 1.0, 1e-6, users=10)
    with pytest.raises(gym.error.Error, match=r"Add the episodes with board\.ingest"):
        call(board)
    assert board.users_left == 10
    with pytest.raises(gym.error.Error, match="no new user can be simulated"):
        LoggedUsers(3, 2, 5).step(0)


@pytest.mark.parametrize("arguments", [(0, 2, 5), (3, 2.5, 5), (3, 2, 0)])
def test_sizes_are_checked(arguments):
    with pytest.raises((ValueError, TypeError), match=r"n_states|n_actions|horizon"):
        LoggedUsers(*arguments)


def test_only_counts_and_reports_are_made_of_a_table():
    board = JDPBillboard(gym.make("PrivateRL/RiverSwimMixture-v0"), 1.0, 1e-6, users=5, statistic="linear")
    with pytest.raises(ValueError, match="sums linear statistics, and they need users who run the policy of the agent"):
        board.ingest(logged(2))
    with pytest.raises(ValueError, match="bad_rows is 'skip'"):
        OpenBillboard(river()).ingest(logged(2), bad_rows="skip")


def test_an_inner_board_takes_nobody_in():
    inside = LDPUserSide(river(), 1.0)
    SDPShuffler(inside, users=40, schedule=10)
    with pytest.raises(ValueError, match="Call the SDPShuffler"):
        inside.ingest(logged(2))


# Speed ----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("form", ["arrays", "table"])
def test_a_million_episodes_come_within_ten_seconds(form):
    """Seconds of this process, which does one thing at a time: others on the machine do not count."""
    users, horizon, n_states, n_actions = 1_000_000, 10, 10, 4
    rng = np.random.default_rng(0)
    states = rng.integers(0, n_states, size=(users, horizon + 1))
    actions, rewards = rng.integers(0, n_actions, size=(users, horizon)), rng.random((users, horizon))
    given = Episodes(np.arange(users), states, actions, rewards)
    if form == "table":
        given = pa.table(
            {
                "user": np.repeat(np.arange(users), horizon),
                "stage": np.tile(np.arange(horizon), users),
                "state": states[:, :-1].ravel(),
                "action": actions.ravel(),
                "reward": rewards.ravel(),
                "next_state": states[:, 1:].ravel(),
            }
        )
    env = LoggedUsers(n_states, n_actions, horizon)
    JDPBillboard(env, 1.0, 1e-6, users=5, schedule=5).ingest(Episodes([1], states[:1], actions[:1], rewards[:1]))
    board = JDPBillboard(env, 1.0, 1e-6, users=users, schedule=users)
    start = time.process_time()
    assert board.ingest(given) == users
    seconds = time.process_time() - start
    print(f"{form}: {seconds:.1f} s", file=sys.stderr)
    assert seconds < 10.0
    assert abs(board.release.n[0].sum() - users) < 6 * np.sqrt(n_states * n_actions) * board.release.noise_std["n"]


def test_where_episodes_end_none_begins():
    """Noise at stage 0 is no reason to start in the absorbing state of a private model."""
    board = JDPBillboard(LoggedUsers(S, A, H), 1.0, 1e-6, users=100, schedule=100, rng=1)
    board.ingest(logged(100))
    model = board.private_model().unwrapped.model
    assert model.initial[S] == 0.0
    assert model.initial.sum() == pytest.approx(1.0)


# Interrupts ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [lambda env: OpenBillboard(env, users=40), lambda env: jdp(env, epsilon=1e6, schedule=10)]
)
def test_an_interrupt_at_any_line_counts_nobody_twice(make):
    """Whoever was taken in before the interrupt is known afterwards; whoever was not may come again."""
    line, taken = 0, 0
    while True:
        line += 1
        board = make(river())
        if not interrupted(lambda board=board: board.ingest(logged(12)), line):
            break
        counted = board.users - board.users_left
        try:
            board.ingest(logged(12))
        except BadRowsError:
            taken += 1
            assert counted == 12
        if board.users_left:
            board.ingest(logged(board.users_left, seed=1))
        assert board.release.n[0].sum() < 40.5  # noise at this epsilon is far below one
    assert line > 10
    assert 0 < taken < line

"""What every billboard promises about who comes in and what goes out."""

import copy
import json
import pickle
import threading
import warnings
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import (
    Autoreset,
    NormalizeReward,
    RecordEpisodeStatistics,
    TimeAwareObservation,
    TimeLimit,
    TransformObservation,
    TransformReward,
)

from private_rl_gym.envs import TabularEnv, TabularModel
from private_rl_gym.planning.network import Layers
from private_rl_gym.privacy.accounting.guarantee import Guarantee, TrustModel
from private_rl_gym.privacy.errors import no_error
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.protocols import ClosedBatch, Options, Protocol, ProtocolPlan
from private_rl_gym.privacy.randomizers import UserSide
from private_rl_gym.privacy.schedule import Schedule
from private_rl_gym.wrappers import (
    BOUNDARIES,
    Boundary,
    BudgetExhausted,
    JDPBillboard,
    LDPPerStep,
    LDPUserSide,
    OpenBillboard,
    SDPShuffler,
)
from private_rl_gym.wrappers.options import CommonOptions, statistic_of
from tests.wrappers.stacks import BOARDS, A, H, S, jdp, ldp, river, same_release

every_board = pytest.mark.parametrize("make", BOARDS.values(), ids=BOARDS)
policy = np.array([[1, 1, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 1, 1]])


def tapes(users, seed=0):
    return np.random.default_rng(seed).random((users, 2 * H + 1))


def by_steps(board, users):
    """The ordinary Gym loop, as a learner would write it."""
    releases = []
    for tape in users:
        observation, _ = board.reset(options={"user": tape})
        for h in range(H):
            observation, *_ = board.step(int(policy[h, observation]))
        releases.append(board.release)
    return releases


@every_board
@pytest.mark.parametrize("batch_size", [1, 3, 7, 40])
def test_serving_and_stepping_give_the_same_releases(make, batch_size):
    served, stepped = (make(river(), schedule=batch_size) for _ in range(2))
    users = tapes(40)
    releases = by_steps(stepped, users)
    done = 0
    for group in (1, 2, 10, 5, 22):
        assert served.serve(policy, users[done : done + group]) == group
        done += group
        assert same_release(served.release, releases[done - 1])
    assert served.release.users == 40  # the last, smaller batch is published too
    assert served.users_left == 0


@every_board
def test_new_users_are_the_same_either_way(make):
    served, stepped = make(river()), make(river())
    served.unwrapped.reset(seed=3)
    stepped.unwrapped.reset(seed=3)
    served.serve(policy, 12)
    by_steps(stepped, [None] * 12)
    assert same_release(served.release, stepped.release)


@every_board
def test_a_stochastic_policy_draws_from_the_agents_generator(make):
    coin = np.full((S, A), 0.5)
    boards = [make(river()) for _ in range(3)]
    users = tapes(20)
    for board, rng in zip(
        boards, (np.random.default_rng(1), np.random.default_rng(1), np.random.default_rng(2)), strict=True
    ):
        board.serve(coin, users, rng=rng)
    assert same_release(boards[0].release, boards[1].release)
    assert not same_release(boards[0].release, boards[2].release)
    with pytest.raises(ValueError, match="rng="):
        make(river()).serve(coin, 1)


def test_an_open_board_has_the_exact_sums():
    board = BOARDS["open"](river())
    users = tapes(40)
    board.serve(policy, users)
    found = board.unwrapped.model.rollout(policy, users)
    assert board.release.n.sum() == 40 * H
    assert board.release.r.sum() == found.rewards.sum()
    np.testing.assert_array_equal(board.release.n[0].sum(axis=1), np.bincount(found.states[:, 0], minlength=S))
    assert board.release.error_bound(0.05) == 0.0
    assert board.release.noise_std == {"n": 0.0, "m": 0.0, "r": 0.0}


@every_board
def test_rewards_and_info_stay_inside(make):
    board = make(RecordEpisodeStatistics(river()))
    for _ in range(5):
        _, info = board.reset()
        assert info == {}
        for h in range(H):
            _, reward, terminated, truncated, info = board.step(1)
            assert (reward, type(reward)) == (0.0, float)
            assert info == {"withheld": True}
            assert (terminated, truncated) == (h == H - 1, False)
    inside = next(layer for layer in _layers(board) if isinstance(layer, RecordEpisodeStatistics))
    assert len(inside.return_queue) == 5  # the experimenter, inside, has them


def _layers(env):
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env


@every_board
def test_versions_move_only_when_something_is_published(make):
    board = make(river(), schedule=4)
    before = board.release
    assert (before.version, before.users) == (0, 0)
    board.serve(policy, 3)
    assert board.release is before
    board.serve(policy, 1)
    assert (board.release.version, board.release.users) == (1, 4)
    board.serve(policy, 9)
    assert (board.release.version, board.release.users) == (3, 12)


@every_board
def test_a_budget_is_refused_before_anything_happens(make):
    board = make(river(), users=10)
    board.serve(policy, 8)
    before = board.release
    with pytest.raises(BudgetExhausted, match=r"3 more users after 8.*10\. .*users="):
        board.serve(policy, 3)
    assert board.release is before
    board.serve(policy, 2)
    with pytest.raises(BudgetExhausted):
        board.reset()
    with pytest.raises(BudgetExhausted):
        board.serve(policy)


def test_local_users_are_not_limited_unless_asked():
    board = LDPUserSide(river(), epsilon=1.0)
    assert board.users_left is None
    board.serve(policy, 3)
    assert "any number of users" in str(board.ledger)


@every_board
def test_an_abandoned_user_contributes_nothing_and_counts(make):
    """What a learner saw of her could decide whether she is abandoned, so that her place must not depend on it."""
    left, absent = make(river()), make(river())
    users = tapes(6)
    for board, steps in ((left, 3), (absent, 0)):
        by_steps(board, users[:2])
        board.reset(options={"user": users[2]})
        for _ in range(steps):
            board.step(1)
        by_steps(board, users[3:])
    assert left.release.users == 6
    assert same_release(left.release, absent.release)
    if not isinstance(left, JDPBillboard) and isinstance(left, OpenBillboard):
        assert left.release.n.sum() == 5 * H


@every_board
def test_releases_are_closed_and_independent_of_later_users(make):
    board = make(river())
    board.serve(policy, 5)
    kept = board.release
    copy = pickle.loads(pickle.dumps(kept))
    board.serve(policy, 5)
    assert same_release(kept, copy)
    for array in (kept.n, kept.m, kept.r):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0


def test_publishing_early_uses_a_release():
    board = jdp(river(), users=12, schedule=4, counting="matrix-factorization")
    board.serve(policy, 2)
    with pytest.raises(ValueError, match=r"publish\(\).*schedule="):
        board.publish()
    board = jdp(river(), users=12, schedule=Schedule(4, releases=4))
    board.serve(policy, 2)
    assert board.publish().users == 2
    assert board.publish().version == 1  # nobody has come since
    board.serve(policy, 10)
    assert (board.release.version, board.release.users) == (4, 12)
    (more,), (less,) = (
        jdp(river(), users=12, schedule=Schedule(4, releases=most)).audit.noises([4]) for most in (4, None)
    )
    assert more.scale > less.scale


def test_batches_are_published_when_asked():
    board = BOARDS["jdp batched gaussian"](river(), schedule=40)
    sizes = []
    for users in (1, 7, 20, 2):
        board.serve(policy, users)
        sizes.append(board.publish().users)
    assert sizes == [1, 8, 28, 30]
    assert board.release.events == board.release.m.size * (S + 2) // S * 40  # there may be a release for every user
    assert board.release.version == 4
    assert board.release.noise_std["m"] == pytest.approx(2 * board.audit.noises([1])[0].scale, rel=1e-3)


@every_board
def test_error_bounds_hold(make):
    """With beta = 0.2 over the whole run; 20 runs with seeds of their own, of which 12 or more failing has p < 1e-3."""
    failures = 0
    for seed in range(20):
        board = make(river(), **({} if make is BOARDS["open"] else {"rng": seed}))
        truth = BOARDS["open"](river())
        missed = False
        for user in tapes(40, seed=seed):
            board.serve(policy, user[None])
            truth.serve(policy, user[None])
            for family in "nmr":
                error = np.abs(getattr(board.release, family) - getattr(truth.release, family)).max()
                missed |= error > board.release.error_bound(0.2, of=family)
        failures += missed
    assert failures <= 11


@every_board
def test_the_bound_is_the_largest_of_its_families(make):
    board = make(river())
    board.serve(policy, 3)
    release = board.release
    assert release.error_bound(0.1) == max(release.error_bound(0.1, of=family) for family in "nmr")
    assert release.error_bound(0.01) >= release.error_bound(0.1)
    with pytest.raises(ValueError, match="beta is 0"):
        release.error_bound(0.0)
    with pytest.raises(ValueError, match=r"family 'x'.*n, m, r"):
        release.error_bound(0.1, of="x")


@every_board
def test_a_board_says_what_it_is_and_how_many_users_came(make):
    board = make(river())
    board.serve(policy, 3)
    text = repr(board)
    assert text.startswith(f"<{type(board).__name__} around ")
    assert "RiverSwim: " in text
    assert str(board.ledger.outside) in text
    assert "3 users have come, 37 may come" in text
    assert text in repr(RecordEpisodeStatistics(board))


class Patient(gym.Env):
    """An environment whose text tells who is in it."""

    observation_space, action_space = gym.spaces.Discrete(4), gym.spaces.Discrete(2)
    name = "nobody"

    def reset(self, **_):
        self.name = "Alice"
        return 0, {}

    def step(self, _):
        return 0, 0.0, False, False, {}

    def __str__(self):
        return f"<Patient {self.name}>"

    __repr__ = __str__


@pytest.mark.parametrize("kind", [JDPBillboard, LDPUserSide, OpenBillboard, SDPShuffler, LDPPerStep])
def test_the_text_of_a_board_asks_nobody_inside_for_hers(kind):
    arguments = {} if kind is OpenBillboard else {"epsilon": 1.0}
    arguments |= {"delta": 1e-6, "users": 9} if kind in (JDPBillboard, SDPShuffler) else {}
    env = Patient()
    board = kind(env, horizon=3, **arguments)
    board.reset()
    assert env.name == "Alice"
    assert "around Patient: " in repr(board)
    assert "Alice" not in repr(board) + str(board) + repr(gym.wrappers.RecordEpisodeStatistics(board))


def test_a_text_is_never_an_error():
    class Careless(OpenBillboard):
        guarantee = Guarantee(TrustModel.NONE, np.inf, 0.0, None, "nothing")

        @property
        def ledger(self):
            raise TypeError("no sources")

    assert repr(Careless(river())) == "<Careless>"
    assert repr(JDPBillboard.__new__(JDPBillboard, river(), 1.0, users=40)) == "<JDPBillboard>"
    inner = ldp(river())
    JDPBillboard(inner, 1.0, 1e-6, users=40)
    assert "inside a JDPBillboard" in repr(inner)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # RecordVideo's, in Gymnasium 1.2
def test_who_records_videos_outside_is_told_to_record_inside():
    board = jdp(river(render_mode="rgb_array"))
    with (
        pytest.warns(
            UserWarning, match=r"'rgb_array' stays inside.*JDPBillboard\(RecordVideo\(env, folder\), \.\.\.\)"
        ),
        pytest.raises(ValueError, match="incompatible with RecordVideo"),
    ):
        gym.wrappers.RecordVideo(board, "videos")


def purity(**options):
    """The warnings of a billboard for many small releases."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        board = JDPBillboard(river(horizon=20), **{"epsilon": 1.0, "users": 2_000, **options})
        board.serve([1] * S, 2)
        board.serve([1] * S, 2)
    return [str(warning.message) for warning in found if "delta" in str(warning.message)]


@pytest.mark.parametrize("options", [{}, {"schedule": 2_000}, {"schedule": 2_500, "users": 10_000}])
def test_a_delta_that_was_not_given_warns_once_of_what_it_costs(options):
    (told,) = purity(**options)
    assert told.startswith("delta is not given, so it is 0. The noise is ")
    assert told.endswith("Give delta=1e-06; or delta=0, if a pure guarantee is meant.")


def test_the_warning_about_delta_has_the_cost():
    (told,) = purity()
    times = float(told.split("The noise is ")[1].split(" times")[0])
    noises = [JDPBillboard(river(horizon=20), 1.0, delta, users=2_000).expected_noise(1) for delta in (0.0, 1e-6)]
    assert times > 3.0
    assert noises[0] > noises[1]


@pytest.mark.parametrize("options", [{"delta": 0.0}, {"delta": 1e-6}])
def test_a_delta_that_was_given_has_no_warning(options):
    assert purity(**options) == []


def test_a_shuffler_around_reports_warns_of_a_delta_that_was_not_given():
    with pytest.warns(UserWarning, match="delta is not given, so it is 1e-06"):
        board = SDPShuffler(LDPUserSide(river(), 1.0), users=100, schedule=50)
    assert board.guarantee.delta == 1e-6


@every_board
def test_pictures_stay_inside(make):
    board = make(river(render_mode="ansi"))
    board.reset()
    assert board.render_mode is None
    with pytest.raises(gym.error.Error, match=r"render.*env\.unwrapped"):
        board.render()
    assert "RiverSwim" in board.unwrapped.render()


@pytest.mark.parametrize("make", [make for name, make in BOARDS.items() if "pooled" not in name])
def test_a_release_is_a_model_to_train_on(make):
    board = make(river())
    assert board.private_model().model.n_states == S  # even before anybody came
    board.serve(policy, 40)
    env = board.private_model()
    assert isinstance(env, TabularEnv)
    assert (env.model.horizon, env.model.n_states, env.model.n_actions) == (H, S, A)
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space


def test_the_model_of_exact_counts_is_the_empirical_one():
    board = OpenBillboard(river())
    coin = np.full((S, A), 0.5)
    board.serve(coin, 100_000, rng=np.random.default_rng(0))
    model, true = board.private_model().model, board.unwrapped.model
    seen = board.release.n > 2_000
    assert seen.any()
    error = np.abs(model.transitions - true.transitions)[seen]
    assert error.max() < 5 * np.sqrt(0.25 / 2_000)
    assert model.value_of(coin) == pytest.approx(true.value_of(coin), abs=0.02)


@every_board
def test_nothing_of_a_user_is_printed(make):
    board = make(river())
    canary = np.full(2 * H + 1, 0.271828)
    board.serve(policy, np.vstack([canary, tapes(3)]))
    said = f"{board!r} {board} {board.release!r} {board.ledger!r} {board.ledger}"
    assert "0.2718" not in said
    assert "array" not in repr(board.release)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("make", [*BOARDS.values(), lambda env: LDPPerStep(env, 1.0)], ids=[*BOARDS, "per step"])
def test_a_boundary_is_not_copied(make, duplicate):
    with pytest.raises(TypeError, match=r"save_state.*load_state"):
        duplicate(make(river()))


# Stacks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "word"),
    [
        (lambda: jdp(jdp(river())), "JDPBillboard around JDPBillboard"),
        (lambda: jdp(OpenBillboard(river())), "JDPBillboard around OpenBillboard.* or around ldp"),
        (lambda: ldp(jdp(river())), "LDPUserSide around JDPBillboard.*alone"),
        (lambda: ldp(ldp(river())), "LDPUserSide around LDPUserSide"),
        (lambda: OpenBillboard(ldp(river())), "OpenBillboard around LDPUserSide"),
        (lambda: jdp(LDPPerStep(river(), 1.0)), r"JDPBillboard around LDPPerStep.*LDPUserSide"),
        (lambda: LDPPerStep(jdp(river()), 1.0), "LDPPerStep cannot be put around JDPBillboard"),
        (lambda: LDPPerStep(LDPPerStep(river(), 1.0), 1.0), "LDPPerStep cannot be put around LDPPerStep"),
        (lambda: jdp(NormalizeReward(river())), "NormalizeReward.*inside"),
        (lambda: jdp(TimeAwareObservation(TimeLimit(river(), 5))), "inside the boundary changed it from"),
    ],
)
def test_stacks_that_make_no_sense_are_refused(build, word):
    with pytest.raises((ValueError, TypeError), match=word):
        build()


@pytest.mark.parametrize(
    "call",
    [
        lambda board: board.reset(),
        lambda board: board.step(1),
        lambda board: board.serve(policy, 1),
        lambda board: board.publish(),
        lambda board: board.release,
        lambda board: board.batch,
        lambda board: board.users_left,
        lambda board: board.users_to_release,
        lambda board: board.private_model(),
        lambda board: board.begin_batch(3),
        lambda board: board.invite(tapes(1)),
        lambda board: board.audit.observe(object()),
        lambda board: board.bind(),
        lambda board: setattr(board, "request", None),
        lambda board: board.save_state("nowhere"),
        lambda board: board.load_state("nowhere"),
    ],
)
def test_every_call_on_an_inner_boundary_names_the_outer_one(call):
    """Whoever came through it would not be counted, and a budget could be overspent (found by attack)."""
    inner = ldp(river())
    outer = jdp(inner, users=4)
    outer.serve(policy, 1)
    with pytest.raises(ValueError, match=r"LDPUserSide .* Call the JDPBillboard"):
        call(inner)
    assert outer.users_left == 3
    assert "LDP" in str(inner.ledger)  # its promise holds, and may be read


def test_wrappers_between_two_boundaries_are_refused():
    with pytest.raises(ValueError, match="Autoreset between LDPUserSide and JDPBillboard"):
        jdp(Autoreset(ldp(river())))


def test_an_environment_that_resets_itself_brings_in_nobody():
    board = jdp(Autoreset(river()), users=4)
    board.reset()
    for _ in range(H):
        board.step(1)
    with pytest.raises((ValueError, gym.error.ResetNeeded)):
        board.step(1)
    assert board.release.users == 1
    assert board.users_left == 3


def test_one_report_goes_to_one_billboard():
    inner = ldp(river())
    jdp(inner)
    with pytest.raises(ValueError, match="inside a JDPBillboard already"):
        jdp(inner)


def test_a_billboard_expects_no_more_users_than_the_reports_inside():
    with pytest.raises(ValueError, match=r"users is 41.*LDPUserSide.*40"):
        jdp(ldp(river()), users=41)


@every_board
def test_what_was_calibrated_for_cannot_be_changed(make):
    board = make(river(), users=3)
    for name in ("users", "batch_size"):
        with pytest.raises(AttributeError):
            setattr(board, name, 1000)
    outside = RecordEpisodeStatistics(board)
    with pytest.raises(AttributeError):
        outside.set_wrapper_attr("users", 1000)


@pytest.mark.parametrize("counting", ["matrix-factorization", "binary-tree", "honaker-tree"])
def test_noise_for_more_releases_than_calibrated_is_never_drawn(counting):
    board = jdp(river(), users=3, counting=counting)
    board.serve(policy, 3)
    before = board.release
    with pytest.raises(BudgetExhausted):
        board.serve(policy, 1)
    with pytest.raises(RuntimeError, match="3 releases"):
        board._admission.bound.protocol.publish(
            np.zeros(board.statistic.cells, dtype=np.int64), ClosedBatch(1, 1, 1), 1
        )
    assert board.publish() is before


def test_every_boundary_is_among_the_stacks():
    made = {type(make(river())) for make in BOARDS.values()}
    missing = sorted(kind.__name__ for kind in set(BOUNDARIES.values()) - made)
    assert not missing, f"{', '.join(missing)}: add a line to BOARDS of tests/wrappers/stacks.py"


@dataclass(frozen=True, kw_only=True)
class CuratorOptions(Options):
    curator: NoiseSource


class Promise(Protocol):
    """Broken on purpose: promises a finite epsilon, and says neither how wrong its sums are nor who can repeat them."""

    @classmethod
    def stated(cls, options):
        return Guarantee(TrustModel.JDP, 1.0, 0.0, options.users, "noise")

    @classmethod
    def planned(cls, side, options, *, apart):
        return ProtocolPlan(cls.stated(options))

    def publish(self, sums, batch, releases):
        noise = np.empty(len(sums))
        self.options.curator.gaussian(noise)
        return sums * self.side.statistic.grid + noise


class Lawless(Promise):
    """Broken on purpose: names its source, and no error of its sums."""

    @classmethod
    def sources(cls, side, options):
        return {"curator": options.curator}


class Unseeded(Promise):
    """Broken on purpose: names no source, so that a seed would not be known."""

    def error(self, releases, load, *, newest):
        return no_error

    def batch_error(self, users, load):
        return no_error


class Named(Unseeded):
    """Names its source."""

    @classmethod
    def sources(cls, side, options):
        return {"curator": options.curator}


def promising(kind, seed=None):
    class Promising(Boundary):
        short = "promising"
        protocol = kind

        def __init__(self, env):
            super().__init__(env, CommonOptions(users=40))
            self.curator = NoiseSource(seed, role="curator")
            self._ready()

        def _side(self, source, statistic):
            return UserSide(statistic_of(source, "tabular"), None, self._order)

        def _protocol_options(self):
            return CuratorOptions(self.users, self._options.schedule, curator=self.curator)

    return Promising(river())


def test_who_promises_something_says_how_wrong_sums_are_and_where_noise_comes_from():
    calls = (lambda board: board.ledger, lambda board: board.serve(policy, 1), lambda board: board.release)
    for kind in (Promise, Unseeded):
        for call in calls:
            with pytest.raises(TypeError, match=r"Promising guarantees epsilon = 1.*sources\(\)"):
                call(promising(kind))
    for call in calls[1:]:
        with pytest.raises(TypeError, match=r"abstract.*Lawless.*batch_error.*error"):
            call(promising(Lawless))
    assert "seeded" in str(promising(Named, seed=1).ledger)
    board = promising(Named)
    assert "seeded" not in str(board.ledger)
    board.serve(policy, 1)
    assert board.release.users == 1


def test_what_rests_on_seeded_reports_is_seeded():
    """Found in a stack whose shuffler promised what reports with a seed do not keep. A billboard has its own noise."""
    shuffled = SDPShuffler(LDPUserSide(river(), 1.0, rng=1), users=2000)
    assert shuffled.ledger.outside.seeded
    assert not SDPShuffler(LDPUserSide(river(), 1.0), users=2000).ledger.outside.seeded
    around = JDPBillboard(LDPUserSide(river(), 1.0, rng=1), 1.0, 1e-6, users=40)
    assert [entry.seeded for entry in around.ledger.entries] == [True, False]


def test_boundaries_with_one_seed_have_streams_of_their_own():
    stack = jdp(ldp(river(), rng=3), rng=3)
    first, second = (source.uniform(1000) for source in stack._pipeline.sources().values())
    assert not np.isin(first, second).any()


@every_board
def test_what_is_published_lies_on_the_grid(make):
    """Whole transitions and rewards in millionths, before what users' bits are scaled by."""
    board = make(river())
    board.serve(policy, 20)
    if "unary" in board.ledger.sentence() or "one-step" in board.ledger.sentence():
        return  # bits are decoded to multiples of another number
    release = board.release
    if "shuffled bits" in board.ledger.sentence():  # whole numbers, of which the mean of all noise is taken off
        apart = (release.m - release.m.flat[0]) % 1
        np.testing.assert_allclose(np.minimum(apart, 1 - apart), 0.0, atol=1e-9)
        return
    assert (release.m % 1 == 0).all()
    assert ((release.r * 2**20) % 1 == 0).all()


class Failing(gym.Wrapper):
    """Fails on the third user, and says something about her."""

    users = 0

    def reset(self, **options):
        self.users += 1
        return self.env.reset(**options)

    def step(self, action):
        if self.users == 3:
            raise RuntimeError("user 3 is HIV+")
        return self.env.step(action)


@every_board
def test_an_environment_that_fails_tells_nothing_of_the_user(make):
    board = make(Failing(river()), users=10, schedule=5)
    with pytest.raises(ValueError, match=r"RuntimeError.*nothing .* released") as caught:
        board.serve(policy, 10)
    assert "HIV" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert (board.release.users, board.users_left) == (10, 0)
    board = make(Failing(river()), users=10)
    board.serve(policy, 2)
    board.reset()
    with pytest.raises(ValueError, match=r"RuntimeError.*nothing .* released"):
        board.step(1)
    assert board.release.users == 3


@pytest.mark.parametrize("make", [*BOARDS.values(), lambda env, **_: LDPPerStep(env, 1.0)], ids=[*BOARDS, "per step"])
def test_an_environment_that_fails_at_the_door_tells_nothing_either(make):
    class Fails(gym.Wrapper):
        def reset(self, **_):
            raise ValueError("patient 4711 has HIV")

    board = make(Fails(river()))
    with pytest.raises(ValueError, match="environment raised ValueError") as caught:
        board.reset()
    assert caught.value.__context__ is None


@every_board
def test_an_interrupted_batch_is_discarded(make):
    class Interrupts(gym.Wrapper):
        users = 0

        def reset(self, **options):
            self.users += 1
            if self.users == 3:
                raise KeyboardInterrupt
            return self.env.reset(**options)

    board = make(Interrupts(river()), users=20, schedule=10)
    with pytest.raises(KeyboardInterrupt):
        board.serve(policy, 10)
    assert (board.release.users, board.release.version, board.users_left) == (0, 0, 10)
    board.serve(policy, 10)
    assert (board.release.users, board.release.version, board.users_left) == (10, 1, 0)


def test_a_boundary_that_could_not_be_built_leaves_the_inner_one_alone():
    inner = ldp(river())
    with pytest.raises(ValueError, match="no mechanism 'nope'"):
        jdp(inner, counting="nope")
    inner.serve(policy, 1)


@every_board
def test_threads_come_in_one_at_a_time(make):
    board = make(river(), users=40)
    seen = []

    def work():
        for _ in range(5):
            board.serve(policy, 1)
            seen.append(board.release.version)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (board.release.users, board.release.version, board.users_left) == (40, 40, 0)


@every_board
def test_a_user_who_was_refused_at_the_door_stays_out(make):
    class Nowhere(gym.Wrapper):
        def reset(self, **options):
            return S + 90, self.env.reset(**options)[1]

    board = make(Nowhere(river()))
    with pytest.raises(ValueError, match="observation outside"):
        board.reset()
    with pytest.raises(gym.error.ResetNeeded):
        board.step(1)
    assert board.release.users == 1


def test_harmless_keys_are_bare():
    class Talks(gym.Wrapper):
        def step(self, action):
            step = self.env.step(action)
            return (*step[:4], {"TimeLimit.truncated": self.says, "withheld": 5})

    for says, told in (({"return": 17.0}, {}), (np.array([1, 2]), {}), (True, {"TimeLimit.truncated": True})):
        Talks.says = says
        board = jdp(Talks(river()))
        board.reset()
        assert board.step(1)[4] == {**told, "withheld": True}


@pytest.mark.parametrize("observe_time", [False, True])
def test_a_private_model_looks_like_the_environment(observe_time):
    board = jdp(river(observe_time=observe_time))
    assert board.private_model().observation_space == board.unwrapped.observation_space


def test_numbers_of_numpy_are_numbers():
    board = jdp(river(), epsilon=np.float32(0.5), delta=np.float64(1e-6), users=np.int64(9))
    assert str(board.ledger).startswith("(0.5, 1e-06)-JDP")
    json.dumps(board.ledger.to_dict())


def test_a_stack_is_built_before_users_come():
    inner = ldp(river())
    inner.serve(policy, 1)
    with pytest.raises(ValueError, match="LDPUserSide has met users"):
        jdp(inner)
    inner = ldp(river())
    jdp(inner)
    with pytest.raises(ValueError, match="Call the JDPBillboard"):
        inner.serve(policy, 1)


@every_board
def test_ordinary_wrappers_outside_change_nothing(make):
    """What the outside shows may even be scrambled: the boundary saw the truth (taint)."""
    plain, wrapped = make(river()), make(river())
    rng = np.random.default_rng(0)
    outside = TransformObservation(wrapped, lambda _: int(rng.integers(S)), wrapped.observation_space)
    outside = RecordEpisodeStatistics(TransformReward(outside, lambda _: 17.0))
    for tape in tapes(15):
        observation, _ = plain.reset(options={"user": tape})
        outside.reset(options={"user": tape})
        for h in range(H):
            action = int(policy[h, observation])
            observation, *_ = plain.step(action)
            outside.step(action)
    assert same_release(plain.release, wrapped.release)
    assert outside.get_wrapper_attr("ledger") == plain.ledger


@every_board
def test_ordinary_wrappers_inside_are_stepped_through(make):
    """A wrapper that changes rewards inside the boundary changes what is summed, by serve as by step."""
    served, stepped = (make(TransformReward(river(), lambda r: 1.0 - r)) for _ in range(2))
    users = tapes(10)
    served.serve(policy, users)
    by_steps(stepped, users)
    assert same_release(served.release, stepped.release)
    unchanged = make(river())
    unchanged.serve(policy, users)
    assert not (unchanged.release.r == served.release.r).all()


@every_board
def test_a_shorter_time_limit_inside_is_the_horizon(make):
    board = make(TimeLimit(river(), 3))
    assert board.sizes == (3, S, A)
    board.serve(policy[:3], tapes(4))
    assert board.release.n.shape == (3, S, A)
    board.reset()
    assert [board.step(1)[3] for _ in range(3)] == [False, False, True]


def test_a_stack_has_both_promises():
    board = jdp(ldp(river(), epsilon=3.0))
    assert [entry.model for entry in board.ledger.entries] == ["LDP", "JDP"]
    assert board.ledger.epsilon == 1.0


# Environments of others ------------------------------------------------------------------------------------------


def lake(**arguments):
    return gym.make("FrozenLake-v1", max_episode_steps=12, **arguments)


@every_board
def test_other_discrete_environments_go_through_the_step_loop(make):
    boards = [make(lake()) for _ in range(2)]
    assert boards[0].sizes == (12, 17, 4)
    plan = np.full((12, 17), 2)
    boards[0].unwrapped.reset(seed=1)
    boards[1].unwrapped.reset(seed=1)
    boards[0].serve(plan, 30)
    for _ in range(30):
        boards[1].reset()
        ended = False
        while not ended:
            _, _, terminated, truncated, _ = boards[1].step(2)
            ended = terminated or truncated
    assert same_release(boards[0].release, boards[1].release)


def test_an_early_end_is_padded_to_the_horizon():
    board = OpenBillboard(lake())
    board.serve(np.full((12, 17), 2), 200)
    release = board.release
    np.testing.assert_array_equal(release.n.sum(axis=(1, 2)), 200)  # every stage has every user
    assert release.n[11, 16, 0] > 0  # some wait in the absorbing state, where action 0 is taken
    assert release.n[:, 16, 1:].sum() == 0
    assert release.m[:, 16, 0, :16].sum() == 0
    assert release.r[:, 16].sum() == 0
    certain = release.with_certain_rows()  # that one stays there is known without data, whatever one does
    assert certain.n[:, 16].min() > 1e9
    np.testing.assert_array_equal(certain.m[:, 16, :, 16], certain.n[:, 16])
    assert certain.m[:, 16, :, :16].sum() == certain.r[:, 16].sum() == 0
    np.testing.assert_array_equal(certain.m[:, :16], release.m[:, :16])
    np.testing.assert_array_equal(release.n[1:].sum(axis=2), release.m[:-1].sum(axis=(1, 2)))  # flow in is flow out


def test_what_a_lake_taught_is_the_lake():
    """Exact counts of many users lead to the model that from_gym reads off the table."""
    board = OpenBillboard(lake())
    coin = np.full((17, 4), 0.25)
    board.serve(coin, 3_000, rng=np.random.default_rng(1))
    true = TabularModel.from_gym(gym.make("FrozenLake-v1"), horizon=12)
    assert board.private_model().model.value_of(coin) == pytest.approx(true.value_of(coin), abs=0.02)


class Strange(gym.Env):
    """Pays what it is told to; states and actions start at other numbers than 0."""

    observation_space = gym.spaces.Discrete(3, start=5)
    action_space = gym.spaces.Discrete(2, start=-1)

    def __init__(self, rewards):
        self.rewards, self.users = rewards, -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.users += 1
        return 5, {"secret": 42}

    def step(self, action):
        assert action in self.action_space
        return 7, self.rewards[self.users], False, False, {"secret": 42}


def test_spaces_may_start_anywhere():
    board = OpenBillboard(Strange([0.5] * 4), horizon=2)
    board.serve([1, 1, 1, 1], 2)
    assert board.release.m[0, 0, 1, 2] == 2.0
    assert board.release.r[1, 2, 1] == 1.0
    assert board.reset()[1] == {}
    assert board.step(0)[4] == {"withheld": True}


@pytest.mark.parametrize("reward", [1.5, -0.1, float("nan"), float("inf")])
@every_board
def test_a_reward_out_of_range_is_refused_and_nothing_of_that_user_is_released(make, reward):
    rewards = [0.5, 0.5, reward, 0.5, 0.5]
    boards = [make(TimeLimit(Strange(rewards), 2)) for _ in range(2)]
    absent = make(TimeLimit(Strange([0.5] * 5), 2))
    with pytest.raises(ValueError, match=r"reward outside \[0, 1\]") as caught:
        boards[0].serve([1, 1, 1, 1], 5)
    assert str(reward) not in str(caught.value).replace("[0, 1]", "")
    for user in range(5):
        for board in (boards[1], absent):
            board.reset()
            for _ in range(2 if user != 2 else 1):  # in `absent` she just leaves
                if board is boards[1] and user == 2:
                    with pytest.raises(ValueError, match="reward outside"):
                        board.step(0)
                else:
                    board.step(0)
    assert same_release(boards[0].release, boards[1].release)
    assert same_release(boards[0].release, absent.release)
    assert boards[0].release.users == 5


class Lax(gym.Wrapper):
    """An environment that takes any action, and says anything."""

    def __init__(self, env, says=None):
        super().__init__(env)
        self.says = says

    def step(self, action):
        observation, *rest = self.env.step(int(action) % 2)
        return (observation if self.says is None else self.says, *rest)


@every_board
def test_what_cannot_be_counted_never_reaches_a_sum(make):
    board = make(Lax(river()))
    board.reset()
    with pytest.raises(gym.error.InvalidAction, match="action 7"):
        board.step(7)
    for says in (S, -1, 10**9):
        board, absent = make(Lax(river(), says)), make(Lax(river()))
        board.reset()
        with pytest.raises(ValueError, match="observation outside") as caught:
            board.step(1)
        assert str(says) not in str(caught.value)
        absent.reset()
        absent.close()
        assert same_release(board.release, absent.release)


@every_board
def test_the_last_user_may_leave_by_closing(make):
    board = make(river(), users=3, schedule=3)
    board.serve(policy, 2)
    board.reset()
    board.step(1)
    assert board.release.users == 0
    board.close()
    assert board.release.users == 3


@pytest.mark.parametrize("name", ["ldp one-step", "ldp unary", "ldp laplace", "ldp gaussian", "jdp around ldp"])
def test_nobody_can_tell_who_left_early_where_users_report(name):
    """Whoever leaves still sends a report, of nothing: as many reports come as users did."""
    board = BOARDS[name](river())
    for _ in range(6):
        board.reset()
        board.step(0)
    board.close()
    assert board.release.users == 6
    assert board.release.m.any()  # reports of nothing are noised as all others
    assert board.release.noise_std["m"] > 0.5


def test_an_unexpected_end_is_refused():
    class Ends(gym.Wrapper):
        def step(self, action):
            observation, reward, _, truncated, info = self.env.step(action)
            return observation, reward, True, truncated, info

    board = OpenBillboard(Ends(river()))
    with pytest.raises(ValueError, match="horizon="):
        board.serve(policy, 1)


@pytest.mark.parametrize(
    ("build", "kind", "word"),
    [
        (lambda: jdp(gym.make("CliffWalking-v1")), ValueError, "no horizon.*horizon="),
        (lambda: ldp(gym.make("CartPole-v1"), statistic="tabular"), TypeError, "observation space is Box.*Discrete"),
        (lambda: LDPPerStep(gym.make("MountainCarContinuous-v0"), 1.0), TypeError, "action space is Box"),
        (lambda: jdp(river(), epsilon=0.0), ValueError, "epsilon is 0.0.*OpenBillboard"),
        (lambda: jdp(river(), epsilon=-1), ValueError, "epsilon is -1"),
        (lambda: jdp(river(), delta=1.0), ValueError, "delta is 1.0"),
        (lambda: jdp(river(), delta=-1e-6), ValueError, "delta is -1e-06"),
        (lambda: jdp(river(), delta=0.0, noise="gaussian"), ValueError, "delta is 0: Gaussian"),
        (lambda: jdp(river(), delta=0.0, counting="matrix-factorization"), ValueError, "delta is 0"),
        (
            lambda: jdp(river(), counting="matrix-factorization", noise="laplace"),
            ValueError,
            "for Gaussian noise",
        ),
        (lambda: jdp(river(), counting="tree"), ValueError, "'tree'.*batched, binary-tree"),
        (lambda: jdp(river(), noise="uniform"), ValueError, "no noise 'uniform'"),
        (lambda: jdp(river(), users=0), ValueError, "users is 0"),
        (lambda: jdp(river(), users=None), ValueError, "users is None"),
        (lambda: jdp(river(), schedule=0), ValueError, "batch_size is 0"),
        (lambda: jdp(river(), schedule=Schedule(releases=50.0)), TypeError, "releases is 50.0"),
        (lambda: jdp(river(), epsilon="1"), TypeError, "epsilon is '1'"),
        (lambda: jdp(river(), delta=None), TypeError, "delta is None"),
        (lambda: jdp(river(), epsilon=1e-300), ValueError, "epsilon is 1e-300: below 1e-09"),
        (lambda: jdp(river(), epsilon=1e-8, delta=0.0), ValueError, "noise .*larger epsilon"),
        (lambda: ldp(river(), epsilon=1e-8, randomizer="laplace"), ValueError, "noise .*larger epsilon"),
        (lambda: LDPPerStep(river(), 1e-12), ValueError, "epsilon is 1e-12: below 1e-09"),
        (lambda: jdp(river(), schedule=Schedule(releases=3)), ValueError, "releases is 3: .* 40"),
        (lambda: jdp(river(), calibration="printed"), ValueError, "calibration is 'printed': .*'exact'"),
        (
            lambda: jdp(river(), calibration="paper", counting="batched"),
            ValueError,
            "'binary-tree' with noise='laplace'",
        ),
        (lambda: jdp(ldp(river()), calibration="paper"), ValueError, "calibration='paper'.*around reports"),
        (lambda: ldp(river(), epsilon=0.0), ValueError, "epsilon is 0.0"),
        (lambda: ldp(river(), randomizer="gaussian"), ValueError, "delta is 0: Gaussian"),
        (lambda: ldp(river(), users=-2), ValueError, "users is -2"),
        (lambda: LDPPerStep(river(), 0.0), ValueError, "epsilon is 0.0"),
        (lambda: LDPPerStep(gym.make("CliffWalking-v1"), 1.0), ValueError, "has no horizon"),
        (lambda: OpenBillboard(river(), users=0), ValueError, "users is 0"),
    ],
)
def test_bad_input_gets_a_sentence_when_a_boundary_is_built(build, kind, word):
    with pytest.raises(kind, match=word):
        build()


def test_bad_input_gets_a_sentence_when_users_are_served():
    board = jdp(river())
    with pytest.raises(ValueError, match="users is 0"):
        board.serve(policy, 0)
    with pytest.raises(ValueError, match=r"shape \(2, 5\), not \(2, 11\)"):
        board.serve(policy, np.zeros((2, 5)))
    with pytest.raises(ValueError, match="The policy has shape"):
        board.serve([1, 1], 1)
    with pytest.raises(ValueError, match=r"users.* H=5, S=4, A=2"):
        board.serve(gym.make("PrivateRL/RiverSwim-v0").unwrapped.model.optimal_policy(), 1)
    with pytest.raises(ValueError, match="no tapes"):
        jdp(lake()).serve(np.zeros((12, 17), dtype=int), np.zeros((1, 25)))
    assert board.users_left == 40  # nobody was counted


@every_board
def test_a_stack_is_made_again_from_its_spec(make):
    board = make(river())
    again = gym.make(board.spec)
    assert type(again) is type(board)
    assert again.ledger == board.ledger


@pytest.mark.parametrize("randomizer", ["laplace", "gaussian"])
@pytest.mark.parametrize("when", [1, 2, 7])
def test_whoever_is_interrupted_while_users_noise_their_reports_leaves_no_bare_report(randomizer, when, monkeypatch):
    """Found in review: raw vectors of a group were added before the noise of its users."""
    board = LDPUserSide(river(), 0.01, 1e-6, randomizer=randomizer, schedule=10_000, rng=3)
    name = "geometric" if randomizer == "laplace" else "gaussian"
    original, calls = getattr(NoiseSource, name), []

    def draw(self, *arguments):
        calls.append(1)
        if len(calls) == when:
            raise KeyboardInterrupt
        return original(self, *arguments)

    monkeypatch.setattr(NoiseSource, name, draw)
    with pytest.raises(KeyboardInterrupt):
        board.serve([1] * S, 400)
    assert board.publish().version == 0  # all of them have left, and their reports are dropped
    board.serve([1] * S, 400)
    release = board.publish()
    assert release.users == 400
    for family, std in release.noise_std.items():
        array = getattr(release, family)
        assert array.std() > 0.7 * std
    assert len(calls) >= 400


@pytest.mark.parametrize("counting", ["binary-tree", "honaker-tree", "k-ary-tree", "matrix-factorization"])
def test_noise_that_was_interrupted_is_not_built_on(counting, monkeypatch, tmp_path):
    """Found in review: a tree would have gone on from a node without noise."""
    board = JDPBillboard(river(), 1.0, 0.0 if counting == "k-ary-tree" else 1e-6, users=40, counting=counting)
    board.serve([1] * S, 7)

    def interrupted(self, *arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(NoiseSource, "gaussian", interrupted)
        patch.setattr(NoiseSource, "geometric", interrupted)
        with pytest.raises((KeyboardInterrupt, RuntimeError)):  # noqa: PT012 - some of them draw ahead
            for _ in range(20):
                before = board.release
                board.serve([1] * S, 1)
    with pytest.raises(RuntimeError, match="publishes nothing more"):
        board.serve([1] * S, 1)
    with pytest.raises(RuntimeError, match="publishes nothing more"):
        board.save_state(tmp_path / "state")
    assert board.release is before


class Talkative(gym.Wrapper):
    """Tells in a warning what a user was paid."""

    def step(self, action):
        observation, reward, *rest = self.env.step(action)
        warnings.warn(f"this one was paid {reward}", stacklevel=1)
        return observation, reward, *rest


@pytest.mark.parametrize("make", [jdp, ldp, lambda env: LDPPerStep(env, 1.0)])
def test_warnings_about_a_user_stay_inside(make):
    board = make(Talkative(gym.make("PrivateRL/RiverSwim-v0", horizon=4)))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for seed in range(5):
            board.reset(seed=seed)
            for _ in range(4):
                board.step(0)
    assert not [str(one.message) for one in heard if "paid" in str(one.message)]


def test_sums_of_directions_get_no_more_noise():
    """Their reports have no largest size: a billboard around them could promise nothing."""
    users = LDPUserSide(gym.make("CartPole-v1", max_episode_steps=5), 4.0, users=10, statistic=Layers((4,)))
    with pytest.raises(ValueError, match="messages of this randomizer are unbounded"):
        JDPBillboard(users, 1.0, 1e-6, users=10)

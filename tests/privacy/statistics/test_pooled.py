"""Counts pooled over stages, and batches that grow: sensitivity, unbiasedness, and the same noise as stated."""

import itertools
import math

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.agents import DPUCBVI, PSRL, SDPPE, PrivateUCBPO, PrivateUCBVI
from private_rl_gym.agents.offline.pessimism import Sums
from private_rl_gym.envs import TabularEnv, TabularModel
from private_rl_gym.lab.regret import learn_with_regret
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy import NoiseSource
from private_rl_gym.privacy.schedule import Schedule
from private_rl_gym.privacy.statistics import PooledCounts
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard, SDPShuffler
from tests.privacy.statistics import sums


def all_users(horizon):
    """Every trajectory of two states, two actions and two rewards."""
    table = np.array(list(itertools.product(range(2), repeat=3 * horizon + 1)))
    states, actions, rewards = np.split(table, [horizon + 1, 2 * horizon + 1], axis=1)
    return Trajectories(states, actions, rewards.astype(float))


def vectors(statistic, users):
    found = np.zeros((len(users), statistic.cells), dtype=np.int64)
    for user, row in enumerate(found):
        sums.collect(statistic, users.part(user, user + 1), row, NoiseSource(0))
    return found * statistic.grid


def distances(statistic, horizon):
    """The largest L1 and squared L2 between two users, and their different vectors."""
    different = np.unique(vectors(statistic, all_users(horizon)), axis=0)
    l1 = max(np.abs(different - row).sum(axis=1).max() for row in different)
    l2 = max(((different - row) ** 2).sum(axis=1).max() for row in different)
    return l1, l2, different


@pytest.mark.parametrize(
    "statistic", [PooledCounts(3, 2, 2), PooledCounts(3, 2, 2, raw_rewards=True), PooledCounts(3, 2, 2, bits=True)]
)
def test_no_pair_of_users_is_farther_apart_than_stated(statistic):
    """All pairs of the 1,024 users of three steps."""
    l1, l2, different = distances(statistic, 3)
    stated = statistic.sensitivity()
    assert 0.75 * stated.l1 <= l1 <= stated.l1 + 1e-5
    assert 0.75 * stated.l2**2 <= l2 <= stated.l2**2 + 1e-5
    if statistic.bits:
        assert max((different > row).sum(axis=1).max() for row in different) <= math.ceil(stated.l1 / 2)


class EveryStep(PooledCounts):
    """A planted mistake: every step of a user counts, and not only their first in each cell."""

    def _add(self, users, sums, request, uniforms):
        for stage in range(self.horizon):
            part = Trajectories(
                users.states[:, stage : stage + 2], users.actions[:, [stage]], users.rewards[:, [stage]]
            )
            super()._add(part, sums, request, uniforms)


def test_counting_every_step_would_break_the_bound():
    """Where there are fewer cells than stages, as here: five stages, four cells."""
    stays = Trajectories(np.array([[0] * 6, [1] * 6]), np.array([[0] * 5, [1] * 5]), np.ones((2, 5)))
    sound, broken = PooledCounts(5, 2, 2), EveryStep(5, 2, 2)
    one, other = vectors(sound, stays)
    assert np.abs(one - other).sum() <= sound.sensitivity().l1
    one, other = vectors(broken, stays)
    assert np.abs(one - other).sum() > broken.sensitivity().l1
    assert ((one - other) ** 2).sum() > broken.sensitivity().l2 ** 2


def test_a_cell_counts_once_and_with_its_first_step():
    states, rewards = np.array([[0, 0, 1, 0, 1]]), np.array([[1.0, 0.0, 1.0, 0.0]])
    users = Trajectories(states, np.zeros((1, 4), int), rewards)
    statistic = PooledCounts(4, 2, 1)
    counts = statistic.sums(vectors(statistic, users)[0])
    np.testing.assert_array_equal(counts["m"][0, :, 0], [[1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_allclose(counts["r"][0, :, 0], [1.0, 1.0])
    assert all((family == family[:1]).all() for family in counts.values())  # every stage has the same counts


P = np.array(
    [[[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]], [[0.3, 0.5, 0.2], [0.5, 0.3, 0.2]], [[0.1, 0.4, 0.5], [0.7, 0.1, 0.2]]]
)
R = np.array([[0.2, 0.7], [0.5, 0.1], [0.9, 0.35]])
WANDER = TabularModel(P, R, [0.5, 0.3, 0.2], 8, "fixed")


@pytest.mark.parametrize(
    "make", [lambda: PooledCounts(8, 3, 2), lambda: PooledCounts(8, 3, 2, bits=True)], ids=["counts", "bits"]
)
def test_next_states_and_rewards_are_counted_as_often_as_they_happen(make):
    """Five standard errors: chance fails this once in 50,000 times."""
    rng, users = np.random.default_rng(3), 40_000
    found = WANDER.rollout(rng.integers(2, size=(8, 3)), WANDER.draw_users(rng, users))
    statistic = make()
    counted = np.zeros(statistic.cells, dtype=np.int64)
    sums.collect(statistic, found, counted, NoiseSource(1))
    n, m, r = (family[0] for family in statistic.sums(counted * statistic.grid).values())
    assert n.min() > 5_000
    each = n[..., None]
    assert (np.abs(m / each - P) < 5 * np.sqrt(P * (1 - P) / each)).all()
    assert (np.abs(r / n - R) < 5 * np.sqrt(R * (1 - R) / n) + 1e-5).all()


# Boards --------------------------------------------------------------------------------------------------------------

H, S, A = 6, 3, 2
UP = [1] * S


def river():
    return gym.make("PrivateRL/RiverSwim-v0", horizon=H, n_states=S)


SDP = pytest.param("sdp", marks=pytest.mark.slow)  # every size of batch is calibrated
BOARDS = {
    "open": lambda **o: OpenBillboard(river(), users=400, stationary=True, **o),
    "jdp": lambda **o: JDPBillboard(river(), 2.0, 1e-6, users=400, stationary=True, **o),
    "jdp, pure": lambda **o: JDPBillboard(river(), 2.0, 0.0, users=400, stationary=True, **o),
    "ldp": lambda **o: LDPUserSide(river(), 2.0, users=400, stationary=True, **o),
    "ldp, laplace": lambda **o: LDPUserSide(river(), 2.0, users=400, randomizer="laplace", stationary=True, **o),
    "sdp": lambda **o: SDPShuffler(river(), 2.0, 1e-4, users=400, stationary=True, **o),
    "jdp around ldp": lambda **o: JDPBillboard(
        LDPUserSide(river(), 2.0, users=400, stationary=True), 2.0, 1e-6, users=400, **o
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOARDS)
def test_releases_state_the_noise_that_they_carry_and_are_the_same_at_every_stage(name):
    """Over 40 boards with 6 quiet entries each: a standard deviation within 25 %, five standard errors.

    Where users noise their own reports, what is stated also covers entries that are not quiet.
    """
    found, stated = [], 0.0
    for seed in range(40):
        board = BOARDS[name](schedule=400, rng=seed)
        board.unwrapped.reset(seed=1)
        board.serve(UP, 400)
        release = board.release
        assert all((family == family[:1]).all() for family in (release.n, release.m, release.r))
        found.append(release.m[0, :, 0].ravel()[:6])  # nobody swims left
        stated = release.noise_std["m"]
    if name == "open":
        assert not np.any(found)
    elif name in ("ldp", "jdp around ldp"):
        quiet = board.expected_noise(400)  # of an entry without users, with reward 0 or 1
        assert np.std(found) == pytest.approx(quiet, rel=0.25)
        assert quiet <= stated
    else:
        assert np.std(found) == pytest.approx(stated, rel=0.25)


@pytest.mark.slow
@pytest.mark.parametrize("cls", [DPUCBVI, PrivateUCBVI, PSRL, PrivateUCBPO])
def test_learners_of_counts_learn_much_more_from_pooled_ones(cls):
    """Measured at 20,000 users: two to seven times less regret."""

    def regret(**options):
        board = JDPBillboard(gym.make("PrivateRL/RiverSwim-v0", horizon=20), 4.0, 1e-6, users=20_000, rng=1, **options)
        board.unwrapped.reset(seed=2)
        return learn_with_regret(cls("TabularPolicy", board, seed=3), 20_000)[-1]

    assert regret(schedule=Schedule(50, growth=0.1), stationary=True) < 0.6 * regret(schedule=100)


@pytest.mark.parametrize("name", ["open", "jdp", "ldp", SDP, "jdp around ldp"])
def test_pooled_counts_say_that_they_are(name):
    board = BOARDS[name](schedule=400)
    board.serve(UP, 400)
    assert board.release.pooled
    with pytest.raises(ValueError, match="have no start states"):
        board.private_model()


def test_logged_users_count_once_and_not_at_every_stage():
    """One batch without noise: what is learned from pooled counts is what is learned from their sum over stages."""
    found = []
    for stationary in (False, True):
        board = OpenBillboard(TabularEnv(WANDER), users=2_000, schedule=2_000, stationary=stationary)
        board.unwrapped.reset(seed=4)
        board.serve(np.zeros((8, 3), int), 2_000)
        sums = Sums.of(board.release, stationary=True)
        assert not sums.noise.any()
        phases = 1 if stationary else 2
        assert sums.m.shape == (phases, 3, 2, 3)
        assert sums.r.shape == (phases, 3, 2)
        found.append(sums.m.sum(axis=(1, 2, 3)))
    assert found[0].tolist() == [7 * 2_000, 8 * 2_000]  # the stages before the last, and all
    assert 2_000 < found[1][0] <= 3 * 2_000  # at most three cells with this action


def test_a_learner_that_goes_stage_by_stage_says_what_it_needs_before_anybody_comes():
    board = LDPUserSide(river(), 4.0, users=20_000, stationary=True)
    with pytest.raises(ValueError, match="without stationary=True"):
        SDPPE("TabularPolicy", board)
    assert board.users_left == 20_000


# Batches that grow ---------------------------------------------------------------------------------------------------


def test_batches_grow_with_the_users_before_them():
    board = OpenBillboard(river(), users=400, schedule=Schedule(10, growth=0.5))
    sizes = []
    while board.users_left:
        before = board.release.users
        board.serve(UP, board.users_to_release)
        sizes.append(board.release.users - before)
    assert sizes == [10, 10, 10, 15, 22, 33, 50, 75, 112, 63]
    assert len(sizes) == board.planned_batches == Schedule(10, 0.5).batches(400)
    assert Schedule(10, 0.5).batches(400, 45) == 6


@pytest.mark.parametrize("early", [(), (5,), (5, 40, 200)])
def test_a_board_closes_no_more_batches_than_its_noise_is_made_for(early):
    """Also where batches are closed early, which takes releases that were planned for later."""
    board = BOARDS["jdp"](schedule=Schedule(20, growth=0.4), rng=4)
    for users in early:
        board.serve(UP, users)
        if board.closes_early:
            board.publish()
    board.serve(UP, board.users_left)
    assert board.release.users == 400
    assert board.release.version <= board.planned_batches
    if not early:
        assert board.release.version == board.planned_batches


@pytest.mark.parametrize("kind", ["open", "jdp", "ldp", SDP])
def test_users_who_come_together_fill_the_same_batches(kind):
    whole, parts = (BOARDS[kind](schedule=Schedule(20, growth=0.4), rng=4) for _ in range(2))
    for board, groups in ((whole, [390]), (parts, [1, 19, 20, 7, 150, 193])):
        board.unwrapped.reset(seed=5)
        for users in groups:
            board.serve(UP, users)
    assert whole.release.version == parts.release.version > 3
    np.testing.assert_array_equal(whole.release.m, parts.release.m)


@pytest.mark.slow
def test_few_releases_need_less_noise():
    many, few = (
        JDPBillboard(river(), 1.0, 1e-6, users=50_000, schedule=Schedule(100, growth=growth)) for growth in (0.0, 0.25)
    )
    assert few.planned_batches < 30 < many.planned_batches
    scale = [board.audit.noises([100])[0].scale for board in (many, few)]
    assert scale[1] < scale[0]


def test_a_saved_board_goes_on_with_its_growing_batches(tmp_path):
    def make(**options):
        return BOARDS["jdp"](**{"schedule": Schedule(20, growth=0.4), "rng": 4, **options})

    straight, first, second = make(), make(), make()
    for board in (straight, first):
        board.unwrapped.reset(seed=5)
        board.serve(UP, 130)
    first.save_state(tmp_path / "state")
    with pytest.raises(ValueError, match="growth"):
        make(schedule=Schedule(growth=0.3)).load_state(tmp_path / "state")
    second.load_state(tmp_path / "state")
    for board in (straight, second):
        board.serve(UP, 200)
    np.testing.assert_array_equal(straight.release.m, second.release.m)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: OpenBillboard(river(), schedule=Schedule(growth=-0.1)), "growth is -0.1"),
        (lambda: OpenBillboard(river(), schedule=Schedule(growth=1.5)), "growth is 1.5"),
        (lambda: OpenBillboard(river(), statistic="staged-reports", stationary=True), "stationary=True"),
        (lambda: JDPBillboard(river(), 1.0, 0.0, users=9, stationary=True, calibration="paper"), "stationary=True"),
        (lambda: JDPBillboard(river(), 1.0, 0.0, users=9, stationary=True, public_start=True), "stationary=True"),
        (lambda: LDPUserSide(river(), 1.0, users=9, randomizer="unary", stationary=True), "unary"),
        (lambda: SDPShuffler(river(), 1.0, 1e-4, users=400, stationary=True, calibration="paper"), "stationary=True"),
        (
            lambda: SDPShuffler(river(), 1.0, 1e-4, users=400, statistic="staged-reports", stationary=True),
            "stationary=True",
        ),
        (
            lambda: JDPBillboard(LDPUserSide(river(), 1.0, users=9), 1.0, 0.0, users=9, stationary=True),
            "LDPUserSide inside",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()

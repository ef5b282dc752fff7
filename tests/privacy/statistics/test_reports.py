"""Reports of single steps: how far a user moves them, that what they say is unbiased, and that noise follows the ask.

Seeds are fixed. A statistical test says how many deviations it allows, and so how often chance alone would fail it.
"""

import itertools
import math

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.envs import TabularEnv, TabularModel
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy import NoiseSource
from private_rl_gym.privacy.randomizers import randomized
from private_rl_gym.privacy.requests import Values, Wanted
from private_rl_gym.privacy.statistics.reports import Reports
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard, SDPShuffler
from tests.privacy.statistics import sums

H, S, A = 6, 4, 2
ALL = np.ones((S, A), dtype=bool)
UP = [1] * S
FIVE = Wanted(ALL, most=5)


def river(**options):
    return gym.make("PrivateRL/RiverSwim-v0", **{"horizon": H, "n_states": S, **options})


def jdp(env=None, **options):
    options = {"epsilon": 1.0, "delta": 1e-6, "users": 400, "schedule": 20, "statistic": "reports", **options}
    return JDPBillboard(river() if env is None else env, **{"rng": 5, **options})


def ldp(env=None, **options):
    options = {"epsilon": 2.0, "users": 400, "schedule": 20, "statistic": "reports", "rng": 6, **options}
    return LDPUserSide(river() if env is None else env, **options)


def sdp(env=None, **options):
    options = {"epsilon": 2.0, "delta": 1e-6, "users": 400, "schedule": 20, "rng": 7, **options}
    return SDPShuffler(river() if env is None else env, **options)


BOARDS = {
    "open": lambda **o: OpenBillboard(
        o.pop("env", None) or river(), **{"users": 400, "schedule": 20, "statistic": "reports", "rng": 4, **o}
    ),
    "jdp": jdp,
    "ldp": ldp,
    "sdp": lambda env=None, **o: sdp(env, statistic="reports", **o),
    "jdp around ldp": lambda env=None, **o: jdp(ldp(env, **o), statistic=None, **o),
    "sdp around ldp": lambda env=None, **o: sdp(ldp(env, **o), epsilon=None, **o),
}
every_board = pytest.mark.parametrize("make", BOARDS.values(), ids=BOARDS)


def vector(statistic, users, ask, seed=0):
    found = np.zeros(statistic.cells, dtype=np.int64)
    sums.collect(statistic, users, found, NoiseSource(seed), ask)
    return found


# Sensitivity ---------------------------------------------------------------------------------------------------------


def all_users(horizon):
    """Every trajectory of two states, two actions and two rewards."""
    choices = itertools.product(range(2), repeat=3 * horizon + 1)
    table = np.array(list(choices))
    states, actions, rewards = np.split(table, [horizon + 1, 2 * horizon + 1], axis=1)
    return Trajectories(states, actions, rewards.astype(float))


@pytest.mark.slow
@pytest.mark.parametrize(("most", "staged"), [(1, False), (2, False), (3, False), (1, True), (3, True)])
def test_no_pair_of_users_is_farther_apart_than_stated_and_some_are_as_far(most, staged):
    """All pairs of the 1,024 users of three steps, under several asks, each pair with the same randomness."""
    users, statistic = all_users(3), Reports(3, 2, 2, staged=staged)
    stated, farthest = statistic.sensitivity(load=most), 0
    cells = [[[True, True], [True, True]], [[True, False], [False, True]], [[False, True], [False, False]]]
    for wanted, (anywhere, starts) in itertools.product(cells, [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (0.3, 0.3)]):
        ask = Wanted(np.array(wanted), anywhere, starts, most, by_stage=staged)
        assert statistic.load(ask) == most
        for seed in range(1 if anywhere == starts == 0.0 else 3):
            vectors = np.array([vector(statistic, users.part(i, i + 1), ask, seed) for i in range(len(users))])
            assert vectors.max() <= 1
            assert vectors.min() >= 0
            different = np.unique(vectors, axis=0)
            ones, shared = different.sum(axis=1), different @ different.T
            apart = ones[:, None] + ones - 2 * shared  # L1, and squared L2, as entries are bits
            farthest = max(farthest, apart.max())
            assert (ones[:, None] - shared).max() <= math.ceil(stated.l1 / 2) == most  # as many entries go up
    assert farthest == stated.l1 == pytest.approx(stated.l2**2) == 2 * most


def test_a_cell_is_reported_once():
    """Else squared L2 would be 2 k^2."""
    same = Trajectories(np.zeros((1, 7), int), np.zeros((1, 6), int), np.ones((1, 6)))
    assert vector(Reports(6, 2, 1), same, Wanted(np.ones((2, 1), dtype=bool), most=5)).sum() == 1


def test_reports_of_all_steps_with_their_stages_are_counts():
    """Rewards are bits here, so that nothing is drawn at random."""
    users = all_users(3)
    statistic, ask = Reports(3, 2, 2, staged=True), Wanted(np.ones((2, 2), dtype=bool), most=3, by_stage=True)
    reports = statistic.sums(vector(statistic, users, ask).astype(float))["reports"]
    expected = np.zeros(reports.shape)
    for user, h in itertools.product(range(len(users)), range(3)):
        s, following = users.states[user, h : h + 2]
        expected[h, s, users.actions[user, h], following, int(users.rewards[user, h])] += 1
    np.testing.assert_array_equal(reports, expected)


def test_reports_that_do_not_say_their_stage_stand_at_the_first():
    users, ask = all_users(3), Wanted(np.ones((2, 2), dtype=bool), anywhere=0.4, starts=0.2, most=2)
    staged = Reports(3, 2, 2, staged=True)
    plain = Reports(3, 2, 2).sums(vector(Reports(3, 2, 2), users, ask).astype(float))
    sums = staged.sums(vector(staged, users, ask).astype(float))
    np.testing.assert_array_equal(sums["reports"][0], plain["reports"])
    np.testing.assert_array_equal(sums["starts"], plain["starts"])
    assert not sums["reports"][1:].any()


# Unbiased ------------------------------------------------------------------------------------------------------------

P = np.array(
    [[[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]], [[0.3, 0.5, 0.2], [0.5, 0.3, 0.2]], [[0.1, 0.4, 0.5], [0.7, 0.1, 0.2]]]
)
R = np.array([[0.2, 0.7], [0.5, 0.1], [0.9, 0.35]])
WANDER = TabularModel(P, R, [0.5, 0.3, 0.2], 8, "fixed")
WANTED = np.array([[True, False], [False, True], [True, False]])
ANY = np.ones((3, 2), dtype=bool)
ASKS = {
    "one of any": Wanted(ANY),
    "one wanted": Wanted(WANTED),
    "five of any": Wanted(ANY, most=5),
    "two wanted": Wanted(WANTED, most=2),
    "anywhere": Wanted(WANTED, anywhere=1.0),
    "of all kinds": Wanted(WANTED, anywhere=0.4, starts=0.2, most=2),
    "by stage": Wanted(WANTED, anywhere=0.2, most=3, by_stage=True),
}
DEVIATIONS = 5.0  # of 36 numbers, chance exceeds this about once in 50,000 times


def worst_deviation(statistic, ask, users=40_000):
    """The largest distance of a reported frequency, or a mean reward, from the model's, in standard errors."""
    rng = np.random.default_rng(3)
    policy = rng.integers(2, size=(8, 3))
    found = WANDER.rollout(policy, WANDER.draw_users(rng, users))
    reports = statistic.sums(vector(statistic, found, ask).astype(float))["reports"]
    reports = reports.reshape(-1, 3, 2, 3, 2).sum(axis=0)  # over stages, if there are any
    n = reports.sum(axis=(2, 3))
    assert (n >= 200).sum() >= 3
    some = n >= 200
    p, r, each = P[some], R[some], n[some]
    moves = np.abs(reports.sum(axis=3)[some] / each[:, None] - p) / np.sqrt(p * (1 - p) / each[:, None])
    bits = np.abs(reports[..., 1].sum(axis=2)[some] / each - r) / np.sqrt(r * (1 - r) / each)
    return max(moves.max(), bits.max())


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
def test_next_states_and_rewards_are_reported_as_often_as_they_happen(ask):
    """Rewards are no bits here, so that rounding is tested too."""
    assert worst_deviation(Reports(8, 3, 2, staged=ask.by_stage), ask) < DEVIATIONS


class Hindsight(Reports):
    """Reports chosen when the episode is over: the most wanted step of all (the last state's), or the last one."""

    ranked = True

    def places(self, users, ask, uniforms):
        out = np.full((len(users), self.horizon), -1)
        for user in range(len(users)):
            steps = [h for h in range(self.horizon) if ask.cells[users.states[user, h], users.actions[user, h]]]
            if steps:
                h = max(
                    steps, key=lambda h: (users.states[user, h] if self.ranked else 0, h if not self.ranked else -h)
                )
                one = users.part(user, user + 1)
                only = Trajectories(one.states[:, h : h + 2], one.actions[:, h : h + 1], one.rewards[:, h : h + 1])
                out[user] = super().places(only, Wanted(ask.cells), uniforms[user : user + 1])[0]
        return out


@pytest.mark.parametrize("ranked", [True, False])
def test_a_choice_that_knows_what_comes_next_is_biased_and_caught(ranked):
    statistic = Hindsight(8, 3, 2)
    statistic.ranked = ranked
    assert worst_deviation(statistic, Wanted(WANTED), users=20_000) > 2 * DEVIATIONS


class Heard(Reports):
    """Reports that remember what users chose to say."""

    def places(self, users, ask, uniforms):
        self.chosen = super().places(users, ask, uniforms)
        return self.chosen


def test_local_reports_are_unbiased():
    """Means over 300 runs within 5 standard errors; 100 numbers are compared, so chance fails this in 1 of 20,000."""
    model = river().unwrapped.model
    users = model.rollout(np.array(UP), model.draw_users(np.random.default_rng(2), 60))
    statistic, ask, found, truth = Heard(H, S, A), Wanted(ALL, anywhere=0.5, starts=0.2), [], []
    randomizer = randomized(statistic, 3.0, 0.0)
    for seed in range(300):
        sent = np.zeros(sums.size(randomizer), dtype=np.int64)
        sums.collect(randomizer, users, sent, NoiseSource(seed), ask)
        assert sent[-1] == 60
        released = sums.decoded(randomizer, sent)
        found.append(np.concatenate([released["starts"], released["reports"].ravel()]))
        said = statistic.chosen[:, 0]  # with the very same choices
        truth.append(np.bincount(said[said >= 0], minlength=statistic.cells))
    errors = np.array(found) - np.array(truth)
    assert (np.abs(errors.mean(axis=0)) <= 5 * errors.std(axis=0) / np.sqrt(300)).all()
    quiet = ~np.any(truth, axis=0)
    assert errors[:, quiet].std() == pytest.approx(math.sqrt(60 * randomizer.subsets.variance), rel=0.05)


# Noise that follows the ask ------------------------------------------------------------------------------------------


def spread(make, asks, boards=150):
    """Standard deviation of the noise of one batch in a cell that nobody is in, and what the release says."""
    found = []
    for seed in range(boards):
        board = make(seed)
        for ask in asks:
            board.serve(UP, 20 // len(asks), ask)
        found.append(board.batch.reports[:, 0].ravel())  # nobody goes left
    return float(np.std(found)), board.batch.noise_std["reports"]


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_noise_of_a_batch_follows_the_largest_number_that_anyone_was_asked_for(delta):
    """Within 5 %, 3 deviations with Laplace noise over 4,800 draws; that for one report is half of it, or a fifth."""
    one, five = Wanted(ALL), FIVE
    expected = {most: jdp(delta=delta).expected_noise(20, Wanted(ALL, most=most)) for most in (1, 5)}
    assert expected[5] > 1.9 * expected[1]
    for asks, most in ([one], 1), ([five], 5), ([five, one], 5), ([one, five], 5):
        empirical, stated = spread(lambda seed: jdp(rng=seed, delta=delta), asks)
        assert stated == pytest.approx(expected[most])
        assert empirical == pytest.approx(stated, rel=0.05)


def test_a_release_of_several_batches_states_the_noise_of_all():
    board = jdp()
    single = {most: board.expected_noise(20, Wanted(ALL, most=most)) for most in (1, 5)}
    board.serve(UP, 20, Wanted(ALL))
    board.serve(UP, 40, FIVE)
    assert board.release.noise_std["reports"] == pytest.approx(np.sqrt(single[1] ** 2 + 2 * single[5] ** 2))


@pytest.mark.slow
@every_board
def test_it_does_not_show_whether_users_stayed(make):
    """In one world all users of a batch walk to the end, in the other they leave after a step."""
    boards = []
    for stay in (True, False):
        board = make(schedule=10, users=20)
        board.request = FIVE
        for _ in range(10):
            board.reset()
            for _ in range(H if stay else 1):
                board.step(1)
        board.close()
        boards.append(board)
    stayed, left = boards
    assert stayed.batch.noise_std == left.batch.noise_std
    assert stayed.release.noise_std == left.release.noise_std
    assert stayed.batch.users == left.batch.users == 10


def walk(board, *, asked, later):
    """Meet a user with one ask, and set another one while she is there."""
    board.request = asked
    board.reset()
    board.step(1)
    board.request = later
    for _ in range(H - 1):
        board.step(1)


@pytest.mark.parametrize(("asked", "later", "said"), [(Wanted(ALL), FIVE, 1), (FIVE, Wanted(ALL), 4)])
def test_a_user_answers_the_ask_that_she_came_with(asked, later, said):
    board = BOARDS["open"](schedule=1)
    board.invite(np.full((1, 1 + 2 * H), 0.8))  # she swims up, and says so of four states
    walk(board, asked=asked, later=later)
    assert board.release.reports.sum() == said


def test_noise_is_for_the_ask_that_users_came_with():
    """Found by reading: an ask that was set while she walked, by someone who saw her walk, showed in the noise."""
    board = jdp(schedule=1)
    single = {most: board.expected_noise(1, Wanted(ALL, most=most)) for most in (1, 2, 5)}
    walk(board, asked=Wanted(ALL), later=FIVE)
    assert board.release.noise_std["reports"] == pytest.approx(single[1])
    board.reset()
    board.serve(UP, 1, Wanted(ALL, most=2))  # she leaves, asked for five
    assert board.release.users == 3
    assert board.release.noise_std["reports"] == pytest.approx(np.hypot(np.hypot(single[1], single[2]), single[5]))


def test_few_reports_get_laplace_noise_and_many_get_gaussian_where_delta_allows():
    big = Reports(40, 8, 4)
    env = TabularEnv(TabularModel(np.full((8, 4, 8), 1 / 8), np.full((8, 4), 0.5), horizon=40))
    laws = {}
    for delta in (0.0, 1e-6):
        board = jdp(env, delta=delta)
        for most in (1, 30):
            board.request = Wanted(np.ones((8, 4), dtype=bool), most=most)
            (noise,) = board.audit.noises([20])
            laws[delta, most] = noise.law
            assert noise.scale <= (2 * most) * (1 + 1e-9)  # at epsilon = 1, never more than pure Laplace noise
            if noise.law == "laplace":
                assert noise.scale == pytest.approx(2 * most, rel=1e-4)
    assert laws == {(0.0, 1): "laplace", (0.0, 30): "laplace", (1e-6, 1): "laplace", (1e-6, 30): "gaussian"}
    assert jdp(delta=0.0).guarantee.delta == 0.0
    assert big.sensitivity(load=30).l1 == 60.0


@pytest.mark.parametrize("epsilon", [1.0, 1000.0])
def test_the_ledger_states_what_the_costliest_batch_costs(epsilon):
    """Found by attack: noise is never narrower than a thirtieth of a step, and one report is then cheaper than five."""
    board = jdp(epsilon=epsilon, delta=0.0)
    board.request = FIVE
    (noise,) = board.audit.noises([20])
    assert 2 * 5 / noise.scale <= board.guarantee.epsilon * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 5])
@pytest.mark.parametrize("name", BOARDS)
def test_expected_noise_is_that_of_a_batch(name, most):
    """Over 150 batches with 32 entries each: within 5 %, and a shuffler to some percent."""
    ask = Wanted(ALL, most=most)
    board = BOARDS[name]()
    empirical, _ = spread(lambda seed: BOARDS[name](rng=seed), [ask])
    expected = board.expected_noise(20, ask)
    assert expected == 0.0 if name == "open" else expected > 1.0
    assert empirical == pytest.approx(expected, rel=0.06)


def test_a_board_around_reports_states_the_noise_that_its_decoding_widens():
    """Found by reading: noise on counts was stated without the gain. Here it is most of all noise."""
    quiet = jdp(ldp(), epsilon=0.05, statistic=None)
    empirical, _ = spread(lambda seed: jdp(ldp(rng=seed), epsilon=0.05, statistic=None, rng=seed), [None])
    assert empirical == pytest.approx(quiet.expected_noise(20), rel=0.05)
    assert quiet.audit.pipeline.side.randomizer.subsets.gain > 1.3


# Files, refusals, other environments ---------------------------------------------------------------------------------


@every_board
def test_a_saved_board_goes_on_bit_for_bit_with_its_ask_and_its_choices(make, tmp_path):
    goes_on(make, Wanted(ALL, anywhere=0.3, starts=0.1, most=3), tmp_path)


def test_a_saved_board_remembers_that_stages_were_asked_for(tmp_path):
    goes_on(lambda: jdp(statistic="staged-reports"), Wanted(ALL, most=3, by_stage=True), tmp_path)


def goes_on(make, ask, tmp_path):
    straight, first, second = (make() for _ in range(3))
    for board in (straight, first):
        board.unwrapped.reset(seed=4)
        board.serve(UP, 30, ask)
    first.save_state(tmp_path / "state")
    second.load_state(tmp_path / "state")
    assert (second.request.most, second.request.by_stage) == (3, ask.by_stage)
    np.testing.assert_array_equal(second.request.cells, ALL)
    for users in (5, 25, 40):
        for board in (straight, second):
            board.serve(UP, users)
        for family in ("starts", "reports"):
            np.testing.assert_array_equal(getattr(straight.release, family), getattr(second.release, family))
        assert straight.release.noise_std == second.release.noise_std


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (Wanted(np.ones((S, A + 1), dtype=bool)), r"shape \(4, 3\).*True or False"),
        (Wanted(np.ones((S, A))), "type float64"),
        (Wanted(ALL, anywhere=-0.1), "anywhere is .* starts is"),
        (Wanted(ALL, anywhere=0.7, starts=0.4), "anywhere is .* starts is"),
        (Wanted(ALL, anywhere=float("nan")), "anywhere is .* starts is"),
        (Wanted(ALL, most=0), "most is 0"),
        (Wanted(ALL, most=H + 1), f"most is {H + 1}.* {H} steps"),
        (Wanted(ALL, most=1.5), "most is 1.5"),
        (Wanted(ALL, by_stage=1), "by_stage is of type int"),
        (Wanted(ALL, by_stage=True), "staged-reports"),
    ],
)
def test_an_ask_that_nobody_can_answer_is_refused_with_a_sentence(ask, said):
    with pytest.raises((ValueError, TypeError), match=said):
        jdp().serve(UP, 1, ask)


def test_asks_of_another_kind_and_mechanisms_without_a_proof_are_refused():
    with pytest.raises(TypeError, match=r"Values.*Wanted"):
        jdp().serve(UP, 1, Values(np.zeros((H + 1, S))))
    for counting in ("binary-tree", "matrix-factorization"):
        with pytest.raises(ValueError, match=f"counting is '{counting}'"):
            jdp(counting=counting)
    with pytest.raises(ValueError, match=r"randomizer is 'laplace'.*'subset'"):
        ldp(randomizer="laplace")
    with pytest.raises(ValueError, match=r"leave .*public_start"):
        jdp(public_start=True)


@pytest.mark.slow
@every_board
def test_users_whose_episodes_end_early_report_as_others_do(make):
    """FrozenLake ends in holes: the state where users wait is one more, and all of its steps are certain."""
    env = gym.make("FrozenLake-v1", max_episode_steps=H)
    board = make(env=env, schedule=20, users=40)
    _, states, actions = board.sizes
    assert states == 17
    board.serve([1] * states, 40, Wanted(np.ones((states, actions), dtype=bool), most=H))
    release = board.release
    assert release.reports.shape == (17, 4, 17, 2)
    assert (release.version, release.users) == (2, 40)
    assert release.with_certain_rows().reports[16, :, :16].sum() == 0
    if make is BOARDS["open"]:
        waiting = release.reports[16]
        assert waiting.sum() > 0
        assert waiting[:, :16].sum() == waiting[..., 1].sum() == 0


class Sets:
    """An observer who counts the sets that users send."""

    def __init__(self, cells):
        self.cells, self.sent = cells, 0

    def left(self, users, count):
        pass

    def reported(self, vector):
        self.sent += vector[self.cells :].sum()


def test_a_local_user_sends_one_set_whatever_she_is_asked_for():
    for board in (ldp(), jdp(ldp(), statistic=None), sdp(ldp(), epsilon=None)):
        sets = Sets(board.statistic.cells)
        board.audit.observe(sets)
        board.serve(UP, 40, FIVE)
        assert sets.sent == 40
        assert board.audit.pipeline.side.sensitivity().l1 == 2.0
        assert (board.expected_noise(20, FIVE)) == board.expected_noise(20, Wanted(ALL))


def test_users_who_left_early_send_a_set_as_well():
    randomizer = randomized(Reports(H, S, A), 3.0, 0.0)
    sent = np.zeros(sums.size(randomizer), dtype=np.int64)
    randomizer.send(None, 40, None, NoiseSource(0), sent)
    assert sent[-1] == 40


def test_compiled_code_never_meets_a_request_that_does_not_fit():
    """Wanted cells of another size would be read beyond their end, and steps seen there written beyond an array's."""
    users, small = Trajectories(np.full((1, H + 1), S - 1), np.zeros((1, H), int), np.ones((1, H))), Reports(H, S, A)
    for what in (small, randomized(small, 3.0, 0.0)):
        for wrong in (Wanted(ALL[:1]), Wanted(ALL, most=H + 1), Wanted(ALL, by_stage=True)):
            found = np.zeros(sums.size(what), dtype=np.int64)
            with pytest.raises(ValueError, match=r"cells have shape|most is|asked for stages"):
                sums.collect(what, users, found, NoiseSource(0), wrong)
            assert not found.any()


def test_shuffled_messages_and_their_sum_have_one_law():
    """Deviations over 60 boards with 32 entries each: within a tenth."""
    found = [
        spread(lambda seed, s=s: BOARDS["sdp"](rng=seed, simulation=s, epsilon=8.0), [FIVE], boards=60)[0]
        for s in ("aggregate", "messages")
    ]
    assert found[0] == pytest.approx(found[1], rel=0.1)

"""Linear moments: sensitivity by search, what is summed, what noise they carry, and what is calibrated."""

import itertools
import math

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import private_rl_gym  # noqa: F401
from private_rl_gym.envs import TabularEnv, TabularModel
from private_rl_gym.planning import LinearFeatures, Policy
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.accounting.calibration import calibrate
from private_rl_gym.privacy.accounting.conversion import gaussian_epsilon, gaussian_mu
from private_rl_gym.privacy.errors import CombinedError, GaussianError, LaplaceError
from private_rl_gym.privacy.mechanisms import MECHANISMS
from private_rl_gym.privacy.mechanisms.printed import printed
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.randomizers import randomized
from private_rl_gym.privacy.release import GRID, LinearRelease
from private_rl_gym.privacy.requests import Values
from private_rl_gym.privacy.statistics.moments import LinearMoments
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard
from tests.privacy.statistics import sums

SMALL_LAKE = lambda: gym.make("FrozenLake-v1", desc=["SF", "HG"])  # noqa: E731
numbers = st.integers(0, 2**32 - 1)


def vector(statistic, users, values=None):
    found = np.zeros(statistic.cells, dtype=np.int64)
    sums.collect(statistic, users, found, None, None if values is None else Values(values))
    return found * statistic.grid


def random_features(rng, *, signed=False, S=3, A=2, d=3, j=2):
    psi = rng.random((d, S, A, S)) * (rng.random((d, S, A, S)) < 0.7)
    psi[0, 0, 0, 0] = 1.0
    psi /= S  # rows sum to at most 1, as LinOpt's constants assume
    varphi = rng.random((S, A, j)) / np.sqrt(j)
    if signed:
        psi, varphi = psi * rng.choice([-1, 1], size=psi.shape), varphi * rng.choice([-1, 1], size=varphi.shape)
    return LinearFeatures.dense(psi, varphi)


def random_users(rng, count, H, S, A):
    states = rng.integers(0, S, size=(count, H + 1)).astype(np.int32)
    actions = rng.integers(0, A, size=(count, H)).astype(np.int32)
    rewards = rng.choice([0.0, 1.0, rng.random()], size=(count, H))
    return Trajectories(states, actions, rewards)


def blocks(statistic, vector):
    """Each family at each stage, as it is noised."""
    rows, start = vector.reshape(statistic.horizon, -1), 0
    d, j = statistic.features.d, statistic.features.reward_d
    for family, size in zip(LinearRelease.families, (d * (d + 1) // 2, d, j * (j + 1) // 2, j), strict=True):
        for h in range(statistic.horizon):
            yield family, h, rows[h, start : start + size]
        start += size


def proved(statistic):
    """How far the proof lets two users move each block, stage by stage: L1 and L2, in units."""
    features = statistic.features
    tops, limits = np.arange(statistic.horizon - 1.0, -1.0, -1.0), {}
    for name, bound, top, k, nonnegative in (
        ("p", features.bound * tops, tops, features.nonzeros, features.nonnegative),
        ("r", np.full(len(tops), features.reward_bound), 1.0, features.reward_nonzeros, features.rewards_nonnegative),
    ):
        triangle = (k + 1) / 2 if statistic.paper else 1 + (k - 1) / math.sqrt(2)
        limits[f"gram_{name}"] = 2 * bound**2 * triangle, math.sqrt(2) * bound**2
        limits[f"vector_{name}"] = 2 * math.sqrt(k) * bound * top, math.sqrt(2 if nonnegative else 4) * bound * top
    return {
        family: (l1 / np.maximum(statistic.units[family], 1e-300), l2 / np.maximum(statistic.units[family], 1e-300))
        for family, (l1, l2) in limits.items()
    }


@pytest.mark.slow
@given(numbers, st.booleans(), st.booleans(), st.floats(0.05, 2.0))
def test_no_pair_of_users_exceeds_the_proof(seed, signed, paper, bound):
    """Over features, values (also impossible ones) and pairs of users: whole vectors, and every block."""
    rng = np.random.default_rng(seed)
    features = random_features(rng, signed=signed).bounded(bound)
    H = 4
    statistic = LinearMoments(features, H, paper=paper)
    values = rng.choice([0.0, 1.0, 3.0, 10.0, -5.0, rng.normal()], size=(H + 1, 3))
    users = random_users(rng, 6, H, 3, 2)
    found = [vector(statistic, users.part(user, user + 1), values) for user in range(6)] + [np.zeros(statistic.cells)]
    limits = proved(statistic)
    farthest, stated = [l1 for l1, _ in limits.values()], statistic.sensitivity()
    assert stated.l1 == pytest.approx(np.sum(farthest), rel=1e-5)
    assert stated.parts[0][1] == pytest.approx(np.max(farthest), rel=1e-5)
    for first, second in itertools.combinations(found, 2):
        assert np.abs(first - second).sum() <= stated.l1
        assert np.linalg.norm(first - second) <= stated.l2
        for (family, h, one), (_, _, other) in zip(blocks(statistic, first), blocks(statistic, second), strict=True):
            slack = len(one) * GRID
            assert np.abs(one - other).sum() <= limits[family][0][h] + slack
            assert np.linalg.norm(one - other) <= limits[family][1][h] + slack


def test_features_with_signs_move_by_five_quarters_a_pair():
    """A matrix and its vector: at right angles the one moves most, opposite the other; at a cosine of -1/4, both."""
    H, side = 4, math.sqrt(15) / 4
    kernels = np.zeros((2, 2, 1, 2))
    kernels[:, 0, 0, 0], kernels[:, 1, 0, 1] = (1.0, 0.0), (-0.25, side)
    statistic = LinearMoments(LinearFeatures.dense(kernels, np.array([[[1.0, 0.0]], [[-0.25, side]]])), H)
    values = np.full((H + 1, 2), 100.0)
    there, here = (
        Trajectories(np.full((1, H + 1), s, np.int32), np.zeros((1, H), np.int32), np.ones((1, H))) for s in (0, 1)
    )
    moved = np.linalg.norm(vector(statistic, there, values) - vector(statistic, here, values))
    assert moved == pytest.approx(1.25 * math.sqrt(2 * H - 1), rel=1e-5)
    assert moved == pytest.approx(statistic.sensitivity().l2, rel=1e-5)


@pytest.mark.parametrize(("sizes", "H"), [((2, 1), 5), ((4, 2), 10)])
def test_sums_of_absolute_values_are_bounded_by_entries_that_are_not_zero(sizes, H):
    S, A = sizes
    statistic = LinearMoments(LinearFeatures.tabular(S, A), H)
    values = np.full((H + 1, S), 100.0)
    there, here = (
        Trajectories(np.full((1, H + 1), s, np.int32), np.zeros((1, H), np.int32), np.ones((1, H))) for s in (0, 1)
    )
    moved = np.abs(vector(statistic, there, values) - vector(statistic, here, values)).sum()
    assert 0.99 <= moved / statistic.sensitivity().l1 <= 1.0  # all values alike: rows of S equal entries


def test_the_bounds_are_reached():
    """By two users in different states, with features of their own, and the largest values and rewards."""
    H, S = 5, 2
    statistic = LinearMoments(LinearFeatures.tabular(S, 1), H)
    values = np.full((H + 1, S), 100.0)  # brought down to what is possible
    there, here = (
        Trajectories(np.full((1, H + 1), s, np.int32), np.zeros((1, H), np.int32), np.ones((1, H))) for s in (0, 1)
    )
    moved = vector(statistic, there, values) - vector(statistic, here, values)
    assert np.linalg.norm(moved) == pytest.approx(math.sqrt(4 * H - 2), rel=1e-5)
    for _family, h, block in blocks(statistic, moved):
        if _family.endswith("r") or h < H - 1:
            assert np.linalg.norm(block) == pytest.approx(1.0, rel=1e-5)
    signed = LinearFeatures.dense([[[[1.0, 0.0]], [[-1.0, 0.0]]]], np.array([[[1.0]], [[-1.0]]]))
    statistic = LinearMoments(signed, H)
    moved = vector(statistic, there, values) - vector(statistic, here, values)
    reached = {(family, h): np.linalg.norm(block) for family, h, block in blocks(statistic, moved)}
    assert reached["vector_p", 0] == pytest.approx(1.0, rel=1e-5)  # 2 B V, in its unit
    assert reached["vector_r", 0] == pytest.approx(1.0, rel=1e-5)


@given(numbers, st.booleans())
def test_sums_are_those_of_the_definition(seed, paper):
    rng = np.random.default_rng(seed)
    H, S, A = 4, 3, 2
    features = random_features(rng)
    statistic = LinearMoments(features, H, paper=paper)
    values = rng.random((H + 1, S)) * np.arange(H, -1, -1)[:, None]
    users = random_users(rng, 5, H, S, A)
    found = statistic.sums(vector(statistic, users, values))
    for h in range(H):
        phi = features.of(values[h + 1])[users.states[:, h], users.actions[:, h]]
        y = values[h + 1][users.states[:, h + 1]]
        varphi = features.reward_features[users.states[:, h], users.actions[:, h]]
        exact = {
            "gram_p": phi.T @ phi,
            "vector_p": phi.T @ y,
            "gram_r": varphi.T @ varphi,
            "vector_r": varphi.T @ users.rewards[:, h],
        }
        for family, true in exact.items():
            np.testing.assert_allclose(found[family][h], true, atol=5 * GRID * max(1.0, statistic.units[family][h]))
    assert (found["gram_p"] == found["gram_p"].transpose(0, 2, 1)).all()


def test_rows_above_the_stated_bound_are_scaled_and_least_squares_stay_unbiased():
    env = gym.make("PrivateRL/LinearMixture-v0", horizon=3, n_states=8)
    mixture, model = env.unwrapped.mixture, env.unwrapped.model
    rng = np.random.default_rng(0)
    values = rng.random((4, 8)) * np.array([3, 2, 1, 0])[:, None]
    for bound in (10.0, 0.8, 0.3):
        features = mixture.features.bounded(bound)
        statistic = LinearMoments(features, 3)
        policy = Policy.uniform(horizon=3, n_states=8, n_actions=4)
        users = model.rollout(policy, model.draw_users(rng, 200_000), rng.random((200_000, 3)))
        found = statistic.sums(vector(statistic, users, values))
        assert np.trace(found["gram_p"][0]) <= 200_000 * statistic.row_bounds[0] ** 2 * (1 + 1e-3)
        theta = np.linalg.solve(found["gram_p"][0], found["vector_p"][0])
        np.testing.assert_allclose(theta, mixture.weights[0], atol=0.15)
        eta = np.linalg.solve(found["gram_r"][0], found["vector_r"][0])
        np.testing.assert_allclose(eta, mixture.reward_weights[0], atol=0.05)


@pytest.mark.parametrize("shape", [(), (4,), (3, 2), (4, 1), (4, 3), (4, 0)])
@pytest.mark.parametrize("kind", ["open", "jdp"])
def test_values_of_another_shape_are_refused_before_anyone_is_let_in(kind, shape):
    """Found in review: compiled code would have read beyond its arrays."""
    features = LinearFeatures.tabular(2, 1)
    env = TabularEnv(TabularModel([[[0.5, 0.5]], [[0.5, 0.5]]], [[0.0], [1.0]], horizon=3))
    board = (
        OpenBillboard(env, users=10, statistic=features)
        if kind == "open"
        else JDPBillboard(env, 1.0, 1e-6, users=10, statistic=features)
    )
    with pytest.raises(ValueError, match=r"must be \(4, 2\)"):
        board.serve([0, 0], 1, Values(np.ones(shape)))
    with pytest.raises(ValueError, match=r"must be \(4, 2\)"):
        board.request = Values(np.ones(shape))
    assert board.users_left == 10


def test_what_a_release_hands_out_cannot_change_what_is_summed():
    """Found in review: the features in a release are those that users compute with."""
    board = OpenBillboard(gym.make("PrivateRL/LinearMixture-v0"), users=10, statistic="linear")
    features = board.release.features
    for name in ("arrays", "reward_features", "bound", "anything"):
        with pytest.raises(AttributeError, match="do not change"):
            setattr(features, name, 1e3)
        with pytest.raises(AttributeError, match="do not change"):
            delattr(features, name)
    for array in features.arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_server_that_sends_nonsense_learns_nothing_more():
    """Values that are negative or far too large are brought into their range; others are refused on the user's side."""
    features = LinearFeatures.tabular(2, 1)
    statistic = LinearMoments(features, 3)
    rng = np.random.default_rng(0)
    for sent in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="not a finite number"):
            vector(statistic, random_users(rng, 1, 3, 2, 1), np.full((4, 2), sent))
    for sent in (1e300, -3.0):
        users = random_users(rng, 1, 3, 2, 1)
        high = vector(statistic, users, np.full((4, 2), sent))
        assert np.linalg.norm(high) <= statistic.sensitivity().l2
        low = vector(statistic, users, np.full((4, 2), 3.0 * (sent > 0)))
        np.testing.assert_array_equal(high, low)


def test_exact_calibration_needs_a_tenth_of_the_noise_that_linopt_prints():
    """H = 20, m = 16 levels, (1, 1e-6): sigma in units of a block's sensitivity; and what the print really costs."""
    features = gym.make("PrivateRL/RiverSwimMixture-v0").unwrapped.mixture.features
    tree = MECHANISMS["binary-tree"](50_000, 1, "gaussian")
    assert tree.levels == 16
    exact, epsilon, _ = calibrate(tree, LinearMoments(features, 20).sensitivity(), 1.0, 1e-6)
    linopt = LinearMoments(features, 20, paper=True)
    kind, law, scale, true, _ = printed(None, None, linopt, linopt.sensitivity(), 50_000, 1.0, 1e-6)
    assert (kind, law) == (type(tree), "gaussian")
    assert epsilon == 1.0
    assert exact == pytest.approx(149.2, abs=0.1)
    assert scale == pytest.approx(1930.5, abs=0.1)
    assert exact <= scale / 10
    # With all 4H blocks, as the paper counts them:
    assert math.sqrt(80 * 16) / gaussian_mu(1.0, 1e-6) == pytest.approx(151, abs=0.5)
    assert true == pytest.approx(0.0713, abs=1e-4)  # composed as Gaussians, under replacement
    mu = math.sqrt(94.0669 * 16) / scale
    assert true == pytest.approx(gaussian_epsilon(1e-6, mu), rel=1e-3)


def noise_alone(law, size, *, isometric):
    """A release of one stage, in which there are no users yet."""
    matrix, row = np.zeros((1, size, size)), np.zeros((1, size))
    return LinearRelease(
        version=1,
        users=0,
        errors=dict.fromkeys(LinearRelease.families, law),
        events=1,
        gram_p=matrix,
        vector_p=row,
        gram_r=matrix,
        vector_r=row,
        features=LinearFeatures.tabular(1, 1),
        units=dict.fromkeys(LinearRelease.families, np.ones(1)),
        isometric=isometric,
    )


@pytest.mark.parametrize("isometric", [True, False])
@pytest.mark.parametrize("size", [1, 4, 12])
def test_norms_of_noise_are_bounded_as_often_as_claimed(size, isometric):
    """And not by much too much: a bound that holds with probability 1/2 is within a factor of the median."""
    rng = np.random.default_rng(0)
    draws = 4000
    N = rng.normal(size=(draws, size, size)) * 3.0
    N = np.triu(N) + np.triu(N, 1).transpose(0, 2, 1)
    if isometric:
        N *= np.where(np.eye(size), 1.0, math.sqrt(0.5))
    norms = np.abs(np.linalg.eigvalsh(N)).max(axis=1)
    z = np.linalg.norm(rng.normal(size=(draws, size)) * 3.0, axis=1)
    release = noise_alone(GaussianError(3.0), size, isometric=isometric)
    for failure in (0.3, 0.05, 0.005):
        spare = 4 * math.sqrt(failure / draws)
        assert (norms > release.noise_norm("gram_p", failure)[0]).mean() <= failure + spare
        assert (z > release.noise_norm("vector_p", failure)[0]).mean() <= failure + spare
    times = 2.3 if isometric else 6.0  # the paper's is wide
    if size > 1:  # of one number the deviation says more than its size
        assert release.noise_norm("gram_p", 0.5)[0] <= times * np.median(norms)


@pytest.mark.parametrize(
    "law", [LaplaceError(2.0, ((5.0, 1.0),), 2**-20), CombinedError(GaussianError(1.0), GaussianError(2.0))]
)
def test_norms_of_other_noise_are_bounded_too(law):
    rng = np.random.default_rng(0)
    size, draws = 3, 4000
    if isinstance(law, LaplaceError):
        entries = rng.laplace(scale=2.0, size=(5, draws, size, size)).sum(axis=0)
    else:
        entries = rng.normal(size=(draws, size, size)) * math.sqrt(5.0)
    N = np.triu(entries) + np.triu(entries, 1).transpose(0, 2, 1)
    N *= np.where(np.eye(size), 1.0, math.sqrt(0.5))
    norms = np.abs(np.linalg.eigvalsh(N)).max(axis=1)
    release = noise_alone(law, size, isometric=True)
    for failure in (0.3, 0.05):
        assert (norms > release.noise_norm("gram_p", failure)[0]).mean() <= failure
        assert (np.linalg.norm(entries[:, 0], axis=1) > release.noise_norm("vector_p", failure)[0]).mean() <= failure


def board_of(kind, env, rng=0, **options):
    if kind == "open":
        return OpenBillboard(env, users=4_000, statistic="linear", **options)
    if kind == "ldp":
        return LDPUserSide(env, 2.0, 1e-6, users=4_000, statistic="linear", rng=rng, **options)
    if kind == "ldp laplace":
        return LDPUserSide(env, 2.0, users=4_000, statistic="linear", rng=rng, **options)
    if kind == "around reports":
        inner = LDPUserSide(env, 2.0, 1e-6, statistic="linear", rng=rng)
        return JDPBillboard(inner, 2.0, 1e-6, users=4_000, rng=rng, **options)
    delta = 0.0 if kind == "k-ary-tree" else 1e-6
    return JDPBillboard(env, 2.0, delta, users=4_000, counting=kind, statistic="linear", rng=rng, **options)


KINDS = [
    "open",
    "binary-tree",
    "honaker-tree",
    "matrix-factorization",
    "k-ary-tree",
    "batched",
    "ldp",
    "ldp laplace",
    "around reports",
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_board_publishes_moments_with_the_noise_that_it_states(kind):
    """Over 60 boards with seeds: mean zero, the stated deviation, symmetric; and 1/sqrt(2) of it off the diagonal."""
    env = gym.make("PrivateRL/LinearMixture-v0", horizon=3, n_states=5)
    model = env.unwrapped.model
    tapes = model.draw_users(np.random.default_rng(0), 200)
    values = np.array([[3.0], [2.0], [1.0], [0.0]]) * np.random.default_rng(1).random((4, 5))
    policy = Policy.of(np.zeros(5, dtype=int), horizon=3, n_states=5, n_actions=4)
    exact = LinearMoments(env.unwrapped.mixture.features, 3)
    truth = exact.sums(vector(exact, model.rollout(policy, tapes), values))
    errors = {family: [] for family in truth}
    for run in range(60):
        board = board_of(kind, env, rng=run, schedule=100)
        board.serve(policy, tapes, Values(values))
        release = board.release
        assert (release.version, release.users) == (2, 200)
        assert (release.gram_p == release.gram_p.transpose(0, 2, 1)).all()
        for family, true in truth.items():
            errors[family].append(getattr(release, family) - true)
    for family, found in errors.items():
        found = np.array(found)
        if kind == "open":
            assert np.abs(found).max() < 1e-4
            continue
        std = release.noise_std[family] * release.units[family] / release.units[family].max()
        for h in range(3):
            if std[h] == 0.0:
                assert family.endswith("p")
                assert h == 2  # nothing follows the last stage
                continue
            if family.startswith("gram"):
                diagonal = found[:, h].diagonal(axis1=1, axis2=2)
                upper = found[:, h][(slice(None), *np.triu_indices(4, 1))]
                assert upper.std() == pytest.approx(std[h] / math.sqrt(2), rel=0.25)
            else:
                diagonal = found[:, h]
            assert diagonal.std() == pytest.approx(std[h], rel=0.25)
            assert abs(diagonal.mean()) < 5 * std[h] / math.sqrt(diagonal.size)
        assert (np.abs(found) <= release.error_bound(0.01, family)).all()


@pytest.mark.parametrize("kind", ["open", "matrix-factorization", "ldp"])
def test_serve_and_step_publish_the_same(kind):
    env = gym.make("PrivateRL/LinearMixture-v0", horizon=3, n_states=5)
    model = env.unwrapped.model
    tapes = model.draw_users(np.random.default_rng(0), 20)
    values = np.array([[3.0], [2.0], [1.0], [0.0]]) * np.random.default_rng(1).random((4, 5))
    policy = Policy.of(np.ones(5, dtype=int), horizon=3, n_states=5, n_actions=4)
    served, stepped = (board_of(kind, env, rng=3, schedule=10) for _ in range(2))
    served.serve(policy, tapes, Values(values))
    stepped.request = Values(values)
    for tape in tapes:
        stepped.reset(options={"user": tape})
        for _ in range(3):
            stepped.step(1)
    for family, array in served.release.sums().items():
        np.testing.assert_array_equal(array, getattr(stepped.release, family))


def test_without_values_users_tell_of_rewards_alone():
    board = OpenBillboard(gym.make("PrivateRL/LinearMixture-v0"), statistic="linear")
    board.serve(np.zeros(20, dtype=int), users=10)
    assert board.release.gram_p.any() == board.release.vector_p.any() == False  # noqa: E712
    assert np.trace(board.release.gram_r[0]) > 0
    board.request = Values(np.ones((7, 20)))  # from here on whoever comes without values is sent these
    board.serve(np.zeros(20, dtype=int), users=10)
    assert np.trace(board.release.gram_p[0]) > 0


def test_a_saved_state_goes_on_as_if_nothing_had_happened(tmp_path):
    make = lambda: JDPBillboard(  # noqa: E731
        gym.make("PrivateRL/LinearMixture-v0"), 1.0, 1e-6, users=100, statistic="linear", schedule=10, rng=1
    )
    policy = Policy.of(np.zeros(20, dtype=int), horizon=6, n_states=20, n_actions=4)
    tapes = gym.make("PrivateRL/LinearMixture-v0").unwrapped.model.draw_users(np.random.default_rng(0), 60)
    whole, first, second = make(), make(), make()
    whole.serve(policy, tapes, Values(np.ones((7, 20))))
    first.serve(policy, tapes[:30], Values(np.ones((7, 20))))
    first.save_state(tmp_path / "state")
    second.load_state(tmp_path / "state")
    np.testing.assert_array_equal(second.release.gram_p, first.release.gram_p)
    np.testing.assert_array_equal(second.request.values, first.request.values)
    second.serve(policy, tapes[30:])
    np.testing.assert_array_equal(second.release.gram_p, whole.release.gram_p)
    first_again = make()
    other = JDPBillboard(
        gym.make("PrivateRL/LinearMixture-v0"),
        1.0,
        1e-6,
        users=100,
        schedule=10,
        rng=1,
        statistic=gym.make("PrivateRL/LinearMixture-v0").unwrapped.mixture.features.bounded(0.5),
    )
    first_again.serve(policy, tapes[:30])
    first_again.save_state(tmp_path / "another")
    with pytest.raises(ValueError, match="differs in statistic"):
        other.load_state(tmp_path / "another")


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda env: OpenBillboard(env, statistic="quadratic"), r"^statistic is 'quadratic'.*'tabular'"),
        (lambda env: OpenBillboard(env, statistic=np.eye(3)), r"^statistic is a ndarray.*LinearFeatures"),
        (
            lambda _: OpenBillboard(gym.make("PrivateRL/RiverSwim-v0"), statistic="linear"),
            r"LinearFeatures.tabular\(6, 2\)",
        ),
        (
            lambda env: OpenBillboard(env, statistic=LinearFeatures.tabular(3, 4)),
            r"S=3.*users.*S=20",
        ),
        (
            lambda _: OpenBillboard(SMALL_LAKE(), statistic=LinearFeatures.tabular(4, 4)),
            r"S=5 \(the last",
        ),
        (
            lambda env: JDPBillboard(env, 1.0, 1e-6, users=10, statistic="linear", public_start=True),
            r"moments have a bound for replacing.*leave public_start out",
        ),
        (lambda env: JDPBillboard(env, 1.0, 0.0, users=10, statistic="linear", calibration="paper"), r"^delta is 0"),
        (
            lambda env: JDPBillboard(
                env, 1.0, 1e-6, users=10, statistic="linear", calibration="paper", noise="laplace"
            ),
            r"noise='gaussian', as",
        ),
        (
            lambda env: LDPUserSide(env, 1.0, statistic="linear", randomizer="one-step"),
            r"randomizer is 'one-step'.*'gaussian'",
        ),
        (
            lambda env: LDPUserSide(env, 1.0, statistic="linear", randomizer="laplace", calibration="paper"),
            r"calibration='paper' is for counts",
        ),
        (
            lambda env: JDPBillboard(
                LDPUserSide(env, 1.0, statistic="linear"), 1.0, 1e-6, users=10, statistic="linear"
            ),
            r"statistic is 'linear', and the LDPUserSide inside has one already",
        ),
        (
            lambda env: OpenBillboard(env, statistic="linear").private_model(),
            r"no model.*statistic='tabular'",
        ),
        (lambda env: env.unwrapped.mixture.features.bounded(0.0), r"bound is 0.0"),
        (
            lambda env: setattr(OpenBillboard(env, statistic="linear"), "request", Values(np.ones((3, 3)))),
            r"values have shape \(3, 3\)",
        ),
        (
            lambda env: setattr(OpenBillboard(env, statistic="linear"), "request", Values(np.full((7, 20), np.nan))),
            r"values\[0, 0\].*finite",
        ),
    ],
)
def test_bad_input_gets_a_sentence(make, word):
    with pytest.raises(ValueError, match=word):
        make(gym.make("PrivateRL/LinearMixture-v0"))


def test_linopts_constants_are_for_features_that_it_allows():
    large = LinearFeatures.dense(np.full((2, 2, 1, 2), 3.0), np.ones((2, 1, 1)))
    with pytest.raises(ValueError, match=r"calibration='paper'.*Scale"):
        LinearMoments(large, 3, paper=True)
    assert LinearMoments(large, 3).sensitivity().l2 > 0


def test_the_ledger_says_what_the_printed_constants_of_linopt_cost():
    env = gym.make("PrivateRL/RiverSwimMixture-v0")
    with pytest.warns(UserWarning, match=r"print epsilon = 1 and cost 0\.0713"):
        board = JDPBillboard(env, 1.0, 1e-6, users=50_000, statistic="linear", calibration="paper")
    assert board.ledger.epsilon == pytest.approx(0.0713, abs=1e-4)
    assert "printed as epsilon = 1" in str(board.ledger)


class Halved(LinearMoments):
    """A broken mechanism: forgets that another user takes their place."""

    def sensitivity(self, *arguments, **options):
        known = super().sensitivity(*arguments, **options)
        return known._replace(l1=known.l1 / 2, l2=known.l2 / 2)


class Unclipped(LinearMoments):
    """A broken mechanism: states a bound, and does not keep it."""

    def _add(self, users, sums, request, uniforms):
        kept, self.row_bounds = self.row_bounds, self.row_bounds * 1e6
        super()._add(users, sums, request, uniforms)
        self.row_bounds = kept


@pytest.mark.parametrize("broken", [Halved, Unclipped])
def test_a_broken_statistic_is_caught_by_the_search(broken):
    rng = np.random.default_rng(0)
    features = LinearFeatures.tabular(3, 2).bounded(0.5)
    caught = 0
    for _ in range(20):
        statistic = broken(features, 4)
        users = random_users(rng, 2, 4, 3, 2)
        values = np.full((5, 3), 9.0)
        moved = vector(statistic, users.part(0, 1), values) - vector(statistic, users.part(1, 2), values)
        caught += np.linalg.norm(moved) > statistic.sensitivity().l2
    assert caught >= 5


def test_local_reports_of_moments_are_noised_by_every_user():
    """Also by those who leave early: nobody can tell."""
    statistic = LinearMoments(LinearFeatures.tabular(2, 1), 2)
    for name, delta in (("gaussian", 1e-6), ("laplace", 0.0)):
        randomizer, known = randomized(statistic, 1.0, delta, name), statistic.sensitivity()
        assert randomizer.spent == (1.0, delta)
        assert randomizer.scale == pytest.approx(known.l2 / gaussian_mu(1.0, 1e-6) if name == "gaussian" else known.l1)
        sent = np.zeros(sums.size(randomizer), dtype=np.int64)
        randomizer.send(None, 400, None, NoiseSource(0), sent)
        assert (sent != 0).all()
        stated = sums.errors(randomizer, 400, lambda _: GaussianError(0.0))["gram_p"].std
        assert (sent * GRID).std() == pytest.approx(stated / statistic.units["gram_p"].max(), rel=0.3)

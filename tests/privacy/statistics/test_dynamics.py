"""Corrections of a model: what they are, how far one user moves them, and mistakes that would move them farther.

Seeds are fixed.
"""

import math

import numpy as np
import pytest

from private_rl_gym.lab.audits import broken_dynamics
from private_rl_gym.planning.network import Layers, Network, NetworkPolicy, NetworkTrajectories
from private_rl_gym.planning.polynomials import Basis
from private_rl_gym.privacy.accounting.guarantee import Neighbours
from private_rl_gym.privacy.requests import Refinement, Values
from private_rl_gym.privacy.statistics.base import Alphabet
from private_rl_gym.privacy.statistics.dynamics import GRID, LENGTH, OCTAVES, RIDGE, STEP, Dynamics

H = 9
NETWORKS = {
    "choices": Network(2, Layers(()), choices=(3, 2)),
    "continuous": Network(3, Layers(()), continuous=2),
}
every_network = pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)


def episodes(network, users=6, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    policy = NetworkPolicy(network, np.zeros(network.size), H)
    draws = network.draws(rng, users, H)
    inputs = scale * rng.standard_normal((users, H, network.inputs))
    actions = np.stack([policy.act(inputs[:, h], draws[:, h]) for h in range(H)], axis=1)
    lengths = rng.integers(2, H + 1, users)
    return NetworkTrajectories(inputs, actions, scale * rng.standard_normal((users, H)), lengths, policy)


def question(dynamics, about="step", **options):
    p = dynamics.network.inputs
    usual = {
        "centre": np.zeros(p),
        "scale": np.ones(p),
        "units": np.ones(p + 1),
        "coefficients": np.zeros((dynamics.basis.size, p + 1)),
        "degree": dynamics.degree,
    }
    return dynamics.checked(Refinement(about, **{**usual, **options}))


def vector(dynamics, users, ask):
    found = np.zeros(dynamics.cells, dtype=np.int64)
    dynamics.encode(users, found, ask)
    return found * GRID


# The basis -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choices", "continuous", "degree", "size"), [((2,), 0, 1, 6), ((), 1, 3, 56), ((3,), 0, 2, 25), ((3, 2), 0, 2, 32)]
)
def test_a_basis_has_all_products_but_those_of_one_choice_with_itself(choices, continuous, degree, size):
    basis = Basis(4, choices, continuous, degree)
    assert basis.size == size
    assert basis.size_up_to(1) == 1 + basis.variables


@pytest.mark.parametrize(("choices", "continuous"), [((3,), 0), ((), 1)])
def test_features_have_mean_square_one(choices, continuous):
    basis, rng, rows = Basis(2, choices, continuous, 2), np.random.default_rng(0), 200_000
    acts = rng.integers(3, size=(rows, 1)) if choices else rng.uniform(-1.0, 1.0, (rows, 1))
    features = basis.features(rng.standard_normal((rows, 2)), acts.astype(float))
    np.testing.assert_allclose((features**2).mean(axis=0), 1.0, atol=0.03)


def test_features_are_products_of_polynomials():
    basis = Basis(1, (), 1, 2)
    state, action = np.array([[0.6]]), np.array([[0.5]])
    x, scales = 0.6 / 3.0, basis.scales
    powers = {0: 1.0, 1: x * scales[0, 1], 2: (3 * x * x - 1) / 2 * scales[0, 2]}
    acts = {0: 1.0, 1: 0.5 * math.sqrt(3.0), 2: (3 * 0.25 - 1) / 2 * math.sqrt(5.0)}
    wanted = [powers[product.count(0)] * acts[product.count(1)] for product in basis.products]
    np.testing.assert_allclose(basis.features(state, action)[0], wanted, rtol=1e-12)


# What users report ---------------------------------------------------------------------------------------------------


@every_network
def test_a_step_solves_the_users_own_least_squares(network):
    dynamics = Dynamics(network, H, 2)
    users = episodes(network, users=1)
    rng = np.random.default_rng(1)
    coefficients = 0.1 * rng.standard_normal((dynamics.basis.size, dynamics.targets))
    ask = question(dynamics, coefficients=coefficients, clip=100.0)
    steps = int(users.lengths[0]) - 1
    features = dynamics.basis.features(users.inputs[0, :steps], users.actions[0, :steps])
    told = np.column_stack([np.diff(users.inputs[0, : steps + 1], axis=0), users.rewards[0, :steps]])
    residual = np.clip(told - features @ coefficients, -4.0, 4.0)
    size = dynamics.basis.size
    trust = np.minimum(1.0, 2.0 * size / (features**2).sum(axis=1)) / steps
    square = (features * trust[:, None]).T @ features + RIDGE * np.eye(size)
    step = np.linalg.solve(square, (features * trust[:, None]).T @ residual)
    found = vector(dynamics, users, ask)
    np.testing.assert_allclose(found[: step.size], math.sqrt(STEP) * step.ravel() / 100.0, atol=2 * GRID)
    told = np.clip(np.log2(np.linalg.norm(step) / 100.0) / 2.0, -1.0, 1.0)
    assert found[step.size] == pytest.approx(math.sqrt(LENGTH) * told, abs=GRID)


def test_votes_say_the_octave_of_each_size():
    network = NETWORKS["continuous"]
    dynamics, users = Dynamics(network, H, 1), episodes(network, users=1, scale=3.0)
    steps = int(users.lengths[0]) - 1
    found = vector(dynamics, users, question(dynamics, "scales"))[: 7 * OCTAVES].reshape(7, OCTAVES)
    sizes = np.sqrt((users.inputs[0, :steps] ** 2).mean(axis=0))
    np.testing.assert_array_equal(found[:3].argmax(axis=1), np.floor(np.log2(sizes)) + 16)
    np.testing.assert_allclose(found.sum(axis=1), math.sqrt(2 / 7), atol=GRID)


def test_means_are_clipped_as_one_vector():
    network = NETWORKS["continuous"]
    dynamics, users = Dynamics(network, H, 1), episodes(network, users=1)
    x = np.clip(users.inputs[0], -2.0, 2.0)
    means = np.concatenate([x[: users.lengths[0] - 1].mean(axis=0), x[0], x[0] ** 2 / 2])
    for clip in (0.1, 50.0):
        found = vector(dynamics, users, question(dynamics, "centre", clip=clip))
        np.testing.assert_allclose(found[:9], means / max(clip, np.linalg.norm(means)), atol=2 * GRID)


@every_network
def test_a_user_is_computed_alone(network):
    dynamics, users = Dynamics(network, H, 2), episodes(network)
    for about in ("scales", "centre", "step"):
        ask, total = question(dynamics, about), np.zeros(dynamics.cells, dtype=np.int64)
        for user in range(len(users)):
            dynamics.encode(users.part(user, user + 1), total, ask)
        np.testing.assert_array_equal(total * GRID, vector(dynamics, users, ask))


# How far one user moves them ------------------------------------------------------------------------------------------

HOSTILE = (0.0, 1.0, -1.0, 1e-300, -1e-300, 1e300, -1e300, 1e160, np.inf, -np.inf, np.nan, 1e-8, 12345.678)


def hostile(network, rng, users):
    """Episodes with numbers as small and as large as there are, some of them of no length."""

    def some(*shape):
        whole, wild = rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 7), rng.choice(HOSTILE, shape)
        return np.where(rng.random(shape) < rng.choice([0.0, 0.05, 1.0]), wild, whole)

    policy = NetworkPolicy(network, np.zeros(network.size), H)
    acts, lengths = some(users, H, network.action_size), rng.integers(0, H + 1, users)
    return NetworkTrajectories(some(users, H, network.inputs), acts, some(users, H), lengths, policy)


@every_network
@pytest.mark.parametrize("in_ball", [False, True])
@pytest.mark.parametrize("about", ["scales", "centre", "step"])
def test_no_two_of_ten_thousand_hostile_episodes_are_farther_apart_than_stated(network, in_ball, about):
    dynamics, rng = Dynamics(network, H, 2, in_ball=in_ball), np.random.default_rng(3)
    stated, alone = dynamics.sensitivity(), dynamics.sensitivity(neighbours=Neighbours.ZERO_OUT)
    assert not in_ball or alone.l2 < 1.001
    farthest = 0.0
    for _ in range(17):  # 12 cases of this test: 10,200 episodes
        p, shape = network.inputs, (dynamics.basis.size, network.inputs + 1)
        ask = question(
            dynamics,
            about,
            centre=rng.standard_normal(p) * rng.choice([0.0, 1.0, 1e12]),
            scale=rng.choice([1e-9, 1.0, 1e9], p),
            units=rng.choice([0.0, 1e-9, 1.0, 1e9], p + 1),
            coefficients=rng.standard_normal(shape) * rng.choice([0.0, 1.0, 1e200]),
            clip=float(rng.choice([1e-300, 1e-172, 1e-3, 1.0, 1e6, 1e300])),
        )
        users = hostile(network, rng, 50)
        vectors = np.array([vector(dynamics, users.part(user, user + 1), ask) for user in range(len(users))])
        assert np.isfinite(vectors).all()
        assert np.linalg.norm(vectors, axis=1).max() <= alone.l2
        apart = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
        assert apart.max() <= stated.l2
        assert np.abs(vectors[:, None] - vectors[None]).sum(axis=2).max() <= stated.l1
        farthest = max(farthest, apart.max() / stated.l2)
    assert farthest > 0.6  # the bound is not far from what is attained


def opposite(network):
    """Two users whose rewards are opposite, and everything else the same."""
    users = episodes(network, users=2)
    users.inputs[1], users.actions[1], users.lengths[:] = users.inputs[0], users.actions[0], H
    users.rewards[0], users.rewards[1] = 1.0, -1.0
    return users


def test_two_users_are_as_far_apart_as_stated():
    dynamics, users = Dynamics(NETWORKS["choices"], H, 1), opposite(NETWORKS["choices"])
    users.inputs[1] = users.inputs[0] * 0.0
    users.rewards[1] = -1e6  # a residual that is cut off, so that the vote differs, too
    ask = question(dynamics, clip=1e-1, units=np.array([0.0, 0.0, 1.0]))
    one, other = (vector(dynamics, users.part(user, user + 1), ask) for user in (0, 1))
    assert np.linalg.norm(one - other) > 0.9 * dynamics.sensitivity().l2


BROKEN = ["Unclipped", "NormOfNaN", "OwnScales", "TrueMedian"]


@pytest.mark.parametrize("name", BROKEN)
def test_mistakes_move_sums_farther_than_is_stated(name):
    network = NETWORKS["choices"]
    dynamics = Dynamics(network, H, 1)
    broken = getattr(broken_dynamics, name).wrong
    others, two = episodes(network, users=20, seed=5), opposite(network)
    if name == "NormOfNaN":
        two.rewards[0, 3] = np.nan
    if name in ("OwnScales", "TrueMedian"):
        two.inputs[0] *= 1e3
        two.rewards[0] *= 1e3
    ask = question(dynamics, clip=1e-2)

    def total(user):
        first = two.part(user, user + 1)
        both = [np.concatenate([getattr(first, part), getattr(others, part)]) for part in PARTS]

        def correct(users, request):
            sums = np.zeros(dynamics.cells, dtype=np.int64)
            dynamics.encode(users, sums, request)
            return sums

        return broken(dynamics, NetworkTrajectories(*both, others.policy), ask, correct) * GRID

    assert np.linalg.norm(total(0) - total(1)) > 1.5 * dynamics.sensitivity().l2


PARTS = ("inputs", "actions", "rewards", "lengths")


# What is refused -----------------------------------------------------------------------------------------------------


def test_questions_that_do_not_fit_are_refused():
    dynamics = Dynamics(NETWORKS["choices"], H, 1)
    for wrong, message in (
        ({"about": "all"}, "choose one of 'scales'"),
        ({"centre": np.zeros(5)}, "centre has shape"),
        ({"units": np.ones(2)}, "units has shape"),
        ({"coefficients": np.zeros((3, 3))}, "features of degree"),
        ({"degree": 2}, "of degree 1 at most"),
        ({"clip": 0.0}, "clip is 0.0"),
        ({"scale": np.zeros(2)}, "Scales are above 0"),
    ):
        with pytest.raises(ValueError, match=message):
            question(dynamics, **wrong)
    with pytest.raises(TypeError, match="understand a request of type Refinement"):
        dynamics.checked(Values(np.zeros((2, 2))))


def test_users_of_other_sizes_are_refused():
    dynamics = Dynamics(NETWORKS["choices"], H, 1)
    with pytest.raises(ValueError, match="no episodes of these sizes"):
        vector(dynamics, episodes(NETWORKS["continuous"]), None)


def test_in_a_ball_votes_count_less():
    dynamics = Dynamics(NETWORKS["choices"], H, 1)
    inside = dynamics.coded(Alphabet.UNIT_VECTOR)
    users, ask = episodes(NETWORKS["choices"], users=1), question(dynamics, "scales")
    np.testing.assert_allclose(vector(dynamics, users, ask), math.sqrt(2.0) * vector(inside, users, ask), atol=2 * GRID)


def test_a_request_is_saved_and_read():
    dynamics = Dynamics(NETWORKS["choices"], H, 2)
    ask = question(dynamics, coefficients=np.random.default_rng(0).standard_normal((dynamics.basis.size, 3)), clip=0.3)
    again = Refinement.of(ask.arrays())
    assert (again.about, again.clip, again.degree) == (ask.about, ask.clip, ask.degree)
    np.testing.assert_array_equal(again.coefficients, ask.coefficients)

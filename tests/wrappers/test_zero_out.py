"""Adding and removing a user's data: norms that are reached, a ledger that says so, an attack that holds it to it."""

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.experiments.auditing import AuditConfig, audit
from private_rl_gym.experiments.broken import HalvedNoise, MissingFactor
from private_rl_gym.experiments.config import Choice
from private_rl_gym.experiments.names import GridError
from private_rl_gym.planning.network import Layers, Network
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.asks import Wanted
from private_rl_gym.privacy.audit.bounds import epsilon_of_mu, mu_below
from private_rl_gym.privacy.gradients import Gradients
from private_rl_gym.privacy.guarantee import Neighbours
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.pooled import PooledCounts
from private_rl_gym.privacy.reports import Reports
from private_rl_gym.privacy.statistics import TabularCounts
from private_rl_gym.wrappers import JDPBillboard
from tests.wrappers.stacks import A, H, S, jdp, ldp, river
from tests.wrappers.test_ingest import logged

SIZES = (H, S, A)
STATISTICS = {
    "counts": TabularCounts(*SIZES, zero_out=True),
    "one stage": TabularCounts(1, S, A, zero_out=True),
    "raw rewards": TabularCounts(*SIZES, raw_rewards=True, zero_out=True),
    "printed": TabularCounts(*SIZES, separate_visits=True, zero_out=True),
    "pooled": PooledCounts(*SIZES, zero_out=True),
    "pooled, raw": PooledCounts(*SIZES, raw_rewards=True, zero_out=True),
    "reports": Reports(*SIZES, zero_out=True).of_at_most(H),
}


def users(horizon, number):
    """Random users; the rewards of some are all 0 or all 1, and each step of the first is in another cell."""
    rng = np.random.default_rng(0)
    states, actions = rng.integers(0, S, (number, horizon + 1)), rng.integers(0, A, (number, horizon))
    rewards = rng.random((number, horizon)) * (np.arange(number) % 3 > 0)[:, None]
    rewards[::2] = np.round(rewards[::2])
    states[0], actions[0] = np.arange(horizon + 1) // A % S, np.arange(horizon) % A
    rewards[0] = 1.0
    return Trajectories(states, actions, rewards)


@pytest.mark.parametrize("name", STATISTICS)
def test_no_user_is_longer_than_is_stated_and_one_is_as_long(name):
    statistic = STATISTICS[name]
    everyone, lengths = users(statistic.horizon, 300), []
    ask = Wanted(np.ones((S, A), dtype=bool), most=H) if name == "reports" else None
    for user in range(300):
        vector = np.zeros(statistic.cells + statistic.tallies, dtype=np.int64)
        statistic.collect(everyone.part(user, user + 1), vector, NoiseSource(0), ask)
        real = vector[: statistic.cells] * statistic.grid
        lengths.append((np.abs(real).sum(), np.linalg.norm(real)))
    longest = np.max(lengths, axis=0)
    assert longest[0] == pytest.approx(statistic.l1)
    assert longest[1] == pytest.approx(statistic.l2)
    assert statistic.l1 == pytest.approx(sum(count * distance for count, distance in statistic.parts))


def test_gradients_have_norm_one():
    network = Network(3, Layers((4,)), choices=(2,))
    alone, replaced = Gradients(network, 5, zero_out=True), Gradients(network, 5)
    assert (2.0 * alone.l1, 2.0 * alone.l2) == pytest.approx((replaced.l1, replaced.l2))
    assert alone.l2 == pytest.approx(1.0, abs=1e-3)


def test_the_ledger_says_which_neighbours():
    board = jdp(river(), neighbours="zero-out")
    assert str(board.ledger).startswith("(1.0, 1e-06)-JDP, add or remove one user's data in her place, 40 users")
    assert "compared with nobody in her place" in board.ledger.sentence()
    assert board.ledger.to_dict()["outside"]["neighbours"] == Neighbours.ZERO_OUT
    assert "compared with another user in her place" in jdp(river()).ledger.sentence()
    assert board._scale < 0.75 * jdp(river())._scale
    together = jdp(river()).ledger.compose(board.ledger, delta=1e-6)
    assert together.neighbours is Neighbours.ZERO_OUT
    with pytest.raises(ValueError, match="do not compose"):
        board.ledger.compose(jdp(river(), public_start=True).ledger, delta=1e-6)


def test_printed_constants_cost_what_they_print():
    """No warning is given, which would be an error here."""
    board = jdp(river(), delta=0.0, calibration="paper", neighbours="zero-out")
    assert board.guarantee.epsilon == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: jdp(river(), neighbours="add-remove"), "published here.*Write neighbours='zero-out'"),
        (lambda: jdp(river(), neighbours="insert"), "neighbours is 'insert': write"),
        (lambda: jdp(river(), neighbours="zero-out", public_start=True), "leave one of them out"),
        (lambda: jdp(ldp(river()), neighbours="zero-out"), "is for a bare environment"),
        (
            lambda: jdp(gym.make("PrivateRL/RiverSwimMixture-v0"), neighbours="zero-out", statistic="linear"),
            "no bound for moments",
        ),
    ],
)
def test_what_is_not_sound_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()
    with pytest.raises(GridError, match="audits replace a user"):
        audit(AuditConfig(Choice("jdp", {"epsilon": 1.0, "delta": 1e-6, "neighbours": "zero-out"}), runs=200))


# Attack ---------------------------------------------------------------------------------------------------------------

EPSILON, RUNS = 2.0, 3000


def attacked(kind, other):
    """A bound on epsilon for batches of one user, who stays or is ``other``; wrong with probability 0.01."""
    how = {"counting": "batched", "noise": "gaussian", "neighbours": "zero-out"}
    board = kind(river(), EPSILON, 1e-6, users=RUNS, seed=0, **how)
    _ = board.release
    vectors = []
    for states in (0, other):
        sums = np.zeros(board.statistic.cells, dtype=np.int64)
        if states is None:
            board.contribute_nothing(1, sums)
        else:
            alike = np.full((1, H + 1), states), np.zeros((1, H), dtype=int), np.ones((1, H))
            board.contribute(Trajectories(*alike), None, sums)
        vectors.append(sums)
    direction = (vectors[0] - vectors[1]) * board.statistic.grid
    scores = [np.array([board.disclose(sums, 1) @ direction for _ in range(RUNS)]) for sums in vectors]
    level = sum(vector * board.statistic.grid @ direction for vector in vectors) / 2.0
    hits, alarms = ((score > level).sum() for score in scores)
    return epsilon_of_mu(float(mu_below(hits, alarms, (RUNS, RUNS), 0.01)), 1e-6)


def test_an_attack_on_her_data_comes_close_and_not_above():
    assert 0.7 * EPSILON < attacked(JDPBillboard, None) <= EPSILON


@pytest.mark.parametrize("kind", [HalvedNoise, MissingFactor])
def test_too_little_noise_is_caught(kind):
    assert attacked(kind, None) > EPSILON


def test_a_promise_about_her_data_is_none_about_another_user():
    assert attacked(JDPBillboard, 1) > EPSILON


def test_nobody_in_her_place_counts():
    board = jdp(river(), neighbours="zero-out", counting="batched", batch_size=5)
    states = logged(5)
    board.ingest(type(states)(states.user, np.full((5, H + 1), -1), states.action, states.reward), bad_rows="empty")
    assert (board.release.users, board.release.version) == (5, 1)

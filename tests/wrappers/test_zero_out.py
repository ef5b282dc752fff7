"""Adding and removing a user's data: norms that are reached, a ledger that says so, an attack that holds it to it."""

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.lab.audits import AuditConfig, audit
from private_rl_gym.lab.audits.broken import HalvedNoise, MissingFactor
from private_rl_gym.lab.grids.cell import Choice
from private_rl_gym.lab.registry import GridError
from private_rl_gym.planning.network import Layers, Network
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.accounting.guarantee import Neighbours
from private_rl_gym.privacy.audit.bounds import epsilon_of_mu, mu_below
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.protocols import ClosedBatch
from private_rl_gym.privacy.requests import Wanted
from private_rl_gym.privacy.statistics import TabularCounts
from private_rl_gym.privacy.statistics.gradients import Gradients
from private_rl_gym.privacy.statistics.pooled import PooledCounts
from private_rl_gym.privacy.statistics.reports import Reports
from private_rl_gym.wrappers import JDPBillboard
from tests.privacy.statistics import sums
from tests.wrappers.stacks import A, H, S, jdp, ldp, river
from tests.wrappers.test_ingest import logged

SIZES = (H, S, A)
STATISTICS = {
    "counts": TabularCounts(*SIZES),
    "one stage": TabularCounts(1, S, A),
    "raw rewards": TabularCounts(*SIZES, raw_rewards=True),
    "printed": TabularCounts(*SIZES, separate_visits=True),
    "pooled": PooledCounts(*SIZES),
    "pooled, raw": PooledCounts(*SIZES, raw_rewards=True),
    "reports": Reports(*SIZES),
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
    stated = statistic.sensitivity(statistic.load(ask), Neighbours.ZERO_OUT)
    for user in range(300):
        vector = np.zeros(statistic.cells, dtype=np.int64)
        sums.collect(statistic, everyone.part(user, user + 1), vector, NoiseSource(0), ask)
        real = vector * statistic.grid
        lengths.append((np.abs(real).sum(), np.linalg.norm(real)))
    longest = np.max(lengths, axis=0)
    assert longest[0] == pytest.approx(stated.l1)
    assert longest[1] == pytest.approx(stated.l2)
    assert stated.l1 == pytest.approx(sum(count * distance for count, distance in stated.parts))


def test_gradients_have_norm_one():
    gradients = Gradients(Network(3, Layers((4,)), choices=(2,)), 5)
    alone, replaced = gradients.sensitivity(neighbours=Neighbours.ZERO_OUT), gradients.sensitivity()
    assert (2.0 * alone.l1, 2.0 * alone.l2) == pytest.approx((replaced.l1, replaced.l2))
    assert alone.l2 == pytest.approx(1.0, abs=1e-3)


def test_the_ledger_says_which_neighbours():
    board = jdp(river(), neighbours="zero-out")
    assert str(board.ledger).startswith("(1.0, 1e-06)-JDP, add or remove one user's data in her place, 40 users")
    assert "compared with no user in their place" in board.ledger.sentence()
    assert board.ledger.to_dict()["outside"]["neighbours"] == Neighbours.ZERO_OUT
    assert "compared with another user in their place" in jdp(river()).ledger.sentence()
    assert board.audit.plan.chosen.scale < 0.75 * jdp(river()).audit.plan.chosen.scale
    counts = {"statistic": "tabular"}  # chosen, so that both compose as Gaussian noise
    board = jdp(river(), neighbours="zero-out", **counts)
    together = jdp(river(), **counts).ledger.compose(board.ledger, delta=1e-6)
    assert together.neighbours is Neighbours.ZERO_OUT
    with pytest.raises(ValueError, match="do not compose"):
        board.ledger.compose(jdp(river(), public_start=True, **counts).ledger, delta=1e-6)


def test_printed_constants_cost_what_they_print():
    """No warning is given, which would be an error here."""
    board = jdp(river(), delta=0.0, calibration="paper", neighbours="zero-out")
    assert board.guarantee.epsilon == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: jdp(river(), neighbours="add-remove"), "are published.*Use neighbours='zero-out'"),
        (lambda: jdp(river(), neighbours="insert"), "neighbours is 'insert': write"),
        (lambda: jdp(river(), neighbours="zero-out", public_start=True), "leave one of the two out"),
        (lambda: jdp(ldp(river()), neighbours="zero-out"), "Leave public_start and neighbours out"),
        (
            lambda: jdp(gym.make("PrivateRL/RiverSwimMixture-v0"), neighbours="zero-out", statistic="linear"),
            "moments have a bound for replacing one user",
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
    board = kind(river(), EPSILON, 1e-6, users=RUNS, rng=0, **how)
    protocol, vectors = board.audit.pipeline.protocol, []
    for states in (0, other):
        vector, user = np.zeros(board.statistic.cells, dtype=np.int64), None
        if states is not None:
            user = Trajectories(np.full((1, H + 1), states), np.zeros((1, H), dtype=int), np.ones((1, H)))
        protocol.receive(user, 1, None, vector)
        vectors.append(vector)
    direction, alone = (vectors[0] - vectors[1]) * board.statistic.grid, ClosedBatch(users=1, sent=1, load=1)
    scores = [np.array([protocol.publish(vector, alone, 1) @ direction for _ in range(RUNS)]) for vector in vectors]
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
    board = jdp(river(), neighbours="zero-out", counting="batched", schedule=5)
    states = logged(5)
    empty = type(states)(states.user, np.full((5, H + 1), -1), states.action, states.reward)
    board.ingest(empty, bad_rows="empty", most_emptied=1)
    assert (board.release.users, board.release.version) == (5, 1)

"""Moments behind a shuffler: what their noise bits hide is computed anew, and their sensitivity is searched for."""

import copy
import math
from collections import Counter

import gymnasium as gym
import numpy as np
import pytest
from scipy.stats import binom, chi2_contingency

from private_rl_gym.agents import PrivateLinOptVI
from private_rl_gym.lab.audits import audit
from private_rl_gym.lab.audits.config import AuditConfig
from private_rl_gym.lab.grids.cell import Choice
from private_rl_gym.planning import LinearFeatures
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.accounting.conversion import gaussian_mu
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.protocols import ShuffledBits
from private_rl_gym.privacy.protocols.bits import NoiseBits, send_and_shuffle
from private_rl_gym.privacy.protocols.vector_bits import VectorSums, vector_epsilon
from private_rl_gym.privacy.requests import Values
from private_rl_gym.privacy.statistics import MomentLevels
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, SDPShuffler
from tests.privacy.statistics import sums
from tests.privacy.statistics.test_moments import random_features, random_users

DELTA = 1e-6


def exact_delta(bits, bias, shifts, epsilon):
    """Delta of entries with binomial noise that move by these whole numbers: losses convolved on a fine grid."""
    around = 14 * math.sqrt(bits * bias * (1 - bias)) + 100
    k = np.arange(max(0, math.floor(bits * bias - around)), min(bits, math.ceil(bits * bias + around)) + 1)
    mass, logs = binom.pmf(k, bits, bias), binom.logpmf(k, bits, bias)
    step, size, kept = 2e-4, 2**18, 1.0
    spectrum = np.ones(size // 2 + 1, dtype=complex)
    for shift, times in Counter(shifts).items():  # law of noise + shift against noise, at noise + shift
        there = k + shift
        able = (there >= 0) & (there <= bits)
        losses = logs[able] - binom.logpmf(there[able], bits, bias)
        seen = (mass[able] > 1e-18) & (np.abs(losses) < step * size / 4)
        places = np.ceil(losses[seen] / step).astype(np.int64) % size
        spectrum *= np.fft.rfft(np.bincount(places, mass[able][seen], minlength=size)) ** times
        kept *= mass[able][seen].sum() ** times
    law = np.fft.irfft(spectrum, size)
    places = np.arange(size)
    value = np.where(places < size // 2, places, places - size) * step
    return float((law * np.where(value > epsilon, -np.expm1(epsilon - value), 0.0)).sum()) + max(0.0, 1.0 - kept)


SHIFTS = {
    "all entries a little": [1] * 64,
    "some": [2, -2] * 8,
    "one entry, as far as it goes": [8],
    "mixed": [5, -3, 3, 2, -2, 2] + [1] * 9,
}


@pytest.mark.parametrize("shifts", SHIFTS.values(), ids=SHIFTS)
@pytest.mark.parametrize("users", [10, 10**6])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_the_view_costs_no_more_than_the_claim_however_far_each_entry_moves(epsilon, users, shifts):
    protocol = VectorSums(8.0, 8, epsilon, DELTA)
    assert sum(shift**2 for shift in shifts) <= 64
    bits = protocol.noise_bits(users)
    number = users * bits.each
    if bits.bias == 0.5 or number > 200_000:  # the same variance with bits that can be enumerated
        fair = math.ceil(protocol.tau)
        found = max(exact_delta(fair, 0.5, [sign * shift for shift in shifts], epsilon) for sign in (1, -1))
        assert bits.variance(users) >= 0.98 * fair / 4
    else:
        found = exact_delta(number, bits.bias, shifts, epsilon)
    assert found <= DELTA
    quarter = math.ceil(protocol.tau / 4)
    assert exact_delta(quarter, 0.5, shifts, epsilon) > 10 * DELTA  # half the noise breaks the claim


@pytest.mark.parametrize("bias", [0.5, 0.02])
def test_biased_bits_cost_no_more_than_is_computed(bias):
    """Far from one half they lean: ones that are missing say more than ones that are there."""
    bits = round(3_000 / (bias * (1 - bias)))
    epsilon = vector_epsilon(bits, bias, 8.0, 8, DELTA, 0.7)  # which is about what it is
    for shifts in SHIFTS.values():
        for sign in (1, -1):
            assert exact_delta(bits, bias, [sign * shift for shift in shifts], epsilon) <= DELTA
    assert exact_delta(bits, bias, [1] * 64, 0.85 * epsilon) > DELTA  # and little is given away


def test_noise_is_near_that_of_a_trusted_board():
    """Standard deviation beside that of exact Gaussian noise at the same promise, rounding included."""
    features = gym.make("PrivateRL/RiverSwimMixture-v0", horizon=20).unwrapped.mixture.features
    moments = MomentLevels(features, 20)
    known, exact = moments.sensitivity(), moments.exact.sensitivity()
    for epsilon, times in ((10.0, 1.07), (1.0, 1.09)):
        deviation = 0.5 * math.sqrt(VectorSums(known.l2, known.linf, epsilon, DELTA).tau) / moments.levels
        assert deviation / (exact.l2 / gaussian_mu(epsilon, DELTA)) == pytest.approx(times, abs=0.01)


@pytest.mark.parametrize("signed", [False, True])
def test_sensitivity_by_search(signed):
    """Two users in one place, whose entries are rounded with the same uniforms."""
    rng, H = np.random.default_rng(1), 3
    closest = 0.0
    for seed in range(60):
        features = random_features(rng, signed=signed)
        moments = MomentLevels(features, H)
        values = Values(rng.choice([0.0, 5.0, rng.random()], size=(H + 1, 3)))
        known, found = moments.sensitivity(), []
        for _ in range(2):
            vector = np.zeros(moments.cells, dtype=np.int64)
            sums.collect(moments, random_users(rng, 1, H, 3, 2), vector, NoiseSource(seed), values)
            found.append(vector)
            assert np.abs(vector).max() <= moments.own_bits // 2
        apart = found[0] - found[1]
        assert np.linalg.norm(apart) <= known.l2
        assert np.abs(apart).max() <= known.linf
        closest = max(closest, np.linalg.norm(apart) / known.l2)
    assert closest > 0.3


def test_the_sensitivity_is_reached():
    """Tabular features: two users in different states, V as large as it may be."""
    moments = MomentLevels(LinearFeatures.tabular(2, 1), 2)
    values = Values(np.array([[2.0, 2.0], [1.0, 1.0], [0.0, 0.0]]))
    found, reach = np.zeros((2, moments.cells), dtype=np.int64), moments.sensitivity().l2
    for which, row in enumerate(found):
        states = np.full((1, 3), which, dtype=np.int32)
        user = Trajectories(states, np.zeros((1, 2), dtype=np.int32), np.ones((1, 2)))
        sums.collect(moments, user, row, NoiseSource(0), values)
    assert 0.9 * reach < np.linalg.norm(found[0] - found[1]) <= reach


def test_rounding_has_no_bias():
    rng = np.random.default_rng(2)
    moments = MomentLevels(random_features(rng, signed=True), 2)
    user, values = random_users(rng, 1, 2, 3, 2), Values(rng.random((3, 3)))
    many = Trajectories(*(np.repeat(part, 4_000, axis=0) for part in (user.states, user.actions, user.rewards)))
    rounded, exact = np.zeros(moments.cells, dtype=np.int64), np.zeros(moments.cells, dtype=np.int64)
    sums.collect(moments, many, rounded, NoiseSource(3), values)
    sums.collect(moments.exact, user, exact, None, values)
    error = rounded * moments.grid / 4_000 - exact * moments.exact.grid
    assert np.abs(error).max() < 6 * 0.5 / moments.levels / math.sqrt(4_000)  # six deviations
    assert np.abs(error[exact == 0]).max() == 0.0  # what is zero stays zero: it is not counted in the sensitivity


def test_messages_and_their_sum_have_one_law():
    """An entry from -2 to 2 as four bits, message by message; a test of homogeneity, which a wrong bias fails."""
    rng, bits, span = np.random.default_rng(0), NoiseBits(3, 0.2), 2
    entries = np.array([[-2, 1], [0, 2], [2, -1]])
    sent = [send_and_shuffle(entries + span, bits, rng, 2 * span) for _ in range(4_000)]
    assert sent[0].shape == (2, 3 * (4 + 3))
    found = np.array([messages.sum(axis=1) for messages in sent]) - 3 * span

    def p(bias):
        drawn = rng.binomial(9, bias, (4_000, 2)) + entries.sum(axis=0)
        values = []
        for entry in range(2):
            table = np.array([np.bincount(x[:, entry] + 6, minlength=30) for x in (drawn, found)])
            values.append(chi2_contingency(table[:, table.sum(axis=0) > 20]).pvalue)
        return values

    assert min(p(0.2)) > 1e-6
    assert max(p(0.26)) < 1e-6


def river(**options):
    return gym.make("PrivateRL/RiverSwimMixture-v0", horizon=3, **options)


STILL = [[1] * 6] * 3


class _Watching(ShuffledBits):
    came = 0

    def publish(self, sums, batch, releases):
        self.came = self.came + sums * self.side.statistic.grid
        return super().publish(sums, batch, releases)


class Watched(SDPShuffler):
    """Keeps what came in, beside what is published."""

    bits = _Watching


@pytest.mark.parametrize("simulation", ["aggregate", "messages"])
def test_a_release_is_as_noisy_as_it_says(simulation):
    board = Watched(river(), 40.0, 0.01, users=600, statistic="linear", schedule=30, simulation=simulation)
    errors = []
    for _ in range(8):
        board.serve(STILL, 30)
        came = board.statistic.sums(board.audit.pipeline.protocol.came)
        errors.append(((board.release.vector_r - came["vector_r"]) / board.release.units["vector_r"][:, None]).ravel())
    bits = board.audit.plan.chosen.noise_bits(30)
    each = np.diff(np.array(errors), axis=0, prepend=0.0)  # of a batch alone
    deviation = math.sqrt(bits.variance(30)) / board.statistic.levels
    assert np.sqrt(np.mean(each**2)) == pytest.approx(deviation, rel=0.35)  # at least 48 entries
    assert np.abs(each).max() > 0.5 * deviation
    stated = board.release.noise_std["vector_r"] / float(board.release.units["vector_r"].max())
    rounding = math.sqrt(240 / 4) / board.statistic.levels
    assert stated == pytest.approx(math.hypot(math.sqrt(8) * deviation, rounding))


def test_moments_settle_save_and_lose_users(tmp_path):
    board = SDPShuffler(river(), 5.0, DELTA, users=400, schedule=100, dropout=0.2)
    agent = PrivateLinOptVI("TabularPolicy", board, seed=0)
    assert board.statistic.name == "linear"
    agent.learn(200 * 3)
    assert board.release.users == 200
    assert board.ledger.epsilon == 5.0
    board.save_state(tmp_path / "state")
    other = SDPShuffler(river(), 5.0, DELTA, users=400, schedule=100, dropout=0.2, statistic="linear")
    other.load_state(tmp_path / "state")
    assert (other.release.gram_p == board.release.gram_p).all()
    other.serve(STILL, 80)
    other.drop_out(20)
    assert other.release.users == 300
    planned, whole = (
        SDPShuffler(river(), 5.0, DELTA, users=400, statistic="linear", dropout=share) for share in (0.2, 0.0)
    )
    sure = planned.audit.plan.chosen.noise_bits(100)
    assert 80 * sure.each >= whole.audit.plan.chosen.tau
    with pytest.raises(ValueError, match="calibration='exact'"):
        SDPShuffler(river(), 5.0, DELTA, users=400, statistic="linear", calibration="paper")


def test_own_features_are_taken():
    features = LinearFeatures.tabular(6, 2)
    board = SDPShuffler(
        gym.make("PrivateRL/RiverSwim-v0", horizon=3), 5.0, DELTA, users=40, statistic=features, schedule=20
    )
    board.serve([1] * 6, 20)
    assert board.release.features is features


class _Few(ShuffledBits):
    def noise_for(self, load):
        few = copy.copy(super().noise_for(load))
        few.tau /= 16.0
        return few


class FewBits(SDPShuffler):
    """A sixteenth of the noise bits: a quarter of the noise."""

    bits = _Few


@pytest.mark.slow
def test_an_audit_comes_close_to_the_claim_and_catches_a_quarter_of_the_noise():
    plan = {"statistic": "linear", "horizon": 2, "runs": 2_000, "attacks": ("one-release",), "seed": 0}
    boundary = Choice("sdp", {"epsilon": 4.0, "delta": 0.01})
    sound = audit(AuditConfig(boundary, **plan))
    assert not sound.broken
    assert sound.bound > 1.5
    assert audit(AuditConfig(boundary, make=FewBits, **plan)).broken


def test_noise_stands_between_a_trusted_board_and_nobody():
    """One batch of 2,000 users, at one promise."""
    boards = [
        kind(river(), 5.0, DELTA, users=1_000, statistic="linear", schedule=1_000)
        for kind in (JDPBillboard, SDPShuffler, LDPUserSide)
    ]
    for board in boards:
        board.serve(STILL, 1_000)
    jdp, sdp, ldp = (board.release.noise_std["vector_p"] for board in boards)
    assert jdp < sdp < 1.3 * jdp
    assert ldp > 10 * sdp

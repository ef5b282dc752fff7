"""Noise bits: what they hide is computed anew, from the binomial law, by other means than the calibration."""

import math

import numpy as np
import pytest
from scipy.stats import binom, chi2_contingency

from private_rl_gym.privacy.protocols.bits import (
    BinarySums,
    NoiseBits,
    send_and_shuffle,
    shuffled_epsilon,
)
from private_rl_gym.privacy.schedule import Schedule

DELTA = 1e-6


def exact_delta(bits, bias, moved, epsilon):
    """Delta of ``moved`` sums that go up and as many that go down, by convolving losses on a fine grid.

    Losses are rounded up, so it is an upper bound; 2 * moved roundings of 1 / (4000 deviations) are all it is off by.
    """
    deviation = math.sqrt(bits * bias * (1 - bias))
    k = np.arange(max(0, int(bits * bias - 14 * deviation - 60)), min(bits, int(bits * bias + 14 * deviation + 60)) + 1)
    step = 1 / (4000 * max(deviation, 1))
    with np.errstate(divide="ignore"):
        ratio = np.log(k + 1.0) - np.log(bits - k) + math.log((1 - bias) / bias)  # log P(k) / P(k + 1)
        back = np.log(bits - k + 1.0) - np.log(k) - math.log((1 - bias) / bias)  # log P(k) / P(k - 1)
    logs = -np.cumsum(np.append(0.0, ratio[:-1]))
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    losses = {"up": ratio, "down": back}
    reach = 12 * math.sqrt(2 * moved) / max(deviation, 1) + 2 * moved / max(deviation, 1) ** 2 + epsilon
    reach = max(reach, 2 * max(np.abs(loss[np.isfinite(loss) & (mass > 1e-20)]).max() for loss in losses.values()))
    size = 2 ** math.ceil(math.log2(2 * reach / step + 2))
    spectrum, kept = np.ones(size // 2 + 1, dtype=complex), 1.0
    for loss in losses.values():
        inside = np.isfinite(loss) & (mass > 1e-22) & (np.abs(loss) < reach)
        place = np.ceil(loss[inside] / step).astype(np.int64) % size
        spectrum *= np.fft.rfft(np.bincount(place, mass[inside], minlength=size)) ** moved
        kept *= mass[inside].sum() ** moved
    total = np.fft.irfft(spectrum, size)
    places = np.arange(size)
    value = np.where(places < size // 2, places, places - size) * step
    gain = np.where(value > epsilon, -np.expm1(epsilon - value), 0.0)
    return float((total * gain).sum()) + max(0.0, 1 - kept)


@pytest.mark.slow
@pytest.mark.parametrize("paper", [False, True], ids=["exact", "paper"])
@pytest.mark.parametrize("users", [10, 1_000, 100_000])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 4.0])
def test_the_shuffled_view_costs_no_more_than_the_claim(epsilon, users, paper):
    """H = 20, below and above tau; delta is below its claim by no more than rounding and a thousandth of noise."""
    moved = 60 if paper else 40
    protocol = BinarySums(moved, epsilon, DELTA, paper=paper, horizon=20)
    bits = protocol.noise_bits(users)
    found = exact_delta(users * bits.each, bits.bias, moved, protocol.true_epsilon)
    assert found <= DELTA * 1.001  # float error of a transform of numbers near one, 1e-15 a term
    if not paper:
        assert found >= 0.9 * DELTA  # and nothing is given away
        lower = NoiseBits(bits.each, bits.bias * 0.9) if bits.each == 1 else NoiseBits(bits.each, 0.45 * bits.bias)
        assert exact_delta(users * lower.each, lower.bias, moved, epsilon) > 1.2 * DELTA


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "users"), [(1.0, 1_000), (4.0, 1_000), *((e, 100_000) for e in (0.1, 0.5, 1.0, 4.0))]
)
def test_sums_in_place_of_bits_break_the_claim(epsilon, users):
    """A user who adds her noise bits to her own sends a number, and one that is all ones names her.

    The others hold zeros, so that no message of theirs can be as large: it costs delta = bias^bits in one counter.
    With ten users each has so many noise bits that the number says little more than the sum.
    """
    bits = BinarySums(40, epsilon, DELTA).noise_bits(users)
    message = np.convolve(binom.pmf(np.arange(bits.each + 1), bits.each, bits.bias), [0.0, 1.0])  # she holds one
    without = np.append(binom.pmf(np.arange(bits.each + 1), bits.each, bits.bias), 0.0)  # she holds none, as others
    named = float(message[without == 0.0].sum())
    assert named == pytest.approx(bits.bias**bits.each)
    assert named > 100 * DELTA  # at any epsilon
    assert (
        exact_delta(users * bits.each, bits.bias, 40, epsilon) <= DELTA * 1.001
    )  # where bits, sent one by one, do not


@pytest.mark.slow
def test_exact_noise_is_a_twentieth_of_the_papers():
    """At H = 20, epsilon = 1, delta = 1e-6, at the same true guarantee: a replaced user's 6 H bits, composed simply."""
    exact = BinarySums(40, 1.0, DELTA).noise_bits(1_000).variance(1_000)
    assert exact == pytest.approx(1.4e3, rel=0.05)
    printed = BinarySums(60, 1.0, DELTA, paper=True, horizon=20).noise_bits(1_000).variance(1_000)
    assert printed == pytest.approx(1.3e6, rel=0.05)
    assert math.sqrt(printed / exact) == pytest.approx(29.6, abs=0.1)  # at the same printed epsilon
    same = BinarySums(60, 0.5, DELTA, paper=True, horizon=20).noise_bits(1_000).variance(1_000)
    assert same == pytest.approx(5e6, rel=0.05)
    assert math.sqrt(exact / same) < 1 / 20


@pytest.mark.slow
@pytest.mark.parametrize("users", [1, 3, 1_000, 5_724, 5_725, 5_726, 50_000])
def test_noise_does_not_depend_on_how_it_is_shared_out(users):
    bits = BinarySums(40, 1.0, DELTA).noise_bits(users)
    assert bits.variance(users) == pytest.approx(1431, rel=0.02)
    assert shuffled_epsilon(users * bits.each, bits.bias, 40, DELTA) <= 1.0


def test_planned_drop_outs_cost_nothing_and_more_do():
    protocol = BinarySums(40, 1.0, DELTA, dropout=0.2)
    bits = protocol.noise_bits(1_000)
    assert protocol.sure(1_000) == 800
    assert shuffled_epsilon(800 * bits.each, bits.bias, 40, DELTA) <= 1.0
    assert shuffled_epsilon(400 * bits.each, bits.bias, 40, DELTA) > 1.3


def test_messages_and_their_sum_have_one_law():
    """Message by message, and by one binomial draw: a test of homogeneity, which a bias of a tenth more fails."""
    rng, bits = np.random.default_rng(0), NoiseBits(3, 0.2)
    held = (np.arange(7)[:, None] < np.array([[0, 2, 7]])).astype(np.int64)

    def p(bias):
        drawn = rng.binomial(7 * 3, bias, (4_000, 3)) + held.sum(axis=0)
        sent = np.array([send_and_shuffle(held, bits, rng).sum(axis=1) for _ in range(4_000)])
        values = []
        for counter in range(3):
            table = np.array([np.bincount(x[:, counter], minlength=30) for x in (drawn, sent)])
            values.append(chi2_contingency(table[:, table.sum(axis=0) > 20]).pvalue)
        return values

    assert min(p(0.2)) > 1e-6
    assert max(p(0.24)) < 1e-6


def test_messages_are_permuted():
    """Where a user's own bit lies tells nothing: it is equally often at every place."""
    rng, held = np.random.default_rng(1), np.eye(6, 1, dtype=np.int64)
    seen = sum(send_and_shuffle(held, NoiseBits(1, 0.0), rng)[0].astype(int) for _ in range(6_000))
    assert seen.sum() == 6_000
    assert seen.min() > 400  # 500 are expected in each of 12 places
    assert seen.max() < 600


@pytest.mark.slow
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize(("horizon", "epsilon"), [(1, 15.0), (1, 12.0), (3, 40.0), (20, 1.0)])
def test_the_papers_constants_cost_what_is_stated_for_any_number_of_users(horizon, epsilon, dropout):
    """Found by attack: biased bits, of which there are few at a large epsilon, cost more than fair ones."""
    protocol = BinarySums(3 * horizon, epsilon, DELTA, paper=True, horizon=horizon, dropout=dropout)
    tau = math.ceil(protocol.tau)
    for users in (1, 7, tau // 2 + 1, tau, tau + 1, 3 * tau, 10 * tau, 1_000 * tau):
        bits = protocol.noise_bits(users)
        sent = protocol.sure(users)
        true = shuffled_epsilon(sent * bits.each, bits.bias, 3 * horizon, DELTA)
        assert true <= protocol.true_epsilon


def test_batches_that_grow_have_less_noise_than_concurrent_ones():
    """The figures of docs/boundaries/sdp-shuffler.md: why a user is in one batch, and not in one of each length."""
    users, first = 50_000, 100
    releases = Schedule(first).batches(users)
    levels = releases.bit_length()
    assert (releases, levels) == (500, 9)
    alone = BinarySums(40, 1.0, DELTA).tau
    assert BinarySums(40 * levels, 1.0, DELTA).tau == pytest.approx(levels * alone, rel=0.01)  # L batches, L times
    after = np.arange(1, releases + 1)
    ones = np.array([number.bit_count() for number in after.tolist()])

    def mean(variances):
        return math.sqrt(np.mean(variances) * alone / 4)

    assert mean(after) == pytest.approx(598, rel=0.01)
    assert mean(levels * ones) == pytest.approx(239, rel=0.01)
    last = math.sqrt(Schedule(first, 0.25).batches(users) * alone / 4)  # the largest of all
    assert last < 200 < mean(levels * ones)
    few = np.arange(1, 11)
    assert mean([4 * number.bit_count() for number in few.tolist()]) > mean(few)  # of ten releases


@pytest.mark.parametrize(
    ("build", "word"),
    [
        (lambda: BinarySums(40, 1.0, 0.0), "delta is 0:"),
        (lambda: BinarySums(4, 1.0, 1e-16), "delta is 1e-16"),
        (lambda: BinarySums(80, 1e-5, 1e-6), "epsilon is 1e-05: .* larger epsilon"),
        (lambda: BinarySums(60, 1e-2, 1e-6, paper=True, horizon=20), "epsilon is 0.01: .* larger epsilon"),
        (
            lambda: BinarySums(10, 100.0, 1e-6, paper=True, horizon=5, dropout=0.5),
            "epsilon is 100, .*calibration='exact'",
        ),
        (lambda: BinarySums(3, 22.0, 1e-6, paper=True, horizon=1), "epsilon is 22, .*calibration='exact'"),
        (lambda: BinarySums(40, 1.0, 1e-6, dropout=1.0), "dropout is 1.0"),
        (lambda: BinarySums(40, 0.0, 1e-6), r"epsilon is 0\.0:"),
    ],
)
def test_bad_input_gets_a_sentence(build, word):
    with pytest.raises(ValueError, match=word):
        build()

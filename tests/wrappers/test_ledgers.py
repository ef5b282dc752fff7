"""The epsilon that is printed: defaults, notes, and the papers' constants with what they cost."""

import math
import warnings

import numpy as np
import pytest

from private_rl_gym.privacy import gaussian_mu
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard, SDPShuffler
from tests.wrappers.stacks import H, jdp, ldp, river


def test_the_line_of_the_architecture_page():
    board = JDPBillboard(river(), epsilon=1.0, delta=1e-6, users=50_000)
    said = str(board.get_wrapper_attr("ledger"))
    assert said.startswith("(1.0, 1e-06)-JDP")
    assert "50000 users" in said


@pytest.mark.slow
def test_the_default_is_the_most_accurate_for_the_budget():
    assert "matrix-factorization" in JDPBillboard(river(), 1.0, 1e-6, users=100).guarantee.mechanism
    assert "k-ary-tree" in JDPBillboard(river(), 1.0, 0.0, users=100).guarantee.mechanism
    errors = {
        counting: jdp(river(), users=1000, delta=delta, counting=counting, noise=noise)
        for counting, delta, noise in [
            ("binary-tree", 0.0, "laplace"),
            ("honaker-tree", 0.0, "laplace"),
            ("k-ary-tree", 0.0, "laplace"),
            ("matrix-factorization", 1e-6, "gaussian"),
        ]
    }
    spread = {
        name: board.audit.noises([1] * 511)[0].scale * np.linalg.norm(board.audit.noises([1] * 511)[0].matrix[-1])
        for name, board in errors.items()
    }
    assert spread["honaker-tree"] < spread["binary-tree"]
    assert spread["k-ary-tree"] < spread["honaker-tree"]
    assert spread["matrix-factorization"] < spread["k-ary-tree"] * math.sqrt(2)


@pytest.mark.parametrize(
    "build",
    [
        lambda: JDPBillboard(river(), 1.0, 0.05, users=100),
        lambda: LDPUserSide(river(), 1.0, 0.05, users=100, randomizer="gaussian"),
        lambda: SDPShuffler(river(), 1.0, 0.05, users=100, schedule=100),
    ],
)
def test_a_delta_above_one_in_all_users_is_said_when_a_boundary_is_built(build):
    with pytest.warns(UserWarning, match=r"delta is above 1 / 100 users, which would allow.* take 1e-6") as said:
        build()
    assert [one.filename for one in said] == [__file__]


def test_a_small_delta_is_taken_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        JDPBillboard(river(), 1.0, 0.009, users=100)


def test_an_open_board_says_so_plainly():
    board = OpenBillboard(river())
    assert str(board.ledger) == "no privacy (epsilon = inf)"
    assert "No privacy is guaranteed" in board.ledger.sentence()


def test_laplace_noise_makes_use_of_a_delta():
    pure, spent = (jdp(river(), noise="laplace", counting="binary-tree", delta=delta) for delta in (0.0, 1e-6))
    assert (pure.ledger.epsilon, pure.ledger.delta) == (1.0, 0.0)
    assert (spent.ledger.epsilon, spent.ledger.delta) == (1.0, 1e-6)
    for board in (pure, spent):
        board.serve([1] * 4, 40)
    assert spent.release.noise_std["m"] < 0.5 * pure.release.noise_std["m"]
    assert "honaker-tree" in jdp(river(), noise="laplace").guarantee.mechanism
    with pytest.raises(ValueError, match=r"no use for delta = 1e-06.*Leave delta out"):
        jdp(river(), counting="k-ary-tree", noise="laplace")
    local = [LDPUserSide(river(), 1.0, delta, randomizer="laplace") for delta in (0.0, 1e-6)]
    assert [board.ledger.delta for board in local] == [0.0, 1e-6]
    scales = [board.audit.pipeline.side.randomizer.scale for board in local]
    assert scales[1] < scales[0]


@pytest.mark.parametrize("users", [7, 1000, 50_000])
def test_the_papers_counters_cost_two_epsilon(users):
    """Scale 3 H levels / epsilon for three families, of which a replaced user moves 6 H in L1 at every level."""
    with pytest.warns(UserWarning, match=r"epsilon = 0\.5 and cost 1"):
        board = JDPBillboard(river(), epsilon=0.5, users=users, calibration="paper")
    levels = math.floor(math.log2(users)) + 1
    assert board.audit.noises([1])[0].scale == pytest.approx(3 * H * levels / 0.5)
    assert board.statistic.separate_visits
    assert board.ledger.epsilon == pytest.approx(2 * 0.5)
    assert "printed as epsilon = 0.5" in str(board.ledger)


def test_the_papers_local_noise_costs_two_epsilon():
    with pytest.warns(UserWarning, match="printed constants"):
        board = LDPUserSide(river(), epsilon=1.0, randomizer="laplace", calibration="paper")
    assert board.audit.pipeline.side.randomizer.scale == 3 * H / 1.0
    assert board.ledger.epsilon == pytest.approx(2.0)


def test_exact_calibration_is_what_the_proofs_say():
    statistic_l1, statistic_l2 = 2.5 * H, math.sqrt(2 * H + 0.25 * (3 + 2 / 2))  # H = 5: three stages of one kind
    tree = jdp(river(), users=1000, delta=0.0, counting="binary-tree")
    assert tree.audit.noises([1])[0].scale == pytest.approx(statistic_l1 * 10 / 1.0)
    gaussian = jdp(river(), users=1000, counting="binary-tree")
    assert gaussian.audit.noises([1])[0].scale == pytest.approx(statistic_l2 * math.sqrt(10) / gaussian_mu(1.0, 1e-6))
    batched = jdp(river(), users=1000, counting="batched")
    assert batched.audit.noises([1])[0].scale == pytest.approx(statistic_l2 / gaussian_mu(1.0, 1e-6))
    local = ldp(river(), randomizer="gaussian", delta=1e-6)
    assert local.audit.pipeline.side.randomizer.scale == pytest.approx(statistic_l2 / gaussian_mu(1.0, 1e-6))
    local = ldp(river(), randomizer="laplace")
    assert local.audit.pipeline.side.randomizer.scale == pytest.approx(statistic_l1)


def test_a_weaker_promise_says_that_it_is_weaker():
    board = jdp(river(), public_start=True)
    assert "the same start" in str(board.ledger)
    with pytest.warns(UserWarning, match="printed constants"):
        weak, strong = (jdp(river(), delta=0.0, calibration="paper", public_start=weak) for weak in (True, False))
    assert weak.ledger.epsilon < strong.ledger.epsilon
    with pytest.raises(ValueError, match="Leave public_start and neighbours out"):
        jdp(ldp(river()), public_start=True)


def test_a_seed_is_confessed():
    assert "seeded" in str(jdp(river()).ledger)
    assert "seeded" in str(ldp(river()).ledger)
    assert "seeded" not in str(JDPBillboard(river(), 1.0, 1e-6, users=10).ledger)


def test_unseeded_noise_differs_and_reset_does_not_seed_it():
    boards = [JDPBillboard(river(), 1.0, 1e-6, users=10) for _ in range(2)]
    for board in boards:
        for _ in range(3):
            board.reset(seed=0)
            for _ in range(H):
                board.step(1)
    assert not np.array_equal(boards[0].release.m, boards[1].release.m)


def test_secure_noise_is_available():
    board = JDPBillboard(river(), 1.0, 1e-6, users=10, rng="secure")
    board.serve([1] * 4, 10)
    assert board.release.users == 10

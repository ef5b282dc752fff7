"""Users who come back: one calibration for all their episodes, ids that are counted, and a ledger that says so."""

from itertools import combinations

import numpy as np
import pytest

from private_rl_gym.lab.audits import AuditConfig, audit
from private_rl_gym.lab.grids.cell import Choice
from private_rl_gym.privacy.accounting.guarantee import Guarantee, TrustModel
from private_rl_gym.privacy.accounting.ledger import Ledger
from private_rl_gym.privacy.mechanisms import MECHANISMS, Batched, HonakerTree, MatrixFactorization, Mechanism
from private_rl_gym.wrappers import BadRowsError, Episodes, OpenBillboard
from tests.privacy.mechanisms.linear import matrix_of
from tests.wrappers.stacks import H, jdp, ldp, river
from tests.wrappers.test_ingest import arrays, logged

STEPS = 8
PAIRS = [(mechanism, law) for mechanism in MECHANISMS.values() for law in mechanism.laws]


def shifted(B, visits):  # [release]
    """The largest norms of noise that could hide equal contributions to these batches, read off the streaming code."""
    inverse, worst = np.linalg.pinv(B), 0.0
    for batches in combinations(range(len(B)), visits):
        moved = (np.arange(len(B))[:, None] >= np.array(batches)).sum(axis=1).astype(float)
        worst = max(worst, float(np.linalg.norm(inverse @ moved)))
    return worst


@pytest.mark.parametrize("mechanism", [kind for kind, law in PAIRS if law == "gaussian" and kind.bounds_returning()])
@pytest.mark.parametrize("visits", [1, 2, 3, 5, STEPS])
def test_no_user_who_comes_back_costs_more_than_is_accounted_for(mechanism, visits):
    """White box, for Gaussian noise: mu of the worst batches against the factor that calibrates the noise."""
    noise = mechanism(STEPS, 1, "gaussian")
    mu, claimed = shifted(matrix_of(mechanism, STEPS, "gaussian"), visits), noise.returning(visits)
    assert mu <= claimed * (1.0 + 1e-6)
    assert mu >= (0.6 if mechanism is HonakerTree else 0.75) * claimed
    if visits > 1:
        assert mu > noise.sensitivity * 1.2  # noise for one visit would not do
    assert claimed <= visits * noise.sensitivity * 1.2


@pytest.mark.parametrize(("mechanism", "law"), PAIRS)
def test_laplace_noise_adds_visits_up(mechanism, law):
    noise = mechanism(50, 1, law)
    assert noise.returning(1) == noise.sensitivity
    if law == "laplace":
        assert noise.returning(3) == 3 * noise.sensitivity


class Unbounded(Batched):
    """A mechanism with no bound of its own for users who come back, and less noise than all others."""

    name = "unbounded"
    apart = False
    returning = Mechanism.returning

    def weights(self, step):
        return ((1.0, 1e-3),)


def test_a_mechanism_without_a_bound_is_no_default_for_users_who_come_back(monkeypatch):
    usual = jdp(river(), visits=2, users=400, schedule=20).audit.plan.chosen
    monkeypatch.setitem(MECHANISMS, "unbounded", Unbounded)
    assert jdp(river(), users=400, schedule=20).audit.plan.chosen.mechanism is Unbounded
    chosen = jdp(river(), visits=2, users=400, schedule=20).audit.plan.chosen
    assert chosen.law == "laplace" or chosen.mechanism is usual.mechanism
    asked = jdp(river(), visits=2, users=400, schedule=20, counting="unbounded").audit.plan.chosen
    assert (asked.mechanism, asked.law) == (Unbounded, "laplace")
    with pytest.raises(ValueError, match="'unbounded' with Gaussian noise has no proof for repeated visits"):
        jdp(river(), visits=2, users=400, schedule=20, counting="unbounded", noise="gaussian")


def test_what_k_visits_cost():
    """Batches pay sqrt(k); a running sum holds all of hers, and pays nearly k."""
    scales = {
        counting: [
            jdp(river(), counting=counting, visits=visits, users=4000, schedule=100).audit.plan.chosen.scale
            for visits in (1, 4)
        ]
        for counting in ("batched", "matrix-factorization", "binary-tree")
    }
    assert scales["batched"][1] == pytest.approx(2.0 * scales["batched"][0])
    for counting in ("matrix-factorization", "binary-tree"):
        assert 3.0 < scales[counting][1] / scales[counting][0] < 4.0


def test_coefficients_that_do_not_fall_are_refused():
    noise = MatrixFactorization(20, 1)
    object.__setattr__(noise.blt, "scale", noise.blt.scale + 1.0)
    with pytest.raises(ValueError, match=r"visits is 2: the coefficients for 20 releases do not decrease"):
        noise.returning(2)
    object.__setattr__(noise.blt, "scale", noise.blt.scale - 1.0)


# Ledger ---------------------------------------------------------------------------------------------------------------


def test_the_ledger_says_how_often_and_what_is_assumed():
    board = jdp(river(), visits=3)
    assert str(board.ledger).startswith(
        "(1.0, 1e-06)-JDP, replace one user, who is in at most 3 episodes, 40 episodes; that no user is in more than 3"
    )
    sentence = board.ledger.sentence()
    for part in ("Each of the users in 40 episodes", "in at most 3 episodes", "assumed of all others"):
        assert part in sentence
    assert board.ledger.to_dict()["outside"]["visits"] == 3
    assert "episodes" not in str(jdp(river()).ledger)
    often, alone = (jdp(river(), visits=visits, statistic="tabular").guarantee.mu for visits in (3, 1))
    assert 0.0 < often == pytest.approx(alone)  # the same promise, with more noise
    once = Ledger((Guarantee(TrustModel.JDP, 1.0, 0.0, 10, "noise"),))
    assert board.ledger.compose(once, delta=1e-6).visits == 1  # nobody promised her more there


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"visits": 41}, "visits is 41: 40 users in batches of 1 make 40 batches"),
        ({"visits": 5, "schedule": 10}, "Write visits=4"),
        ({"visits": 2, "calibration": "paper"}, "leave visits out"),
        ({"visits": 0}, "visits"),
    ],
)
def test_what_has_no_joint_calibration_is_refused(options, said):
    with pytest.raises(ValueError, match=said):
        jdp(river(), **options)


def test_reports_of_users_who_come_back_have_one_law_of_noise():
    for options, law in (
        ({"visits": 2}, "laplace"),
        ({"visits": 20}, "gaussian"),
        ({"visits": 2, "noise": "gaussian"}, "gaussian"),
        ({"visits": 2, "delta": 0.0}, "laplace"),
    ):
        protocol = jdp(river(), statistic="reports", **options).audit.pipeline.protocol
        for load in (1, H):
            counting = protocol.noise_for(load).mechanism
            assert (counting.name, counting.law) == ("batched", law)
    with pytest.raises(ValueError, match="no joint calibration is proved for reports that users noise themselves"):
        jdp(ldp(river()), visits=2)


# Tables ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda: jdp(river(), visits=2, counting="batched"), lambda: open_board()])
def test_a_user_may_be_in_so_many_tables_and_in_each_once(make):
    board = make()
    assert board.ingest(logged(5)) == board.ingest(logged(5)) == 5
    with pytest.raises(
        BadRowsError, match="5 of 5 users have come before 2 times, or are in the table twice"
    ) as caught:
        board.ingest(logged(5))
    assert "patient" not in str(caught.value)
    assert board.users_left == 30
    with pytest.raises(BadRowsError, match="1 of 3 users"):
        board.ingest(Episodes(["a", "b", "a"], *arrays(logged(3))))


def open_board():
    return OpenBillboard(river(), users=40, visits=2)


def test_a_table_begins_a_new_batch():
    """So that nobody is in one batch twice; where no release is to spare for it, the table is refused."""
    board = jdp(river(), visits=2, counting="batched", schedule=4)
    board.ingest(logged(6))
    assert (board.release.version, board.release.users) == (1, 4)
    board.ingest(logged(6))
    assert (board.release.version, board.release.users) == (3, 10)
    tight = jdp(river(), visits=2, counting="matrix-factorization", schedule=4)
    tight.ingest(logged(6))
    with pytest.raises(ValueError, match="more releases"):
        tight.ingest(logged(6))
    once = jdp(river(), counting="batched", schedule=4)
    once.ingest(logged(6))
    once.ingest(logged(6, seed=1))
    assert once.release.version == 3  # who comes once is in no batch twice


def test_visits_are_counted_after_a_restart_too(tmp_path):
    board = jdp(river(), visits=2, counting="batched")
    board.ingest(logged(5))
    board.ingest(Episodes([f"patient 0-{user}" for user in range(2)], *arrays(logged(2))))
    board.save_state(tmp_path / "state")
    with pytest.raises(ValueError, match="differs in guarantee"):
        jdp(river(), visits=3, counting="batched").load_state(tmp_path / "state")
    again = jdp(river(), visits=2, counting="batched")
    again.load_state(tmp_path / "state")
    with pytest.raises(BadRowsError, match="2 of 5 users have come before 2 times"):
        again.ingest(logged(5))


# Audit ----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_noise_for_one_visit_is_caught_and_noise_for_all_is_not():
    """Seed 0. With 95 % confidence a bound is right; three episodes of one user are replaced, in three batches."""
    boundary = Choice("jdp", {"epsilon": 4.0, "delta": 1e-6, "visits": 3, "counting": "matrix-factorization"})
    plan = {"runs": 1000, "attacks": ("stream",)}
    sound = audit(AuditConfig(boundary, **plan))
    assert sound.claim.visits == 3
    assert 2.0 < sound.bound <= 4.0
    broken = audit(AuditConfig(boundary, target="private_rl_gym.lab.audits.broken:OneVisit", **plan))
    assert broken.broken, broken.verdict

"""Promises, in words and for machines."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from private_rl_gym.privacy import Guarantee, Ledger, TrustModel, gaussian_epsilon
from private_rl_gym.privacy.accounting.guarantee import Covers, Neighbours
from private_rl_gym.privacy.accounting.ledger import weakest

ZERO_OUT = Neighbours.ZERO_OUT
jdp = Guarantee(TrustModel.JDP, 1.0, 1e-6, 50_000, "binary-tree sums")
ldp = Guarantee(TrustModel.LDP, 2.0000000001, 0.0, None, "reports", notes=("seeded noise: for experiments",))
none = Guarantee(TrustModel.NONE, math.inf, 1.0, None, "exact sums are published")


def test_one_line():
    assert str(jdp) == "(1.0, 1e-06)-JDP, replace one user, 50000 users"
    assert str(none) == "no privacy (epsilon = inf)"
    assert str(ldp) == "(2.00000001, 0)-LDP, replace one user, any number of users; seeded noise: for experiments"


def test_a_sentence_for_a_lawyer():
    sentence = jdp.sentence()
    for part in (
        "Each of 50000 users",
        "(1.0, 1e-06)-joint differential privacy",
        "states, actions and rewards",
        "for ever",
    ):
        assert part in sentence
    assert sentence.endswith(".")
    assert "No privacy is guaranteed" in none.sentence()


def test_a_stack():
    ledger = Ledger((ldp, jdp))
    assert (ledger.epsilon, ledger.delta) == (1.0, 1e-6)
    assert ledger.outside is jdp
    assert str(ledger).splitlines() == [str(ldp), str(jdp)]
    assert ldp.sentence() in ledger.sentence()


@pytest.mark.parametrize(
    "entry", [jdp, ldp, none, replace(jdp, mu=0.25, visits=3, seeded=True, covers=Covers.REWARDS, neighbours=ZERO_OUT)]
)
def test_what_machines_are_told_comes_back(entry):
    assert Guarantee.from_dict(json.loads(json.dumps(entry.to_dict()))) == entry


@pytest.mark.parametrize(
    "change",
    [
        {"model": "XDP"},
        {"model": None},
        {"epsilon": "1"},
        {"epsilon": -1.0},
        {"epsilon": math.nan},
        {"delta": 2.0},
        {"users": 1.5},
        {"notes": "seeded"},
        {"notes": [1]},
        {"mu": 7.0},  # rho follows from it
        {"visits": None},
        {"more": 1},
    ],
)
def test_what_is_no_guarantee_is_refused(change):
    with pytest.raises(ValueError, match="not the values of a guarantee"):
        Guarantee.from_dict({**jdp.to_dict(), **change})
    without = jdp.to_dict()
    del without["rho"]
    with pytest.raises(ValueError, match="not the values of a guarantee"):
        Guarantee.from_dict(without)


@pytest.mark.parametrize("entry", [jdp, ldp, none])
def test_for_machines(entry):
    found = json.loads(json.dumps(Ledger((entry,)).to_dict(), allow_nan=False))
    assert found["entries"][0]["model"] == entry.model
    assert found["outside"]["epsilon"] == (entry.epsilon if math.isfinite(entry.epsilon) else None)


@pytest.mark.parametrize("model", TrustModel)
def test_every_trust_model_has_words_of_its_own(model):
    others = set(TrustModel) - {model}
    assert model.full_name not in {other.full_name for other in others}
    assert model.view not in {other.view for other in others}
    assert TrustModel(str(model)) is model
    promise = Guarantee(model, 1.0, 0.0, 1, "noise").sentence()
    assert model is TrustModel.NONE or (f"(1.0, 0)-{model.full_name}" in promise and model.view in promise)


def test_of_several_promises_the_one_that_needs_the_most_trust_remains():
    """The members stand in the order of trust, and nothing else says what the order is."""
    assert list(TrustModel) == [TrustModel.LDP, TrustModel.SDP, TrustModel.JDP, TrustModel.NONE]
    for weaker in TrustModel:
        for stronger in list(TrustModel)[: list(TrustModel).index(weaker) + 1]:
            pair = [Ledger((Guarantee(model, 1.0, 0.0, 1, "noise"),)) for model in (stronger, weaker)]
            assert pair[0].compose(pair[1]).model is pair[1].compose(pair[0]).model is weaker


def test_rounding_never_promises_more():
    for epsilon in (1 / 3, 2 / 3, 0.1 + 0.2, 1.0000000004):
        printed = float(str(Guarantee(TrustModel.JDP, epsilon, 0.0, 1, "")).split(",")[0][1:])
        assert printed >= epsilon * (1 - 1e-12)
        assert printed == pytest.approx(epsilon, rel=1e-8)


# Currencies of others -------------------------------------------------------------------------------------------------


def test_rho_and_renyi_are_those_of_the_worst_pair():
    """Against the integral over both laws, by sums over outcomes or over a fine lattice."""
    gaussian = Guarantee(TrustModel.JDP, 1.0, 1e-6, 10, "noise", mu=0.7)
    pure = Guarantee(TrustModel.JDP, 1.3, 0.0, 10, "noise")
    x = np.linspace(-12.0, 12.0, 100_001)
    normal = [np.exp(-((x - mean) ** 2) / 2.0) for mean in (0.7, 0.0)]
    answers = [np.array([np.exp(1.3), 1.0]), np.array([1.0, np.exp(1.3)])]
    for order in (1.5, 2.0, 8.0):
        for promise, laws in ((gaussian, normal), (pure, answers)):
            first, second = (law / law.sum() for law in laws)
            there = np.log((first**order * second ** (1.0 - order)).sum()) / (order - 1.0)
            assert promise.renyi(order) == pytest.approx(there, rel=1e-6)
            assert promise.renyi(order) <= order * promise.rho * (1.0 + 1e-12)
    assert (gaussian.rho, pure.rho) == pytest.approx((0.245, 0.845))
    assert gaussian.to_dict()["rho"] == gaussian.rho
    assert pure.renyi(500.0) <= 1.3  # and no overflow


def test_what_has_a_delta_of_another_kind_has_no_rho():
    assert jdp.rho is None
    assert jdp.renyi(2.0) is None
    assert none.rho is None
    with pytest.raises(ValueError, match=r"order is 1\.0: Renyi divergences of privacy have an order above 1"):
        ldp.renyi(1.0)


def test_composed_gaussian_promises_keep_their_mu():
    one = Ledger((Guarantee(TrustModel.JDP, 1.0, 1e-6, 10, "noise", mu=0.3),))
    other = Ledger((Guarantee(TrustModel.JDP, 1.0, 1e-6, 10, "noise", mu=0.4),))
    both = one.compose(other, delta=1e-6)
    assert both.mu == pytest.approx(0.5)
    assert both.rho == pytest.approx(one.outside.rho + other.outside.rho)
    assert both.epsilon == pytest.approx(gaussian_epsilon(1e-6, 0.5))
    assert both.epsilon < both.rho + 2.0 * math.sqrt(both.rho * math.log(1e6))
    assert one.compose(Ledger((Guarantee(TrustModel.JDP, 1.0, 0.0, 10, "noise"),)), delta=1e-6).mu is None


def test_together_nothing_is_promised_to_who_comes_more_often_than_one_of_them_allows():
    once, thrice = (replace(jdp, visits=visits) for visits in (1, 3))
    assert Ledger((once,)).compose(Ledger((thrice,)), delta=2e-6).visits == 1
    assert Ledger((thrice,)).compose(Ledger((thrice,)), delta=2e-6).visits == 3


def test_the_guarantee_for_users_of_several_groups_is_the_weaker_in_each_part():
    """Found by attack: the one with the larger epsilon was taken whole, and covered more than the other does."""
    rewards = replace(jdp, epsilon=0.5, delta=1e-5, covers=Covers.REWARDS, seeded=True, users=100, visits=2, mu=0.1)
    both = weakest([ldp, rewards])
    assert (both.model, both.epsilon, both.delta) == ("JDP", ldp.epsilon, 1e-5)
    assert (both.covers, both.seeded, both.visits, both.users) == ("rewards", True, 1, None)
    assert both == replace(weakest([rewards, ldp]), mechanism=both.mechanism)
    assert Guarantee.from_dict(json.loads(json.dumps(both.to_dict()))) == both
    gaussian = [replace(jdp, mu=mu) for mu in (0.3, 0.1)]
    assert weakest(gaussian).mu == 0.3
    assert weakest(gaussian).users == 100_000
    assert weakest([jdp, none, ldp]) is none
    assert weakest([jdp]) is jdp
    apart = [replace(jdp, neighbours=ZERO_OUT), replace(jdp, neighbours=Neighbours.SAME_START)]
    assert weakest(apart).epsilon == math.inf  # no promise is common to both

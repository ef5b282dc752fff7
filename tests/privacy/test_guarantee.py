"""Promises, in words and for machines."""

import json
import math

import pytest

from private_rl_gym.privacy import Guarantee, Ledger, TrustModel

jdp = Guarantee(TrustModel.JDP, 1.0, 1e-6, 50_000, "binary-tree sums")
ldp = Guarantee(TrustModel.LDP, 2.0000000001, 0.0, None, "reports", notes=("seeded noise: for experiments",))
none = Guarantee(TrustModel.NONE, math.inf, 1.0, None, "exact sums are published")


def test_one_line():
    assert str(jdp) == "(1.0, 1e-06)-JDP, replace one user, 50000 users"
    assert str(none) == "no privacy (epsilon = inf)"
    assert str(ldp) == "(2.00000001, 0)-LDP, replace one user, any number of users; seeded noise: for experiments"


def test_a_sentence_for_a_lawyer():
    sentence = jdp.sentence()
    for part in ("Each of 50000 users", "(1.0, 1e-06)-joint differential privacy", "states and rewards", "for ever"):
        assert part in sentence
    assert sentence.endswith(".")
    assert "No privacy is promised" in none.sentence()


def test_a_stack():
    ledger = Ledger((ldp, jdp))
    assert (ledger.epsilon, ledger.delta) == (1.0, 1e-6)
    assert ledger.outside is jdp
    assert str(ledger).splitlines() == [str(ldp), str(jdp)]
    assert ldp.sentence() in ledger.sentence()


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

"""A mechanism, a randomizer and a protocol that are written outside the package, in boundaries and under audit."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from private_rl_gym.agents import DPUCBVI
from private_rl_gym.lab.audits import AuditConfig, audit
from private_rl_gym.lab.grids.cell import Choice
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard
from tests.wrappers.stacks import river, same_release


def example(name):
    """The module of an example, where parts are written outside the package."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[2] / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RunningBatches = example("own_mechanism").RunningBatches
Flips = example("own_randomizer").Flips
NotNegativeBillboard = example("own_protocol").NotNegativeBillboard


class FewFlips(Flips):
    """Broken: half as many flips as the budget asks for."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.flip /= 2.0


def own_mechanism(env, users, seed):
    return JDPBillboard(env, 2.0, 0.0, users=users, rng=seed, schedule=4, counting=RunningBatches)


def own_randomizer(env, users, seed, kind=Flips):
    return LDPUserSide(env, 2.0, users=users, rng=seed, randomizer=kind)


def own_protocol(env, users, seed):
    return NotNegativeBillboard(env, 2.0, 0.0, users=users, rng=seed)


OWN = [own_mechanism, own_randomizer, own_protocol]


@pytest.mark.parametrize("make", OWN)
def test_parts_of_ones_own_publish_what_they_state(make):
    board, exact = make(river(), 4000, 3), OpenBillboard(river(), users=4000)
    for one in (board, exact):
        one.unwrapped.reset(seed=1)
        one.serve([1] * 4, users=4000)
    assert board.ledger.outside.epsilon == 2.0
    if make is own_protocol:  # what is below zero was cut
        assert (board.release.m >= 0.0).all()
        return
    off = {family: board.release.sums()[family] - exact.release.sums()[family] for family in "mr"}
    for family, error in off.items():
        assert np.abs(error).max() <= board.release.error_bound(1e-6, of=family)
        assert error.std() > 0.2 * board.release.noise_std[family]


@pytest.mark.parametrize("make", OWN)
def test_an_agent_learns_through_parts_of_ones_own(make):
    board = make(river(), 200, 3)
    DPUCBVI("TabularPolicy", board, seed=0).learn(200 * board.sizes[0])
    assert board.users_left == 0


def test_noise_of_ones_own_mechanism_is_saved_and_restored(tmp_path):
    straight, first, second = (own_mechanism(river(), 40, 3) for _ in range(3))
    for board in (straight, first):
        board.unwrapped.reset(seed=1)
        board.serve([1] * 4, users=20)
    first.save_state(tmp_path / "state")
    second.load_state(tmp_path / "state")
    for board in (straight, second):
        board.serve([0] * 4, users=20)
    assert same_release(straight.release, second.release)


def test_the_matrix_of_ones_own_mechanism_is_read_off_its_code():
    board = own_mechanism(river(), 40, 3)
    (noise,) = board.audit.noises([4] * 3)
    np.testing.assert_array_equal(noise.matrix, np.tril(np.ones((3, 3))))


def audited(make, attack):
    boundary = Choice("jdp", {"epsilon": 2.0, "delta": 0.0})
    return audit(AuditConfig(boundary=boundary, make=make, attacks=(attack,), runs=1500))


@pytest.mark.slow
@pytest.mark.parametrize("make", OWN)
def test_an_audit_finds_no_more_than_parts_of_ones_own_state(make):
    assert all(result.bound <= 2.0 for result in audited(make, "one-release").results)


@pytest.mark.slow
def test_an_audit_catches_a_broken_randomizer_of_ones_own():
    report = audited(lambda env, users, seed: own_randomizer(env, users, seed, FewFlips), "one-release")
    assert max(result.bound for result in report.results) > 2.0

"""Audits of sound mechanisms raise no more alarms than chance; broken ones are caught; the command says so.

`make audit` runs the same over everything, with more runs and at four epsilons.
"""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from typer.testing import CliRunner

from private_rl_gym.lab.audits import ATTACKS, Attack, AuditConfig, audit
from private_rl_gym.lab.audits.audit import game
from private_rl_gym.lab.audits.config import environment_of, maker
from private_rl_gym.lab.audits.everything import CASES, EPSILONS, alarms_allowed, everything, matrix
from private_rl_gym.lab.audits.users import PROBE, Users, guarantee_of, two_rooms
from private_rl_gym.lab.cli.app import app
from private_rl_gym.lab.grids.cell import Choice
from private_rl_gym.lab.grids.engines import InProcess, OnJoblib
from private_rl_gym.lab.registry import GridError
from private_rl_gym.privacy.mechanisms import MECHANISMS
from private_rl_gym.privacy.mechanisms.running import RunningMechanism
from private_rl_gym.privacy.protocols import Central, Exact
from private_rl_gym.wrappers import BOUNDARIES, JDPBillboard, LDPPerStep, LDPUserSide

BROKEN = "private_rl_gym.lab.audits.broken:"


def jdp(delta=1e-6, **options):
    return Choice("jdp", {"epsilon": 1.0, "delta": delta, **options})


def ldp(**options):
    return Choice("ldp", {"epsilon": 1.0, **options})


# Sound mechanisms ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_sound_mechanisms_raise_no_more_alarms_than_chance_explains():
    """One audit of each case, at epsilons in turn. At 95 %, 11 alarms of 64 are seen once in a thousand times."""
    plans = []
    for seed, epsilon in enumerate(EPSILONS):
        plans += [
            pair
            for place, pair in enumerate(everything(runs=250, seeds=[seed], epsilons=[epsilon]))
            if place % 4 == seed
        ]
    found = matrix(plans)
    assert len(found.cases) == len(CASES)
    assert not found.broken, [(entry.name, report.bound, report.claim.epsilon) for entry, report in found.alarms]
    assert alarms_allowed(36) == 7
    assert alarms_allowed(200) <= 21


def test_every_boundary_and_every_mechanism_is_audited():
    audited = {case.boundary.name for case in CASES.values()}
    assert audited == {*BOUNDARIES, LDPPerStep.short}
    pairs = [case.boundary.options for case in CASES.values() if case.boundary.name == "jdp"]
    for counting, mechanism in MECHANISMS.items():
        for law in mechanism.laws:
            assert any((options.get("counting"), options.get("noise")) == (counting, law) for options in pairs)


TIGHT = {
    "binary tree, Laplace": (jdp(0.0, counting="binary-tree"), {}),
    "Honaker's tree, Laplace": (jdp(0.0, counting="honaker-tree"), {}),
    "k-ary tree": (jdp(0.0), {}),
    "batches, Laplace": (jdp(0.0, counting="batched"), {}),
    "reports, Laplace": (ldp(randomizer="laplace"), {}),
    "factorization": (jdp(0.05), {"attacks": ("stream",)}),
    "binary tree, Gaussian": (jdp(0.05, counting="binary-tree"), {"attacks": ("stream",)}),
    "Honaker's tree, Gaussian": (jdp(0.05, counting="honaker-tree"), {"attacks": ("stream",)}),
    "batches, Gaussian": (jdp(0.05, counting="batched"), {"attacks": ("stream",)}),
    "reports, Gaussian": (ldp(randomizer="gaussian", delta=0.05), {}),
    "moments": (jdp(0.05), {"statistic": "linear", "horizon": 2}),
    "one report, Laplace": (jdp(0.0), {"statistic": "reports", "runs": 8000, "users": 1}),
    "five reports, Laplace": (jdp(0.0), {"statistic": "reports", "horizon": 5, "users": 1, "runs": 200_000}),  # rare
    "five reports, Gaussian": (jdp(0.05), {"statistic": "reports", "horizon": 5, "users": 1}),
    "shuffled bits": (Choice("sdp", {"epsilon": 1.0, "delta": 0.05}), {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TIGHT)
def test_a_white_box_comes_close_to_the_claim_of_every_additive_mechanism(name):
    """At least 0.7 of epsilon = 1, with 95 % confidence, by a bound that trusts no law of the noise.

    With delta = 0.05 where there is one: at 1e-6 such a bound would have to count events that never happen.
    """
    boundary, options = TIGHT[name]
    runs = 16_000 if boundary.options.get("delta") else 30_000
    plan = AuditConfig(boundary, **{"runs": runs, "users": 3, "seed": 3, "attacks": ("one-release",), **options})
    (result,) = audit(plan).results
    assert 0.7 <= result.epsilon <= 1.0


@pytest.mark.slow
def test_a_bound_for_gaussian_noise_comes_close_at_a_small_delta():
    """It trusts that the noise is Gaussian, and no more; what else there is to see is the other bound's."""
    (result,) = audit(AuditConfig(jdp(1e-6, noise="gaussian"), runs=40_000, attacks=("one-release",), seed=3)).results
    assert 0.7 <= result.gaussian <= 1.0
    assert result.epsilon < result.gaussian


@pytest.mark.slow
@pytest.mark.parametrize("name", ["jdp", "ldp"])
def test_printed_constants_are_caught_above_what_they_print_and_below_their_ledger(name):
    """The papers ask for 1, the ledger says 2."""
    boundary = jdp(0.0, calibration="paper") if name == "jdp" else ldp(randomizer="laplace", calibration="paper")
    report = audit(AuditConfig(boundary, runs=16_000, attacks=("one-release",), seed=1))
    assert report.claim.epsilon == 2.0
    assert 1.0 < report.bound <= 2.0
    assert not report.broken


@pytest.mark.slow
def test_the_shufflers_and_linopts_printed_constants_keep_below_their_ledgers():
    for plan in (
        AuditConfig(Choice("sdp", {"epsilon": 1.0, "delta": 1e-6, "calibration": "paper"}), runs=800),
        AuditConfig(jdp(calibration="paper"), runs=800, statistic="linear", horizon=2),
    ):
        report = audit(plan)
        assert report.claim.epsilon < 1.0
        assert not report.broken


@pytest.mark.slow
def test_rlsvis_own_noise_is_found_and_stays_below_its_tight_account():
    plan = AuditConfig(
        Choice("open"), agent=Choice("RLSVI", {"constants": "theory"}), users=12, runs=1500, attacks=("stream",)
    )
    report = audit(plan)
    assert report.claim.covers == "rewards"
    assert 0.6 * report.claim.epsilon <= report.bound <= report.claim.epsilon


def test_a_black_box_sees_an_agent_that_is_not_private():
    report = audit(AuditConfig(Choice("open"), agent=Choice("UCBVI"), attacks=("black-box",), runs=1000))
    assert report.bound > 2.0
    assert not report.broken  # nothing was promised
    assert "There is no guarantee" in report.verdict


@pytest.mark.slow
def test_one_run_sees_much_of_local_reports_and_no_more_than_there_is():
    report = audit(AuditConfig(Choice("ldp", {"epsilon": 4.0}), runs=10_000, attacks=("one-run",)))
    assert 2.0 < report.bound <= 4.0
    assert (
        audit(AuditConfig(Choice("ldp", {"epsilon": 4.0, "randomizer": "laplace"}), attacks=("one-run",))).bound <= 4.0
    )
    reports = AuditConfig(Choice("ldp", {"epsilon": 4.0}), runs=4000, attacks=("one-run",), **FIVE_REPORTS)
    assert 2.0 < audit(reports).bound <= 4.0
    assert audit(AuditConfig(jdp(), runs=1000, attacks=("one-run",))).bound <= 1.0
    with pytest.raises(GridError, match="publish after every user"):
        audit(AuditConfig(Choice("sdp", {"epsilon": 1.0, "delta": 1e-6}), attacks=("one-run",)))


# Broken ones ---------------------------------------------------------------------------------------------------------

FIVE_REPORTS = {"statistic": "reports", "horizon": 5, "users": 1}

CAUGHT = {
    "HalvedNoise": ({}, jdp(0.0), 3000),
    "MissingFactor": ({}, jdp(0.0), 3000),
    "SharedNoise": ({}, jdp(), 1000),
    "FreshNoise": ({"users": 8, "attacks": ("stream",)}, jdp(), 3000),
    "MissingLevel": ({"users": 3, "attacks": ("stream",)}, jdp(0.0), 12_000),
    "VisitedCells": ({}, jdp(0.0), 1000),
    "FloatNoise": ({}, jdp(0.0), 2000),
    "Reseeded": ({}, jdp(), 1000),
    "IntegerSums": (
        {"users": 300, "attacks": ("stream",)},
        Choice("sdp", {"epsilon": 1.0, "delta": 1e-6, "batch_size": 300}),
        400,
    ),
    "HalvedReports": ({"attacks": ("one-release",)}, ldp(), 4000),
    "HalvedBits": ({"attacks": ("one-release",)}, Choice("sdp", {"epsilon": 1.0, "delta": 0.01}), 4000),
    "Peeking": ({"attacks": ("black-box",)}, jdp(), 1000),
    "UncheckedActions": ({}, jdp(0.0), 1000),
    "OneReport": ({**FIVE_REPORTS, "attacks": ("one-release",)}, jdp(0.0), 600),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CAUGHT)
def test_a_broken_mechanism_is_caught(name):
    """Seed 0 throughout. Another mechanism of the same family, whole, passes the same audit above."""
    options, boundary, runs = CAUGHT[name]
    report = audit(AuditConfig(boundary, target=BROKEN + name, runs=runs, seed=0, **options))
    assert report.claim.epsilon == 1.0
    assert report.broken, report.verdict
    assert report.verdict.startswith("BROKEN")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "users", "runs"), [("SharedNoise", 3, 600), ("Reseeded", 3, 600), ("FreshNoise", 6, 3000)]
)
def test_moments_are_audited_as_counts_are(name, users, runs):
    """Noise of moments that is shared, drawn again or as of one release; seed 0."""
    linear = {"statistic": "linear", "horizon": 2, "attacks": ("stream",)}
    assert audit(AuditConfig(jdp(), target=BROKEN + name, runs=runs, users=users, **linear)).broken


@pytest.mark.slow
def test_a_batch_closed_under_the_promise_of_a_larger_one_is_caught():
    """Its claim is what 10,000 mixed reports would cost; the sound shuffler shuts this door."""
    boundary = Choice("sdp", {"batch_size": 10_000})
    plan = AuditConfig(boundary, inside=Choice("ldp", {"epsilon": 4.0}), runs=2000, attacks=("early",))
    report = audit(replace(plan, target=BROKEN + "SmallBatches"))
    assert report.claim.epsilon < 1.0
    assert report.broken
    assert report.results[0].bound > 1.5
    (shut,) = audit(plan).results
    assert (shut.bound, shut.detail) == (0.0, "refused")


@pytest.mark.slow
def test_one_noise_for_ever_hides_a_user_from_whoever_comes_after_her_alone():
    """The weaker definition, of what is shown after a user: it is caught by comparing what was shown before her."""
    plan = AuditConfig(jdp(0.0), target=BROKEN + "FutureOnly", runs=600, attacks=("stream",), seed=0)
    assert not audit(plan).broken
    caught = audit(replace(plan, attacks=("late",)))
    assert caught.broken
    assert caught.bound > 3.0


@pytest.mark.slow
def test_what_is_broken_would_have_passed_were_it_not():
    """The same audits, of what the broken ones come from."""
    for boundary in (jdp(), jdp(0.0)):
        assert not audit(AuditConfig(boundary, runs=1000, seed=0)).broken
        assert not audit(AuditConfig(boundary, runs=600, seed=0, attacks=("one-release",), **FIVE_REPORTS)).broken


# The same whatever runs it -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_audit_is_the_same_on_every_engine():
    plan = AuditConfig(jdp(), agent=Choice("DPUCBVI"), runs=600, seed=5)
    first, second = audit(plan, InProcess()), audit(plan, OnJoblib(2))
    assert [result.bound for result in first.results] == [result.bound for result in second.results]
    assert [result.detail for result in first.results] == [result.detail for result in second.results]


def test_a_plan_survives_being_written_down():
    plan = AuditConfig(
        jdp(counting="binary-tree"), inside=ldp(), agent=Choice("PUCB", {"beta": 0.1}), attacks=("stream",), users=3
    )
    lake = AuditConfig(environment=Choice("FrozenLake-v1", {"horizon": 3, "reward_range": [0, 1]}))
    for config in (plan, lake):
        assert AuditConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def who_comes(attack):
    """The users of an attack, their policy, and the two sequences."""
    config = attack.config
    about = {"users": attack.users, "place": 0, "kind": config.neighbours, "seed": config.seed}
    users = Users(environment_of(config, 1), maker(config), **about)
    board = users.built(PROBE, 0)
    return users, *users.policy(board.statistic.exact, guarantee_of(board))


def test_users_come_in_by_both_doors_with_the_same_releases():
    """The second of two is met by reset and step; what is published is what serve would have given."""
    attack = Attack(AuditConfig(jdp(), users=2), "stream")
    walked = game(attack).runs(1, 7, 1)[0]
    users, policy, pair = who_comes(attack)
    board = users.built(1, 7)
    board.serve(policy, pair.world(1)[:1])
    first = board.statistic.vector(board.release.sums())
    board.serve(policy, pair.world(1)[1:])
    second = board.statistic.vector(board.release.sums())
    np.testing.assert_array_equal(walked[: 2 * len(first)], np.concatenate([first, second]))
    assert walked[-1] == len(walked) - 1  # how much was published


@pytest.mark.slow
def test_nothing_of_a_user_is_in_a_report():
    report = audit(AuditConfig(jdp(), runs=200))
    said = json.dumps(report.to_dict()) + repr(report.config) + report.verdict
    assert "tape" not in said
    parts = {"config", "claim", "scene", "bound", "broken", "verdict", "attacks", "seconds", "versions"}
    assert set(report.to_dict()) == parts


# Targets of somebody's own -------------------------------------------------------------------------------------------


def half_noise(env, *, users, seed):
    """A function that builds a boundary, as a user would write one."""

    class Quarter(RunningMechanism):
        def __init__(self, counting, scale, *rest):
            super().__init__(counting, scale / 4.0, *rest)

    protocol = type("Quartered", (Central,), {"noise_class": Quarter})
    return type("HalfNoise", (JDPBillboard,), {"protocol": protocol})(env, 1.0, 0.0, users=users, rng=seed)


@pytest.mark.slow
def test_a_function_of_somebodys_own_is_audited():
    report = audit(AuditConfig(make=half_noise, runs=1000, users=2))
    assert report.broken


class Silent(JDPBillboard):
    """Says nothing."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.first = super().release

    @property
    def release(self):
        return self.first


class Indiscreet(JDPBillboard):
    """Remembers the sums of everyone so far."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.remembered = np.zeros(self.statistic.cells, dtype=np.int64)
        self.audit.observe(self)

    def left(self, users, count):
        self.statistic.encode(users, self.remembered)

    def exact(self):
        return self.statistic.sums(self.remembered * self.statistic.grid)


class BareVisits(Indiscreet):
    """Noisy transitions and rewards, and exact visits beside them."""

    @property
    def release(self):
        return replace(super().release, n=self.exact()["n"])


class TellTale(Indiscreet):
    """What it publishes is private; how often is not."""

    @property
    def release(self):
        found = super().release
        return replace(found, version=found.version + 1) if self.remembered[0:4:2].any() else found


class BareCheques(Indiscreet):
    """Rewards are told to whoever steps."""

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, float(self.remembered[-4:].sum()), *rest


class LastWord(Indiscreet):
    """Exact sums when the last batch is closed by hand."""

    closes_early = True
    closed = False

    def publish(self):
        self.closed = True
        return self.release

    @property
    def release(self):
        found = super().release
        return replace(found, version=found.version + 1, **self.exact()) if self.closed else found


class _OneDraw(Central):
    def publish(self, sums, batch, releases):
        statistic = self.side.statistic
        drawn, (H, S, A) = (
            super().publish(sums * 0, batch, releases),
            (statistic.horizon, statistic.n_states, statistic.n_actions),
        )
        cut = H * S * A * S  # transitions, then rewards
        blocks = [part.reshape(H, -1) for part in (drawn[:cut], drawn[cut:])]
        drawn = np.concatenate([np.repeat(block[:1], H, axis=0).ravel() for block in blocks])
        return sums * statistic.grid + drawn


class OneDrawForAllStages(JDPBillboard):
    """Cells of a stage have noise of their own, and stages share it."""

    protocol = _OneDraw


class _TenTimes(Central):
    walked = False

    def receive(self, users, count, request, sums):
        for _ in range(10 if self.walked else 1):
            super().receive(users, count, request, sums)
        self.walked = False


class TenTimes(JDPBillboard):
    """Users who come by reset and step are counted ten times."""

    protocol = _TenTimes

    def reset(self, **options):
        self.audit.pipeline.protocol.walked = True
        return super().reset(**options)


class _FirstOnly(Exact):
    came = False

    def receive(self, users, count, request, sums):
        if self.came:
            self.side.statistic.exact.encode(users, sums, request)
        else:
            super().receive(users, count, request, sums)
        self.came = True


class FirstUserOnly(LDPUserSide):
    """Only the first user noises her report."""

    protocol = _FirstOnly


@pytest.mark.slow
@pytest.mark.parametrize(
    "target", [BareVisits, TellTale, BareCheques, LastWord, OneDrawForAllStages, TenTimes, FirstUserOnly]
)
def test_what_stands_beside_the_noise_of_one_release_is_looked_at(target):
    boundary = ldp(randomizer="laplace") if target is FirstUserOnly else jdp(counting="matrix-factorization")
    releases = {"releases": 12} if target is TenTimes else {}
    boundary = Choice(boundary.name, {**boundary.options, **releases})
    assert audit(AuditConfig(boundary, make=target, runs=1000, neighbours="disjoint")).broken


class Overheard(gym.Wrapper):
    """Remembers the last reward."""

    reward = 0.0

    def step(self, action):
        observation, self.reward, *rest = self.env.step(action)
        return observation, self.reward, *rest


class Plain(LDPPerStep):
    """Rewards as they are."""

    def __init__(self, env, *arguments, **options):
        super().__init__(Overheard(env), *arguments, **options)

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, self.env.reward, *rest


@pytest.mark.slow
def test_a_step_of_somebodys_own_is_audited():
    assert audit(AuditConfig(Choice("per-step", {"epsilon": 1.0}), make=Plain, runs=1000)).broken
    assert not audit(AuditConfig(Choice("per-step", {"epsilon": 1.0}), runs=1000)).broken


class FailsInARoom(Indiscreet):
    """Fails on those who go to one of the rooms."""

    room = 0

    def serve(self, policy, users=1, ask=None, *, rng=None):
        served = super().serve(policy, users, ask, rng=rng)
        if self.remembered[self.room : 4 : 2].any():
            raise RuntimeError("not here")
        return served


class FailsInTheOther(FailsInARoom):
    room = 1


@pytest.mark.slow
def test_failing_for_one_of_two_users_tells_them_apart():
    """In world 1; in world 0 there is nothing to compare with, and that is said."""
    outcomes = []
    for target in (FailsInARoom, FailsInTheOther):
        try:
            config = AuditConfig(jdp(), make=target, attacks=("one-release",), runs=1000, neighbours="disjoint")
            outcomes.append(audit(config).broken)
        except GridError as error:
            outcomes.append("RuntimeError: not here" in str(error))
    assert outcomes == [True, True]


@pytest.mark.slow
def test_a_promise_is_held_against_the_neighbours_that_it_names():
    """With a public start two users begin alike: what they differ in is less, and so is the noise."""
    plan = AuditConfig(jdp(0.0, public_start=True), runs=6000, attacks=("one-release", "late"), horizon=2)
    assert not audit(plan).broken
    attack = Attack(plan, "one-release")
    users, policy, pair = who_comes(attack)
    starts = users.trajectories(policy, np.stack([pair.tapes[0], pair.other])).states[:, 0]
    assert len(set(starts)) == 1
    moved = np.abs(game(attack).stream.moved[0]).sum()
    assert 0.0 < moved <= users.built(0, 0).statistic.sensitivity().l1


class FailsAfterAWhile(JDPBillboard):
    """Whole when it is looked at first, and broken down afterwards, whoever comes."""

    built = 0

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        type(self).built += 1

    def serve(self, policy, users=1, request=None, *, rng=None):
        if type(self).built > 10:
            raise MemoryError
        return super().serve(policy, users, request, rng=rng)


def test_an_audit_in_which_nothing_ran_has_no_verdict():
    with pytest.raises(GridError, match=r"runs failed in both|run failed.*MemoryError"):
        audit(AuditConfig(jdp(), make=FailsAfterAWhile, attacks=("one-release",), runs=200))


@pytest.mark.slow
def test_sums_of_bits_are_never_taken_for_gaussian():
    """Their curve leaves the normal one at its ends: with few bits and many runs, a sound shuffler looked broken."""
    report = audit(AuditConfig(Choice("sdp", {"epsilon": 2.0, "delta": 0.2}), runs=4000))
    assert all(result.gaussian is None for result in report.results)
    assert not report.broken


class _NoNoise(Central):
    def publish(self, sums, batch, releases):
        super().publish(sums, batch, releases)
        return sums * self.side.statistic.grid


class NoNoise(JDPBillboard):
    """Exact sums under a promise."""

    protocol = _NoNoise


@pytest.mark.slow
def test_an_agent_with_a_large_promise_does_not_cover_up_for_its_board():
    """RLSVI's own guarantee is enormous here; the board's is what its noise has to keep."""
    assert audit(AuditConfig(jdp(), make=NoNoise, agent=Choice("RLSVI"), runs=1000)).broken
    assert audit(
        AuditConfig(jdp(), make=NoNoise, statistic="linear", horizon=2, attacks=("one-run",), runs=2000)
    ).broken


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"make": Silent}, "nothing after 1 user"),
        ({"attacks": ("loud",)}, "attack 'loud': .*" + ", ".join(ATTACKS)),
        ({"runs": 10}, "runs is 10: .*200"),
        ({"confidence": 1.5}, "confidence is 1.5"),
        ({"statistic": "cubic"}, "statistic is 'cubic': .*tabular, linear, reports"),
        ({"attacks": ("black-box",)}, "needs an agent"),
        ({"target": "nowhere"}, "write it as module:object"),
        ({"target": "nowhere:thing"}, "there is no module 'nowhere'"),
        ({"target": "math:nothing"}, "cannot be loaded"),
        ({"target": "math:pi"}, "is a float"),
        ({"target": "math:sqrt"}, "cannot be built: math.sqrt"),
        ({"boundary": Choice("jdp", {"epsilon": -1.0})}, "epsilon is -1"),
        ({"environment": Choice("Nowhere-v1")}, "Nowhere-v1"),
    ],
)
def test_what_cannot_be_audited_is_refused_with_a_sentence(options, said):
    with pytest.raises(GridError, match=said):
        audit(AuditConfig(**options))


@pytest.mark.slow
def test_any_tabular_environment_may_be_audited():
    river = Choice("PrivateRL/RiverSwim-v0", {"horizon": 3})
    report = audit(AuditConfig(environment=river, runs=400))
    assert not report.broken
    assert game(Attack(AuditConfig(environment=river, runs=400), "stream")).stream.moved.any()
    assert two_rooms(2, 3).unwrapped.model.n_actions == 3


# The command ---------------------------------------------------------------------------------------------------------


def typed(*words):
    return CliRunner().invoke(app, ["audit", "--engine", "serial", *words])


@pytest.mark.slow
def test_the_command_says_claim_bound_and_verdict_and_draws(tmp_path):
    done = typed("--runs", "400", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    for said in (
        "Claim: (1.0, 1e-06)-JDP",
        "Mechanism: batched sums of counts with laplace noise",
        "Seen: 4 users, 1 step, 4 releases. In one world user 1 goes through states",
        "Not seen: noise that changes after the last user",
        "With 50,000 users it would be matrix-factorization sums with gaussian noise",
        "--set boundary.counting=matrix-factorization",
        "white box, one release",
        "Nothing found (which is no proof): with 95% confidence, these 4 attacks show epsilon >= 0.",
        "sums of counts with laplace noise, a release every 1 users; 1 is claimed.",
        "The figure:",
        "Again: private-rl-gym audit",
    ):
        assert said in done.output
    (folder,) = tmp_path.iterdir()
    assert {path.name for path in folder.iterdir()} == {
        "report.json",
        "tradeoff.png",
        "tradeoff.svg",
        "tradeoff.pdf",
    }
    report = json.loads((folder / "report.json").read_text())
    assert report["broken"] is False
    again = typed("--config", str(folder / "report.json"), "--out", str(tmp_path), "--json")
    told = json.loads(again.output)
    assert (told["attacks"], told["claim"], told["config"]) == (report["attacks"], report["claim"], report["config"])


def said(**options):
    return audit(AuditConfig(runs=200, attacks=("one-release",), **options)).coverage.sentences


@pytest.mark.slow
def test_an_audit_says_what_it_attacked_and_what_it_did_not_see():
    """The mechanism of a deployment is named where it is another one, and its option audits that."""
    assert not any("50,000" in line for line in said(boundary=jdp(counting="matrix-factorization")))
    assert said(boundary=jdp())[-1].endswith("by --set boundary.counting=matrix-factorization.")
    assert not any("50,000" in line for line in said(boundary=ldp()))
    assert said(boundary=ldp())[-1] == "Not seen: noise that changes after the last user who was audited."
    assert any("stays and is paid at every step" in line for line in said(statistic="gradient"))
    several = audit(AuditConfig(runs=200, attacks=("one-release", "stream"))).coverage
    assert len(several.mechanisms) == 2  # for one user, and for four


@pytest.mark.slow
def test_the_audit_that_is_shown_first_takes_as_long_as_its_page_says(tmp_path):
    """Processor time, which a busy machine changes little: half a minute on two cores that are free, doubled."""
    shown = ["--boundary", "jdp", "--agent", "dpucbvi", "--epsilon", "1"]
    command = [
        sys.executable,
        "-m",
        "private_rl_gym.lab.cli.app",
        "audit",
        "--engine",
        "serial",
        *shown,
        "--out",
        tmp_path,
    ]
    before = os.times()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = os.times()
    assert done.returncode == 0, done.stderr
    assert "Nothing found (which is no proof)" in done.stdout
    assert after.children_user + after.children_system - before.children_user - before.children_system < 120.0


@pytest.mark.slow
def test_a_broken_claim_has_an_exit_code_of_its_own(tmp_path):
    done = typed("--target", BROKEN + "SharedNoise", "--runs", "400", "--out", str(tmp_path))
    assert done.exit_code == 3
    assert "BROKEN" in done.output


@pytest.mark.slow
def test_what_is_typed_again_is_the_same_audit(tmp_path):
    words = [
        "--boundary",
        "sdp",
        "--inside",
        "ldp",
        "--set",
        "inside.randomizer=unary",
        "--runs",
        "400",
        "--users",
        "2",
    ]
    done = typed(*words, "--out", str(tmp_path / "a"))
    assert done.exit_code == 0, done.output
    line = next(line for line in done.output.splitlines() if line.startswith("Again: "))
    again = typed(*line.split()[3:], "--out", str(tmp_path / "b"))
    assert again.exit_code == 0, again.output
    first, second = (next((tmp_path / name).iterdir()).name for name in "ab")
    assert first == second  # the folder is named by the configuration


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--boundary", "jpd"], "Did you mean 'jdp'?"),
        (["--agent", "ucbvj"], "Did you mean 'UCBVI'?"),
        (["--boundary", "open", "--epsilon", "1"], "this one is open"),
        (["--set", "boundary:x"], "boundary.NAME=VALUE"),
        (["--set", "agent.constants=theory"], "no agent is given. Name one first."),
        (["--agent", "DPUCBVI", "--set", "agent.bonnus=1"], "bonus"),
        (["--config", "/nowhere.json"], "no report of an audit"),
        (["--set", "boundary.cuonting=batched"], "counting"),
    ],
)
def test_the_command_refuses_with_a_sentence(words, said):
    done = typed(*words)
    assert done.exit_code == 2
    assert said in done.output
    assert "Traceback" not in done.output


@pytest.mark.slow
def test_an_infinite_claim_is_no_number_in_json(tmp_path):
    done = typed("--boundary", "open", "--agent", "UCBVI", "--runs", "400", "--json", "--out", str(tmp_path))
    report = json.loads(done.output)
    assert report["claim"]["epsilon"] is None
    assert math.isfinite(report["bound"])

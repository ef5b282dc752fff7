"""Audits of gradients: sound boundaries keep their promise, and mistakes are caught.

An attack is chosen on one half of the runs, and judged on the other. Its bounds are wrong with probability 0.05.
"""

import json

import gymnasium as gym
import numpy as np
import pytest
from typer.testing import CliRunner

from private_rl_gym.agents import DPPolicyGradient
from private_rl_gym.lab.audits import ON_GRADIENTS, Attack, AuditConfig, audit
from private_rl_gym.lab.audits.audit import fitting, game
from private_rl_gym.lab.audits.broken_gradients import ReadingRewards
from private_rl_gym.lab.cli.app import app
from private_rl_gym.lab.grids.cell import Choice
from private_rl_gym.lab.grids.engines import InProcess, OnJoblib
from private_rl_gym.lab.registry import GridError
from private_rl_gym.planning.network import Layers
from private_rl_gym.privacy.audit.bounds import epsilon_below
from private_rl_gym.privacy.mechanisms.running import RunningMechanism
from private_rl_gym.privacy.protocols import Central
from private_rl_gym.wrappers import JDPBillboard

EPSILON = 4.0
JDP = Choice("jdp", {"epsilon": EPSILON, "delta": 1e-6})
LDP = Choice("ldp", {"epsilon": EPSILON})
BROKEN = "private_rl_gym.lab.audits."
WHOLE = ("one-release", "stream")  # attacks with as many runs as are asked for; others have a fifth


def plan(boundary=JDP, **options):
    return AuditConfig(boundary, statistic="gradient", **options)


def result(kind, runs, boundary=JDP, target=None):
    (found,) = audit(plan(boundary, target=target, attacks=(kind,), runs=runs * (1 if kind in WHOLE else 5))).results
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ON_GRADIENTS)
def test_no_attack_shows_more_than_is_promised_and_some_show_nearly_as_much(kind):
    found = result(kind, 8000)
    assert found.epsilon <= EPSILON
    assert found.gaussian <= EPSILON
    assert kind == "parts" or found.gaussian >= 0.7 * EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one-release", "hostile"])
def test_local_reports_are_seen_to_keep_their_promise_nearly(kind):
    assert 0.7 * EPSILON <= result(kind, 3000, LDP).epsilon <= EPSILON


CAUGHT = {
    "broken:HalvedNoise": ("one-release", 2000, JDP),
    "broken:MissingFactor": ("one-release", 4000, JDP),
    "broken:SharedNoise": ("one-release", 400, JDP),
    "broken_gradients:ClippedSteps": ("one-release", 1000, JDP),
    "broken_gradients:UnscaledClip": ("one-release", 1000, JDP),
    "broken_gradients:TrueSteps": ("others", 1000, JDP),
    "broken_gradients:OwnBaseline": ("others", 1000, JDP),
    "broken_gradients:OwnNormalization": ("others", 1000, JDP),
    "broken_gradients:VanishingNorm": ("hostile", 400, JDP),
    "broken_gradients:EagerDirections": ("one-release", 2000, LDP),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CAUGHT)
def test_a_mistake_is_caught(name):
    kind, runs, boundary = CAUGHT[name]
    assert result(kind, runs, boundary, BROKEN + name).broken


@pytest.mark.slow
def test_a_norm_that_vanishes_is_seen_by_hostile_objectives_alone():
    report = audit(plan(target=BROKEN + "broken_gradients:VanishingNorm", runs=1000))
    assert [found.kind for found in report.results if found.broken] == ["hostile"]
    assert report.verdict.startswith("BROKEN")


class SameNoise(RunningMechanism):
    """Noise that is drawn again for every batch."""

    def add(self, sums, releases):
        before = self.source.state()
        noisy = super().add(sums, releases)
        self.source.restore(before)
        return noisy


class Repeated(JDPBillboard):
    protocol = type("Repeating", (Central,), {"noise_class": SameNoise})


@pytest.mark.slow
def test_noise_that_comes_again_is_seen_in_the_batch_after_hers():
    assert not audit(plan(make=Repeated, attacks=("one-release",), runs=400)).broken
    assert audit(plan(make=Repeated, attacks=("stream",), runs=400)).broken


# Boards of somebody's own, the command, and what is refused -----------------------------------------------------------


def gradient_board(env, users, seed):
    return JDPBillboard(env, 2.0, 1e-6, users=users, statistic=Layers((8,)), rng=seed, schedule=3)


def unclipped_board(env, users, seed):
    return Quiet(env, 2.0, 1e-6, users=users, statistic=Layers((8,)), rng=seed)


class QuarterNoise(RunningMechanism):
    def __init__(self, counting, scale, *rest):
        super().__init__(counting, scale / 4.0, *rest)


class Quiet(JDPBillboard):
    protocol = type("Quartered", (Central,), {"noise_class": QuarterNoise})


@pytest.mark.slow
def test_a_function_that_builds_a_board_for_gradients_is_audited_as_one():
    report = audit(AuditConfig(make=gradient_board, runs=400))
    assert report.config.statistic == "gradient"
    assert report.claim.epsilon == 2.0
    assert not report.broken
    assert "critic" not in {found.kind for found in report.results}  # its network has none
    assert audit(AuditConfig(make=unclipped_board, runs=1000, attacks=("one-release",))).broken


def test_the_two_users_are_as_far_apart_as_is_proved():
    for kind in ("one-release", "others", "hostile"):
        assert np.linalg.norm(game(Attack(plan(), kind))._moved) == pytest.approx(2.0, abs=1e-5)


def test_no_batch_hides_a_local_report():
    assert "others" not in fitting(plan(LDP))
    assert set(fitting(plan())) == set(ON_GRADIENTS)


@pytest.mark.slow
def test_users_who_come_back_are_in_as_many_batches_as_they_may():
    back = Choice("jdp", {**JDP.options, "visits": 2})
    (found,) = audit(plan(back, runs=4000)).results
    assert (found.kind, found.claim.visits) == ("stream", 2)
    assert 0.5 * EPSILON <= found.gaussian <= EPSILON


@pytest.mark.slow
def test_an_audit_of_gradients_is_the_same_on_every_engine():
    asked = plan(runs=200, attacks=("others", "hostile"))
    first, second = audit(asked, InProcess()), audit(asked, OnJoblib(2))
    assert [found.detail for found in first.results] == [found.detail for found in second.results]


def typed(*words):
    return CliRunner().invoke(app, ["audit", "--engine", "serial", *words])


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["--boundary", "ldp"], ["--boundary", "sdp"]])
def test_the_command_audits_gradients(words, tmp_path):
    done = typed("--statistic", "gradient", "--runs", "200", *words, "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "hostile requests" in done.output
    (folder,) = tmp_path.iterdir()
    assert (folder / "tradeoff.png").exists()
    report = json.loads((folder / "report.json").read_text())
    again = json.loads(typed("--config", str(folder / "report.json"), "--out", str(tmp_path), "--json").output)
    assert again["attacks"] == report["attacks"]


@pytest.mark.slow
def test_the_command_ends_with_its_code_for_a_mistake(tmp_path):
    target = BROKEN + "broken_gradients:VanishingNorm"
    words = ("--target", target, "--statistic", "gradient", "--epsilon", "4", "--attack", "hostile", "--runs", "1000")
    assert typed(*words, "--out", str(tmp_path)).exit_code == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--statistic", "gradient", "--boundary", "per-step"], "per-step publishes no sums"),
        (["--statistic", "gradient", "--attack", "late"], "no attack 'late' on gradients"),
        (["--attack", "critic"], "no attack 'critic'"),
        (["--statistic", "gradient", "--agent", "DPUCBVI"], "leave the agent out"),
        (["--statistic", "gradient", "--env", "CartPole-v1"], "leave the environment out"),
        (["--agent", "DPPolicyGradient"], "add --statistic gradient"),
    ],
)
def test_what_cannot_be_audited_is_refused_with_a_sentence(words, said):
    done = typed(*words)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


def test_a_promise_about_nobody_in_her_place_is_refused():
    zero_out = Choice("jdp", {**JDP.options, "neighbours": "zero-out"})
    with pytest.raises(GridError, match="this attack replaces a user"):
        audit(plan(zero_out, runs=200))


# A learner that looks inside ------------------------------------------------------------------------------------------


class Paid(gym.Env):
    """One step; the first user of all is paid what the world says, and nobody else anything."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (1,))
    action_space = gym.spaces.Discrete(2)
    reward = 0.0  # of the class: environments are copied

    def reset(self, *, seed=None, **_):
        super().reset(seed=seed)
        return np.zeros(1, dtype=np.float32), {}

    def step(self, _action):
        reward, Paid.reward = Paid.reward, 0.0
        return np.zeros(1, dtype=np.float32), reward, True, False, {}


def asked(kind, reward, seed):
    """The mean baseline that users of the last batch are sent."""
    Paid.reward = reward
    board = JDPBillboard(Paid(), 1.0, 1e-6, users=30, horizon=1, rng=seed)
    kind("MlpPolicy", board, seed=0, batch_size=10, policy_kwargs={"net_arch": []}).learn(30)
    return float(board.request.baseline.mean())


@pytest.mark.slow
def test_a_learner_that_reads_rewards_is_seen_in_what_it_asks():
    """Black box: forty runs of each world, told apart by what later users are sent. A bound errs once in a hundred."""
    found = {}
    for kind in (ReadingRewards, DPPolicyGradient):
        worlds = [
            [asked(kind, reward, seed + 100 * world) for seed in range(40)] for world, reward in enumerate((1, 0))
        ]
        hits, alarms = (sum(baseline > 0.02 for baseline in world) for world in worlds)
        found[kind] = float(epsilon_below(hits, alarms, (40, 40), 1e-6, 0.01))
    assert found[ReadingRewards] > 1.0
    assert found[DPPolicyGradient] <= 1.0

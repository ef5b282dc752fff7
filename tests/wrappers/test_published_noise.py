"""Published noise is as wide as it was calibrated to be. Attacks on it are in tests/lab/audits/test_audit.py."""

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.envs import TabularEnv, TabularModel
from private_rl_gym.privacy.accounting.calibration import allowed
from private_rl_gym.privacy.mechanisms import MECHANISMS
from private_rl_gym.privacy.mechanisms.running import RunningMechanism
from private_rl_gym.privacy.protocols import Central
from private_rl_gym.wrappers import JDPBillboard, OpenBillboard

MODEL = TabularModel([[[1.0, 0.0]], [[0.0, 1.0]]], [[0.0], [1.0]], [0.5, 0.5], 1, "fixed")


def scaled(factor):
    """A billboard whose noise is wider than it was calibrated to be."""

    class Wider(RunningMechanism):
        def __init__(self, counting, scale, grid, source):
            super().__init__(counting, scale * factor, grid, source)
            self.scale = scale

    class Widened(Central):
        noise_class = Wider

    return type("Scaled", (JDPBillboard,), {"protocol": Widened})


PAIRS = [(counting, noise) for counting in MECHANISMS for noise in ("gaussian", "laplace")]


@pytest.mark.parametrize(("counting", "noise"), [pair for pair in PAIRS if pair[1] not in MECHANISMS[pair[0]].laws])
def test_noise_that_no_proof_is_for_is_refused(counting, noise):
    with pytest.raises(ValueError, match=f"counting='{counting}' is for"):
        JDPBillboard(TabularEnv(MODEL), 1.0, 1e-6, users=11, counting=counting, noise=noise)


@pytest.mark.slow
@pytest.mark.parametrize(("counting", "noise"), [pair for pair in PAIRS if pair[1] in MECHANISMS[pair[0]].laws])
def test_what_is_published_is_noised_as_calibrated(counting, noise):
    """The standard deviation of published noise, from 200 runs: within 3 %, and half, 0.7 or 1.3 times it is not."""
    delta = 1e-6 if (counting, noise) in allowed(1e-6) else 0.0
    env = gym.make("PrivateRL/RiverSwim-v0", horizon=2)
    exact = OpenBillboard(gym.make("PrivateRL/RiverSwim-v0", horizon=2))
    tapes = np.full((11, 5), 0.5)
    exact.serve([1] * 6, tapes)

    def relative_spread(factor):
        found, stated = [], 0.0
        for seed in range(200):
            board = scaled(factor)(env, 1.0, delta, users=11, counting=counting, noise=noise, rng=seed)
            board.serve([1] * 6, tapes)
            stated = board.release.noise_std["m"]
            found.append(board.release.m - exact.release.m)
        return np.std(found) / stated

    assert relative_spread(1.0) == pytest.approx(1.0, abs=0.03)
    for wrong in (0.5, 0.7, 1.3):
        assert relative_spread(wrong) != pytest.approx(1.0, abs=0.03)

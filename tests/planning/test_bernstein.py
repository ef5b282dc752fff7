"""One recursion for bonuses and penalties, beside a plain one."""

import math

import numpy as np
import pytest

from private_rl_gym.planning.bernstein import bernstein_induction

H, S, A = 5, 3, 2


def plain(n, m, r, unknown, noise, horizon, iota, scale, usual):
    """The same in Python, with counts that noise may have made negative."""
    phases, _, choices = n.shape
    q, v = np.zeros((horizon, S, choices)), np.zeros((horizon + 1, S))
    for h in reversed(range(horizon)):
        p, most = max(0, h - (horizon - phases)), float(horizon - h)
        for s in range(S):
            for a in range(choices):
                N = n[p, s, a]
                if not (unknown[p, a] < N and N > 0.0):
                    q[h, s, a] = most if scale > 0.0 else 0.0
                    continue
                row = m[p, s, a] / N
                mean = row @ v[h + 1]
                variance = max(row @ v[h + 1] ** 2 - mean**2, 0.0)
                bonus = scale * (2.0 * math.sqrt(variance * iota / N) + math.sqrt(2.0 * iota / N))
                value = np.clip(r[p, s, a] / N, 0.0, 1.0) + mean + bonus + noise[p, a] * most / N
                q[h, s, a] = min(most, value) if scale > 0.0 else max(0.0, value)
        own = q[h, :, :-1] if usual else q[h]
        v[h] = own.max(axis=1)
        if usual:
            v[h] = np.where(v[h] <= 0.0, q[h, :, -1], v[h])
    return q, v


@pytest.mark.parametrize("phases", [1, 2, H])
@pytest.mark.parametrize(("scale", "usual"), [(0.3, False), (-0.02, False), (-0.02, True)])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_plain_recursion(phases, scale, usual, seed):
    rng = np.random.default_rng(seed)
    m = rng.normal(40.0, 40.0, size=(phases, S, A + usual, S))  # an agent that takes noisy counts for exact has such
    n, r = m.sum(axis=-1), rng.normal(30.0, 30.0, size=m.shape[:3])
    unknown, noise = rng.uniform(0.0, 60.0, size=(2, phases, A + usual))
    noise = np.sign(scale) * noise / 10.0
    plan = bernstein_induction(n, m, r, unknown, noise, horizon=H, iota=7.0, scale=scale, usual=usual)
    q, v = plain(n, m, r, unknown, noise, H, 7.0, scale, usual)
    np.testing.assert_allclose(plan.q, q, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(plan.v, v, rtol=1e-12, atol=1e-12)

"""Algorithm 1 of DP-UCBVI against a numpy twin, straight from the paper."""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_rl_gym.agents import DPUCBVI
from private_rl_gym.agents.tabular.dp_ucbvi import practical_plan, theorem_plan
from private_rl_gym.planning.solve import Plan
from private_rl_gym.wrappers import JDPBillboard
from tests.strategies import seeds


def twin(n, m, r, iota, E, top):
    """Q as it is printed: N_{h+1}(s') is the next stage's, and there is nothing after the last."""
    H, S, A = n.shape
    q, v = np.empty((H, S, A)), np.zeros((H + 1, S))
    for h in reversed(range(H)):
        for s in range(S):
            for a in range(A):
                N = n[h, s, a]
                if N <= 0:
                    q[h, s, a] = min(H, top[h, s, a])
                    continue
                P = m[h, s, a] / N
                variance = P @ v[h + 1] ** 2 - (P @ v[h + 1]) ** 2
                bonus = 2 * np.sqrt(max(variance, 0) * iota / N) + np.sqrt(2 * iota / N) + 20 * H * S * E * iota / N
                if h + 1 < H:
                    after = n[h + 1].sum(axis=1)
                    with np.errstate(divide="ignore", invalid="ignore"):
                        first = H**3 * S * A * iota**2 / after
                        second = (
                            H**4 * S**4 * A**2 * E**2 * iota**4 / after**2 + H**6 * S**4 * A**2 * iota**4 / after**2
                        )
                    least = np.where(after > 0, np.minimum(1000**2 * (first + second), H**2), H**2)
                    bonus += 4 * np.sqrt(iota) * np.sqrt(P @ least / N)
                q[h, s, a] = min(top[h, s, a], H, np.clip(r[h, s, a] / N, 0, 1) + P @ v[h + 1] + bonus)
        v[h] = q[h].max(axis=1)
    return q


def problem(seed, scale):
    rng = np.random.default_rng(seed)
    H, S, A = rng.integers(1, 5, size=3)
    m = rng.exponential(size=(H, S, A, S)) * scale * (rng.random((H, S, A, S)) > 0.3)
    n = m.sum(axis=-1)
    return n, m, rng.random((H, S, A)) * n


@given(seeds, st.sampled_from([1.0, 1e6, 1e12, 1e16]), st.sampled_from([0.0, 1e-3, 5.0]), st.booleans())
def test_it_is_the_papers(seed, scale, E, capped):
    n, m, r = problem(seed, scale)
    top = np.random.default_rng(seed).uniform(0, len(n), n.shape) if capped else np.full(n.shape, np.inf)
    previous = Plan(top, np.zeros((len(n) + 1, n.shape[1])), np.zeros(n.shape[:2], dtype=np.int64)) if capped else None
    plan = theorem_plan(n, m, r, 2.0, E, previous)
    np.testing.assert_allclose(plan.q, twin(n, m, r, 2.0, E, top), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@given(seeds)
def test_names_of_states_do_not_matter(seed):
    n, m, r = problem(seed, 1e12)
    order = np.random.default_rng(seed).permutation(n.shape[1])
    plan = theorem_plan(n, m, r, 2.0, 0.0, None)
    other = theorem_plan(n[:, order], m[:, order][..., order], r[:, order], 2.0, 0.0, None)
    np.testing.assert_allclose(other.q, plan.q[:, order], rtol=1e-12)


def test_the_comparison_is_not_all_ceiling():
    below = []
    for seed in range(20):
        n, m, r = problem(seed, 1e16)
        below.append((theorem_plan(n, m, r, 2.0, 0.0, None).q < len(n) - 1e-9).mean())
    assert np.mean(below) > 0.3


def practical_twin(n, m, r, iota, scale, noise, unknown_below):
    """Values of at most H - h; unknown where visits are few; a part of two terms, and a margin."""
    H, S, A = n.shape
    q, v = np.empty((H, S, A)), np.zeros((H + 1, S))
    for h in reversed(range(H)):
        for s in range(S):
            for a in range(A):
                N = n[h, s, a]
                if max(unknown_below, 0.0) >= N:
                    q[h, s, a] = H - h
                    continue
                P = m[h, s, a] / N
                variance = max(P @ v[h + 1] ** 2 - (P @ v[h + 1]) ** 2, 0.0)
                bonus = scale * (2 * np.sqrt(variance * iota / N) + np.sqrt(2 * iota / N)) + noise * (H - h) / N
                q[h, s, a] = min(H - h, np.clip(r[h, s, a] / N, 0, 1) + P @ v[h + 1] + bonus)
        v[h] = q[h].max(axis=1)
    return q


@given(seeds, st.sampled_from([1.0, 1e4]), st.sampled_from([0.0, 0.5]), st.sampled_from([0.0, 2.0]))
def test_the_practical_plan_is_what_it_says(seed, scale, noise, unknown_below):
    n, m, r = problem(seed, scale)
    plan = practical_plan(n, m, r, 2.0, 0.3, noise, unknown_below)
    np.testing.assert_allclose(plan.q, practical_twin(n, m, r, 2.0, 0.3, noise, unknown_below), rtol=1e-6, atol=1e-6)


def test_the_error_in_the_bonus_never_falls_where_that_of_releases_does(tmp_path):
    env = gym.make("PrivateRL/RiverSwim-v0", horizon=2, n_states=3)
    board = JDPBillboard(env, 1.0, 0.0, users=12, counting="binary-tree", noise="laplace", rng=0)
    agent = DPUCBVI("TabularPolicy", board, constants="theory", seed=0)
    stated, used = [], []
    while board.users_left:
        _ = agent.policy
        stated.append(4.0 * board.release.error_bound(agent.beta / 3.0))
        used.append(float(agent.state()["error"]))
        agent.meet(1)
    assert stated != sorted(stated)  # a binary tree: eight users are one sum, seven are three
    assert used == np.maximum.accumulate(stated).tolist()
    agent.save(tmp_path / "agent")
    assert DPUCBVI.load(tmp_path / "agent").state()["error"] == used[-1]


def test_an_error_that_is_none_is_not_restored():
    agent = DPUCBVI("TabularPolicy")
    for error in (np.array(-1.0), np.array(np.inf), np.array([1.0]), np.array(1)):
        with pytest.raises(ValueError, match="no number"):
            agent.set_state({"error": error})

"""The rivals that the papers' tables name: LDP-OBI, DP-SE and DP-APVI."""

import warnings

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.agents import DPAPVI, DPSE, DPUCBVI, LDPOBI
from private_rl_gym.agents.offline.dp_apvi import apvi_plan
from private_rl_gym.planning.policy import Policy
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard


def garnet(**options):
    return gym.make("PrivateRL/Garnet-v0", n_states=4, n_actions=2, horizon=4, **options)


def bandit(seed=0, **options):
    env = gym.make("PrivateRL/HardBandit-v0", **{"m": 3, "alpha": 0.3, "instance": 2, **options})
    env.reset(seed=seed)
    return env


# LDP-OBI -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("randomizer", ["one-step", "unary", "laplace", "gaussian"])
def test_ldp_obi_learns_from_every_randomizer(randomizer):
    """At a large epsilon it loses less than a third of what random actions lose, by any of them."""
    env = garnet()
    env.reset(seed=0)
    board = LDPUserSide(env, 1e4, 1e-6, users=3_000, randomizer=randomizer, schedule=300, rng=1)
    agent = LDPOBI("TabularPolicy", board, seed=0).learn(3_000 * 4)
    model = env.unwrapped.model
    blind = model.value_of(Policy(np.full((4, 4, 2), 0.5), 2))
    assert model.optimal_value() - model.value_of(agent.policy) < (model.optimal_value() - blind) / 3


def test_denominators_are_raised_by_more_than_the_noise():
    board = LDPUserSide(garnet(), 1e4, 1e-6, users=2_000, randomizer="gaussian", schedule=1_000, rng=1)
    slight, strong = (LDPOBI("TabularPolicy", board, alpha=alpha, constants="theory") for alpha in (1.5, 3.0))
    board.serve(slight.policy, 1_000)
    release = board.release
    some, more = (agent._model(release)[0].sum(axis=-1) for agent in (slight, strong))
    c, seen = release.error_bound(slight.beta / 6.0, of="n"), release.n > 10.0
    assert seen.sum() >= 8
    np.testing.assert_allclose(some[seen], (release.m.sum(axis=-1) / (release.n + 1.5 * c))[seen])
    assert (np.abs(more[seen]) < np.abs(some[seen])).all()


@pytest.mark.parametrize("alpha", [1.0, 0.5, float("inf")])
def test_denominators_that_are_not_raised_are_refused(alpha):
    with pytest.raises(ValueError, match="must be above 1"):
        LDPOBI("TabularPolicy", alpha=alpha)


# DP-SE ---------------------------------------------------------------------------------------------------------------


def test_every_epoch_pulls_the_arms_that_are_left_equally_often_and_the_best_stays():
    board = JDPBillboard(bandit(), 1.0, 0.0, users=20_000, schedule=20_000, rng=0)
    agent = DPSE("TabularPolicy", board, seed=0)
    left = []
    while not agent.finished:
        runs = agent._batch.runs
        arms = [policy.action(0, 0) for policy, _ in runs]
        assert len({users for _, users in runs}) == 1
        assert not left or set(arms) <= set(left[-1])
        left.append(arms)
        agent.learn(sum(users for _, users in runs), reset_num_timesteps=False)
        _ = agent.policy
    assert len(left) > 1
    assert agent.best_policy().action(0, 0) == 2
    assert agent.active == [2]


@pytest.mark.slow
def test_theory_keeps_the_best_arm():
    """In at least 1 - beta of runs: at beta = 0.1 seven failures in 20 have probability below 0.003. In fact none."""
    failures = 0
    for seed in range(20):
        board = JDPBillboard(bandit(seed), 1.0, 0.0, users=60_000, schedule=60_000, rng=seed)
        agent = DPSE("TabularPolicy", board, constants="theory", beta=0.1, seed=seed).learn(60_000)
        failures += 2 not in agent.active
    assert failures <= 6


def test_widths_that_are_too_small_lose_the_best_arm():
    """The same check fails for widths that forget the noise: with a hundredth of them, more often than not."""
    failures = 0
    for seed in range(12):
        board = JDPBillboard(bandit(seed), 0.02, 0.0, users=4_000, schedule=4_000, rng=seed)
        agent = DPSE("TabularPolicy", board, width_scale=0.01, seed=seed).learn(4_000)
        failures += 2 not in agent.active
    assert failures > 4


def test_dp_se_says_when_too_few_users_come():
    with pytest.warns(UserWarning, match="20 users are left: nothing will be learned"):
        DPSE("TabularPolicy", JDPBillboard(bandit(), 1.0, 0.0, users=20))


def test_on_longer_episodes_it_finds_the_best_constant_action():
    env = gym.make("PrivateRL/RiverSwim-v0", horizon=20, n_states=3)
    env.reset(seed=0)
    model = env.unwrapped.model
    worth = [model.value_of(Policy(np.full((20, 3), a), 2)) for a in (0, 1)]
    agent = DPSE("TabularPolicy", OpenBillboard(env, users=2_000), seed=0).learn(2_000 * 20)
    assert agent.best_policy().action(0, 0) == int(np.argmax(worth))


def test_what_ended_episodes_earn_while_they_wait_counts():
    """The lake with a cost of a step: who falls in early waits at nothing, which is mapped to more than the cost."""
    env = gym.make("FrozenLake-v1", is_slippery=False, max_episode_steps=6)
    board = OpenBillboard(env, users=400, horizon=6, reward_range=(-1.0, 1.0), schedule=400)
    agent = DPSE("TabularPolicy", board, width_scale=0.01, seed=0)
    board.serve(agent.policy, 400)
    found = agent._returns(board.release.with_certain_rows(), 400)
    assert found[agent.policy.action(0, 0)] == pytest.approx(400 * 0.5)


# DP-APVI -------------------------------------------------------------------------------------------------------------


def twin(n, m, r, horizon, iota, E):
    """Algorithm 1 in plain numpy."""
    S, A = n.shape[1:]
    Q, V = np.zeros((horizon, S, A)), np.zeros(S)
    for h in reversed(range(horizon)):
        N, known = n[h], n[h] > max(E, 0.0)
        safe = np.where(known, N, E + 1.0)
        P = m[h] / safe[..., None]
        variance = np.maximum(P @ V**2 - (P @ V) ** 2, 0.0)
        penalty = (
            2 * np.sqrt(variance * iota / (safe - E))
            + np.sqrt(2 * iota / (safe - E))
            + 16 * S * horizon * E * iota / safe
        )
        Q[h] = np.where(known, np.clip(np.clip(r[h] / safe, 0, 1) + P @ V - penalty, 0, horizon - h), 0.0)
        V = Q[h].max(axis=1)
    return Q


@pytest.mark.parametrize("E", [0.0, 3.0])
def test_the_penalty_is_the_papers(E):
    rng = np.random.default_rng(4)
    m = rng.integers(0, 400_000, (3, 4, 2, 4)).astype(float)
    m[1, 2, 1] = 0.5
    n = m.sum(axis=-1)
    r = n * rng.random(n.shape)
    plan = apvi_plan(n, m, r, 3, 2.0, E)
    np.testing.assert_allclose(plan.q, twin(n, m, r, 3, 2.0, E), atol=1e-9)
    assert plan.q[0].max() > 0.5
    assert (plan.q <= apvi_plan(n, m, r, 3, 2.0, 0.0).q + 1e-12).all()


def offline(constants, epsilon, users, seed=0):
    env = garnet(instance_seed=seed)
    env.reset(seed=seed)
    if epsilon is None:
        board = OpenBillboard(env, users=users, schedule=users)
    else:
        board = JDPBillboard(env, epsilon, 1e-6, users=users, schedule=users, rng=seed)
    board.serve(np.full((4, 4, 2), 0.5), users, rng=np.random.default_rng(seed))  # the habit: actions at random
    return env.unwrapped.model, DPAPVI("TabularPolicy", board, constants=constants, seed=0).learn_offline()


@pytest.mark.slow
def test_theory_is_pessimistic_offline():
    """Values are below those of their own policy, on every instance, and above nothing."""
    for seed in range(3):
        model, agent = offline("theory", 1_000.0, 2_000_000, seed)
        promised, true = agent._plan.v[0, 0], model.values_of(agent.policy)[0, 0]
        assert 0.0 < promised < true


def test_pessimism_without_a_penalty_is_caught():
    """The same values without any penalty exceed those of their policy on some instance of few users."""
    above = 0
    for seed in range(5):
        env = garnet(instance_seed=seed)
        env.reset(seed=seed)
        board = OpenBillboard(env, users=30, schedule=30)
        board.serve(np.full((4, 4, 2), 0.5), 30, rng=np.random.default_rng(seed))
        release = board.release
        plan = apvi_plan(release.n, release.m, release.r, 4, 1e-9, 0.0)
        above += plan.v[0, 0] > env.unwrapped.model.values_of(plan.policy)[0, 0]
    assert above > 0


def test_offline_it_beats_the_habit_of_those_who_came():
    model, agent = offline("practical", 1.0, 20_000)
    habit = model.value_of(Policy(np.full((4, 4, 2), 0.5), 2))
    assert model.value_of(agent.policy) > habit + 0.3 * (model.optimal_value() - habit)


def test_practical_plans_are_those_of_dp_ucbvi_offline():
    _, agent = offline("practical", 4.0, 5_000)
    other = DPUCBVI("TabularPolicy", agent.board).learn_offline()
    np.testing.assert_array_equal(agent.policy.table, other.policy.table)


def test_pooled_counts_have_the_error_of_all_stages():
    """A stationary problem, pooled: more is known, and E counts every stage."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model, agent = offline("theory", 100.0, 200_000)
        staged = agent._plan.v[0, 0]
        agent.learn_offline(stationary=True)
    assert staged <= agent._plan.v[0, 0] <= model.values_of(agent.policy)[0, 0]

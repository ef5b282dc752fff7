"""Sensitivities: never exceeded in a search over pairs of users and policies, and reached."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_rl_gym.envs import TabularModel
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy import NoiseSource, TabularCounts
from private_rl_gym.privacy.accounting.guarantee import Neighbours
from private_rl_gym.privacy.randomizers import randomized
from tests.privacy.statistics import sums
from tests.strategies import models, policies, seeds, tapes, uniform_policy

STARTS = {True: Neighbours.SAME_START, False: Neighbours.REPLACE_ONE}


def vector(statistic, users):
    found = np.zeros(statistic.cells, dtype=np.int64)
    sums.collect(statistic, users, found)
    return found * statistic.grid


def two_users(model, data):
    """The same policy met by one of two users: their trajectories."""
    policy = data.draw(policies(model))
    uniforms = np.random.default_rng(data.draw(seeds)).random((1, model.horizon))
    return [model.rollout(policy, data.draw(tapes(model, users=1)), uniforms) for _ in range(2)]


@given(st.data())
def test_replacing_a_user_moves_counts_by_no_more_than_stated(data):
    model = data.draw(models())
    kind = data.draw(st.sampled_from(["centred", "raw", "separate"]))
    sizes = model.horizon, model.n_states, model.n_actions
    statistic = TabularCounts(*sizes, separate_visits=kind == "separate", raw_rewards=kind == "raw")
    first, second = (vector(statistic, user) for user in two_users(model, data))
    stated = statistic.sensitivity()
    assert np.abs(first - second).sum() <= stated.l1 + 1e-9
    assert np.linalg.norm(first - second) <= stated.l2 + 1e-9


@given(st.data())
def test_a_user_with_the_same_start_moves_less(data):
    model = data.draw(models())
    sizes = model.horizon, model.n_states, model.n_actions
    statistic = TabularCounts(*sizes, separate_visits=data.draw(st.booleans()))
    stated = statistic.sensitivity(neighbours=Neighbours.SAME_START)
    policy = data.draw(policies(model))
    uniforms = np.random.default_rng(data.draw(seeds)).random((2, model.horizon))
    uniforms[1] = uniforms[0]
    users = data.draw(tapes(model, users=2))
    users[1, 0] = users[0, 0]
    found = model.rollout(policy, users, uniforms)
    first, second = (vector(statistic, found.part(user, user + 1)) for user in range(2))
    assert np.abs(first - second).sum() <= stated.l1 + 1e-9
    assert np.linalg.norm(first - second) <= stated.l2 + 1e-9


def path(states, rewards):
    """One user, who takes action 0."""
    H = len(rewards)
    return Trajectories(
        np.array([states], dtype=np.int32), np.zeros((1, H), dtype=np.int32), np.array([rewards], dtype=float)
    )


@pytest.mark.parametrize("public_start", [True, False])
def test_the_sensitivity_of_separate_counts_is_reached(public_start):
    """Two users in different states, who both earn: all three families move as far as they can."""
    H = 5
    statistic = TabularCounts(H, 4, 2, separate_visits=True)
    stated = statistic.sensitivity(neighbours=STARTS[public_start])
    one, other = (
        path([1 if public_start else s, *[s] * H], [float(s > 0 or not public_start), *[1.0] * (H - 1)]) for s in (0, 3)
    )
    difference = vector(statistic, one) - vector(statistic, other)
    assert np.abs(difference).sum() == stated.l1 == 6 * H - 3 * public_start
    assert np.linalg.norm(difference) == pytest.approx(stated.l2)


@pytest.mark.parametrize("public_start", [True, False])
@pytest.mark.parametrize("H", [1, 2, 5, 6])
def test_the_stated_sensitivity_is_reached(H, public_start):
    """By users who part and meet again: where they part, one is paid and the other is not, in one cell."""
    statistic = TabularCounts(H, 4, 2)
    stated = statistic.sensitivity(neighbours=STARTS[public_start])
    one, other = ([0 if h % 2 == 0 else s for h in range(H + 1)] for s in (1, 2))
    difference = vector(statistic, path(one, [1.0] * H)) - vector(statistic, path(other, [0.0] * H))
    w = 1.0 if H == 1 else 0.5
    assert np.abs(difference).sum() == stated.l1 == (2 + w) * H
    assert np.linalg.norm(difference) == pytest.approx(stated.l2)
    assert stated.l2 < np.sqrt(4 * H)  # of rewards as they are
    assert H == 1 or stated.l2**2 == pytest.approx((35 * H + H % 2) / 16)


@pytest.mark.parametrize("wrong", ["states", "actions", "rewards"])
@pytest.mark.parametrize("what", [TabularCounts(2, 3, 2), randomized(TabularCounts(2, 3, 2), 1.0, 0.0, "one-step")])
def test_what_is_out_of_range_is_never_counted(wrong, what):
    """Sensitivity is a promise about users in range: they are checked where it is made, whoever calls."""
    good = {"states": np.zeros((4, 3), np.int32), "actions": np.zeros((4, 2), np.int32), "rewards": np.zeros((4, 2))}
    for value in (-1, 3, 2**31 - 1) if wrong != "rewards" else (-1e-9, 1.0 + 1e-9, np.nan, np.inf):
        bad = {name: array.copy() for name, array in good.items()}
        bad[wrong][2, 1] = value
        found = np.zeros(sums.size(what), dtype=np.int64)
        with pytest.raises(ValueError, match="outside H=2, S=3, A=2"):
            sums.collect(what, Trajectories(**bad), found, NoiseSource(0))
        assert not found.any()
    for name, array in good.items():  # too few stages
        with pytest.raises(ValueError, match="outside H=2, S=3, A=2"):
            sums.collect(what, Trajectories(**{**good, name: array[:, :-1]}), np.zeros(sums.size(what), dtype=np.int64))


@pytest.mark.parametrize("name", TabularCounts.randomizers)
@given(data=st.data())
def test_reports_with_the_same_randomness_move_by_no_more_than_stated(name, data):
    """What a billboard around reports relies on: a user's randomness does not depend on her data."""
    model = data.draw(models())
    sizes = (model.horizon, model.n_states, model.n_actions)
    seed = data.draw(seeds)
    found = []
    for user in two_users(model, data):
        randomizer = randomized(TabularCounts(*sizes), 1.0, 1e-6, name)
        sent = np.zeros(sums.size(randomizer), dtype=np.int64)
        sums.collect(randomizer, user, sent, NoiseSource(seed))
        found.append(sums.real(randomizer, sent))
    assert np.abs(found[0] - found[1]).sum() <= randomizer.sensitivity.l1 + 1e-6
    assert np.linalg.norm(found[0] - found[1]) <= randomizer.sensitivity.l2 + 1e-6


@given(models())
def test_counts_are_those_of_the_trajectories(model):
    rng = np.random.default_rng(0)
    users = model.rollout(uniform_policy(model), model.draw_users(rng, 20), rng.random((20, model.horizon)))
    for separate in (False, True):
        statistic = TabularCounts(model.horizon, model.n_states, model.n_actions, separate_visits=separate)
        n, m, r = statistic.sums(vector(statistic, users)).values()
        wanted = np.zeros_like(m), np.zeros_like(r)
        for user in range(20):
            for h in range(model.horizon):
                s, a, following = users.states[user, h], users.actions[user, h], users.states[user, h + 1]
                wanted[0][h, s, a, following] += 1
                wanted[1][h, s, a] += users.rewards[user, h]
        np.testing.assert_array_equal(m, wanted[0])
        np.testing.assert_array_equal(n, wanted[0].sum(axis=-1))
        np.testing.assert_allclose(r, wanted[1], atol=20 * 2.0**-21)  # rewards are rounded to their grid
        np.testing.assert_array_equal(r * 2**20, np.round(r * 2**20))


def test_a_constant_without_its_factor_two_is_caught():
    """The papers' Claim 1, H a family, is what adding a user moves: half of what replacing one does."""
    model = TabularModel([[[0.5, 0.5]], [[0.5, 0.5]]], [[0.0], [1.0]], horizon=6)
    statistic = TabularCounts(6, 2, 1, raw_rewards=True)
    zeros, ones = (model.rollout([0, 0], np.full((1, 13), u)) for u in (0.0, 0.99))
    moved = np.abs(vector(statistic, zeros) - vector(statistic, ones)).sum()
    assert moved > 2 * model.horizon  # the papers' constant for these two families
    assert moved <= statistic.sensitivity().l1

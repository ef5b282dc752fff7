"""The most visiting active policy: listed, and searched."""

import itertools

import numpy as np
import pytest

from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.search import EstimatedModel, Everyone, NearBest
from private_rl_gym.planning.solve import evaluate_policy, occupancy

SIZES = [(3, 4, 2), (2, 3, 4), (4, 3, 2), (6, 2, 2), (1, 6, 4), (12, 1, 2)]  # at most 4,096 policies


def model(sizes, seed):
    """Random and sparse, with an absorbing state that some of the mass leads to."""
    H, S, A = sizes
    rng = np.random.default_rng(seed)
    P = np.zeros((H, S + 1, A, S + 1))
    P[:, :S] = rng.dirichlet(np.full(S + 1, 0.4), size=(H, S, A))
    P[:, S, :, S] = 1.0
    r = np.zeros((H, S + 1, A))
    r[:, :S] = rng.random((H, S, A)) * (rng.random((H, S, A)) < 0.5)
    return EstimatedModel(P, r, np.append(rng.dirichlet(np.ones(S)), 0.0))


def brute(problem, table):
    """Value and occupancy of one policy, by the planners for models."""
    whole = np.concatenate([table, np.zeros((len(table), 1), dtype=int)], axis=1)
    policy = Policy.of(whole, horizon=len(table), n_states=whole.shape[1], n_actions=problem.rewards.shape[2])
    value = evaluate_policy(problem.transitions, problem.rewards, policy)[0] @ problem.initial
    return value, occupancy(problem.transitions, problem.initial, policy)


@pytest.mark.parametrize("sizes", [(2, 3, 2), (3, 2, 2), (2, 2, 3)])
def test_listed_values_are_those_of_each_policy(sizes):
    problem, everyone = model(sizes, 1), Everyone(*sizes, 4096)
    values = everyone.values(problem).ravel()
    tables = [everyone.table(number) for number in range(values.size)]
    assert len({table.tobytes() for table in tables}) == sizes[2] ** (sizes[0] * sizes[1])
    found = [brute(problem, table) for table in tables]
    np.testing.assert_allclose(values, [value for value, _ in found], atol=1e-12)
    for layer, (s, a) in itertools.product(range(sizes[0]), itertools.product(range(sizes[1]), range(sizes[2]))):
        best = max(visits[layer, s, a] for _, visits in found)
        mixture = everyone.most_visiting(problem, layer)[s * sizes[2] + a]
        assert mixture.visits == pytest.approx(best, abs=1e-12)
        assert brute(problem, mixture.first)[1][layer, s, a] == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sizes", SIZES)
def test_both_searches_agree_where_everyone_is_active(sizes, seed):
    problem, everyone = model(sizes, seed), Everyone(*sizes, 4096)
    assert NearBest().best(problem)[1] == pytest.approx(everyone.values(problem).max(), abs=1e-12)
    for layer in range(sizes[0]):
        listed = [mixture.visits for mixture in everyone.most_visiting(problem, layer)]
        searched = [mixture.visits for mixture in NearBest().most_visiting(problem, layer, np.inf)]
        np.testing.assert_allclose(searched, listed, atol=1e-6)


@pytest.mark.parametrize("gap", [0.05, 0.3])
@pytest.mark.parametrize("sizes", SIZES)
def test_a_mixture_keeps_to_the_gap_and_visits_no_less_than_any_policy_within_it(sizes, gap):
    problem, everyone = model(sizes, 5), Everyone(*sizes, 4096)
    everyone.eliminate(problem, gap)
    best = everyone.best(problem)[1]
    for layer in range(sizes[0]):
        listed = everyone.most_visiting(problem, layer)
        for place, mixture in enumerate(NearBest().most_visiting(problem, layer, gap)):
            assert mixture.visits >= listed[place].visits - 1e-6
            s, a = divmod(place, sizes[2])
            both = [brute(problem, table) for table in (mixture.first, mixture.second)]
            value = mixture.share * both[0][0] + (1 - mixture.share) * both[1][0]
            visits = mixture.share * both[0][1][layer, s, a] + (1 - mixture.share) * both[1][1][layer, s, a]
            assert value >= best - gap - 1e-9
            assert visits == pytest.approx(mixture.visits, abs=1e-9)


def test_eliminated_policies_are_not_run():
    sizes = (2, 2, 2)
    problem, everyone = model(sizes, 2), Everyone(*sizes, 4096)
    everyone.eliminate(problem, 0.02)
    kept = {everyone.table(number).tobytes() for number in np.flatnonzero(everyone.active)}
    assert 1 <= len(kept) < 16
    for layer in range(2):
        for mixture in everyone.most_visiting(problem, layer):
            assert mixture.first.tobytes() in kept


@pytest.mark.parametrize("users", [0, 1, 2, 7, 100])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 1.0])
def test_a_split_loses_nobody(users, share):
    from private_rl_gym.planning.search import PolicyMixture

    parts = PolicyMixture(np.zeros((1, 1), dtype=int), np.ones((1, 1), dtype=int), share, 0.0).split(users)
    assert sum(count for _, count in parts) == users
    assert all(count > 0 for _, count in parts)


def test_too_many_policies_get_a_sentence():
    with pytest.raises(ValueError, match=r"2\^60 .*search='enumerate'"):
        Everyone(10, 6, 2, 65_536)

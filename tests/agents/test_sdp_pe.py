"""Policy elimination: batches that lose nobody, an optimum that stays, and regret that falls."""

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.agents import APEVE, SDPPE
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard, SDPShuffler


def garnet(**options):
    options = {"n_states": 5, "n_actions": 2, "horizon": 5, "branching": 2, **options}
    return gym.make("PrivateRL/Garnet-v0", **options)


def open_board(env, users):
    return OpenBillboard(env, users, publish_every=users)


def sdp(env, users, epsilon=10.0):
    return SDPShuffler(env, epsilon, 1e-6, users, batch_size=users, seed=0)


def run(agent):
    """Serve everyone; the regret of each user, and who was in which batch."""
    model, gaps, ends = agent.board.unwrapped.model, [], [0]
    best = model.optimal_value()
    while agent.board.users_left:
        _ = agent.policy
        policy, count = agent._policy, min(agent.users_to_plan, agent.board.users_left)
        agent.learn(count * agent.horizon, reset_num_timesteps=False)
        gaps += [best - model.value_of(policy)] * count
        if agent.board.release.users > ends[-1]:
            ends.append(agent.board.release.users)
    return np.array(gaps), np.diff(ends)


@pytest.mark.parametrize("users", [1, 2, 3, 63, 64, 100, 1_000, 1_023, 1_025, 12_345])
@pytest.mark.parametrize("first", [None, 1])
def test_every_user_is_in_one_batch_of_the_agent(users, first):
    """Sum of batch sizes = K, for any K."""
    board = sdp(garnet(horizon=3), users)
    board.unwrapped.reset(seed=0)
    agent = SDPPE("TabularPolicy", board, first_stage=first, seed=0)
    _, batches = run(agent)
    assert batches.sum() == users == board.release.users
    assert board.release.version == len(batches)
    assert agent.policy.horizon == 3
    assert agent._finished


def test_stages_are_those_of_the_paper():
    """2^b for crude exploration, layer by layer, and as many at once for fine exploration; then the next stage."""
    board = open_board(garnet(horizon=2, n_states=2), 8 + 8 + 16 + 16)
    _, batches = run(APEVE("TabularPolicy", board, seed=0, first_stage=3))
    assert batches.tolist() == [4, 4, 8, 8, 8, 16]


@pytest.mark.slow
@pytest.mark.parametrize("make", [open_board, sdp])
def test_at_theory_constants_the_best_policy_stays_active(make):
    """Enumerated, on tiny instances: at beta = 0.1, more than 6 of 20 failures have probability below 0.3 %."""
    failures, active = 0, []
    for seed in range(20):
        env = garnet(n_states=2, horizon=2, instance_seed=seed)
        env.unwrapped.reset(seed=seed)
        agent = SDPPE("TabularPolicy", make(env, 4_000_000), search="enumerate", bonus="theory", beta=0.1, seed=seed)
        run(agent)
        best = env.unwrapped.model.optimal_policy().table
        numbers = [n for n in range(16) if (agent._search.table(n) == best).all()]
        failures += not agent._search.active.flat[numbers[0]]
        active.append(agent._search.active.sum())
    assert failures <= 6
    if make is open_board:  # and something was eliminated, so that staying says something
        assert np.mean(active) < 12


def test_an_eliminator_that_is_too_bold_is_caught():
    """The same check fails where the gap is nothing."""
    failures = 0
    for seed in range(20):
        env = garnet(n_states=2, horizon=2, instance_seed=seed)
        env.unwrapped.reset(seed=seed)
        agent = SDPPE("TabularPolicy", sdp(env, 500), search="enumerate", gap_scale=1e-9, noise_scale=0.0, seed=seed)
        run(agent)
        best = env.unwrapped.model.optimal_policy().table
        numbers = [n for n in range(16) if (agent._search.table(n) == best).all()]
        failures += not agent._search.active.flat[numbers[0]]
    assert failures > 6


@pytest.mark.slow
@pytest.mark.parametrize("make", [open_board, sdp])
@pytest.mark.parametrize("seed", range(3))
def test_regret_per_user_falls_towards_zero(make, seed):
    """Practical scale: tenfold users, and again, each time much less regret a user."""
    rates = []
    for users in (2_000, 20_000, 200_000):
        env = garnet(instance_seed=seed)
        env.unwrapped.reset(seed=seed)
        gaps, _ = run(SDPPE("TabularPolicy", make(env, users), seed=seed))
        rates.append(gaps.mean() / env.unwrapped.model.optimal_value())
    assert rates[0] > rates[1] > rates[2]
    assert rates[2] < 0.06


@pytest.mark.slow
@pytest.mark.parametrize("make", [open_board, sdp])
def test_both_searches_have_about_the_same_regret(make):
    """Within 25 %, in the mean over instances of at most 4,096 policies."""
    total = {}
    for search in ("enumerate", "lagrangian"):
        total[search] = 0.0
        for seed in range(6):
            env = garnet(n_states=4, horizon=3, instance_seed=seed)
            env.unwrapped.reset(seed=seed)
            gaps, _ = run(SDPPE("TabularPolicy", make(env, 60_000), search=search, seed=seed))
            total[search] += gaps.sum()
    print(make.__name__, total)
    assert total["lagrangian"] == pytest.approx(total["enumerate"], rel=0.25)


def test_around_exact_sums_it_is_its_parent():
    found = []
    for kind in (SDPPE, APEVE):
        board = open_board(garnet(), 5_000)
        board.unwrapped.reset(seed=3)
        found.append((run(kind("TabularPolicy", board, bonus="theory", seed=0))[0], board.release))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1].m, found[1][1].m)


@pytest.mark.parametrize(
    "make",
    [
        lambda env: OpenBillboard(env, 600),
        lambda env: OpenBillboard(env),
        lambda env: LDPUserSide(env, 5.0, users=600, publish_every=600),
        lambda env: JDPBillboard(env, 5.0, 1e-6, 600, counting="batched", publish_every=600),
        lambda env: SDPShuffler(env, 5.0, 1e-6, 600, batch_size=50),  # of which a stage takes several
        lambda env: SDPShuffler(LDPUserSide(env, 5.0), users=600, batch_size=600),
        lambda env: SDPShuffler(env, 5.0, 1e-6, batch_size=10_000),
    ],
)
def test_boards_whose_batches_can_be_closed_will_do(make):
    agent = SDPPE("TabularPolicy", make(garnet(horizon=3)), seed=0).learn(600 * 3)
    assert agent.board.users_left in (0, None)
    assert agent.num_timesteps == 1800


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: SDPPE("TabularPolicy", JDPBillboard(garnet(), 1.0, 1e-6, 50)), "closes batches itself, and this JDPB"),
        (lambda: SDPPE("TabularPolicy", garnet(), search="x"), "search is 'x'"),
        (lambda: SDPPE("TabularPolicy", garnet(), search="enumerate", most_policies=100), "lists at most 100"),
        (lambda: SDPPE("TabularPolicy", garnet(), gap_scale=0.0), "gap_scale is 0.0"),
        (lambda: SDPPE("TabularPolicy", garnet(), noise_scale=-1.0), "noise_scale is -1.0"),
        (lambda: SDPPE("TabularPolicy", garnet(), bonus="x"), "bonus is 'x'"),
    ],
)
def test_bad_input_gets_a_sentence(build, sentence):
    with pytest.raises(ValueError, match=sentence):
        build()

"""Policy elimination: batches that lose nobody, an optimum that stays, and regret that falls."""

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.agents import APEVE, SDPPE
from private_rl_gym.agents.tabular.elimination import ModelInterval, WeightedSums
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard, SDPShuffler

pytestmark = pytest.mark.filterwarnings("ignore:.*nothing will be eliminated")


def garnet(**options):
    options = {"n_states": 5, "n_actions": 2, "horizon": 5, "branching": 2, **options}
    return gym.make("PrivateRL/Garnet-v0", **options)


def open_board(env, users):
    return OpenBillboard(env, users=users, schedule=users)


def sdp(env, users, epsilon=10.0):
    return SDPShuffler(env, epsilon, 1e-6, users=users, schedule=users, rng=0)


def run(agent):
    """Serve everyone; the regret of each user, and who was in which batch."""
    model, gaps, ends = agent.board.unwrapped.model, [], [0]
    best = model.optimal_value()
    while agent.board.users_left:
        policy = agent.policy
        count = min(agent.users_to_come(), agent.board.users_left)
        agent.learn(count * agent.horizon, reset_num_timesteps=False)
        gaps += [best - model.value_of(policy)] * count
        if agent.board.release.users > ends[-1]:
            ends.append(agent.board.release.users)
    return np.array(gaps), np.diff(ends)


@pytest.mark.slow
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
    assert agent.finished


def test_stages_are_those_of_the_paper():
    """2^b for crude exploration, layer by layer, and as many at once for fine exploration; then the next stage."""
    board = open_board(garnet(horizon=2, n_states=2), 8 + 8 + 16 + 16)
    _, batches = run(APEVE("TabularPolicy", board, seed=0, first_stage=3, constants="theory"))
    assert batches.tolist() == [4, 4, 8, 8, 8, 16]


def test_practical_stages_explore_crudely_once_and_grow_slowly():
    """8 users crudely, layer by layer, and 8 finely; then 20, then 25; the last stage takes the rest."""
    board = open_board(garnet(horizon=2, n_states=2), 16 + 20 + 25 + 32 + 39)
    _, batches = run(APEVE("TabularPolicy", board, seed=0, first_stage=3))
    assert batches.tolist() == [4, 4, 8, 20, 25, 32 + 39]


@pytest.mark.slow
def test_stages_that_remember_lose_half_of_what_stages_that_forget_lose():
    """In the mean over six instances that are not the grid's; forgetting is what theory prints, with its own widths."""
    lost = {}
    for forget in (False, True):
        lost[forget] = 0.0
        for seed in range(1, 7):
            env = garnet(instance_seed=seed)
            env.unwrapped.reset(seed=seed)
            agent = SDPPE("TabularPolicy", sdp(env, 50_000), seed=seed)
            if forget:
                agent._interval = lambda _, agent=agent: SDPPE._interval(agent, _last(agent))
                agent.prepare()
            lost[forget] += run(agent)[0].sum()
    assert lost[False] < 0.5 * lost[True]


def _last(agent):
    """The sums of the newest batch alone."""
    batch = agent._received[-1]
    return WeightedSums.nothing(*agent.board.sizes).plus(batch, batch.noise_std["n"])


@pytest.mark.slow
@pytest.mark.parametrize(("make", "horizon"), [(open_board, 2), (sdp, 2), (sdp, 1)])
def test_at_theory_constants_the_best_policy_stays_active(make, horizon):
    """Enumerated, on tiny instances: at beta = 0.1, more than 6 of 20 failures have probability below 0.3 %."""
    failures, active = 0, []
    for seed in range(20):
        env = garnet(n_states=2, horizon=horizon, instance_seed=seed)
        env.unwrapped.reset(seed=seed)
        agent = SDPPE(
            "TabularPolicy", make(env, 4_000_000), search="enumerate", constants="theory", beta=0.1, seed=seed
        )
        run(agent)
        _ = agent.policy
        best = env.unwrapped.model.optimal_policy().table
        numbers = [n for n in range(agent.active.active.size) if (agent.active.table(n) == best).all()]
        failures += not agent.active.active.flat[numbers[0]]
        active.append(agent.active.active.sum())
    assert failures <= 6
    if (make, horizon) != (sdp, 2):  # and something was eliminated, so that staying says something
        assert np.mean(active) < 0.75 * agent.active.active.size


@pytest.mark.slow
def test_an_eliminator_that_is_too_bold_is_caught():
    """The same check fails where the gap is nothing."""
    failures = 0
    for seed in range(20):
        env = garnet(n_states=2, horizon=2, instance_seed=seed)
        env.unwrapped.reset(seed=seed)
        agent = SDPPE("TabularPolicy", sdp(env, 500), search="enumerate", gap_scale=1e-9, noise_scale=0.0, seed=seed)
        run(agent)
        best = env.unwrapped.model.optimal_policy().table
        numbers = [n for n in range(16) if (agent.active.table(n) == best).all()]
        failures += not agent.active.active.flat[numbers[0]]
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
def test_both_searches_have_regret_of_the_same_order(make):
    """In the mean over instances of at most 4,096 policies: 2,300 listed and 900 searched around exact sums, 1,700 and
    4,200 behind a shuffler. What is listed is dropped for ever, and what is searched pays for mixtures."""
    total = {}
    for search in ("enumerate", "lagrangian"):
        total[search] = 0.0
        for seed in range(6):
            env = garnet(n_states=4, horizon=3, instance_seed=seed)
            env.unwrapped.reset(seed=seed)
            gaps, _ = run(SDPPE("TabularPolicy", make(env, 60_000), search=search, seed=seed))
            total[search] += gaps.sum()
    print(make.__name__, total)
    assert total["enumerate"] / 3 < total["lagrangian"] < 3 * total["enumerate"]


def test_an_early_end_is_no_start():
    """FrozenLake, padded: found in review, where all users seemed to start where episodes end."""
    env = gym.make("FrozenLake-v1", desc=["SF", "HG"], is_slippery=False)
    env.reset(seed=0)
    board = OpenBillboard(env, users=4_000, schedule=4_000, horizon=2)
    agent = SDPPE("TabularPolicy", board, seed=0).learn(2 * 4_000)
    np.testing.assert_allclose(agent.refined.initial, [1, 0, 0, 0, 0, 0])
    best = agent.best_policy().table
    assert (best[0, 0], best[1, 2]) == (1, 2) or (best[0, 0], best[1, 1]) == (2, 1) or best[0, 0] == 1
    assert agent.active.best(agent.refined)[1] == pytest.approx(1.0, abs=0.05)


@pytest.mark.slow
def test_it_ends_with_its_board_whoever_came():
    """Users who vanish, or come by another door, are in the board's count and not in the agent's.

    Shares of the optimum have mean 0.94 and standard deviation 0.06, with or without them.
    """
    shares = []
    for seed in range(5):
        board = SDPShuffler(garnet(horizon=3), 10.0, 1e-6, users=2_000, schedule=2_000, rng=seed, dropout=0.1)
        board.unwrapped.reset(seed=seed)
        agent = SDPPE("TabularPolicy", board, seed=0).learn(1_000 * 3)
        board.drop_out(10)
        board.serve(np.zeros((3, 5), dtype=int), 5)
        agent.learn(board.users_left * 3)
        assert agent.policy.table.tolist() == agent.best_policy().table.tolist()
        assert agent.finished
        model = board.unwrapped.model
        shares.append(model.value_of(agent.policy) / model.optimal_value())
    assert np.mean(shares) > 0.8


@pytest.mark.parametrize(
    "make",
    [
        lambda env: JDPBillboard(env, 1.0, 1e-6, users=20_000, counting="batched", schedule=1_000, rng=0),
        lambda env: JDPBillboard(env, 1.0, 0.0, users=20_000, counting="batched", schedule=1_000, rng=0),
        lambda env: SDPShuffler(env, 1.0, 1e-6, users=20_000, schedule=1_000, rng=0),
        lambda env: LDPUserSide(env, 5.0, users=20_000, schedule=1_000, randomizer="laplace", rng=0),
    ],
)
def test_the_noise_of_a_batch_is_that_of_the_batch(make):
    """Claimed against measured, in entries where nobody can be: also in late batches, whose sums carry much more."""
    board = make(gym.make("PrivateRL/RiverSwim-v0", horizon=3, n_states=6))
    found = []
    for _ in range(20):
        board.serve(np.zeros((3, 6), dtype=int), 1_000)
        batch = board.batch
        empty = np.concatenate([batch.m[0, 3:].ravel(), batch.m[1, 5].ravel()])  # all start on the left
        found.append((batch.noise_std["m"], empty.std(), empty.std() / batch.noise_std["m"]))
    claimed = [claim for claim, _, _ in found]
    np.testing.assert_allclose(claimed, claimed[0], rtol=1e-6)
    assert 0.9 < np.mean([ratio for _, _, ratio in found]) < 1.05


def test_a_saved_agent_goes_on_with_its_board_also_when_it_gets_it_later(tmp_path):
    board = sdp(garnet(horizon=3), 2_000)
    agent = SDPPE("TabularPolicy", board, seed=0).learn(1_000 * 3)
    agent.save(tmp_path / "agent")
    later, other = SDPPE.load(tmp_path / "agent"), SDPPE.load(tmp_path / "agent")
    later.set_env(board)
    assert later.progress() == agent.progress()
    assert later.users_to_come() == agent.users_to_come()
    other.set_env(sdp(garnet(horizon=3), 2_000))  # another board's stages begin anew, with their own policies
    fresh = SDPPE("TabularPolicy", sdp(garnet(horizon=3), 2_000), seed=0)
    np.testing.assert_array_equal(other.policy.table, fresh.policy.table)


@pytest.mark.parametrize("agent_first", [False, True])
def test_agent_and_board_go_on_together_in_either_order(agent_first, tmp_path):
    """Found by a newcomer: loaded before the board's state, the agent began its stages anew."""
    boards = [sdp(garnet(horizon=3), 2_000) for _ in range(3)]
    agents = [SDPPE("TabularPolicy", board, seed=0) for board in boards[:2]]
    for board, agent in zip(boards, agents, strict=False):
        board.unwrapped.reset(seed=5)
        agent.learn(1_234 * 3)
    agents[0].save(tmp_path / "agent")
    boards[0].save_state(tmp_path / "board")
    if agent_first:
        again = SDPPE.load(tmp_path / "agent", env=boards[2])
        boards[2].load_state(tmp_path / "board")
    else:
        boards[2].load_state(tmp_path / "board")
        again = SDPPE.load(tmp_path / "agent", env=boards[2])
    for agent in (agents[1], again):
        agent.learn(766 * 3, reset_num_timesteps=False)
    np.testing.assert_array_equal(again.policy.table, agents[1].policy.table)
    np.testing.assert_array_equal(again.board.release.m, agents[1].board.release.m)


@pytest.mark.slow
def test_predict_plays_the_best_that_is_known(tmp_path):
    """Not what the next user explores; with an environment, and loaded without one."""
    board = sdp(garnet(), 20_000)
    board.unwrapped.reset(seed=0)
    agent = SDPPE("TabularPolicy", board, seed=0).learn(15_000 * 5)
    agent.save(tmp_path / "agent")
    model = board.unwrapped.model
    values = agent.active.best(agent.refined)
    np.testing.assert_array_equal(agent.best_policy().table, values[0])
    assert model.value_of(agent.best_policy()) >= model.value_of(agent.policy)
    for one in (agent, SDPPE.load(tmp_path / "agent")):
        actions, _ = one.predict(np.arange(5), episode_start=np.ones(5, dtype=bool))
        np.testing.assert_array_equal(actions, agent.best_policy().table[0])


@pytest.mark.filterwarnings("default:.*nothing will be eliminated")
def test_too_few_users_are_warned_of():
    with pytest.warns(UserWarning, match=r"256 users .* 500 users are left"):
        SDPPE("TabularPolicy", sdp(garnet(), 500))


def test_what_is_rare_in_crude_exploration_stays_so_in_fine():
    """Algorithm 3 takes W from algorithm 2: both models leave out the same."""
    board = open_board(garnet(horizon=2, n_states=2), 2_000_000)
    agent = SDPPE("TabularPolicy", board, constants="theory", seed=0)
    run(agent)
    _ = agent.policy
    assert (agent.refined.transitions[:, :2, :, :2][agent.rare] == 0).all()
    assert (~agent.rare).sum() > 0


def test_rewards_of_pairs_whose_successors_are_all_rare_are_estimated_as_in_algorithm_3():
    board = open_board(garnet(horizon=2, n_states=2), 4_000)
    agent = SDPPE("TabularPolicy", board, constants="theory", first_stage=10, seed=0)
    run(agent)
    _ = agent.policy
    lost = agent.rare.all(axis=-1)
    assert lost.any()
    assert (agent.refined.rewards[:, :2][lost] > 0).any()


def sums_of(users, noise, seed=0):
    """Weighted sums of two batches of users who act at random, and the model that they come from."""
    env = garnet(instance_seed=seed)
    env.unwrapped.reset(seed=seed)
    board = open_board(env, 2 * users)
    sums, rng = WeightedSums.nothing(*board.sizes), np.random.default_rng(seed)
    for _ in range(2):
        board.serve(np.full((5, 5, 2), 0.5), users, rng=rng)
        board.publish()
        sums = sums.plus(board.batch, noise)
    return env.unwrapped.model, sums


def test_batches_are_weighted_by_what_they_say_over_their_noise():
    """A batch of 300 users with noise 30 has the weight 300 / (300 + 900); two of them add up."""
    _, exact = sums_of(300, 0.0)
    _, noisy = sums_of(300, 30.0)
    assert exact.starts[-1] == 600
    assert exact.variance == 0.0
    for family in ("m", "n", "r", "starts"):
        np.testing.assert_allclose(getattr(noisy, family), getattr(exact, family) / 4)
    assert noisy.variance == pytest.approx(2 * (30 / 4) ** 2)


def test_intervals_hold_the_truth_at_the_widths_of_theory_and_not_at_none():
    """At full widths a model promises at least the best value, and at worst no more; without widths, not always."""
    fooled, active = 0, SDPPE("TabularPolicy", open_board(garnet(), 64), first_stage=3).active
    for seed in range(6):
        model, sums = sums_of(400, 0.0, seed)
        wide, none = (ModelInterval.of(sums, 10.0, scale, 0.0) for scale in (1.0, 1e-9))
        best = model.optimal_value()
        assert active.best(wide.worst)[1] <= best <= active.best(wide.best)[1]
        assert wide.worst.rewards.max() <= 1.0
        fooled += not active.best(none.worst)[1] <= best <= active.best(none.best)[1]
    assert fooled > 0


def test_what_was_seen_less_than_its_noise_may_be_worth_anything():
    _, sums = sums_of(400, 200.0)
    models = ModelInterval.of(sums, 10.0, 0.01, 0.05)
    unknown = (models.likely.transitions[:, :5, :, 5] == 1.0) & (models.likely.rewards[:, :5] == 0.0)
    assert unknown.any()
    left = np.broadcast_to(np.arange(5, 0, -1.0)[:, None, None], unknown.shape)
    np.testing.assert_array_equal(models.best.rewards[:, :5][unknown], left[unknown])
    assert (models.worst.rewards[:, :5][unknown] == 0.0).all()
    assert (models.best.rewards[:, :5][~unknown] >= models.worst.rewards[:, :5][~unknown]).all()


def test_around_exact_sums_it_is_its_parent():
    found = []
    for kind in (SDPPE, APEVE):
        board = open_board(garnet(), 5_000)
        board.unwrapped.reset(seed=3)
        found.append((run(kind("TabularPolicy", board, constants="theory", seed=0))[0], board.release))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1].m, found[1][1].m)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda env: OpenBillboard(env, users=600),
        lambda env: OpenBillboard(env),
        lambda env: LDPUserSide(env, 5.0, users=600, schedule=600),
        lambda env: JDPBillboard(env, 5.0, 1e-6, users=600, counting="batched", schedule=600),
        lambda env: JDPBillboard(env, 5.0, 1e-6, users=600),  # which is left to choose
        lambda env: SDPShuffler(env, 5.0, 1e-6, users=600, schedule=50),  # of which a stage takes several
        lambda env: SDPShuffler(env, 5.0, 1e-6, schedule=10_000),
    ],
)
def test_boards_whose_batches_can_be_closed_will_do(make):
    agent = SDPPE("TabularPolicy", make(garnet(horizon=3)), seed=0).learn(600 * 3)
    assert agent.board.users_left in (0, None)
    assert agent.num_timesteps == 1800


@pytest.mark.parametrize(
    ("build", "word"),
    [
        (
            lambda: SDPPE("TabularPolicy", JDPBillboard(garnet(), 1.0, 1e-6, users=50, counting="binary-tree")),
            "JDPBillboard its guarantee",
        ),
        (
            lambda: SDPPE("TabularPolicy", SDPShuffler(LDPUserSide(garnet(), 1.0), schedule=50)),
            "SDPShuffler its guarantee",
        ),
        (lambda: SDPPE("TabularPolicy", garnet(), first_stage=0), "first_stage is 0"),
        (lambda: SDPPE("TabularPolicy", garnet(), first_stage=3.5), "first_stage is 3.5"),
        (lambda: SDPPE("TabularPolicy", garnet(), search="x"), "search is 'x'"),
        (lambda: SDPPE("TabularPolicy", garnet(), search="enumerate", most_policies=100), "lists at most 100"),
        (lambda: SDPPE("TabularPolicy", garnet(), gap_scale=0.0), "gap_scale is 0.0"),
        (lambda: SDPPE("TabularPolicy", garnet(), noise_scale=-1.0), "noise_scale is -1.0"),
        (lambda: SDPPE("TabularPolicy", garnet(), constants="x"), "constants is 'x'"),
        (lambda: SDPPE("TabularPolicy", garnet(), growth=0.5), "growth is 0.5"),
    ],
)
def test_bad_input_gets_a_sentence(build, word):
    with pytest.raises((ValueError, TypeError), match=word):
        build()

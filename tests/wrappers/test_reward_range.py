"""Rewards of any range: mapped inside the boundary, and an episode that ended early goes on earning nothing."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from private_rl_gym.agents import DPUCBVI, PSRL, UCBVI, FrugalUCBVI
from private_rl_gym.envs import TabularModel
from private_rl_gym.planning.rewards import RewardRange
from private_rl_gym.privacy.release import CERTAIN
from private_rl_gym.wrappers import JDPBillboard, LDPPerStep, LDPUserSide, OpenBillboard, SDPShuffler
from tests.wrappers.stacks import BOARDS, H, S, river, same_release

every_board = pytest.mark.parametrize("make", BOARDS.values(), ids=BOARDS)
CORRIDOR = 10


class Corridor(gym.Env):
    """Five places in a row. Every step costs 1, until the last place is reached."""

    observation_space, action_space = spaces.Discrete(5), spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.place = 0
        return 0, {}

    def step(self, action):
        self.place = min(self.place + 1, 4) if action == 1 else max(self.place - 1, 0)
        return self.place, -1.0, self.place == 4, False, {}


def cost(agent):
    """The steps that the policy takes to the goal."""
    env, state = Corridor(), 0
    env.reset()
    for h in range(CORRIDOR):
        state, _, over, *_ = env.step(agent.best_policy().action(h, state))
        if over:
            return h + 1
    return CORRIDOR


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "board"),
    [
        (UCBVI, lambda env: OpenBillboard(env, users=500, horizon=CORRIDOR, reward_range=(-1, 0))),
        (PSRL, lambda env: OpenBillboard(env, users=500, horizon=CORRIDOR, reward_range=(-1, 0))),
        (
            DPUCBVI,
            lambda env: JDPBillboard(
                env, 200.0, 1e-6, users=3_000, schedule=30, horizon=CORRIDOR, reward_range=(-1, 0), rng=1
            ),
        ),
        (
            FrugalUCBVI,
            lambda env: JDPBillboard(env, 5.0, 1e-6, users=10_000, horizon=CORRIDOR, reward_range=(-1, 0), rng=1),
        ),
        (
            DPUCBVI,
            lambda env: SDPShuffler(
                env, 200.0, 1e-6, users=12_000, schedule=300, horizon=CORRIDOR, reward_range=(-1, 0), rng=1
            ),
        ),
    ],
)
def test_whoever_pays_for_each_step_learns_to_go_to_the_goal(agent, board):
    board = board(Corridor())
    learned = agent("TabularPolicy", board, seed=0).learn(board.users * CORRIDOR)
    assert cost(learned) == 4


def test_by_a_wrapper_that_maps_rewards_the_same_learner_stays_away():
    """The recipe that this argument replaces: what waits in the absorbing state is paid as the worst step."""
    mapped = gym.wrappers.TransformReward(Corridor(), lambda reward: reward + 1.0)
    mapped = gym.wrappers.TransformReward(mapped, lambda reward: max(reward, 0.25))  # even if a step paid more
    board = OpenBillboard(mapped, users=500, horizon=CORRIDOR)
    assert cost(UCBVI("TabularPolicy", board, seed=0).learn(500 * CORRIDOR)) == CORRIDOR


def test_a_release_holds_the_mapped_rewards_and_the_mapped_zero():
    board = OpenBillboard(Corridor(), users=3, horizon=6, reward_range=(-4, 12))
    board.serve([1] * 6, 3)
    release = board.release
    np.testing.assert_allclose(release.r[:4].sum(axis=(1, 2)), 3 * 3 / 16)  # -1, four times
    np.testing.assert_allclose(release.r[4:].sum(axis=(1, 2)), 3 * 4 / 16)  # 0, twice
    assert release.waiting_reward == 0.25
    known = release.with_certain_rows()
    assert (known.r[:, 5] / known.n[:, 5] == 0.25).all()
    assert (known.n[:, 5] == CERTAIN).all()
    model = board.private_model().model
    assert (model.rewards[:, 5] == 0.25).all()
    # Sixteen times the value, four less for each step: the return of the original.
    assert 16 * model.value_of([1] * 6) - 4 * 6 == pytest.approx(-4.0)


@every_board
def test_mapped_rewards_are_those_of_a_mapped_river(make):
    """Bit for bit: by compiled rollouts, step by step, and where a wrapper maps them before."""
    fixed = {"reward_law": "fixed"}
    boards = [
        make(river(**fixed), reward_range=(-1, 3)) if "around" not in name_of(make) else None,
        make(gym.wrappers.TransformReward(river(**fixed), lambda r: (r + 1) / 4)),
    ]
    if boards[0] is None:
        with pytest.raises(ValueError, match="rewards are mapped where users are met"):
            make(river(**fixed), reward_range=(-1, 3))
        return
    users = np.random.default_rng(0).random((40, 2 * H + 1))
    for board in boards:
        board.serve(np.ones((H, S), dtype=int), users)
    assert same_release(*(board.release for board in boards))


def name_of(make):
    return next(name for name, board in BOARDS.items() if board is make)


def test_the_cliff_by_both_roads_is_one_problem():
    """The model that is read from the table, and the environment behind a boundary, have the same scale."""
    horizon = 20
    truth = TabularModel.from_gym(gym.make("CliffWalking-v1"), horizon, reward_range=(-100, 0))
    board = OpenBillboard(gym.make("CliffWalking-v1", max_episode_steps=horizon), reward_range=(-100, 0))
    best = truth.optimal_policy()
    board.serve(best, 1)
    assert board.release.r.sum() == pytest.approx(truth.optimal_value(), abs=1e-4)
    assert RewardRange(-100, 0).original(board.release.r.sum() / horizon) * horizon == pytest.approx(-13, abs=1e-2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((0.5, 1), "it must contain 0"),
        ((-3, -1), "it must contain 0"),
        ((1, -1), "its first number must be below its second"),
        ((0, float("inf")), "both finite"),
        ((0, float("nan")), "its first number must be below its second"),
        ("ab", "it must be two numbers"),
        (3, "it must be two numbers"),
        ((0, 1, 2), "it must be two numbers"),
    ],
)
def test_a_range_that_is_none_is_refused(given, said):
    for make in (
        OpenBillboard,
        lambda env, **o: LDPUserSide(env, 1.0, **o),
        lambda env, **o: LDPPerStep(env, 1.0, **o),
    ):
        with pytest.raises(ValueError, match=said):
            make(Corridor(), horizon=5, reward_range=given)


def test_a_reward_outside_is_refused_with_the_argument_to_add():
    board = OpenBillboard(Corridor(), users=2, horizon=5)
    with pytest.raises(ValueError, match=r"outside \[0, 1\].*such as reward_range=\(-100, 0\)"):
        board.serve([1] * 6)
    narrow = OpenBillboard(Corridor(), users=2, horizon=5, reward_range=(-0.5, 0))
    with pytest.raises(ValueError, match=r"outside \[-0.5, 0\]") as caught:
        narrow.serve([1] * 6)
    assert "-1" not in str(caught.value).replace("-100", "")


def test_randomized_steps_have_the_mean_of_the_original():
    env = LDPPerStep(Corridor(), epsilon=900.0, horizon=6, reward_range=(-4, 12), rng=0)
    totals = []
    for _ in range(2_000):
        env.reset()
        totals.append(sum(env.step(1)[1] for _ in range(6)))
    # -1 four times, then 0 twice; one sum has a deviation of about 17, so six deviations of the mean are 2.3.
    assert abs(np.mean(totals) + 4.0) < 2.3


def test_a_state_is_continued_with_the_same_range_only(tmp_path):
    def make(**options):
        return JDPBillboard(Corridor(), 1.0, 1e-6, users=4, horizon=6, **options)

    board = make(reward_range=(-1, 0))
    board.serve([1] * 6, 2)
    board.save_state(tmp_path / "state")
    with pytest.raises(ValueError, match="differs in range of rewards"):
        make(reward_range=(-2, 0)).load_state(tmp_path / "state")
    again = make(reward_range=(-1, 0))
    again.load_state(tmp_path / "state")
    assert again.release.users == 2

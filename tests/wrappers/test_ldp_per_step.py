"""Randomized steps: the whole episode's loss exactly, the sampler by its frequencies, and any Gym learner."""

import itertools
import math

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit, TransformReward
from scipy import stats
from stable_baselines3.common.env_checker import check_env

from private_rl_gym.envs import TabularEnv, TabularModel
from private_rl_gym.privacy.randomizers.answers import randomized_number
from private_rl_gym.wrappers import LDPPerStep
from private_rl_gym.wrappers.step_answers import StepBudgets
from tests.wrappers.stacks import H, S, river
from tests.wrappers.test_boundary import Strange


def make(epsilon=4.0, env=None, **options):
    return LDPPerStep(river() if env is None else env, epsilon, **{"rng": 1, **options})


@pytest.mark.parametrize("observe_time", [False, True])
@pytest.mark.parametrize("id", ["PrivateRL/RiverSwim-v0", "PrivateRL/HardBandit-v0", "PrivateRL/Garnet-v0"])
def test_sb3_finds_nothing_wrong(id, observe_time):
    """Gymnasium's own check asks that a seed repeats all that is seen, which private noise must not do."""
    check_env(make(env=gym.make(id, observe_time=observe_time)))


def told(true, epsilon, n_states):
    """The law of an observation of ``true``, as the code states it."""
    keep = math.exp(epsilon) / (math.exp(epsilon) + n_states - 1)
    return [keep if s == true else (1 - keep) / (n_states - 1) for s in range(n_states)]


def told_reward(mean, epsilon):
    """The law of the reward's bit."""
    flip = 1 / (math.exp(epsilon) + 1)
    one = mean * (1 - flip) + (1 - mean) * flip
    return [1 - one, one]


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("horizon", [1, 2])
def test_a_whole_episode_costs_exactly_epsilon(epsilon, horizon):
    """Over every sequence of answers, for the worst pair of users: the start state, H states and H rewards."""
    n_states, share = 3, epsilon / (2 * horizon + 1)
    laws = {}
    for user, (state, reward) in {"first": (0, 0.0), "second": (2, 1.0)}.items():
        answers = [told(state, share, n_states)] * (horizon + 1) + [told_reward(reward, share)] * horizon
        outcomes = itertools.product(*(range(len(law)) for law in answers))
        laws[user] = [math.prod(law[o] for law, o in zip(answers, outcome, strict=True)) for outcome in outcomes]
    ratios = np.log(np.array(laws["first"]) / np.array(laws["second"]))
    assert np.abs(ratios).max() == pytest.approx(epsilon)


@pytest.mark.slow
def test_the_sampler_has_that_law():
    """A user who stays in one state and earns a third: p > 1e-6, and 1.3 times epsilon is noticed."""
    horizon, n_states, epsilon = 4, 3, 9.0
    P = np.zeros((n_states, 1, n_states))
    P[:, :, 1] = 1.0
    env = make(epsilon, TabularEnv(TabularModel(P, np.full((n_states, 1), 1 / 3), 1, horizon, "fixed")))
    share = epsilon / (2 * horizon + 1)
    seen, rewards = [], []
    for _ in range(20_000):
        seen.append(env.reset()[0])
        for _ in range(horizon):
            observation, reward, *_ = env.step(0)
            seen.append(observation)
            rewards.append(reward)
    counts, values = np.bincount(seen, minlength=n_states), np.unique(rewards)
    bits = [(np.array(rewards) == value).sum() for value in values]
    flip = 1 / (math.exp(share) + 1)
    np.testing.assert_allclose(values, [-flip / (1 - 2 * flip), (1 - flip) / (1 - 2 * flip)])
    for factor, fits in ((1.0, True), (1.3, False)):
        law = np.array(told(1, factor * share, n_states)) * len(seen)
        assert (stats.chisquare(counts, law).pvalue > 1e-6) == fits
        law = np.array(told_reward(1 / 3, factor * share)) * len(rewards)
        assert (stats.chisquare(bits, law).pvalue > 1e-6) == fits
    assert np.mean(rewards) == pytest.approx(1 / 3, abs=5 * np.std(rewards) / np.sqrt(len(rewards)))


def test_the_end_is_told_no_sooner_than_the_horizon():
    env = make(env=gym.make("FrozenLake-v1", max_episode_steps=30))
    assert env.observation_space.n == 17
    for _ in range(20):
        _, info = env.reset()
        assert info == {}
        steps = [env.step(2) for _ in range(30)]
        assert [step[2] for step in steps] == [False] * 29 + [True]
        assert not any(step[3] for step in steps)
        assert all(step[4] == {} for step in steps)
        with pytest.raises(gym.error.ResetNeeded, match="episode is over"):
            env.step(0)


def test_a_wrong_action_is_refused_whether_or_not_the_episode_has_ended():
    """Else the refusal would tell when it ended."""
    env = make(env=gym.make("FrozenLake-v1", max_episode_steps=40))
    env.reset(seed=0)
    for _ in range(40):
        with pytest.raises(gym.error.InvalidAction, match="action 99"):
            env.step(99)
        env.step(2)


def test_with_a_large_budget_the_truth_comes_through():
    noisy, plain = make(1e4), river()
    tape = np.random.default_rng(0).random(2 * H + 1)
    assert noisy.reset(options={"user": tape})[0] == plain.reset(options={"user": tape})[0]
    for _ in range(H):
        (state, reward), (true_state, true_reward) = noisy.step(1)[:2], plain.step(1)[:2]
        assert (state, reward) == (true_state, pytest.approx(true_reward, abs=1e-9))


def test_noise_is_not_seeded_by_reset():
    env = LDPPerStep(river(), 1.0)
    runs = []
    for _ in range(2):
        env.reset(seed=0)
        runs.append([env.step(1)[:2] for _ in range(H)] + [env.reset(seed=0)[0] for _ in range(40)])
    assert runs[0] != runs[1]
    assert "seeded" not in str(env.ledger)
    assert "seeded" in str(make().ledger)
    assert str(env.ledger).startswith("(1.0, 0)-LDP")
    assert "any number of users" in str(env.ledger)


def test_time_is_public_and_the_state_is_not():
    env = make(0.1, river(observe_time=True))
    stages, states = [], set()
    for _ in range(50):
        observations = [env.reset()[0]] + [env.step(1)[0] for _ in range(H)]
        stages.append([int(o[0]) for o in observations])
        states |= {int(o[1]) for o in observations}
    assert all(row == [0, 1, 2, 3, 4, 4] for row in stages)
    assert states == set(range(S))


def test_a_reward_out_of_range_is_refused():
    env = make(env=TimeLimit(Strange([0.5, 7.0]), 2))
    env.reset()
    env.step(0)
    env.step(0)
    env.reset()
    with pytest.raises(ValueError, match=r"reward outside \[0, 1\]"):
        env.step(0)
    scaled = make(env=TransformReward(TimeLimit(Strange([7.0]), 2), lambda r: r / 10))
    scaled.reset()
    scaled.step(0)


def test_pictures_stay_inside():
    env = make(env=river(render_mode="ansi"))
    env.reset()
    assert env.render_mode is None
    with pytest.raises(gym.error.Error, match="inside the trust boundary"):
        env.render()


# Observations with entries -------------------------------------------------------------------------------------------


class Watched(gym.Env):
    """A user who shows what a list says, and leaves after it."""

    action_space = gym.spaces.Discrete(2)

    def __init__(self, space, shown, reward=0.25):
        self.observation_space, self.shown, self.reward = space, shown, reward

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.at = 0
        return self.shown[0], {"name": "hers"}

    def step(self, action):
        assert action in (0, 1)
        self.at += 1
        return self.shown[self.at], self.reward, self.at == len(self.shown) - 1, False, {"name": "hers"}


BOX = gym.spaces.Box(np.array([-1.0, 0.0]), np.array([1.0, 10.0]), dtype=np.float64)
DIGITS = gym.spaces.MultiDiscrete([3, 4], start=[1, 0])
BITS = gym.spaces.MultiBinary(2)
LEFT = {type(BOX): np.array([-1.0, 0.0]), type(DIGITS): np.array([1, 0]), type(BITS): np.array([0, 0])}
RIGHT = {type(BOX): np.array([1.0, 10.0]), type(DIGITS): np.array([3, 3]), type(BITS): np.array([1, 1])}
SPACES = pytest.mark.parametrize("space", [BOX, DIGITS, BITS], ids=["numbers", "digits", "bits"])


def watched(space, epsilon=4.0, horizon=4, shown=None, **options):
    shown = [LEFT[type(space)]] * 6 if shown is None else shown
    return make(epsilon, Watched(space, shown), horizon=horizon, **options)


@SPACES
def test_sb3_finds_nothing_wrong_with_entries(space):
    check_env(watched(space))


@SPACES
def test_a_large_budget_tells_the_truth_of_entries_and_of_the_end(space):
    left, right = LEFT[type(space)], RIGHT[type(space)]
    env = watched(space, 1e4, shown=[left, right, left])
    told = [env.reset()[0]] + [env.step(0)[0] for _ in range(4)]
    start = [1, 0] if space is DIGITS else [0, 0]  # what is told is counted from 0
    true = np.array([left, right, left, left, left]) - start  # she waits where she was
    np.testing.assert_allclose([row[:-1] for row in told], true, atol=1e-4)
    assert [row[-1] for row in told] == [0, 0, 1, 1, 1]


def answers_of(env, entries):
    """The budgets of all answers of an episode, as they are handed to the randomizers."""
    budgets = env.budgets
    return [*np.repeat(budgets.observations, entries), *budgets.rewards, *budgets.ended]


@SPACES
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shares": {"observations": 0.5, "rewards": 0.5, "ended": 0.0}},
        {"shares": {"observations": 0.0, "rewards": 1.0, "ended": 0.0}, "steps": [0.0, 0.1, 0.2, 0.3, 0.4]},
    ],
)
def test_all_answers_of_an_episode_cost_epsilon_together(space, options):
    env = watched(space, 3.0, **options)
    assert sum(answers_of(env, 2)) == pytest.approx(3.0)
    assert env.budgets.total(2) == pytest.approx(3.0)
    for _ in range(20):
        assert env.observation_space.contains(env.reset()[0])
        rewards = []
        for _ in range(4):
            observation, reward, *_ = env.step(1)
            assert env.observation_space.contains(observation)
            rewards.append(reward)


class Forgetful(StepBudgets):
    """A planted mistake: every entry is told with the whole budget of its observation."""

    @classmethod
    def of(cls, epsilon, horizon, entries, shares, steps, *, ended):
        sound = StepBudgets.of(epsilon, horizon, entries, shares, steps, ended=ended)
        return cls(sound.observations * entries, sound.rewards, sound.ended)


def test_a_budget_that_entries_do_not_share_is_noticed(monkeypatch):
    monkeypatch.setattr("private_rl_gym.wrappers.ldp_per_step.StepBudgets", Forgetful)
    assert sum(answers_of(watched(BOX, 3.0), 2)) > 4.0


@pytest.mark.parametrize("shares", [None, {"observations": 0.2, "rewards": 0.7, "ended": 0.1}])
def test_an_episode_of_numbers_costs_exactly_epsilon_for_the_worst_users(shares):
    """Over every sequence of answers: two users who differ in every entry and reward, one of whom leaves at once."""
    epsilon = 2.0
    env = watched(BOX, epsilon, horizon=1, shares=shares)
    budgets, laws = env.budgets, {}
    for user, (level, reward, ended) in {"first": (0, 0, 0), "second": (-1, -1, 1)}.items():
        answers = [randomized_number(float(budget)) for budget in np.repeat(budgets.observations, 2)]
        told = [answer.probabilities(level % answer.levels) for answer in answers]
        paid = randomized_number(float(budgets.rewards[0]))
        told += [paid.probabilities(reward % paid.levels), np.array(told_end(ended, float(budgets.ended[0])))]
        outcomes = itertools.product(*(range(len(law)) for law in told))
        laws[user] = [math.prod(law[o] for law, o in zip(told, outcome, strict=True)) for outcome in outcomes]
    ratios = np.log(np.array(laws["first"]) / np.array(laws["second"]))
    assert np.abs(ratios).max() == pytest.approx(epsilon)


def told_end(bit, budget):
    keep = 1 / (1 + math.exp(-budget))
    return [keep, 1 - keep] if bit == 0 else [1 - keep, keep]


def test_entries_are_clipped_to_their_bounds_and_nothing_fails_beyond_them():
    for shown in (np.array([50.0, -3.0]), np.array([np.inf, np.nan]), np.array([1.0, -np.inf])):
        env = watched(BOX, 1e4, shown=[shown] * 6)
        np.testing.assert_allclose(env.reset()[0], [1.0, 0.0, 0.0], atol=1e-4)


def test_rewards_are_numbers_in_their_range():
    env = make(1e4, Watched(BITS, [LEFT[type(BITS)]] * 6, reward=-2.5), horizon=2, reward_range=(-10, 0))
    env.reset()
    told = [env.step(0)[1] for _ in range(2)]
    assert all(abs(reward + 2.5) <= 10 / 32 for reward in told)


@pytest.mark.parametrize(
    ("env", "options", "said"),
    [
        (
            Watched(gym.spaces.Box(-np.inf, 1.0, (2,)), []),
            {},
            r"Entries 0, 1 .* no finite bounds.*low=\[",
        ),
        (Watched(BOX, []), {"low": 3.0, "high": 2.0}, "low must lie below high"),
        (Watched(BOX, []), {"low": [1.0, 2.0, 3.0]}, "low does not fit"),
        (Watched(BITS, []), {"low": 0.0}, "bounds of a Box"),
        (Watched(BITS, []), {"shares": {"observations": 1.0}}, "'observations', 'rewards', 'ended'"),
        (Watched(BITS, []), {"shares": {"observations": 0.5, "rewards": 0.4, "ended": 0.2}}, "add up to 1.1"),
        (Watched(BITS, []), {"shares": {"observations": 1.5, "rewards": -0.5, "ended": 0.0}}, "at least 0"),
        (Watched(BITS, []), {"steps": [0.5, 0.5]}, "2 shares: the start and 3 steps"),
        (Watched(BITS, []), {"steps": ["a"]}, "numbers of at least 0"),
    ],
)
def test_what_cannot_be_told_is_refused(env, options, said):
    with pytest.raises(ValueError, match=said):
        LDPPerStep(env, 1.0, horizon=3, **options)


def test_shares_of_states_and_rewards():
    env = make(10.0, shares={"observations": 1.0, "rewards": 0.0}, steps=[0.0, 0.5, 0.5, 0.0, 0.0, 0.0])
    assert env.budgets.observations.tolist() == [0.0, 5.0, 5.0, 0.0, 0.0, 0.0]
    env.reset()
    assert {env.step(1)[1] for _ in range(4)} == {0.5}  # nothing is told of rewards

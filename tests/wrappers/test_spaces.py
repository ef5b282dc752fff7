"""Spaces of any finite kind are numbered, and boxes are put into bins, without looking at data."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import TimeLimit

from private_rl_gym.agents import UCBVI, FrugalUCBVI
from private_rl_gym.wrappers import Discretize, FlattenSpaces, JDPBillboard, LDPPerStep, OpenBillboard

FINITE = [
    spaces.Discrete(5, start=-2),
    spaces.MultiDiscrete([3, 1, 4]),
    spaces.MultiDiscrete([[3, 2], [2, 2]], start=[[1, 0], [0, -5]]),
    spaces.MultiBinary(4),
    spaces.MultiBinary((2, 2)),
    spaces.Tuple((spaces.Discrete(3), spaces.MultiBinary(2))),
    spaces.Dict(b=spaces.Discrete(3), a=spaces.Tuple((spaces.Discrete(2, start=1), spaces.MultiDiscrete([2, 3])))),
]


class Mirror(gym.Env):
    """Shows random elements of a space, and remembers the actions that it got."""

    def __init__(self, seen, done=None):
        self.observation_space, self.action_space = seen, done or spaces.Discrete(2)
        self.got = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        if seed is not None:
            self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        self.got.append(action)
        return self.observation_space.sample(), 0.5, False, False, {}


def same(first, second):
    if isinstance(first, dict):
        return set(first) == set(second) and all(same(first[name], second[name]) for name in first)
    if isinstance(first, tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return np.array_equal(first, second)


@pytest.mark.parametrize("space", FINITE, ids=str)
def test_every_element_has_a_number_of_its_own(space):
    env = FlattenSpaces(Mirror(space))
    elements = [env.element(number) for number in range(env.observation_space.n)]
    assert all(space.contains(element) for element in elements)
    assert [env.number(element) for element in elements] == list(range(len(elements)))
    space.seed(0)
    for _ in range(200):
        element = space.sample()
        assert same(env.element(env.number(element)), element)


@pytest.mark.filterwarnings("ignore:.*length of a multi-dimensional MultiDiscrete")  # Gymnasium's own
@pytest.mark.parametrize("space", FINITE, ids=str)
def test_actions_are_numbered_too(space):
    env = FlattenSpaces(Mirror(spaces.Discrete(2), space))
    env.reset(seed=0)
    for number in range(env.action_space.n):
        env.step(number)
    assert all(space.contains(action) for action in env.unwrapped.got)
    assert len({str(action) for action in env.unwrapped.got}) == env.action_space.n
    for wrong in (-1, env.action_space.n, 0.5):
        with pytest.raises(gym.error.InvalidAction):
            env.step(wrong)


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_gymnasiums_own_check_passes():
    check_env(TimeLimit(FlattenSpaces(Mirror(FINITE[-1], FINITE[1])), 5), skip_render_check=True)
    check_env(TimeLimit(Discretize(Mirror(spaces.Box(-1, 1, (2, 2))), bins=3), 5), skip_render_check=True)


def test_an_observation_outside_its_space_is_a_refused_user():
    class Stray(Mirror):
        def step(self, _action):
            return (7, 7), 0.5, False, False, {}

    board = OpenBillboard(
        FlattenSpaces(Stray(spaces.Tuple((spaces.Discrete(3), spaces.Discrete(3))))), users=1, horizon=3
    )
    with pytest.raises(ValueError, match="nothing of this user is released") as caught:
        board.serve([0] * 10, 1)
    assert "7" not in str(caught.value)


# Bins ----------------------------------------------------------------------------------------------------------------


def test_bins_are_of_equal_width_and_the_outer_ones_take_the_rest():
    env = Discretize(Mirror(spaces.Box(-1.0, 1.0, (1,))), bins=4)
    values = [-9.0, -1.0, -0.51, -0.49, -0.01, 0.01, 0.49, 0.51, 1.0, np.inf]
    assert [env.observation(np.array([value])) for value in values] == [0, 0, 0, 1, 1, 2, 2, 3, 3, 3]


def test_the_last_entry_counts_fastest_and_one_bin_leaves_an_entry_out():
    box = spaces.Box(np.array([0.0, -np.inf, 0.0]), np.array([1.0, np.inf, 1.0]), dtype=np.float64)
    env = Discretize(Mirror(box), bins=(2, 1, 3))
    assert env.observation_space == spaces.Discrete(6)
    found = [env.observation(np.array([a, 1e9, b])) for a in (0.1, 0.9) for b in (0.1, 0.5, 0.9)]
    assert found == list(range(6))


def test_states_are_used_evenly_where_observations_are():
    """60,000 uniforms in 3 x 4 bins; a count has a deviation of 68, and six of them are 406."""
    env = Discretize(Mirror(spaces.Box(np.array([-2.0, 0.0]), np.array([5.0, 1.0]), dtype=np.float64)), bins=(3, 4))
    points = np.random.default_rng(0).uniform([-2.0, 0.0], [5.0, 1.0], (60_000, 2))
    counts = np.bincount([env.observation(point) for point in points], minlength=12)
    assert np.abs(counts - 5_000).max() < 406


def test_boxes_among_other_parts_are_put_into_bins_and_the_rest_is_counted():
    box = spaces.Box(np.array([0.0, -1.0]), np.array([1.0, 1.0]), dtype=np.float64)
    space = spaces.Dict(a=spaces.Discrete(2, start=5), b=spaces.Tuple((box, spaces.Box(0, 1, (1,)))))
    env = Discretize(Mirror(space), bins=(2, 3, 4))
    assert env.observation_space == spaces.Discrete(2 * 2 * 3 * 4)
    found = [
        env.observation({"a": a, "b": (np.array([x, y]), np.array([z]))})
        for a in (5, 6)
        for x in (0.1, 0.9)
        for y in (-0.9, 0.0, 0.9)
        for z in (0.1, 0.3, 0.6, 0.9)
    ]
    assert found == list(range(48))
    narrow = Discretize(Mirror(space), bins=(2, 1, 4), low=(0.5, 0, 0), high=(0.7, 1, 1))
    assert narrow.observation({"a": 5, "b": (np.array([0.55, 9.0]), np.array([0.9]))}) == 3
    with pytest.raises(ValueError, match="not in its space"):
        env.observation({"a": 7, "b": (np.array([0.0, 0.0]), np.array([0.0]))})
    JDPBillboard(env, 1.0, 1e-6, users=2, schedule=2, horizon=3).serve([0] * 49, 2)


@pytest.mark.parametrize(
    ("space", "options", "said"),
    [
        (spaces.Tuple((spaces.Box(0, 1, (2,)), spaces.Box(0, np.inf, (1,)))), {"bins": 2}, "Entries 2 .* no finite"),
        (spaces.Dict(a=spaces.Box(0, 1, (2,)), b=spaces.Text(3)), {"bins": 2}, "Text.* Leave that part out"),
        (spaces.Discrete(3), {"bins": 2}, r"is for a Box\. Use private_rl_gym\.wrappers\.FlattenSpaces\(env\)"),
        (spaces.Box(-np.inf, 1.0, (2,)), {"bins": 2}, r"Entries 0, 1 .* no finite bounds.*low=\[\.\.\.\], high="),
        (spaces.Box(-3.4e38, 3.4e38, (1,)), {"bins": 2}, "Entries 0 .* no finite bounds"),
        (spaces.Box(0, 1, (2,)), {"bins": (2, 2, 2)}, "bins has 3 numbers: an observation has 2 entries"),
        (spaces.Box(0, 1, (2,)), {"bins": 0}, "bins is 0"),
        (spaces.Box(0, 1, (2,)), {"bins": 2, "low": (0, 1, 2)}, "low does not fit"),
        (spaces.Box(0, 1, (2,)), {"bins": 2, "low": 2.0}, "low must lie below high"),
        (spaces.Box(0, 1, (2,)), {"bins": 2, "high": float("nan")}, "no finite bounds"),
        (spaces.Box(0, 1, (9,)), {"bins": 8}, r"bins make 1\.34e\+08 states"),
    ],
)
def test_bins_that_make_no_sense_are_refused(space, options, said):
    with pytest.raises((TypeError, ValueError), match=said):
        Discretize(Mirror(space), **options)


def test_what_is_no_number_is_a_refused_user():
    class Broken(Mirror):
        def step(self, _action):
            return np.array([np.nan]), 0.5, False, False, {}

    board = OpenBillboard(Discretize(Broken(spaces.Box(0, 1, (1,))), bins=2), users=1, horizon=3)
    with pytest.raises(ValueError, match="nothing of this user is released"):
        board.serve([0] * 3, 1)


# Boundaries ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env", "said"),
    [
        (Mirror(FINITE[1]), r"env = private_rl_gym\.wrappers\.FlattenSpaces\(env\)$"),
        (Mirror(FINITE[-1]), r"env = private_rl_gym\.wrappers\.FlattenSpaces\(env\)$"),
        (Mirror(spaces.Discrete(2), FINITE[1]), r"env = private_rl_gym\.wrappers\.FlattenSpaces\(env\)$"),
        (Mirror(spaces.Box(0, 1, (2,))), r"env = private_rl_gym\.wrappers\.Discretize\(env, bins=8\)$"),
        (Mirror(spaces.Discrete(2), spaces.Box(0, 1, (2,))), r"TransformAction\(env, lambda number: .*\)$"),
    ],
)
def test_a_refusal_ends_in_the_line_to_add(env, said):
    kinds = [partial(OpenBillboard, statistic="tabular")]
    if not isinstance(env.observation_space, spaces.MultiDiscrete | spaces.Box):  # whose entries are told one by one
        kinds.append(lambda env, **o: LDPPerStep(env, 1.0, **o))
    for make in kinds:
        with pytest.raises(TypeError, match=said):
            make(env, horizon=3)


def test_what_cannot_be_flattened_is_said():
    with pytest.raises(TypeError, match="Discretize"):
        FlattenSpaces(Mirror(spaces.Box(0, 1, (2,))))
    with pytest.raises(
        TypeError,
        match=r"FilterObservation\(env, \['a'\]\), or .*private_rl_gym\.wrappers\.Discretize\(env, bins=...\)$",
    ):
        FlattenSpaces(Mirror(spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Box(0, 1, (2,))})))
    with pytest.raises(TypeError, match=r"FilterObservation\(env, \['a'\]\)$"):  # a picture makes too many bins
        FlattenSpaces(Mirror(spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Box(0, 255, (9, 9))})))
    with pytest.raises(TypeError, match=r"Text.* Show numbers .*TransformObservation"):
        FlattenSpaces(Mirror(spaces.Text(3)))
    with pytest.raises(TypeError, match="TransformAction"):
        FlattenSpaces(Mirror(spaces.Discrete(2), spaces.Box(0, 1, (2,))))
    with pytest.raises(ValueError, match=r"with 4\.29e\+09 elements"):
        FlattenSpaces(Mirror(spaces.MultiBinary(32)))


def blackjack():
    return FlattenSpaces(gym.make("Blackjack-v1"))


@pytest.mark.slow
def test_blackjack_is_learned():
    """Exact sums: better than sticking at once, and than a coin; a mean of 5,000 games has a deviation of 0.014."""
    env, games = blackjack(), 5_000
    env.reset(seed=0)
    board = OpenBillboard(env, users=10_000, schedule=100, horizon=6, reward_range=(-1.5, 1.5))
    agent = UCBVI("TabularPolicy", board, bonus_scale=0.02, seed=0).learn(10_000 * 6)
    test, total = blackjack(), 0.0
    for game in range(games):
        number, _ = test.reset(seed=game)
        over, stage = False, 0
        while not over:
            number, reward, over, _, _ = test.step(agent.policy.action(stage, number) if stage < 6 else 0)
            stage += 1
            total += reward
    assert total / games > -0.12  # at best about -0.05; a coin loses 0.40, sticking 0.16


def test_adapters_train_under_privacy():
    env = FlattenSpaces(Mirror(FINITE[1], FINITE[1]))
    board = JDPBillboard(env, 1.0, 1e-6, users=50, schedule=10, horizon=4)
    FrugalUCBVI("TabularPolicy", board, seed=0).learn(50 * 4)
    assert board.release.users == 50
    assert board.sizes == (4, 13, 12)

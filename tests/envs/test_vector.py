"""Many users at a time. That they agree with the single environment is shown in tests/planning/test_rollout.py."""

import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.vector import AutoresetMode

from tests.envs.families import FAMILIES, name


def make(id="PrivateRL/RiverSwim-v0", num_envs=3, **arguments):
    return gym.make_vec(id, num_envs=num_envs, vectorization_mode="vector_entry_point", **arguments)


@pytest.mark.parametrize("case", FAMILIES, ids=name)
@pytest.mark.parametrize("observe_time", [False, True])
def test_user_i_is_the_single_environment_with_tape_i(case, observe_time):
    id, arguments = case
    envs = make(id, num_envs=5, observe_time=observe_time, **arguments)
    single = gym.make(id, observe_time=observe_time, **arguments)
    rng = np.random.default_rng(0)
    tapes = envs.model.draw_users(rng, 5)
    actions = rng.integers(envs.model.n_actions, size=(envs.model.horizon, 5))
    observations, info = envs.reset(options={"user": tapes})
    seen = [observations]
    assert info == {}
    outcomes = []
    for row in actions:
        observations, *outcome = envs.step(row)
        seen.append(observations)
        outcomes.append(outcome)
        assert observations in envs.observation_space
    for user in range(5):
        observation, _ = single.reset(options={"user": tapes[user]})
        np.testing.assert_array_equal(observation, seen[0][user])
        for h, row in enumerate(actions):
            observation, reward, terminated, truncated, _ = single.step(int(row[user]))
            np.testing.assert_array_equal(observation, seen[h + 1][user])
            rewards, terminations, truncations, _ = outcomes[h]
            assert (reward, terminated, truncated) == (rewards[user], terminations[user], truncations[user])


def test_spaces_are_the_batched_single_ones():
    for observe_time in (False, True):
        ours = make(observe_time=observe_time)
        theirs = gym.make_vec(
            "PrivateRL/RiverSwim-v0", num_envs=3, vectorization_mode="sync", observe_time=observe_time
        )
        assert ours.observation_space == theirs.observation_space
        assert ours.action_space == theirs.action_space
        assert ours.single_observation_space == theirs.single_observation_space


def test_autoreset_is_that_of_the_metadata():
    """Next-step autoreset, exactly as Gymnasium's SyncVectorEnv does it."""
    envs = make(horizon=4)
    sync = gym.make_vec("PrivateRL/RiverSwim-v0", num_envs=3, vectorization_mode="sync", horizon=4)
    assert envs.metadata["autoreset_mode"] is sync.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    envs.reset(seed=0)
    sync.reset(seed=0)
    for t in range(1, 21):
        ours, theirs = envs.step(np.array([0, 0, 0])), sync.step(np.array([0, 0, 0]))
        np.testing.assert_array_equal(ours[2], theirs[2])  # same ends
        np.testing.assert_array_equal(ours[1], theirs[1])  # swimming left pays the same to everyone, but 0 at a reset
        assert ours[2].all() == (t % 5 == 4)
        assert (ours[1] == 0).all() == (t % 5 == 0)


def test_one_user_is_the_single_environment_with_the_same_seed():
    envs, single = make(num_envs=1), gym.make("PrivateRL/RiverSwim-v0")
    assert envs.reset(seed=11)[0][0] == single.reset(seed=11)[0]
    for _ in range(3):
        for _ in range(20):
            assert envs.step(np.array([1]))[0][0] == single.step(1)[0]
        assert envs.step(np.array([1]))[0][0] == single.reset()[0]


def test_seeds_and_users():
    envs = make("PrivateRL/Garnet-v0", num_envs=1000)

    def trace(seed):
        envs.reset(seed=seed)
        return np.array([envs.step(np.zeros(1000, dtype=int))[0] for _ in range(25)])

    first, again, other = trace(1), trace(1), trace(2)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert len(np.unique(first[:10], axis=1).T) > 500  # users are not copies of each other


def test_returned_arrays_belong_to_the_caller():
    def play(*, scribble):
        envs = make("PrivateRL/Garnet-v0")
        arrays = [envs.reset(seed=0)[0]]
        seen = []
        for _ in range(12):
            seen.append(str(arrays))
            if scribble:
                for array in arrays:
                    array[:] = 1
            arrays = envs.step(np.array([0, 1, 2]))[:4]
        return seen

    assert play(scribble=True) == play(scribble=False)


def test_pickles_and_has_a_spec():
    envs = make("PrivateRL/Garnet-v0")
    envs.reset(seed=0)
    envs.step(np.array([0, 1, 2]))
    twin = pickle.loads(pickle.dumps(envs))
    for _ in range(25):
        assert str(envs.step(np.array([0, 1, 2]))) == str(twin.step(np.array([0, 1, 2])))
    again = gym.make_vec(envs.spec)
    assert again.num_envs == 3


def test_renders_every_user():
    envs = make(render_mode="ansi")
    envs.reset(options={"user": np.full((3, 41), 0.5)})
    envs.step(np.array([1, 0, 1]))
    texts = envs.render()
    assert len(texts) == 3
    assert "swims right" in texts[0]
    assert "swims left, reward 0.005" in texts[1]
    assert make().render() is None


@pytest.mark.parametrize(
    ("actions", "word"),
    [
        ([0, 1], r"actions have shape \(2,\).*3 users"),
        ([0.0, 1.0, 1.0], r"type float64"),
        ([0, 1, 2], r"0\.\.1.*from 0 to 2"),
        ([0, 1, -1], r"0\.\.1.*from -1 to 1"),
    ],
)
def test_wrong_actions_get_a_sentence(actions, word):
    envs = make()
    envs.reset(seed=0)
    with pytest.raises(InvalidAction, match=word):
        envs.step(actions)


def test_other_misuse_gets_a_sentence():
    with pytest.raises(ResetNeeded, match=r"no users yet.*reset\(\)"):
        make().step([0, 0, 0])
    with pytest.raises(ValueError, match=r"shape \(2, 41\), not \(3, 41\)"):
        make().reset(options={"user": np.zeros((2, 41))})
    with pytest.raises(ValueError, match="reset_mask"):
        make().reset(options={"reset_mask": np.array([True, False, True])})
    with pytest.raises(ValueError, match="render_mode is 'human'"):
        make(render_mode="human")
    with pytest.raises(ValueError, match="num_envs is 0"):
        make(num_envs=0)

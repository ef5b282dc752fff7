"""Same tapes, same trajectories: through step, the vector environment, the compiled rollout and a numpy twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_rl_gym.envs import TabularEnv, TabularModel, TabularVectorEnv
from private_rl_gym.planning.sampling import check_tapes
from tests.planning import twins
from tests.strategies import models, on_edges, policies, random_distributions, seeds, tapes, uniform_policy


def by_steps(model, policy, users, uniforms):
    env = TabularEnv(model)
    found = []
    for tape, own in zip(users, uniforms, strict=True):
        state, _ = env.reset(options={"user": tape})
        states, actions, rewards = [state], [], []
        for h in range(model.horizon):
            actions.append(policy.action(h, state, own[h]))
            state, reward, terminated, truncated, _ = env.step(actions[-1])
            states.append(state)
            rewards.append(reward)
            assert terminated is (h == model.horizon - 1)
            assert truncated is False
        found.append((states, actions, rewards))
    return found


def by_vector(model, policy, users, uniforms):
    envs = TabularVectorEnv(TabularEnv(model), num_envs=len(users))
    states, _ = envs.reset(options={"user": users})
    steps = [(states, None, None)]
    for h in range(model.horizon):
        actions = np.array([policy.action(h, s, u) for s, u in zip(states, uniforms[:, h], strict=True)])
        states, rewards, terminated, truncated, _ = envs.step(actions)
        steps.append((states, actions, rewards))
        assert terminated.all() == (h == model.horizon - 1)
        assert terminated.any() == (h == model.horizon - 1)
        assert not truncated.any()
    return [
        (
            [int(states[i]) for states, _, _ in steps],
            [int(actions[i]) for _, actions, _ in steps[1:]],
            [float(rewards[i]) for _, _, rewards in steps[1:]],
        )
        for i in range(len(users))
    ]


def by_rollout(model, policy, users, uniforms):
    found = model.rollout(policy, users, uniforms)
    rows = zip(found.states.tolist(), found.actions.tolist(), found.rewards.tolist(), strict=True)
    return list(rows)


@settings(max_examples=300)
@given(st.data())
def test_all_engines_agree_to_the_last_bit(data):
    model = data.draw(models())
    policy = data.draw(policies(model))
    users = data.draw(tapes(model, users=4))
    rng = np.random.default_rng(data.draw(seeds))
    uniforms = rng.random((4, model.horizon))
    edges = policy.cumulative[policy.cumulative < 1.0]
    if len(edges):
        uniforms[rng.random(uniforms.shape) < 0.3] = rng.choice(edges)
    twin = [twins.rollout(model, policy, tape, own) for tape, own in zip(users, uniforms, strict=True)]
    assert by_steps(model, policy, users, uniforms) == twin
    assert by_vector(model, policy, users, uniforms) == twin
    assert by_rollout(model, policy, users, uniforms) == twin


def test_engines_agree_on_a_model_with_many_outcomes():
    """More outcomes than the compiled search looks through one by one."""
    rng = np.random.default_rng(1)
    model = TabularModel(random_distributions(rng, 100, 2, 100), rng.random((100, 2)), 0, horizon=30)
    users = on_edges(rng, model, model.draw_users(rng, 50), share=0.3)
    uniforms = rng.random((50, 30))
    policy = uniform_policy(model)
    assert np.diff(model.tables.offsets).max() > 8
    assert by_steps(model, policy, users, uniforms) == by_vector(model, policy, users, uniforms)
    assert by_steps(model, policy, users, uniforms) == by_rollout(model, policy, users, uniforms)


def test_rows_that_are_off_by_rounding_mean_one_model():
    rows = [[[0.5, 0.5 - 5e-7, 1e-17]], [[0, 1, 0]], [[0, 0, 1]]]
    model = TabularModel(rows, [[1.0]] * 3, horizon=1000)
    assert model.optimal_value() == pytest.approx(1000, abs=1e-9)
    policy = model.policy([0, 0, 0])
    tape = np.full((1, model.tape_length), 1 - 4e-7)
    assert by_steps(model, policy, tape, tape[:, :1000]) == by_rollout(model, policy, tape, tape[:, :1000])


def test_a_tape_is_read_when_it_is_handed_in():
    model = TabularModel([[[0.5, 0.5]], [[0.5, 0.5]]], [[0.2], [0.8]], horizon=2)
    for users in (1, 3):
        tapes = np.zeros((users, 5), order="F")
        envs = TabularVectorEnv(TabularEnv(model), num_envs=users)
        envs.reset(options={"user": tapes})
        tapes[:] = 0.9
        assert envs.step(np.zeros(users, dtype=int))[0].tolist() == [0] * users


def test_drawn_users_are_those_of_reset_after_reset():
    model = TabularModel([[[0.5, 0.5]], [[0.5, 0.5]]], [[0.2], [0.8]], horizon=4)
    env = TabularEnv(model)
    together = model.draw_users(np.random.default_rng(np.random.PCG64(np.random.SeedSequence(9))), 3)
    found = model.rollout([0, 0], together)
    env.np_random = np.random.Generator(np.random.PCG64(np.random.SeedSequence(9)))
    for user in range(3):
        states = [env.reset()[0]] + [env.step(0)[0] for _ in range(4)]
        assert states == found.states[user].tolist()


@pytest.mark.parametrize(
    ("tape", "word"),
    [
        (np.zeros(4), r"shape \(4,\), not \(5,\)"),
        (np.full(5, 1.0), r"outside \[0, 1\)"),
        (np.full(5, np.nan), r"outside \[0, 1\)"),
        (np.full(5, -0.1), r"outside \[0, 1\)"),
        (["a"] * 5, "not an array of numbers"),
    ],
)
def test_a_wrong_tape_gets_a_sentence_without_its_values(tape, word):
    with pytest.raises(ValueError, match=word) as caught:
        check_tapes(tape, horizon=2, one=True)
    assert "0.1" not in str(caught.value)


def test_a_rollout_says_what_is_missing():
    model = TabularModel([[[1.0]], [[1.0]]][:1], [[0.5]], horizon=2)
    users = model.draw_users(np.random.default_rng(0), 3)
    with pytest.raises(ValueError, match=r"action_uniforms .*\(3, 2\)"):
        model.rollout([[1.0]], users)
    for wrong in (np.ones((3, 2)), np.full((3, 2), np.nan), np.full((3, 2), -0.1), np.zeros((2, 2))):
        with pytest.raises(ValueError, match=r"action_uniforms .* outside \[0, 1\)"):
            model.rollout([[1.0]], users, wrong)
    with pytest.raises(ValueError, match="not an array of numbers"):
        model.rollout([0], "x")
    with pytest.raises(TypeError, match="numpy Generator"):
        model.draw_users(0, 3)
    with pytest.raises(ValueError, match="users is -1"):
        model.draw_users(np.random.default_rng(0), -1)
    with pytest.raises(ValueError, match=r"shape \(5,\), not \(1, 5\)"):
        model.rollout([0], users[0])


def test_raw_data_stays_out_of_repr():
    model = TabularModel([[[1.0]]], [[0.5]], horizon=3)
    found = model.rollout([0], model.draw_users(np.random.default_rng(0), 7))
    assert repr(found) == "Trajectories(7 users, H=3)"
    assert len(found) == 7
    np.testing.assert_array_equal(found.returns, found.rewards.sum(axis=1))

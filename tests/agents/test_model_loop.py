"""The loop of anybody's learner: what it sees, what users run, and that it learns."""

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.agents import ModelLoop
from private_rl_gym.envs import TabularEnv
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard


def river(**options):
    return gym.make("PrivateRL/RiverSwim-v0", horizon=8, n_states=4, observe_time=True, **options)


class Planner:
    """A learner in the place of PPO: it knows the model that it is trained on, and plans in it."""

    def __init__(self, env):
        self.env, self.trained = env, []

    def set_env(self, env):
        self.env = env

    def learn(self, total_timesteps):
        self.trained.append((type(self.env), total_timesteps))

    def predict(self, observation, *, deterministic):
        assert deterministic
        policy = self.env.model.optimal_policy()
        if np.ndim(observation) == 1:
            return policy.table[0][observation], None
        return policy.table[observation[:, 0], observation[:, 1]], None


def test_it_learns_to_swim_from_releases_alone():
    board = JDPBillboard(river(), 8.0, 1e-6, users=20_000, schedule=500, rng=1)
    board.unwrapped.reset(seed=2)
    loop = ModelLoop(Planner, board, timesteps=7, rounds=8, seed=3).learn(20_000)
    model = board.unwrapped.model
    assert model.value_of(loop.policy) >= 0.9 * model.optimal_value()
    assert loop.learner.trained == [(TabularEnv, 7)] * 8  # models, and never the users' environment
    assert board.users_left == 0


def test_optimism_finds_what_the_mean_does_not():
    def value(belief):
        board = OpenBillboard(river(), users=2_000, schedule=50)
        board.unwrapped.reset(seed=2)
        loop = ModelLoop(Planner, board, timesteps=1, rounds=10, belief=belief, seed=3).learn(2_000)
        return board.unwrapped.model.value_of(loop.policy)

    best = river().unwrapped.model.optimal_value()
    assert value("optimistic") >= 0.95 * best
    assert value("sampled") >= 0.95 * best


def test_pooled_counts_make_a_model_where_the_start_is_known():
    env = gym.make("PrivateRL/RiverSwim-v0", horizon=8, n_states=4)  # the stage is not observed
    board = LDPUserSide(env, 8.0, users=20_000, schedule=1_000, stationary=True, rng=1)
    board.unwrapped.reset(seed=2)
    with pytest.raises(ValueError, match="start="):
        ModelLoop(Planner, board, timesteps=1, rounds=4, seed=3)
    loop = ModelLoop(Planner, board, timesteps=1, rounds=4, start=0, seed=3).learn(20_000)
    assert (loop.policy.table == loop.policy.table[0]).all()  # as what is best may not depend on it, either
    model = board.unwrapped.model
    assert model.value_of(loop.policy) >= 0.8 * model.optimal_value()


class Once(Planner):
    """A learner without ``set_env``."""

    set_env = property()


def test_a_learner_that_cannot_change_its_environment_is_made_anew():
    board = OpenBillboard(river(), users=100, schedule=10)
    loop = ModelLoop(Once, board, timesteps=1, rounds=3, seed=0)
    loop.learn(30)
    assert len(loop.learner.trained) == 1


class Side(Planner):
    """A learner of models side by side, which plans in the first."""

    def learn(self, total_timesteps):
        models = self.env.get_attr("model")
        self.trained.append((len(models), len({model.transitions.tobytes() for model in models}), total_timesteps))

    def predict(self, observation, *, deterministic):
        assert deterministic
        policy = self.env.get_attr("model")[0].optimal_policy()
        return policy.table[observation[:, 0], observation[:, 1]], None


def test_models_side_by_side_and_a_longer_training_at_the_end():
    learners = []

    def learned():
        board = OpenBillboard(river(), users=400, schedule=20)
        board.unwrapped.reset(seed=2)
        made = lambda env: learners.append(Side(env)) or learners[-1]  # noqa: E731
        loop = ModelLoop(made, board, timesteps=1, last=9, rounds=3, belief="sampled", n_envs=4, seed=3)
        return loop.learn(400)

    loop, again = learned(), learned()
    assert learners[0].trained == [(4, 4, 1), (4, 4, 1)]  # sampled models differ
    assert loop.learner.trained == [(4, 1, 9)]  # a new learner, and one mean
    assert (loop.policy.table == again.policy.table).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"timesteps": 1, "n_envs": 0}, "n_envs"),
        ({"timesteps": 1, "last": 0}, "last"),
        ({"timesteps": 0}, "timesteps"),
        ({"timesteps": 1, "rounds": 0}, "rounds"),
        ({"timesteps": 1, "belief": "hope"}, "hope"),
    ],
)
def test_what_makes_no_sense_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        ModelLoop(Planner, OpenBillboard(river(), users=10), **options)


# Models --------------------------------------------------------------------------------------------------------------


def models(belief, users, **options):
    board = OpenBillboard(river(), users=users, schedule=users)
    board.unwrapped.reset(seed=1)
    board.serve(np.full((4, 2), 0.5), users, rng=np.random.default_rng(0))
    return board.private_model(belief=belief, **options).model


def test_an_optimistic_model_promises_more_and_the_less_the_more_is_known():
    true = river().unwrapped.model.optimal_value()
    little, much = models("optimistic", 50).optimal_value(), models("optimistic", 50_000).optimal_value()
    assert little > much > models("mean", 50_000).optimal_value()
    assert much == pytest.approx(true, rel=0.5)


def test_a_pessimistic_model_pays_next_to_nothing_where_noise_alone_does():
    """The deviation of noise is exceeded twice in one of 44 cells, and by little: a fiftieth of what the mean pays."""
    nowhere = river().unwrapped.model.rewards[0] == 0.0
    paid = dict.fromkeys(("mean", "pessimistic"), 0.0)
    for seed in range(5):
        board = JDPBillboard(river(), 2.0, 1e-6, users=1_000, schedule=1_000, stationary=True, rng=seed)
        board.unwrapped.reset(seed=seed)
        board.serve(np.full((8, 4, 2), 0.5), 1_000, rng=np.random.default_rng(seed))
        for belief in paid:
            paid[belief] += board.private_model(belief=belief, start=0).model.rewards[0][nowhere].sum()
    assert paid["mean"] > 4.0 * paid["pessimistic"]
    assert paid["mean"] > 0.05


def test_without_noise_pessimism_is_the_mean():
    np.testing.assert_array_equal(models("pessimistic", 50).rewards, models("mean", 50).rewards)


def test_the_last_training_is_on_the_pessimistic_model():
    board = JDPBillboard(river(), 2.0, 1e-6, users=900, schedule=100, rng=1)
    board.unwrapped.reset(seed=2)
    loop = ModelLoop(Planner, board, timesteps=1, rounds=3, seed=3).learn(900)
    trained, pessimistic, mean = (
        loop.learner.env.model,
        *(board.private_model(belief=belief).model for belief in ("pessimistic", "mean")),
    )
    np.testing.assert_array_equal(trained.rewards, pessimistic.rewards)
    assert not np.array_equal(trained.rewards, mean.rewards)


def test_sampled_models_are_spread_around_the_mean_as_widely_as_little_is_known():
    def spread(users):
        draws = [models("sampled", users, rng=np.random.default_rng(seed)).transitions[0, 0, 1] for seed in range(20)]
        return np.std(draws, axis=0).max()

    assert spread(20) > 3 * spread(20_000)
    np.testing.assert_allclose(models("sampled", 20, rng=np.random.default_rng(0)).transitions.sum(axis=-1), 1.0)


@pytest.mark.parametrize("start", [-1, 4, 1.5, [0.5, 0.2, 0.0, 0.0], [1.0]])
def test_a_start_that_is_none_is_refused(start):
    with pytest.raises(ValueError, match=r"start|initial|probabilit"):
        models("mean", 20, start=start)


def test_a_sampled_model_needs_a_generator():
    with pytest.raises(ValueError, match="rng="):
        models("sampled", 20)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["PPO", "DQN"])
def test_learners_of_stable_baselines3_learn_in_it(name):
    """A short river, few steps: better than actions at random, whose value is 0.03."""
    import stable_baselines3

    options = {"PPO": {"n_steps": 512, "learning_rate": 3e-3, "ent_coef": 0.01}, "DQN": {"learning_rate": 3e-3}}[name]
    board = JDPBillboard(river(), 8.0, 1e-6, users=10_000, schedule=500, rng=1)
    board.unwrapped.reset(seed=2)
    make = getattr(stable_baselines3, name)
    loop = ModelLoop(
        lambda env: make("MlpPolicy", env, seed=0, **options), board, timesteps=6_000, rounds=4, seed=3
    ).learn(10_000)
    model = board.unwrapped.model
    assert model.value_of(loop.policy) >= 0.5 * model.optimal_value()

"""Gradients that users noise themselves: unbiased, as private as they say, and no worse than their formula."""

import math

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.agents import DPPolicyGradient
from private_rl_gym.lab.audits.broken_gradients import EagerDirections
from private_rl_gym.lab.audits.canaries import LONG, SHORT, canaries
from private_rl_gym.planning.network import Layers, Network
from private_rl_gym.privacy import NoiseSource
from private_rl_gym.privacy.accounting.conversion import gaussian_mu
from private_rl_gym.privacy.audit.bounds import epsilon_below, epsilon_of_mu, mu_below
from private_rl_gym.privacy.randomizers import Cap, Direction, Gaussian, randomized
from private_rl_gym.privacy.requests import Objective
from private_rl_gym.privacy.statistics.gradients import GRID, Gradients
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, SDPShuffler
from tests.privacy.statistics import sums

H = 6
COINS = next(seed for seed in range(99) if (np.random.default_rng(seed).random(H) < 0.8).all())  # the first action
EXACT = Gradients(Network(1, Layers(()), choices=(2,)), H)
EPSILON, RUNS = 2.0, 3000


def reports(direction, vector, runs, seed=0):
    source = NoiseSource(seed)
    return np.array([direction.drawn(vector, source) for _ in range(runs)]) * GRID


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 12.0, 100.0])
def test_a_cap_is_a_law_whose_densities_differ_by_e_to_the_epsilon(epsilon):
    cap = Cap.best(epsilon)
    inside, outside = cap.densities
    assert inside * cap.size + outside * (1.0 - cap.size) == pytest.approx(1.0)
    assert math.log(inside / outside) == pytest.approx(min(epsilon, 30.0))
    others = [Cap(cap.epsilon, cap.height + step).pull for step in (-0.01, 0.01) if cap.height + step >= 0.0]
    assert all(pull <= cap.pull for pull in others)


def test_draws_along_follow_the_cap():
    """Twenty thousand draws; each mean is within 5 standard errors, which fails once in 600,000 times."""
    cap = Cap.best(EPSILON)
    inside, _ = cap.densities
    draws = np.array([cap.along(*uniforms) for uniforms in np.random.default_rng(0).random((20_000, 3))])
    within = 5.0 / math.sqrt(len(draws))
    assert (draws >= cap.height).mean() == pytest.approx(inside * cap.size, abs=within / 2.0)
    assert draws.mean() == pytest.approx(cap.pull, abs=within * draws.std())
    assert (draws**2).mean() == pytest.approx(1.0 + cap.height * cap.pull, abs=within * (draws**2).std())


@pytest.mark.parametrize("norm", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("kind", ["direction", "gaussian"])
def test_reports_are_unbiased_and_as_noisy_as_they_say(norm, kind):
    """All entries of the mean of 3,000 reports lie within 5.5 standard errors, but once in 400,000 times."""
    randomizer = randomized(EXACT, EPSILON, 1e-6 if kind == "gaussian" else 0.0, kind)
    vector = np.zeros(EXACT.cells)
    vector[:3] = norm * np.array([0.48, -0.6, 0.64])
    if kind == "gaussian":
        noise = np.zeros(EXACT.cells, dtype=np.int64)
        randomizer.send(None, RUNS, None, NoiseSource(0), noise)
        found, spread = noise * GRID / math.sqrt(RUNS), randomizer.scale
        assert found.std() == pytest.approx(spread, rel=0.3)
        return
    drawn = reports(randomizer, vector, RUNS)
    off = np.abs(drawn.mean(axis=0) - vector) / (drawn.std(axis=0) / math.sqrt(RUNS))
    assert off.max() < 5.5
    total = ((drawn - drawn.mean(axis=0)) ** 2).sum(axis=1).mean()
    stated = randomizer.cap.noise(EXACT.cells) ** 2 * EXACT.cells - norm**2  # of which the mean is no noise
    assert total == pytest.approx(stated, rel=0.05)


def shown(board_kind, runs=RUNS, epsilon=EPSILON, **options):
    """A bound on epsilon from reports of two users with opposite gradients; wrong with probability 0.01."""
    env, parameters = canaries(H), np.array([0.0, 0.0, 1.0, -1.0])
    board = board_kind(env, epsilon, users=10, statistic=Layers((), critic=()), rng=0, **options)
    randomizer = board.audit.pipeline.side.randomizer
    ask, seen = Objective(np.zeros(H), shares=(1.0, 0.0, 0.0, 0.0), clip=1e-3), []

    class Keeps:
        def left(self, episodes, _count):
            exact = np.zeros(board.statistic.cells, dtype=np.int64)
            sums.collect(board.audit.exact, episodes, exact, None, ask)
            seen.append((episodes, exact * GRID))

        def reported(self, _vector):
            pass

    board.audit.observe(Keeps())
    for user in (LONG, SHORT):
        board.serve(parameters, np.array([user]), ask, rng=np.random.default_rng(COINS))
    (one, vector), (other, opposite) = seen
    assert vector @ opposite < -0.9
    scores, source = [], NoiseSource(1)
    for episodes in (one, other):
        draws = np.zeros((runs, board.statistic.cells), dtype=np.int64)
        for row in draws:
            sums.collect(randomizer, episodes, row, source, ask)
        scores.append(draws @ vector * GRID)
    if isinstance(randomizer, Gaussian):
        hits, alarms = ((score > 0.0).sum() for score in scores)
        return epsilon_of_mu(float(mu_below(hits, alarms, (runs, runs), 0.01)), options["delta"])
    level = randomizer.cap.height / randomizer.cap.pull * np.linalg.norm(vector)
    hits, alarms = ((score >= level).sum() for score in scores)
    return float(epsilon_below(hits, alarms, (runs, runs), 0.0, 0.01))


def test_an_attack_on_a_direction_comes_close_and_not_above():
    assert 0.75 * EPSILON < shown(LDPUserSide) <= EPSILON


def test_an_attack_on_a_noisy_gradient_comes_close_and_not_above():
    options = {"delta": 1e-6, "randomizer": "gaussian"}
    assert 0.7 * EPSILON < shown(LDPUserSide, **options) <= EPSILON


def test_twice_the_budget_is_caught():
    assert shown(EagerDirections) > EPSILON


def test_the_randomizer_with_less_noise_is_the_default():
    assert randomized(EXACT, 1.0, 0.0).name == "direction"
    assert randomized(EXACT, 1.0, 1e-6).spent == (1.0, 0.0)  # what is pure spends no delta
    assert randomized(EXACT, 1.0, 0.5).name == "gaussian"
    assert Cap.best(1.0).noise(288) < 2.0 / gaussian_mu(1.0, 1e-6) / 3.0
    with pytest.raises(ValueError, match="randomizer is 'laplace': clipped gradients are sent by 'direction'"):
        randomized(EXACT, 1.0, 0.0, "laplace")
    with pytest.raises(ValueError, match="needs a delta above 0"):
        randomized(EXACT, 1.0, 0.0, "gaussian")


def test_who_leaves_early_sends_a_report_as_noisy_as_any():
    direction, sent = randomized(EXACT, EPSILON, 0.0), np.zeros(EXACT.cells, dtype=np.int64)
    direction.send(None, 2000, None, NoiseSource(0), sent)
    assert (sent * GRID).std() == pytest.approx(direction.cap.noise(EXACT.cells) * math.sqrt(2000), rel=0.25)


def test_an_agent_learns_from_local_gradients():
    board = LDPUserSide(gym.make("CartPole-v1", max_episode_steps=20), 8.0, users=60, rng=0)
    DPPolicyGradient("MlpPolicy", board, seed=0, batch_size=20).learn(60 * 20)
    assert board.users_left == 0
    assert str(board.ledger).startswith("(8.0, 0)-LDP, replace one user, 60 users")
    assert board.release.noise_std["gradient"] == pytest.approx(board.expected_noise(60))


class Hasty(DPPolicyGradient):
    """Makes batches smaller than those that reports hide in."""

    users_in_batch = 10


def mixed(users, batch_size, local=8.0):
    inner = LDPUserSide(gym.make("CartPole-v1", max_episode_steps=20), local, users=users, rng=0)
    return SDPShuffler(inner, users=users, schedule=batch_size)


def test_behind_a_shuffler_no_batch_is_smaller_than_promised():
    """The agent's batches are made larger, and the boundary does not rely on it."""
    board, sizes = mixed(130, 40), []
    agent = DPPolicyGradient("MlpPolicy", board, seed=0, batch_size=5)
    for _ in range(130):
        agent.learn(20, reset_num_timesteps=False)
        if board.release.version > len(sizes):
            sizes.append(board.batch.users)
    assert sizes == [40, 40, 50]
    with pytest.raises(ValueError, match="would shuffle fewer reports than it may"):
        Hasty("MlpPolicy", mixed(130, 40), seed=0).learn(130 * 20)
    with pytest.raises(ValueError, match="119 users are less than three batches of 40"):
        DPPolicyGradient("MlpPolicy", mixed(119, 40))


def test_amplification_is_claimed_for_pure_reports_alone():
    for options, amplified in (({}, True), ({"delta": 1e-6, "randomizer": "gaussian"}, False)):
        inner = LDPUserSide(gym.make("CartPole-v1"), 4.0, statistic="gradient", **options)
        board = SDPShuffler(inner, users=40_000, schedule=10_000)
        assert board.guarantee.epsilon == 4.0  # an agent may still choose other layers
        board.bind(Layers((5,)))
        assert board.network.layers == Layers((5,))
        assert (board.guarantee.epsilon < 0.4) == amplified
        assert amplified or board.guarantee.epsilon == 4.0


def test_batches_are_as_large_as_local_noise_asks_for():
    """Noise in the mean gradient is 0.12 of the clip under both; users' own noise falls as users come."""
    local = LDPUserSide(gym.make("CartPole-v1"), 8.0, statistic="gradient")
    size = DPPolicyGradient("MlpPolicy", local).users_in_batch
    noise = local.expected_noise(size) / 0.95 / size * math.sqrt(226)
    assert noise == pytest.approx(0.12, rel=0.01)
    joint = JDPBillboard(gym.make("CartPole-v1"), 1.0, 1e-6, users=30_000)
    assert DPPolicyGradient("MlpPolicy", joint).users_in_batch == 1115


def test_an_epsilon_at_which_doubles_would_show_through_the_grid_is_refused():
    with pytest.raises(ValueError, match="too large to be drawn faithfully"):
        Direction(EXACT, 1e-7, 0.0)


@pytest.mark.parametrize("choice", [0.0, 0.999])
def test_far_reports_have_no_gaps_wider_than_the_grid(choice):
    """Next to each other there are draws for every point of the grid, seven deviations away; and none is infinite."""
    cap = Cap.best(1.0)
    far = 1.2e-12 / (cap.size if choice == 0.0 else 1.0 - cap.size)
    high = math.floor(far * 2.0**53) * 2.0**-53
    draws = [cap.along(choice, high, low) for low in 1e-5 * np.arange(100)]
    assert 6.9 < abs(draws[0]) < 7.2
    assert 0.0 < np.abs(np.diff(draws)).min() <= np.abs(np.diff(draws)).max() < GRID * cap.pull
    without = cap.along(choice, high + 2.0**-53, 0.0)
    assert abs(draws[0] - without) > 10.0 * GRID * cap.pull  # what one uniform number alone would leave
    assert abs(cap.along(choice, high, 1.0 - 2.0**-53) - without) < GRID * cap.pull
    assert 11.0 < abs(cap.along(choice, 0.0, 0.0)) < 13.0

"""Gradients of users: what they are, how far one user moves them, and mistakes that would move them farther.

Seeds are fixed. A statistical test says how many deviations it allows.
"""

import itertools

import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from private_rl_gym.planning.network import Layers, Network, NetworkPolicy, NetworkTrajectories
from private_rl_gym.privacy.requests import Objective, Values
from private_rl_gym.privacy.statistics.gradients import GRID, RANGES, Gradients
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard, SDPShuffler
from tests.privacy.statistics import sums

H = 12
NETWORKS = {
    "choices": Network(3, Layers((5, 4)), choices=(3, 2)),
    "relu": Network(3, Layers((6,), "relu"), choices=(4,)),
    "linear": Network(3, Layers(()), choices=(2,)),
    "continuous": Network(3, Layers((5,)), continuous=2),
    "critic": Network(3, Layers((5,), critic=(4,)), choices=(2,)),
}
every_network = pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
GRADIENT = (1.0, 0.0, 0.0, 0.0)


def episodes(network, users=6, seed=0, rewards=None, scale=1.0):
    rng = np.random.default_rng(seed)
    parameters = 0.5 * rng.standard_normal(network.size)
    policy = NetworkPolicy(network, parameters, H)
    inputs, draws = rng.standard_normal((users, H, network.inputs)), network.draws(rng, users, H)
    actions = np.stack([policy.act(inputs[:, h], draws[:, h]) for h in range(H)], axis=1)
    paid = scale * rng.standard_normal((users, H)) if rewards is None else rewards
    lengths = rng.integers(1, H + 1, users)
    lengths[0] = H
    return NetworkTrajectories(inputs, actions, paid, lengths, policy)


def asked(statistic, **options):
    return statistic.checked(Objective(**{"baseline": np.zeros(H), **options}))


def vector(statistic, users, ask):
    found = np.zeros(statistic.cells, dtype=np.int64)
    sums.collect(statistic, users, found, None, ask)
    return found * GRID


# The gradient --------------------------------------------------------------------------------------------------------


def log_chance_and_entropy(network, theta, inputs, actions):
    """The log probability of one action, by torch."""
    at, z, widths = 0, inputs, network.widths
    for layer, (rows, columns) in enumerate(itertools.pairwise(widths)):
        z = z @ theta[at : at + rows * columns].reshape(rows, columns) + theta[at + rows * columns :][:columns]
        if layer < len(widths) - 2:
            z = torch.relu(z) if network.relu else torch.tanh(z)
        at += (rows + 1) * columns
    if network.continuous:
        law = torch.distributions.Normal(z, theta[at:].exp(), validate_args=False)
        return torch.stack([law.log_prob(actions).sum(), law.entropy().sum()])
    logs = [torch.log_softmax(part, 0) for part in torch.split(z, list(network.choices))]
    chosen = sum((log * (torch.arange(len(log)) == a)).sum() for log, a in zip(logs, actions, strict=True))
    return torch.stack([chosen, sum(-(log.exp() * log).sum() for log in logs)])


def by_torch(network, users, baseline, reach, discount, entropy):
    """The gradient of every user, vectorised over users by torch.func."""
    advantages = np.zeros((len(users), H))
    for user in range(len(users)):
        ahead = 0.0
        for h in range(users.lengths[user] - 1, -1, -1):
            ahead = users.rewards[user, h] + discount * ahead
            advantages[user, h] = np.clip((ahead - baseline[h]) / reach, -1.0, 1.0)
    weights = np.stack([advantages, entropy * (np.arange(H) < users.lengths[:, None])], axis=-1)  # [user, h, 2]
    actions = torch.tensor(users.actions if network.continuous else users.actions.astype(np.int64))

    def objective(theta, inputs, actions, weights):
        parts = torch.stack([log_chance_and_entropy(network, theta, inputs[h], actions[h]) for h in range(H)])
        return (weights * parts).sum()

    gradient = torch.func.vmap(torch.func.grad(objective), in_dims=(None, 0, 0, 0))
    theta = torch.tensor(users.policy.parameters.copy())
    return gradient(theta, torch.tensor(users.inputs), actions, torch.tensor(weights)).numpy()


@pytest.mark.slow
@pytest.mark.parametrize("entropy", [0.0, 0.3])
@every_network
def test_the_closed_form_is_what_torch_differentiates(network, entropy):
    statistic, users = Gradients(network, H), episodes(network)
    baseline = np.linspace(0.5, -0.5, H)
    ask = asked(statistic, baseline=baseline, reach=3.0, clip=1000.0, discount=0.9, shares=GRADIENT, entropy=entropy)
    wanted = by_torch(network, users, baseline, 3.0, 0.9, entropy)
    for user in range(len(users)):
        found = 1000.0 * vector(statistic, users.part(user, user + 1), ask)[: network.size]
        assert np.allclose(found, wanted[user], atol=1000.0 * GRID + 1e-5)


def test_local_steps_climb_the_clipped_objective():
    """Where probabilities have moved by more than the ratio, an action pulls no further: PPO's clip."""
    network = Network(1, Layers(()), choices=(2,))
    policy = NetworkPolicy(network, np.zeros(network.size), 1)
    users = NetworkTrajectories(
        np.ones((1, 1, 1)), np.zeros((1, 1, 1)), np.ones((1, 1)), np.ones(1, dtype=np.int64), policy
    )
    statistic = Gradients(network, 1)

    def chance(steps, ratio):
        ask = statistic.checked(
            Objective(np.zeros(1), clip=100.0, local_steps=steps, local_rate=0.05, ratio=ratio, shares=GRADIENT)
        )
        moved = 100.0 * vector(statistic, users, ask)[: network.size]
        a, b = moved[0] + moved[2], moved[1] + moved[3]
        return np.exp(a) / (np.exp(a) + np.exp(b))

    free = [chance(steps, 10.0) for steps in (2, 10, 40)]
    assert free[0] < free[1] < free[2]
    held = [chance(steps, 0.2) for steps in (10, 40)]
    assert held[0] == held[1] > 0.5 * 1.2
    assert held[0] < 0.5 * 1.3 < free[2]


def test_other_parts_say_returns_by_stage_and_their_range():
    network = NETWORKS["choices"]
    users, statistic = episodes(network, rewards=np.full((6, H), 2.0)), Gradients(network, H)
    found = statistic.sums(vector(statistic, users, asked(statistic, reach=1000.0, shares=(0.0, 1.0, 0.0, 0.0))))
    half = np.sqrt(0.5)
    assert found["ends"].sum() == pytest.approx(6 * half, abs=1e-6)
    assert found["rewards"].sum() * 1000.0 / half == pytest.approx(2.0 * users.lengths.sum(), abs=1e-3)
    first = users.lengths <= statistic.stages[1]
    assert found["ends"][0] / half == pytest.approx(first.sum(), abs=1e-6)
    assert not found["gradient"].any()
    ranges = statistic.sums(vector(statistic, users, asked(statistic, shares=(0.0, 0.0, 1.0, 0.0))))["ranges"]
    there = np.histogram(2.0 * users.lengths, [*RANGES, np.inf])[0]
    assert np.allclose(ranges, there, atol=1e-6)


# Sensitivity ---------------------------------------------------------------------------------------------------------

HOSTILE = {
    "huge": 1e300,
    "large": 1e12,
    "usual": 1.0,
    "tiny": 1e-300,
    "infinite": np.inf,
    "nothing": np.nan,
}
ASKS = [
    {"shares": GRADIENT, "clip": 1e-3},
    {"shares": GRADIENT, "clip": 50.0},
    {"shares": (0.95, 0.3, 0.0, 0.0)},
    {"shares": (0.8, 0.36, 0.36, 0.3), "discount": 0.9, "mixing": 0.9},
    {"shares": (0.0, 0.0, 1.0, 0.0)},
    {"shares": (0.0, 1.0, 0.0, 0.0), "reach": 1e-6},
    {"shares": GRADIENT, "local_steps": 3, "local_rate": 0.5},
    {"shares": GRADIENT, "reach": 1e166, "clip": 1e-172},  # squares of such entries are zero
    {"shares": GRADIENT, "reach": 1e150, "clip": 1e-170},
    {"shares": GRADIENT, "reach": 1e170, "clip": 1e-300},
    {"shares": GRADIENT, "reach": 1e-300, "clip": 1e-300, "local_steps": 2, "local_rate": 1e-300},
    {"shares": (0.9, 0.0, 0.0, 0.4), "reach": 1e166, "clip": 1e-172},
    {"shares": (0.0, 1.0, 0.0, 0.0), "reach": 1e-300},
]


def largest_norm(statistic, contribute=None):
    """The norm of the longest vector of any hostile user."""
    contribute = contribute or vector
    norms = []
    for value in HOSTILE.values():
        users = episodes(statistic.network, users=4, seed=3, scale=value)
        for options in ASKS:
            ask = asked(statistic, **options)
            norms += [np.linalg.norm(contribute(statistic, users.part(u, u + 1), ask)) for u in range(4)]
    return max(norms)


@every_network
def test_no_user_has_a_vector_longer_than_one_whatever_she_does(network):
    statistic = Gradients(network, H)
    assert 0.999 < largest_norm(statistic) <= statistic.sensitivity().l2 / 2.0


@given(data=st.data())
def test_no_shares_and_no_rewards_make_a_vector_longer(data):
    network = NETWORKS["critic"]
    statistic = Gradients(network, H)
    number = st.floats(allow_nan=True, allow_infinity=True)
    rewards = np.array(data.draw(st.lists(number, min_size=H, max_size=H)))[None]
    raw = np.array(data.draw(st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4)))
    shares = tuple(raw / max(1.0, float(np.linalg.norm(raw)) * (1 + 1e-15)))
    users = episodes(network, users=1, rewards=rewards)
    positive = st.floats(0.0, exclude_min=True, allow_infinity=False)
    ask = asked(statistic, shares=shares, reach=data.draw(positive), clip=data.draw(positive))
    assert np.linalg.norm(vector(statistic, users, ask)) <= statistic.sensitivity().l2 / 2.0


@pytest.mark.parametrize(
    "options", [{"clip": 1e-150}, {"reach": 1e166, "clip": 1e-172}, {"reach": 1e100, "clip": 1e-200}]
)
def test_a_tiny_clip_is_a_clip(options):
    """Squares of what is clipped vanish; its direction does not."""
    statistic = Gradients(NETWORKS["choices"], H)
    users = episodes(statistic.network, users=1)
    tiny, usual = (
        vector(statistic, users, asked(statistic, shares=GRADIENT, **kind))
        for kind in (options, {"reach": 1e3, "clip": 1e-6})
    )
    if "reach" not in options:
        usual = vector(statistic, users, asked(statistic, shares=GRADIENT, clip=1e-6))
    np.testing.assert_allclose(tiny, usual, atol=2 * GRID)
    assert np.linalg.norm(tiny) == pytest.approx(1.0, abs=1e-6)


def test_two_users_are_as_far_apart_as_stated():
    """One step, two actions, opposite advantages: clipped gradients that point in opposite directions."""
    network = Network(1, Layers(()), choices=(2,))
    policy = NetworkPolicy(network, np.zeros(network.size), 1)
    statistic = Gradients(network, 1)
    ask = statistic.checked(Objective(np.zeros(1), clip=1e-3, shares=GRADIENT))
    one, other = (
        NetworkTrajectories(
            np.ones((1, 1, 1)), np.zeros((1, 1, 1)), np.full((1, 1), r), np.ones(1, dtype=np.int64), policy
        )
        for r in (1.0, -1.0)
    )
    apart = np.linalg.norm(vector(statistic, one, ask) - vector(statistic, other, ask))
    assert statistic.sensitivity().l2 - 1e-6 < apart <= statistic.sensitivity().l2


@every_network
def test_numbers_that_are_not_finite_make_a_user_count_as_zero(network):
    statistic = Gradients(network, H)
    for spoil in (np.nan, np.inf, -np.inf):
        for name in ("rewards", "inputs"):
            users = episodes(network, users=2)
            getattr(users, name)[0, 3] = spoil
            ask = asked(statistic, shares=(0.95, 0.3, 0.0, 0.0))
            assert not vector(statistic, users.part(0, 1), ask).any()
            assert (vector(statistic, users, ask) == vector(statistic, users.part(1, 2), ask)).all()


@every_network
def test_a_users_vector_depends_on_nobody_else_to_the_last_bit(network):
    statistic, users = Gradients(network, H), episodes(network, users=8)
    ask = asked(statistic, shares=(0.9, 0.3, 0.2, 0.1))
    together = vector(statistic, users, ask)
    apart = sum(vector(statistic, users.part(u, u + 1), ask) for u in range(8))
    assert (together == apart).all()


# Mistakes that are made in practice ----------------------------------------------------------------------------------


def clipped_steps(statistic, users, ask):
    """The gradient of every step is clipped, and not that of the user."""
    total = np.zeros(statistic.cells)
    for h in range(users.lengths[0]):
        arrays = (np.roll(array, -h, axis=1) for array in (users.inputs, users.actions, users.rewards))
        total += vector(statistic, NetworkTrajectories(*arrays, np.ones(1, dtype=np.int64), users.policy), ask)
    return total


def without_the_clip_as_unit(statistic, users, ask):
    """Sums are in the units of the gradient, and noise is not multiplied by the clip."""
    return ask.clip * vector(statistic, users, ask)


def times_her_steps(statistic, users, ask):
    """Every user counts by the number of her steps, as in a mean over steps."""
    return users.lengths[0] * vector(statistic, users, ask)


@pytest.mark.parametrize("mistake", [clipped_steps, without_the_clip_as_unit, times_her_steps])
def test_a_mistake_that_moves_sums_farther_is_seen(mistake):
    statistic = Gradients(NETWORKS["choices"], H)
    assert largest_norm(statistic, mistake) > 1.5 * statistic.sensitivity().l2 / 2.0


# The board -----------------------------------------------------------------------------------------------------------


def cart(**options):
    return gym.make("CartPole-v1", max_episode_steps=50, **options)


def jdp(env=None, **options):
    given_options = {"epsilon": 1.0, "delta": 1e-6, "users": 400, "schedule": 20, "rng": 5, **options}
    return JDPBillboard(cart() if env is None else env, **given_options)


def start(board, seed=0):
    return board.network.start(np.random.default_rng(seed))


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.slow
def test_noise_is_that_of_replacing_one_user_and_fresh_for_every_batch():
    """Standard deviations of 2,000 numbers are within 8 % of what is stated with 5 deviations to spare."""
    board, exact = jdp(cart(), users=300), OpenBillboard(cart(), users=300, schedule=20)
    assert board.batch_size == 20
    noises = []
    for seeds in np.arange(280).reshape(-1, 20):
        for one in (board, exact):
            one.serve(start(one), seeds, rng=rng())
        cells = [one.statistic.vector(one.batch.sums()) for one in (board, exact)]
        noises.append(cells[0] - cells[1])
    stated = board.batch.noise_std["gradient"]
    assert board.guarantee.mu == pytest.approx(board.statistic.sensitivity().l2 / stated, rel=1e-6)
    assert np.std(noises) == pytest.approx(stated, rel=0.08)
    assert board.statistic.sensitivity().l2 == pytest.approx(2.0, abs=1e-6)
    correlation = np.corrcoef(np.array(noises))
    assert np.abs(correlation - np.eye(len(noises))).max() < 6.0 / np.sqrt(len(noises[0]))
    assert "clipped gradients" in board.guarantee.mechanism
    assert str(board.ledger).startswith("(1.0, 1e-06)-JDP, replace one user, 300 users")


class Keeps:
    """An observer, as auditors have, that keeps all episodes."""

    def __init__(self, seen):
        self.seen = seen

    def left(self, users, _count):
        self.seen.append(users)


@pytest.mark.slow
def test_without_a_delta_the_noise_is_laplace_noise_for_the_whole_vector():
    board = jdp(delta=0.0)
    statistic = board.statistic
    assert (board.guarantee.epsilon, board.guarantee.delta) == (1.0, 0.0)
    assert statistic.sensitivity().l1 == pytest.approx(2.0 * np.sqrt(statistic.cells), rel=1e-5)
    board.serve(start(board), 20, rng=rng())
    assert board.batch.noise_std["gradient"] == pytest.approx(np.sqrt(2.0) * statistic.sensitivity().l1, rel=1e-3)


def test_replacing_one_user_moves_nothing_but_her_own_vector():
    """Users are seeds: the episodes of others are the same, however long she stays."""
    seeds = np.arange(20)
    board = OpenBillboard(cart(), schedule=20)
    alone = OpenBillboard(cart(), schedule=1)
    draws = []
    board.audit.observe(Keeps(draws))
    board.serve(start(board), seeds, rng=rng())
    others = seeds.copy()
    others[7] = 1234
    board.serve(start(board), others, rng=rng())
    first, second = draws[0], draws[1]
    same = np.arange(20) != 7
    assert (first.lengths[same] == second.lengths[same]).all()
    assert (first.inputs[same] == second.inputs[same]).all()
    assert (first.inputs[7] != second.inputs[7]).any()
    assert alone.statistic.sensitivity().l2 >= np.linalg.norm(
        vector(board.statistic, first, None) - vector(board.statistic, second, None)
    )


def test_the_learners_generator_tells_nothing_of_users():
    """As many numbers are drawn for long episodes as for short ones."""
    states = []
    for seeds in (np.arange(20), np.arange(20, 40)):
        board, own = OpenBillboard(cart(), schedule=20), rng()
        board.serve(start(board), seeds, rng=own)
        states.append(own.bit_generator.state)
    assert states[0] == states[1]


def test_the_vector_entry_point_and_single_environments_have_the_same_law():
    """Mean lengths of 400 users agree within 6 deviations."""
    lengths = {}
    for vectorised in (True, False):
        board = OpenBillboard(cart(), schedule=400)
        assert board.source.vectorised
        board.source.vectorised = vectorised
        board.unwrapped.reset(seed=3)
        episodes_, problem = board.source.run_all(board.source.policy(start(board)), 400, None, rng())
        assert problem is None
        lengths[vectorised] = episodes_.lengths
    apart = abs(lengths[True].mean() - lengths[False].mean())
    assert apart < 6.0 * np.hypot(lengths[True].std(), lengths[False].std()) / 20.0


class Fragile(gym.Wrapper):
    """Fails for some users, in the middle of their episode, with a message about them."""

    def __init__(self, env, fails):
        super().__init__(env)
        self.fails, self.bad, self.steps = fails, False, 0

    def reset(self, *, seed=None, options=None):
        self.bad, self.steps = seed in self.fails, 0
        return self.env.reset(seed=seed, options=options)

    def step(self, action):
        self.steps += 1
        if self.bad and self.steps == 3:
            raise RuntimeError("a secret of user 5")
        return self.env.step(action)


def test_a_user_whose_environment_fails_contributes_zero_and_changes_nobody():
    whole, fragile = OpenBillboard(cart(), schedule=20), OpenBillboard(Fragile(cart(), {5}), schedule=20)
    with pytest.raises(ValueError, match=r"raised RuntimeError; nothing of this user is released") as error:
        fragile.serve(start(fragile), np.arange(20), rng=rng())
    assert "secret" not in str(error.value)
    seen = []
    whole.audit.observe(Keeps(seen))
    whole.serve(start(whole), np.arange(20), rng=rng())
    kept = sum(vector(whole.statistic, seen[0].part(u, u + 1), None) for u in range(20) if u != 5)
    assert (whole.statistic.vector(fragile.batch.sums()) == kept).all()
    assert fragile.users_left is None
    assert fragile.batch.users == 20


def test_a_group_that_fails_at_once_is_never_published(monkeypatch):
    board = jdp()
    board.serve(start(board), 20, rng=rng())
    before = board.release.version

    def fail(*_):
        raise RuntimeError("a secret of somebody")

    from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv

    monkeypatch.setattr(CartPoleVectorEnv, "step", fail)
    with pytest.raises(ValueError, match="raised RuntimeError; nothing of this user"):
        board.serve(start(board), 30, rng=rng())
    monkeypatch.undo()
    for call in (lambda: board.serve(start(board), 1, rng=rng()), board.publish, lambda: board.save_state("nowhere")):
        with pytest.raises(RuntimeError, match="publishes nothing more"):
            call()
    assert board.release.version == before


def test_an_environment_that_was_changed_is_met_as_it_is_now():
    env = cart()
    env.unwrapped.force_mag = 0.0  # nothing that anyone does matters
    assert not OpenBillboard(env).source.vectorised
    assert OpenBillboard(cart()).source.vectorised


def test_a_state_that_was_saved_continues_bit_for_bit(tmp_path):
    boards = [jdp(), jdp(), jdp(rng=8)]
    for board in boards[:2]:
        board.unwrapped.reset(seed=1)
        board.serve(start(board), 33, Objective(np.linspace(9.0, 0.0, 50), reach=20.0), rng=rng())
    boards[1].save_state(tmp_path / "state")
    boards[2].load_state(tmp_path / "state")
    for board in (boards[0], boards[2]):
        board.serve(start(board), 30, rng=rng(1))
    first, second = (board.release for board in (boards[0], boards[2]))
    assert (first.version, first.users) == (second.version, second.users) == (3, 60)
    assert all((first.sums()[family] == second.sums()[family]).all() for family in first.families)
    assert boards[2].request.reach == 20.0


@pytest.mark.parametrize(
    ("build", "kind", "sentence"),
    [
        (
            lambda: LDPUserSide(cart(), 1.0, users=9, statistic="gradient", randomizer="laplace"),
            ValueError,
            "gradients are sent by 'direction'",
        ),
        (lambda: SDPShuffler(cart(), 1.0, 1e-6, users=9, statistic="gradient"), ValueError, "publishes no gradients"),
        (lambda: jdp(delta=0.0, noise="gaussian"), ValueError, "delta is 0"),
        (lambda: jdp(calibration="paper", statistic="gradient"), ValueError, "calibration='exact'"),
        (lambda: jdp(public_start=True, statistic="gradient"), ValueError, "hide users from everyone"),
        (lambda: jdp().reset(), ValueError, "has no reset and step"),
        (lambda: jdp().step(0), ValueError, "has no reset and step"),
        (lambda: jdp().private_model(), ValueError, "makes no model"),
        (lambda: jdp().serve(np.zeros(226), 1), ValueError, "draws its actions from rng="),
        (lambda: jdp().serve(np.zeros(225), 1, rng=rng()), ValueError, r"shape \(225,\): this network has 226"),
        (lambda: jdp().serve(np.full(226, np.nan), 1, rng=rng()), ValueError, "is not a finite number"),
        (lambda: jdp().serve(np.zeros(226), [0.5], rng=rng()), ValueError, "are seeds"),
        (lambda: jdp().serve(np.zeros(226), 1, Values(np.zeros((51, 4))), rng=rng()), TypeError, "Objective"),
        (lambda: Layers((0,)), ValueError, "hidden layers is 0"),
        (lambda: Layers((3,), "sine"), ValueError, "activation is 'sine': choose one of tanh, relu"),
        (lambda: jdp(gym.make("Blackjack-v1")), ValueError, "has no horizon"),
        (lambda: jdp(gym.wrappers.NormalizeObservation(cart())), ValueError, "carries statistics from one user"),
    ],
)
def test_bad_input_gets_a_sentence(build, kind, sentence):
    with pytest.raises(kind, match=sentence):
        build()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"baseline": np.zeros(3)}, r"baseline has shape \(3,\): give one value for each of the 12 stages"),
        ({"baseline": np.full(H, np.nan)}, "is not a finite number"),
        ({"reach": 0.0}, "reach is 0.0"),
        ({"clip": -1.0}, "clip is -1.0"),
        ({"clip": np.inf}, "clip is inf"),
        ({"discount": 1.5}, "discount is 1.5: it is at most 1"),
        ({"shares": (1.0, 0.3, 0.0, 0.0)}, "squares add up to at most 1"),
        ({"shares": (1.0,)}, "4 numbers"),
        ({"shares": (-0.5, 0.0, 0.0, 0.0)}, "0 or more"),
        ({"shares": (np.nan, 0.0, 0.0, 0.0)}, "0 or more"),
        ({"local_steps": 0}, "local_steps is 0"),
        ({"entropy": -0.1}, "entropy is -0.1: it is a number above 0, or 0"),
        ({"entropy": np.inf}, "entropy is inf"),
        ({"critic": np.zeros(5)}, "critic has 5 parameters: the value network here has 0"),
    ],
)
def test_an_objective_that_users_cannot_answer_is_refused(options, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        asked(Gradients(NETWORKS["choices"], H), **options)

"""The shuffler: batches, what they hide, and what the ledger says when users vanish."""

import math

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.agents import DPUCBVI, UCBVI
from private_rl_gym.privacy import NoiseSource
from private_rl_gym.privacy.accounting.amplification import amplified_epsilon
from private_rl_gym.privacy.protocols import ClosedBatch
from private_rl_gym.privacy.randomizers import Subsets
from private_rl_gym.wrappers import BudgetExhausted, JDPBillboard, LDPUserSide, OpenBillboard, SDPShuffler
from tests.wrappers.stacks import A, H, S, river, same_release


def shuffler(env=None, epsilon=1.0, delta=1e-6, users=40, **options):
    return SDPShuffler(
        river() if env is None else env, epsilon, delta, users=users, **{"schedule": 8, "rng": 1, **options}
    )


RIGHT = np.ones((H, S), dtype=int)


@pytest.mark.parametrize("users", [1, 2, 7, 8, 9, 15, 16, 17, 40, 100, 127])
@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_every_user_is_in_one_batch(users, chunk):
    """Sum of batch sizes = K, for any K: the last batch takes what would be left over."""
    board, sizes, before = shuffler(users=users), [], 0
    while board.users_left:
        board.serve(RIGHT, min(chunk, board.users_to_release, board.users_left))
        if board.release.users > before:
            sizes.append(board.release.users - before)
            before = board.release.users
    assert sum(sizes) == users
    assert sizes[:-1] == [8] * (len(sizes) - 1)
    assert users < 8 or 8 <= sizes[-1] < 16
    assert board.release.version == len(sizes) == max(1, users // 8)
    with pytest.raises(BudgetExhausted):
        board.serve(RIGHT, 1)


def test_batches_may_be_closed_early():
    board = shuffler(users=None)
    for size in (3, 1, 5):
        board.serve(RIGHT, size)
        assert board.publish().users == board.release.users
    assert board.release.users == 9
    assert board.publish().version == 3  # nobody came since


def test_the_noise_is_what_the_release_says():
    """Many batches of one policy: the sums scatter around the true ones as much as is stated, and not less."""
    errors = []
    for seed in range(60):
        board, true = shuffler(rng=seed, users=24), OpenBillboard(river(), users=24)
        for one in (board, true):
            one.unwrapped.reset(seed=3)
            one.serve(RIGHT, 24)
        errors.append(np.concatenate([(getattr(board.release, f) - getattr(true.release, f)).ravel() for f in "mr"]))
        assert np.abs(errors[-1]).max() <= board.release.error_bound(0.01)
    stated = board.release.noise_std
    assert stated["m"] == pytest.approx(stated["r"])
    assert np.std(errors) == pytest.approx(stated["m"], rel=0.02)
    assert abs(np.mean(errors)) < 4 * stated["m"] / np.sqrt(np.size(errors))
    assert stated["n"] == pytest.approx(stated["m"] * np.sqrt(S))


class Rigged:
    """A generator whose binomial draws are made up; users round their rewards with it as ever."""

    def __init__(self, binomial):
        self.binomial = binomial
        self.random = np.random.default_rng(0).random


@pytest.mark.parametrize("broken", [None, "shared by all counters", "the same in every batch", "halved"])
def test_noise_is_drawn_for_every_counter_and_batch(broken, monkeypatch):
    """Correlations between counters and between batches, and the spread; each breakage fails one of them."""
    board = shuffler(users=None, schedule=50, rng=3)
    if broken is not None:
        source, kept = np.random.default_rng(0), []

        def binomial(bits, bias, cells):
            noise = source.binomial(bits, bias, cells)
            kept.append(noise)
            if broken == "halved":
                return noise // 2
            return np.full(cells, noise[0]) if broken == "shared by all counters" else kept[0]

        monkeypatch.setattr(NoiseSource, "generator", Rigged(binomial))
    batches = []
    for _ in range(40):
        board.serve(RIGHT, 50)
        batch = board.batch
        batches.append((batch.m[:, :, 0] / batch.noise_std["m"]).ravel())  # nobody took the other action
    noise = np.array(batches)  # [batch, counter], of mean 0 and variance 1
    few = 5 / np.sqrt(noise.size)
    sound = (
        abs((noise[:, 1:] * noise[:, :-1]).mean()) < few
        and abs((noise[1:] * noise[:-1]).mean()) < few
        and abs(noise.var() - 1) < 2 * few
    )
    assert sound == (broken is None)


def test_a_batch_can_be_taken_on_its_own():
    board = shuffler(users=40)
    board.serve(RIGHT, 8)
    first = board.release
    board.serve(RIGHT, 8)
    second = board.batch
    assert second.users == 8
    assert second.noise_std["m"] == pytest.approx(first.noise_std["m"])  # fresh noise of one batch
    assert board.release.noise_std["m"] == pytest.approx(first.noise_std["m"] * np.sqrt(2))
    np.testing.assert_allclose(first.m + second.m, board.release.m)


def test_message_by_message_is_the_same_in_law():
    """Mean and spread of what is published agree, and nothing else is different."""
    found = {}
    for simulation in ("aggregate", "messages"):
        rows = []
        for seed in range(80):
            board = shuffler(river(horizon=2), 8.0, 1e-2, users=6, schedule=3, rng=seed, simulation=simulation)
            board.unwrapped.reset(seed=0)
            board.serve(np.ones((2, S), dtype=int), 6)
            rows.append(np.concatenate([board.release.m.ravel(), board.release.r.ravel()]))
        found[simulation] = np.array(rows)
    spread = board.release.noise_std["m"]
    for rows in found.values():
        assert np.std(rows - rows.mean(axis=0)) == pytest.approx(spread, rel=0.05)
    gap = found["aggregate"].mean(axis=0) - found["messages"].mean(axis=0)
    assert np.abs(gap).max() < 5 * spread * np.sqrt(2 / 80)


def test_rewards_that_are_no_bits_are_rounded_without_bias():
    env = gym.wrappers.TransformReward(river(reward_law="fixed"), lambda _: 0.3)
    board = shuffler(env, epsilon=50.0, users=4_000, schedule=4_000)
    board.serve(RIGHT, 4_000)
    release = board.release
    assert release.r.sum() / 4_000 == pytest.approx(0.3 * H, rel=0.03)
    assert release.noise_std["r"] == release.noise_std["m"]  # errors are against the sums of rounded rewards
    rounding = 5 * math.sqrt(4_000 / 4)
    assert abs(release.r.sum(axis=(1, 2)) - 1_200).max() < release.error_bound(0.01, "r") * S * A + rounding


def test_the_ledger_says_what_it_costs():
    board = shuffler(delta=1e-6)
    for part in ("(1.0, 1e-06)-SDP", "40 users", "seeded"):
        assert part in str(board.ledger)
    assert "shuffle differential privacy" in board.ledger.sentence()
    with pytest.warns(UserWarning, match=r"calibration='paper' .*epsilon = 1"):
        paper = shuffler(calibration="paper")
    assert paper.guarantee.epsilon < 0.1  # many times the noise, composed exactly
    assert "printed as epsilon = 1" in str(paper.ledger)
    paper.serve(RIGHT, 8)
    board.serve(RIGHT, 8)
    assert paper.release.noise_std["m"] > 10 * board.release.noise_std["m"]


def test_what_was_promised_stays_promised_whoever_vanishes():
    board = shuffler(dropout=0.25)
    promise = str(board.ledger)
    board.serve(RIGHT, 6)
    board.drop_out(2)  # as planned
    assert board.release.users == 8
    board.serve(RIGHT, 3)
    board.drop_out(5)  # more than planned: nothing is published of these eight
    assert (board.release.version, board.release.users) == (1, 8)
    board.serve(RIGHT, 4)
    assert board.release.version == 1
    board.serve(RIGHT, 1)  # the three who are left, and five more
    assert (board.release.version, board.release.users) == (2, 21)
    assert board.release.n[0].sum() == pytest.approx(6 + 8, abs=8 * board.release.noise_std["n"] * np.sqrt(S * A))
    board.drop_out(8)  # a batch that nobody is left of is no batch
    assert board.release.version == 2
    assert str(board.ledger) == promise
    assert board.users_left == 11


def noise_of_a_batch(users):
    board = shuffler(users=None, schedule=users)
    board.serve(RIGHT, users)
    return board.batch.noise_std["m"]


def test_a_batch_that_is_closed_early_has_its_noise_whoever_vanished():
    board = shuffler(users=None)
    board.serve(RIGHT, 3)
    board.drop_out(4)
    board.publish()
    assert (board.release.version, board.release.users) == (1, 7)
    assert board.release.noise_std["m"] == pytest.approx(noise_of_a_batch(3), rel=1e-9)
    assert board.ledger.epsilon == 1.0


def test_planned_drop_outs_cost_noise():
    boards = [shuffler(dropout=share) for share in (0.0, 0.5)]
    for board in boards:
        board.serve(RIGHT, 8)
    assert boards[1].release.noise_std["m"] == pytest.approx(boards[0].release.noise_std["m"] * np.sqrt(2), rel=0.05)


def amplified(users):
    """Of one-step reports with epsilon = 2 from the river."""
    return amplified_epsilon(2.0, users, 1e-6, Subsets.best(2 * S * A * S + 1, 2.0).blanket(1))


def test_shuffling_amplifies_local_reports():
    board = SDPShuffler(LDPUserSide(river(), 2.0, statistic="tabular"), users=25_000, schedule=10_000)
    local, shuffled = board.ledger.entries
    assert (local.model, local.epsilon) == ("LDP", 2.0)
    assert shuffled.model == "SDP"
    assert shuffled.epsilon == pytest.approx(amplified(10_000))
    assert shuffled.epsilon < 0.5
    assert board.ledger.epsilon == shuffled.epsilon
    assert "closed form" in str(board.ledger)
    assert "numerical bound" in str(board.ledger)
    board.serve(RIGHT, 12_000)
    assert board.release.users == 10_000
    with pytest.raises(ValueError, match=r"2000 reports.* 10000"):
        board.publish()  # a small batch hides less
    assert board.release.users == 10_000
    assert board.ledger.epsilon == shuffled.epsilon
    plain = LDPUserSide(river(), 2.0, users=25_000, schedule=10_000)
    plain.serve(RIGHT, 10_000)
    assert board.release.noise_std["m"] == pytest.approx(plain.release.noise_std["m"])  # and no noise is added


def test_reports_with_a_delta_are_not_amplified():
    board = SDPShuffler(LDPUserSide(river(), 1.0, 1e-6, randomizer="gaussian"), users=20_000, schedule=10_000)
    assert board.ledger.epsilon == 1.0
    assert "no amplification is claimed" in board.ledger.sentence()


def test_a_shuffled_run_survives_a_restart(tmp_path):
    boards = [shuffler() for _ in range(2)]
    for board in boards:
        board.unwrapped.reset(seed=2)
        board.serve(RIGHT, 21)
    boards[0].save_state(tmp_path / "state")
    again = shuffler()
    again.load_state(tmp_path / "state")
    for board in (again, boards[1]):
        board.serve(RIGHT, 19)
    assert same_release(again.release, boards[1].release)
    assert again.ledger.epsilon == boards[1].ledger.epsilon


def test_a_state_goes_on_only_where_the_same_was_agreed(tmp_path):
    """Found by attack: messages that nobody made are noise that is missing."""
    board = shuffler(users=None)
    board.serve(RIGHT, 7)
    board.save_state(tmp_path / "state")
    for other in ({"simulation": "messages"}, {"dropout": 0.3}, {"epsilon": 2.0}):
        with pytest.raises(ValueError, match="differs in"):
            shuffler(users=None, **other).load_state(tmp_path / "state")
    messages = shuffler(users=None, simulation="messages")
    messages.serve(RIGHT, 3)
    with pytest.raises(ValueError, match=r"close .*publish\(\)"):
        messages.save_state(tmp_path / "other")


@pytest.mark.parametrize("stack", [lambda: shuffler(), lambda: shuffler(LDPUserSide(river(), 2.0, rng=1), None, None)])
def test_a_run_of_whom_some_vanished_survives_a_restart(stack, tmp_path):
    straight, board, again = stack(), stack(), stack()
    for first in (straight, board):
        first.unwrapped.reset(seed=2)
        first.serve(RIGHT, 9)
        first.drop_out(4)
    board.save_state(tmp_path / "state")
    again.load_state(tmp_path / "state")
    for second in (straight, again):
        second.serve(RIGHT, 20)
    assert again.release.version >= 2
    assert same_release(again.release, straight.release)
    assert str(again.ledger) == str(straight.ledger)


def test_numbers_of_numpy_are_numbers(tmp_path):
    """Found by attack: a float of another kind was saved as a whole number."""
    board = shuffler(epsilon=np.float32(1.5))
    board.serve(RIGHT, 3)
    board.save_state(tmp_path / "state")
    with pytest.raises(ValueError, match="differs in"):
        shuffler(epsilon=1.0).load_state(tmp_path / "state")
    shuffler(epsilon=np.float32(1.5)).load_state(tmp_path / "state")


def test_what_is_published_is_a_function_of_the_sum_of_bits_and_noise(monkeypatch):
    """Found by attack: a mean taken off the noise first leaves its trace in the last digit of a double."""

    def published(held, noise):
        board = shuffler(river(horizon=1), 4.0, users=None, schedule=400)
        pipeline = board.audit.pipeline
        with monkeypatch.context() as patch:
            patch.setattr(NoiseSource, "generator", Rigged(lambda _bits, _bias, cells: np.full(cells, noise)))
            return pipeline.protocol.publish(np.full(pipeline.side.size, held), ClosedBatch(1, 1, 1), 1)[0]

    for total in range(60, 120):
        assert len({published(total - noise, noise) for noise in range(28, 36)}) == 1


def test_an_interrupt_while_a_batch_closes_discards_it(monkeypatch):
    board = shuffler(users=None)

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(NoiseSource, "generator", Rigged(interrupt))
        with pytest.raises(KeyboardInterrupt):
            board.serve(RIGHT, 8)
    assert board.release.version == 0
    assert board.users_to_release == 8
    board.serve(RIGHT, 8)
    assert (board.release.version, board.release.users) == (1, 8)


def test_a_stack_is_held_to_the_fewest_users_and_the_smallest_batch():
    assert SDPShuffler(LDPUserSide(river(), 2.0, users=100), schedule=50).users == 100
    inner = LDPUserSide(river(), 2.0, statistic="tabular")
    board = SDPShuffler(inner, users=1_500, schedule=1_000, smallest_batch=200)
    promised = amplified(200)
    assert board.ledger.epsilon == pytest.approx(promised)
    board.serve(RIGHT, 199)
    with pytest.raises(ValueError, match=r"199 reports.* 200"):
        board.publish()
    board.serve(RIGHT, 1)
    assert board.publish().users == 200
    assert board.ledger.epsilon == pytest.approx(promised)
    lost = SDPShuffler(LDPUserSide(river(), 2.0), schedule=1_000, smallest_batch=500)
    lost.serve(RIGHT, 10)
    lost.drop_out(990)
    assert lost.release.version == 0
    lost.serve(RIGHT, 500)
    lost.drop_out(490)
    assert lost.release.users == 2_000 - 10  # ten of the first batch, and 500 of the second, in a thousand
    assert lost.ledger.epsilon == pytest.approx(amplified(500))
    few = SDPShuffler(LDPUserSide(river(), 2.0, statistic="tabular"), users=30, schedule=1_000)
    assert few.ledger.epsilon == pytest.approx(amplified(30))


def test_agents_learn_behind_a_shuffler():
    """A batch is only a slower board; around exact sums it would be the open one's."""
    env = gym.make("PrivateRL/Garnet-v0", n_states=4, n_actions=2, horizon=5)
    board = SDPShuffler(env, 1e3, 1e-6, users=20_000, schedule=200, rng=0)
    board.unwrapped.reset(seed=0)
    for kind in (DPUCBVI, UCBVI):
        assert kind("TabularPolicy", board).board is board
    agent = DPUCBVI("TabularPolicy", board, seed=0).learn(20_000 * 5)
    model = env.unwrapped.model
    assert model.value_of(agent.policy) > 0.9 * model.optimal_value()


@pytest.mark.parametrize(
    ("build", "word"),
    [
        (lambda: SDPShuffler(river()), "epsilon and delta not given"),
        (lambda: shuffler(delta=0.0), "delta is 0:"),
        (lambda: shuffler(schedule=0), "batch_size is 0"),
        (lambda: shuffler(simulation="messages", schedule=1_000, dropout=0.9999), "one by one"),
        (lambda: shuffler(simulation="messages", users=None, schedule=10**6), "one by one"),
        (lambda: shuffler(dropout=1.5), "dropout is 1.5"),
        (lambda: shuffler(simulation="both"), "simulation is 'both'"),
        (lambda: shuffler(calibration="none"), "calibration is 'none'"),
        (lambda: SDPShuffler(LDPUserSide(river(), 1.0), 1.0), "epsilon is 1.0 around LDPUserSide"),
        (lambda: SDPShuffler(LDPUserSide(river(), 1.0), dropout=0.1), "dropout.*noise bits"),
        (lambda: SDPShuffler(LDPUserSide(river(), 1.0, users=5), users=9), "was built for 5"),
        (lambda: SDPShuffler(LDPUserSide(river(), 1.0), schedule=9, smallest_batch=10), "batches have 9 users"),
        (lambda: SDPShuffler(LDPUserSide(river(), 1.0), smallest_batch=0), "smallest_batch is 0"),
        (lambda: shuffler(smallest_batch=5), "smallest_batch is 5"),
        (lambda: SDPShuffler(LDPUserSide(river(), 1.0), delta=0.0), "delta is 0.0: amplification"),
        (lambda: shuffler(shuffler()), "SDPShuffler around SDPShuffler"),
        (lambda: JDPBillboard(shuffler(), 1.0, 1e-6, users=5), "JDPBillboard around SDPShuffler"),
        (lambda: shuffler(JDPBillboard(river(), 1.0, 1e-6, users=5)), "SDPShuffler around JDPBillboard"),
    ],
)
def test_bad_input_gets_a_sentence(build, word):
    with pytest.raises(ValueError, match=word):
        build()

"""Guarantees as they are stated: requests, sensitivities, noise before its time, ledgers before an agent."""

import dataclasses
import inspect
import itertools
import math

import gymnasium as gym
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from private_rl_gym import agents
from private_rl_gym.planning.network import Layers, Network, NetworkPolicy, NetworkTrajectories
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.accounting.amplification import amplified_epsilon, closed_form_epsilon
from private_rl_gym.privacy.accounting.calibration import calibrate
from private_rl_gym.privacy.accounting.conversion import gaussian_epsilon, gaussian_mu
from private_rl_gym.privacy.mechanisms import MECHANISMS
from private_rl_gym.privacy.mechanisms.batched import Batched
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.protocols.bits import BinarySums
from private_rl_gym.privacy.protocols.vector_bits import VectorSums, vector_epsilon
from private_rl_gym.privacy.requests import Objective, Values, Wanted
from private_rl_gym.privacy.statistics import TabularCounts
from private_rl_gym.privacy.statistics.gradients import Gradients
from private_rl_gym.privacy.statistics.moments import LinearMoments, MomentLevels
from private_rl_gym.privacy.statistics.pooled import PooledCounts
from private_rl_gym.privacy.statistics.reports import Reports
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard, SDPShuffler
from tests.wrappers.stacks import BOARDS, A, H, S, jdp, ldp, river, sdp

ALL = np.ones((S, A), dtype=bool)
STAGES = Wanted(ALL, most=H, by_stage=True)
STILL = np.zeros((H, S), dtype=int)

# A4: a request lives with its statistic ------------------------------------------------------------------------------

OPEN_STACKS = {
    "open": lambda env: OpenBillboard(env, users=40),
    "jdp": jdp,
    "ldp": ldp,
    "sdp": sdp,
    "jdp around ldp": lambda env: jdp(ldp(env)),
    "sdp around ldp": lambda env: sdp(ldp(env), epsilon=None, delta=None),
}
open_stack = pytest.mark.parametrize("make", OPEN_STACKS.values(), ids=OPEN_STACKS)


@open_stack
def test_a_request_goes_when_the_statistic_changes(make):
    """A request for stages, left over, wrote single rewards into the public tallies, and beyond the sums' end."""
    board = make(river())
    board.bind("staged-reports", apart=True)
    board.request = STAGES
    assert board.request is not None
    board.bind("reports", apart=True)  # by a second agent: the board is bound to the first one
    assert (board.statistic.name, board.request is None) in {("staged-reports", False), ("reports", True)}
    board.serve(STILL, 1)


def test_no_reward_is_read_off_the_noise_that_is_stated():
    """Reports for another statistic fell on tallies, which choose the noise: the reward was published exactly."""
    told, first = set(), np.zeros((S, A), dtype=bool)
    first[0, 0] = True
    for reward in (0.0, 1.0):
        board = JDPBillboard(river(), 1.0, 1e-6, users=1)
        board.bind("staged-reports", apart=True)
        board.request = Wanted(first, by_stage=True)
        board.bind("reports", apart=True)
        states, rewards = np.zeros((1, H + 1), dtype=np.int32), np.array([[0.0, reward, 0.0, 0.0, 0.0]])
        board._admission._admit(1)
        board._admission._receive(
            Trajectories(states, np.array([[1, 0, 1, 1, 1]], dtype=np.int32), rewards), 1, board.request
        )
        told.add(board.release.noise_std["reports"])
    assert len(told) == 1


def test_an_objective_for_another_network_is_not_read_beyond_its_end():
    board = JDPBillboard(gym.make("CartPole-v1", max_episode_steps=4), 1.0, 1e-6, users=20)
    board.request = Objective(np.zeros(4))
    board.bind(Layers((4,), critic=(2000,)), apart=True)
    assert board.request is None
    with pytest.raises(ValueError, match=r"critic has \d+ parameters: the value network here has"):
        board.request = Objective(np.zeros(4), critic=np.zeros(9))


def test_a_statistic_that_is_refused_leaves_everything_as_it_was():
    """The noise of counts stayed beside moments, whose promise it does not keep."""
    env = gym.make("PrivateRL/RiverSwimMixture-v0", horizon=H)
    board = JDPBillboard(env, 1.0, 0.0, users=40, counting="binary-tree", noise="laplace", rng=1)
    before, statistic = str(board.ledger), board.statistic
    with pytest.raises(ValueError, match="counting"):
        board.bind("reports", apart=True)
    assert (board.statistic, str(board.ledger)) == (statistic, before)
    board.serve(np.zeros(board.sizes[:2], dtype=int), 3)
    assert board.release.n.shape == board.sizes


def trajectories(horizon=H, n_states=S, n_actions=A, users=2):
    rng = np.random.default_rng(0)
    states = rng.integers(n_states, size=(users, horizon + 1)).astype(np.int32)
    actions = rng.integers(n_actions, size=(users, horizon)).astype(np.int32)
    return Trajectories(states, actions, rng.random((users, horizon)))


def river_features():
    return gym.make("PrivateRL/RiverSwimMixture-v0", horizon=H).unwrapped.mixture.features


def linear():
    return LinearMoments(river_features(), H)


def uniforms(statistic, users, source=None):
    """The uniforms that the encoding of so many users needs."""
    draws = statistic.draws * statistic.messages
    return (source or NoiseSource(0)).uniform(users * draws).reshape(users, draws) if draws else None


STATISTICS = {
    "tabular": lambda: TabularCounts(H, S, A),
    "pooled": lambda: PooledCounts(H, S, A),
    "reports": lambda: Reports(H, S, A),
    "staged-reports": lambda: Reports(H, S, A, staged=True),
    "linear": linear,
}


@pytest.mark.parametrize("make", STATISTICS.values(), ids=STATISTICS)
@pytest.mark.parametrize("change", [-1, 1])
def test_sums_of_another_length_are_refused_before_compiled_code(make, change):
    statistic = make()
    users = trajectories(statistic.horizon, statistic.n_states, statistic.n_actions)
    sums = np.zeros(statistic.cells + change, dtype=np.int64)
    with pytest.raises(ValueError, match=rf"need {statistic.cells} sums .* of shape \({len(sums)},\)"):
        statistic.encode(users, sums, None, uniforms(statistic, len(users)))
    assert not sums.any()


@pytest.mark.parametrize("make", STATISTICS.values(), ids=STATISTICS)
def test_sums_that_are_no_vector_of_whole_numbers_are_refused(make):
    statistic = make()
    users = trajectories(statistic.horizon, statistic.n_states, statistic.n_actions)
    for sums in (np.zeros(statistic.cells), np.zeros((statistic.cells, 2), dtype=np.int64)):
        with pytest.raises(ValueError, match=f"need {statistic.cells} sums of int64"):
            statistic.encode(users, sums, None, uniforms(statistic, len(users)))
        assert not sums.any()


@pytest.mark.parametrize(
    ("make", "request_"),
    [
        (lambda: Reports(H, S, A), Wanted(np.ones((S, A + 3), dtype=bool))),
        (lambda: Reports(H, S, A), Wanted(np.ones((1, 1), dtype=bool))),
        (lambda: Reports(H, S, A), Wanted(ALL, most=H + 1)),
        (lambda: Reports(H, S, A), STAGES),
        (linear, Values(np.zeros((H, 1)))),
        (linear, Values(np.zeros((H + 1, 10_000)))),
    ],
)
def test_a_request_of_another_size_is_refused_before_compiled_code(make, request_):
    statistic = make()
    users = trajectories(statistic.horizon, statistic.n_states, statistic.n_actions)
    sums = np.zeros(statistic.cells, dtype=np.int64)
    with pytest.raises(ValueError, match=r"(cells|values) have shape|most is|stages"):
        statistic.encode(users, sums, request_, uniforms(statistic, len(users)))
    assert not sums.any()


def episodes(network, horizon=4, **changes):
    arrays = {
        "inputs": np.zeros((2, horizon, network.inputs)),
        "actions": np.zeros((2, horizon, network.action_size)),
        "rewards": np.zeros((2, horizon)),
        "lengths": np.full(2, horizon),
    }
    return NetworkTrajectories(**{**arrays, **changes}, policy=NetworkPolicy(network, np.zeros(network.size), horizon))


@pytest.mark.parametrize(
    "changes",
    [
        {"inputs": np.zeros((2, 4, 1))},
        {"actions": np.full((2, 4, 1), 2.0)},
        {"actions": np.full((2, 4, 1), -1e6)},
        {"actions": np.full((2, 4, 1), np.nan)},
        {"actions": np.zeros((2, 4, 0))},
        {"rewards": np.zeros((2, 40))},
        {"lengths": np.array([4, 5])},
        {"lengths": np.array([-1, 4])},
        {"lengths": np.array([4, 4, 4])},
    ],
)
def test_episodes_of_other_sizes_are_refused_before_compiled_code(changes):
    statistic = Gradients(network := Network(3, Layers((4,)), choices=(2,)), 4)
    sums = np.zeros(statistic.cells, dtype=np.int64)
    statistic.encode(episodes(network), sums)
    before = sums.copy()
    with pytest.raises(ValueError, match="no episodes under this network"):
        statistic.encode(episodes(network, **changes), sums)
    assert (sums == before).all()


@pytest.mark.parametrize(
    "objective",
    [
        Objective(np.zeros(1)),
        Objective(np.zeros(4), critic=np.zeros(3), shares=(0.9, 0.3, 0.0, 0.3)),
        Objective(np.zeros(4), shares=(0.9, 0.3, 0.3)),
    ],
)
def test_an_objective_of_another_size_is_refused_before_compiled_code(objective):
    network = Network(3, Layers((4,), critic=(2,)), choices=(2,))
    statistic = Gradients(network, 4)
    with pytest.raises(ValueError, match=r"baseline has|critic has|shares are"):
        statistic.encode(episodes(network), np.zeros(statistic.cells, dtype=np.int64), objective)


# A7: sensitivities are never rounded to nearest -----------------------------------------------------------------------


class Fractional(Batched):
    """A mechanism whose user moves 1.4 sums."""

    factor = 1.4

    @property
    def sensitivity(self):
        return self.factor

    def returning(self, visits):
        return visits * self.factor


@pytest.mark.parametrize(("law", "delta"), [("laplace", 0.0), ("laplace", 1e-6), ("gaussian", 1e-6)])
@pytest.mark.parametrize("factor", [1.4, 1.5, 2.4999, 0.6])
def test_no_fractional_sensitivity_is_rounded_down(law, delta, factor, monkeypatch):
    """1.4 got the scale of 1, and the ledger said (1, 0)."""
    monkeypatch.setattr(Fractional, "factor", factor)
    known, noise = TabularCounts(H, S, A).sensitivity(), Fractional(1, 1, law)
    if law == "laplace":
        with pytest.raises(ValueError, match=f"sensitivity of {factor:g}, and Laplace noise"):
            calibrate(noise, known, 1.0, delta)
    else:
        one = calibrate(Batched(1, 1, law), known, 1.0, delta)[0]
        assert calibrate(noise, known, 1.0, delta)[0] == pytest.approx(factor * one)


@pytest.mark.parametrize("name", [name for name, kind in MECHANISMS.items() if "laplace" in kind.laws])
@pytest.mark.parametrize("releases", [1, 2, 3, 7, 8, 50, 1000])
def test_laplace_mechanisms_have_whole_sensitivities(name, releases):
    noise = MECHANISMS[name](releases, 1, "laplace")
    assert all(float(noise.returning(visits)).is_integer() for visits in range(1, min(releases, 9) + 1))


# A8: noise is drawn for what is published, and for nothing else -------------------------------------------------------

ACTS = {"begin_batch", "close", "drop_out", "ingest", "invite", "load_state", "publish", "reset", "save_state", "serve"}
ACTS |= {"bind", "observe", "step"}
"""Public methods that users come by, or that end a batch."""


def noises_of(board):
    """The states of all generators of noise, and copies of the noise that later releases build on."""
    states = {role: source.state() for role, source in board._pipeline.sources().items()}
    return states, {name: array.copy() for name, array in board._admission.bound.protocol.arrays().items()}


def told_by(board):
    """Everything that public names of a boundary return without an argument, or with small numbers.

    So do those of what it shows to auditors, except for the pipeline itself, which holds everything.
    """
    yield from told_by_names(board, set(dir(board)) - set(dir(gym.Wrapper)) - ACTS, board.statistic)
    yield from told_by_names(board.audit, set(dir(board.audit)) - {"observe", "pipeline"}, board.statistic)


def told_by_names(of, names, statistic):
    for name in sorted(names):
        if name.startswith("_"):
            continue
        try:
            value = getattr(of, name)
        except (AttributeError, ValueError):  # there is no network here, or there are no batches by themselves
            continue
        yield name, value
        if not callable(value) or isinstance(value, type):
            continue
        sums = np.zeros(statistic.cells, dtype=np.int64)
        for arguments in ((), (1,), ([1, 1],), (sums,), (sums, 1), (1, sums), (None, None, sums)):
            try:
                yield name, value(*arguments)
            except (AttributeError, TypeError, ValueError, IndexError):
                continue


def parts_of(told):
    """What was told, and what is in it: entries of collections, and fields of data classes."""
    yield told
    if isinstance(told, dict):
        parts = told.values()
    elif dataclasses.is_dataclass(told) and not isinstance(told, type):
        parts = [getattr(told, field.name) for field in dataclasses.fields(told)]
    else:
        parts = told if isinstance(told, list | tuple) else ()
    for part in parts:
        yield from parts_of(part)


@pytest.mark.parametrize("make", BOARDS.values(), ids=BOARDS)
def test_no_public_name_hands_out_noise_or_its_generator(make):
    """``disclose`` gave the next draw of a factorization: later releases build on it (467.7 became 177)."""
    board = make(river(), rng=None)
    board.serve(STILL, 3)
    states, arrays = noises_of(board)
    held = board._admission.bound.protocol.arrays().values()
    for name, told in [*told_by(board), ("bind", board.bind())]:
        for part in parts_of(told):
            assert not isinstance(part, NoiseSource | np.random.Generator), name
            assert not (isinstance(part, np.ndarray) and any(np.shares_memory(part, array) for array in held)), name
    after, kept = noises_of(board)
    assert after == states
    assert all((array == arrays[name]).all() for name, array in kept.items())


# A10: the noise that learners plan with is that of the error law ------------------------------------------------------


def unvisited(release):
    """Entries of the headline sums that no user is in who stays in state 0; moments and networks have seen nothing."""
    headline = getattr(release, release.headline)
    if release.headline == "m":
        return headline[0 if release.pooled else slice(None), 2:]
    if release.headline == "reports":
        return headline[..., 2:, :, :, :]
    return headline[0] if release.headline == "vector_p" else release.ranges


def simulated(make, statistic, users):
    """Boards of several seeds, each with one batch of users who run one policy: what is expected, and what came."""
    values, expected = [], None
    for seed in range(24):
        board = make(seed)
        board.bind(statistic, apart=True)
        if expected is None:
            expected = board.expected_noise(users)
        if statistic == "gradient":
            board.serve(np.zeros(board.network.size), users, rng=np.random.default_rng(seed))
        else:
            board.serve(np.zeros(board.sizes[:2], dtype=int), users)
        values.append(unvisited(board.release))
    return expected, float(np.std(values))


OF_COUNTS = {name for name in BOARDS if "laplace" in name or "gaussian" in name or "unary" in name}
"""Stacks whose mechanism was given, and is for counts; batches may be of reports too."""

COUNTED = [(name, "tabular") for name in BOARDS]
COUNTED += [(name, "reports") for name in BOARDS if name not in OF_COUNTS or "batched" in name]


@pytest.mark.parametrize(("name", "statistic"), COUNTED)
def test_expected_noise_is_that_of_a_simulation(name, statistic):
    """It was 0.0 for counts under local noise, and DPSE planned with it."""

    def make(seed):
        return BOARDS[name](river(), users=200, schedule=200, rng=seed)

    expected, found = simulated(make, statistic, 200)
    assert found == pytest.approx(expected, rel=0.1)
    assert (expected == 0.0) == (name == "open")


def mixture():
    return gym.make("PrivateRL/RiverSwimMixture-v0", horizon=3, n_states=3)


def cart():
    return gym.make("CartPole-v1", max_episode_steps=3)


MOMENTS = {
    "jdp": lambda seed: JDPBillboard(mixture(), 1.0, 1e-6, users=20, schedule=20, rng=seed),
    "jdp laplace": lambda seed: JDPBillboard(mixture(), 1.0, 0.0, users=20, schedule=20, rng=seed),
    "ldp laplace": lambda seed: LDPUserSide(mixture(), 1.0, 0.0, users=20, schedule=20, rng=seed),
    "ldp gaussian": lambda seed: LDPUserSide(mixture(), 1.0, 1e-6, users=20, schedule=20, rng=seed),
    "sdp": lambda seed: SDPShuffler(mixture(), 1.0, 1e-6, users=20, schedule=20, rng=seed),
    "sdp dropout": lambda seed: SDPShuffler(mixture(), 1.0, 1e-6, users=20, schedule=20, dropout=0.4, rng=seed),
}
GRADIENTS = {
    "jdp": lambda seed: JDPBillboard(cart(), 1.0, 1e-6, users=20, schedule=20, rng=seed),
    "jdp laplace": lambda seed: JDPBillboard(cart(), 1.0, 0.0, users=20, schedule=20, rng=seed),
    "ldp": lambda seed: LDPUserSide(cart(), 8.0, 0.0, users=20, schedule=20, rng=seed),
    "ldp gaussian": lambda seed: LDPUserSide(cart(), 8.0, 1e-2, users=20, randomizer="gaussian", schedule=20, rng=seed),
}


@pytest.mark.parametrize("make", MOMENTS.values(), ids=MOMENTS)
def test_expected_noise_of_moments_is_that_of_a_simulation(make):
    expected, found = simulated(make, "linear", 20)
    assert found == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("make", GRADIENTS.values(), ids=GRADIENTS)
def test_expected_noise_of_gradients_is_that_of_a_simulation(make):
    expected, found = simulated(make, "gradient", 20)
    assert found == pytest.approx(expected, rel=0.1)


@pytest.mark.filterwarnings("ignore:calibration='paper'")
@pytest.mark.parametrize("options", [{"dropout": 0.4}, {"calibration": "paper"}], ids=["dropout", "paper"])
def test_expected_noise_of_a_shuffler_counts_noise_bits_that_may_be_missing(options):
    expected, found = simulated(
        lambda seed: sdp(river(), users=2000, schedule=2000, rng=seed, **options), "tabular", 2000
    )
    assert found == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(
    ("epsilon", "moved", "dropout"), [(0.5, 1, 0.0), (2.0, 1, 0.3), (10.0, 1, 0.0), (10.0, 5, 0.3)]
)
def test_expected_noise_bits_are_near_those_that_are_searched_for(epsilon, moved, dropout):
    """From one user to a million. That of fair bits, which was stated, is up to 40 % too small."""
    sums = BinarySums(moved, epsilon, 1e-6, dropout=dropout)
    for users in (1, 3, 20, 33, 130, 1100, 20_000, 3_000_000):
        searched = sums.noise_bits(users).variance(users)
        assert math.sqrt(sums.expected_variance(users) / searched) == pytest.approx(1.0, abs=0.05), users


# A9: what is stated before an agent or a user has come is never less than what is kept --------------------------------


def numbers(board):
    return [(entry.epsilon, entry.delta) for entry in board.ledger.entries]


def only_falls(before, after):
    return all(first[0] >= last[0] and first[1] >= last[1] for first, last in zip(before, after, strict=True))


STATED = {
    **{name: lambda env, make=make, **o: make(env, **{"schedule": 40, **o}) for name, make in BOARDS.items()},
    "ldp pure": lambda env: LDPUserSide(env, 1.0, users=40),
    "ldp with a delta": lambda env: LDPUserSide(env, 1.0, 1e-6, users=40),
    "ldp with a large delta": lambda env: LDPUserSide(env, 1.0, 0.2, users=40),
    "ldp at a large epsilon": lambda env: LDPUserSide(env, 300.0, users=40),
    "jdp pure": lambda env: JDPBillboard(env, 1.0, 0.0, users=40, schedule=20),
    "jdp at a large epsilon": lambda env: JDPBillboard(env, 3000.0, 0.0, users=40, schedule=20),
    "jdp laplace": lambda env: JDPBillboard(env, 1.0, 1e-6, users=40, noise="laplace", schedule=20),
    "jdp visits": lambda env: JDPBillboard(env, 1.0, 1e-6, users=40, schedule=10, visits=3),
    "jdp zero-out": lambda env: JDPBillboard(env, 1.0, 1e-6, users=40, schedule=10, neighbours="zero-out"),
    "jdp around pure": lambda env: JDPBillboard(LDPUserSide(env, 1.0), 1.0, 1e-6, users=40),
    "jdp around a delta": lambda env: JDPBillboard(LDPUserSide(env, 1.0, 1e-6), 1.0, 0.0, users=40),
    "jdp around chosen counts": lambda env: JDPBillboard(
        LDPUserSide(env, 1.0, statistic="tabular"), 1.0, 1e-6, users=8
    ),
    "jdp around chosen reports": lambda env: JDPBillboard(
        LDPUserSide(env, 1.0, statistic="reports"), 1.0, 1e-6, users=40
    ),
    "jdp of few": lambda env: JDPBillboard(env, 1.0, 1e-6, users=3),
    "sdp bits": lambda env: SDPShuffler(env, 1.0, 1e-6, users=40),
    "sdp around pure": lambda env: SDPShuffler(LDPUserSide(env, 1.0), users=40_000),
    "sdp around a delta": lambda env: SDPShuffler(LDPUserSide(env, 1.0, 1e-6), users=40_000),
    "sdp around a smaller delta": lambda env: SDPShuffler(LDPUserSide(env, 1.0, 1e-9), users=40_000),
    "sdp around a chosen randomizer": lambda env: SDPShuffler(
        LDPUserSide(env, 1.0, 1e-6, randomizer="gaussian"), users=40_000
    ),
    "sdp around reports": lambda env: SDPShuffler(LDPUserSide(env, 1.0, 1e-6, statistic="reports"), users=40_000),
    "sdp of reports": lambda env: SDPShuffler(LDPUserSide(env, 1.0, 1e-6), users=40_000, statistic="reports"),
    "jdp paper": lambda env: JDPBillboard(env, 1.0, 1e-6, users=40, calibration="paper"),
    "ldp paper": lambda env: LDPUserSide(env, 1.0, 0.0, users=40, calibration="paper"),
    "sdp paper": lambda env: SDPShuffler(env, 1.0, 1e-6, users=40, calibration="paper"),
}
ENVIRONMENTS = {"tabular": river, "reports": river, "staged-reports": river, "linear": mixture, "gradient": cart}
about_printed_constants = pytest.mark.filterwarnings("ignore:calibration=")


def each(make, statistic, apart):
    """A board, bound where it may be, and its numbers before."""
    try:
        board = make(ENVIRONMENTS[statistic]())
    except (TypeError, ValueError):  # states that are not counted, or a mechanism that is for counts
        return None
    before = numbers(board)
    try:
        board.bind(statistic, apart=apart)
    except ValueError:
        return None
    return board, before


@about_printed_constants
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("make", STATED.values(), ids=STATED)
def test_a_ledger_never_grows_when_an_agent_is_attached(make, apart):
    """LDPUserSide(1, 1e-6) went from delta 0 to 1e-6, and around it SDPShuffler from epsilon 0.043 to 1.0."""
    tried = 0
    for statistic in ENVIRONMENTS:
        met = each(make, statistic, apart)
        if met is not None:
            board, before = met
            bound = numbers(board)
            assert only_falls(before, bound), (statistic, before, bound)
            for other in ENVIRONMENTS:  # a second agent
                board.bind(other, apart=True)
                assert numbers(board) == bound, other
            tried += 1
    assert tried


@about_printed_constants
@pytest.mark.parametrize("make", STATED.values(), ids=STATED)
def test_a_ledger_never_grows_when_users_come(make):
    board = make(river())
    before = numbers(board)
    board.serve(STILL, 1)
    after = numbers(board)
    assert only_falls(before, after)
    board.bind("reports", apart=True)
    assert numbers(board) == after


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in agents.__all__ if isinstance(getattr(agents, name), type)])
def test_a_ledger_never_grows_whichever_agent_is_attached(name):
    kind, attached = getattr(agents, name), 0
    if inspect.isabstract(kind) or not issubclass(kind, agents.Agent):
        return
    for make, env in itertools.product(
        ("ldp with a delta", "sdp around a delta", "jdp around a delta"), (river, mixture, cart)
    ):
        try:
            board = STATED[make](env())
        except (TypeError, ValueError):
            continue
        before = numbers(board)
        try:
            agent = kind(kind.policies[0] if hasattr(kind, "policies") else "TabularPolicy", board)
        except (TypeError, ValueError):
            continue
        assert only_falls(before, numbers(board)), make
        assert (agent.board_guarantee.epsilon, agent.board_guarantee.delta) == numbers(board)[-1]
        attached += 1
    assert attached


def test_bound_boards_state_the_exact_figure():
    board = SDPShuffler(LDPUserSide(river(), 1.0, 1e-6), users=40_000)
    assert numbers(board) == [(1.0, 1e-6), (1.0, 1e-6)]
    board.bind("reports", apart=True)
    (local, mixed), known = numbers(board), board._pipeline.proposal.side.randomizer.blanket
    assert local == (1.0, 0.0)
    assert mixed == (amplified_epsilon(1.0, 1000, 1e-6, known), 1e-6)
    assert mixed[0] < 0.11
    pure = SDPShuffler(LDPUserSide(river(), 1.0), users=40_000)
    assert numbers(pure)[1] == (closed_form_epsilon(1.0, 1000, 1e-6), 1e-6)


def test_a_saved_board_continues_with_the_guarantee_that_it_was_bound_to(tmp_path):
    first = SDPShuffler(LDPUserSide(river(), 1.0, 1e-6), users=2000)
    first.save_state(tmp_path / "state")
    kept = numbers(first)
    second = SDPShuffler(LDPUserSide(river(), 1.0, 1e-6), users=2000)
    second.load_state(tmp_path / "state")
    assert numbers(second) == kept
    assert kept[1][0] < 1.0


# C19: E behind a shuffler --------------------------------------------------------------------------------------------


class Watching:
    """An auditor that keeps the trajectories of users."""

    def __init__(self):
        self.seen = []

    def left(self, users, count):
        assert len(users) == count
        self.seen.append(users)

    def reported(self, vector):
        pass


def shuffled_river(epsilon=1.0, users=20_000, horizon=20, **options):
    env = gym.make("PrivateRL/RiverSwim-v0", horizon=horizon)
    return SDPShuffler(env, epsilon, 1e-6, users=users, statistic="tabular", schedule=users, rng=3, **options)


def paper_error(board):
    """E of SDP-PE: four times the error bound of all families."""
    board.serve([1] * 6, board.users)
    return 4.0 * board.batch.error_bound(0.05)


def test_lemma_10_holds_on_the_default_river():
    """E = H / epsilon up to logarithms, whatever the number of users. It grew like their root (14,349 for 1,455)."""
    assert shuffled_river().source.model.reward_law == "fixed"  # rewards are no bits
    small, large = (paper_error(shuffled_river(users=users)) for users in (2_000, 200_000))
    assert small <= large <= 1.2 * small  # by a logarithm, for a hundred times as many users
    assert 1.7 * small <= paper_error(shuffled_river(0.5, 2_000)) <= 2.0 * small  # as 1 / epsilon, or less
    assert paper_error(shuffled_river(horizon=5, users=2_000)) < small
    for epsilon in (1.0, 10.0):
        board, watching = shuffled_river(epsilon), Watching()
        board.audit.observe(watching)
        E = paper_error(board)
        true = np.zeros(board.statistic.cells, dtype=np.int64)
        rounding = NoiseSource(3, role="users")  # the very coins by which users rounded
        for users in watching.seen:
            board.statistic.encode(users, true, None, uniforms(board.statistic, len(users), rounding))
        exact = board.statistic.sums(true * board.statistic.grid)
        assert exact["r"].sum() > 0
        for family, sums in exact.items():
            assert np.abs(getattr(board.batch, family) - sums).max() <= E / 4.0, family


def test_the_error_of_rewards_does_not_grow_with_users():
    """Rounding rewards to bits adds to sampling errors, whose bounds hold for bits of the same mean."""
    laws = [shuffled_river(users=users) for users in (2_000, 1_000_000)]
    for board in laws:
        board.serve([1] * 6, board.users)
    few, many = (board.batch.noise_std["r"] for board in laws)
    assert many == pytest.approx(few, rel=0.01)
    assert many == laws[1].batch.noise_std["m"]


# Waste won back -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "most"), [(10.0, 1.071), (1.0, 1.089), (0.1, 1.104)])
def test_shuffled_vectors_take_the_order_at_which_they_need_the_least_noise(epsilon, most):
    """Against exact Gaussian noise: 1.114 at epsilon = 0.1 before. Every order has a proof: only noise changes."""
    statistic = MomentLevels(gym.make("PrivateRL/RiverSwimMixture-v0").unwrapped.mixture.features, 20)
    sums = VectorSums(statistic.reach, statistic.most, epsilon, 1e-6)
    deviation = 0.5 * math.sqrt(sums.tau) / statistic.levels
    assert 1.0 < deviation * gaussian_mu(epsilon, 1e-6) / statistic.exact.sensitivity().l2 < most
    assert vector_epsilon(int(sums.tau), 0.5, statistic.reach, statistic.most, 1e-6, epsilon) <= epsilon


def scale_of(board, most):
    board.request = Wanted(ALL, most=most)
    (noise,) = board.audit.noises([20])
    return noise.law, noise.scale


@pytest.mark.parametrize("visits", [2, 3])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (1.0, 0.0), (4.0, 1e-6), (0.2, 1e-3)])
def test_one_report_of_users_who_come_back_has_the_least_noise_of_two_laws(epsilon, delta, visits):
    """Laplace noise was refused, so that one report had 1.5 times the noise at (1, 1e-6) and two visits."""
    board = jdp(river(), epsilon=epsilon, delta=delta, visits=visits, statistic="reports")
    pure = 2.0 * visits / epsilon * math.sqrt(2.0)
    gaussian = math.inf if delta == 0.0 else math.sqrt(2.0 * visits) / gaussian_mu(epsilon, delta)
    assert board.expected_noise(20) <= min(pure, gaussian) * (1.0 + 1e-9)
    given = jdp(river(), epsilon=epsilon, delta=delta, visits=visits, statistic="reports", noise="laplace")
    assert given.expected_noise(20) <= pure


@pytest.mark.parametrize("mix", [(1, 1), (1, 5), (5, 5), (2, 1, 4), (1, 1, 1), (3, 3, 5)])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (1.0, 1e-2), (4.0, 1e-6)])
def test_batches_of_any_numbers_of_reports_cost_no_more_than_the_ledger_says(mix, law, epsilon, delta):
    """Composed by dp-accounting: a user moves so many entries up, and as many down, in each of her batches."""
    board = jdp(river(), epsilon=epsilon, delta=delta, visits=len(mix), statistic="reports", noise=law)
    (stated, kept), total, squares = numbers(board)[0], None, 0.0
    for most in mix:
        found, scale = scale_of(board, most)
        assert found == law
        squares += 2.0 * most / scale**2
        if law == "laplace":
            entry = pld.from_laplace_mechanism(scale, value_discretization_interval=1e-4)
            batch = entry.self_compose(2 * most)
            total = batch if total is None else total.compose(batch)
    if law == "gaussian":
        assert gaussian_epsilon(kept, math.sqrt(squares)) <= stated * (1.0 + 1e-9)
    else:
        assert total.get_epsilon_for_delta(kept) <= stated + 1e-4 * 2 * sum(mix)
    assert stated <= epsilon
    assert kept <= delta


def test_laws_are_not_mixed_because_together_they_would_cost_more():
    """A Laplace batch with half of epsilon and a Gaussian one with mu / sqrt(2), as if each were half of the budget."""
    laplace = pld.from_laplace_mechanism(2.0 / 0.5, value_discretization_interval=1e-4).self_compose(2)
    gaussian = pld.from_gaussian_mechanism(math.sqrt(2.0) / gaussian_mu(1.0, 1e-6), value_discretization_interval=1e-4)
    assert laplace.compose(gaussian).get_delta_for_epsilon(1.0) > 2e-6

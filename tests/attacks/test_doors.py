"""Ways around a promise that were found, each tried again through public names. The numbers are those of the report."""

import copy
import hashlib
import hmac
import json
import os
import sys
import time
import traceback
import warnings
import zipfile

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv
from typer.testing import CliRunner

from private_rl_gym import agents
from private_rl_gym.envs import TabularEnv, TabularModel
from private_rl_gym.lab.cli.app import app
from private_rl_gym.lab.grids.cell import Cell, Choice
from private_rl_gym.lab.grids.store import Record
from private_rl_gym.lab.grids.summary import as_csv, as_markdown, summarize
from private_rl_gym.planning import Policy
from private_rl_gym.planning.network import Layers
from private_rl_gym.privacy import Guarantee, Ledger, TrustModel, Values
from private_rl_gym.privacy.mechanisms.batched import Batched
from private_rl_gym.privacy.mechanisms.running import RunningMechanism
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.requests import Objective
from private_rl_gym.wrappers import JDPBillboard, LDPPerStep, LDPUserSide, OpenBillboard, SDPShuffler
from tests.wrappers.stacks import BOARDS, A, H, S, jdp, ldp, river

every_board = pytest.mark.parametrize("make", BOARDS.values(), ids=BOARDS)
HOSTILE = [-(2**62), -3, -2, -1, A, A + 6, 2**31, 2**62]


def rooms(horizon=1, actions=2):
    coins = np.full((3, actions, 3), 1 / 3)
    return TabularEnv(TabularModel(coins, np.full((3, actions), 0.5), np.full(3, 1 / 3), horizon))


# 1. Actions are checked where counts are made ------------------------------------------------------------------------


def test_1_a_reward_is_never_written_into_a_count():
    """0.5 was printed, and 6.29 proved: a reward of 2^20 units stood in a count that was noised for one."""
    board = JDPBillboard(rooms(), 0.5, 0.0, users=1)
    with pytest.raises(ValueError, match=r"action outside 0\.\.1"):
        board.serve(Policy.trusted(np.full((1, 3), -2), 2), np.array([[0.5, 0.0, 0.5]]))
    assert (board.release.version, board.users_left) == (0, 1)  # refused before anyone was let in


@every_board
@pytest.mark.parametrize("action", HOSTILE)
def test_1_actions_out_of_range_are_refused_before_anyone_comes(make, action):
    board = make(river())
    for table in (np.full((H, S), action), np.where(np.arange(S) == S - 1, action, 0) * np.ones((H, 1), dtype=int)):
        with pytest.raises(ValueError, match="action outside"):
            board.serve(Policy.trusted(table, A), 3)
    assert board.users_left == 40
    board.reset()
    with pytest.raises(gym.error.InvalidAction):
        board.step(action)


@every_board
def test_1_probabilities_that_are_none_are_refused_before_anyone_comes(make):
    board = make(river())
    for wrong, word in (
        (np.full((H, S, A), 0.4), "sums to 0.8"),
        (np.full((H, S, A), np.nan), "finite"),
        (np.stack([np.full((H, S), v) for v in (2, -1)], 2), "negative"),
    ):
        with pytest.raises(ValueError, match=word):
            board.serve(Policy.trusted(np.asarray(wrong, dtype=float), A), 3, rng=np.random.default_rng(0))
    assert board.users_left == 40


def test_1_linear_moments_too():
    """-1 was a segmentation fault."""
    for action in HOSTILE:
        board = JDPBillboard(
            gym.make("PrivateRL/RiverSwimMixture-v0", horizon=H), 1.0, 1e-6, users=5, statistic="linear"
        )
        table = np.full(board.sizes[:2], action)
        with pytest.raises(ValueError, match="action outside"):
            board.serve(Policy.trusted(table, board.sizes[2]), 1, Values(np.zeros((H + 1, board.sizes[1]))))


def test_1_rollouts_too():
    model = river().unwrapped.model
    for action in HOSTILE:
        with pytest.raises(ValueError, match="action outside"):
            model.rollout(Policy.trusted(np.full((H, S), action), A), np.zeros((1, 2 * H + 1)))


class Changing(int):
    """An action that is in the space while it is looked at, and elsewhere when it is converted."""

    def __index__(self):
        return A + 6

    def __int__(self):
        return -1


@pytest.mark.parametrize("make", [*BOARDS.values(), lambda env: LDPPerStep(env, 1.0)], ids=[*BOARDS, "per step"])
def test_1_an_action_is_converted_once(make):
    board = make(river())
    seen = []
    inner = board.unwrapped
    step = inner.step
    inner.step = lambda action: (seen.append(action), step(action))[1]
    board.reset()
    board.step(Changing(1))
    board.step(np.int64(1))
    board.step(np.array(0))
    assert [(type(action), int(action)) for action in seen] == [(int, 1), (int, 1), (int, 0)]


@every_board
def test_1_no_wrapper_inside_can_count_what_is_out_of_range(make):
    class Astray(gym.Wrapper):
        wrong = 0.0

        def step(self, action):
            observation, _, *rest = self.env.step(action)
            return observation, self.wrong, *rest

    for wrong in (2.0, -1.0, float("nan"), float("inf"), 1.0 + 1e-12):
        env = Astray(river())
        env.wrong = wrong
        board = make(env)
        board.reset()
        with pytest.raises(ValueError, match="reward outside"):
            board.step(0)


# 2. What was printed never grows -------------------------------------------------------------------------------------


def test_2_a_small_batch_is_never_closed_under_the_promise_of_a_large_one():
    board = SDPShuffler(LDPUserSide(river(), 4.0, statistic="tabular"), users=20_000, schedule=10_000)
    promise = str(board.ledger)
    board.serve([1] * S, 10_010)
    with pytest.raises(ValueError, match=r"10 reports.* 10000"):
        board.publish()
    assert (board.release.users, str(board.ledger)) == (10_000, promise)
    board.serve([1] * S, 9_990)
    assert (board.release.users, str(board.ledger)) == (20_000, promise)


@pytest.mark.parametrize("inside", ["bits", "reports"])
def test_2_whoever_drops_out_raises_nobodys_epsilon(inside):
    env, users = river(), 400
    if inside == "bits":
        board = SDPShuffler(env, 1.0, 1e-6, users=users, schedule=20, dropout=0.2)
    else:
        inner = LDPUserSide(env, 2.0, statistic="tabular")
        board = SDPShuffler(inner, users=users, schedule=20, smallest_batch=15)
    promise, rng = str(board.ledger), np.random.default_rng(0)
    while board.users_left:
        count = int(min(board.users_left, rng.integers(1, 15)))
        if rng.random() < 0.5:
            board.drop_out(count)
        else:
            board.serve([1] * S, count)
        assert str(board.ledger) == promise
    assert board.release.version > 3


# 3. Time is data -----------------------------------------------------------------------------------------------------


def logged(board, tmp_path):
    from stable_baselines3.common.logger import configure

    agent = agents.UCBVI("TabularPolicy", board)
    agent.set_logger(configure(str(tmp_path), ["json"]))
    agent.learn(20 * H, log_interval=1)
    agent.logger.close()
    return {key for line in (tmp_path / "progress.json").read_text().splitlines() for key in json.loads(line)}


@every_board
def test_3_only_open_boards_say_how_fast_users_were(make, tmp_path):
    board = make(river())
    assert ("time/fps" in logged(board, tmp_path)) == isinstance(board, OpenBillboard)


def test_3_an_agent_whose_own_noise_protects_says_nothing_of_time_either(tmp_path):
    from stable_baselines3.common.logger import configure

    agent = agents.RLSVI("TabularPolicy", river())
    agent.set_logger(configure(str(tmp_path), ["json"]))
    agent.learn(20 * H, log_interval=1)
    agent.logger.close()
    assert "fps" not in (tmp_path / "progress.json").read_text()


class Slow(gym.Wrapper):
    """Users who take their time in one state."""

    def step(self, action):
        found = self.env.step(action)
        time.sleep(0.004 * (found[0] == S - 1))
        return found


def test_3_a_constant_pace_hides_who_was_slow():
    board = OpenBillboard(Slow(river(variant="osband")))
    fast, slow = np.zeros(2 * H + 1), np.full(2 * H + 1, 0.99)
    board.serve([1] * S, fast[None])
    took = {}
    for pace in (None, 0.1):
        board.pace = pace
        for name, tape in (("fast", fast), ("slow", slow)):
            start = time.perf_counter()
            board.serve([1] * S, tape[None])
            took[name, pace] = time.perf_counter() - start
    assert took["slow", None] > took["fast", None] + 0.002
    for name in ("fast", "slow"):
        assert 0.1 <= took[name, 0.1] < 0.2
    board.pace = 0.001
    with pytest.warns(UserWarning, match="stated pace"):
        board.serve([1] * S, np.repeat(slow[None], 3, axis=0))
    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="pace is"):
            board.pace = wrong


# 4. States -----------------------------------------------------------------------------------------------------------


def rewritten(path, change, arrays=dict.copy):
    """A state with another text, resealed as whoever has no key can."""
    with np.load(path) as file:
        found = {name: file[name] for name in file.files}
    meta = json.loads(found.pop("meta").tobytes())
    change(meta)
    arrays(found)
    text = json.dumps(meta).encode()
    found |= {"meta": np.frombuffer(text, dtype=np.uint8)}
    seal = hmac.new(b"", text, hashlib.sha256)
    for name in sorted(found.keys() - {"seal", "meta"}):
        array = np.ascontiguousarray(found[name])
        seal.update(f"{name} {array.dtype.str} {array.shape}".encode() + array.tobytes())
    found["seal"] = np.frombuffer(seal.digest(), dtype=np.uint8)
    with path.open("wb") as file:
        np.savez(file, **found)


@pytest.mark.parametrize(
    "change",
    [
        lambda meta: meta["counters"].update(noise=None),
        lambda meta: meta["counters"].update(gone=-1),
        lambda meta: meta["counters"].update(gone=True),
        lambda meta: meta["counters"].update(version="1"),
        lambda meta: meta.update(identity="../../elsewhere"),
        lambda meta: meta.update(identity=7),
        lambda meta: meta.update(boundary=None),
        lambda meta: meta.update(arrived=10**6),
        lambda meta: meta.update(noise_step=10**6),
        lambda meta: meta.update(seeded={}),
        lambda meta: meta.update(sources={"billboard": {}}),
        lambda meta: meta.update(more=1),
        lambda meta: meta.pop("users"),
    ],
)
def test_4_a_state_sets_known_names_of_known_types_alone(change, tmp_path):
    board = jdp(river(), epsilon=0.01)
    board.serve([1] * S, 5)
    board.save_state(tmp_path / "state")
    rewritten(tmp_path / "state", change)
    again = jdp(river(), epsilon=0.01)
    with pytest.raises(ValueError, match="damaged"):
        again.load_state(tmp_path / "state")
    assert again.release.version == 0
    again.serve([1] * S, 40)
    assert abs(again.release.n - np.rint(again.release.n)).max() == 0
    assert again.release.noise_std["n"] > 1000


def test_4_the_attack_reseals_as_it_should(tmp_path):
    board = jdp(river(), epsilon=0.01)
    board.serve([1] * S, 5)
    board.save_state(tmp_path / "state")
    rewritten(tmp_path / "state", dict.copy)
    again = jdp(river(), epsilon=0.01)
    again.load_state(tmp_path / "state")
    assert again.release.users == board.release.users


def test_4_a_state_with_a_key_is_nobody_elses_to_write(tmp_path):
    key, other = b"k" * 32, b"o" * 32
    board = jdp(river())
    board.serve([1] * S, 5)
    board.save_state(tmp_path / "state", key=key)
    for wrong in (None, other):
        with pytest.raises(ValueError, match="without its key"):
            jdp(river()).load_state(tmp_path / "state", key=wrong)
    good = (tmp_path / "state").read_bytes()
    rewritten(tmp_path / "state", dict.copy, lambda found: found["sums"].__iadd__(1))
    with pytest.raises(ValueError, match="without its key"):
        jdp(river()).load_state(tmp_path / "state", key=key)
    (tmp_path / "state").write_bytes(good)
    jdp(river()).load_state(tmp_path / "state", key=key)
    with pytest.raises(ValueError, match="16 bytes"):
        jdp(river()).save_state(tmp_path / "state", key=b"short")


# 5. Nothing of the learner's runs while users are here ---------------------------------------------------------------


class Peeking(Policy):
    seen: list = []  # noqa: RUF012

    def action(self, stage, state, uniform=None):
        self.seen.append(state)
        return super().action(stage, state, uniform)


class Spy(np.ndarray):
    seen: list = []  # noqa: RUF012

    def __getitem__(self, place):
        Spy.seen.append(place)
        return super().__getitem__(place)

    def __array_finalize__(self, _):
        Spy.seen.append(traceback.extract_stack(limit=3))


class Duck:
    def random(self, *_):
        raise AssertionError("asked while users were here")


def test_5_a_policy_of_somebodys_own_never_sees_a_state():
    board = OpenBillboard(gym.wrappers.TimeLimit(river(), H))  # not compiled
    Peeking.seen.clear()
    board.serve(Peeking(np.ones((H, S), dtype=int), A), 3)
    assert Peeking.seen == []
    spy = np.ones((H, S), dtype=int).view(Spy)
    Spy.seen.clear()
    admitted = []
    inside = board.unwrapped
    reset = inside.reset
    inside.reset = lambda **options: (admitted.append(len(Spy.seen)), reset(**options))[1]
    board.serve(Policy.trusted(spy, A), 3)
    assert len(admitted) == 3
    assert len(Spy.seen) == admitted[0]  # nothing after the first user came


def test_5_actions_are_drawn_from_numpys_own_generators():
    class Child(np.random.Generator):
        pass

    class Bits(np.random.PCG64):
        pass

    coin = np.full((S, A), 0.5)
    for rng in (Duck(), Child(np.random.PCG64(0)), np.random.Generator(Bits(0)), np.random.RandomState(0)):
        board = OpenBillboard(river(), users=3)
        with pytest.raises(TypeError, match="numpy's own generators"):
            board.serve(coin, 3, rng=rng)
        assert board.users_left == 3


def test_5_values_are_copied_when_they_are_set():
    board = JDPBillboard(gym.make("PrivateRL/RiverSwimMixture-v0", horizon=H), 1.0, 1e-6, users=5, statistic="linear")
    mine = np.zeros((H + 1, board.sizes[1])).view(Spy)
    mine.setflags(write=False)
    board.request = Values(mine)
    assert type(board.request.values) is np.ndarray
    assert not np.shares_memory(board.request.values, mine)


# 6. A batch is never counted twice -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("inside", [False, True], ids=["bits", "reports"])
def test_6_an_interrupted_batch_is_never_counted_twice(inside):
    """Interrupted at each line in turn while it closes: it is published once, or lost."""
    policy, line, lost = np.ones((H, S), dtype=int), 0, 0
    while True:
        line += 1
        if inside:
            board = SDPShuffler(LDPUserSide(river(), 12.0, rng=1), users=2_000, schedule=1_000, smallest_batch=900)
        else:
            board = SDPShuffler(river(), 20.0, 1e-6, users=2_000, schedule=1_000, rng=1)
        board.serve(policy, 990)
        if not interrupted(board.publish, line):
            break
        board.publish()
        board.serve(policy, board.users_left)
        counted = board.release.n[0].sum()
        assert counted < 2_000 + 6 * board.release.noise_std["n"] * np.sqrt(S * A)
        lost += counted < 1_500
    assert line > 10
    assert lost < line


def interrupted(call, line):
    """Whether ``call`` came so far that this line of the package was interrupted."""
    seen = 0

    def trace(frame, event, _):
        nonlocal seen
        if "private_rl_gym" not in frame.f_code.co_filename:
            return None
        seen += event == "line"
        if event == "line" and seen == line:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


# 7. RLSVI's noise ----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_7_a_fork_never_draws_the_noise_of_its_parent():
    agent = agents.RLSVI("TabularPolicy", river(horizon=H), constants="theory").learn(5 * H)
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            agent.plan(agent.board.release)
            said = b"drew"
        except RuntimeError as error:
            said = str(error).encode()
        os.write(writing, said)
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        assert b"was forked" in pipe.read()
    agent.plan(agent.board.release)


@every_board
def test_7_rlsvis_account_is_for_exact_counts(make):
    board = make(river())
    agent = agents.RLSVI("TabularPolicy", board).learn(10 * H)
    if isinstance(board, OpenBillboard):
        assert agent.guarantee.covers == "rewards"
    else:
        assert agent.guarantee == board.ledger.outside


# 8. Data files name no code ------------------------------------------------------------------------------------------


def test_8_a_report_runs_no_code_that_the_command_line_does_not_name(tmp_path, monkeypatch):
    (tmp_path / "evil.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    base = {"boundary": {"name": "jdp", "epsilon": 1.0, "delta": 1e-6}, "runs": 400, "users": 1}
    for config, said in (
        ({**base, "target": "evil:x"}, "names the target 'evil:x': add --target"),
        ({**base, "environment": {"name": "evil:Id-v0"}}, "'evil:Id-v0': if you trust it, add --import evil"),
        ({**base, "agent": {"name": "evil:x"}}, "'evil:x': if you trust it, add --import evil"),
        ({**base, "boundary": {"name": "evil:x"}}, "'evil:x': if you trust it, add --import evil"),
        ({**base, "boundary": {"name": "jdp", "counting": "evil:x"}}, "'evil:x': if you trust it, add --import evil"),
        ({**base, "runs": "many"}, "runs is 'many'"),
        ({**base, "make": "evil:x"}, "make"),
        ([], "must be a table"),
    ):
        (tmp_path / "report.json").write_text(json.dumps({"config": config}))
        done = CliRunner().invoke(app, ["audit", "--config", "report.json", "--out", "out"])
        assert done.exit_code == 2, done.output
        assert said in done.output.replace("\n", " ")
        assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda about: about["arguments"].update(env="PrivateRL/RiverSwim-v0"),
        lambda about: about["arguments"].update(tensorboard_log="/somewhere"),
        lambda about: about["arguments"].update(beta=[1]),
        lambda about: about["arguments"].update(beta="x"),
        lambda about: about.update(verbose="loud"),
        lambda about: about.update(num_timesteps=-1),
        lambda about: about.update(sizes=[1, "x", 2]),
        lambda about: about.update(streams={"rng": {}}),
        lambda about: about.update(more=1),
        lambda about: about.pop("seed"),
    ],
)
def test_8_an_agents_zip_sets_what_it_saved_and_nothing_else(change, tmp_path):
    agent = agents.DPUCBVI("TabularPolicy", jdp(river()), seed=1).learn(10 * H)
    agent.save(tmp_path / "agent.zip")
    with zipfile.ZipFile(tmp_path / "agent.zip") as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    about = json.loads(content["agent.json"])
    change(about)
    content["agent.json"] = json.dumps(about).encode()
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    with pytest.raises(ValueError, match="not a saved agent"):
        agents.DPUCBVI.load(tmp_path / "other.zip")
    agents.DPUCBVI.load(tmp_path / "agent.zip")


def test_8_tables_hold_text():
    label = "=HYPERLINK(1)<script>alert(1)</script>|"
    outside = {"model": "none", "neighbours": "replace one user"}
    cell = Cell(Choice("PrivateRL/RiverSwim-v0"), Choice("open"), Choice("UCBVI"), 2, 0, None, label)
    about = {"epsilon": None, "delta": 1.0, "covers": "states and rewards", "guarantee": "none"}
    about |= {"optimal_value": 1.0, "blind_value": 0.0, "ledger": {"outside": outside}}
    record = Record("0", about, np.array([1, 2]), np.array([0.0, -1.0]), np.array([0.0, 0.0]))
    curves = summarize([(cell, record)])
    text = as_csv(curves)
    assert "'=HYPERLINK" in text
    assert not any(part.startswith(("=", '"=')) for line in text.splitlines() for part in line.split(","))
    assert ",-1," in text  # a number stays a number
    assert "<script>" not in as_markdown(curves)
    assert "&lt;script&gt;" in as_markdown(curves)


# 9. What failures leave ----------------------------------------------------------------------------------------------


class Failing(gym.Wrapper):
    """One user in four is refused."""

    users = 0

    def reset(self, **options):
        self.users += 1
        return self.env.reset(**options)

    def step(self, action):
        observation, reward, *rest = self.env.step(action)
        return observation, (7.25 if self.users % 4 == 3 else reward), *rest


def held(error):
    """Everything that the frames of a traceback refer to, but for the boundary itself and what is public."""
    found = []
    for frame, _ in traceback.walk_tb(error.__traceback__):
        found += [value for name, value in frame.f_locals.items() if name != "board"]
    assert error.__context__ is None
    assert error.__cause__ is None
    return found


@every_board
@pytest.mark.parametrize("door", ["serve", "steps", "interrupt"])
def test_9_no_traceback_holds_a_users_data(make, door, monkeypatch):
    board = make(Failing(river()))
    if door == "interrupt":
        from private_rl_gym.wrappers.sources import EnvironmentSource

        def interrupted(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(EnvironmentSource, "walk", interrupted)

    def come():
        if door != "steps":
            board.serve(np.ones((H, S), dtype=int), 8)
        for _ in range(4):
            board.reset()
            for _ in range(H):
                board.step(1)

    with pytest.raises(BaseException) as caught:  # noqa: PT011 - an interrupt, too
        come()
    assert isinstance(caught.value, KeyboardInterrupt if door == "interrupt" else ValueError)
    for value in held(caught.value):
        assert type(value).__name__ not in ("Trajectories", "UserSteps", "Pacer")
        assert not (isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim)
    assert "7.25" not in "".join(traceback.format_exception(caught.value))


def test_9_nothing_inside_is_asked_through_the_boundary():
    inside = Monitor(river())
    for board in (OpenBillboard(inside), jdp(Monitor(river())), LDPPerStep(Monitor(river()), 1.0)):
        vector = DummyVecEnv([lambda board=board: board])
        for name in ("get_episode_rewards", "get_total_steps", "model"):
            with pytest.raises(AttributeError, match="not read attributes from inside"):
                vector.env_method(name)
            with pytest.raises(AttributeError, match="not read attributes from inside"):
                vector.get_attr(name)
            with pytest.raises(AttributeError, match="does not set attributes inside"):
                board.set_wrapper_attr(name, 1)
            assert not board.has_wrapper_attr(name)
        assert vector.get_attr("ledger") == [board.ledger]
    assert inside.get_episode_rewards() == []  # the experimenter, who has it at hand


# 10. What the ledger says --------------------------------------------------------------------------------------------


def promise(epsilon, delta=0.0, **about):
    return Guarantee(TrustModel.JDP, epsilon, delta, 1_000, "noise", **about)


@pytest.mark.parametrize(
    ("weak", "strong"),
    [
        (promise(0.5, seeded=True), promise(1.0)),
        (promise(0.99, 0.9), promise(1.0)),
        (promise(0.5, 0.1), promise(1.0, 1e-6)),
        (promise(2.0), promise(1.0, 1e-6)),
        (promise(60.0), promise(50.0)),
        (promise(1.0, 1e-5), promise(1.0, 1e-6)),
        (Guarantee(TrustModel.NONE, float("inf"), 1.0, None, "nothing"), promise(1e6, seeded=True)),
    ],
)
def test_10_the_strongest_promise_is_the_one_that_protects_most(weak, strong):
    assert Ledger((weak, strong)).outside == Ledger((strong, weak)).outside == strong


def test_10_a_stack_with_a_seed_inside_promises_what_its_honest_part_does():
    board = JDPBillboard(ldp(river(), epsilon=0.5, rng=3), 1.0, 0.0, users=40)
    assert board.ledger.epsilon == 1.0
    assert not board.ledger.outside.seeded


def test_10_the_sentence_says_the_odds():
    for model in (TrustModel.JDP, TrustModel.LDP, TrustModel.SDP):
        large = Guarantee(model, 500.0, 0.1, 1_000, "noise").sentence()
        assert "nearly nothing" not in large
        assert "e^500" in large
        assert "epsilon is above 10" in large
        assert "delta is above 1 / 1000 users" in large
        small = Guarantee(model, 1.0, 1e-6, 1_000, "noise").sentence()
        assert "2.72 times as likely" in small
        assert "with probability 1e-06" in small
        assert "Warning" not in small


@pytest.mark.parametrize("make", [jdp, ldp], ids=["jdp", "ldp"])
def test_10_noise_is_drawn_however_large_epsilon_is(make):
    for name in ("k-ary-tree", "binary-tree", "batched") if make is jdp else ("laplace",):
        options = {"delta": 0.0, "counting": name} if make is jdp else {"randomizer": name}
        board = make(river(), epsilon=1e6, rng=None, users=1, **options)
        assert board.release.noise_std["m"] == 0.0 or board.release.version  # nothing yet
        board.serve([1] * S, 1)
        assert board.ledger.epsilon < 1e4
        scale = board.release.noise_std["m"] / np.sqrt(2)
        assert scale > 1e-7  # two-sided geometric noise of scale 1 / 30: it is not zero for sure


# 11. Said once -------------------------------------------------------------------------------------------------------


def warned(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in found]


def test_11_a_private_agent_on_a_bare_environment_says_that_it_is_not_private():
    for name in ("PUCB", "PrivateUCBVI", "PrivateUCBPO", "DPUCBVI"):
        said = warned(lambda name=name: getattr(agents, name)("TabularPolicy", river()).learn(3 * H))
        assert [one for one in said if "This run is not private" in one] == said
        assert len(said) == 1
        assert warned(lambda name=name: getattr(agents, name)("TabularPolicy", OpenBillboard(river()))) == []
    for name in ("UCBVI", "UBEV", "PSRL"):
        assert warned(lambda name=name: getattr(agents, name)("TabularPolicy", river())) == []


def test_11_whoever_trains_on_withheld_rewards_is_told_once():
    board = jdp(river())

    def train():
        for _ in range(3):
            board.reset()
            for _ in range(H):
                board.step(1)

    said = warned(train)
    assert len(said) == 1
    assert "withholds rewards" in said[0]
    assert "private_model()" in said[0]


def test_11_wrappers_that_agents_would_ignore_are_named():
    outside = gym.wrappers.TimeLimit(Monitor(jdp(river())), 3)
    said = warned(lambda: agents.DPUCBVI("TabularPolicy", outside))
    assert len(said) == 1
    assert said[0].startswith("TimeLimit, Monitor outside the JDPBillboard")


# 13. An objective that is asked of users switches no clip off ---------------------------------------------------------


@pytest.mark.parametrize(("reach", "clip"), [(1e166, 1e-172), (1e150, 1e-170), (1e170, 1e-300), (1e-300, 1e-300)])
def test_13_no_objective_makes_a_user_longer_than_one(reach, clip):
    """6.5 million was found where one is proved: squares of what was clipped had vanished."""
    board = OpenBillboard(gym.make("CartPole-v1", max_episode_steps=20), statistic=Layers((4,)))
    theta = np.random.default_rng(0).normal(size=board.source.network.size)
    for scale in (0.1, 50.0):
        asked = Objective(np.zeros(20), reach=reach, clip=clip, shares=(1.0, 0.0, 0.0, 0.0))
        board.serve(scale * theta, np.array([3]), asked, rng=np.random.default_rng(1))
        assert np.linalg.norm(board.batch.gradient) <= 1.0 + 1e-6


# 14. Answers are drawn among as many values as doubles can draw alike -------------------------------------------------


class Many(gym.Env):
    """Observations with very many values."""

    action_space = gym.spaces.Discrete(1)

    def __init__(self, space):
        self.observation_space = space


@pytest.mark.parametrize("space", [gym.spaces.MultiDiscrete([3, 2**60]), gym.spaces.Discrete(2**21)])
def test_14_so_many_values_are_refused(space):
    """An odd answer told the first of 2^60 values from the last: doubles between 0 and 1 are multiples of 2^-53."""
    with pytest.raises(ValueError, match="from at most 1,048,576"):
        LDPPerStep(Many(space), 1.0, horizon=1)


# 15. No cell of a fine grid is hit by more doubles than its neighbour -------------------------------------------------


class Nothing(NoiseSource):
    """A source whose normals are all zero, as if every double fell into one cell."""

    def gaussian(self, out):
        out[:] = 0.0


@pytest.mark.parametrize(("scale", "spread"), [(2.0**10, 2.0**-13), (1.0, 0.0)])
def test_15_normals_on_fine_grids_are_spread_over_many_cells(scale, spread):
    """On gradients of 35,000 parameters at epsilon = 3e-6, 23 of 32 guesses were right that should have been chance."""
    grid = np.full(4_000, 2.0**-26)
    noise = RunningMechanism(Batched(1, len(grid), "gaussian"), scale, grid, Nothing(1))
    found = noise.add(np.zeros(len(grid), dtype=np.int64), 1) / scale
    assert (np.abs(found) <= 0.5 * spread).all()
    assert found.std() == pytest.approx(spread / 12**0.5, rel=0.05)


# 16. Printed constants have the least noise, too ----------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:calibration='paper'")
def test_16_no_printed_constant_makes_noise_that_is_never_drawn():
    """At a printed epsilon of 200 a release was the bare count of one user: the ledger said 400."""
    river_of_one = gym.make("PrivateRL/RiverSwim-v0", horizon=1)
    for board in (
        JDPBillboard(river_of_one, 200.0, 0.0, users=1, calibration="paper"),
        LDPUserSide(river_of_one, 200.0, calibration="paper"),
    ):
        board.bind()
        (scale,) = {term.scale for term in board.audit.noises([1])}
        assert scale >= board.statistic.sensitivity().units[1] / 30.0
        assert board.ledger.epsilon < 200.0


def test_boundaries_are_never_copied():
    for make in (*BOARDS.values(), lambda env: LDPPerStep(env, 1.0)):
        board = make(river())
        for duplicate in (copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="not copied or pickled"):
                duplicate(board)

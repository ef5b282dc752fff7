"""Ten thousand hostile inputs, seeded: a sentence or a right result each, never a crash, never other sensitivities."""

import io
import json
import warnings
import zipfile
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym import agents
from private_rl_gym.lab.audits import AuditConfig
from private_rl_gym.lab.grids.grid import GridError, grid_of
from private_rl_gym.planning import Policy
from private_rl_gym.privacy import Values
from private_rl_gym.wrappers import BudgetExhausted, JDPBillboard, OpenBillboard
from tests.attacks.test_doors import rewritten
from tests.wrappers.stacks import A, H, S, jdp, ldp, river, sdp

pytestmark = pytest.mark.slow
SENTENCES = (ValueError, TypeError, BudgetExhausted)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def said(error):
    """A sentence: something that a person reads, and nothing that only a debugger does."""
    text = str(error)
    assert len(text) > 15, repr(error)
    assert " " in text


def number(rng):
    pool = [
        -1,
        0,
        1,
        2,
        7,
        -(2**63),
        2**62,
        2**31,
        0.5,
        -0.0,
        1e-300,
        1e300,
        float("nan"),
        float("inf"),
        True,
        None,
        "1",
        "",
    ]
    return pool[rng.integers(len(pool))]


def array(rng):
    """An array of almost the right kind, or of quite another."""
    shapes = [
        (S,),
        (H, S),
        (H, S, A),
        (S, A),
        (H + 1, S),
        (0,),
        (),
        (1, 1, 1, 1),
        (H, S + 1),
        (S, H),
        (2, 2 * H + 1),
        (2 * H + 1,),
    ]
    shape = shapes[rng.integers(len(shapes))]
    kind = rng.integers(8)
    if kind == 0:
        return rng.integers(A, size=shape)
    if kind == 1:
        return rng.integers(-3, A + 3, size=shape)
    if kind == 2:
        found = rng.random(shape)
        return found / np.maximum(found.sum(axis=-1, keepdims=True), 1e-9) if found.ndim else found
    if kind == 3:
        return rng.random(shape).astype(rng.choice(["f2", "f4", "f8", "c8"]))
    if kind == 4:
        return rng.integers(0, 2, size=shape).astype(rng.choice(["?", "i1", "u8", "i2", "S1", "U1"]))
    if kind == 5:
        return np.full(shape, number(rng), dtype=object)
    if kind == 6:
        found = rng.random(shape)
        if found.size:
            found.flat[rng.integers(found.size)] = rng.choice([np.nan, np.inf, -1.0, 2.0, 1.0, 1e308])
        return found
    return rng.integers(A, size=shape).tolist()


@pytest.mark.parametrize("part", range(5))
def test_policies(part):
    """2,500: whatever is served, users take H actions that there are, and are paid what can be."""
    rng = np.random.default_rng([1, part])
    env = river()
    for _ in range(500):
        board = OpenBillboard(env) if rng.random() < 0.7 else jdp(env)
        thing = array(rng) if rng.random() < 0.9 else number(rng)
        if rng.random() < 0.5:
            thing = Policy.trusted(thing, number(rng) if rng.random() < 0.3 else A)
        ask = Values(array(rng)) if rng.random() < 0.2 else None
        rng_of_agent = [None, np.random.default_rng(0), 5, "x"][rng.integers(4)]
        try:
            served = board.serve(thing, 3, ask, rng=rng_of_agent)
        except (*SENTENCES, AttributeError) as error:
            if not isinstance(error, AttributeError):
                said(error)
            else:
                assert isinstance(thing, Policy)  # whose table is no array at all
            assert board.release.users == 0
            continue
        assert served == board.release.users == 3
        if isinstance(board, OpenBillboard):
            release = board.release
            assert (release.n.sum(axis=(1, 2)) == 3).all()
            assert release.m.min() >= 0
            assert ((release.r >= 0) & (release.r <= release.n)).all()


def test_tapes():
    """1,500: users who are no users are refused, by both doors."""
    rng, env = np.random.default_rng(2), river()
    for _ in range(1_500):
        board = OpenBillboard(env, users=40)
        thing = array(rng) if rng.random() < 0.9 else number(rng)
        try:
            if rng.random() < 0.5:
                board.serve([1] * S, thing)
            else:
                board.reset(options={"user": thing})
        except SENTENCES as error:
            said(error)
            continue
        assert board.release.users == 0 or (board.release.n.sum(axis=(1, 2)) == board.release.users).all()


@pytest.mark.parametrize("name", ["UCBVI", "DPUCBVI", "PUCB", "PrivateUCBPO", "PSRL", "RLSVI"])
def test_releases(name):
    """1,200: plans from numbers that no boundary would publish are policies all the same, or a sentence."""
    rng = np.random.default_rng([3, len(name)])
    agent = getattr(agents, name)("TabularPolicy", OpenBillboard(river()), seed=0)
    true = agent.board.release
    for _ in range(200):
        wild = {}
        for family in "nmr":
            found = rng.normal(size=getattr(true, family).shape) * 10.0 ** rng.integers(-3, 12)
            if rng.random() < 0.3:
                found.flat[rng.integers(found.size)] = rng.choice([np.nan, np.inf, -np.inf, 1e308, -1e308])
            wild[family] = found
        try:
            policy = agent.plan(replace(true, users=int(rng.integers(1, 9)), **wild))
        except SENTENCES as error:
            said(error)
            continue
        table = np.asarray(policy.table)
        if policy.deterministic:
            assert ((table >= 0) & (table < A)).all()
        else:
            np.testing.assert_allclose(table.sum(axis=-1), 1.0)


def scrambled(rng, content):
    """Bytes with some of them changed, missing, or doubled."""
    found = bytearray(content)
    for _ in range(int(rng.integers(1, 6))):
        kind, place = rng.integers(3), int(rng.integers(len(found)))
        if kind == 0:
            found[place] = int(rng.integers(256))
        elif kind == 1:
            del found[place : place + int(rng.integers(1, 200))]
        else:
            found[place:place] = rng.bytes(int(rng.integers(1, 50)))
        if not found:
            break
    return bytes(found)


def mutate(rng, tree):
    """A value somewhere in a tree of JSON, changed."""
    keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
    if not keys:
        return
    key = keys[rng.integers(len(keys))]
    if isinstance(tree[key], dict | list) and tree[key] and rng.random() < 0.7:
        mutate(rng, tree[key])
    elif isinstance(tree, dict) and rng.random() < 0.2:
        del tree[key]
    else:
        options = [number(rng), {}, [], {"x": 1}, [number(rng)], "../" * 3, 10**40]
        tree[key] = options[rng.integers(len(options))]


@pytest.mark.parametrize("stack", ["jdp", "ldp", "sdp"])
def test_states(stack, tmp_path):
    """1,500: a state is taken up whole, or refused with a sentence and nothing taken up."""
    rng = np.random.default_rng([4, len(stack), ord(stack[0])])
    make = {"jdp": jdp, "ldp": ldp, "sdp": lambda env: sdp(env, schedule=4)}[stack]
    for case in range(500):
        if case % 50 == 0:  # a new one, as states are continued once
            board = make(river())
            board.serve([1] * S, 6)
            board.save_state(tmp_path / "good")
            good = (tmp_path / "good").read_bytes()
        path = tmp_path / f"state{case}"
        path.write_bytes(good if case % 2 else scrambled(rng, good))
        if case % 2:
            rewritten(path, lambda meta: mutate(rng, meta))
        again = make(river())
        promise = str(again.ledger)
        try:
            again.load_state(path)
        except ValueError as error:
            said(error)
            assert again.release.version == 0
        assert again.users_left == 40 - again.release.users or again.release.users <= 40
        again.serve([1] * S, 4)
        assert str(again.ledger) == promise
        assert again.release.noise_std["n"] > 1.0


@pytest.mark.parametrize("name", ["DPUCBVI", "SDPPE", "RLSVI"])
def test_zips(name, tmp_path):
    """1,500: an agent is what was saved, or a sentence; what it plays are actions that there are."""
    rng = np.random.default_rng([5, len(name)])
    kind = getattr(agents, name)
    options = {"first_stage": 4} if name == "SDPPE" else {}
    board = sdp(river(), users=400, schedule=40) if name == "SDPPE" else OpenBillboard(river())
    agent = kind("TabularPolicy", board, seed=1, **options).learn(100 * H)
    agent.save(tmp_path / "good.zip")
    good = (tmp_path / "good.zip").read_bytes()
    with zipfile.ZipFile(io.BytesIO(good)) as archive:
        parts = {entry: archive.read(entry) for entry in archive.namelist()}
    for case in range(500):
        content = scrambled(rng, good)
        if case % 2:
            changed = dict(parts)
            about = json.loads(changed["agent.json"])
            if rng.random() < 0.5:
                mutate(rng, about)
            else:
                names = [entry for entry in changed if entry.endswith(".npy")]
                stream = io.BytesIO()
                np.save(stream, array(rng), allow_pickle=True)
                changed[names[rng.integers(len(names))]] = stream.getvalue()
            changed["agent.json"] = json.dumps(about).encode()
            out = io.BytesIO()
            with zipfile.ZipFile(out, "w") as archive:
                for entry, data in changed.items():
                    archive.writestr(entry, data)
            content = out.getvalue()
        (tmp_path / "bad.zip").write_bytes(content)
        with_board = rng.random() < 0.5
        try:
            again = kind.load(tmp_path / "bad.zip", env=board if with_board else None)
        except SENTENCES as error:
            said(error)
            continue
        try:
            action, _ = again.predict(0)
        except SENTENCES as error:
            said(error)
            continue
        assert 0 <= int(action) < A


def test_configurations():
    """2,000: a grid or an audit, or a sentence."""
    rng = np.random.default_rng(6)
    good = {
        "name": "river",
        "users": 100,
        "seeds": 2,
        "environment": {"id": "RiverSwim", "horizon": 5},
        "runs": [
            {"agent": "UCBVI", "boundary": "open"},
            {"agent": "DPUCBVI", "boundary": {"name": "jdp", "epsilon": [1.0, 2.0], "delta": 1e-6}, "label": "ours"},
        ],
    }
    plan = AuditConfig().to_dict()
    for case in range(2_000):
        tree = json.loads(json.dumps(good if case % 2 else plan))
        for _ in range(int(rng.integers(1, 4))):
            mutate(rng, tree)
        try:
            if case % 2:
                assert len(grid_of(tree).cells) >= 1
            else:
                AuditConfig.from_dict(tree).check()
        except GridError as error:
            said(error)


@pytest.mark.parametrize("seed", range(3))
def test_values_of_linear_learners_never_change_what_a_user_moves(seed):
    """300: whatever values a server sends, a user's moments stay within the sensitivity that is stated."""
    rng = np.random.default_rng([7, seed])
    env = gym.make("PrivateRL/RiverSwimMixture-v0", horizon=H)
    for _ in range(100):
        board = JDPBillboard(env, 1.0, 1e-6, users=4, statistic="linear")
        values = Values(rng.normal(size=(H + 1, board.sizes[1])) * 10.0 ** rng.integers(-5, 300))
        policy = Policy.trusted(rng.integers(board.sizes[2], size=board.sizes[:2]), board.sizes[2])
        open_boards = [OpenBillboard(env, statistic="linear") for _ in range(2)]
        tapes = rng.random((2, 2 * H + 1))
        for one, tape in zip(open_boards, tapes, strict=True):
            one.serve(policy, tape[None], values)
        statistic = board.statistic
        stated = statistic.sensitivity()
        moved = [statistic.vector(one.release.sums()) for one in open_boards]
        assert np.linalg.norm(moved[0] - moved[1]) <= stated.l2 * (1 + 1e-9)
        assert np.abs(moved[0] - moved[1]).sum() <= stated.l1 * (1 + 1e-9)

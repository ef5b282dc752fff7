"""Ten thousand public calls with hostile arguments: each returns, or raises a sentence of this package.

An error is bare if no ``raise`` statement of this package raised it: its message is then about arrays and types that
the caller never named. Python's errors about names of arguments are sentences, and Gymnasium's about environments.
"""

import ast
import contextlib
import inspect
import io
import math
import resource
import signal
import tempfile
import traceback
import warnings
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from typer.testing import CliRunner

import private_rl_gym
from private_rl_gym import agents, envs, make_private, planning, privacy, wrappers
from private_rl_gym.lab.audits import AuditConfig
from private_rl_gym.lab.cli.app import app
from private_rl_gym.lab.grids.grid import grid_of
from private_rl_gym.lab.papers import bounds
from private_rl_gym.lab.planner.budget import Deployment, budget
from private_rl_gym.lab.tables.offline import learn_from_table
from private_rl_gym.planning import LinearFeatures, Policy
from private_rl_gym.planning import memory as of_planning
from private_rl_gym.planning.network import Layers
from private_rl_gym.privacy import Values, audit, mechanisms
from private_rl_gym.privacy.accounting import conversion
from private_rl_gym.privacy.accounting.composition import ApproximateDP, GaussianEvent, LaplaceEvent, PureDP
from private_rl_gym.privacy.requests import Objective, Wanted
from private_rl_gym.privacy.schedule import Schedule
from private_rl_gym.wrappers import Episodes
from private_rl_gym.wrappers import memory as of_boundaries
from private_rl_gym.wrappers.sources import BadUserError
from tests.wrappers.stacks import A, H, S, jdp, ldp, river, sdp

HOME = Path(private_rl_gym.__file__).parent
SECONDS = 60.0
"""A call that takes longer hangs."""

MEMORY = 4 * 2**30
"""Bytes that calls may take beside what is there already."""


def hostile(rng):
    """A value that no argument is made for, or that a careless caller hands over."""
    numbers = [
        -1,
        0,
        1,
        2,
        7,
        0.5,
        -0.0,
        -0.5,
        1.5,
        1e300,
        -1e300,
        1e-300,
        1e-9,
        10**6,
        10**9,
        10**12,
        10**30,
        -(2**63),
    ]
    limits = [2**31, 2**63, 2**64, math.nan, math.inf, -math.inf, 10**400]
    words = ["", "x", "7", "1e3", "nan", "tabular", "jdp", b"", b"0" * 16, "../x", "\0"]
    others = [None, True, False, [], {}, (), set(), object(), int, lambda *_: None, ..., 1j, range(3), {"x": 1}, {1: 2}]
    exact = [Fraction(1, 3), Decimal("0.1"), Decimal("NaN"), Decimal("Infinity")]
    scalars = [np.float16(0.5), np.float32("nan"), np.float64(2.0), np.int8(-1), np.uint64(2**63), np.bool_(True)]
    scalars += [np.datetime64("2020"), np.str_("x"), np.longdouble(1), np.complex64(1)]
    shapes = [
        (),
        (0,),
        (1,),
        (3,),
        (S,),
        (S, A),
        (H, S),
        (H, S, A),
        (H + 1, S),
        (2 * H + 1,),
        (2, 2 * H + 1),
        (1, 1, 1, 1),
    ]
    shape = shapes[rng.integers(len(shapes))]
    arrays = [
        rng.random(shape),
        rng.random(shape).astype("f2"),
        rng.integers(-1, A + 1, shape),
        rng.integers(0, A, shape).astype("u1"),
        rng.integers(0, 2, shape).astype(bool),
        np.full(shape, math.nan),
        np.full(shape, 1e300),
        np.full(shape, -1),
        np.full(shape, "x"),
        np.full(shape, None, dtype=object),
        rng.random(shape).astype(complex),
        rng.integers(0, A, shape).tolist(),
        [[1], [1, 2]],
        [1, "x"],
        [math.nan],
        [10**30],
    ]
    pools = [numbers, limits, words, others, exact, scalars, arrays]
    pool = pools[rng.choice(len(pools), p=[0.25, 0.1, 0.1, 0.2, 0.05, 0.1, 0.2])]
    return pool[rng.integers(len(pool))]


def spoiled(rng, arguments, names=()):
    """The arguments, of which one, two or three have hostile values, and the names of these."""
    known = [*arguments, *names]
    chosen = rng.choice(known, size=min(len(known), int(rng.choice([1, 1, 1, 2, 3]))), replace=False)
    return {**arguments, **{str(name): hostile(rng) for name in chosen}}


# What is called ------------------------------------------------------------------------------------------------------

COMMON = ("statistic", "schedule", "stationary", "rng", "horizon", "reward_range")
OPTIONS = {
    "JDPBillboard": (*COMMON, "counting", "noise", "calibration", "public_start", "visits", "neighbours"),
    "LDPUserSide": (*COMMON, "randomizer", "calibration"),
    "SDPShuffler": (*COMMON, "smallest_batch", "calibration", "dropout", "simulation"),
    "OpenBillboard": (*COMMON, "visits"),
}
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "users": 40}


def boundaries(rng):
    """A constructor of a boundary, and a user who comes."""
    name = str(rng.choice(list(OPTIONS)))
    kind = getattr(wrappers, name)
    given = {} if name == "OpenBillboard" else {**BUDGET, "delta": 0.0} if name == "LDPUserSide" else dict(BUDGET)
    if name == "SDPShuffler" and rng.random() < 0.2:
        env, given = ldp(river()), {}
    elif name == "JDPBillboard" and rng.random() < 0.2:
        env = ldp(river())
    else:
        env = [river(), cart(), mixture()][rng.choice(3, p=[0.7, 0.15, 0.15])]
    if env.spec is not None and "Mixture" in env.spec.id and rng.random() < 0.7:
        given["statistic"] = "linear"
    given = spoiled(rng, {"env": env, **given}, OPTIONS[name])

    def call():
        board = kind(**given)
        assert str(board.ledger)
        assert repr(board)
        assert board.memory >= 0
        if env.spec is not None and "River" in env.spec.id and board.statistic.name == "tabular":
            board.serve([1] * S, 2)
            assert board.release.users in (0, 2)

    return name, given, call


def per_step(rng):
    given = spoiled(
        rng,
        {"env": [river(), cart()][rng.integers(2)], "epsilon": 1.0},
        ("rng", "horizon", "reward_range", "shares", "steps", "low", "high"),
    )

    def call():
        board = wrappers.LDPPerStep(**given)
        board.reset()
        board.step(0)
        assert str(board.ledger)
        assert repr(board)

    return "LDPPerStep", given, call


def adapters(rng):
    if rng.random() < 0.3:
        given = {"env": hostile(rng)}
        return "FlattenSpaces", given, lambda: wrappers.FlattenSpaces(**given)
    given = spoiled(rng, {"env": cart(), "bins": 3, "low": [-2.0] * 4, "high": [2.0] * 4})

    def call():
        env = wrappers.Discretize(**given)
        env.reset(seed=0)

    return "Discretize", given, call


@cache
def features():
    return LinearFeatures.tabular(S, A)


def cart():
    return gym.make("CartPole-v1", max_episode_steps=5)


def mixture():
    return gym.make("PrivateRL/RiverSwimMixture-v0", horizon=H, n_states=S)


def board_of(rng):
    kinds = [
        lambda: wrappers.OpenBillboard(river(), users=40),
        lambda: jdp(river()),
        lambda: jdp(river(), counting="batched"),
        lambda: ldp(river()),
        lambda: sdp(river()),
        lambda: jdp(river(), statistic="reports"),
        lambda: jdp(mixture(), statistic="linear"),
        lambda: jdp(cart(), statistic=Layers((2,))),
        lambda: sdp(ldp(river()), epsilon=None, delta=None),
    ]
    return kinds[rng.integers(len(kinds))]()


def table():
    return {
        name: np.array(column)
        for name, column in {
            "user": [1, 1, 2],
            "stage": [0, 1, 0],
            "state": [0, 1, 0],
            "action": [0, 1, 1],
            "reward": [0.0, 1.0, 0.0],
            "next_state": [1, 1, 0],
        }.items()
    }


def requests(rng):
    kind = [Values, Wanted, Objective][rng.integers(3)]
    if kind is Values:
        return kind(**spoiled(rng, {"values": np.zeros((H + 1, S))}))
    if kind is Wanted:
        return kind(**spoiled(rng, {"cells": np.ones((S, A), dtype=bool)}, ("anywhere", "starts", "most", "by_stage")))
    return kind(
        **spoiled(
            rng,
            {"baseline": np.zeros(5)},
            (
                "reach",
                "clip",
                "discount",
                "shares",
                "local_steps",
                "local_rate",
                "ratio",
                "critic",
                "mixing",
                "entropy",
            ),
        )
    )


def methods(rng):
    """A method of a boundary that stands."""
    board = board_of(rng)
    if isinstance(board, wrappers.JDPBillboard) and rng.random() < 0.5 and board.statistic.name == "tabular":
        board.serve([1] * S, 3)
    request = requests(rng) if rng.random() < 0.3 else None
    calls = {
        "serve": ({"policy": [1] * S, "users": 2}, ("request", "rng")),
        "bind": ({"statistic": "tabular"}, ("apart",)),
        "begin_batch": ({"users": 3}, ()),
        "ingest": ({"episodes": table()}, ("columns", "bad_rows", "request", "owner")),
        "private_model": ({}, ("render_mode", "belief", "start", "rng")),
        "expected_noise": ({"users": 3}, ("request",)),
        "noises": ({"batches": [3, 3]}, ()),
        "reset": ({}, ("seed", "options")),
        "step": ({"action": 0}, ()),
        "invite": ({"users": np.full((2, 2 * H + 1), 0.5)}, ()),
        "save_state": ({"path": home() / "state"}, ("key",)),
        "load_state": ({"path": home() / "state"}, ("key",)),
        "drop_out": ({}, ("users",)),
        "pace": ({"seconds": 0.0}, ()),
        "request": ({"request": None}, ()),
    }
    name = str(rng.choice(list(calls)))
    if name == "drop_out" and not hasattr(board, "drop_out"):
        name = "serve"
    base, names = calls[name]
    if name == "reset" and rng.random() < 0.5:
        base = (
            {"options": {"user": hostile(rng), "x": 1}} if rng.random() < 0.7 else {"options": {"user": hostile(rng)}}
        )
        given = base
    elif name == "ingest" and rng.random() < 0.6:
        given = {"episodes": spoiled(rng, table()), **({"bad_rows": "empty"} if rng.random() < 0.5 else {})}
        if rng.random() < 0.3:
            given["episodes"] = Episodes(
                **spoiled(
                    rng,
                    {
                        "user": [1, 2],
                        "state": np.zeros((2, H), int),
                        "action": np.zeros((2, H), int),
                        "reward": np.zeros((2, H)),
                    },
                    ("next_state", "length"),
                )
            )
        if rng.random() < 0.2:
            given["columns"] = {"user": hostile(rng)}
    else:
        given = spoiled(rng, base, names)
        if request is not None and ("request" in names or name == "request"):
            given["request"] = request

    def call():
        if name == "step":
            board.reset(seed=0)
        if name in ("pace", "request"):
            setattr(board, name, *given.values())
        else:
            getattr(board.audit if name == "noises" else board, name)(**given)

    return f"{type(board).__name__}.{name}", given, call


AGENT_OPTIONS = {
    "APEVE": ("search", "constants", "gap_scale", "noise_scale", "growth", "first_stage", "most_policies"),
    "DPAPVI": ("constants", "bonus_scale", "noise_scale"),
    "DPPPO": (
        "learning_rate",
        "batch_size",
        "n_epochs",
        "gamma",
        "gae_lambda",
        "clip_range",
        "clip",
        "momentum",
        "ent_coef",
        "policy_kwargs",
    ),
    "DPPolicyGradient": ("learning_rate", "batch_size", "gamma", "clip", "momentum", "ent_coef", "policy_kwargs"),
    "DPSE": ("constants", "width_scale"),
    "DPUCBVI": ("constants", "bonus_scale", "noise_scale"),
    "FrugalUCBVI": ("noise_bonus", "sampling_bonus", "explorers_bonus", "explorers", "stationary"),
    "LDPOBI": ("alpha",),
    "LDPUCRLVTR": ("constants", "bonus_scale", "shift_scale"),
    "OPPO": ("eta", "eta_scale", "constants"),
    "PSRL": ("prior",),
    "PUCB": ("constants", "bonus_scale", "noise_scale"),
    "PrivateLinOptPO": ("eta", "eta_scale", "constants"),
    "PrivateLinOptVI": ("constants", "bonus_scale", "shift_scale"),
    "PrivateUCBPO": ("eta", "eta_scale", "constants", "bonus_scale", "noise_scale"),
    "PrivateUCBVI": ("constants", "bonus_scale", "noise_scale"),
    "RLSVI": ("constants", "variance_scale", "clip", "delta"),
    "SDPPE": ("search", "constants", "gap_scale", "noise_scale", "growth", "first_stage", "most_policies"),
    "UBEV": ("constants", "bonus_scale", "noise_scale"),
    "UCBVI": ("variant", "constants", "bonus_scale"),
    "UCRLVTR": ("constants", "bonus_scale", "shift_scale"),
}
LINEAR = ("LDPUCRLVTR", "OPPO", "PrivateLinOptPO", "PrivateLinOptVI", "UCRLVTR")
NETWORKS = ("DPPPO", "DPPolicyGradient")


def agent_board(name):
    if name in LINEAR:
        return wrappers.OpenBillboard(mixture(), users=40)
    if name in NETWORKS:
        return wrappers.OpenBillboard(cart(), users=40)
    if name == "DPSE":
        return wrappers.OpenBillboard(gym.make("PrivateRL/HardBandit-v0"), users=40)
    return wrappers.OpenBillboard(river(), users=40)


def learners(rng):
    """An agent that is built and learns a little."""
    name = str(rng.choice(list(AGENT_OPTIONS)))
    given = spoiled(
        rng,
        {"policy": getattr(agents, name).policies[0], "env": agent_board(name)},
        (*AGENT_OPTIONS[name], *AGENT_OPTIONS[name], "beta", "verbose", "tensorboard_log", "seed"),
    )
    if isinstance(given.get("tensorboard_log"), str):
        del given["tensorboard_log"]  # folders
    if name in NETWORKS and rng.random() < 0.3:
        given["policy_kwargs"] = spoiled(rng, {}, ("net_arch", "activation_fn", "x"))
    if name in NETWORKS and rng.random() < 0.2:
        given["policy_kwargs"] = {"net_arch": [hostile(rng)]}

    def call():
        agent = getattr(agents, name)(**given)
        assert repr(agent)
        if agent.board is not None:
            agent.learn(4 * agent.horizon)

    return name, given, call


@cache
def saved(name):
    agent = getattr(agents, name)(None, agent_board(name), seed=0)
    agent.learn(4 * agent.horizon)
    agent.save(home() / f"{name}.zip")
    return home() / f"{name}.zip"


def lives(rng):
    """A method of an agent."""
    name = str(rng.choice(["DPUCBVI", "SDPPE", "DPPPO", "PSRL", "PrivateLinOptVI", "FrugalUCBVI"]))
    path, kind = saved(name), getattr(agents, name)
    board = agent_board(name)
    agent = kind.load(path, env=board)
    calls = {
        "learn": (
            {"total_timesteps": 4 * H},
            ("callback", "log_interval", "tb_log_name", "reset_num_timesteps", "progress_bar"),
        ),
        "predict": (
            {"observation": np.zeros(4) if name in NETWORKS else 0},
            ("state", "episode_start", "deterministic"),
        ),
        "set_parameters": ({"load_path_or_dict": agent.get_parameters()}, ("exact_match", "device")),
        "set_env": ({"env": board}, ("force_reset",)),
        "save": ({"path": io.BytesIO()}, ("exclude",)),
        "load": ({"path": path}, ("env", "device", "custom_objects", "beta", "seed")),
        "set_random_seed": ({}, ("seed",)),
        "learn_offline": ({}, ("stationary",)),
        "meet": ({"users": 2}, ()),
    }
    method = str(rng.choice(list(calls)))
    base, names = calls[method]
    given = spoiled(rng, base, names)
    if isinstance(given.get("path"), str):
        given["path"] = home() / "absent"
    if method == "set_parameters" and rng.random() < 0.6:
        given = {"load_path_or_dict": {"policy": {kind.parameter_name: hostile(rng)}}}
    if isinstance(given.get("progress_bar"), bool | np.bool_):
        del given["progress_bar"]  # it prints
    return f"{name}.{method}", given, lambda: getattr(agent, method)(**given)


def making(rng):
    given = spoiled(
        rng,
        {"agent": agents.DPUCBVI, "env": river(), "epsilon": 1.0, "users": 40},
        ("delta", "horizon", "schedule", "visits", "reward_range", "gamma", "seed"),
    )
    return "make_private", given, lambda: make_private(**given)


ENVIRONMENTS = {
    "Cohort": ("horizon", "observe_time", "render_mode"),
    "FrozenLake": ("horizon", "map_name", "is_slippery", "observe_time", "render_mode"),
    "Garnet": (
        "n_states",
        "n_actions",
        "horizon",
        "branching",
        "instance_seed",
        "stationary",
        "reward_law",
        "observe_time",
    ),
    "HardBandit": ("m", "alpha", "instance", "observe_time", "render_mode"),
    "HardLinearMixture": ("horizon", "d", "episodes", "gap", "instance_seed", "observe_time"),
    "HardMDP": ("n", "m", "alpha", "instance", "horizon", "observe_time"),
    "LinearMixture": (
        "n_states",
        "n_actions",
        "horizon",
        "d",
        "branching",
        "instance_seed",
        "stationary",
        "reward_law",
        "misspecification",
        "observe_features",
        "observe_time",
    ),
    "RiverSwim": ("variant", "horizon", "n_states", "reward_law", "observe_time", "render_mode"),
    "RiverSwimMixture": ("variant", "horizon", "n_states", "reward_law", "observe_time"),
    "LoggedUsers": (),
}


def environments(rng):
    if rng.random() < 0.3:
        return models(rng)
    name = str(rng.choice(list(ENVIRONMENTS)))
    base = {"n_states": S, "n_actions": A, "horizon": H} if name == "LoggedUsers" else {}
    given = spoiled(rng, base, ENVIRONMENTS[name])

    def call():
        env = getattr(envs, name)(**given)
        if name != "LoggedUsers":
            env.reset(seed=0)
            env.step(0)
            env.model.optimal_value()

    return name, given, call


def models(rng):
    """A model from arrays, an environment of it, and what its methods are given."""
    transitions = np.full((S, A, S), 1.0 / S)
    kinds = {
        "TabularModel": (
            {"transitions": transitions, "rewards": np.full((S, A), 0.5), "horizon": H},
            ("initial", "reward_law", "outcome_rewards"),
        ),
        "SparseModel": (
            {
                "offsets": np.arange(S * A + 1),
                "successors": np.zeros(S * A, int),
                "probabilities": np.ones(S * A),
                "rewards": np.zeros((S, A)),
                "horizon": H,
            },
            ("initial", "reward_law"),
        ),
        "TabularEnv": ({"model": river().unwrapped.model}, ("observe_time", "features", "render_mode")),
        "TabularVectorEnv": ({"env": river().unwrapped}, ("num_envs",)),
        "Mixture": (
            {
                "features": features(),
                "weights": np.full(features().d, 0.1),
                "reward_weights": np.zeros(features().reward_d),
            },
            (),
        ),
        "LinearFeatures.tabular": ({"n_states": S, "n_actions": A}, ()),
        "LinearFeatures.dense": ({"kernels": np.full((2, S, A, S), 1 / S), "reward_features": np.zeros((S, A, 2))}, ()),
        "reset": ({}, ("seed", "options")),
        "step": ({"action": 0}, ()),
    }
    name = str(rng.choice(list(kinds)))
    given = spoiled(rng, *kinds[name])

    def call():
        if name == "reset":
            river().reset(**given)
        elif name == "step":
            env = river()
            env.reset(seed=0)
            env.unwrapped.step(**given)
        elif name.startswith("Linear"):
            getattr(LinearFeatures, name.partition(".")[2])(**given)
        else:
            made = getattr(envs, name)(**given)
            if name.endswith("Model"):
                made.optimal_value()
            elif name.startswith("TabularV") or name == "TabularEnv":
                made.reset(seed=0)

    return name, given, call


def accounting(rng):
    """Functions of privacy: conversions, composition, mechanisms, audits."""
    events = [PureDP(0.1), LaplaceEvent(1.0), GaussianEvent(1.0)]
    kinds = {
        "gaussian_delta": (privacy.gaussian_delta, {"epsilon": 1.0, "mu": 1.0}),
        "gaussian_epsilon": (privacy.gaussian_epsilon, {"delta": 1e-6, "mu": 1.0}),
        "gaussian_mu": (privacy.gaussian_mu, {"epsilon": 1.0, "delta": 1e-6}),
        "compose": (privacy.compose, {"events": [PureDP(0.1)] * 3, "delta": 1e-6}),
        "TabularCounts": (
            privacy.TabularCounts,
            {
                "horizon": H,
                "n_states": S,
                "n_actions": A,
                "separate_visits": False,
                "raw_rewards": False,
            },
        ),
        "NoiseSource": (privacy.NoiseSource, {"rng": 1, "role": "billboard"}),
        "Schedule": (Schedule, {"batch_size": 3, "growth": 0.25, "releases": 40}),
        "project_counts": (privacy.project_counts, {"m": np.ones((H, S, A, S)), "n": np.ones((H, S, A)), "error": 1.0}),
        "fit_blt": (mechanisms.fit_blt, {"steps": 10}),
        "clopper_pearson": (audit.clopper_pearson, {"hits": 3, "trials": 10, "failure": 0.05}),
        "epsilon_below": (
            audit.epsilon_below,
            {"hits": 9, "alarms": 1, "trials": (10, 10), "delta": 1e-6, "failure": 0.05},
        ),
        "mu_below": (audit.mu_below, {"hits": 9, "alarms": 1, "trials": (10, 10), "failure": 0.05}),
        "one_run_epsilon": (
            audit.one_run_epsilon,
            {"correct": 9, "guesses": 10, "canaries": 10, "delta": 0.0, "failure": 0.05},
        ),
        "one_run_p_value": (
            audit.one_run_p_value,
            {"correct": 9, "guesses": 10, "canaries": 10, "epsilon": 1.0, "delta": 0.0},
        ),
        "judge": (
            audit.judge,
            {
                "zero": np.zeros((20, 2)),
                "one": np.ones((20, 2)),
                "scores": [audit.LinearDiscriminant()],
                "delta": 1e-6,
                "failure": 0.05,
                "gaussian": False,
            },
        ),
        "Layers": (Layers, {"hidden": (2,), "activation": "tanh", "critic": None}),
        "Policy": (Policy, {"table": np.zeros((H, S), int), "n_actions": A}),
        "Policy.of": (Policy.of, {"policy": np.zeros((H, S), int), "horizon": H, "n_states": S, "n_actions": A}),
        **{name: (kind, {"steps": 8, "cells": 2, "law": kind.laws[0]}) for name, kind in mechanisms.MECHANISMS.items()},
    }
    name = str(rng.choice(list(kinds)))
    function, base = kinds[name]
    given = spoiled(rng, base)
    if name == "compose" and rng.random() < 0.5:
        kind = [PureDP, LaplaceEvent, GaussianEvent, ApproximateDP][rng.integers(4)]
        return name, given, lambda: privacy.compose([*events[:1], kind(hostile(rng))], given["delta"])
    return name, given, lambda: function(**given)


def deployments(rng):
    given = spoiled(
        rng,
        {"users": 100, "horizon": H, "states": S, "actions": A, "epsilon": 1.0, "delta": 1e-6},
        ("batch_size", "beta", "features"),
    )
    return "budget", given, lambda: list(budget(Deployment(**given)))


def printed_bounds(rng):
    name = str(rng.choice([name for name in bounds.__all__ if callable(getattr(bounds, name)) and name != "TableRow"]))
    function = getattr(bounds, name)
    usual = {
        "horizon": H,
        "n_states": S,
        "n_actions": A,
        "users": 100,
        "epsilon": 1.0,
        "delta": 1e-6,
        "alpha": 0.1,
        "beta": 0.05,
        "d": 3,
        "error": 1.0,
        "gaps": [0.1],
        "start_states": 1,
        "smallest": 1.0,
        "largest": 2.0,
        "shift": 1.0,
        "config": {},
    }
    base = {key: usual[key] for key in inspect.signature(function).parameters if key in usual}
    given = spoiled(rng, base)
    return name, given, lambda: function(**given)


def grids(rng):
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
    which = rng.integers(4)
    if which == 0:
        given = spoiled(rng, good, ("title", "about", "options", "figure", "table", "x"))
        return "grid_of", given, lambda: grid_of(given)
    if which == 1:
        given = spoiled(rng, good)
        given["runs"] = [
            spoiled(
                rng,
                {
                    "agent": "DPUCBVI",
                    "boundary": {"name": "jdp", **spoiled(rng, {"epsilon": 1.0, "delta": 1e-6}, ("batch_size", "x"))},
                },
                ("label", "x"),
            )
        ]
        return "grid_of", given, lambda: grid_of(given)
    if which == 2:
        given = spoiled(rng, AuditConfig().to_dict())
        return "AuditConfig", given, lambda: AuditConfig.from_dict(given).check()
    given = spoiled(
        rng,
        {"horizon": 1, "users": 4, "runs": 100},
        (
            "boundary",
            "inside",
            "agent",
            "environment",
            "target",
            "statistic",
            "attacks",
            "neighbours",
            "confidence",
            "seed",
            "make",
        ),
    )
    return "AuditConfig", given, lambda: AuditConfig(**given).check()


def tables(rng):
    given = spoiled(
        rng,
        {"table": table(), "sizes": (H, S, A), "boundary": "jdp", "options": {"epsilon": 1.0, "delta": 1e-6}},
        ("users", "columns", "bad_rows", "stationary"),
    )
    return "learn_from_table", given, lambda: learn_from_table(**given)


def solvers(rng):
    transitions, rewards = np.full((H, S, A, S), 1.0 / S), np.full((H, S, A), 0.5)
    policy = Policy(np.zeros((H, S), int), A)
    kinds = {
        "backward_induction": {"transitions": transitions, "rewards": rewards, "horizon": H},
        "optimistic_backward_induction": {
            "transitions": transitions,
            "rewards": rewards,
            "bonus": rewards,
            "ceiling": None,
            "floor": 0.0,
        },
        "evaluate_policy": {"transitions": transitions, "rewards": rewards, "policy": policy},
        "occupancy": {"transitions": transitions, "initial": np.full(S, 1 / S), "policy": policy},
        "rollout": {"tables": river().unwrapped.model.tables, "policy": policy, "tapes": np.full((2, 2 * H + 1), 0.5)},
    }
    name = str(rng.choice(list(kinds)))
    given = spoiled(rng, kinds[name])
    return name, given, lambda: getattr(planning, name)(**given)


@cache
def home():
    return Path(tempfile.mkdtemp())


KINDS = {
    boundaries: 5,
    methods: 5,
    learners: 5,
    lives: 3,
    environments: 4,
    accounting: 4,
    per_step: 1,
    adapters: 1,
    making: 1,
    deployments: 2,
    printed_bounds: 1,
    grids: 2,
    solvers: 1,
}


# What is a sentence --------------------------------------------------------------------------------------------------


@cache
def raised_lines(path):
    """The lines of raise statements in a file of this package."""
    tree = ast.parse(Path(path).read_text())
    found = [range(node.lineno, node.end_lineno + 1) for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    return frozenset(line for lines in found for line in lines)


def bare(error):
    """The place that an error comes from which is no sentence of this package; None if it is one."""
    frames = traceback.extract_tb(error.__traceback__)
    last, text = frames[-1], str(error)
    inside = [frame for frame in frames if HOME in Path(frame.filename).parents]
    named = "keyword argument" in text or "required positional" in text
    if isinstance(error, TypeError) and named and (last.filename == __file__ or last in inside):
        return None
    of_environments = isinstance(error, gym.error.Error) or "Expected env to be" in text
    if of_environments and "gymnasium" in last.filename:
        return None
    raised = last in inside and last.lineno in raised_lines(last.filename)
    if (raised or type(error) is BadUserError) and len(text) > 15 and " " in text:
        return None
    place = inside[-1] if inside else last
    kind = type(error).__name__
    return f"{Path(place.filename).name}:{place.lineno} {kind}: {text[:90]} [{Path(last.filename).name}]"


class Late(BaseException):
    """A call took too long."""


@contextlib.contextmanager
def limited(seconds=SECONDS, memory=MEMORY):
    """At most so many seconds, and so much more memory."""

    def late(*_):
        raise Late("This call takes too long.")

    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    handler = signal.signal(signal.SIGALRM, late)
    resource.setrlimit(resource.RLIMIT_AS, (used + memory, before[1]))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def called(seed, kinds=None):
    """The bare error of one call, with the call; None if there is none."""
    rng = np.random.default_rng(seed)
    kinds = KINDS if kinds is None else kinds
    shares = np.array(list(kinds.values()), dtype=float)
    kind = list(kinds)[rng.choice(len(kinds), p=shares / shares.sum())]
    name, given, call = kind(rng)
    try:
        with limited():
            call()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is
        place = bare(error)
        if place is not None:
            return f"{place}\n    {name}({', '.join(f'{key}={value!r:.60}' for key, value in given.items())})"
    return None


@pytest.fixture
def small(monkeypatch):
    """A machine with little memory, and nothing that prints."""
    for module in (of_planning, of_boundaries):
        monkeypatch.setattr(module, "available_memory", lambda: MEMORY)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def check(seeds, kinds=None):
    found = [problem for problem in (called(seed, kinds) for seed in seeds) if problem is not None]
    assert not found, f"{len(found)} bare errors of {len(seeds)} calls:\n" + "\n".join(found[:20])


def test_some_hundred_public_calls_return_or_raise_a_sentence(small):
    check(range(500))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(1, 11))
def test_ten_thousand_public_calls_return_or_raise_a_sentence(part, small):
    check(range(1_000 * part, 1_000 * (part + 1)))


def test_an_argument_that_is_not_checked_is_found(small, monkeypatch):
    """Mutation: the shared check of numbers lets everything pass."""
    monkeypatch.setattr(conversion, "real", lambda value, _: value)
    with pytest.raises(AssertionError, match=r"bare errors.*\n.*conversion\.py"):
        check(range(200), {accounting: 1})


WORDS = ["", "x", "-1", "0", "1e300", "nan", "inf", "1000000000", "1e30", "7.5", "1,2", "None", "[1]", "jdp", "1" * 21]
COMMANDS = {
    "budget": {"users": 100, "horizon": H, "states": S, "actions": A, "epsilon": 1, "delta": 1e-6, "batch-size": 10},
    "train": {"env": "RiverSwim", "users": 50, "agent": "DPUCBVI", "board": "jdp", "epsilon": 1, "delta": 1e-6},
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_with_hostile_words_end_with_a_sentence(command, small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for _ in range(15):
        given = {**COMMANDS[command], str(rng.choice(list(COMMANDS[command]))): str(rng.choice(WORDS))}
        words = [word for name, value in given.items() for word in (f"--{name}", str(value))]
        with limited():
            result = CliRunner().invoke(app, [command, *words])
        assert result.exception is None or isinstance(result.exception, SystemExit), words
        assert result.exit_code == 0 or len(result.output) > 15, words


# The worst -----------------------------------------------------------------------------------------------------------


def long_river(horizon):
    return gym.make("PrivateRL/RiverSwim-v0", horizon=horizon, n_states=S)


def rivers_mixture(epsilon):
    env = gym.make("PrivateRL/RiverSwimMixture-v0", horizon=20, n_states=S)
    return wrappers.SDPShuffler(env, epsilon, 1e-6, users=1_000, statistic="linear")


def network(*widths):
    board = wrappers.JDPBillboard(gym.make("CartPole-v1"), 1.0, 1e-6, users=100)
    return agents.DPPPO("MlpPolicy", board, policy_kwargs={"net_arch": list(widths)})


def logged(horizon):
    return envs.LoggedUsers(4, 2, horizon)


REFUSED = {
    "an episode that does not fit": (lambda: long_river(10**9), MemoryError, "Shorten the horizon"),
    "reports of such an episode": (
        lambda: wrappers.JDPBillboard(logged(10**9), 1.0, 1e-6, users=100, statistic="reports").release,
        MemoryError,
        "Shorten the horizon",
    ),
    "local reports of such an episode": (
        lambda: wrappers.LDPUserSide(logged(10**9), 1.0, users=100, statistic="reports").release,
        MemoryError,
        "Shorten the horizon",
    ),
    "shuffled reports of such an episode": (
        lambda: wrappers.SDPShuffler(logged(10**9), 1.0, 1e-6, users=100, statistic="reports").release,
        MemoryError,
        "Shorten the horizon",
    ),
    "shuffled moments at a tiny epsilon": (lambda: rivers_mixture(1e-3), ValueError, "Ask for a larger epsilon"),
    "a network that does not fit": (lambda: network(10**9), MemoryError, "Take a smaller network"),
    "two layers that do not fit": (lambda: network(10**5, 10**5), MemoryError, "Take a smaller network"),
    "widths whose product is beyond 64 bits": (lambda: network(10**12, 10**12), MemoryError, "a smaller network"),
    "returning users in a billion releases": (
        lambda: wrappers.JDPBillboard(river(), 1.0, 1e-6, users=10**12, visits=2),
        ValueError,
        "Use larger batches",
    ),
}


@pytest.mark.parametrize(("make", "kind", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_computed_is_refused_at_once(make, kind, sentence, small):
    with limited(), pytest.raises(kind, match=sentence):
        make()


SERVED = {
    "Laplace batches of long episodes": lambda: wrappers.JDPBillboard(
        logged(10**5), 1.0, 1e-6, users=100, counting="batched", noise="laplace"
    ),
    "Laplace reports of long episodes": lambda: wrappers.LDPUserSide(
        logged(10**5), 1.0, 1e-6, users=100, randomizer="laplace"
    ),
    "a set for each of many steps": lambda: wrappers.LDPUserSide(logged(5_000), 1.0, users=100, randomizer="unary"),
    "the best reports of many steps": lambda: wrappers.LDPUserSide(logged(5_000), 1.0, users=100),
    "batches that hardly grow": lambda: wrappers.JDPBillboard(
        river(), 1.0, 1e-6, users=10**8, schedule=Schedule(growth=1e-9)
    ),
    "a trillion users": lambda: wrappers.JDPBillboard(river(), 1.0, 1e-6, users=10**12),
}


@pytest.mark.parametrize("make", SERVED.values(), ids=SERVED)
def test_what_took_minutes_takes_seconds(make, small):
    with limited():
        assert make().memory > 0


def test_all_batches_of_equal_size_are_counted_at_once():
    """As one by one, wherever sizes grow."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        users, size = int(rng.integers(1, 5_000)), int(rng.integers(1, 60))
        growth, before = float(10.0 ** rng.uniform(-9, 0)), int(rng.integers(0, 200))
        schedule, expected, here = Schedule(size, growth), 0, before
        while here < users:
            here, expected = here + schedule.size(here), expected + 1
        assert schedule.batches(users, before) == expected
    assert Schedule(1, 1e-9).batches(10**8) == 10**8


def test_losses_on_a_coarser_lattice_cost_no_less(monkeypatch):
    """Rounding up is to the side of safety, and costs little."""
    budgets = [(4_000, 0.01), (2_000, 0.005)]
    fine = [conversion.pure_delta(epsilon, budgets) for epsilon in (0.5, 1.0, 2.0)]
    monkeypatch.setattr(conversion, "LATTICE", 1024)
    coarse = [conversion.pure_delta(epsilon, budgets) for epsilon in (0.5, 1.0, 2.0)]
    for less, more in zip(fine, coarse, strict=True):
        assert less <= more <= 1.1 * less

"""Boundaries of every kind around one small river, for tests that hold for all of them."""

import gymnasium as gym

from private_rl_gym.privacy.mechanisms import MECHANISMS
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard, SDPShuffler

H, S, A = 5, 4, 2


def river(**arguments):
    arguments = {"horizon": H, "n_states": S, "reward_law": "bernoulli", "variant": "open-banks", **arguments}
    return gym.make("PrivateRL/RiverSwim-v0", **arguments)


def jdp(env, **options):
    return JDPBillboard(env, **{"epsilon": 1.0, "delta": 1e-6, "users": 40, "rng": 5, **options})


def ldp(env, **options):
    return LDPUserSide(env, **{"epsilon": 1.0, "users": 40, "rng": 6, **options})


def sdp(env, **options):
    options.setdefault("schedule", 1)
    return SDPShuffler(env, **{"epsilon": 1.0, "delta": 1e-6, "users": 40, "rng": 7, **options})


def counted(counting, law):
    """A billboard with this mechanism, and with a delta where its noise has one."""
    options = {"counting": counting, "noise": law, "delta": 1e-6 if law == "gaussian" else 0.0}
    return lambda env, **o: jdp(env, **{**options, **o})


BOARDS = {
    "open": lambda env, **o: OpenBillboard(env, **{"users": 40, **o}),
    **{f"jdp {name} {law}": counted(name, law) for name, kind in MECHANISMS.items() for law in kind.laws},
    "ldp one-step": ldp,
    "ldp unary": lambda env, **o: ldp(env, randomizer="unary", **o),
    "ldp laplace": lambda env, **o: ldp(env, randomizer="laplace", **o),
    "ldp gaussian": lambda env, **o: ldp(env, randomizer="gaussian", delta=1e-6, **o),
    "sdp": lambda env, **o: sdp(env, **o),
    "jdp pooled": lambda env, **o: jdp(env, stationary=True, **o),
    "ldp pooled": lambda env, **o: ldp(env, stationary=True, **o),
    "sdp pooled": lambda env, **o: sdp(env, stationary=True, **o),
    "sdp around ldp": lambda env, **o: sdp(ldp(env, users=o.get("users", 40)), **{"epsilon": None, "delta": None, **o}),
    "jdp around ldp": lambda env, **o: jdp(ldp(env, users=o.get("users", 40)), **o),
    "jdp around laplace": lambda env, **o: jdp(ldp(env, randomizer="laplace", users=o.get("users", 40)), **o),
}


def same_release(first, second):
    """Bit for bit."""
    return (first.version, first.users, first.noise_std, first.events) == (
        second.version,
        second.users,
        second.noise_std,
        second.events,
    ) and all((getattr(first, family) == getattr(second, family)).all() for family in "nmr")

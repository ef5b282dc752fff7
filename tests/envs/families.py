"""Every registered environment, in several shapes each."""

FAMILIES = [
    ("PrivateRL/RiverSwim-v0", {}),
    ("PrivateRL/RiverSwim-v0", {"variant": "strehl-littman", "horizon": 7, "reward_law": "bernoulli"}),
    ("PrivateRL/RiverSwim-v0", {"variant": "open-banks", "n_states": 9}),
    ("PrivateRL/HardMDP-v0", {}),
    ("PrivateRL/HardMDP-v0", {"n": 2, "m": 1, "alpha": 0.5, "instance": (0, 1), "horizon": 3}),
    ("PrivateRL/HardBandit-v0", {}),
    ("PrivateRL/LinearMixture-v0", {}),
    ("PrivateRL/LinearMixture-v0", {"stationary": False, "n_states": 7, "d": 2, "reward_law": "fixed"}),
    ("PrivateRL/LinearMixture-v0", {"n_states": 300, "misspecification": 0.3}),
    ("PrivateRL/HardLinearMixture-v0", {}),
    ("PrivateRL/HardLinearMixture-v0", {"horizon": 3, "d": 3, "gap": 0.05, "instance_seed": 2}),
    ("PrivateRL/RiverSwimMixture-v0", {}),
    ("PrivateRL/Garnet-v0", {}),
    ("PrivateRL/Garnet-v0", {"stationary": False, "n_states": 6, "branching": 6, "instance_seed": 5}),
    ("PrivateRL/FrozenLake-v0", {}),
    ("PrivateRL/FrozenLake-v0", {"map_name": "8x8", "horizon": 20}),
    ("PrivateRL/Cohort-v0", {}),
    ("PrivateRL/Cohort-v0", {"horizon": 4}),
]


def name(case):
    id, arguments = case
    shape = ",".join(f"{key}={value}" for key, value in arguments.items())
    return f"{id.split('/')[1]}({shape})"

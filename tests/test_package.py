"""What importing the package does, and does not do."""

import importlib
import json
import subprocess
import sys

import gymnasium as gym
import pytest

import private_rl_gym

HEAVY = ["torch", "numba", "stable_baselines3", "scipy", "matplotlib", "pygame"]


def run(code):
    """The last line that a fresh process prints."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip().splitlines()[-1]


def test_import_loads_nothing_heavy():
    loaded = run(f"import sys, json, private_rl_gym; print(json.dumps([m for m in {HEAVY} if m in sys.modules]))")
    assert json.loads(loaded) == []


def test_an_episode_needs_no_compiler():
    code = """
        import sys, gymnasium as gym
        env = gym.make("private_rl_gym:PrivateRL/RiverSwim-v0")
        env.reset(seed=0)
        env.step(1)
        print("numba" in sys.modules)
    """
    assert run("\n".join(line.strip() for line in code.strip().splitlines())) == "False"


def test_ids_are_registered_once():
    assert all(id in gym.registry for id in private_rl_gym.ENVIRONMENTS)
    before = dict(gym.registry)
    importlib.reload(private_rl_gym)  # Gymnasium warns of an id registered twice, and warnings are errors here
    assert gym.registry == before


@pytest.mark.parametrize("id", private_rl_gym.ENVIRONMENTS)
def test_every_id_makes_its_class(id):
    assert type(gym.make(id).unwrapped).__name__ == private_rl_gym.ENVIRONMENTS[id][1]


def test_planning_names_are_all_there():
    from private_rl_gym import planning

    gym.make("PrivateRL/RiverSwim-v0").unwrapped.model.rollout([0] * 6, [[0.5] * 41])  # loads the submodules
    assert all(callable(getattr(planning, name)) for name in planning.__all__)
    with pytest.raises(AttributeError, match="no attribute 'plan_b'"):
        planning.plan_b  # noqa: B018

"""Pictures show the place, the time left and the reward."""

import itertools
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pygame
import pytest

from private_rl_gym.envs.rendering import Window
from tests.envs.families import FAMILIES, name

every_family = pytest.mark.parametrize("case", FAMILIES, ids=name)


def make(id, mode, **arguments):
    env = gym.make(id, render_mode=mode, **arguments)
    env.reset(seed=0)
    return env


@every_family
def test_text_shows_title_time_place_and_reward(case):
    id, arguments = case
    env = make(id, "ansi", **arguments)
    H = env.unwrapped.model.horizon
    first = env.render()
    assert env.spec.name in first
    assert f"step 0 of {H} [{'.' * min(40, H)}]" in first
    assert "a user arrives" in first
    total = 0.0
    for h in range(H):
        _, reward, *_ = env.step(1)
        total += reward
        assert f"step {h + 1} of {H}" in env.render()
        assert f"reward {reward:g}, total {total:g}" in env.render()
    assert f"[{'#' * min(40, H)}]" in env.render()


@pytest.mark.slow
@every_family
def test_pixels_change_with_every_step(case):
    id, arguments = case
    env = make(id, "rgb_array", **arguments)
    frames = [env.render()]
    for _ in range(env.unwrapped.model.horizon):
        env.step(1)
        frames.append(env.render())
    assert all(frame.shape == (360, 720, 3) and frame.dtype == np.uint8 for frame in frames)
    assert all((before != after).any() for before, after in itertools.pairwise(frames))
    np.testing.assert_array_equal(frames[-1], env.render())  # rendering is no step


@pytest.mark.slow
@every_family
def test_the_bar_shows_the_time_that_is_left(case):
    id, arguments = case
    env = make(id, "rgb_array", **arguments)
    H = env.unwrapped.model.horizon
    for h in range(H + 1):
        bar = env.render()[50, 24:696].sum(axis=1)
        assert (bar < 200).mean() == pytest.approx(h / H * (bar < 700).mean(), abs=0.035)  # edges are blurred
        if h < H:
            env.step(1)


def test_the_sign_of_the_bank_that_pays_is_lit():
    env = make("PrivateRL/RiverSwim-v0", "rgb_array")
    lit = (213, 94, 0)
    for action in (1, 0, 0, 0):
        _, reward, *_ = env.step(action)
        sign = env.render()[122:128, 20:60]
        assert (np.abs(sign.astype(int) - lit).sum(axis=2) < 30).all() == (reward > 0)
    assert reward > 0


def test_the_hard_mdp_shows_where_the_arm_led():
    for place, sign in ((0.0, "(+)"), (0.999, "(-)")):
        env = gym.make("PrivateRL/HardMDP-v0", render_mode="ansi")
        env.reset(options={"user": np.full(21, place)})
        env.step(2)
        assert f"arm 2 -> {sign}" in env.render()


@pytest.mark.slow
def test_the_swimmer_is_where_the_state_is():
    """Her cap is the only thing of its colour in the water."""
    env = make("PrivateRL/RiverSwim-v0", "rgb_array", horizon=200)
    for _ in range(200):
        state, *_ = env.step(1)
        water = env.render()[72:300, 96:624].astype(int)
        cap = (np.abs(water - (213, 94, 0)).sum(axis=2) < 20).any(axis=0)
        assert int(np.flatnonzero(cap).mean() // (528 / 6)) == state


def test_a_window_opens_and_closes(monkeypatch):
    shown = []
    monkeypatch.setattr(Window, "show", lambda _window, _scene, path: shown.append(path.stage))
    env = make("PrivateRL/RiverSwim-v0", "human")
    for _ in range(3):
        env.step(1)
    assert env.render() is None
    assert shown == [0, 1, 2, 3, 3]  # at reset, at every step, and when asked
    monkeypatch.undo()
    env.render()
    assert pygame.display.get_init()
    assert pygame.display.get_surface().get_size() == (720, 360)
    env.close()
    assert not pygame.display.get_init()
    env.close()
    env.render()  # and opens again
    env.close()


def test_two_windows_do_not_break_each_other():
    first, second = (make("PrivateRL/RiverSwim-v0", "human") for _ in range(2))
    first.close()
    second.step(1)
    second.close()


def test_there_has_to_be_a_user_to_show():
    env = gym.make("PrivateRL/RiverSwim-v0", render_mode="ansi").unwrapped
    with pytest.raises(gym.error.ResetNeeded, match="no user to show yet"):
        env.render()


def test_large_models_are_drawn_as_a_grid():
    env = make("PrivateRL/Garnet-v0", "rgb_array", n_states=500, n_actions=8, branching=7)
    env.step(1)
    assert env.render().shape == (360, 720, 3)
    env = make("PrivateRL/Garnet-v0", "ansi", n_states=500)
    assert "of 0..499" in env.render()


def test_without_a_mode_there_is_a_warning():
    env = gym.make("PrivateRL/RiverSwim-v0").unwrapped
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="pass render_mode="):
        assert env.render() is None


def test_without_pygame_the_error_says_what_to_do():
    code = """
import sys
sys.modules["pygame"] = None
import gymnasium as gym, private_rl_gym
env = gym.make("PrivateRL/RiverSwim-v0", render_mode="rgb_array").unwrapped
env.reset(seed=0)
try:
    env.render()
except gym.error.DependencyNotInstalled as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install -c constraints.txt '.[rendering]'" in done.stdout
    assert "render_mode='ansi'" in done.stdout

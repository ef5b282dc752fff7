"""Settings for all tests: no screen, no window, the same examples every time."""

import os

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "hide")
os.environ.setdefault("MPLBACKEND", "Agg")

from hypothesis import settings

# Compilation makes the first example slow, so there is no deadline; `--hypothesis-profile=explore` draws new examples.
settings.register_profile("steady", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("explore", deadline=None, max_examples=2_000)
settings.load_profile("steady")

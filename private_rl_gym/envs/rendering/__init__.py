"""Pictures of users, in text, pixels and windows.

* ``Path`` - the steps of a user so far
* ``Scene`` - the drawing of a family; ``GraphScene`` (any model), ``RiverScene``, ``HardScene``
* ``text``, ``picture``, ``Window`` - a scene as a string, as an array of pixels, on a screen

Pixels need pygame (the extra ``rendering``), which is imported when the first one is drawn.
"""

from __future__ import annotations

from private_rl_gym.envs.rendering.canvas import Canvas, Window, picture
from private_rl_gym.envs.rendering.graph import GraphScene
from private_rl_gym.envs.rendering.hard import HardScene
from private_rl_gym.envs.rendering.river import RiverScene
from private_rl_gym.envs.rendering.scene import Path, Scene, text

__all__ = ["Canvas", "GraphScene", "HardScene", "Path", "RiverScene", "Scene", "Window", "picture", "text"]

"""One page for each registered environment, made from its docstring, its spaces, its exact values and its picture."""

import importlib
import inspect
from pathlib import Path

import gymnasium as gym
from PIL import Image

import private_rl_gym

# Shapes whose exact value is worth a row, and the actions that lead to the picture (None: the optimal policy's).
SHAPES = {
    "RiverSwim": ([{}, {"variant": "strehl-littman"}, {"variant": "open-banks"}, {"horizon": 50}], 10),
    "HardMDP": ([{}, {"instance": (0, 0, 0, 0)}, {"alpha": 0.5}], 1),
    "HardBandit": ([{}, {"instance": 0}], 1),
    "LinearMixture": ([{}, {"instance_seed": 1}, {"stationary": False}, {"n_states": 200}], 2),
    "HardLinearMixture": ([{}, {"episodes": 1_000}, {"gap": 0.02}], 2),
    "RiverSwimMixture": ([{}, {"variant": "strehl-littman"}, {"variant": "open-banks"}], 10),
    "Garnet": ([{}, {"instance_seed": 1}, {"stationary": False}], 3),
    "Cohort": ([{}, {"horizon": 20}], 2),
    "FrozenLake": ([{}, {"horizon": 100}, {"is_slippery": False}, {"map_name": "8x8", "horizon": 100}], 3),
}


def setup(app):
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}


def write_pages(app):
    folder = Path(app.srcdir) / "environments"
    folder.mkdir(exist_ok=True)
    rows, names, titles = [], [], []
    for id, (module, name) in private_rl_gym.ENVIRONMENTS.items():
        family = getattr(importlib.import_module(f"private_rl_gym.envs.{module}"), name)
        page = name.lower()
        picture(id, SHAPES[name][1], folder / f"{page}.png")
        (folder / f"{page}.md").write_text(text_of(id, name, family, page))
        summary = inspect.cleandoc(family.__doc__).splitlines()[0]
        rows.append(f"| [`{id}`]({page}.md) | {summary} | {gym.make(id).unwrapped.model.optimal_value():.4f} |")
        names.append(page)
        titles.append(name)
    gallery = [
        f"[![A user of {name} on her way](/environments/{page}.png) {name}](/environments/{page}.md)"
        for name, page in zip(titles, names, strict=True)
    ]
    (folder / "gallery.md").write_text("\n\n".join(["```{container} gallery", *gallery, "```", ""]))
    index = [
        "# Environments",
        "",
        "```{include} gallery.md",
        "```",
        "",
        "| id | what it is | V* |",
        "|---|---|---|",
        *rows,
        "",
    ]
    index += [
        "V* is the exact optimal value with default arguments.",
        "",
        "```{toctree}",
        ":hidden:",
        "",
        *names,
        "```",
        "",
    ]
    (folder / "index.md").write_text("\n".join(index))


def text_of(id, name, family, page):
    env = gym.make(id)
    summary, _, body = inspect.cleandoc(family.__doc__).partition("\n")
    values = ["| arguments | S | A | H | V* |", "|---|---|---|---|---|"]
    for arguments in SHAPES[name][0]:
        model = gym.make(id, **arguments).unwrapped.model
        said = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        sizes = f"{model.n_states} | {model.n_actions} | {model.horizon}"
        values.append(f"| {f'`{said}`' if said else 'default'} | {sizes} | {model.optimal_value():.6f} |")
    return "\n".join(
        [
            f"# {name}",
            "",
            summary,
            "",
            f"![{name}]({page}.png)",
            "",
            "| | |",
            "|---|---|",
            f"| id | `{id}` |",
            f"| class | `{family.__module__}.{name}` |",
            f"| action space | `{env.action_space}` |",
            f"| observation space | `{env.observation_space}` |",
            f'| many users | `gym.make_vec("{id}", num_envs=1000)` |',
            body.rstrip(),
            "",
            "## Exact values",
            "",
            *values,
            "",
        ]
    )


def picture(id, steps, path):
    env = gym.make(id, render_mode="rgb_array")
    policy = env.unwrapped.model.optimal_policy()
    state, _ = env.reset(seed=0)
    for h in range(steps):
        state, *_ = env.step(policy.action(h, state))
    Image.fromarray(env.render()).save(path)
    env.close()

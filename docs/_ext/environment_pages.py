"""One page for each registered environment: its docstring, spaces, exact values and picture."""

import inspect
from pathlib import Path

import gymnasium as gym
from PIL import Image

from private_rl_gym.lab.registry import ENVIRONMENTS


def setup(app):
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}


def write_pages(app):
    folder = Path(app.srcdir) / "environments"
    folder.mkdir(exist_ok=True)
    rows, gallery = [], []
    for id, entry in ENVIRONMENTS.items():
        page = entry.title.lower()
        picture(entry, folder / f"{page}.png")
        (folder / f"{page}.md").write_text(text_of(entry, page))
        rows.append(f"| [`{id}`]({page}.md) | {entry.summary} | {gym.make(id).unwrapped.model.optimal_value():.4f} |")
        shown = f"![A user of {entry.title}](/environments/{page}.png) {entry.title}"
        gallery.append(f"[{shown}](/environments/{page}.md)")
    (folder / "gallery.md").write_text("\n\n".join(["```{container} gallery", *gallery, "```", ""]))
    index = [
        "# Environments",
        "",
        "After this page you can choose an environment of this project by its id, with `gym.make(id)`.",
        "",
        "```{include} gallery.md",
        "```",
        "",
        "| id | content | V* |",
        "|---|---|---|",
        *rows,
        "",
    ]
    index += [
        "V* is the exact optimal value with the default arguments.",
        "",
        "```{toctree}",
        ":hidden:",
        "",
        *(entry.title.lower() for entry in ENVIRONMENTS.values()),
        "```",
        "",
    ]
    (folder / "index.md").write_text("\n".join(index))


def text_of(entry, page):
    id, name, family = entry.name, entry.title, entry.kind
    env = gym.make(id)
    summary, _, body = inspect.cleandoc(family.__doc__).partition("\n")
    values = ["| arguments | S | A | H | V* |", "|---|---|---|---|---|"]
    for arguments in entry.shapes:
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


def picture(entry, path):
    env = gym.make(entry.name, render_mode="rgb_array")
    policy = env.unwrapped.model.optimal_policy()
    state, _ = env.reset(seed=0)
    for h in range(entry.steps):
        state, *_ = env.step(policy.action(h, state))
    Image.fromarray(env.render()).save(path)
    env.close()

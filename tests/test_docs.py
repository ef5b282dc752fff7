"""What the README and the docs show runs, and gives the numbers that they print."""

import ast
import contextlib
import inspect
import io
import re
from pathlib import Path

import pytest
import typer
from latex2mathml.converter import convert

import private_rl_gym
from private_rl_gym.lab.cli.app import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if not {"_build", "environments", "generated"} & set(page.parts)]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PROMISE = re.compile(r"#\s+(-?\d[\d_]*(?:\.(?P<digits>\d+))?|True|False)(?:$|[:,;])")


WIDEST = 113
"""Letters in a line of code."""


def promised(source, statement):
    """The number, and its digits, in the comment behind a statement."""
    line = source.splitlines()[statement.end_lineno - 1][statement.end_col_offset :]
    found = PROMISE.search(line)
    return None if found is None else (ast.literal_eval(found[1]), len(found["digits"] or ""))


def run(source, names):
    """Run a block statement by statement, and count the numbers that were compared."""
    compared = 0
    for statement in ast.parse(source).body:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            if not isinstance(statement, ast.Expr):
                exec(compile(ast.Module([statement], []), "docs", "exec"), names)
                continue
            value = eval(compile(ast.Expression(statement.value), "docs", "eval"), names)
        promise = promised(source, statement)
        if promise is not None:
            number, digits = promise
            value = ast.literal_eval(printed.getvalue().strip()) if value is None else value
            assert round(float(value), digits) == number, ast.unparse(statement)
            compared += 1
    return compared


def test_formulas_are_drawn_by_the_browser_itself():
    """As MathML: the site works from disk, without a network."""
    formula = re.compile(r"\$\$(.+?)\$\$|(?<![\\$])\$([^$\n]+?)\$", re.DOTALL)
    found = [
        convert(display or inline)
        for page in PAGES
        for display, inline in formula.findall(re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL))
    ]
    assert len(found) > 1_000
    assert not [text for text in found if "\\" in text]  # no command is left as it was written


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_fits_into_its_column(page):
    """Of 1,400 pixels; what is longer would go on in the next line, and look like code of its own."""
    parts = re.split(r"^```(.*)\n", page.read_text(), flags=re.MULTILINE)  # prose, kind, code, "", prose, ...
    code = [block for kind, block in zip(parts[1::4], parts[2::4], strict=True) if not kind.startswith("{")]
    assert not [line for block in code for line in block.splitlines() if len(line) > WIDEST]


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if BLOCK.search(page.read_text())], ids=lambda page: str(page.relative_to(ROOT))
)
def test_code_on_a_page_runs_and_keeps_its_promises(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # pages save files
    names = {}
    for block in BLOCK.findall(page.read_text()):
        run(block, names)


def test_promises_are_really_compared(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the tutorial saves its figure
    assert run("1 + 1  # 2\n", {}) == 1
    assert run("print(3.14159)  # 3.14159: pi\n", {}) == 1
    with pytest.raises(AssertionError):
        run("1 / 3  # 0.34\n", {})
    names = {}
    tutorial = (ROOT / "docs" / "tutorial.md").read_text()
    assert sum(run(block, names) for block in BLOCK.findall(tutorial)) >= 5


PROGRAM = re.compile(r"(?:^|`|/)private-rl-gym ((?:[^`\n#\\]|\\\n)+)", re.MULTILINE)
COMMANDS = typer.main.get_command(app).commands


def mistyped(text):
    """Commands of the program, and options of theirs, which a page shows and the program does not take."""
    missing = []
    for line in PROGRAM.findall(text):
        command, *words = line.replace("\\\n", " ").split()
        if command.startswith("--"):
            continue
        if command not in COMMANDS:
            missing.append(command)
            continue
        taken = {"--help"} | {option for one in COMMANDS[command].params for option in one.opts}
        missing += [f"{command} {word}" for word in words if word.startswith("--") and word.split("=")[0] not in taken]
    return missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_on_a_page_are_taken(page):
    assert not mistyped(page.read_text())


def test_mistyped_commands_are_found():
    shown = "```\n.venv/bin/private-rl-gym train --agent PUCB --bonus 3  # trains\n```\n`private-rl-gym swep hard`"
    assert mistyped(shown) == ["train --bonus", "swep"]
    assert mistyped("private-rl-gym audit --all \\\n  --run 3\n") == ["audit --run"]


def table_in(module, name):
    """The names in a literal table of a module that makes pages, without the libraries that it draws with."""
    for statement in ast.parse((ROOT / "docs" / "_ext" / f"{module}.py").read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name:
            return set(ast.literal_eval(statement.value))
    raise KeyError(name)


def test_everything_that_can_be_named_is_on_its_page():
    from private_rl_gym import agents, wrappers
    from private_rl_gym.lab.registry import AGENTS, BOUNDARIES, ENVIRONMENTS

    boundaries = [named.kind.__name__ for named in BOUNDARIES.values()]
    for folder, names in (("agents", list(AGENTS)), ("boundaries", boundaries)):
        index = (ROOT / "docs" / folder / "index.md").read_text()
        missing = [name for name in names if f"[`{name}`](" not in index]
        assert not missing, f"{', '.join(missing)}: no row in docs/{folder}/index.md"
        entries = index.rpartition("```{toctree}")[2].split()
        missing = sorted({page.stem for page in (ROOT / "docs" / folder).glob("*.md")} - {"index", *entries})
        assert not missing, f"{', '.join(missing)}: not in the toctree of docs/{folder}/index.md"
    missing = sorted(set(private_rl_gym.ENVIRONMENTS) - set(ENVIRONMENTS))
    assert not missing, f"{', '.join(missing)}: no entry in ENVIRONMENTS of lab/registry.py"
    assert list(BOUNDARIES) == list(wrappers.BOUNDARIES), "wrappers/__init__.py and lab/registry.py name others"
    names = {name for name in agents.__all__ if "TabularPolicy" in getattr(getattr(agents, name), "policies", ())}
    missing = sorted(name for name in names - set(AGENTS) if not inspect.isabstract(getattr(agents, name)))
    assert not missing, f"{', '.join(missing)}: no entry in AGENTS of lab/registry.py"


def test_pictures_of_agents_are_drawn():
    drawn, shown = table_in("boundary_pages", "GRIDS"), set()
    for page in (ROOT / "docs" / "agents").glob("*.md"):
        for picture in re.findall(r"generated/([a-z-]+)\.svg", page.read_text()):
            known = {picture, re.sub(r"-(privacy|share)$", "", picture)} & drawn
            assert known, f"{page.name} shows {picture}.svg: add the grid to GRIDS of docs/_ext/boundary_pages.py"
            shown |= known
    assert len(shown) >= 5, "pages of agents show next to no pictures"


def test_the_commands_that_make_takes_are_those_that_pages_show():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    readme = (ROOT / "README.md").read_text()
    assert re.findall(r"^make (\w+)", readme, re.MULTILINE) == ["demo", "test"]
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        missing = sorted(set(re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), re.MULTILINE)) - targets)
        assert not missing, f"{page.name} shows make {', '.join(missing)}, and the Makefile has no such target"


def test_the_changelog_and_the_citation_know_the_version():
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[0] == private_rl_gym.__version__
    cited = re.findall(r"^version: (\S+)", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited == [private_rl_gym.__version__]

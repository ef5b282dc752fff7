"""What the README and the docs show runs, and gives the numbers that they print."""

import ast
import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if not {"_build", "environments"} & set(page.parts)]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PROMISE = re.compile(r"#\s+(-?\d[\d_]*(?:\.(?P<digits>\d+))?|True|False)(?:$|[:,;])")


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


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_on_a_page_runs_and_keeps_its_promises(page):
    names = {}
    for block in BLOCK.findall(page.read_text()):
        run(block, names)


def test_promises_are_really_compared():
    assert run("1 + 1  # 2\n", {}) == 1
    assert run("print(3.14159)  # 3.14159: pi\n", {}) == 1
    with pytest.raises(AssertionError):
        run("1 / 3  # 0.34\n", {})
    names = {}
    tutorial = (ROOT / "docs" / "tutorial.md").read_text()
    assert sum(run(block, names) for block in BLOCK.findall(tutorial)) >= 5


def table_in(module, name):
    """The names in a literal table of a module that makes pages, without the libraries that it draws with."""
    for statement in ast.parse((ROOT / "docs" / "_ext" / f"{module}.py").read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name:
            return set(ast.literal_eval(statement.value))
    raise KeyError(name)


def test_everything_that_can_be_named_is_on_its_page():
    from private_rl_gym import ENVIRONMENTS
    from private_rl_gym.experiments.names import AGENTS, BOUNDARIES

    boundaries = [named.kind.__name__ for named in BOUNDARIES.values()]
    for folder, names in (("agents", list(AGENTS)), ("boundaries", boundaries)):
        index = (ROOT / "docs" / folder / "index.md").read_text()
        missing = [name for name in names if f"[`{name}`](" not in index]
        assert not missing, f"{', '.join(missing)}: no row in docs/{folder}/index.md"
        entries = index.rpartition("```{toctree}")[2].split()
        missing = sorted({page.stem for page in (ROOT / "docs" / folder).glob("*.md")} - {"index", *entries})
        assert not missing, f"{', '.join(missing)}: not in the toctree of docs/{folder}/index.md"
    missing = sorted({name for _, name in ENVIRONMENTS.values()} - table_in("environment_pages", "SHAPES"))
    assert not missing, f"{', '.join(missing)}: no shapes in SHAPES of docs/_ext/environment_pages.py"


def test_pictures_of_agents_are_drawn():
    drawn = table_in("boundary_pages", "GRIDS")
    for page in (ROOT / "docs" / "agents").glob("*.md"):
        for picture in re.findall(r"generated/([a-z-]+)\.png", page.read_text()):
            known = {picture, picture.removesuffix("-privacy")} & drawn
            assert known, f"{page.name} shows {picture}.png: add the grid to GRIDS of docs/_ext/boundary_pages.py"


def test_the_two_commands_of_the_readme_exist():
    commands = re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text()
    assert commands == ["demo", "test"]
    assert all(re.search(rf"^{command}:", makefile, re.MULTILINE) for command in commands)


def test_the_changelog_knows_the_version():
    import private_rl_gym

    assert f"## {private_rl_gym.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"version: {private_rl_gym.__version__}" in (ROOT / "CITATION.cff").read_text()

"""Rules of the house that linters do not know: privates stay at home, imports hold no cycle open, prose is plain."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "private_rl_gym"
SOURCES = sorted(PACKAGE.rglob("*.py"))
EXTERNAL = {"_max_episode_steps", "_exit", "_asdict", "_replace"}  # Gymnasium's, os' and namedtuples' own names
INTRUDERS = {"broken.py"}  # mechanisms that are broken on purpose do what other code must not


@cache
def tree(source):
    return ast.parse(source.read_text())


def room(source):
    """The top-level package that a module belongs to, and of the laboratory the room."""
    parts = source.relative_to(PACKAGE).parts
    return "/".join(parts[: 1 + (parts[0] == "lab")]).removesuffix(".py")


def module(source):
    parts = source.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def own_privates(name):
    """Private names that classes and modules of a room define."""
    names = set()
    for source in SOURCES:
        if room(source) != name:
            continue
        for node in ast.walk(tree(source)):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
            elif (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in ("self", "cls")
            ):
                names.add(node.attr)
            elif isinstance(node, ast.AnnAssign | ast.Assign):
                targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: str(source.relative_to(PACKAGE)))
def test_private_names_are_not_reached_from_other_rooms(source):
    if source.name in INTRUDERS:
        return
    mine = own_privates(room(source)) | EXTERNAL
    for node in ast.walk(tree(source)):
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_") or node.attr.startswith("__"):
            continue
        of_self = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        of_super = isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") == "super"
        assert of_self or of_super or node.attr in mine, f"{source.name}:{node.lineno} reaches for {ast.unparse(node)}"


def imported(source, *, inside):
    """Modules of this package that a module imports at its top, or inside functions."""
    found = set()
    top = {id(node) for node in tree(source).body}
    guarded = {
        id(inner)
        for node in tree(source).body
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree(source)):
        if (
            id(node) in guarded
            or not isinstance(node, ast.ImportFrom)
            or not (node.module or "").startswith("private_rl_gym")
        ):
            continue
        if (id(node) in top) != inside:
            found.add(node.module)
    return found


def test_no_import_inside_a_function_holds_a_cycle_open():
    """Late imports are for what is heavy. What imports back, directly or not, belongs elsewhere."""
    by_name = {module(source): source for source in SOURCES}
    top = {name: imported(source, inside=False) & set(by_name) for name, source in by_name.items()}

    def reaches(start, goal, seen):
        return start == goal or any(
            step not in seen and (seen.add(step) or reaches(step, goal, seen)) for step in top.get(start, ())
        )

    for name, source in by_name.items():
        for late in imported(source, inside=True) & set(by_name):
            assert not reaches(late, name, set()), f"{name} imports {late} late, which imports it"


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: str(source.relative_to(PACKAGE)))
def test_docstrings_begin_with_nouns_and_verbs(source):
    for node in ast.walk(tree(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node) or ""
            assert not text.startswith(("What ", "How ", "What's ")), f"{source.name}: {text.splitlines()[0]}"


def test_no_two_classes_have_one_name():
    places = {}
    for source in SOURCES:
        for node in ast.walk(tree(source)):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name.lstrip("_"), []).append(str(source.relative_to(PACKAGE)))
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert not twice


REPLACED = {
    "user": "persons? pupils? members? crowds? nobody somebody anybody whoever she her hers herself",
    "source": "populations? entrances? doors?",
    "guarantee": "promises? promised promising",
    "mechanism": "central_noise counting_noise continual_noise",
    "time-homogeneous": "told_nothing told_stationary",
}
"""Words that others replace (docs/design.md, 'Words'), as parts of names and in prose."""

ALLOWED = {
    "privacy/accounting/guarantee.py": "her",  # a text that saved boards are compared by
    "wrappers/checkpoint.py": "members?",  # of a zip archive
    "archive.py": "members?",
}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: str(source.relative_to(PACKAGE)))
def test_one_word_is_used_for_one_thing(source):
    text = re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", source.read_text())  # names by their parts
    allowed = ALLOWED.get(str(source.relative_to(PACKAGE)), "").split()
    for word, replaced in REPLACED.items():
        for other in set(replaced.split()) - set(allowed):
            found = re.search(rf"\b{other.replace('_', ' ')}\b", text, re.IGNORECASE)
            assert found is None, f"{found.group(0)!r}: write {word!r}, or they"

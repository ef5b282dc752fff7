"""Code points to its proofs, and proofs name code that is there: whoever moves one of them is told of the other."""

import ast
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

from private_rl_gym.privacy.mechanisms import MECHANISMS
from private_rl_gym.wrappers import BOUNDARIES, JDPBillboard, LDPPerStep

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "private_rl_gym"
PROOFS = ROOT / "docs" / "proofs"
SOURCES = sorted(PACKAGE.rglob("*.py"))
PAGES = {page.stem: page.read_text() for page in PROOFS.glob("*.md") if page.stem != "index"}

PROOF = re.compile(r"docs/proofs/([a-z-]+)\.md")
NAME = r"`[A-Za-z_][\w.]*`"
PLACED = re.compile(rf"((?:{NAME}(?:, | and )?)+)\s+in\s+((?:`[\w/]+(?:\.py|/)`(?: and )?)+)")
"""Names, and the files or folders that they are said to be in."""


def cited(source):
    """The proofs that a file points to."""
    return set(PROOF.findall(source.read_text()))


@cache
def defined(source):
    """Functions and classes of a file, and members of its classes as ``Class.member``."""
    names = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{member.name}" for member in node.body if isinstance(member, ast.FunctionDef)}
    return names


@cache
def spoken():
    """Every name of the package that a sentence may be about: what is defined, passed or set."""
    names = {"inf"}
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text())):
            names |= {getattr(node, field) for field in ("name", "attr", "arg", "id") if hasattr(node, field)}
    return names


def files(place):
    """The files of the package at a path, or below it if it is a folder's."""
    return [source for source in SOURCES if f"/{place}" in f"/{source.relative_to(PACKAGE).as_posix()}"]


def lost(text):
    """What a page speaks of in code letters, and the package does not have, or has elsewhere."""
    prose = "".join(text.split("\n```")[0::2])
    missing = []
    for names, places in PLACED.findall(prose):
        there = [source for place in re.findall(r"`([^`]+)`", places) for source in files(place)]
        for name in re.findall(r"`([^`]+)`", names):
            if name.endswith(".py"):
                missing += [] if any(source.name == name for source in there) else [name]
            else:
                missing += [] if any(name in defined(source) for source in there) else [name]
    for word in re.findall(r"`([^`\n]+)`", prose):
        bare = word.removesuffix("()")
        if word.endswith(".py"):
            known = any(source.match(word) for source in [*SOURCES, *(ROOT / "tests").rglob("*.py")])
        elif not re.fullmatch(r"[A-Za-z_][\w.]*", bare):
            known = True  # a formula, or words of another kind
        elif word != bare or re.fullmatch(r"[A-Z]\w*[a-z]\w*", word):  # a function that is called, or a class
            known = any(bare in defined(source) for source in SOURCES)
        else:
            known = bare.rpartition(".")[2] in spoken()
        missing += [] if known else [word]
    return missing


@pytest.mark.parametrize("source", [source for source in SOURCES if cited(source)], ids=lambda source: source.stem)
def test_every_proof_that_code_points_to_exists(source):
    missing = sorted(cited(source) - set(PAGES))
    assert not missing, f"{', '.join(missing)}: {source.name} points to docs/proofs/NAME.md, and there is none"


@pytest.mark.parametrize("page", sorted(PAGES))
def test_what_a_proof_speaks_of_is_there(page):
    assert not lost(PAGES[page]), f"{page} speaks of code that has moved, or is gone"


def test_what_has_moved_is_found():
    assert lost("Used by `BinaryTree` in `privacy/mechanisms/trees.py`, `JDPBillboard` in `wrappers/`.") == []
    assert lost("Used by `BinaryTree` and `Batched` in `privacy/mechanisms/trees.py`.") == ["Batched"]
    assert lost("Used by `bounds.py` and\n`trees.py` in `privacy/audit/`.") == ["trees.py"]
    assert lost("By `gaussian_mu()`, `TernaryTree`, `nowhere.py`, `no_such_word`.") == [
        "TernaryTree",
        "nowhere.py",
        "no_such_word",
    ]


def test_a_row_of_the_index_names_modules_that_point_to_its_page():
    rows = re.findall(r"^\| \[.*?\]\(([a-z-]+)\.md\) \|.*\| (.*) \|$", (PROOFS / "index.md").read_text(), re.MULTILINE)
    assert sorted(page for page, _ in rows) == sorted(PAGES), "docs/proofs/index.md has one row for each page"
    for page, users in rows:
        modules = re.findall(r"`([\w.]+)`", users)
        assert modules, f"{page}: name the modules that use it"
        for module in modules:
            path = module.replace(".", "/")
            found = files(f"{path}.py") or files(f"{path}/")
            assert any(page in cited(source) for source in found), f"{module} does not point to docs/proofs/{page}.md"


@pytest.mark.parametrize("kind", MECHANISMS.values(), ids=MECHANISMS)
def test_every_counting_mechanism_has_a_proof_that_its_billboard_names(kind):
    proofs = cited(Path(inspect.getfile(kind)))
    assert proofs, f"{kind.__name__}: let its module point to docs/proofs/NAME.md"
    assert proofs <= set(PROOF.findall(JDPBillboard.__doc__)), "name it in the docstring of JDPBillboard"


@pytest.mark.parametrize("kind", [*BOUNDARIES.values(), LDPPerStep], ids=lambda kind: kind.short)
def test_every_boundary_that_promises_something_points_to_its_proof(kind):
    pages = PROOF.findall(kind.__doc__)
    assert pages or kind.short == "open"
    assert set(pages) <= set(PAGES)

"""Code points to its proofs, and every proof is one that code points to."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROOFS = ROOT / "docs" / "proofs"
SOURCES = sorted((ROOT / "private_rl_gym").rglob("*.py"))
CITED = {name: source for source in SOURCES for name in re.findall(r"docs/proofs/([a-z-]+)\.md", source.read_text())}
PAGES = {page.stem for page in PROOFS.glob("*.md")} - {"index"}


def test_every_proof_that_code_points_to_exists():
    assert CITED, "the package points to no proof at all"
    missing = sorted(set(CITED) - PAGES)
    assert not missing, f"{', '.join(missing)}: code points to docs/proofs/NAME.md, and there is none"


def test_every_proof_is_pointed_to():
    missing = sorted(PAGES - set(CITED))
    assert not missing, f"{', '.join(missing)}: no docstring of the package points to docs/proofs/NAME.md"


USED = re.compile(r"Used by (.*?)\n\n", re.DOTALL)
NAMES = set()
for _source in SOURCES:
    _tree = ast.parse(_source.read_text())
    NAMES |= {node.name for node in ast.walk(_tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    NAMES |= {node.attr for node in ast.walk(_tree) if isinstance(node, ast.Attribute)}
    NAMES |= {node.arg for node in ast.walk(_tree) if isinstance(node, ast.arg)}
    NAMES |= {node.id for node in ast.walk(_tree) if isinstance(node, ast.Name)}


@pytest.mark.parametrize("page", sorted(PAGES))
def test_12_what_a_proof_speaks_of_is_there(page):
    """Files, classes, functions and arguments in code letters: a page whose code has moved is found."""
    text = (PROOFS / f"{page}.md").read_text()
    outside = text.split("\n```")[0::2]  # prose, without blocks of code
    for word in re.findall(r"`([^`\n]+)`", "".join(outside)):
        if word.endswith(".py"):
            found = any(source.match(word) for source in [*SOURCES, *(ROOT / "tests").rglob("*.py")])
            assert found, f"{page} speaks of {word}, and there is no such file"
        elif re.fullmatch(r"[A-Za-z_][\w.]*(\(\))?", word):
            known = word.removesuffix("()").rsplit(".", 1)[-1] in NAMES | {"inf"}
            assert known, f"{page} speaks of {word}, and the package has no such name"


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_proof_is_in_the_index_and_reads_as_one(page):
    text = (PROOFS / f"{page}.md").read_text()
    assert f"({page}.md)" in (PROOFS / "index.md").read_text(), f"{page} has no row in docs/proofs/index.md"
    assert "**Proof" in text or "## Proof" in text or "follows" in text, f"{page} says nowhere **Proof.**"
    for linked in re.findall(r"\]\(([a-z-]+)\.md\)", text):
        assert linked in PAGES | {"index"}, linked

"""Prose is short and plain: lengths of the README, of sentences and of lines, words for users, and one glossary."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "private_rl_gym").rglob("*.py"))
MADE = {"_build", "environments", "generated", "papers"}  # by `make docs`, from the code
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
PAGES += [page for page in sorted((ROOT / "docs").rglob("*.md")) if not MADE & set(page.parts)]
PAGES.remove(ROOT / "docs" / "reference.md")

LONGEST_README, LONGEST_LINE, LONGEST_SENTENCE = 900, 120, 45
LONGEST_SUMMARY = 15
"""Words of the first line of a docstring, at most."""

LONG, SHARE = 30, 0.05
"""Words of a long sentence, and the largest share of such sentences on all pages together."""

GENERIC = re.compile(
    r"\b(whoever|nobody|somebody|anybody|who comes|who came|told nothing|(?:is|are) told|she|her|hers|herself)\b",
    re.IGNORECASE,
)
"""Words that stand for a user, or for a reader, without naming them."""


def name_of(page):
    return str(page.relative_to(ROOT))


def without_code(text):
    """A page without code, formulas, comments, directives and addresses of links: what is read as English."""
    text = re.sub(r"^(`{3,}|~{3,}|:{3,}).*?^\1\s*$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"\$\$.*?\$\$|\$[^$]*?\$|`[^`]*`", "CODE", text, flags=re.DOTALL)
    text = re.sub(r"^\[[^\]]+\]: .*$", "", text, flags=re.MULTILINE)  # targets of links
    return re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)


def sentences(text):
    """The sentences of paragraphs and of entries of lists. Headings and tables have none."""
    text = re.sub(r"^\s*(\||#).*$", "", without_code(text), flags=re.MULTILINE)
    paragraphs = re.split(r"\n\s*\n|^\s*(?:[-*:]|\d+\.)\s", text, flags=re.MULTILINE)
    found = [part for one in paragraphs for part in re.split(r"(?<=[.!?:;])[*_)]*\s+(?=[*_]*[A-Z(])", one.strip())]
    return [words for words in (part.split() for part in found) if len(words) > 3]


def test_the_readme_is_two_screens():
    assert len((ROOT / "README.md").read_text().split()) <= LONGEST_README


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_sentence_is_too_long(page):
    for words in sentences(page.read_text()):
        assert len(words) <= LONGEST_SENTENCE, f"{len(words)} words: {' '.join(words)}"


def test_long_sentences_are_rare():
    lengths = [(len(words), name_of(page)) for page in PAGES for words in sentences(page.read_text())]
    by_page = Counter(page for length, page in lengths if length > LONG)
    share = sum(by_page.values()) / len(lengths)
    assert share <= SHARE, f"{share:.1%} of {len(lengths)} sentences: {by_page.most_common()}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_line_is_too_long(page):
    lines = page.read_text().splitlines()
    long = [number for number, line in enumerate(lines, 1) if len(line) > LONGEST_LINE]
    assert not long, f"lines {long}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_users_are_called_users_and_they(page):
    found = GENERIC.findall(without_code(page.read_text()))
    assert not found, found


@pytest.mark.parametrize("source", SOURCES, ids=name_of)
def test_docstrings_call_users_users_and_they(source):
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            found = GENERIC.findall(re.sub(r"``[^`]*``", "", ast.get_docstring(node) or ""))
            assert not found, f"{getattr(node, 'name', 'module')}: {found}"


@pytest.mark.parametrize("source", SOURCES, ids=name_of)
def test_first_lines_of_docstrings_are_short(source):
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            words = (ast.get_docstring(node) or "").partition("\n")[0].split()
            assert len(words) <= LONGEST_SUMMARY, f"{getattr(node, 'name', 'module')}: {len(words)} words"


def terms(page):
    """The terms that a page defines, as entries of a list of definitions."""
    return re.findall(r"^(\S.*)\n(?=: )", without_code(page.read_text()), re.MULTILINE)


def test_each_term_is_defined_once():
    glossary = terms(ROOT / "docs" / "concepts.md")
    assert len(glossary) > 30
    twice = [term for term, times in Counter(term for page in PAGES for term in terms(page)).items() if times > 1]
    assert not twice, twice
    for heading in re.split(r"^## ", (ROOT / "docs" / "concepts.md").read_text(), flags=re.MULTILINE)[1:]:
        own = [term.lower() for term in re.findall(r"^(\S.*)\n(?=: )", heading, re.MULTILINE)]
        assert own == sorted(own), f"not in alphabetical order: {heading.splitlines()[0]}"


@pytest.mark.parametrize(
    ("text", "long", "generic"),
    [
        ("A user is an episode. They stay for 20 steps.", 5, []),
        ("- Whoever sees it\n  learns nothing.\n- She leaves.", 5, ["Whoever", "She"]),
        ("Read [how `x` is not a word](a-very-long-address.md) and go on.", 10, []),
        ("```text\nnobody\n```\n| nobody | here |\n|---|---|", 0, ["nobody"]),
    ],
)
def test_what_is_measured(text, long, generic):
    assert max(map(len, sentences(text)), default=0) == long
    assert GENERIC.findall(without_code(text)) == generic

"""Pages about the papers hold what the code holds."""

import ast
import importlib
import importlib.util
from functools import cache
from pathlib import Path

import pytest

from private_rl_gym.lab.papers import bounds

ROOT = Path(__file__).parents[1]
SPEC = importlib.util.spec_from_file_location("paper_pages", ROOT / "docs" / "_ext" / "paper_pages.py")
pages = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(pages)
PAPERS = {paper["name"]: paper["rows"] for paper in pages.papers()}


def numbered(**kinds):
    """Labels by their kinds, as \"Lemma 7\"; numbers are words with spaces between, and 7-10 is a range."""
    labels = []
    for kind, numbers in kinds.items():
        for number in numbers.split():
            first, dash, last = number.partition("-")
            if not dash:
                labels.append(f"{kind} {number}")
                continue
            section, _, first = first.rpartition(".")
            front = f"{section}." if section else ""
            labels += [f"{kind} {front}{one}" for one in range(int(first), int(last) + 1)]
    return sorted(labels)


NUMBERED = {  # the environments that each paper numbers
    "PUCB": numbered(
        Definition="1-7",
        Theorem="1 3-6 12 14",
        Lemma="2 7-11 13 15-23",
        Claim="1-2",
        Algorithm="1-5",
        Figure="1-2",
    ),
    "RLSVI": numbered(
        Definition="1 3-5", Remark="2 10", Lemma="6-9 11-12", Theorem="13", Corollary="14", Algorithm="1"
    ),
    "SDP-PE": numbered(
        Definition="1-3 5",
        Assumption="4",
        Theorem="6 11",
        Lemma="7-10 12-38 40-42",
        Corollary="39",
        Algorithm="1-4",
    ),
    "DP-UCBVI": numbered(
        Definition="2.1-3 C.1",
        Assumption="3.1",
        Remark="3.2 5.3 5.5 B.3 B.5 B.7",
        Theorem="4.1 5.2 5.7",
        Lemma="5.1 5.4 5.6 6.1 B.1-2 B.4 B.6 B.8-9 C.2-9 C.11",
        Corollary="C.10",
        Algorithm="1",
        Figure="1",
    ),
    "LinOpt": numbered(
        Definition="2.1-3 6.2-3 7.1",
        Assumption="1-2",
        Remark="4.2 5.2 6.6-9",
        Theorem="4.1 5.1 6.4-5",
        Lemma="3.1 6.1 7.2 B.1-5",
        Algorithm="1-2",
    ),
}


@cache
def defined_in(path):
    return {node.name for node in ast.parse((ROOT / path).read_text()).body if isinstance(node, ast.FunctionDef)}


def lost(row):
    """What a row names, and is not there."""
    missing = []
    for name in row.get("code", []):
        module, _, path = name.partition(":")
        try:
            found = importlib.import_module(f"private_rl_gym.{module}")
            for part in path.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError):
            missing.append(name)
    for place in row.get("measured", []):
        kind, _, name = place.partition(" ")
        if kind in ("grid", "proof"):
            folder, ending = {
                "grid": ("private_rl_gym/lab/grids", "toml"),
                "proof": ("docs/proofs", "md"),
            }[kind]
            known = (ROOT / folder / f"{name}.{ending}").is_file()
        else:
            path, _, test = place.partition("::")
            known = (ROOT / path).is_file() and test in defined_in(path)
        missing += [] if known else [place]
    return missing


@pytest.mark.parametrize("paper", PAPERS)
def test_what_the_map_of_the_papers_names_is_there(paper):
    missing = [f"{row['label']}: {name}" for row in PAPERS[paper] for name in lost(row)]
    assert not missing, f"docs/papers.toml, {paper}: {', '.join(missing)}"


def test_what_has_moved_is_found():
    assert lost({"code": ["agents.tabular.pucb:PUCB", "agents.tabular.pucb:PUCB.gone", "agents.gone:PUCB"]}) == [
        "agents.tabular.pucb:PUCB.gone",
        "agents.gone:PUCB",
    ]
    here = "tests/test_papers.py::test_what_has_moved_is_found"
    gone = ["tests/test_papers.py::test_gone", "tests/gone.py::test_gone", "grid gone", "proof gone"]
    assert lost({"measured": [here, "grid pucb", "proof rlsvi", *gone]}) == gone


@pytest.mark.parametrize("paper", PAPERS)
def test_the_map_has_everything_that_a_paper_numbers(paper):
    labels = [row["label"] for row in PAPERS[paper]]
    assert len(set(labels)) == len(labels)
    kinds = ("Definition", "Assumption", "Remark ", "Theorem", "Lemma", "Corollary", "Claim", "Algorithm", "Figure")
    assert sorted(label for label in labels if label.startswith(kinds)) == NUMBERED[paper]


@pytest.mark.parametrize("paper", PAPERS)
def test_a_row_has_code_that_is_measured_or_a_reason(paper):
    for row in PAPERS[paper]:
        assert set(row) <= {"label", "says", "code", "measured", "differs", "none"}
        assert row["label"]
        assert row["says"]
        runs = [place for place in row.get("measured", []) if not place.startswith("proof ")]  # tests and commands
        assert bool(row.get("code")) == bool(runs) != bool(row.get("none")), row["label"]


def test_the_page_of_the_map_has_every_row_and_begins_with_those_without_code():
    page = pages.map_page(pages.papers())
    top, _, rest = page.partition("\n## PUCB\n")
    for rows in PAPERS.values():
        for row in rows:
            assert (f"| {row['label']} | {row['says']} |" in rest) == ("code" in row)
            assert ("code" in row) or (row["none"] in top and row["label"] in top)
    assert f"{sum(len(rows) for rows in PAPERS.values())} rows" in top


def test_the_page_of_bounds_has_every_row_and_every_bound():
    page = pages.bounds_page()
    for row in bounds.TABLES:
        assert page.count(f"| {row.table} | {row.learner} | {row.guarantee} |") == len(pages.SETTINGS)
    missing = [name for name in bounds.__all__ if name.islower() and f"| `{name}` |" not in page]
    assert not missing
    _, S, A, H, K = pages.SETTINGS[0]
    assert f"{bounds.dp_ucbvi_regret(H, S, A, K, 10.0):,.0f} |" in page


def test_a_bound_above_all_that_can_be_lost_is_in_italics():
    assert (pages.said(999.6, 1000), pages.said(1000.4, 1000)) == ("1,000", "*1,000*")
    assert pages.said(1.29e13, 1000) == "*1e13*"


def test_the_pages_in_the_repository_are_those_that_a_build_makes():
    folder = ROOT / "docs" / "papers"
    assert {path.name: path.read_text("utf-8") for path in folder.iterdir()} == pages.made_pages(), "run `make docs`"


BOUNDED = ["pucb", "dp-ucbvi", "private-ucbvi", "sdp-pe", "linopt", "rlsvi", "ucbvi"]
RIVALS = ["ldp-obi", "ldp-ucrl-vtr", "dp-se"]


@pytest.mark.parametrize("page", BOUNDED + RIVALS)
def test_an_agent_with_a_theorem_links_to_its_bound(page):
    assert "(../papers/bounds.md)" in (ROOT / "docs" / "agents" / f"{page}.md").read_text()

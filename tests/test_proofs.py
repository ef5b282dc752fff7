"""Code points to its proofs, and every proof is one that code points to."""

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
    assert set(CITED) <= PAGES


def test_every_proof_is_pointed_to():
    assert set(CITED) >= PAGES


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_proof_has_a_claim_a_proof_and_a_reference(page):
    text = (PROOFS / f"{page}.md").read_text()
    assert text.startswith("# ")
    assert 20 <= len(text.splitlines()) <= 160
    assert "$" in text
    assert re.search(r"\b(19|20)\d\d\b", text), "a reference has a year"
    assert f"{page}.md" in (PROOFS / "index.md").read_text()


@pytest.mark.parametrize(
    "module", ["statistics", "noise", "conversion", "errors", "composition", "projection", "randomizers"]
)
def test_every_module_with_a_constant_points_to_a_proof(module):
    sources = [ROOT / "private_rl_gym" / "privacy" / f"{module}.py"]
    assert any("docs/proofs/" in source.read_text() for source in sources)


@pytest.mark.parametrize("mechanism", ["tree", "blt", "batched"])
def test_every_counting_mechanism_points_to_its_proof(mechanism):
    assert "docs/proofs/" in (ROOT / "private_rl_gym" / "privacy" / "counting" / f"{mechanism}.py").read_text()


@pytest.mark.parametrize("wrapper", ["jdp_billboard", "ldp_user_side", "ldp_per_step", "private_model"])
def test_every_wrapper_with_a_promise_points_to_its_proof(wrapper):
    assert "docs/proofs/" in (ROOT / "private_rl_gym" / "wrappers" / f"{wrapper}.py").read_text()

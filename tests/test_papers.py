"""Pages about the papers hold what the code holds."""

import importlib.util
from pathlib import Path

import pytest

from private_rl_gym.experiments import bounds

ROOT = Path(__file__).parents[1]
SPEC = importlib.util.spec_from_file_location("paper_pages", ROOT / "docs" / "_ext" / "paper_pages.py")
pages = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(pages)


def test_the_page_of_bounds_has_every_row_and_every_bound():
    page = pages.bounds_page()
    for row in bounds.TABLES:
        assert page.count(f"| {row.table} | {row.learner} | {row.promise} |") == len(pages.SETTINGS)
    missing = [name for name in bounds.__all__ if name.islower() and f"| `{name}` |" not in page]
    assert not missing
    _, S, A, H, K = pages.SETTINGS[0]
    assert f"{bounds.dp_ucbvi_regret(H, S, A, K, 10.0):,.0f} |" in page


def test_a_bound_above_all_that_can_be_lost_is_in_italics():
    assert (pages.said(999.6, 1000), pages.said(1000.4, 1000)) == ("1,000", "*1,000*")


@pytest.mark.parametrize("page", ["pucb", "dp-ucbvi", "private-ucbvi", "sdp-pe", "linopt", "rlsvi", "ucbvi"])
def test_an_agent_with_a_theorem_links_to_its_bound(page):
    assert "(../papers/bounds.md)" in (ROOT / "docs" / "agents" / f"{page}.md").read_text()

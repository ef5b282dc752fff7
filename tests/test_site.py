"""The site that `make docs` built, in a browser: nothing leaves the page, and nothing is raw, at three widths."""

from pathlib import Path

import pytest

from tests.browser import WIDTHS, needs_browser, seen

SITE = Path(__file__).parents[1] / "docs" / "_build" / "html"


@pytest.mark.slow
@needs_browser
def test_nothing_on_the_site_is_clipped_or_raw(tmp_path):
    if not (SITE / "index.html").exists():
        pytest.skip("the site is not built: run `make docs` first")
    hidden = {"_static", "_sources", "_images"}
    pages = [page for page in sorted(SITE.rglob("*.html")) if not hidden & set(page.relative_to(SITE).parts)]
    answer = seen(pages, tmp_path)
    assert answer["looked"] == len(WIDTHS) * len(pages) > 150
    assert not answer["found"], "\n".join(answer["found"])


WRONG = {
    "": "<p>As it should be: <code>$$ {ref}`x`</code></p>",
    "beyond the edge": "<div style='width: 950px'>wide</div>",
    "cut": "<div style='width: 100px; overflow: hidden; white-space: nowrap'>cut cut cut cut cut cut cut cut</div>",
    "scrolls": "<pre style='overflow-x: auto'>" + 300 * "x" + "</pre>",
    "raw: $$": "<p>so $$ x</p>",
    "raw: \\alpha": "<p>so \\alpha is</p>",
    "raw: {ref}`": "<p>see {ref}`x`</p>",
    "no picture": "<img src='nowhere.png' width=9 height=9>",
}


@pytest.mark.slow
@needs_browser
def test_what_is_wrong_is_found(tmp_path):
    pages = [tmp_path / f"page_{number}.html" for number in range(len(WRONG))]
    for page, body in zip(pages, WRONG.values(), strict=True):
        page.write_text(f"<!doctype html><body style='margin: 0'><article>{body}</article>")
    answer = seen(pages, tmp_path)
    for page, what in zip(pages, WRONG, strict=True):
        lines = [line for line in answer["found"] if page.name in line]
        assert bool(lines) == bool(what), lines
        assert not what or any(what in line for line in lines), lines

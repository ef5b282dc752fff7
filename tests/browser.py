"""A browser, if there is one here, and what it finds wrong with pages."""

import json
import re
import shutil
import subprocess
from html import unescape

import pytest

OFFLINE = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND",
]


def browser():
    """The path of Chromium, or None."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


needs_browser = pytest.mark.skipif(browser() is None, reason="no Chromium here: .ci/run installs it where it may")

WIDTHS = (1400, 900, 400)

# In a frame of each width: what reaches beyond it, and what can only be read by scrolling where there is room enough.
LOOK = r"""
const pages = PAGES, widths = WIDTHS, found = [];
const frame = document.createElement("iframe");
frame.style.height = "900px";
document.body.append(frame);
const words = e => (e.innerText || e.getAttribute("src") || "").replace(/\s+/g, " ").slice(0, 60);
const name = e => `<${e.tagName.toLowerCase()}> ${words(e)}`;
const scrolls = (e, end) => {
  for (let up = e.parentElement; up && up !== end; up = up.parentElement)
    if (["auto", "scroll"].includes(frame.contentWindow.getComputedStyle(up).overflowX)) return true;
  return false;
};
for (const width of widths) for (const page of pages) {
  frame.style.width = `${width}px`;
  await new Promise(done => { frame.onload = done; frame.src = page; });
  const inside = frame.contentDocument, root = inside.documentElement, part = inside.querySelector(PART);
  const say = (what, e) => found.push(`${page.split("/html/").pop()} at ${width}: ${what} ${e ? name(e) : ""}`);
  if (!part) { say("nothing to read"); continue; }
  if (root.scrollWidth > width) say("the page scrolls sideways");
  for (const e of part.querySelectorAll("*")) {
    const box = e.getBoundingClientRect();
    if (!box.width || e.closest("svg")?.contains(e) && e.tagName !== "svg") continue;
    if (box.right > width + 1 && !scrolls(e, inside.body)) say("beyond the edge:", e);
    const style = frame.contentWindow.getComputedStyle(e);
    if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth && style.overflowX === "hidden") say("cut:", e);
    if (width === 1400 && e.scrollWidth > e.clientWidth + 1 && ["auto", "scroll"].includes(style.overflowX))
      say("scrolls:", e);
  }
  for (const image of part.querySelectorAll("img"))
    if (!image.complete || !image.naturalWidth) say("no picture:", image);
  const bare = part.cloneNode(true);
  for (const code of bare.querySelectorAll("code, pre, math, script, style")) code.remove();
  const raw = bare.textContent.match(/\$\$|\\[A-Za-z]+|\{[a-z:]+\}`|:[a-z]+:`/);
  if (raw) say(`raw: ${raw[0]}`);
}
const out = document.createElement("pre");
out.id = "found";
out.textContent = JSON.stringify({ looked: widths.length * pages.length, found });
document.body.append(out);
"""


def seen(pages, folder, part="article"):
    """What a browser finds wrong with pages, and how often it looked."""
    script = LOOK.replace("PAGES", json.dumps([page.as_uri() for page in pages]), 1)
    script = script.replace("WIDTHS", json.dumps(WIDTHS), 1).replace("PART", json.dumps(part), 1)
    (folder / "frame.html").write_text(f'<!doctype html><body><script type="module">{script}</script>')
    options = [
        *OFFLINE,
        f"--user-data-dir={folder / 'profile'}",
        "--allow-file-access-from-files",
        "--window-size=1500,1000",
    ]
    done = subprocess.run(
        [browser(), *options, "--virtual-time-budget=3000000", "--dump-dom", (folder / "frame.html").as_uri()],
        check=True,
        capture_output=True,
        timeout=600,
    )
    answer = re.search(r'<pre id="found">(.*?)</pre>', done.stdout.decode(), re.DOTALL)
    assert answer, "the browser did not come to the end"
    return json.loads(unescape(answer[1]))

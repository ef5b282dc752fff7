"""One-file examples: short, documented, and they run and show what their first lines say."""

import ast
import contextlib
import functools
import importlib.util
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = {path.stem: path for path in sorted((ROOT / "examples").glob("*.py"))}
FEW: dict[str, tuple[list[str], str]] = {
    "flagship_riverswim": (["--users", "1000"], r"1,000 users: the policy is worth \d.*\n[\s\S]*\(1\.0, 1e-06\)-JDP"),
    "own_agent": (["--users", "1000"], r"<EpsilonGreedy: beta=0\.05, explore=0\.1; 8000 steps[\s\S]*<DPUCBVI"),
    "own_environment": (["--users", "500"], r"env = [a-z_.]*FlattenSpaces\(env\)[\s\S]*for whom the agent chooses +\d"),
    "own_mechanism": (
        ["--runs", "600"],
        r"RunningBatches: claims[\s\S]*Nothing found[\s\S]*Halved: claims[\s\S]*BROKEN",
    ),
    "own_protocol": (["--users", "500"], r"NotNegativeBillboard \(2\.0, 1e-06\)-JDP.* is 0\n[\s\S]* is -\d"),
    "own_randomizer": (["--users", "500"], r"flips .*: noise of \d+ in a count\nunary .*: noise of \d+"),
    "ppo_per_step": (["--users", "200"], r"\(30\.0, 0\)-LDP[\s\S]*PPO, private +\d"),
    "private_cohort": (["--users", "1000"], r"joint differential privacy[\s\S]*the private policy +\d"),
    "service": (["--users", "2000"], r"Each of 2000 users has \(1\.0, 1e-06\)-joint[\s\S]*week 10: .*are right"),
    "sweep_two_processes": (["--users", "100", "--seeds", "1"], r"0 of 5 cells run, 5 were there[\s\S]*\| regret \|"),
}
"""Arguments for a short run of each, and the output that it must have."""


def run(name, arguments, folder):
    """The output of an example in a process of its own, with warnings as errors where they are about what it does."""
    known = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error::UserWarning", str(EXAMPLES[name]), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=known, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_has_a_short_run_here():
    assert sorted(FEW) == sorted(EXAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize("name", FEW)
def test_an_example_runs_and_shows_what_it_says(name, tmp_path):
    arguments, shown = FEW[name]
    assert re.search(shown, run(name, arguments, tmp_path))
    assert not list(tmp_path.iterdir())  # nothing is left behind


@pytest.mark.slow
def test_a_sweep_on_dask_is_the_same_example(tmp_path):
    if importlib.util.find_spec("distributed") is None:
        pytest.skip("needs the extra dask")
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        arguments = ["--users", "100", "--seeds", "1", "--scheduler", cluster.scheduler_address]
        assert re.search(FEW["sweep_two_processes"][1], run("sweep_two_processes", arguments, tmp_path))


@pytest.mark.parametrize("path", EXAMPLES.values(), ids=EXAMPLES)
def test_an_example_is_one_short_file_that_says_what_one_sees(path):
    text = path.read_text("utf-8")
    assert len(text.splitlines()) < 80
    said = ast.get_docstring(ast.parse(text))
    assert re.search(r"\bsees?\b", said)
    assert f"python examples/{path.name}" in said


def test_every_example_is_on_its_page():
    page = (ROOT / "docs" / "howto" / "examples.md").read_text("utf-8")
    assert set(re.findall(r"(?m)^\| `(\w+)\.py`", page)) == set(EXAMPLES)


@pytest.mark.slow
def test_nothing_that_a_pupil_does_changes_whether_and_of_how_many_a_service_publishes(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["service.py", "--users", "200"])
    names = runpy.run_path(str(EXAMPLES["service"]))

    def published(behave):
        service = names["Service"](100)
        for pupil in range(30):
            service.finish(service.choose(pupil, 0)[1], True, 1)
        with contextlib.suppress(ValueError, RuntimeWarning):  # an error of hers, which the app would show to her alone
            behave(service)
        service.end_week()
        service.end_week()
        return service.board.release.version, service.board.release.users

    def asks_and_answers(service, level=0, right=False, reached=0, times=1):
        for _ in range(times):
            service.finish(service.choose(30, level)[1], right, reached)

    expected = published(asks_and_answers)
    assert expected == (1, 31)
    for hostile in (
        *({"level": level} for level in (99, -1, 2**70, 0.5, float("nan"), "text", None)),  # no level
        {"level": 2, "reached": 4, "times": 2},  # a level that jumps
        *({"right": right} for right in (7.0, "yes", None)),
        *({"reached": reached} for reached in (9, 2**70, float("nan"), "text", None)),  # no level
        {"times": 20},  # more questions than there are
    ):
        assert published(functools.partial(asks_and_answers, **hostile)) == expected, hostile
    assert published(lambda service: service.choose(30, 0)) == expected  # she closes the app

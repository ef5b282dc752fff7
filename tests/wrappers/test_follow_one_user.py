"""'Follow one user' in docs/design.md names the modules that users pass, each once, in the order in which they do."""

import re
import sys
from pathlib import Path

import pytest

import private_rl_gym
from private_rl_gym.wrappers import JDPBillboard
from tests.wrappers.stacks import S, river

PACKAGE = Path(private_rl_gym.__file__).parent
DESIGN = PACKAGE.parent / "docs" / "design.md"

BESIDE = {
    "planning/arrays.py": "checks that numbers of users are whole",
    "planning/policy.py": "checks and copies the policy",
    "planning/sampling.py": "checks the tapes",
    "planning/simulate.py": "checks that policy and tapes fit, and calls compiled code",
    "privacy/statistics/base.py": "checks the request and the ranges of trajectories, for the statistic that is named",
    "privacy/protocols/base.py": "defaults of the protocol that is named: users' messages go on as they are",
    "privacy/mechanisms/base.py": "defaults of the mechanism that is named: one call of the source of noise",
}
"""Modules that are entered on the way and left at once, with the reason for which a reader may pass them by."""


def entered(call):
    """The modules of the package in the order in which a call enters them first.

    Functions named ``check`` are left out: they look whether earlier noise was interrupted, and see no user.
    """
    modules = {}

    def note(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and frame.f_code.co_name != "check" and path.is_relative_to(PACKAGE):
            modules.setdefault(str(path.relative_to(PACKAGE)))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return list(modules)


def named():
    """The modules in the first table of 'Follow one user'."""
    part = DESIGN.read_text().split("## Follow one user")[1].split("## ")[0]
    return re.findall(r"^\| \d+ \|.*\| `([\w/]+\.py)`", part, re.MULTILINE)


@pytest.fixture
def way():
    """The way of one batch of users, on a board that an agent has bound, as agents that plan their batches go it."""
    board = JDPBillboard(river(), 1.0, 1e-6, users=100)
    board.bind("tabular", apart=True)
    board.begin_batch(50)
    modules = entered(lambda: board.serve([1] * S, 50))
    assert board.release.users == 50
    return modules


def test_the_table_names_the_way_of_a_user(way):
    assert [module for module in way if module not in BESIDE] == named()


def test_the_way_is_short_and_goes_in_one_direction(way):
    assert len(named()) == len(set(named())) <= 10
    assert len(way) <= 17
    rooms = [module.split("/")[0] for module in named()]
    assert rooms == sorted(rooms, key=["wrappers", "privacy"].index)


def test_what_is_passed_by_is_still_on_the_way(way):
    assert set(BESIDE) <= set(way)

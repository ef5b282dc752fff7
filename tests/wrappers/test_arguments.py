"""Arguments of boundaries: common options, old spellings, and errors with the line to write."""

import inspect

import numpy as np
import pytest

from private_rl_gym.wrappers import JDPBillboard, LDPPerStep, LDPUserSide, OpenBillboard, Schedule, SDPShuffler
from tests.wrappers.stacks import river, same_release

SUMMING = (JDPBillboard, LDPUserSide, OpenBillboard, SDPShuffler)


@pytest.mark.parametrize("kind", SUMMING)
def test_the_signature_names_every_common_option(kind):
    named = inspect.signature(kind).parameters
    assert {"users", "statistic", "schedule", "stationary", "horizon", "reward_range", "rng"} <= set(named)
    assert named["schedule"].default == kind.usual_batch
    assert (named["users"].default is inspect.Parameter.empty) == (kind is JDPBillboard)


@pytest.mark.parametrize("old", ["batch_size", "growth", "releases", "seed", "secure"])
@pytest.mark.parametrize("kind", SUMMING)
def test_an_old_spelling_is_refused_with_the_new_one(kind, old):
    new = "rng=" if old in ("seed", "secure") else "schedule="
    with pytest.raises(TypeError, match=f"takes no {old}: write {new}"):
        kind(river(), **{old: 1})


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: JDPBillboard(river()), "It needs epsilon=, users="),
        (lambda: JDPBillboard(river(), 1.0, 1e-6, 500), "too many positional.*by name users"),
        (lambda: LDPPerStep(river()), "It needs epsilon="),
        (lambda: OpenBillboard(river(), colour=1), "unexpected keyword argument 'colour'.*by name users"),
    ],
)
def test_arguments_that_do_not_fit_are_named_at_once(build, said):
    with pytest.raises(TypeError, match=said):
        build()


@pytest.mark.parametrize("kind", [LDPUserSide, OpenBillboard, SDPShuffler])
def test_a_number_of_releases_is_refused_where_it_would_change_nothing(kind):
    budget = {} if kind is OpenBillboard else {"epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(ValueError, match=f"{kind.__name__} plans no number of releases"):
        kind(river(), users=40, schedule=Schedule(10, releases=9), **budget)


@pytest.mark.parametrize("schedule", ["often", 2.5, None, [10]])
def test_a_schedule_is_a_number_or_a_schedule(schedule):
    with pytest.raises(TypeError, match=r"give the number of users in a batch, or Schedule\("):
        OpenBillboard(river(), schedule=schedule)


@pytest.mark.parametrize(
    ("rng", "error", "said"),
    [
        (np.random.default_rng(0), TypeError, "a generator of its own"),
        ("safe", ValueError, "a seed, 'secure', or leave it out"),
        (-1, ValueError, "rng is -1"),
    ],
)
def test_noise_takes_a_seed_or_secure_and_no_generator(rng, error, said):
    with pytest.raises(error, match=said):
        JDPBillboard(river(), 1.0, 1e-6, users=40, rng=rng)


def test_a_boundary_that_passes_everything_on_has_the_whole_signature():
    class Own(JDPBillboard):
        def __init__(self, env, note, **options):
            super().__init__(env, **options)
            self.note = note

    named = inspect.signature(Own).parameters
    assert list(named)[:2] == ["env", "note"]
    assert {"epsilon", "users", "schedule", "rng"} <= set(named)
    boards = [
        Own(river(), "a", epsilon=1.0, delta=1e-6, users=40, schedule=10, rng=3),
        JDPBillboard(river(), 1.0, 1e-6, users=40, schedule=10, rng=3),
    ]
    for board in boards:
        board.unwrapped.reset(seed=1)
        board.serve([1] * 4, users=40)
    assert same_release(*(board.release for board in boards))

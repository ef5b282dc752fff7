"""Sums of what users contribute, by the code that boundaries run."""

import numpy as np

from private_rl_gym.privacy import NoiseSource
from private_rl_gym.privacy.errors import no_error
from private_rl_gym.privacy.randomizers import Randomizer


def size(what):
    """Length of what is summed under a statistic or a randomizer: cells, and counters behind them."""
    return what.statistic.cells + what.counters if isinstance(what, Randomizer) else what.cells


def collect(what, users, sums, source=None, request=None):
    """Add what users contribute to ``sums``, under a statistic or a randomizer.

    Without a source, users have random numbers of their own.
    """
    source = NoiseSource() if source is None else source
    if isinstance(what, Randomizer):
        what.send(users, len(users), request, source, sums)
        return
    draws = what.draws * what.messages
    uniforms = source.uniform(len(users) * draws).reshape(len(users), draws) if draws else None
    what.encode(users, sums, request, uniforms)


def real(what, sums):
    """Return sums in real units, and counters as they are."""
    grid = (what.statistic if isinstance(what, Randomizer) else what).grid
    return np.concatenate([sums[: len(grid)] * grid, sums[len(grid) :]])


def decoded(what, sums):
    """Return the families of sums of contributions, as a release holds them, but without checks."""
    if isinstance(what, Randomizer):
        return what.statistic.sums(what.unbias(real(what, sums)))
    return what.sums(real(what, sums))


def errors(randomizer, users, added=no_error):
    """Return the error of each family of a sum over users, if every published cell has the error ``added``."""
    return randomizer.statistic.errors(randomizer.error(users, added), users)

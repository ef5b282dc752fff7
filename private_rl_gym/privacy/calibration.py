"""From a budget to the scale of the noise, exact or as the papers print it."""

from __future__ import annotations

from functools import partial

from private_rl_gym.privacy.conversion import gaussian_epsilon, gaussian_mu, laplace_scale
from private_rl_gym.privacy.counting import COUNTING, Batched, ContinualNoise
from private_rl_gym.privacy.errors import GaussianError, LaplaceError
from private_rl_gym.privacy.statistics import Noise, Statistic

__all__ = ["calibrate", "choose_counting", "noise_law"]


def choose_counting(counting: str | None, noise: str | None, delta: float, *, paper: str | None) -> tuple[str, str]:
    """The mechanism and the noise that were asked for, or the most accurate ones; or a sentence.

    ``paper`` is the noise of the papers, where theirs is asked for.
    """
    if paper is not None:
        if counting not in (None, "binary-tree") or noise not in (None, paper):
            raise ValueError(
                f"calibration='paper' is counting='binary-tree' with noise={paper!r}, as the papers print it."
            )
        counting, noise = "binary-tree", paper
    if counting is not None and counting not in COUNTING:
        raise ValueError(f"There is no counting {counting!r}: choose one of {', '.join(sorted(COUNTING))}.")
    if noise not in (None, "laplace", "gaussian"):
        raise ValueError(f"There is no noise {noise!r}: choose 'laplace' or 'gaussian'.")
    wants_gaussian = noise == "gaussian" or counting == "matrix-factorization"
    if wants_gaussian and delta == 0.0:
        raise ValueError(
            "delta is 0: Gaussian noise needs delta above 0. Give a small one, or ask for a tree and Laplace noise."
        )
    if counting == "matrix-factorization" and noise == "laplace":
        raise ValueError("counting='matrix-factorization' is for Gaussian noise: with Laplace noise take a tree.")
    law = "gaussian" if wants_gaussian or (noise is None and delta > 0.0) else "laplace"
    if counting == "k-ary-tree" and law == "gaussian":
        raise ValueError("counting='k-ary-tree' is for Laplace noise: add noise='laplace', or take another counting.")
    if counting == "k-ary-tree" and delta > 0.0:
        raise ValueError(
            f"counting='k-ary-tree' has a proof for delta = 0, and would waste a delta of {delta:g}: leave delta out, "
            "or take the default, counting='matrix-factorization' with Gaussian noise, which is better by far."
        )
    best = "matrix-factorization" if law == "gaussian" else "honaker-tree" if delta > 0.0 else "k-ary-tree"
    return counting or best, law


def calibrate(
    noise: ContinualNoise, statistic: Statistic, epsilon: float, delta: float, *, paper: bool
) -> tuple[float, float, float]:
    """The scale of one standard noise in real units, and the epsilon and delta that it costs.

    Gaussian noise of scale b has mu = (L2 times sensitivity) / b; what Laplace noise costs, ``laplace_scale`` says:
    docs/proofs/binary-tree.md, docs/proofs/composition.md.
    """
    if paper:
        scale = statistic.paper_scale(noise.sensitivity, epsilon, delta)
        if noise.law == "gaussian":
            return scale, gaussian_epsilon(delta, statistic.l2 * noise.sensitivity / scale), delta
        return scale, statistic.l1 * noise.sensitivity / scale, 0.0
    if noise.law == "gaussian":
        return statistic.l2 * noise.sensitivity / gaussian_mu(epsilon, delta), epsilon, delta
    spare = delta if noise.composes else 0.0
    grid = float(statistic.grid.max())
    return laplace_scale(statistic.parts, statistic.l1, round(noise.sensitivity), epsilon, spare, grid)


def noise_law(noise: ContinualNoise, scale: float, step: int) -> Noise:
    """The error of one entry of release ``step``, given the entry's grid."""
    apart = isinstance(noise, Batched)
    if noise.law == "gaussian":
        return partial(GaussianError, scale * noise.spread(step), apart=apart)
    return partial(LaplaceError, scale, noise.weights(step), apart=apart)

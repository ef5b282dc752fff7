"""A counting mechanism as a matrix, read off the real streaming code by feeding it unit noise."""

import numpy as np
from scipy.optimize import linprog


def matrix_of(mechanism, steps, law):
    """B, where release t carries B z, z being independent noise: one row a release, one column a draw."""
    return mechanism(steps, 1, law).matrix(steps)


def gaussian_loss(B):
    """The largest mu of any one user, for unit sensitivity and unit noise: how far her data moves the whole transcript.

    User t adds one to releases t, t + 1, ...: mu^2 = a' (B B')^-1 a.
    """
    steps = len(B)
    precision = np.linalg.inv(B @ B.T)
    shifts = np.tril(np.ones((steps, steps)))  # column t: what user t moves
    return float(np.sqrt(np.einsum("it,ij,jt->t", shifts, precision, shifts).max()))


def laplace_loss(B, users=None):
    """The largest L1 shift of the noise that explains one user's data away: epsilon for unit sensitivity and scale."""
    steps, draws = B.shape
    worst = 0.0
    for t in (user - 1 for user in users or range(1, steps + 1)):
        target = np.append(np.zeros(t), np.ones(steps - t))
        found = linprog(np.ones(2 * draws), A_eq=np.hstack([B, -B]), b_eq=target, method="highs")
        worst = max(worst, found.fun)
    return worst

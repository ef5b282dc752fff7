"""Generated tables: random problems with early ends and terminal rewards, and users with habits."""

import numpy as np

from private_rl_gym.envs import TabularModel
from private_rl_gym.planning.policy import Policy


def problem(n_states, n_actions, horizon, seed):
    """A model with one more state, for users who left, and the habits of its users.

    Each action leads to three states, and ends one episode in 25. The last five states end the episode with a reward;
    other states pay a little at each step.
    """
    rng = np.random.default_rng((7, seed))
    S, A = n_states, n_actions
    P, r = np.zeros((S + 1, A, S + 1)), np.zeros((S + 1, A))
    for a in range(A):
        for _ in range(3):  # each state is reached from as many
            P[np.arange(S), a, rng.permutation(S)] += rng.exponential(size=S)
    P[:S] *= 0.96 / P[:S].sum(axis=2, keepdims=True)
    P[:S, :, S] = 0.04
    r[:S] = 0.1 * rng.random((S, A))
    goals = np.arange(S - 5, S)
    P[goals], r[goals] = 0.0, 0.5 + 0.5 * rng.random((5, A))
    P[goals, :, S] = 1.0
    P[S, :, S] = 1.0
    start = np.append(np.full(S - 5, 1.0 / (S - 5)), np.zeros(6))
    habits = np.vstack([rng.dirichlet(2.0 * np.ones(A), size=S), np.full(A, 1.0 / A)])
    return TabularModel(P, r, start, horizon), Policy.of(habits, horizon=horizon, n_states=S + 1, n_actions=A)


def table(model, habits, users, seed):
    """A row for each step. The next state is empty where a user left, and in the row at the horizon."""
    rng, horizon, gone = np.random.default_rng((8, seed)), model.horizon, model.n_states - 1
    met = model.rollout(habits, model.draw_users(rng, users), rng.random((users, horizon)))
    user, stage = np.nonzero(met.states[:, :-1] != gone)
    following = met.states[:, 1:][user, stage].astype(np.float64)
    following[(following == gone) | (stage == horizon - 1)] = np.nan
    return {
        "user": user,
        "stage": stage,
        "state": met.states[:, :-1][user, stage],
        "action": met.actions[user, stage],
        "reward": met.rewards[user, stage],
        "next_state": following,
    }

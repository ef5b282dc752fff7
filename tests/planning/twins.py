"""Plain numpy twins of the compiled functions, written to be obvious."""

import numpy as np


def staged(array, horizon):
    """``array`` with its first axis repeated to the horizon."""
    return np.broadcast_to(array, (horizon, *array.shape[1:]))


def backward_induction(transitions, rewards, horizon, bonus=0.0, ceiling=np.inf):
    P, r = staged(transitions, horizon), staged(rewards, horizon)
    bonus, ceiling = np.broadcast_to(bonus, r.shape), np.broadcast_to(ceiling, r.shape)
    q, v = np.zeros(r.shape), np.zeros((horizon + 1, r.shape[1]))
    for h in reversed(range(horizon)):
        q[h] = np.minimum(ceiling[h], r[h] + bonus[h] + P[h] @ v[h + 1])
        v[h] = q[h].max(axis=1)
    return q, v


def evaluate_policy(transitions, rewards, probabilities):
    horizon = len(probabilities)
    P, r = staged(transitions, horizon), staged(rewards, horizon)
    v = np.zeros((horizon + 1, r.shape[1]))
    for h in reversed(range(horizon)):
        v[h] = (probabilities[h] * (r[h] + P[h] @ v[h + 1])).sum(axis=1)
    return v


def occupancy(transitions, initial, probabilities):
    P = staged(transitions, len(probabilities))
    visits, reached = [], initial
    for h in range(len(probabilities)):
        visits.append(reached[:, None] * probabilities[h])
        reached = np.einsum("sa,sat->t", visits[h], P[h])
    return np.array(visits)


def draw(distribution, uniform):
    """The first outcome whose cumulative probability exceeds the uniform, among those that are possible."""
    possible = np.flatnonzero(distribution)
    cumulative = np.cumsum(distribution)[possible]
    cumulative[-1] = 1.0
    return int(possible[np.flatnonzero(cumulative > uniform)[0]])


def rollout(model, policy, tape, uniforms):
    """The trajectory of one user, straight from the dense arrays."""
    H = model.horizon
    P = staged(model.transitions, H)
    R = staged(model.rewards if model.outcome_rewards is None else model.outcome_rewards, H)
    states, actions, rewards = [draw(model.initial, tape[0])], [], []
    for h in range(H):
        s = states[-1]
        a = int(policy.table[h, s]) if policy.deterministic else draw(policy.table[h, s], uniforms[h])
        following = draw(P[h, s, a], tape[2 + 2 * h])
        mean = R[h, s, a] if R.ndim == 3 else R[h, s, a, following]
        rewards.append(float(tape[1 + 2 * h] < mean) if model.reward_law == "bernoulli" else float(mean))
        actions.append(a)
        states.append(following)
    return states, actions, rewards

"""What property-based tests draw from: models, policies, tapes."""

import numpy as np
from hypothesis import strategies as st

from private_rl_gym.envs import TabularModel
from private_rl_gym.planning import Policy

seeds = st.integers(0, 2**32 - 1)


def random_distributions(rng, *shape, sparse=0.5):
    """Random distributions along the last axis, many entries exactly zero."""
    weights = rng.exponential(size=shape) * (rng.random(shape) > sparse)
    weights[..., rng.integers(shape[-1])] += 0.01
    return weights / weights.sum(axis=-1, keepdims=True)


@st.composite
def models(draw):
    """Small models of every kind: stationary or not, both reward laws, rewards that depend on the outcome or not."""
    rng = np.random.default_rng(draw(seeds))
    S, A, H = draw(st.integers(1, 12)), draw(st.integers(1, 3)), draw(st.integers(1, 5))
    law = draw(st.sampled_from(["bernoulli", "fixed"]))
    stages = draw(st.sampled_from([1, H]))
    reward_stages = draw(st.sampled_from([1, H]))
    P = random_distributions(rng, stages, S, A, S)
    initial = random_distributions(rng, S)
    if draw(st.booleans()):
        rewards = {"outcome_rewards": rng.random((reward_stages, S, A, S)).round(1)}
    else:
        rewards = {"rewards": rng.random((reward_stages, S, A)).round(1)}
    return TabularModel(P, initial=initial, horizon=H, reward_law=law, **rewards)


@st.composite
def policies(draw, model):
    """Deterministic or stochastic policies, stage-dependent or not."""
    rng = np.random.default_rng(draw(seeds))
    H, S, A = model.horizon, model.n_states, model.n_actions
    stages = draw(st.sampled_from([(), (H,)]))
    if draw(st.booleans()):
        return model.policy(rng.integers(A, size=(*stages, S)))
    return model.policy(random_distributions(rng, *stages, S, A))


@st.composite
def tapes(draw, model, users):
    """Tapes of ordinary uniforms, with some that sit exactly on, or just below, a boundary between outcomes."""
    rng = np.random.default_rng(draw(seeds))
    return on_edges(rng, model, model.draw_users(rng, users), draw(st.sampled_from([0.0, 0.3])))


def on_edges(rng, model, drawn, share):
    """Uniforms of which a share is moved onto, or just below, a boundary between outcomes of the model."""
    tables = model.tables
    edges = np.unique(np.concatenate([[0.0], tables.cumulative, tables.initial_cumulative, tables.rewards]))
    edges = np.concatenate([edges, np.nextafter(edges, 0.0)])
    edges = edges[(edges >= 0.0) & (edges < 1.0)]
    moved = rng.random(drawn.shape) < share
    drawn[moved] = rng.choice(edges, size=int(moved.sum()))
    return drawn


def uniform_policy(model) -> Policy:
    return Policy.uniform(horizon=model.horizon, n_states=model.n_states, n_actions=model.n_actions)

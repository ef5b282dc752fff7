"""The lower bounds' setting: bandits inside HardMDP, best arms, and agents above the bound."""

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.agents import DPUCBVI, UCBVI
from private_rl_gym.lab.grids.grid import read_grid
from private_rl_gym.lab.grids.run import run_cell
from private_rl_gym.lab.papers import bandits
from private_rl_gym.lab.papers.bounds import best_arm_pulls, lower_bound, pac_lower_bound
from private_rl_gym.wrappers import JDPBillboard


def test_the_traces_of_an_agent_are_its_first_actions_state_by_state():
    env = gym.make("PrivateRL/HardMDP-v0", n=3, m=2, horizon=4)
    model = env.unwrapped.model
    tapes = model.draw_users(np.random.default_rng(0), 60)
    agent, plain = (UCBVI("TabularPolicy", gym.make(env.spec), seed=0) for _ in range(2))
    traces = bandits.bandit_traces(agent, tapes)
    wanted = {s: [] for s in range(3)}
    for tape in tapes:
        start = model.rollout(plain.policy, tape[None]).states[0, 0]
        wanted[int(start)].append(plain.policy.action(0, int(start)))
        plain.board.serve(plain.policy, tape[None])
    for s, trace in traces.items():
        assert trace.arms.tolist() == wanted[s]
        assert trace.final == plain.policy.action(0, s)
    assert sum(len(trace.arms) for trace in traces.values()) == 60


def test_a_trace_depends_on_other_bandits_users_through_releases_alone():
    """With exact sums, what happens to users of other start states does not move a bandit's trace (lemma 9)."""
    env = gym.make("PrivateRL/HardMDP-v0", n=2, m=1, horizon=3)
    tapes = env.unwrapped.model.draw_users(np.random.default_rng(1), 80)
    other = tapes.copy()
    elsewhere = tapes[:, 0] >= 0.5  # these start in state 1
    other[elsewhere, 1:] = env.unwrapped.model.draw_users(np.random.default_rng(2), int(elsewhere.sum()))[:, 1:]
    first, second = (
        bandits.bandit_traces(UCBVI("TabularPolicy", gym.make(env.spec)), users)[0] for users in (tapes, other)
    )
    assert first.arms.tolist() == second.arms.tolist()
    assert first.final == second.final


@pytest.mark.slow
def test_private_best_arm_identification():
    """With many users the best arm is named nearly always; more than the bound's pulls are spent on others."""
    named, pulls = 0, 0.0
    for seed in range(20):
        env = gym.make("PrivateRL/HardBandit-v0", m=3, alpha=0.3, instance=2)
        env.reset(seed=seed)
        board = JDPBillboard(env, 4.0, 0.0, users=4000, schedule=20, public_start=True, rng=seed)
        agent = DPUCBVI("TabularPolicy", board, seed=seed)
        named += bandits.best_arm(agent, 4000) == 2
        pulls += 4000 - board.release.n[0, 0, 2]
    assert named >= 19
    assert pulls / 20 >= 3 * best_arm_pulls(4.0, 0.3, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["DPUCBVI", "PUCB"])
def test_private_agents_stay_above_the_lower_bound(name):
    """Where it asks for something, 51 users at epsilon = 0.1; the need falls as epsilon grows, as the bound does."""
    cells = {c.epsilon: c for c in read_grid("hard", users=2_000_000, seeds=1).cells if c.agent.name == name}
    needs = {epsilon: run_cell(cells[epsilon]).about["mistakes"] for epsilon in (0.1, 10.0)}
    for epsilon, mistakes in needs.items():
        assert mistakes >= lower_bound(cells[epsilon].to_dict(), epsilon)
    assert lower_bound(cells[0.1].to_dict(), 0.1) > 50
    assert needs[10.0] < needs[0.1]


def test_the_bound_is_for_the_class_that_it_is_proved_on():
    (cell, *_) = read_grid("hard").cells
    assert lower_bound(cell.to_dict(), 1.0) == pytest.approx(pac_lower_bound(10, 20, 11, 1.0, 0.35, 0.05))
    (other, *_) = read_grid("riverswim").cells
    assert lower_bound(other.to_dict(), 1.0) is None

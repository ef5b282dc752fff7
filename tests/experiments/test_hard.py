"""The lower bounds' setting: bandits inside HardMDP, best arms, and agents above the bound."""

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.agents import DPUCBVI, PUCB, UCBVI
from private_rl_gym.experiments import hard
from private_rl_gym.experiments.bounds import best_arm_pulls, pac_lower_bound
from private_rl_gym.wrappers import JDPBillboard


def test_the_traces_of_an_agent_are_its_first_actions_state_by_state():
    env = gym.make("PrivateRL/HardMDP-v0", n=3, m=2, horizon=4)
    model = env.unwrapped.model
    tapes = model.draw_users(np.random.default_rng(0), 60)
    agent, plain = (UCBVI("TabularPolicy", gym.make(env.spec), seed=0) for _ in range(2))
    traces = hard.bandit_traces(agent, tapes)
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
        hard.bandit_traces(UCBVI("TabularPolicy", gym.make(env.spec)), users)[0] for users in (tapes, other)
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
        board = JDPBillboard(env, 4.0, 0.0, 4000, publish_every=20, public_start=True, seed=seed)
        agent = DPUCBVI("TabularPolicy", board, seed=seed)
        named += hard.best_arm(agent, 4000) == 2
        pulls += 4000 - board.release.n[0, 0, 2]
    assert named >= 19
    assert pulls / 20 >= 3 * best_arm_pulls(4.0, 0.3, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DPUCBVI, PUCB])
def test_private_agents_stay_above_the_lower_bound(kind):
    """Where it asks for something, 51 users at epsilon = 0.1; the need falls as epsilon grows, as the bound does."""
    needs = []
    for epsilon in (0.1, 10.0):

        def make(env, budget):
            board = JDPBillboard(env, budget, 0.0, 2_000_000, publish_every=5_000, public_start=True, seed=0)
            return kind("TabularPolicy", board, seed=0)

        needs.append(hard.mistakes(make, epsilon, 2_000_000, 0.35, seed=0, n=20, m=10, horizon=10))
        assert needs[-1] >= pac_lower_bound(10, 20, 11, epsilon, 0.35, 0.05)
    assert pac_lower_bound(10, 20, 11, 0.1, 0.35, 0.05) > 50
    assert needs[1] < needs[0]


def test_the_figure_has_a_command(tmp_path, capsys):
    path = hard.main(["--users", "200", "--seeds", "1", "--out", str(tmp_path)])
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "bound" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        hard.main(["--seeds", "0"])
    assert "--seeds is 0" in capsys.readouterr().err

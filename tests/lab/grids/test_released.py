"""The published experiment that DP-UCBVI's figure 1 follows: its regret, its plan, and what its noise does not hide."""

import math

import gymnasium as gym
import numpy as np
import pytest

from private_rl_gym.lab.grids.grid import GridError, grid_of, read_grid
from private_rl_gym.lab.grids.released import PrivateTabularRL
from private_rl_gym.lab.regret import learn_with_regret
from private_rl_gym.wrappers import JDPBillboard, OpenBillboard

USERS, H, S, A = 50_000, 20, 6, 2


def agent_on(users, *, seed=0, **options):
    board = OpenBillboard(gym.make("PrivateRL/RiverSwim-v0", horizon=H), users=users)
    board.unwrapped.reset(seed=seed)
    return PrivateTabularRL("TabularPolicy", board, seed=seed, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "low", "high"),
    [
        ({"noise": "none"}, 1_450, 1_800),
        ({"epsilon": 1.0}, 3_550, 3_900),
        ({"epsilon": 2.0}, 2_600, 2_950),
    ],
)
def test_regret_is_that_of_the_experiment(options, low, high):
    """Its code, run for 50,000 users, gives 1,606 to 1,625, 3,704 to 3,773 and 2,766 to 2,805."""
    finals = [learn_with_regret(agent_on(USERS, seed=seed, **options), USERS)[-1] for seed in range(2)]
    assert low < np.mean(finals) < high


def test_the_plan_without_noise_is_that_of_the_formulas():
    agent = agent_on(40, noise="none")
    agent.learn(30 * H)
    release = agent.board.release
    n = 1.0 + np.array([[release.n[:, s, a].sum() for a in range(A)] for s in range(S)])
    m = 1.0 + np.array([[release.m[: H - 1, s, a].sum(axis=0) for a in range(A)] for s in range(S)])
    r = 1.0 + np.array([[release.r[:, s, a].sum() for a in range(A)] for s in range(S)])
    assert n.sum() == S * A + 30 * H
    assert m.sum() == S * A * S + 30 * (H - 1)
    v = np.zeros(S)
    for h in reversed(range(H)):
        q = np.empty((S, A))
        for s in range(S):
            for a in range(A):
                visits = m[s, a].sum()
                q[s, a] = r[s, a] / n[s, a] + math.sqrt(2 * math.log(3) / n[s, a])
                q[s, a] += m[s, a] @ v / visits + math.sqrt(2 * math.log(3) / visits) * (H - 1 - h)
        assert [agent.policy.action(h, s) for s in range(S)] == list(q.argmax(axis=1))
        v = q.max(axis=1)


def test_joint_noise_is_drawn_anew_and_shared_by_two_families():
    """Sums of floor(ln t) + 1 draws. The difference of the two numbers of visits, of last steps, has no noise."""
    agent = agent_on(10, epsilon=0.5)
    for user in (1, 2, 3, 30, 1_000):
        draws = math.floor(math.log(user)) + 1
        found = [agent._drawn(user, 40, 40) for _ in range(2)]
        assert found[0][3] == pytest.approx(math.sqrt(draws) / 0.5)
        for sums in found[0][:3]:
            assert sums.std() == pytest.approx(math.sqrt(2 * draws) / 0.5, rel=0.15)
        assert abs(np.corrcoef(found[0][2].ravel(), found[1][2].ravel())[0, 1]) < 0.03


def test_local_noise_is_the_same_in_all_cells_and_grows_with_users():
    agent = agent_on(10, noise="local", epsilon=2.0)
    first, later = agent._drawn(1, S, A), agent._drawn(400, S, A)
    for on_visits, on_rewards, on_transitions, _ in (first, later):
        assert np.ptp(on_visits) == np.ptp(on_rewards) == 0.0
        assert (on_transitions == on_transitions[0, 0]).all()
    assert later[3] == pytest.approx(math.sqrt(400) / 2.0)
    sums = np.array([agent_on(1, noise="local", seed=seed)._drawn(400, S, A)[0][0, 0] for seed in range(200)])
    assert sums.std() == pytest.approx(math.sqrt(2 * 400), rel=0.2)


def test_averaged_plans_show_one_user():
    """At 'epsilon = 1' an (epsilon, 0)-DP mechanism has a likelihood ratio of at most e. Here it is more than 9.

    One user more in a cell of rewards is looked for in the mean of the noisy sums before 400 plans.
    """
    agent = agent_on(1, epsilon=1.0)
    weights = np.array([1.0 / (math.floor(math.log(user)) + 1) for user in range(1, 401)])
    mean = sum(w * agent._drawn(user, 40, 20)[1] for user, w in enumerate(weights / weights.sum(), start=1)).ravel()
    assert (mean[:400] + 1.0 > 0.5).mean() > 0.9
    assert (mean[400:] > 0.5).mean() < 0.1


@pytest.mark.parametrize("draws", [1, 2, 4])
def test_a_sum_of_draws_costs_as_much_as_one(draws):
    """The ratio of neighbouring outcomes never exceeds e^(1/b), and comes near it far out: no more, and no less."""
    b = 2.0
    mass = np.exp(-np.abs(np.arange(-600, 601)) / b) * math.tanh(0.5 / b)
    law = mass
    for _ in range(draws - 1):
        law = np.convolve(law, mass)
    middle = len(law) // 2
    ratios = np.log(law[middle : middle + 200] / law[middle + 1 : middle + 201])
    assert ratios.max() <= 1 / b + 1e-9
    assert ratios[-1] >= 0.96 / b


def test_it_promises_nothing_and_takes_exact_sums_alone():
    agent = agent_on(20).learn(20 * H)
    assert agent.guarantee.epsilon == math.inf
    with pytest.raises(ValueError, match=r"adds noise of its own.*OpenBillboard"):
        PrivateTabularRL("TabularPolicy", JDPBillboard(gym.make("PrivateRL/RiverSwim-v0"), 1.0, 1e-6, users=10))
    with pytest.raises(ValueError, match="noise is 'jdp': choose 'joint', 'local' or 'none'"):
        agent_on(1, noise="jdp")


def test_the_built_in_grid_names_it_and_no_file_names_code_of_others():
    agents = {cell.agent.name for cell in read_grid("figure-1").cells}
    assert "private_rl_gym.lab.grids.released:PrivateTabularRL" in agents
    with pytest.raises(GridError, match="names code"):
        grid_of({"users": 10, "agent": "private_rl_gymnast:Agent", "boundary": "open", "environment": "RiverSwim"})

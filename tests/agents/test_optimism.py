"""At theory constants values are optimistic: Q >= Q* at every stage, in at least 1 - beta of runs."""

import gymnasium as gym
import pytest

from private_rl_gym import agents
from private_rl_gym.agents.private_ucbvi import hoeffding_bonus
from private_rl_gym.planning.hoeffding import optimistic_plan
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, OpenBillboard

BETA, USERS = 0.1, 300
PROBLEMS = [
    ("PrivateRL/RiverSwim-v0", {"horizon": 5, "n_states": 4}),
    ("PrivateRL/HardMDP-v0", {"n": 2, "m": 1, "horizon": 3}),
    *(
        ("PrivateRL/Garnet-v0", {"n_states": 4, "n_actions": 2, "horizon": 4, "branching": 2, "instance_seed": s})
        for s in range(20)
    ),
]
BOARDS = {
    "open": lambda env: OpenBillboard(env, USERS),
    "jdp": lambda env: JDPBillboard(env, 20.0, 1e-6, USERS, publish_every=5),
    "ldp": lambda env: LDPUserSide(env, 20.0, users=USERS, publish_every=5),
}


def values(agent):
    """The optimistic Q of the newest release."""
    _ = agent.policy
    release = agent.board.release
    if isinstance(agent, agents.PUCB):
        return agent.priv_q(release).q
    if isinstance(agent, agents.PrivateUCBVI):
        return optimistic_plan(*hoeffding_bonus(agent, release), staged=True).q
    return agent.q


@pytest.mark.slow
@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("UCBVI", {}),
        ("UCBVI", {"variant": "hoeffding"}),
        ("UBEV", {}),
        ("PUCB", {}),
        ("PrivateUCBVI", {}),
        ("DPUCBVI", {}),
    ],
)
def test_theory_is_optimistic(name, options, board):
    """22 problems; at beta = 0.1 more than 7 failures have probability below 1e-3. In fact there are none."""
    if name in ("UCBVI", "UBEV") and board != "open":
        return  # these read counts as exact, and promise nothing on noisy ones
    failures = 0
    for number, (id, arguments) in enumerate(PROBLEMS):
        env = gym.make(id, **arguments)
        env.unwrapped.reset(seed=number)
        agent = getattr(agents, name)(
            "TabularPolicy", BOARDS[board](env), bonus="theory", beta=BETA, seed=number, **options
        )
        truth, pessimistic = env.unwrapped.model.optimum.q, False
        for _ in range(6):
            agent.learn(USERS // 6 * agent.horizon)
            pessimistic |= bool((values(agent) < truth - 1e-9).any())
        failures += pessimistic
    assert failures <= 7


def test_a_bonus_that_is_too_small_is_caught():
    """Without any bonus, the same check fails on most problems."""
    failures = 0
    for number, (id, arguments) in enumerate(PROBLEMS):
        env = gym.make(id, **arguments)
        env.unwrapped.reset(seed=number)
        agent = agents.UCBVI("TabularPolicy", OpenBillboard(env, USERS), bonus_scale=1e-6, seed=number)
        agent.learn(USERS * agent.horizon)
        failures += bool((values(agent) < env.unwrapped.model.optimum.q - 1e-9).any())
    assert failures > 15

"""A private learner on RiverSwim at epsilon = 1, the first example to run.

Fifty thousand users swim up a river, one after the other. The right bank pays 1, and the left bank pays 0.005. The
learner sees only sums with noise. You see the value of its policy after each fifth of the users, beside the best
policy and random actions, and the guarantee. At the end the policy is nearly optimal. Run with ``--users 2000`` to
see that privacy needs many users.

    python examples/flagship_riverswim.py --users 50000
"""

import argparse

import gymnasium as gym

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.agents import FrugalUCBVI
from private_rl_gym.planning import Policy
from private_rl_gym.wrappers import JDPBillboard

parser = argparse.ArgumentParser(description="A private learner on RiverSwim.")
parser.add_argument("--users", type=int, default=50_000)
parser.add_argument("--epsilon", type=float, default=1.0)
parser.add_argument("--seed", type=int, default=0, help="of the agent alone; noise is never seeded here")
args = parser.parse_args()

# The users, the boundary, the learner: each is one line. The river is the same at every step, and the boundary says so.
env = gym.make("PrivateRL/RiverSwim-v0", horizon=20)
board = JDPBillboard(env, epsilon=args.epsilon, delta=1e-6, users=args.users, stationary=True)
agent = FrugalUCBVI("TabularPolicy", board, seed=args.seed)

for part in range(1, 6):
    agent.learn(total_timesteps=args.users // 5 * agent.horizon, reset_num_timesteps=False)
    worth = env.unwrapped.model.value_of(agent.best_policy())  # known to the experimenter, and not to the agent
    print(f"{args.users // 5 * part:7,} users: the policy is worth {worth:.3f}")

# The truth about the river is exact, so that nothing here is an estimate.
truth = env.unwrapped.model
best = truth.optimal_value()
chance = truth.value_of(Policy.uniform(horizon=20, n_states=6, n_actions=2))
print(f"actions at random are worth {chance:.3f}, the best policy {best:.3f}")
print(board.ledger)

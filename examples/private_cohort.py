"""A policy from a table of earlier patients, with a guarantee to each of them.

The table is synthetic: its numbers are made up. It has a row for each visit, and it stays behind the boundary, which
publishes noisy sums once. You see the guarantee in full sentences and the treatment that the policy chooses in each
state. The truth is known here, so you also see the value of the policy beside the best policy and the doctors behind
the table.

    python examples/private_cohort.py --users 20000
"""

import argparse

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.agents import DPUCBVI
from private_rl_gym.envs import Cohort, LoggedUsers
from private_rl_gym.wrappers import JDPBillboard

parser = argparse.ArgumentParser(description="A private policy from a table of patients.")
parser.add_argument("--users", type=int, default=20_000)
parser.add_argument("--epsilon", type=float, default=1.0)
args = parser.parse_args()

# A mapping of columns; an Arrow table or a pandas frame does as well.
table = Cohort.table(users=args.users)
print(f"{len(table['user']):,} rows, columns {', '.join(table)}")

# Sizes are stated, not counted: how many states and treatments there are is public.
# Who left care waits in one more state, the last.
states = Cohort.states[:-1]
env = LoggedUsers(n_states=len(states), n_actions=len(Cohort.treatments), horizon=12)
board = JDPBillboard(env, epsilon=args.epsilon, delta=1e-6, users=args.users, schedule=args.users)
board.ingest(table)

# Nobody will come to correct a mistake, so the plan is pessimistic. It is computed from the noisy sums alone.
agent = DPUCBVI("TabularPolicy", board).learn_offline(stationary=True)
print(board.ledger.sentence(), "\n")

chosen, _ = agent.predict(list(range(len(states))))
for state, action in zip(states, chosen, strict=True):
    print(f"{state:32} {Cohort.treatments[action]}")

# A real table has no truth to look at.
truth = Cohort(horizon=12).model
print(f"\ndoctors behind the table  {truth.value_of(Cohort.habits()):.2f} good quarters of 12")
print(f"the private policy        {truth.value_of(agent.policy):.2f}")
print(f"the best policy           {truth.optimal_value():.2f}")

"""The number of users that problems of several sizes need.

This makes the table of docs/howto/people.md.

Run with ``python benchmarks/sizes.py``; it takes half an hour on one core. It asks the question of ``private-rl-gym
plan`` without ``--users``. The answer is the fewest users, of 1, 2 and 5 times powers of ten, whose total regret is at
most a quarter of that of random actions. ``--tables`` prints the table of docs/howto/patients.md in its place: policies
learned from small tables.
"""

from __future__ import annotations

import argparse
import math
import warnings

from private_rl_gym.agents import DPUCBVI
from private_rl_gym.envs import Cohort, LoggedUsers
from private_rl_gym.lab.planner.advice import LEARNS
from private_rl_gym.lab.planner.adviser import Adviser
from private_rl_gym.lab.planner.problems import Problem, problem_of, problem_of_size
from private_rl_gym.wrappers import JDPBillboard, OpenBillboard

PROMISES = [("open", math.inf), ("jdp", 4.0), ("jdp", 1.0), ("jdp", 0.25), ("sdp", 1.0), ("ldp", 4.0), ("ldp", 1.0)]
GARNETS = [(5, 2, 5), (10, 4, 10), (20, 4, 20), (50, 4, 20), (100, 12, 40)]
RIVERS = [(6, 20), (12, 40), (20, 60)]


def problems() -> list[tuple[str, Problem]]:
    """Return problems by name.

    Garnets pay everywhere, and rivers pay far away.
    """
    garnets = [(f"{S} x {A} x {H}", problem_of_size(S, A, H)) for S, A, H in GARNETS]
    rivers = [(f"river, {S} x 2 x {H}", problem_of("RiverSwim", {"n_states": S}, horizon=H)) for S, H in RIVERS]
    return garnets + rivers


def from_tables(tables: int) -> None:
    """Print the value of policies that were learned from tables of patients.

    Rows are by the size of the table, and a row has this number of tables.
    """
    warnings.simplefilter("ignore", UserWarning)  # about seeds
    truth, sizes = Cohort(horizon=12).model, {"n_states": 7, "n_actions": 4, "horizon": 12}
    habits = truth.value_of(Cohort.habits())
    print(f"doctors {habits:.2f}, best {truth.optimal_value():.2f}")
    print("| patients | epsilon | mean | least | better than the doctors |\n|---|---|---|---|---|")
    for users in (300, 500, 1_000, 2_000, 5_000, 20_000):
        for epsilon in (0.5, 1.0, 4.0, math.inf):
            worth = []
            for number in range(tables):
                env, options = LoggedUsers(**sizes), {"users": users, "schedule": users}
                board = (
                    JDPBillboard(env, epsilon, 1e-6, **options, rng=number)
                    if math.isfinite(epsilon)
                    else OpenBillboard(env, **options)
                )
                board.ingest(Cohort.table(users=users, instance_seed=number))
                agent = DPUCBVI("TabularPolicy", board, seed=number).learn_offline(stationary=True)
                worth.append(truth.value_of(agent.policy))
            better = sum(value > habits for value in worth)
            print(f"| {users:,} | {epsilon:g} | {sum(worth) / tables:.2f} | {min(worth):.2f} | {better} |", flush=True)


def main() -> None:
    """Print the table, line by line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=300.0, help="for each number")
    parser.add_argument("--steps-differ", action="store_true")
    parser.add_argument("--tables", action="store_true", help="policies from tables of patients, ten of each size")
    arguments = parser.parse_args()
    if arguments.tables:
        from_tables(10)
        return
    options = {"runs": arguments.runs, "seconds": arguments.seconds, "stationary": not arguments.steps_differ}
    heads = ["not private" if math.isinf(epsilon) else f"{trust.upper()} {epsilon:g}" for trust, epsilon in PROMISES]
    print(f"| states x actions x steps | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}")
    for name, problem in problems():
        cells = []
        for trust, epsilon in PROMISES:
            found = Adviser(problem, **options).fewest(trust, epsilon, LEARNS)
            never = "?" if found.notes else f"over {found.users:,}"
            cells.append(f"{found.users:,}" if found.enough else never)
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

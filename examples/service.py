"""A service that asks the learner what to do: nobody calls ``env.step``, and many users are there at once.

Pupils answer six questions each on an app, whenever they like. Some leave early, some come back, and nobody knows how
many come in a week. The app calls ``choose`` and ``finish``, in any order of pupils. When a week is over, and one more
in which all who began in it could end, its rows go behind the boundary as one batch; out come noisy sums, and a policy
for the next pupils. One sees answers get better from week to week, and the promise to each pupil.

    python examples/service.py --users 40000
"""

import argparse

import numpy as np

from private_rl_gym.agents import PSRL
from private_rl_gym.envs import LoggedUsers
from private_rl_gym.wrappers import JDPBillboard

parser = argparse.ArgumentParser(description="A service that asks the learner what to do.")
parser.add_argument("--users", type=int, default=40_000, help="the most that may come, in ten weeks")
args = parser.parse_args()
LEVELS, KINDS, QUESTIONS, WEEKS = 5, 3, 6, 10
COLUMNS = ("user", "stage", "state", "action", "reward", "next_state")


class Service:
    """The door between an app and a learner. What it writes down is raw data, and stays in it."""

    def __init__(self, users: int) -> None:
        env = LoggedUsers(n_states=LEVELS, n_actions=KINDS, horizon=QUESTIONS)  # sizes, and nobody to meet
        options = {"batch_size": users, "releases": WEEKS, "stationary": True}
        self.board = JDPBillboard(env, epsilon=1.0, delta=1e-6, users=users, **options)
        self.agent = PSRL("TabularPolicy", self.board)
        self.now: dict[int, list[list]] = {}  # the rows of each pupil who began this week
        self.before: dict[int, list[list]] = {}  # last week
        self.known: set[int] = set()  # earlier: they are welcome, and counted once

    def choose(self, pupil: int, level: int) -> int:
        """The kind of question for a pupil who is at this level now."""
        rows = self.before.get(pupil)
        if rows is None:
            rows = [] if pupil in self.known else self.now.setdefault(pupil, [])
        stage = min(len(rows), QUESTIONS - 1)
        kind, _ = self.agent.predict(level, (np.array([stage]),))
        if len(rows) < QUESTIONS:  # until it is finished, a question counts as one where she left
            rows.append([pupil, stage, level, int(kind), 0.0, None])
        return int(kind)

    def finish(self, pupil: int, right: bool, reached: int) -> None:
        """Write down what became of her question."""
        rows = self.before.get(pupil) or self.now.get(pupil)
        if rows:
            rows[-1][-2:] = [float(right), reached]

    def end_week(self) -> None:
        """Learn from those who began last week, all of them, whenever and however they ended."""
        if rows := [row for pupil in self.before.values() for row in pupil]:
            self.board.ingest(dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))
            self.board.publish()
        self.known |= self.before.keys()
        self.before, self.now = self.now, {}


rng = np.random.default_rng(0)
service, come = Service(args.users), 0
for week in range(WEEKS):
    here = {come + number: int(rng.integers(2)) for number in range(rng.integers(args.users // WEEKS))}  # their levels
    come, asked, answered = come + len(here), 0, 0
    for pupil in rng.permutation(np.repeat(list(here), QUESTIONS)).tolist():  # all are there at once
        kind = service.choose(pupil, level := here[pupil])
        if rng.random() < 0.05:
            continue  # she closes the app, and may open it again
        right = bool(rng.random() < (0.9 if kind == level % KINDS else 0.3))  # each level has a kind that suits it
        service.finish(pupil, right, level := min(LEVELS - 1, level + right))
        here[pupil] = level
        asked, answered = asked + 1, answered + right
    service.end_week()
    print(f"week {week + 1}: {len(here):5,} pupils, {answered / max(1, asked):.0%} of their answers are right")
print(service.board.ledger.sentence())

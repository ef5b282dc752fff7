"""A service with many users at once that asks the learner for actions.

Pupils answer six questions each on an app; some leave early, some come back. The app calls ``choose`` and ``finish`` in
any order. The rows of the users who began in a week are one batch, published a week later: noisy sums, and a policy.
You see answers get better, in numbers that only a simulation may show. No part of the service calls ``env.step``.

    python examples/service.py --users 40000
"""

import argparse

import numpy as np

from private_rl_gym.agents import PSRL
from private_rl_gym.envs import LoggedUsers
from private_rl_gym.wrappers import JDPBillboard, Schedule

parser = argparse.ArgumentParser(description="A service that asks the learner what to do.")
parser.add_argument("--users", type=int, default=40_000, help="the most that are counted, in ten weeks")
args = parser.parse_args()
LEVELS, KINDS, QUESTIONS, WEEKS = 5, 3, 6, 10
COLUMNS = ("user", "stage", "state", "action", "reward", "next_state")


class Service:
    """The link between an app and a learner, which keeps the raw data inside."""

    def __init__(self, users: int) -> None:
        env = LoggedUsers(n_states=LEVELS, n_actions=KINDS, horizon=QUESTIONS)  # sizes, and nobody to meet
        weeks = Schedule(users, releases=WEEKS + 1)  # one release is for users who never come
        self.board = JDPBillboard(env, epsilon=1.0, delta=1e-6, users=users, schedule=weeks, stationary=True)
        self.agent = PSRL("TabularPolicy", self.board)
        self.now: dict[int, list[list]] = {}  # the rows of each pupil who began this week
        self.before: dict[int, list[list]] = {}  # last week
        self.known: set[int] = set()  # earlier: they are welcome, and are not counted again

    def choose(self, pupil: int, level: int) -> tuple[int, list | None]:
        """Return the kind of question for a pupil's level, and the row to finish."""
        full = len(self.known) + len(self.before) + len(self.now) >= self.board.users
        rows = self.before.get(pupil) or self.now.get(pupil, [])
        counted = len(rows) < QUESTIONS if rows else pupil not in self.known and not full
        row = [pupil, len(rows), -1, 0, 0.0, None] if counted else None  # no level yet: a bad row, which counts
        stage = min(len(rows), QUESTIONS - 1)
        if row:  # before anything can fail: whether they count must not depend on their actions
            (self.before if pupil in self.before else self.now).setdefault(pupil, []).append(row)
        kind = int(self.agent.predict(level, (np.array([stage]),))[0])
        if row:
            row[2:4] = int(level), kind  # predict took it, so that it is a level
        return kind, row

    def finish(self, row: list | None, right: bool, reached: int) -> None:
        """Record the result of a question; a wrong level is recorded as -1."""
        if row:
            row[4:] = float(right is True), next((level for level in range(LEVELS) if level == reached), -1)

    def end_week(self) -> None:
        """Learn from last week's pupils; bad rows are emptied, and cannot stop a release."""
        if table := [row for rows in self.before.values() for row in rows]:
            columns = dict(zip(COLUMNS, zip(*table, strict=True), strict=True))
            self.board.ingest(columns, bad_rows="empty", most_emptied=1)
            self.board.publish()
        self.known, self.before, self.now = self.known | self.before.keys(), self.now, {}


rng, come, service = np.random.default_rng(0), 0, Service(args.users)
print(service.board.ledger.sentence())  # before anything that is learned is shown
for week in range(WEEKS):
    here = {come + number: int(rng.integers(2)) for number in range(rng.integers(1 + args.users // WEEKS))}
    come, answers = come + len(here), [0, 0]
    for pupil in rng.permutation(np.repeat(list(here), QUESTIONS)).tolist():  # all are there at once
        kind, row = service.choose(pupil, level := here[pupil])
        if rng.random() < 0.95:  # else they close the app, and may open it again
            right = bool(rng.random() < (0.9 if kind == level % KINDS else 0.3))  # each level has a kind that suits it
            here[pupil] = min(LEVELS - 1, level + right)
            service.finish(row, right, here[pupil])
            answers[right] += 1
    service.end_week()
    print(f"week {week + 1}: {len(here):5,} pupils, {answers[1] / max(1, sum(answers)):.0%} of their answers are right")
service.end_week()

"""A service that asks the learner what to do: nobody calls ``env.step``, and many users are there at once.

Pupils answer six questions each on an app; some leave early, some come back. The app calls ``choose`` and ``finish``,
in any order. When one more week is over, in which all could end, the rows of those who began in a week are one batch;
out come noisy sums, and a policy. One sees answers get better, in numbers that only a simulation may show.

    python examples/service.py --users 40000
"""

import argparse

import numpy as np

from private_rl_gym.agents import PSRL
from private_rl_gym.envs import LoggedUsers
from private_rl_gym.wrappers import JDPBillboard

parser = argparse.ArgumentParser(description="A service that asks the learner what to do.")
parser.add_argument("--users", type=int, default=40_000, help="the most that are counted, in ten weeks")
args = parser.parse_args()
LEVELS, KINDS, QUESTIONS, WEEKS = 5, 3, 6, 10
COLUMNS = ("user", "stage", "state", "action", "reward", "next_state")


class Service:
    """The door between an app and a learner. What it writes down is raw data, and stays in it."""

    def __init__(self, users: int) -> None:
        env = LoggedUsers(n_states=LEVELS, n_actions=KINDS, horizon=QUESTIONS)  # sizes, and nobody to meet
        options = {"batch_size": users, "releases": WEEKS + 1, "stationary": True}  # one is for those who never come
        self.board = JDPBillboard(env, epsilon=1.0, delta=1e-6, users=users, **options)
        self.agent = PSRL("TabularPolicy", self.board)
        self.now: dict[int, list[list]] = {}  # the rows of each pupil who began this week
        self.before: dict[int, list[list]] = {}  # last week
        self.known: set[int] = set()  # earlier: they are welcome, and are not counted again

    def choose(self, pupil: int, level: int) -> tuple[int, list | None]:
        """The kind of question for a pupil who is at this level now, and the row to finish."""
        full = len(self.known) + len(self.before) + len(self.now) >= self.board.users
        rows = self.before.get(pupil) or self.now.get(pupil, [])
        counted = len(rows) < QUESTIONS if rows else pupil not in self.known and not full
        row = [pupil, len(rows), -1, 0, 0.0, None] if counted else None  # no level yet: a bad row, which counts
        stage = min(len(rows), QUESTIONS - 1)
        if row:  # before anything can fail: whether she counts is not to depend on what she does
            (self.before if pupil in self.before else self.now).setdefault(pupil, []).append(row)
        kind = int(self.agent.predict(level, (np.array([stage]),))[0])
        if row:
            row[2:4] = int(level), kind  # predict took it, so that it is a level
        return kind, row

    def finish(self, row: list | None, right: bool, reached: int) -> None:
        """Write down what became of a question. What is no level never gets into a column."""
        if row:
            row[4:] = float(right is True), next((level for level in range(LEVELS) if level == reached), -1)

    def end_week(self) -> None:
        """Learn from all who began last week. Bad rows are emptied: else one would stop everything, and tell of her."""
        if table := [row for rows in self.before.values() for row in rows]:
            self.board.ingest(dict(zip(COLUMNS, zip(*table, strict=True), strict=True)), bad_rows="empty")
            self.board.publish()
        self.known |= self.before.keys()
        self.before, self.now = self.now, {}


rng, come, service = np.random.default_rng(0), 0, Service(args.users)
for week in range(WEEKS):
    here = {come + number: int(rng.integers(2)) for number in range(rng.integers(1 + args.users // WEEKS))}
    come, answers = come + len(here), [0, 0]
    for pupil in rng.permutation(np.repeat(list(here), QUESTIONS)).tolist():  # all are there at once
        kind, row = service.choose(pupil, level := here[pupil])
        if rng.random() < 0.95:  # else she closes the app, and may open it again
            right = bool(rng.random() < (0.9 if kind == level % KINDS else 0.3))  # each level has a kind that suits it
            here[pupil] = min(LEVELS - 1, level + right)
            service.finish(row, right, here[pupil])
            answers[right] += 1
    service.end_week()
    print(f"week {week + 1}: {len(here):5,} pupils, {answers[1] / max(1, sum(answers)):.0%} of their answers are right")
service.end_week()
print(service.board.ledger.sentence())

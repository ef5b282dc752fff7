"""The same seeds give the same releases, ledgers and policies: digests of every kind of boundary, statistic and agent.

A change that is meant to keep results leaves all digests as they are. ``python -m tests.wrappers.test_same_releases``
records new cases. A change that alters digests on purpose records all anew, with ``--anew`` behind this line, and says
why in the changelog.
"""

import hashlib
import inspect
import json
import sys
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym import agents
from private_rl_gym.agents.base import Agent
from private_rl_gym.planning.network import Layers
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.simulate import rollout
from private_rl_gym.privacy.mechanisms import MECHANISMS
from private_rl_gym.privacy.requests import Objective, Values, Wanted
from private_rl_gym.privacy.schedule import Schedule
from private_rl_gym.wrappers import JDPBillboard, LDPPerStep, LDPUserSide, OpenBillboard, SDPShuffler

RECORD = Path(__file__).with_suffix(".json")
H, S, A = 20, 6, 2
RIGHT, LEFT = [1] * S, [0] * S
CENTRAL = {"epsilon": 1.0, "delta": 1e-6, "users": 1000, "schedule": 50, "rng": 3}
LOCAL = {"epsilon": 1.0, "users": 400, "schedule": 100, "rng": 5}
SHUFFLED = {"epsilon": 1.0, "delta": 1e-6, "users": 2300, "schedule": 1000, "rng": 5}


def river(seed=7, **options):
    env = gym.make("PrivateRL/RiverSwim-v0", **{"horizon": H, **options})
    env.reset(seed=seed)
    return env


def mixture():
    env = gym.make("PrivateRL/RiverSwimMixture-v0")
    env.reset(seed=7)
    return env


def lake():
    env = gym.make("FrozenLake-v1", max_episode_steps=30)
    env.reset(seed=11)
    return env


def cart():
    env = gym.make("CartPole-v1", max_episode_steps=50)
    env.reset(seed=7)
    return env


def requests():
    every = np.ones((S, A), dtype=bool)
    some = every.copy()
    some[0] = False
    return Wanted(every, 0.5, 0.1, 1), Wanted(some, 0.1, 0.0, 4), Wanted(every, 0.0, 0.0, 12)


def numbers(release):
    """Everything in a release that a reader can see."""
    yield from (getattr(release, family) for family in release.families)
    yield from (release.version, release.users, release.events)
    for family in release.families:
        law = release.errors[family]
        yield from (law.std, law.bound(1e-3))


def ledger(board):
    for entry in board.ledger.entries:
        yield f"{entry.model.name} {entry.neighbours.name} {entry.users}"
        yield from (entry.epsilon, entry.delta)


def after(board, *steps):
    """The releases after each step, and the ledger."""
    for step in steps:
        step(board)
        yield from numbers(board.release)
        if board.apart:
            yield from numbers(board.batch)
    yield from ledger(board)


def serve(policy, users, ask=None):
    return lambda board: board.serve(policy, users, ask)


def publish(board):
    board.publish()


USUAL = (serve(RIGHT, 50), serve(LEFT, 137), serve(RIGHT, 1), serve(RIGHT, 212))
ASKED = tuple(serve(RIGHT, 100, ask) for ask in requests())


def table(users=200):
    """Episodes of users who are gone, as columns."""
    model = river().unwrapped.model
    policy = Policy.of(RIGHT, horizon=H, n_states=S, n_actions=A)
    met = rollout(model.tables, policy, model.draw_users(np.random.default_rng(1), users))
    return {
        "user": np.repeat(np.arange(users), H),
        "stage": np.tile(np.arange(H), users),
        "state": met.states[:, :-1].ravel().astype(int),
        "action": met.actions.ravel().astype(int),
        "reward": met.rewards.ravel(),
        "next_state": met.states[:, 1:].ravel().astype(int),
    }


def on_river(kind, *steps, **options):
    return lambda: after(kind(river(), **options), *steps)


def on_mixture(kind, **options):
    def run():
        board = kind(mixture(), statistic="linear", **options)
        horizon, n_states, _ = board.sizes
        values = Values(np.linspace(0.0, 1.0, (horizon + 1) * n_states).reshape(horizon + 1, n_states))
        right, left = np.ones((horizon, n_states), int), np.zeros((horizon, n_states), int)
        yield from after(board, serve(right, 50, values), serve(left, 200))

    return run


def on_cart(kind, **options):
    def run():
        board = kind(cart(), statistic=Layers((4,)), users=300, schedule=100, rng=5, **options)
        parameters = np.random.default_rng(1).normal(size=board.network.size)
        ask, rng = Objective(np.zeros(50), reach=50.0), np.random.default_rng(0)
        steps = [lambda board, k=k: board.serve(parameters / k, 50 + 50 * k, ask, rng=rng) for k in (1, 2)]
        yield from after(board, *steps)

    return run


def around(outer, inner, *steps, options, inside):
    return lambda: after(outer(LDPUserSide(river(), **inside), **options), *steps)


def on_lake(kind, **options):
    """Users who are stepped, whose episodes end early, or who are abandoned."""

    def leave(board):
        board.reset(seed=1)
        board.reset(seed=2)
        board.step(1)
        board.serve(policy, 8)

    policy = np.zeros((30, 17), dtype=int)
    policy[:, ::2], policy[:, 1::2] = 1, 2
    return lambda: after(kind(lake(), **options), serve(policy, 30), leave, serve(policy, 20), leave)


def resumed(tmp, **options):
    first = JDPBillboard(river(), **CENTRAL, **options)
    for step in USUAL[:2]:
        step(first)
    first.save_state(tmp / "state")
    second = JDPBillboard(river(seed=99), **CENTRAL, **options)
    second.load_state(tmp / "state")
    yield from after(second, *USUAL[2:])


def answers():
    for env in (river(), lake()):
        board = LDPPerStep(env, epsilon=8.0, rng=4)
        for user in range(10):
            yield board.reset(seed=user)[0]
            over = False
            while not over:
                seen, reward, over, _, _ = board.step(user % 2)
                yield from (seen, reward)


def ingested(statistic):
    board = JDPBillboard(river(), **CENTRAL, statistic=statistic)
    return after(board, serve(RIGHT, 30), lambda board: board.ingest(table()), serve(LEFT, 300))


def dropped_out():
    board = SDPShuffler(river(), **{**SHUFFLED, "users": 3000}, dropout=0.2)
    lose = [lambda board, count=count: board.drop_out(count) for count in (100, 500)]
    return after(board, serve(RIGHT, 700), lose[0], serve(RIGHT, 200), lose[1], serve(RIGHT, 1500))


CASES = {
    "open": on_river(OpenBillboard, *USUAL, users=400, schedule=10),
    "open, any number of users": on_river(OpenBillboard, *USUAL, schedule=10),
    "open, pooled": on_river(OpenBillboard, *USUAL, users=400, stationary=True),
    "open, reports": on_river(OpenBillboard, *ASKED, users=400, statistic="reports", rng=3, schedule=50),
    "open, linear": on_mixture(OpenBillboard, users=1000, schedule=50),
    "open, gradients": on_cart(OpenBillboard),
    **{
        f"jdp, {name}, {law}": on_river(
            JDPBillboard,
            *USUAL,
            **{**CENTRAL, "delta": 0.0 if law == "laplace" else 1e-6},
            counting=name,
            noise=law,
        )
        for name, kind in MECHANISMS.items()
        for law in kind.laws
    },
    "jdp": on_river(JDPBillboard, *USUAL, **CENTRAL),
    "jdp, growth": on_river(JDPBillboard, *USUAL, **{**CENTRAL, "schedule": Schedule(50, growth=0.2)}),
    "jdp, batches of one": on_river(JDPBillboard, *USUAL, **{**CENTRAL, "schedule": 1}),
    "jdp, pooled": on_river(JDPBillboard, *USUAL, **CENTRAL, stationary=True),
    "jdp, printed": on_river(JDPBillboard, *USUAL, **{**CENTRAL, "delta": 0.0}, calibration="paper"),
    "jdp, public start": on_river(JDPBillboard, *USUAL, **CENTRAL, public_start=True),
    "jdp, zero-out": on_river(JDPBillboard, *USUAL, **CENTRAL, neighbours="zero-out"),
    "jdp, visits": on_river(JDPBillboard, *USUAL, **CENTRAL, visits=2),
    "jdp, visits, reports": on_river(JDPBillboard, *ASKED, **CENTRAL, visits=2, statistic="reports"),
    "jdp, publish": on_river(
        JDPBillboard,
        serve(RIGHT, 30),
        publish,
        serve(RIGHT, 130),
        publish,
        serve(LEFT, 300),
        **{**CENTRAL, "schedule": Schedule(50, releases=24)},
    ),
    "jdp, reports": on_river(JDPBillboard, *ASKED, **CENTRAL, statistic="reports"),
    "jdp, reports, laplace": on_river(JDPBillboard, *ASKED, **CENTRAL, statistic="reports", noise="laplace"),
    "jdp, staged reports": on_river(JDPBillboard, *ASKED, **CENTRAL, statistic="staged-reports"),
    "jdp, linear": on_mixture(JDPBillboard, **CENTRAL),
    "jdp, linear, printed": on_mixture(JDPBillboard, **CENTRAL, calibration="paper"),
    "jdp, gradients": on_cart(JDPBillboard, epsilon=2.0, delta=1e-6),
    "jdp, lake": on_lake(JDPBillboard, **{**CENTRAL, "schedule": 20}),
    "jdp, table": lambda: ingested("tabular"),
    "jdp, table, reports": lambda: ingested("reports"),
    **{
        f"ldp, {name}": on_river(
            LDPUserSide, *USUAL, **LOCAL, randomizer=name, delta=1e-6 if name == "gaussian" else 0.0
        )
        for name in ("one-step", "unary", "laplace", "gaussian")
    },
    "ldp, pooled": on_river(LDPUserSide, *USUAL, **LOCAL, stationary=True),
    "ldp, pooled, all steps": on_river(LDPUserSide, *USUAL, **LOCAL, stationary=True, randomizer="laplace"),
    "ldp, printed": on_river(LDPUserSide, *USUAL, **LOCAL, calibration="paper"),
    "ldp, reports": on_river(LDPUserSide, *ASKED, **LOCAL, statistic="reports"),
    "ldp, linear": on_mixture(LDPUserSide, **LOCAL, delta=1e-6),
    "ldp, gradients": on_cart(LDPUserSide, epsilon=2.0),
    "ldp, gradients, gaussian": on_cart(LDPUserSide, epsilon=2.0, delta=1e-6, randomizer="gaussian"),
    "ldp, lake": on_lake(LDPUserSide, **LOCAL),
    "ldp, answers": answers,
    "sdp": on_river(SDPShuffler, serve(RIGHT, 700), serve(LEFT, 300), serve(RIGHT, 1300), **SHUFFLED),
    "sdp, rewards that are no bits": on_river(SDPShuffler, *USUAL, publish, **SHUFFLED, reward_range=(0.0, 2.0)),
    "sdp, pooled": on_river(SDPShuffler, *USUAL, publish, **SHUFFLED, stationary=True),
    "sdp, printed": on_river(SDPShuffler, *USUAL, publish, **{**SHUFFLED, "epsilon": 0.5}, calibration="paper"),
    "sdp, reports": on_river(SDPShuffler, *ASKED, publish, **SHUFFLED, statistic="reports"),
    "sdp, linear": on_mixture(SDPShuffler, **{**SHUFFLED, "schedule": 100}),
    "sdp, dropout": dropped_out,
    "jdp around ldp": around(
        JDPBillboard, LDPUserSide, *USUAL, options=CENTRAL, inside={"epsilon": 2.0, "randomizer": "one-step", "rng": 5}
    ),
    "jdp around ldp, reports": around(
        JDPBillboard, LDPUserSide, *USUAL, options=CENTRAL, inside={"epsilon": 2.0, "statistic": "reports", "rng": 5}
    ),
    "sdp around ldp": around(
        SDPShuffler,
        LDPUserSide,
        serve(RIGHT, 300),
        publish,
        serve(LEFT, 1500),
        options={"users": 2500, "schedule": 1000, "smallest_batch": 200},
        inside={"epsilon": 1.0, "randomizer": "one-step", "rng": 5},
    ),
    "sdp around ldp, laplace": around(
        SDPShuffler,
        LDPUserSide,
        serve(RIGHT, 1000),
        options={"users": 2500, "schedule": 1000},
        inside={"epsilon": 1.0, "randomizer": "laplace", "rng": 5},
    ),
}


LEARNERS = [
    name
    for name in agents.__all__
    if inspect.isclass(getattr(agents, name))
    and issubclass(getattr(agents, name), Agent)
    and not inspect.isabstract(getattr(agents, name))
    and name != "WorldModelAgent"  # torch's last digits depend on the processor
]
BEHIND = {
    "jdp": (JDPBillboard, {"epsilon": 3.0, "delta": 1e-6, "users": 2000, "schedule": 100}),
    "sdp": (SDPShuffler, {"epsilon": 3.0, "delta": 1e-6, "users": 2000, "schedule": 500}),
    "ldp": (LDPUserSide, {"epsilon": 3.0, "users": 2000, "schedule": 200}),
    "open": (OpenBillboard, {"users": 2000, "schedule": 100}),
}


def learned(name, behind):
    """The policy of an agent after 2,000 users, and what it saw last; a refusal counts as one."""
    agent, (kind, options) = getattr(agents, name), BEHIND[behind]
    env = mixture() if agent.statistic == "linear" else cart() if agent.statistic == "gradient" else river(horizon=10)
    more = {"policy_kwargs": {"net_arch": [4]}} if agent.statistic == "gradient" else {}
    try:
        board = kind(env, rng=5, **options)
        learner = agent(agent.policies[0], board, seed=1, **more)
    except (TypeError, ValueError):
        yield "refused"
        return
    learner.learn(2000 * board.sizes[0])
    yield learner.policy_array(learner.best_policy())
    yield from numbers(board.release)
    yield from ledger(board)


CASES |= {f"{name}, {behind}": lambda n=name, b=behind: learned(n, b) for name in LEARNERS for behind in BEHIND}


def digest(values):
    """A digest of numbers, to ten digits, and of texts."""
    found = hashlib.sha256()
    for value in values:
        if isinstance(value, str):
            found.update(value.encode())
        else:
            found.update("".join(f"{number:.9e}" for number in np.asarray(value, dtype=np.float64).ravel()).encode())
    return found.hexdigest()[:16]


def run(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return digest(CASES[name]())


TAKES_LONGER = [name for name in CASES if name.split(", ")[0] in LEARNERS and name.split(", ")[1] != "jdp"]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in TAKES_LONGER else ()) for name in CASES]
)
def test_the_same_seeds_give_the_same_releases(name):
    recorded = json.loads(RECORD.read_text())
    assert name in recorded, f"{name} is new: record it with python -m tests.wrappers.test_same_releases"
    assert run(name) == recorded[name]


def test_a_digest_tells_another_seed_from_this_one():
    other = digest(after(JDPBillboard(river(), **{**CENTRAL, "rng": 4}), *USUAL))
    assert other != run("jdp")


@pytest.mark.parametrize("counting", ["matrix-factorization", "honaker-tree", "batched"])
def test_a_run_that_is_resumed_gives_the_releases_of_one_that_was_not(counting, tmp_path):
    board = JDPBillboard(river(), **CENTRAL, counting=counting)
    for step in USUAL[:2]:
        step(board)
    assert digest(resumed(tmp_path, counting=counting)) == digest(after(board, *USUAL[2:]))


if __name__ == "__main__":
    kept = {} if "--anew" in sys.argv else json.loads(RECORD.read_text())
    RECORD.write_text(json.dumps({name: kept.get(name) or run(name) for name in CASES}, indent=1) + "\n")

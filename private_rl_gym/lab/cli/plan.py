"""``private-rl-gym plan``: the best boundary, agent and epsilon, and their cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

import typer

from private_rl_gym.lab.cli import answers, options
from private_rl_gym.lab.cli.screen import progress, sentences
from private_rl_gym.lab.planner.advice import LEARNS, Recommendation
from private_rl_gym.lab.planner.adviser import MOST_USERS, Adviser
from private_rl_gym.lab.planner.candidates import TRUST
from private_rl_gym.lab.planner.problems import problem_of, problem_of_size, problem_of_table
from private_rl_gym.lab.registry import BOUNDARIES, GridError
from private_rl_gym.privacy.accounting.conversion import check_budget

__all__ = ["plan"]

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""The epsilons of the rows for a table."""


@sentences
def plan(
    users: Annotated[
        int | None,
        typer.Option(help="How many users will come, or are in the table. Left out: how many it takes, at --epsilon."),
    ] = None,
    environment: Annotated[str | None, options.ENVIRONMENT] = None,
    table: Annotated[
        bool, typer.Option("--table", help="In place of --env: users who are in a table for `learn` already.")
    ] = False,
    states: Annotated[
        int | None,
        typer.Option(help="With --table, as for `learn`; or in place of --env, for a stand-in of this size."),
    ] = None,
    actions: Annotated[int | None, typer.Option(help="The same: number of actions.")] = None,
    stationary: Annotated[
        bool, typer.Option("--stationary", help="The problem is the same at every step: agents pool the steps.")
    ] = False,
    epsilon: Annotated[
        float | None, typer.Option(help="The guarantee to each user; 1 if neither it nor --regret is given.")
    ] = None,
    regret: Annotated[
        float | None,
        typer.Option(
            help="Find the smallest epsilon, or without --users the fewest users, that lose at most this share of what "
            "never learning loses."
        ),
    ] = None,
    delta: options.Delta = None,
    boundary: Annotated[
        list[str] | None, typer.Option(help=f"Of {', '.join(TRUST)}; may be given several times; by default all.")
    ] = None,
    horizon: options.Horizon = None,
    reward_range: options.RewardRange = None,
    bins: options.Bins = None,
    low: options.Low = None,
    high: options.High = None,
    option: Annotated[
        list[str] | None, typer.Option("--set", help="An option of the environment, as `environment.n_states=8`.")
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="Simulated runs of each answer; by default 3, or 10 for a table.")
    ] = None,
    seconds: Annotated[
        float, typer.Option(help="Processor time for everything; what would take longer is left out.")
    ] = 45.0,
    as_json: options.Json = False,
) -> None:
    """Recommend a boundary, an agent and an epsilon for a number of users.

    The answer also has the cost, and whether the agent learns.

    Everything is simulated, on the environment itself where its model is known, or else on a stand-in of its size.
    No data are needed. Each trust model has a row, and so has learning without privacy.

    Example: `private-rl-gym plan --env RiverSwim --users 50000 --epsilon 1 --stationary`

    Example: `private-rl-gym plan --env FrozenLake-v1 --horizon 20 --users 50000 --regret 0.3`

    Example: `private-rl-gym plan --states 20 --actions 4 --horizon 20 --epsilon 1` (how many users does it take?)

    Example: `private-rl-gym plan --table --users 8000 --states 5 --actions 3 --horizon 8 --stationary`
    """
    runs = (10 if table else 3) if runs is None else runs
    _check(users, epsilon, regret, delta, runs, seconds)
    simulation: dict[str, Any] = {"delta": delta, "stationary": stationary, "runs": runs, "seconds": seconds}
    sized = None if states is None or actions is None or horizon is None else (states, actions, horizon)
    adapters = {"--bins": bins, "--low": low, "--high": high, "--set": option}
    if table:
        if users is None:
            raise GridError("--table needs --users: how many users are in it.")
        others = {"--env": environment, "--regret": regret, "--boundary": boundary, "--reward-range": reward_range}
        _refuse(others | adapters, "users who are still to come, and --table for those in a table")
        if sized is None:
            raise GridError("--table needs --states, --actions and --horizon: they are public, as for `learn`.")
        of_table = Adviser(problem_of_table(*sized, stationary=stationary), users, **simulation)
        epsilons = EPSILONS if epsilon is None else tuple(sorted({*EPSILONS, epsilon}))
        answers.of_table(of_table, of_table.from_table((*epsilons, math.inf)), epsilon).show(as_json=as_json)
        return
    trust = list(dict.fromkeys(_private(name) for name in boundary or TRUST))
    if delta == 0.0 and not boundary:
        trust.remove("sdp")  # noise bits run out at some number, so that a shuffler has no pure guarantee
    if environment is not None:
        if states is not None or actions is not None:
            raise GridError(
                "--states and --actions are for --table, or in place of --env: an environment says its own."
            )
        own, bounds = options.settings_of(option, "environment")["environment"], options.bounds_of(bins, low, high)
        problem = problem_of(environment, own, horizon=horizon, reward_range=reward_range, **bounds)
    elif sized is not None:
        _refuse(adapters, "an environment: give --env")
        problem = problem_of_size(*sized, reward_range or (0.0, 1.0))
    else:
        raise GridError(
            "Give --env NAME for users who will come; or --states, --actions and --horizon, for a stand-in of this "
            "size; or --table for users who are in a table already."
        )
    name, budget = environment or "A problem of this size", 1.0 if epsilon is None else epsilon
    adviser = Adviser(problem, users or MOST_USERS, **simulation)
    if users is None:
        wish = LEARNS if regret is None else regret

        def fewest(name: str, parts: int) -> Recommendation:
            return adviser.fewest(name, math.inf if name == "open" else budget, wish, parts=parts)

        answers.of_users(adviser, name, wish, _each(["open", *trust], fewest)).show(as_json=as_json)
        return

    def best(name: str, parts: int) -> Recommendation:
        if name == "none":
            return adviser.reference()
        if regret is None:
            return adviser.at(name, budget, parts=parts)
        return adviser.smallest(name, regret, parts=parts)

    answers.of_plan(adviser, name, regret, _each(["none", *trust], best)).show(as_json=as_json)


def _each(names: list[str], answer: Callable[[str, int], Recommendation]) -> dict[str, Recommendation]:
    """Return the answers for these names, of which the first is not private.

    ``answer`` gets the number of questions that are left.
    """
    rows = {}
    with progress("without privacy", len(names)) as bar:
        for number, name in enumerate(names):
            if number:
                bar.update(number, description=name)
            rows[name] = answer(name, len(names) - number)
    return rows


def _check(
    users: int | None, epsilon: float | None, regret: float | None, delta: float | None, runs: int, seconds: float
) -> None:
    if users is not None and epsilon is not None and regret is not None:
        raise GridError(
            "--users, --epsilon and --regret: give two of them. With --regret the epsilon is looked for; without "
            "--users, how many it takes."
        )
    if regret is not None and not 0.0 < regret < 1.0:
        raise GridError(f"--regret is {regret:g}: it is a share of what never learning loses, above 0 and below 1.")
    if (users is not None and users < 1) or runs < 1 or not seconds > 0.0:
        raise GridError("--users and --runs are at least 1, and --seconds is above 0.")
    try:
        check_budget(1.0 if epsilon is None else epsilon, 1e-6 if delta is None else delta)
    except (TypeError, ValueError) as error:
        raise GridError(str(error)) from None


def _private(name: str) -> str:
    found = BOUNDARIES.find(name, "--boundary").name
    if found not in TRUST:
        raise GridError(f"--boundary {name}: it guarantees nothing. Learning without privacy has a row in any case.")
    return found


def _refuse(given: dict[str, Any], purpose: str) -> None:
    """Raise if an option is given that is for another purpose."""
    for name, value in given.items():
        if value not in (None, False) and value != []:
            raise GridError(f"{name} is for {purpose}.")

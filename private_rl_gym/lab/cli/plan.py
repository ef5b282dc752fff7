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
        typer.Option(
            help="Number of users; by default, find the smallest number with which an agent learns at --epsilon."
        ),
    ] = None,
    environment: Annotated[str | None, options.ENVIRONMENT] = None,
    table: Annotated[
        bool,
        typer.Option(
            "--table", help="Plan for users who are already in a table for `private-rl-gym learn`. Replaces --env."
        ),
    ] = False,
    states: Annotated[
        int | None,
        typer.Option(help="Number of states, S: of the table, or without --env of a stand-in."),
    ] = None,
    actions: Annotated[
        int | None, typer.Option(help="Number of actions, A: of the table, or without --env of a stand-in.")
    ] = None,
    stationary: Annotated[
        bool,
        typer.Option(
            "--stationary", help="The model is the same at every step (time-homogeneous): agents pool the steps."
        ),
    ] = False,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="Epsilon of the guarantee to each user; by default 1. With --users and --regret it is found."
        ),
    ] = None,
    regret: Annotated[
        float | None,
        typer.Option(
            help="Largest regret, as a share of the regret of random actions, in (0, 1). With --users, find the "
            f"smallest epsilon that attains it. Without --users, find the fewest users; by default {LEARNS:g}."
        ),
    ] = None,
    delta: options.Delta = None,
    boundary: Annotated[
        list[str] | None,
        typer.Option(help=f"Boundary to compare. One of {', '.join(TRUST)}; by default all. May be repeated."),
    ] = None,
    horizon: options.Horizon = None,
    reward_range: options.RewardRange = None,
    bins: options.Bins = None,
    low: options.Low = None,
    high: options.High = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--set", help="Option of the environment, such as `environment.n_states=8`. May be repeated."),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="Number of simulated runs for each answer; by default 3, or 10 with --table.")
    ] = None,
    seconds: Annotated[
        float, typer.Option(help="Processor time of all simulations, in seconds. Slower simulations are left out.")
    ] = 45.0,
    as_json: options.Json = False,
) -> None:
    """Recommend a boundary, an agent and an epsilon for a number of users.

    The answer has one row for each trust model, and one for learning without privacy. A row has the regret, and a
    verdict on whether the agent learns.

    All rows are simulated, and no data are needed. The simulation uses the environment itself if its model is known,
    and otherwise a stand-in: a random problem of the same size.

    Example: `private-rl-gym plan --env RiverSwim --users 50000 --epsilon 1 --stationary`

    Example: `private-rl-gym plan --env FrozenLake-v1 --horizon 20 --users 50000 --regret 0.3`

    Example, for the number of users: `private-rl-gym plan --states 20 --actions 4 --horizon 20 --epsilon 1`

    Example: `private-rl-gym plan --table --users 8000 --states 5 --actions 3 --horizon 8 --stationary`
    """
    runs = (10 if table else 3) if runs is None else runs
    _check(users, epsilon, regret, delta, runs, seconds)
    simulation: dict[str, Any] = {"delta": delta, "stationary": stationary, "runs": runs, "seconds": seconds}
    sized = None if states is None or actions is None or horizon is None else (states, actions, horizon)
    adapters = {"--bins": bins, "--low": low, "--high": high, "--set": option}
    if table:
        if users is None:
            raise GridError("--table needs --users, the number of users in the table.")
        others = {"--env": environment, "--regret": regret, "--boundary": boundary, "--reward-range": reward_range}
        _refuse(others | adapters, "plans without --table: leave one of the two out")
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
            raise GridError("--states and --actions replace --env. Leave them out: the environment has its own.")
        own, bounds = options.settings_of(option, "environment")["environment"], options.bounds_of(bins, low, high)
        problem = problem_of(environment, own, horizon=horizon, reward_range=reward_range, **bounds)
    elif sized is not None:
        _refuse(adapters, "an environment: give --env")
        problem = problem_of_size(*sized, reward_range or (0.0, 1.0))
    else:
        raise GridError(
            "Give --env NAME; or --states, --actions and --horizon, for a stand-in of this size. For users who are "
            "already in a table, add --table."
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
            "--users, --epsilon and --regret are all given: give two of them. Without --epsilon the smallest "
            "epsilon is found, and without --users the smallest number of users."
        )
    if regret is not None and not 0.0 < regret < 1.0:
        raise GridError(f"--regret is {regret:g}: it is a share of the regret of random actions, above 0 and below 1.")
    if (users is not None and users < 1) or runs < 1 or not seconds > 0.0:
        raise GridError("--users and --runs are at least 1, and --seconds is above 0.")
    try:
        check_budget(1.0 if epsilon is None else epsilon, 1e-6 if delta is None else delta)
    except (TypeError, ValueError) as error:
        raise GridError(str(error)) from None


def _private(name: str) -> str:
    found = BOUNDARIES.find(name, "--boundary").name
    if found not in TRUST:
        raise GridError(f"--boundary {name} has no guarantee. Leave it out: the row without privacy is always printed.")
    return found


def _refuse(given: dict[str, Any], purpose: str) -> None:
    """Raise if an option is given that is for another purpose."""
    for name, value in given.items():
        if value not in (None, False) and value != []:
            raise GridError(f"{name} is for {purpose}.")

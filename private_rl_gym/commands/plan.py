"""``private-rl-gym plan``: the boundary, the agent and the epsilon to take, and what they cost."""

from __future__ import annotations

import json
import math
import shlex
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from private_rl_gym.commands.plan_table import check_alone, plan_table
from private_rl_gym.commands.plan_users import plan_users
from private_rl_gym.commands.runs import DELTA_HELP, Bins, High, Horizon, Low, RewardRange, numbers_of, value_of
from private_rl_gym.commands.screen import PLAIN, progress, screen, sentences
from private_rl_gym.experiments.advice import EPSILONS, TRUST, Advice, Adviser
from private_rl_gym.experiments.foreign import GRADIENTS
from private_rl_gym.experiments.names import BOUNDARIES, ENVIRONMENTS, GridError
from private_rl_gym.experiments.problems import Problem, problem_of, problem_of_size
from private_rl_gym.experiments.table_advice import TableAdviser
from private_rl_gym.planning.memory import in_bytes
from private_rl_gym.privacy.conversion import check_budget

__all__ = ["plan"]


STAND_IN = (
    "A stand-in tells sizes, noise and orders of magnitude; it does not tell this problem's regret. (People who were "
    "there already, in a table: add --table.)"
)


@sentences
def plan(
    users: Annotated[
        int | None,
        typer.Option(help="How many users will come, or are in the table. Left out: how many it takes, at --epsilon."),
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option(
            "--env",
            help="Name of the environment, any Gymnasium id, or module:object.",
            autocompletion=ENVIRONMENTS.complete,
        ),
    ] = None,
    table: Annotated[
        bool, typer.Option("--table", help="In place of --env: people who were there already, in a table for `learn`.")
    ] = False,
    states: Annotated[
        int | None,
        typer.Option(help="With --table, as for `learn`; or in place of --env, for a stand-in of this size."),
    ] = None,
    actions: Annotated[int | None, typer.Option(help="The same: number of actions.")] = None,
    stationary: Annotated[
        bool, typer.Option("--stationary", help="With --table: all stages are alike, and their counts are pooled.")
    ] = False,
    epsilon: Annotated[
        float | None, typer.Option(help="What each user is promised; 1 if nothing is said, or --regret.")
    ] = None,
    regret: Annotated[
        float | None,
        typer.Option(
            help="Find the smallest epsilon, or without --users the fewest users, that lose at most this share of what "
            "never learning loses."
        ),
    ] = None,
    delta: Annotated[float | None, typer.Option(help=DELTA_HELP)] = None,
    boundary: Annotated[
        list[str] | None,
        typer.Option(help=f"Of {', '.join(TRUST)}; may be given several times; all if nothing is said."),
    ] = None,
    horizon: Horizon = None,
    reward_range: RewardRange = None,
    bins: Bins = None,
    low: Low = None,
    high: High = None,
    option: Annotated[
        list[str] | None, typer.Option("--set", help="An option of the environment, as `environment.n_states=8`.")
    ] = None,
    told_nothing: Annotated[
        bool, typer.Option("--told-nothing", help="Leave out agents that are told that all stages are alike.")
    ] = False,
    runs: Annotated[
        int | None, typer.Option(help="Simulated runs of each answer: 3, or 10 for a table, if nothing is said.")
    ] = None,
    seconds: Annotated[
        float, typer.Option(help="Processor time for everything; what would take longer is left out.")
    ] = 45.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print numbers for machines.")] = False,
) -> None:
    """Say which boundary, agent and epsilon to take for so many users, what they cost, and whether they learn.

    Everything is simulated, on the environment itself where its model is known, or else on a stand-in of its size.
    Nobody's data are needed. Each trust model has a row, and so has learning without privacy.

    Example: `private-rl-gym plan --env RiverSwim --users 50000 --epsilon 1`

    Example: `private-rl-gym plan --env FrozenLake-v1 --horizon 20 --users 50000 --regret 0.3`

    Example: `private-rl-gym plan --states 20 --actions 4 --horizon 20 --epsilon 1` (how many users does it take?)

    Example: `private-rl-gym plan --table --users 8000 --states 5 --actions 3 --horizon 8 --stationary`
    """
    runs = (10 if table else 3) if runs is None else runs
    _check(users, epsilon, regret, delta, runs, seconds)
    if table:
        if users is None:
            raise GridError("--table needs --users: how many people are in it.")
        check_alone(
            {
                "--env": environment,
                "--regret": regret,
                "--boundary": boundary,
                "--reward-range": reward_range,
                "--bins": bins,
                "--low": low,
                "--high": high,
                "--set": option,
                "--told-nothing": told_nothing,
            }
        )
        if states is None or actions is None or horizon is None:
            raise GridError("--table needs --states, --actions and --horizon: they are public, as for `learn`.")
        sizes = horizon, states, actions
        adviser_of_table = TableAdviser(users, sizes, stationary=stationary, delta=delta, runs=runs, seconds=seconds)
        plan_table(adviser_of_table, epsilon, as_json=as_json)
        return
    if stationary:
        raise GridError("--stationary is for --table. Here agents are told so, unless you say --told-nothing.")
    trust = list(dict.fromkeys(_promising(name) for name in boundary or TRUST))
    if delta == 0.0 and not boundary:
        trust.remove("sdp")  # noise bits run out at some number, so that a shuffler makes no pure promise
    if environment is None:
        if states is None or actions is None or horizon is None:
            raise GridError(
                "Give --env NAME for users who will come; or --states, --actions and --horizon, for a stand-in of this "
                "size; or --table for people who were there already."
            )
        check_alone({"--bins": bins, "--low": low, "--high": high, "--set": option}, "an environment: give --env")
        problem = problem_of_size(states, actions, horizon, reward_range or (0.0, 1.0))
        environment = "A problem of this size"
    else:
        if states is not None or actions is not None:
            raise GridError(
                "--states and --actions are for --table, or in place of --env: an environment says its own."
            )
        bounds = {"bins": bins, "low": low, "high": high}
        problem = problem_of(
            environment,
            dict(_named(setting) for setting in option or []),
            horizon=horizon,
            reward_range=reward_range,
            **{name: numbers_of(text, f"--{name}") for name, text in bounds.items()},
        )
    simulation: dict[str, Any] = {"delta": delta, "told_nothing": told_nothing, "runs": runs, "seconds": seconds}
    if users is None:
        promise = 1.0 if epsilon is None else epsilon
        plan_users(problem, environment, trust, promise, regret, as_json=as_json, **simulation)
        return
    adviser = Adviser(problem, users, **simulation)
    rows: dict[str, Advice | None] = {}
    with progress() as bar:
        task = None if bar is None else bar.add_task("without privacy", total=1 + len(trust))
        rows["none"] = adviser.reference()
        for number, name in enumerate(trust):
            if bar is not None and task is not None:
                bar.update(task, completed=1 + number, description=name)
            parts = len(trust) - number
            rows[name] = (
                adviser.at(name, 1.0 if epsilon is None else epsilon, parts=parts)
                if regret is None
                else adviser.smallest(name, regret, parts=parts)
            )
    if as_json:
        typer.echo(json.dumps(_for_machines(problem, adviser, regret, rows), indent=2))
        return
    _print(problem, adviser, regret, rows, environment)


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


def _promising(name: str) -> str:
    found = BOUNDARIES.find(name, "--boundary").name
    if found not in TRUST:
        raise GridError(f"--boundary {name}: it promises nothing. Learning without privacy has a row in any case.")
    return found


def _named(setting: str) -> tuple[str, Any]:
    path, equals, text = setting.partition("=")
    part, dot, name = path.strip().partition(".")
    if not (equals and dot and part == "environment"):
        raise GridError(f"--set {setting!r}: write it as environment.NAME=VALUE.")
    return name, value_of(text.strip())


# Output --------------------------------------------------------------------------------------------------------------


def _for_machines(
    problem: Problem, adviser: Adviser, regret: float | None, rows: dict[str, Advice | None]
) -> dict[str, Any]:
    horizon, n_states, n_actions = problem.sizes
    return {
        "horizon": horizon,
        "states": n_states,
        "actions": n_actions,
        "stand_in": not problem.true,
        "users": adviser.users,
        "simulated": adviser.simulated,
        "regret_wished": regret,
        "regret_of_never_learning": adviser.lost,
        "notes": adviser.notes,
        "rows": {
            name: {"verdict": adviser.verdicts.get(name, "not known")}
            if advice is None
            else {
                **asdict(advice),
                "epsilon": advice.epsilon if math.isfinite(advice.epsilon) else None,
                "verdict": advice.verdict,
            }
            for name, advice in rows.items()
        },
    }


def _print(
    problem: Problem,
    adviser: Adviser,
    regret: float | None,
    rows: dict[str, Advice | None],
    environment: str,
) -> None:
    horizon, n_states, n_actions = problem.sizes
    low, high = problem.rewards
    console = screen()
    more = ", one of them for episodes that ended early" if problem.waiting else ""
    sizes = f"S = {n_states}{more}, A = {n_actions}, H = {horizon}"
    console.print(escape(f"{environment} ({sizes}): {problem.origin}."), highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("trust", no_wrap=True)
    table.add_column("agent", overflow="fold")
    for column in ("epsilon", "regret", "share", "worst", "last", "noise", "visits"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for name, advice in rows.items():
        if advice is None:
            table.add_row(_short(name), "not simulated", *[""] * 6, adviser.verdicts.get(name, "not known"))
        else:
            style = "red" if advice.verdict == "hopeless" else None
            table.add_row(_short(name), *_cells(advice), style=style)
    console.print(table)
    for sentence in _answers(problem, adviser, regret, rows):
        console.print(escape(sentence), highlight=False)
    for name, advice in rows.items():
        if advice is not None and name != "none" and advice.verdict not in ("hopeless", "not known"):
            console.print(f"{_short(name)}, {_batches(advice)}:", **PLAIN)
            console.print(f"  {_command(problem, advice, adviser.users)}", **PLAIN)
    console.print(
        f"regret: of all users, in rewards from {low:g} to {high:g}; actions at random lose {adviser.lost:,.0f}. "
        "share: the same as a share of that, worst: in the worst of the runs. last: what the policy that was learned "
        "last still loses, as such a share. noise: its deviation in a count of visits after all users; visits: the "
        "mean of such a count. Regret has heavy tails: another run may lose three times as much. SDP and LDP are "
        "simulated by this package, to see what they would cost; real people take part under JDP.",
        style="dim",
        highlight=False,
    )


def _short(name: str) -> str:
    return name.upper() if name in TRUST else name


def _batches(advice: Advice) -> str:
    """The batches of users, and the memory that their sums take."""
    sizes = sorted(advice.batches) or [0]
    users = f"{sizes[0]:,} to {sizes[-1]:,} users" if sizes[0] < sizes[-1] else f"{sizes[0]:,} users"
    return f"{len(advice.batches):,} batches of {users}, {in_bytes(advice.memory)} of memory"


def _cells(advice: Advice) -> list[str]:
    return [
        advice.candidate.label,
        f"{advice.epsilon:g}",
        f"{advice.regret:,.0f}",
        f"{advice.share:.3f}",
        f"{advice.worst:.3f}",
        f"{advice.last:.3f}",
        f"{advice.noise:,.0f}",
        f"{advice.visits:,.0f}",
        advice.verdict,
    ]


def _answers(problem: Problem, adviser: Adviser, regret: float | None, rows: dict[str, Advice | None]) -> list[str]:
    """Sentences that answer the question."""
    said = list(adviser.notes)
    if adviser.simulated < adviser.users:
        said.append(f"{adviser.simulated:,} users were simulated; with more of them the share is smaller.")
    reference = rows["none"]
    if regret is not None and reference is not None and reference.share > regret:
        said.append(
            f"A share of {regret:g} is hopeless for {adviser.users:,} users: without privacy it is "
            f"{reference.share:.3f} already."
        )
    hopeless = [
        (advice.verdict if advice is not None else adviser.verdicts.get(name, "")) == "hopeless"
        for name, advice in rows.items()
        if name != "none"
    ]
    private = [advice for name, advice in rows.items() if name != "none" and advice is not None]
    if regret is not None and any(advice.short for advice in private):
        short = ", ".join(advice.candidate.boundary.upper() for advice in private if advice.short)
        said.append(f"{short}: a share of {regret:g} is not reached even at epsilon = {EPSILONS[-1]:g}.")
    elif all(hopeless):
        said.append("Hopeless under every trust model: let more users come, make fewer states, or promise less.")
        said += [f"{GRADIENTS}."] if problem.boxed else []
    if not problem.true:
        said.append(STAND_IN)
    return said


def _command(problem: Problem, advice: Advice, users: int) -> str:
    """The command that runs this row."""
    words = ["private-rl-gym", "train", *problem.typed, *advice.candidate.typed]
    words += ["--epsilon", f"{advice.epsilon:g}"]
    words += ["--delta", f"{advice.delta:g}"] if advice.delta else []
    return shlex.join([*words, "--users", str(users)])

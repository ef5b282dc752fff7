"""``private-rl-gym audit``: check a guarantee of this package, or of other code."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from private_rl_gym.commands.pictures import Code
from private_rl_gym.commands.runs import DELTA_HELP, Bins, High, Low, RewardRange, budget_of, numbers_of, value_of
from private_rl_gym.commands.screen import progress, screen, sentences
from private_rl_gym.experiments import auditing, drawing
from private_rl_gym.experiments.auditing import AuditConfig, Report, everything
from private_rl_gym.experiments.auditing.figure import tradeoff_figure
from private_rl_gym.experiments.config import Choice, digest
from private_rl_gym.experiments.engines import Engine, engine_named
from private_rl_gym.experiments.foreign import agent_named, is_foreign, require_typed
from private_rl_gym.experiments.names import AGENTS, BOUNDARIES, ENVIRONMENTS, PER_STEP, GridError, plain

__all__ = ["audit"]

BROKEN = 3
"""Exit code if more was proved than is claimed."""


@sentences
def audit(
    boundary: Annotated[
        str,
        typer.Option(help=f"One of {', '.join(BOUNDARIES)}, {PER_STEP.name}.", autocompletion=BOUNDARIES.complete),
    ] = "jdp",
    inside: Annotated[str | None, typer.Option(help="A boundary inside that one, such as ldp.")] = None,
    agent: Annotated[
        str | None,
        typer.Option(help="Who learns, for the black box: a name, or module:object.", autocompletion=AGENTS.complete),
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option(
            "--env",
            help="Whose users come: a name, a Gymnasium id, or module:object; by default two rooms in which two users "
            "share no count.",
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="A boundary, an agent, or a function that builds one: module:object.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="What each user is promised; 1 if nothing is said.")] = None,
    delta: Annotated[float | None, typer.Option(help=DELTA_HELP)] = None,
    statistic: Annotated[str, typer.Option(help="tabular, linear, reports, staged-reports or gradient.")] = "tabular",
    horizon: Annotated[int, typer.Option(help="Steps of a user in the two rooms, or where Gymnasium sets none.")] = 1,
    reward_range: RewardRange = None,
    bins: Bins = None,
    low: Low = None,
    high: High = None,
    users: Annotated[int, typer.Option(help="Users in a stream; twice as many meet the agent.")] = 4,
    runs: Annotated[int, typer.Option(help="Runs of each of two worlds; a fifth of them with the agent.")] = 4_000,
    attack: Annotated[
        list[str] | None,
        typer.Option(
            help="one-release, stream, late, black-box, one-run, hostile, early; on gradients one-release, stream, "
            "others, parts, critic, local-steps, hostile. May be repeated. All that fit, by default."
        ),
    ] = None,
    neighbours: Annotated[
        str, typer.Option(help="How the two users are found: searched, disjoint, random, rewards, one-stage.")
    ] = "searched",
    confidence: Annotated[float, typer.Option(help="With which all bounds together hold.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
    option: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any other option, as `boundary.counting=binary-tree` or `agent.constants=theory`."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="A report that an audit wrote: do it again. Code that it names is named by --target or --import, too."
        ),
    ] = None,
    code: Code = None,
    out: Annotated[Path, typer.Option(help="Folder for the figure and the report.")] = Path("audits"),
    workers: Annotated[int | None, typer.Option(help="Processes; as many as cores if nothing is said.")] = None,
    engine: Annotated[str, typer.Option(help="joblib, dask or serial.")] = "joblib",
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, tcp://host:8786.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Audit every boundary, mechanism and calibration at four epsilons.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report for machines.")] = False,
) -> None:
    """Check a promise: attack a boundary or an agent, and hold what is proved against what is claimed.

    The stack runs many times in two worlds that differ in one user. How well attacks tell the worlds apart bounds
    epsilon from below. Exit code 3: more was proved than was promised.

    Example: `private-rl-gym audit --boundary jdp --agent dpucbvi --epsilon 1`
    """
    runner = engine_named(engine, workers=workers, scheduler=scheduler)
    if every:
        _audit_all(runner, runs, seed, out)
        return
    if config is not None:
        plan = _plan_of(config, target, code or ())
    else:
        bounds = {key: numbers_of(text, f"--{key}") for key, text in (("bins", bins), ("low", low), ("high", high))}
        adapted = {"horizon": None if horizon == 1 else horizon, "reward_range": reward_range, **bounds}
        if statistic == "gradient" and inside is None and target is None and plain(boundary) in ("sdp", "sdpshuffler"):
            inside = "ldp"  # a shuffler mixes bits, or gradients that users have noised
        choices = _choices(boundary, inside, agent, environment, epsilon, delta, option or [], adapted)
        plan = AuditConfig(
            **choices,
            target=target,
            statistic=statistic,
            horizon=horizon,
            users=users,
            runs=runs,
            attacks=tuple(attack or ()),
            neighbours=neighbours,
            confidence=confidence,
            seed=seed,
        )
    with progress() as bar:
        task = None if bar is None else bar.add_task("runs", total=None)

        def show_progress(done: int, total: int) -> None:
            if bar is not None and task is not None:
                bar.update(task, completed=done, total=total)

        report = auditing.audit(plan, runner, show_progress)
    written = _write(report, out)
    if as_json:
        typer.echo(json.dumps(_finite(report.to_dict()), indent=2))
    else:
        _print(report, written)
    if report.broken:
        raise typer.Exit(BROKEN)


def _choices(
    boundary: str,
    inside: str | None,
    agent: str | None,
    environment: str | None,
    epsilon: float | None,
    delta: float | None,
    options: list[str],
    adapted: Mapping[str, Any],
) -> dict[str, Any]:
    """The parts of the stack by name, with their options."""
    parts: dict[str, dict[str, Any]] = {"boundary": {}, "inside": {}, "agent": {}, "environment": {}}
    for setting in options:
        path, equals, text = setting.partition("=")
        part, dot, name = path.strip().partition(".")
        if not (equals and dot) or part not in parts:
            raise GridError(f"--set {setting!r}: write it as {', '.join(f'{part}.NAME=VALUE' for part in parts)}.")
        parts[part][name] = value_of(text.strip())
    board = PER_STEP if plain(boundary) == plain(PER_STEP.name) else BOUNDARIES.find(boundary, "--boundary")
    budget = budget_of(board, epsilon, delta, usual=1.0)
    if inside is not None and budget:
        parts["inside"].setdefault("epsilon", budget["epsilon"])
        if board.options["epsilon"].default is None:  # it follows from the epsilon inside
            budget = {} if delta is None else {"delta": delta}
    choices: dict[str, Any] = {"boundary": Choice(board.name, {**parts["boundary"], **budget})}
    for name, chosen, catalogue in (
        ("inside", inside, BOUNDARIES),
        ("agent", agent, AGENTS),
        ("environment", environment, ENVIRONMENTS),
    ):
        if chosen is not None and catalogue is ENVIRONMENTS and is_foreign(chosen):
            choices[name] = Choice(chosen, _adapted(adapted) | parts[name])
        elif chosen is not None:
            if catalogue is AGENTS and plain(chosen) in ("dppolicygradient", "ppo"):
                raise GridError(
                    f"--agent {chosen}: what protects its users is the boundary. Audit --statistic gradient."
                )
            entry = agent_named(chosen) if catalogue is AGENTS else catalogue.find(chosen, f"--{name}")
            entry.check(parts[name], f"--set {name}")
            choices[name] = Choice(entry.name, parts[name])
        elif parts[name]:
            raise GridError(f"--set {name}...: there is no {name}; name one first.")
    return choices


def _adapted(given: Mapping[str, Any]) -> dict[str, Any]:
    """The adapters that were typed, as a report writes them down."""
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in given.items() if value is not None
    }


def _plan_of(path: Path, target: str | None, code: Collection[str]) -> AuditConfig:
    """The configuration in a report. Code that the report names runs only if the command line names it too."""
    try:
        content = json.loads(path.read_text())
        plan = AuditConfig.from_dict(content["config"])
    except GridError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError, AttributeError) as error:
        raise GridError(f"--config {path}: this is no report of an audit ({type(error).__name__}).") from None
    if plan.target != target:
        target_text = "names no target" if plan.target is None else f"names the target {plan.target!r}"
        more = "leave --target out" if plan.target is None else f"add --target {plan.target}, if you trust that code"
        raise GridError(f"--config {path} {target_text}: {more}.")
    for choice in (plan.agent, plan.environment):
        if choice is not None:
            require_typed(choice.name, code, f"--config {path}")
    return plan


def _command(plan: AuditConfig) -> str:
    """The command that runs the same audit again."""
    words = ["private-rl-gym", "audit"]
    default = AuditConfig()
    options = dict(plan.boundary.options)
    words += ["--boundary", plan.boundary.name]
    for name in ("epsilon", "delta"):
        if options.get(name) is not None:
            words += [f"--{name}", f"{options.pop(name):g}"]
    if plan.environment is not None:
        words += ["--env", plan.environment.name]
    for name in ("inside", "agent"):
        choice = getattr(plan, name)
        words += [] if choice is None else [f"--{name}", choice.name]
    for name in ("target", "statistic", "horizon", "users", "runs", "neighbours", "confidence", "seed"):
        if getattr(plan, name) != getattr(default, name):
            words += [f"--{name}", str(getattr(plan, name))]
    for attack in plan.attacks:
        words += ["--attack", attack]
    for part, given in (
        ("boundary", options),
        *((part, getattr(plan, part)) for part in ("inside", "agent", "environment")),
    ):
        for name, value in (given if isinstance(given, dict) else {} if given is None else given.options).items():
            words += ["--set", f"{part}.{name}={str(value).lower() if isinstance(value, bool) else value}"]
    return shlex.join(words)


def _write(report: Report, out: Path) -> Path:
    """Write the report, and the figure if matplotlib is installed; returns their folder."""
    folder = out / digest(report.config.to_dict()).hex()[:12]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.json").write_text(json.dumps(_finite(report.to_dict()), indent=2) + "\n")
        drawing.save(tradeoff_figure(report), folder / "tradeoff")
    except OSError as error:
        raise GridError(f"--out {out}: cannot be written to ({error.strerror or type(error).__name__}).") from None
    except GridError as error:  # no matplotlib: the verdict stands without a picture
        typer.echo(str(error), err=True)
    return folder


def _print(report: Report, folder: Path) -> None:
    console = screen()
    console.print(f"Claim: {report.claim}", highlight=False, soft_wrap=True)
    for line in report.scene.sentences:
        console.print(line, highlight=False, soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("attack", no_wrap=True)
    for name in ("claimed", "at least", "if Gaussian"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("by")
    for result in report.results:
        gaussian = "" if result.gaussian is None else f"{result.gaussian:.3f}"
        claimed = f"{result.claim.epsilon:.4g}"
        table.add_row(result.title, claimed, f"{result.epsilon:.3f}", gaussian, result.detail)
    console.print(table)
    console.print(report.verdict, style="bold red" if report.broken else "bold", highlight=False, soft_wrap=True)
    if (folder / "tradeoff.png").exists():
        console.print(f"The figure: {folder / 'tradeoff.png'}", highlight=False, soft_wrap=True)
    console.print(f"The report: {folder / 'report.json'}", highlight=False, soft_wrap=True)
    console.print(f"Again: {_command(report.config)}", style="dim", highlight=False, soft_wrap=True)


def _audit_all(engine: Engine, runs: int, seed: int, out: Path) -> None:
    """Audit every case; exit with ``BROKEN`` if there are more alarms than chance explains."""
    plans = list(everything.everything(runs=runs, seeds=(seed, seed + 1)))
    with progress() as bar:
        task = None if bar is None else bar.add_task("audits", total=len(plans))

        def show_progress(done: int, entry: Any, report: Report | None) -> None:
            if bar is not None and task is not None:
                bar.update(task, completed=done)
            elif entry is not None and report is not None and done % 20 == 0:
                typer.echo(f"{done} of {len(plans)} audits", err=True)

        matrix = everything.matrix(plans, engine, show_progress)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("what", no_wrap=True)
    for name in ("claim", "epsilon at least", "of the claim"):
        table.add_column(name, justify="right", no_wrap=True)
    for entry, report in matrix.entries:
        style = "red" if report.broken else None
        share = f"{report.bound / report.claim.epsilon:.2f}"
        table.add_row(entry.name, f"{report.claim.epsilon:.4g}", f"{report.bound:.3f}", share, style=style)
    screen().print(table)
    out.mkdir(parents=True, exist_ok=True)
    content = [{"name": entry.name, **report.to_dict()} for entry, report in matrix.entries]
    (out / "all.json").write_text(json.dumps(_finite(content), indent=2) + "\n")
    typer.echo(f"{matrix.sentence} All reports: {out / 'all.json'}")
    if matrix.broken:
        raise typer.Exit(BROKEN)


def _finite(content: Any) -> Any:
    """Content for JSON, which has no infinity: None in place of numbers that are not finite."""
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content

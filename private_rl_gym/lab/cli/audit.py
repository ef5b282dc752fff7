"""``private-rl-gym audit``: check a guarantee of this package, or of other code."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from private_rl_gym.lab import audits
from private_rl_gym.lab.audits import AuditConfig, Report, everything
from private_rl_gym.lab.audits.config import OF_NETWORKS, STATISTICS
from private_rl_gym.lab.audits.figure import tradeoff_figure
from private_rl_gym.lab.cli import options
from private_rl_gym.lab.cli.screen import finite, progress, screen, sentences, table
from private_rl_gym.lab.figures import drawing
from private_rl_gym.lab.grids.cell import Choice, digest
from private_rl_gym.lab.grids.engines import Engine, engine_named
from private_rl_gym.lab.references import Reference
from private_rl_gym.lab.registry import AGENTS, BOUNDARIES, ENVIRONMENTS, PER_STEP, GridError, plain

__all__ = ["audit"]

BROKEN = 3
"""Exit code if more was proved than is claimed."""


@sentences
def audit(
    boundary: Annotated[
        str,
        typer.Option(
            help=f"Boundary. One of {', '.join(BOUNDARIES)}, {PER_STEP.name}.", autocompletion=BOUNDARIES.complete
        ),
    ] = "jdp",
    inside: Annotated[str | None, typer.Option(help="Boundary inside --boundary, such as ldp.")] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            help="Agent of the black-box attack: a name from `private-rl-gym list`, or module:object.",
            autocompletion=AGENTS.complete,
        ),
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option(
            "--env",
            help="Environment of the users: a name, a Gymnasium id, or module:object; by default two "
            "rooms, in which two users share no count.",
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Boundary, agent, or function that builds one, as module:object.")
    ] = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    statistic: Annotated[
        str, typer.Option(help=f"Statistic of the boundary: {', '.join(STATISTICS[:-1])} or {STATISTICS[-1]}.")
    ] = "tabular",
    horizon: Annotated[
        int,
        typer.Option(help="Number of steps in an episode, H, of the two rooms or of an environment without a limit."),
    ] = 1,
    reward_range: options.RewardRange = None,
    bins: options.Bins = None,
    low: options.Low = None,
    high: options.High = None,
    users: Annotated[int, typer.Option(help="Number of users in a stream; twice as many with the agent.")] = 4,
    runs: Annotated[
        int, typer.Option(help="Number of runs in each of the two worlds; a fifth as many with the agent.")
    ] = 4_000,
    attack: Annotated[
        list[str] | None,
        typer.Option(
            help="Attack: one-release, stream, late, black-box, one-run, hostile or early; on gradients one-release, "
            "stream, others, parts, critic, local-steps or hostile; on dynamics one-release, stream, others, scales, "
            "centre or hostile; by default all that apply. May be repeated."
        ),
    ] = None,
    neighbours: Annotated[
        str,
        typer.Option(help="Choice of the two neighbouring users: searched, disjoint, random, rewards or one-stage."),
    ] = "searched",
    confidence: Annotated[float, typer.Option(help="Confidence level of all bounds together, in [0.5, 1).")] = 0.95,
    seed: Annotated[int, typer.Option(help="Random seed of the audit.")] = 0,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Any other option, such as `boundary.counting=binary-tree` or `agent.constants=theory`. May be "
            "repeated.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="Report of an earlier audit, to repeat it. Code in it runs only if --target or --import names it."
        ),
    ] = None,
    code: options.Code = None,
    out: Annotated[Path, typer.Option(help="Folder for the figure and the report.")] = Path("audits"),
    workers: options.Workers = None,
    engine: Annotated[str, typer.Option(help="Engine of the runs: joblib, dask or serial.")] = "joblib",
    scheduler: options.Scheduler = None,
    every: Annotated[
        bool, typer.Option("--all", help="Audit every boundary, mechanism and calibration at four values of epsilon.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Attack a boundary or an agent, and compare the bounds with its guarantee.

    The boundary runs many times in two worlds that differ in one user. An attack guesses the world from what is
    published, and its success gives a lower bound on epsilon. The exit code is 3 if a lower bound exceeds the stated
    epsilon.

    Example: `private-rl-gym audit --boundary jdp --agent dpucbvi --epsilon 1`
    """
    runner = engine_named(engine, workers=workers, scheduler=scheduler)
    if every:
        _audit_all(runner, runs, seed, out)
        return
    if config is not None:
        plan = _plan_of(config, target, code or ())
    else:
        between = None if reward_range is None else list(reward_range)
        adapted = {"horizon": None if horizon == 1 else horizon, "reward_range": between}
        adapted |= options.bounds_of(bins, low, high)
        if statistic in OF_NETWORKS and inside is None and target is None and plain(boundary) in ("sdp", "sdpshuffler"):
            inside = "ldp"  # a shuffler mixes bits, or vectors that users have noised
        parts = options.settings_of(option, "boundary", "inside", "agent", "environment")
        board = PER_STEP if plain(boundary) == plain(PER_STEP.name) else BOUNDARIES.find(boundary, "--boundary", None)
        budget = options.budget_of(board, epsilon, delta)
        if inside is not None and budget:
            parts["inside"].setdefault("epsilon", budget["epsilon"])
            if board.options["epsilon"].default is None:  # it follows from the epsilon inside
                budget = {} if delta is None else {"delta": delta}
        named = {"inside": inside, "agent": agent, "environment": environment}
        plan = AuditConfig(
            boundary=Choice(board.name, board.referred(parts["boundary"] | budget, "--set boundary", None)),
            **_choices(named, parts, {key: value for key, value in adapted.items() if value is not None}),
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
    with progress("runs") as bar:
        report = audits.audit(plan, runner, lambda done, total: bar.update(done, total=total))
    written = _write(report, out)
    if as_json:
        typer.echo(json.dumps(finite(report.to_dict()), indent=2))
    else:
        _print(report, written)
    if report.broken:
        raise typer.Exit(BROKEN)


def _choices(
    named: Mapping[str, str | None], parts: Mapping[str, dict[str, Any]], adapted: dict[str, Any]
) -> dict[str, Choice]:
    """Return the parts around a boundary that were named, with their options."""
    choices = {}
    for name, catalogue in (("inside", BOUNDARIES), ("agent", AGENTS), ("environment", ENVIRONMENTS)):
        chosen = named[name]
        if chosen is None:
            if parts[name]:
                raise GridError(f"--set {name}.NAME=VALUE: no {name} is given. Name one first.")
        else:
            if catalogue is AGENTS and plain(chosen) in ("dppolicygradient", "ppo"):
                raise GridError(
                    f"--agent {chosen} is protected by its boundary. Leave --agent out, and add --statistic gradient."
                )
            entry: Any = catalogue.find(chosen, f"--{name}", None)
            if catalogue is ENVIRONMENTS and not entry.packaged:
                choices[name] = Choice(entry.name, adapted | parts[name])
            else:
                entry.check(parts[name], f"--set {name}")
                choices[name] = Choice(entry.name, entry.referred(parts[name], f"--set {name}", None))
    return choices


def _plan_of(path: Path, target: str | None, code: Collection[str]) -> AuditConfig:
    """Return the configuration in a report.

    Code that the report names runs only if the command line names it, too.
    """
    trusted = {*code, *([] if target is None else [Reference(target).module])}
    try:
        content = json.loads(path.read_text())["config"]
        named = content.get("target") if isinstance(content, Mapping) else None
        if named == target:
            return AuditConfig.from_dict(content, trusted)
    except GridError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError, AttributeError) as error:
        raise GridError(f"--config {path}: this is no report of an audit ({type(error).__name__}).") from None
    target_text = "names no target" if named is None else f"names the target {named!r}"
    more = "leave --target out" if named is None else f"add --target {named}, if you trust that code"
    raise GridError(f"--config {path} {target_text}: {more}.")


def _command(plan: AuditConfig) -> str:
    """Return the command that runs the same audit again."""
    words = ["private-rl-gym", "audit"]
    default = AuditConfig()
    own = dict(plan.boundary.options)
    words += ["--boundary", plan.boundary.name]
    for name in ("epsilon", "delta"):
        if own.get(name) is not None:
            words += [f"--{name}", f"{own.pop(name):g}"]
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
    others = {part: getattr(plan, part) for part in ("inside", "agent", "environment")}
    given = {"boundary": own} | {part: choice.options for part, choice in others.items() if choice is not None}
    for part, settings in given.items():
        for name, value in settings.items():
            words += ["--set", f"{part}.{name}={str(value).lower() if isinstance(value, bool) else value}"]
    return shlex.join(words)


def _write(report: Report, out: Path) -> Path:
    """Write the report and its figure, and return their folder.

    The figure is written if matplotlib is installed.
    """
    folder = out / digest(report.config.to_dict()).hex()[:12]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.json").write_text(json.dumps(finite(report.to_dict()), indent=2) + "\n")
        drawing.save(tradeoff_figure(report), folder / "tradeoff")
    except OSError as error:
        raise GridError(f"--out {out}: cannot be written to ({error.strerror or type(error).__name__}).") from None
    except GridError as error:  # no matplotlib: the verdict stands without a picture
        typer.echo(str(error), err=True)
    return folder


def _print(report: Report, folder: Path) -> None:
    console = screen()
    console.print(f"Claim: {report.claim}", highlight=False, soft_wrap=True)
    for line in report.coverage.sentences:
        console.print(line, highlight=False, soft_wrap=True)
    shown = table(["attack", ">claimed", ">at least", ">if Gaussian", "~by"])
    for result in report.results:
        gaussian = "" if result.gaussian is None else f"{result.gaussian:.3f}"
        claimed = f"{result.claim.epsilon:.4g}"
        shown.add_row(result.title, claimed, f"{result.epsilon:.3f}", gaussian, result.detail)
    console.print(shown)
    console.print(report.verdict, style="bold red" if report.broken else "bold", highlight=False, soft_wrap=True)
    if (folder / "tradeoff.png").exists():
        console.print(f"The figure: {folder / 'tradeoff.png'}", highlight=False, soft_wrap=True)
    console.print(f"The report: {folder / 'report.json'}", highlight=False, soft_wrap=True)
    console.print(f"Again: {_command(report.config)}", style="dim", highlight=False, soft_wrap=True)


def _audit_all(engine: Engine, runs: int, seed: int, out: Path) -> None:
    """Audit every case and print the outcome.

    Exit with ``BROKEN`` if there are more alarms than chance explains.
    """
    plans = list(everything.everything(runs=runs, seeds=(seed, seed + 1)))
    with progress("audits", len(plans)) as bar:

        def show_progress(done: int, entry: Any, report: Report | None) -> None:
            bar.update(done)
            if bar.shown is None and entry is not None and report is not None and done % 20 == 0:
                typer.echo(f"{done} of {len(plans)} audits", err=True)

        matrix = everything.matrix(plans, engine, show_progress)
    shown = table(["what", ">claim", ">epsilon at least", ">of the claim"])
    for entry, report in matrix.cases:
        style = "red" if report.broken else None
        share = f"{report.bound / report.claim.epsilon:.2f}"
        shown.add_row(entry.name, f"{report.claim.epsilon:.4g}", f"{report.bound:.3f}", share, style=style)
    screen().print(shown)
    out.mkdir(parents=True, exist_ok=True)
    content = [{"name": entry.name, **report.to_dict()} for entry, report in matrix.cases]
    (out / "all.json").write_text(json.dumps(finite(content), indent=2) + "\n")
    typer.echo(f"{matrix.sentence} All reports: {out / 'all.json'}")
    if matrix.broken:
        raise typer.Exit(BROKEN)

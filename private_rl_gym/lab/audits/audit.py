"""Audits: claim, attacks, verdict, as ``private-rl-gym audit`` runs them.

The claim is the guarantee in the ledger of the stack (or the agent's own guarantee, if its noise is the protection).
Each attack runs the stack in two worlds that differ in one user, and bounds epsilon from below; all bounds of an audit
hold together with the stated confidence. A bound above the claim disproves it. Proofs: docs/proofs/audit.md.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.base import Agent
from private_rl_gym.lab.audits.coins import guess_coins
from private_rl_gym.lab.audits.config import (
    OF_NETWORKS,
    ON_DYNAMICS,
    ON_GRADIENTS,
    AuditConfig,
    as_built,
    environment_of,
    maker,
    per_step,
)
from private_rl_gym.lab.audits.coverage import coverage_of
from private_rl_gym.lab.audits.learners import OthersActions, Perturbed
from private_rl_gym.lab.audits.mechanisms import RandomizedSteps, Releases
from private_rl_gym.lab.audits.networks import OTHERS, NetworkSums
from private_rl_gym.lab.audits.refusals import Early, Hostile, RefusedRequest
from private_rl_gym.lab.audits.report import Report, Result
from private_rl_gym.lab.audits.users import FAILED, Game, board_of
from private_rl_gym.lab.grids.cell import digest
from private_rl_gym.lab.grids.engines import Engine, InProcess
from private_rl_gym.lab.registry import BOUNDARIES, GridError
from private_rl_gym.privacy.accounting.guarantee import Guarantee, TrustModel
from private_rl_gym.privacy.audit.judging import Judgement, judge

__all__ = ["Attack", "Report", "Result", "audit", "game"]

PIECES = 8
"""Number of pieces into which the runs of one world are divided."""


@dataclass(frozen=True)
class Attack:
    """One of the attacks of an audit."""

    config: AuditConfig
    kind: str
    chosen: tuple[bytes, bytes] | None = None  # users that were chosen once, for all workers

    @property
    def users(self) -> int:
        """Number of users."""
        if self.kind == "one-run":
            return self.config.runs // 10
        if self.kind == "others":
            return OTHERS
        return max(1, {"stream": 1, "late": 1, "black-box": 2}.get(self.kind, 0) * self.config.users)

    @property
    def runs(self) -> int:
        """Number of runs of each world."""
        return self.config.runs if self.kind in ("one-release", "stream", "late") else max(200, self.config.runs // 5)

    @property
    def title(self) -> str:
        """Its name in reports."""
        users, networks = f"{self.users} user{'s' if self.users > 1 else ''}", self.config.statistic in OF_NETWORKS
        return {
            "one-release": "white box, one release",
            "stream": f"white box, {users}",
            "late": f"white box, late of {users}",
            "black-box": f"black box, {users}",
            "one-run": f"one run, {users}",
            "others": f"white box, {self.users} in a batch",
            "parts": "white box, all parts",
            "critic": "white box, value network",
            "local-steps": "white box, local steps",
            "scales": "white box, votes on scales",
            "centre": "white box, means",
            "hostile": "hostile requests" if networks else "actions that there are not",
            "early": "a batch closed early",
        }[self.kind]


def game(attack: Attack) -> Game:
    """Return the game of an attack, prepared for its runs."""
    config, make = attack.config, maker(attack.config)
    if config.statistic in OF_NETWORKS:
        return _on_networks(attack)
    shared = {"kind": config.neighbours, "seed": config.seed}
    if attack.kind in ("hostile", "early"):
        request = Hostile if attack.kind == "hostile" else Early
        env = environment_of(config, 2)
        summed = _summed(make(env, 1, 0, config.statistic), config)
        return request(env, make, users=1, statistic=summed, **shared)  # type: ignore[arg-type]
    if attack.kind == "black-box":
        env = environment_of(config, 2)
        return OthersActions(env, make, users=attack.users, chosen=attack.chosen, **shared)  # type: ignore[arg-type]
    if per_step(config.boundary):
        return RandomizedSteps(environment_of(config, 1), make, **shared)  # type: ignore[arg-type]
    late = attack.kind == "late"
    env = environment_of(config, 1 if config.agent is None and config.target is None else 2, 2 if late else 1)
    thing = make(env, attack.users, 0, config.statistic)
    if _own_noise_protects(thing):
        return Perturbed(env, make, users=attack.users, seed=config.seed)
    if late and config.neighbours == "searched":
        shared["kind"] = "one-stage"
    return Releases(env, make, users=attack.users, statistic=_summed(thing, config), late=late, **shared)  # type: ignore[arg-type]


def _on_networks(attack: Attack) -> NetworkSums:
    """Return the game of an attack on users who run networks.

    Other users are in the same batch, unless the size of batches was chosen.
    """
    config, boundary = attack.config, attack.config.boundary
    if attack.kind == "others" and BOUNDARIES.find(boundary.name, "boundary").takes("batch_size"):
        config = replace(config, boundary=replace(boundary, options={"batch_size": OTHERS, **boundary.options}))
    about = {"users": attack.users, "kind": attack.kind, "seed": config.seed, "statistic": config.statistic}
    return NetworkSums(environment_of(config, 2), maker(config), chosen=attack.chosen, **about)  # type: ignore[arg-type]


def _summed(thing: Any, config: AuditConfig) -> str:
    """Return the statistic of an agent, or the configured one."""
    return type(thing).statistic if isinstance(thing, Agent) else config.statistic


def _own_noise_protects(thing: Any) -> bool:
    """Return whether the guarantee comes from the agent's own noise, not from its boundary."""
    return isinstance(thing, Agent) and thing.secret_randomness and not math.isfinite(board_of(thing).ledger.epsilon)


def _has_critic(board: Any) -> bool:
    """Return whether users of this boundary have a value network."""
    network = getattr(board.source, "network", None)
    return network is not None and bool(network.critic_size)


# Running it ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """Some runs of one world."""

    attack: Attack
    world: int
    first: int
    count: int

    @property
    def key(self) -> str:
        """A unique name."""
        return f"{digest(self.attack.config.to_dict()).hex()[:16]}-{self.attack.kind}-{self.world}-{self.first}"


def play(piece: Piece) -> NDArray[np.float64]:
    """Return the numbers that the attack sees in these runs."""
    return game(piece.attack).runs(piece.world, piece.first, piece.count)


def fitting(config: AuditConfig) -> tuple[str, ...]:
    """Return the attacks to run.

    By default these are the attacks that fit: one release, a stream, or an agent's choices.
    """
    if config.attacks:
        return config.attacks
    if per_step(config.boundary):
        return ("one-release",)
    networks = config.statistic in OF_NETWORKS
    if config.boundary is not None and config.boundary.options.get("visits", 1) > 1:
        return ("stream",) if networks else ("stream", "late")  # one user does not come back to one release
    try:
        thing = maker(config)(environment_of(config, 2), 1, 0, config.statistic)
    except GridError:
        raise
    except (ValueError, TypeError) as error:
        raise GridError(f"The boundary or agent to audit cannot be built: {error}") from None
    if networks:
        local = board_of(thing).guarantee.model is TrustModel.LDP  # no batch hides a report: others are in the stream
        left_out = {"stream": config.users == 1, "others": local, "critic": not _has_critic(board_of(thing))}
        names = ON_GRADIENTS if config.statistic == "gradient" else ON_DYNAMICS
        return tuple(name for name in names if not left_out.get(name))
    if _own_noise_protects(thing):
        return ("stream", "black-box")  # the plan for the first user follows from no data
    attacks = ["one-release", *(["stream", "late"] if config.users > 1 else []), "hostile"]
    if board_of(thing).users_to_release > 1 or board_of(thing).guarantee.model is TrustModel.SDP:
        attacks.append("early")
    return (*attacks, "black-box") if isinstance(thing, Agent) else tuple(attacks)


def audit(
    config: AuditConfig, engine: Engine | None = None, told: Callable[[int, int], None] = lambda *_: None
) -> Report:
    """Run the attacks and return a report with the verdict on the claim.

    Args:
        config: The stack, and the attacks on it.
        engine: The engine for the runs; by default, this process.
        told: Called with the number of finished runs, and of all runs.

    Example:
        >>> from private_rl_gym.lab.audits import AuditConfig, audit
        >>> report = audit(AuditConfig(runs=400))
        >>> report.broken, report.claim.epsilon
        (False, 1.0)
    """
    config = as_built(config)
    config.check()
    start = time.perf_counter()
    games = {}
    for kind in fitting(config):
        attack = Attack(config, kind)
        prepared = None if kind == "one-run" else _prepared(attack)
        games[replace(attack, chosen=getattr(prepared, "chosen", None))] = prepared
    # A request that is refused gives no bound: it takes no share of the probability that a bound fails.
    shut = {attack for attack, prepared in games.items() if isinstance(prepared, RefusedRequest) and not prepared.open}
    failure = (1.0 - config.confidence) / max(1, len(games) - len(shut))
    many = [attack for attack, prepared in games.items() if prepared is not None and attack not in shut]
    pieces = [piece for attack in many for piece in _pieces(attack)]
    total, done = sum(piece.count for piece in pieces), 0
    told(done, total)
    seen: dict[tuple[Attack, int], list[tuple[int, NDArray[np.float64]]]] = {}
    for answer in (engine or InProcess()).run(pieces, play):
        if answer.content is None:
            last = (answer.failure or "").strip().splitlines()[-1:]
            raise GridError(f"{answer.cell.attack.title}: a run failed. {' '.join(last)}")
        piece = answer.cell
        seen.setdefault((piece.attack, piece.world), []).append((piece.first, answer.content))
        done += piece.count
        told(done, total)
    results = []
    for attack, here in games.items():
        if here is None:
            results.append(_one_run(attack, failure))
            continue
        if attack in shut:
            results.append(Result(attack.kind, attack.title, attack.users, here.guarantee, 0.0, None, None, "refused"))
            continue
        worlds = [
            np.concatenate([rows for _, rows in sorted(seen.pop((attack, world)), key=_first)]) for world in (0, 1)
        ]
        if (
            isinstance(here, Releases | NetworkSums)
            and min(float((rows[:, -1] == FAILED).mean()) for rows in worlds) > 0.5
        ):
            raise GridError(f"{attack.title}: most runs failed in both worlds, so that there is nothing to compare.")
        delta = here.guarantee.delta if math.isfinite(here.guarantee.epsilon) else 0.0
        judged = judge(worlds[0], worlds[1], here.scores, delta=delta, failure=failure, gaussian=here.gaussian)
        results.append(_result(attack, here.guarantee, judged))
    coverage = coverage_of(config, [(result.title, result.claim) for result in results], games.values())
    return Report(config, tuple(results), time.perf_counter() - start, coverage)


def _first(rows: tuple[int, Any]) -> int:
    return rows[0]


def _prepared(attack: Attack) -> Game:
    try:
        return game(attack)
    except GridError:
        raise
    except Exception as error:  # noqa: BLE001 - other code may raise anything
        raise GridError(f"{attack.title}: {type(error).__name__}: {error}") from None


def _pieces(attack: Attack) -> Iterator[Piece]:
    edges = np.unique(np.linspace(0, attack.runs, PIECES + 1).astype(int))
    for first, last in pairwise(edges):
        for world in (0, 1):
            yield Piece(attack, world, int(first), int(last - first))


def _one_run(attack: Attack, failure: float) -> Result:
    config, make, env = attack.config, maker(attack.config), environment_of(attack.config, 1)
    statistic = _summed(make(env, 1, 0, config.statistic), config)
    coins = guess_coins(env, make, attack.users, config.neighbours, config.seed, failure, statistic)
    return Result(attack.kind, attack.title, attack.users, coins.guarantee, coins.epsilon, None, None, coins.sentence)


def _result(attack: Attack, claim: Guarantee, judged: Judgement) -> Result:
    event = judged.best
    detail = (
        f"{event.score}: {event.hits:,} of {event.trials[0]:,} runs against {event.alarms:,} of {event.trials[1]:,}"
    )
    return Result(attack.kind, attack.title, attack.users, claim, judged.epsilon, judged.gaussian, judged, detail)

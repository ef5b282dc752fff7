"""SDP-PE: policy elimination in stages, for batches."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.base import Agent
from private_rl_gym.agents.optimism import Bonus, check_bonus, check_multiplier
from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.search import Everyone, Mixture, Model, NearBest, shares, simplex
from private_rl_gym.privacy.errors import pack, unpack
from private_rl_gym.privacy.projection import project_counts
from private_rl_gym.privacy.release import Release

__all__ = ["APEVE", "SDPPE"]

Segment = tuple[NDArray[np.int64], int]  # a policy [h, s], and how many users run it


class SDPPE(Agent):
    """Explore with the policies that are still active, a batch at a time, and eliminate those that look bad.

    Bai, Talebi, Zhao, Cheng, Chen: No-regret Exploration in Shuffle Private Reinforcement Learning, algorithms 1 to 3
    and theorem 6. Stage b has 2^b users for crude and 2^b for fine exploration, and forgets all batches before. Around
    exact sums it is ``APEVE``.

    Args:
        policy: ``"TabularPolicy"``.
        env: ``SDPShuffler``, or another board whose batches may be closed at any time: ``OpenBillboard``,
            ``LDPUserSide``, ``JDPBillboard(counting="batched")``. Where it has ``users``, the last stage takes what is
            left of them. Let its own batches be as large as the run, or noise is added more often than needed.
        search: ``"enumerate"`` lists all deterministic policies, as the paper does; ``"lagrangian"`` keeps the active
            set implicit, as those within the gap of the best in the last stage's model, and is polynomial.
        bonus: ``"theory"`` for the paper's gap and threshold, with its constant C = 1; ``"practical"`` for a gap of
            2 (``gap_scale`` sqrt(H^3 S^2 A iota / L) + ``noise_scale`` H^2 S A sigma / L), sigma being the noise in a
            count of visits, and for leaving out what was visited less often than that.
        gap_scale: Multiplies the sampling term of a practical gap.
        noise_scale: Multiplies its term for noise.
        first_stage: The stage b to begin with; by default the first with 8 users
            for each stage, state and action.
        most_policies: The largest number of policies to enumerate.
        options: ``beta`` (the paper's delta), ``verbose``, ``tensorboard_log``, ``seed``; see the base class.
    """

    keeps_policy = False  # users run a place in a batch, not a policy

    saved_arguments: ClassVar[tuple[str, ...]] = (
        "beta",
        "search",
        "bonus",
        "gap_scale",
        "noise_scale",
        "first_stage",
        "most_policies",
    )

    def __init__(
        self,
        policy: str | None = "TabularPolicy",
        env: Any = None,
        *,
        search: Literal["enumerate", "lagrangian"] = "lagrangian",
        bonus: Bonus = "practical",
        gap_scale: float = 0.02,
        noise_scale: float = 0.1,
        first_stage: int | None = None,
        most_policies: int = 65_536,
        **options: Any,
    ) -> None:
        if search not in ("enumerate", "lagrangian"):
            raise ValueError(f"search is {search!r}: choose 'enumerate' or 'lagrangian'.")
        check_bonus(bonus, 1.0)
        check_multiplier("gap_scale", gap_scale, "the gap")
        check_multiplier("noise_scale", noise_scale, "the gap's term for noise", zero=True)
        if first_stage is not None:
            first_stage = positive_integer(first_stage, "first_stage", "the stage to begin with")
        self.search, self.bonus, self.first_stage, self.most_policies = search, bonus, first_stage, most_policies
        self.gap_scale, self.noise_scale = gap_scale, noise_scale
        self._best: Policy | None = None  # in the refined model, once it was asked for
        super().__init__(policy, env, **options)

    # Algorithm 1: stages ---------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Begin with all policies, and the first stage."""
        board = self._board
        if not board.closes_early:
            raise ValueError(
                f"{type(self).__name__} closes batches itself, which would cost this {type(board).__name__} its "
                "promise: use SDPShuffler, LDPUserSide, or JDPBillboard with counting='batched'."
            )
        H, S, A = board.sizes
        self._search = Everyone(H, S, A, self.most_policies) if self.search == "enumerate" else NearBest()
        smallest = math.ceil(math.log2(8 * H * S * A))
        self._stage = smallest if self.first_stage is None else self.first_stage
        self._gap = math.inf
        self._refined: Model | None = None  # of the last stage: algorithm 1's estimates
        self._best = None
        self._since = board.release.with_certain_rows()  # where the current batch began
        self._begin_stage()
        if self._last and board.users_left and not board.release.users:
            warnings.warn(
                f"{board.users_left} users are coming, and a first stage takes {2**self._stage} for each of its two "
                "steps: nothing will be eliminated. Serve more users, or begin with a smaller first_stage=.",
                stacklevel=4,
            )

    def _begin_stage(self) -> None:
        """Lines 1 to 4: 2^b users each; the last stage takes what is left, and loses nobody."""
        length, left = 2**self._stage, self._board.users_left
        self._last = left is not None and left < 4 * length  # as many as this one's would be too few for the next
        if left is None or not self._last:
            self._crude_users = self._fine_users = length
        else:
            self._crude_users, self._fine_users = left // 2, left - left // 2
        H, S, A = self._board.sizes
        self._layer, self._spread = 0, shares(self._crude_users, H)
        self._starts = np.zeros(S + 1)  # where users started; the last entry counts them
        self._rare = np.zeros((H, S, A, S), dtype=bool)  # W
        P = np.zeros((H, S + 1, A, S + 1))
        P[..., S] = 1.0
        self._crude = Model(P, np.zeros((H, S + 1, A)), np.append(np.full(S, 1.0 / S), 0.0))
        self._plan_batch()

    def _plan_batch(self) -> None:
        """The next batch: a layer of crude exploration, or all of fine exploration."""
        H, model = self.horizon, self._model()
        layers, users = ([self._layer], self._spread[self._layer]) if self._layer < H else (range(H), self._fine_users)
        found: list[Mixture] = []
        for layer in layers:
            found += self._search.most_visiting(model, layer, self._gap)
        self._segments: list[Segment] = []
        for mixture, count in zip(found, shares(users, len(found)), strict=True):
            self._segments += mixture.split(count)
        self._place, self._done, self._waiting = 0, 0, False
        self._running: Policy | None = None
        if not self._segments:  # fewer users than layers: this batch is empty
            self._finish_batch(None)

    def _model(self) -> Model:
        """What policies are judged by: crude estimates up to the current layer, and the last stage's for the rest.

        Algorithm 2 leaves the layers beyond open, as visits do not depend on them; values, which the implicit active
        set is made of, do.
        """
        if self._refined is None:
            return self._crude
        P = self._crude.transitions.copy()
        P[self._layer :] = self._refined.transitions[self._layer :]
        initial = self._crude.initial if self._layer else self._refined.initial
        return Model(P, self._refined.rewards, initial)

    def plan(self, release: Release) -> Policy:
        """The policy of the users to come; when their batch is complete, what it says is taken up first."""
        if self._place == len(self._segments) and not self._finished and not self._waiting:
            self._close()  # the last attempt failed
            release = self._board.release.with_certain_rows()
        over = self._board.users_left == 0 and not self._finished  # users who vanished, or met others, were counted in
        if (self._waiting or over) and release.users > self._since.users:
            batch = release.since(self._since).with_certain_rows()
            self._since = release
            self._finish_batch(batch)
            if over:
                self._segments, self._waiting = [], False
        if self._finished:
            return self._policy_of(self._search.best(self._refined or self._crude)[0])
        if self._running is None:
            self._running = self._policy_of(self._segments[self._place][0])
        return self._running

    def best_policy(self) -> Policy:
        """The best active policy of the last stage's model: what one would deploy. Users to come may still explore."""
        if self.board is not None:
            self._plan_if_new()
        return self._deployed() or self.policy

    def _deployed(self) -> Policy | None:
        if self._best is None and self.board is not None and self._refined is not None:
            self._best = self._policy_of(self._search.best(self._refined)[0])
        return self._best

    @property
    def _finished(self) -> bool:
        return not self._segments

    def _policy_of(self, table: NDArray[np.int64]) -> Policy:
        H, S, A = self._board.sizes
        return Policy.of(table, horizon=H, n_states=S, n_actions=A)

    @property
    def users_to_plan(self) -> int:
        """Those who run the current segment."""
        return 2**40 if self._finished else self._segments[self._place][1] - self._done

    def ran(self, users: int) -> None:
        """Go on to the next policy of the batch; after the last one, close the batch."""
        if self._finished or self._waiting:
            return
        self._done += users
        if self._done < self._segments[self._place][1]:
            return
        self._place, self._done, self._running, self._policy = self._place + 1, 0, None, None
        if self._place == len(self._segments):
            self._close()

    def _close(self) -> None:
        self._board.publish()
        self._waiting = True

    def _finish_batch(self, batch: Release | None) -> None:
        """Algorithms 2 and 3, after their batches; and line 9 of algorithm 1."""
        H = self.horizon
        if batch is not None:
            self._starts += _starts(batch)
            self._crude = replace(self._crude, initial=simplex(self._starts))
        if self._layer < H:
            if batch is not None:
                self._estimate(self._crude, batch, self._layer)
            self._layer += 1
            self._plan_batch()
            return
        if batch is not None:
            refined = Model(
                np.zeros_like(self._crude.transitions),
                np.zeros_like(self._crude.rewards),
                simplex(_starts(batch)),
            )
            for h in range(H):
                self._estimate(refined, batch, h)
            self._refined, self._best = refined, None
            self._gap = self._width(batch)
            if isinstance(self._search, Everyone):
                self._search.eliminate(refined, self._gap)
        if self._last or self._board.users_left == 0:
            self._segments, self._waiting = [], False
            return
        self._stage += 1
        self._begin_stage()

    # Estimates -------------------------------------------------------------------------------------------------------

    def _error(self, batch: Release) -> float:
        """E of the paper; the projection assumes that counts are within E / 4."""
        return 4.0 * batch.error_bound(self.beta) if self.bonus == "theory" else 0.0

    def _noise(self, batch: Release, family: str) -> float:
        """The standard deviation of the noise in a count."""
        return batch.noise_std[family]

    @property
    def iota(self) -> float:
        """log(2 H A K / delta); where any number of users may come, K is that of a million."""
        H, _, A = self._board.sizes
        return math.log(2.0 * H * A * (self._board.users or 1_000_000) / self.beta)

    def _estimate(self, model: Model, batch: Release, h: int) -> None:
        """Transitions and rewards of one stage; what was seen too rarely (W) leads to the absorbing state."""
        S = batch.n.shape[1]
        E = self._error(batch)
        m, n = project_counts(batch.m[h : h + 1], batch.n[h : h + 1], E)
        m, n = m[0], n[0]
        if self.bonus == "practical":  # what is hardly seen at all
            rare = np.broadcast_to((n < max(1.0, self._noise(batch, "n")))[..., None], m.shape)
        elif self._layer < self.horizon:  # C_1 = 6; without noise the sampling error asks for as much
            rare = self._rare[h] = m < 6.0 * max(E, 1.0) * self.horizon**2 * self.iota
        else:
            rare = self._rare[h]
        P = np.where(rare, 0.0, m / np.maximum(n, 1e-9)[..., None])
        model.transitions[h, :S, :, :S] = P
        model.transitions[h, :S, :, S] = np.maximum(0.0, 1.0 - P.sum(axis=-1))
        model.transitions[h, S, :, S] = 1.0
        model.rewards[h, :S] = np.where(rare.all(axis=-1), 0.0, np.clip(batch.r[h] / np.maximum(n, 1.0), 0.0, 1.0))

    def _width(self, batch: Release) -> float:
        """How far below the best a policy may look and stay active: line 9 of algorithm 1."""
        H, S, A = self._board.sizes
        L = max(self._fine_users, 1)
        sampling = math.sqrt(H**3 * S**2 * A * self.iota / L)
        if self.bonus == "theory":
            privacy: float = S**3 * A**2 * H**5 * self._error(batch) * self.iota / L
            return 2.0 * (H * sampling + privacy)
        noise: float = H**2 * S * A * self._noise(batch, "n") / L
        return 2.0 * (self.gap_scale * sampling + self.noise_scale * noise)

    def progress(self) -> dict[str, float]:
        """Where the elimination stands."""
        found = {"plan/stage": float(self._stage)}
        if math.isfinite(self._gap):
            found["plan/gap"] = self._gap
        if isinstance(self._search, Everyone):
            found["plan/active"] = float(self._search.active.sum())
        return found

    # Files -----------------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything between two users: where the stage stands, and what it knows from releases."""
        if self.board is None:
            return {}
        where = [
            self._stage,
            int(self._last),
            self._layer,
            self._crude_users,
            self._fine_users,
            self._place,
            self._done,
        ]
        since = self._since
        found = {
            "where": np.array([*where, int(self._waiting)], dtype=np.int64),
            "spread": np.array(self._spread, dtype=np.int64),
            "gap": np.array([self._gap]),
            "starts": self._starts,
            "rare": self._rare,
            "tables": np.array([table for table, _ in self._segments], dtype=np.int64),
            "counts": np.array([count for _, count in self._segments], dtype=np.int64),
            "since_users": np.array([since.version, since.users], dtype=np.int64),
            "since_errors": np.frombuffer(
                json.dumps({name: pack(law) for name, law in since.errors.items()}).encode(), dtype=np.uint8
            ),
            **{f"since_{family}": getattr(since, family) for family in "nmr"},
            **self._crude.arrays("crude"),
        }
        if self._refined is not None:
            found |= self._refined.arrays("refined")
        deployed = self._deployed()
        if deployed is not None:
            found["best"] = deployed.table
        if isinstance(self._search, Everyone):
            found["active"] = self._search.active
        return found

    def set_state(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go on from there."""
        if "best" in arrays:
            H, S = arrays["best"].shape
            self._best = Policy.of(arrays["best"], horizon=H, n_states=S, n_actions=arrays["since_n"].shape[2])
        if not arrays or self.board is None:
            return
        _check_saved(arrays, self._board.sizes)
        where = [int(number) for number in arrays["where"]]
        self._stage, last, self._layer, self._crude_users, self._fine_users, self._place, self._done, waiting = where
        self._last, self._waiting = bool(last), bool(waiting)
        self._starts, self._rare = arrays["starts"].copy(), arrays["rare"].astype(bool)
        self._spread = [int(number) for number in arrays["spread"]]
        self._gap = float(arrays["gap"][0])
        version, users = (int(number) for number in arrays["since_users"])
        errors = json.loads(arrays["since_errors"].tobytes())
        self._since = replace(
            self._board.release,
            version=version,
            users=users,
            errors={name: unpack(law) for name, law in errors.items()},
            n=arrays["since_n"],
            m=arrays["since_m"],
            r=arrays["since_r"],
        )
        self._segments = list(zip(arrays["tables"], (int(count) for count in arrays["counts"]), strict=True))
        self._crude = Model.of("crude", arrays)
        self._refined = Model.of("refined", arrays) if "refined_initial" in arrays else None
        if isinstance(self._search, Everyone):
            self._search.active = arrays["active"].astype(bool)
        self._running = None


class APEVE(SDPPE):
    """SDPPE's noiseless parent: the same elimination, for exact counts.

    Qiao, Yin, Min, Wang: Sample-Efficient Reinforcement Learning with loglog(T) Switching Cost, 2022.
    """

    private = False

    def _error(self, batch: Release) -> float:
        """Noise, if there is any, is not known to this agent."""
        del batch
        return 0.0

    def _noise(self, batch: Release, family: str) -> float:
        """Nor is how large it is."""
        del batch, family
        return 0.0


def _starts(batch: Release) -> NDArray[np.float64]:
    """Where the users of a batch started, and how many they are."""
    seen = batch.n[0].sum(axis=-1)
    if batch.absorbing is not None:  # where episodes end, none begins
        seen[batch.absorbing] = 0.0
    return np.append(seen, batch.users)


def _check_saved(arrays: Mapping[str, NDArray[Any]], sizes: tuple[int, int, int]) -> None:
    """Refuse arrays of other sizes or kinds than those that were saved: compiled searches read them."""
    H, S, A = sizes
    shapes: dict[str, tuple[int, ...]] = {
        "where": (8,),
        "spread": (H,),
        "gap": (1,),
        "starts": (S + 1,),
        "rare": (H, S, A, S),
        "since_users": (2,),
        "since_n": (H, S, A),
        "since_m": (H, S, A, S),
        "since_r": (H, S, A),
    }
    for side in ("crude", "refined"):
        if side == "crude" or "refined_initial" in arrays:
            extra = arrays[f"{side}_initial"].size - S
            n = S + extra
            shapes |= {f"{side}_initial": (n,), f"{side}_transitions": (H, n, A, n), f"{side}_rewards": (H, n, A)}
            if extra not in (0, 1):
                raise ValueError("The saved model is of another size.")
    tables, counts = arrays["tables"], arrays["counts"]
    fits = all(arrays[name].shape == shape for name, shape in shapes.items() if name in arrays)
    fits &= set(shapes) <= set(arrays) and len(tables) == len(counts)
    fits &= len(tables) == 0 or (tables.ndim == 3 and tables.min() >= 0 and tables.max() < A)
    whole = all(arrays[name].dtype.kind in "iub" for name in ("where", "spread", "rare", "tables", "counts"))
    finite = all(np.isfinite(arrays[name]).all() for name in shapes if name != "gap")
    if not (fits and whole and finite and (counts >= 0).all() and (arrays["spread"] >= 0).all()):
        raise ValueError("The saved stage is damaged: its arrays do not fit each other.")

"""SDP-PE: policy elimination in stages, for batches."""

from __future__ import annotations

import math
import warnings
from collections.abc import Generator, Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.batched import Batch, BatchedAgent
from private_rl_gym.agents.optimism import Constants, check_constants, check_multiplier
from private_rl_gym.agents.tabular.elimination import ModelInterval, WeightedSums, starts_of
from private_rl_gym.planning.arrays import among, positive_integer, real, shown
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.projection import project_counts
from private_rl_gym.planning.search import EstimatedModel, Everyone, NearBest, PolicyMixture, shares, simplex
from private_rl_gym.privacy.release import Release
from private_rl_gym.wrappers.boundary import Boundary

__all__ = ["APEVE", "SDPPE"]

MIXING = 0.3
"""Practical share of the users that a mixture gives to its policy beyond the gap.

The mixture as a whole meets the gap. With 0 no user tries actions that need a mixture. With 1 every user loses the gap.
"""

LAST_STAGE = 39
"""The last stage whose users can be counted: it takes 2^39 of them for each step."""


class SDPPE(BatchedAgent):
    """Policy elimination in batches: active policies explore, and those with low values are eliminated.

    Bai, Talebi, Zhao, Cheng, Chen: No-regret Exploration in Shuffle Private Reinforcement Learning, algorithms 1 to 3
    and theorem 6. By theory, stage b has 2^b users for crude and 2^b for fine exploration, and forgets all batches
    before. In practice crude exploration comes once, stages grow by ``growth``, models are estimated from all batches,
    and each policy has a width of its own. For exact sums there is ``APEVE``.

    Args:
        policy: ``"TabularPolicy"``.
        env: ``SDPShuffler``, or another board whose batches may be closed at any time: ``OpenBillboard``,
            ``LDPUserSide``, ``JDPBillboard(counting="batched")``. If its number of users is limited, the last
            stage takes all who are left.
        search: ``"enumerate"`` lists all deterministic policies, as the paper does; ``"lagrangian"`` keeps the active
            set implicit, as those within the gap of the best in the last stage's model, and is polynomial.
        constants: ``"theory"`` for the paper's stages, gap and threshold, with its constant C = 1; ``"practical"`` for
            stages that remember all batches, each weighted by users / (users + noise^2). There a policy is active if
            its value with rewards raised by a width is at least the best value with rewards lowered by it. Pairs of
            state and action that were seen less than their noise are unknown, and may have the largest value.
        gap_scale: Multiplies the practical width for sampling, 2 sqrt(Var(V) iota / n) + sqrt(2 iota / n).
        noise_scale: Multiplies the practical width for noise, (H - h) sigma / n.
        growth: Users of a practical stage, as a multiple of those of the stage before.
        first_stage: The stage b to begin with, of 2^b users for each of its two steps; by default the first with 8
            users for each stage, state and action in one step, by theory, or in both, in practice.
        most_policies: The largest number of policies to enumerate.
        options: ``beta`` (the paper's delta), ``verbose``, ``tensorboard_log``, ``seed``; see the base class.
    """

    def __init__(
        self,
        policy: str | None = "TabularPolicy",
        env: Any = None,
        *,
        search: Literal["enumerate", "lagrangian"] = "lagrangian",
        constants: Constants = "practical",
        gap_scale: float = 0.015,
        noise_scale: float = 0.05,
        growth: float = 1.25,
        first_stage: int | None = None,
        most_policies: int = 65_536,
        **options: Any,
    ) -> None:
        if not among(search, ("enumerate", "lagrangian")):
            raise ValueError(f"search is {shown(search)}: choose 'enumerate' or 'lagrangian'.")
        self.constants = check_constants(constants)
        self.gap_scale = check_multiplier("gap_scale", gap_scale, "the gap")
        self.noise_scale = check_multiplier("noise_scale", noise_scale, "the gap's term for noise", zero=True)
        self.most_policies = positive_integer(most_policies, "most_policies", "policies")
        if not 1.0 <= real(growth, "growth") < math.inf:
            raise ValueError(f"growth is {shown(growth)}: stages must not shrink, so that it must be 1 or more.")
        if first_stage is not None:
            first_stage = positive_integer(first_stage, "first_stage", "the stage to begin with")
            if first_stage > LAST_STAGE:
                raise ValueError(
                    f"first_stage is {first_stage}: it must be at most {LAST_STAGE}, because a stage takes 2^stage "
                    "users."
                )
        self.search, self.first_stage, self.growth = search, first_stage, float(growth)
        super().__init__(policy, env, **options)

    # Algorithm 1: stages ---------------------------------------------------------------------------------------------

    def batches(self) -> Generator[Batch, Release, Policy]:
        """Yield batches of active policies; estimate and eliminate after each stage.

        Stages have more and more users.
        """
        H, S, A = self._board.sizes
        theory = self.constants == "theory"
        everyone = self.search == "enumerate"
        self.active = Everyone(H, S, A, self.most_policies) if everyone else NearBest(mixing=1.0 if theory else MIXING)
        self._gap = math.inf
        self._deploy: Policy | None = None
        self.refined: EstimatedModel | None = None  # the model of the last stage
        self.rare: NDArray[np.bool_] = np.zeros((H, S, A, S), dtype=bool)  # W
        b = self.first_stage
        if b is None:
            b = max(1, math.ceil(math.log2(8 * H * S * A)) - (not theory))
        self._warn_if_nothing_will_be_eliminated(b)
        yield from self._printed_stages(b) if theory else self._practical_stages(b)
        assert self._deploy is not None  # noqa: S101 - there was a stage
        return self._deploy

    def _printed_stages(self, b: int) -> Generator[Batch, Release, None]:
        """Yield the batches of algorithm 1.

        Each stage forgets those before, and has twice as many users.
        """
        left, refined = self.known_users, None
        while left is None or left > 0:
            self._stage, L = b, 2**b
            last = left is not None and left < 4 * L  # fewer than 2 L would be left, too few for the next
            crude_users, fine_users = (left // 2, left - left // 2) if last and left is not None else (L, L)
            crude, self.rare = yield from self._explore_crudely(crude_users, refined)
            refined, self._gap = yield from self._explore_finely(fine_users, crude, refined, self.rare)
            self._eliminate(refined, refined)
            left = None if left is None else left - crude_users - fine_users
            b += 1

    def _practical_stages(self, b: int) -> Generator[Batch, Release, None]:
        """Yield the batches of practical stages, which remember all batches.

        Crude exploration comes once, layer by layer, in the first half of the first stage.
        """
        H, S, A = self._board.sizes
        left, L = self.known_users, 2 ** (b + 1)
        sums, judging = WeightedSums.nothing(H, S, A), EstimatedModel.unknown(H, S, A)
        self._stage = b
        while left is None or left > 0:
            following = math.ceil(self.growth * L)
            users = left if left is not None and left < L + following else L
            fine_users = users
            if self.refined is None:
                fine_users = users - users // 2
                for h, count in enumerate(shares(users // 2, H)):
                    batch = yield from self._explore(judging, [h], count)
                    if batch is not None:
                        sums = sums.plus(batch, batch.noise_std["n"])
                        judging = self._interval(sums).best
            batch = yield from self._explore(judging, range(H), fine_users)
            assert batch is not None  # noqa: S101 - a stage has users
            sums = sums.plus(batch, batch.noise_std["n"])
            models = self._interval(sums)
            judging = models.best
            self._gap = max(0.0, self.active.best(models.best)[1] - self.active.best(models.worst)[1])
            self._eliminate(models.best, models.likely)
            left, L = None if left is None else left - users, following
            self._stage += 1

    def _interval(self, sums: WeightedSums) -> ModelInterval:
        return ModelInterval.of(sums, self.iota, self.gap_scale, self.noise_scale)

    def _eliminate(self, judging: EstimatedModel, refined: EstimatedModel) -> None:
        """Drop the policies beyond the gap in one model, and deploy the best one.

        The best of the other policies is found in the second model.
        """
        if isinstance(self.active, Everyone):
            self.active.eliminate(judging, self._gap)
        self.refined = refined
        self._deploy = self._policy_of(self.active.best(refined)[0])

    # Algorithm 2: crude exploration ----------------------------------------------------------------------------------

    def _explore_crudely(
        self, users: int, refined: EstimatedModel | None
    ) -> Generator[Batch, Release, tuple[EstimatedModel, NDArray[np.bool_]]]:
        """Yield a batch for each layer; return the crude model and rare transitions.

        Transitions seen too rarely (W) lead to the absorbing state.
        """
        H, S, A = self._board.sizes
        crude, rare = EstimatedModel.unknown(H, S, A), np.zeros((H, S, A, S), dtype=bool)
        starts = np.zeros(S + 1)  # where users started; the last entry counts them
        for h, count in enumerate(shares(users, H)):
            model = self._judging(crude, refined, h)
            batch = yield from self._explore(model, [h], count)
            if batch is None:
                continue
            starts += starts_of(batch)
            crude = crude.starting(simplex(starts))
            rare[h] = self._estimate(crude, batch, h, None)
        return crude, rare

    @staticmethod
    def _judging(crude: EstimatedModel, refined: EstimatedModel | None, layer: int) -> EstimatedModel:
        """Return the model that policies are compared in.

        It is the crude model up to the current layer, and the last stage's model for the rest. Algorithm 2 does not
        define the later layers, as visits do not depend on them. But values do, and they define the implicit active
        set.
        """
        if refined is None:
            return crude
        P = crude.transitions.copy()
        P[layer:] = refined.transitions[layer:]
        return EstimatedModel(P, refined.rewards, crude.initial if layer else refined.initial)

    # Algorithm 3: fine exploration -----------------------------------------------------------------------------------

    def _explore_finely(
        self, users: int, crude: EstimatedModel, refined: EstimatedModel | None, rare: NDArray[np.bool_]
    ) -> Generator[Batch, Release, tuple[EstimatedModel, float]]:
        """Yield one batch for all layers; return the refined model and the gap.

        The gap is that for active policies.
        """
        H, S, A = self._board.sizes
        batch = yield from self._explore(self._judging(crude, refined, H), range(H), users)
        assert batch is not None  # noqa: S101 - a stage has users
        estimated = EstimatedModel.empty(H, S, A).starting(simplex(starts_of(batch)))
        for h in range(H):
            self._estimate(estimated, batch, h, rare[h])
        return estimated, self._width(batch, users)

    def _explore(
        self, model: EstimatedModel, layers: Iterable[int], users: int
    ) -> Generator[Batch, Release, Release | None]:
        """Yield a batch that is shared equally among policies, and return its release.

        There is one active policy for each (h, s, a): the one that visits it most often.
        """
        mixtures: list[PolicyMixture] = []
        for layer in layers:
            mixtures += self.active.most_visiting(model, layer, self._gap)
        runs = [
            (self._policy_of(table), count)
            for mixture, share in zip(mixtures, shares(users, len(mixtures)), strict=True)
            for table, count in mixture.split(share)
        ]
        if not runs:  # fewer users than layers: no user explores this one
            return None
        return (yield Batch(runs, deploy=self._deploy))

    def _policy_of(self, table: NDArray[np.int64]) -> Policy:
        H, S, A = self._board.sizes
        return Policy.of(table, horizon=H, n_states=S, n_actions=A)

    def check(self, board: Boundary) -> None:
        """Raise ValueError for counts that are pooled over stages.

        They do not show where users start. The error is raised before any user comes.
        """
        if board.release.pooled:
            raise ValueError(
                f"{type(self).__name__} explores stage by stage, and needs counts by stage. Build the boundary without "
                "stationary=True."
            )

    # Estimates -------------------------------------------------------------------------------------------------------

    def _error(self, batch: Release) -> float:
        """Return E of the paper.

        The projection assumes that counts are within E / 4.
        """
        return 4.0 * batch.error_bound(self.beta)

    @property
    def iota(self) -> float:
        """The logarithm log(2 H A K / delta).

        Where any number of users may come, K is a million.
        """
        H, _, A = self._board.sizes
        return math.log(2.0 * H * A * self.expected_users / self.beta)

    def _estimate(
        self, model: EstimatedModel, batch: Release, h: int, known_rare: NDArray[np.bool_] | None
    ) -> NDArray[np.bool_]:
        """Estimate transitions and rewards of one stage in ``model``; return W.

        W marks the transitions that are too rare. These lead to the absorbing state. ``known_rare`` is W by crude
        exploration, or None while it goes on.
        """
        S = batch.n.shape[1]
        E = self._error(batch)
        m, n = (array[0] for array in project_counts(batch.m[h : h + 1], batch.n[h : h + 1], E))
        few = 6.0 * max(E, 1.0) * self.horizon**2 * self.iota  # C_1 = 6; without noise sampling asks for as much
        rare = m < few if known_rare is None else known_rare
        P = np.where(rare, 0.0, m / np.maximum(n, 1e-9)[..., None])
        model.transitions[h, :S, :, :S] = P
        model.transitions[h, :S, :, S] = np.maximum(0.0, 1.0 - P.sum(axis=-1))
        model.transitions[h, S, :, S] = 1.0
        model.rewards[h, :S] = np.clip(batch.r[h] / np.maximum(n, 1.0), 0.0, 1.0)
        return rare

    def _width(self, batch: Release, users: int) -> float:
        """Return the largest gap to the best value at which a policy stays active.

        This is line 9 of algorithm 1.
        """
        H, S, A = self._board.sizes
        L = max(users, 1)
        sampling = math.sqrt(H**5 * S**2 * A * self.iota / L)
        privacy: float = S**3 * A**2 * H**5 * self._error(batch) * self.iota / L
        return 2.0 * (sampling + privacy)

    def _warn_if_nothing_will_be_eliminated(self, stage: int) -> None:
        users = self.known_users
        enough = 4 if self.constants == "theory" else 2 * (1 + self.growth)
        if users and users < enough * 2**stage and not self._board.release.users:
            warnings.warn(
                f"A first stage takes {2**stage} users for each of its two steps, and {users} users are left: "
                "nothing will be eliminated. Serve more users, or give a smaller first_stage=.",
                stacklevel=7,
            )

    def progress(self) -> dict[str, float]:
        """Return the stage, the gap and the number of active policies."""
        numbers = {"plan/stage": float(self._stage)}
        if math.isfinite(self._gap):
            numbers["plan/gap"] = self._gap
        if isinstance(self.active, Everyone):
            numbers["plan/active"] = float(self.active.active.sum())
        return numbers


class APEVE(SDPPE):
    """The non-private algorithm behind SDPPE: the same elimination, for exact counts.

    Qiao, Yin, Min, Wang: Sample-Efficient Reinforcement Learning with loglog(T) Switching Cost, 2022. Its stages are
    SDPPE's, so that both can be compared; stage k of that paper has about K^(1 - 2^-k) users.
    """

    private = False

"""The pipeline behind a boundary: proposed when the boundary is built, and bound once.

* ``Proposal`` - a pipeline before anything is drawn or allocated
* ``Bound`` - a pipeline that users may come to
* ``Pipeline`` - the one that stays, and what is stated about it
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from private_rl_gym.planning.arrays import flag, positive_integer, shown
from private_rl_gym.planning.features import LinearFeatures
from private_rl_gym.planning.network import Layers
from private_rl_gym.planning.polynomials import Polynomials
from private_rl_gym.privacy.accounting.guarantee import Guarantee
from private_rl_gym.privacy.accounting.ledger import Ledger
from private_rl_gym.privacy.aggregator import Aggregator, Observer
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.protocols import Protocol, ProtocolPlan
from private_rl_gym.privacy.randomizers.base import UserSide
from private_rl_gym.privacy.release import Published
from private_rl_gym.privacy.requests import Request
from private_rl_gym.privacy.statistics import Statistic
from private_rl_gym.wrappers import memory
from private_rl_gym.wrappers.arguments import CommonOptions
from private_rl_gym.wrappers.options import about_networks
from private_rl_gym.wrappers.sources import Source

__all__ = ["Bound", "Pipeline", "Proposal"]


@dataclass(frozen=True, eq=False)
class Proposal:
    """A pipeline before anything is drawn or allocated, proposed for a statistic.

    Attributes:
        source: Where users come from.
        side: What they send.
        plan: What the protocol will do.
        inner: The proposal of the boundary inside.
    """

    source: Source
    side: UserSide
    plan: ProtocolPlan
    inner: Proposal | None


@dataclass(frozen=True, eq=False)
class Bound(Proposal):
    """A pipeline that users may come to.

    It is a proposal, its protocol, and the sums of users' messages.
    """

    protocol: Protocol
    sums: Aggregator

    @property
    def batch(self) -> Published:
        """The release of the newest batch alone, where batches are published apart."""
        if not self.plan.apart:
            raise ValueError(
                f"This boundary publishes no batch by itself, but all users so far. {self.protocol.more_releases}"
            )
        return self.sums.batch

    def expected_noise(self, users: int, request: Request | None) -> float:
        """Return the standard deviation of the noise in an entry without users.

        It is for a batch with this request.
        """
        users, statistic = positive_integer(users, "users", "users in a batch"), self.side.statistic
        added = self.protocol.batch_error(users, self.side.load(statistic.checked(request)))
        return statistic.errors(self.side.error(users, added), users)[statistic.headline].unvisited_std


class Pipeline:
    """The pipeline behind a boundary.

    Args:
        name: The class of the boundary.
        protocol, settings: The protocol that publishes sums, and its options.
        options: The options of the boundary.
        propose: Returns the proposal for a value of ``statistic=``; for None, the usual one.
        stated: Returns what holds before a statistic is chosen.
        opened: Takes note of a pipeline that was just bound.
        lock: The lock of the boundary.
        inner: The pipeline of the boundary inside.

    Attributes:
        proposal: The pipeline as it is proposed now.
        bound: The pipeline that users come to; None until it is first needed.
        fixed: Whether an agent or a user has come, so that the pipeline stays.
        request: The request to users who come next. It lives with the statistic that it is checked for.
        half_loaded: Whether a saved state began to be restored, and is not whole yet.
        observers: Auditors.
    """

    def __init__(
        self,
        name: str,
        protocol: type[Protocol],
        settings: Any,
        options: CommonOptions,
        propose: Callable[..., Proposal],
        stated: Callable[[], Guarantee],
        opened: Callable[[Bound], None],
        lock: AbstractContextManager[Any],
        inner: Pipeline | None,
    ) -> None:
        self.name, self.protocol, self.settings, self.options = name, protocol, settings, options
        self._propose, self._stated, self._opened, self._lock, self._inner = propose, stated, opened, lock, inner
        self.bound: Bound | None = None
        self.request: Request | None = None
        self.fixed = self.half_loaded = False
        self.observers: list[Observer] = []
        self.proposal = propose(options.statistic, apart=False)

    # Binding ----------------------------------------------------------------------------------------------------------

    def chosen(self, statistic: Any) -> Any:
        """Return the value of ``statistic=`` that was given here, or this one.

        This one counts where the value was left open.
        """
        given = self.options.statistic
        named = about_networks(statistic)
        return (
            statistic if given is None or (named is not None and isinstance(given, str) and given == named) else given
        )

    def bind(self, statistic: Any, *, apart: bool) -> None:
        """Choose the options that were left open, and keep the pipeline."""
        if not isinstance(statistic, str | Layers | Polynomials | LinearFeatures):
            raise TypeError(f"statistic is {shown(statistic)}: give a name, such as 'tabular', Layers or Polynomials.")
        apart = flag(apart, "apart")
        if not self.fixed:
            # A mechanism for a statistic that was given is stated already: another one could cost more.
            statistic, apart = self.chosen(statistic), apart and self.open()
            changed = not self._proposes(statistic, apart=apart)
            proposal = self._propose(statistic, apart=apart) if changed else self.proposal
            self.check_memory(proposal)
            if changed:
                self.request, self.bound, self.proposal = None, None, proposal
        self.fix()  # also where an interrupt has divided it before
        self.made()

    def _proposes(self, statistic: Any, *, apart: bool) -> bool:
        """Return whether the proposed pipeline is the one for this value of ``statistic=``.

        It then stays, with all that was set for it: the users who were invited, a request, the size of a batch.
        """
        within = self if self._inner is None else self._inner
        chosen, given, there = within.chosen(statistic), within.options.statistic, self.proposal.side.statistic
        if (named := about_networks(chosen)) is not None:
            same = there.name == named and (isinstance(chosen, str) or chosen == there.choice)
        else:
            same = chosen is given or (isinstance(chosen, str) and chosen == self.proposal.side.statistic.name)
        return same and (self.proposal.plan.apart or not apart)

    def fix(self) -> None:
        """Keep the pipeline from now on, also in the boundary inside."""
        self.fixed = True
        if self._inner is not None:
            assert self.proposal.inner is not None  # noqa: S101 - it was proposed with this one
            self._inner.proposal, self._inner.fixed = self.proposal.inner, True

    def made(self) -> Bound:
        """Return the bound pipeline, which is made when it is first needed."""
        if self.half_loaded:
            raise RuntimeError(
                "load_state was interrupted while it restored a state, so that noise and sums may not belong together: "
                "nothing is published here. Build the boundary anew, with a budget of its own: the state is spent."
            )
        with self._lock:  # two threads would make two of them, and users of one would be missing in the other
            if self.bound is None:
                source, side, plan = self.proposal.source, self.proposal.side, self.proposal.plan
                self.check_memory(self.proposal)
                protocol = self.protocol(side, self.settings, plan)
                waiting = source.rewards.zero if source.padded else 0.0
                users, schedule = self.options.users, self.options.schedule
                sums = Aggregator(side, protocol, users, schedule, source.absorbing, waiting)
                sums.observers = self.observers
                self.bound = Bound(source, side, plan, self.proposal.inner, protocol, sums)
                self._opened(self.bound)
            return self.bound

    def check_memory(self, proposal: Proposal) -> None:
        """Raise MemoryError if a pipeline does not fit.

        It is checked before anything is bound or allocated.
        """
        memory.check(self.name, proposal.source, proposal.side, proposal.plan)

    # Public facts -----------------------------------------------------------------------------------------------------

    def open(self) -> bool:
        """Return whether an agent may still choose the statistic."""
        given = self.options.statistic
        named = given is None or (isinstance(given, str) and given in ("gradient", "dynamics"))  # an agent has the rest
        return named and not self.fixed

    def noise(self) -> dict[str, NoiseSource]:
        """Return the sources of the noise that the guarantee rests on, by role."""
        return self.protocol.sources(self.proposal.side, self.settings)

    def sources(self) -> dict[str, NoiseSource]:
        """Return the sources of all random numbers here and on the users' side.

        They are named by role.
        """
        side = self.proposal.side
        return {**({"users' side": side.source} if side.chooses else {}), **self.noise()}

    def secure(self) -> bool:
        """Return whether a cryptographic generator draws all noise behind the guarantee."""
        noise = self.noise().values()
        return bool(noise) and all(source.secure for source in noise)

    def guarantee(self) -> Guarantee:
        """Return the guarantee to every user.

        While an agent may choose the statistic, it holds for any choice.
        """
        guarantee, noise = self.proposal.plan.guarantee, self.noise()
        if self.open():
            mechanism = f"{guarantee.mechanism}, unless an agent needs other sums"
            guarantee = replace(self._stated(), mechanism=mechanism)
        if math.isfinite(guarantee.epsilon) and not noise:
            raise TypeError(
                f"{self.name} guarantees epsilon = {guarantee.epsilon:g}, and names no source of noise: its protocol's "
                "sources() must return the NoiseSource of all noise that this guarantee rests on."
            )
        return replace(guarantee, seeded=any(source.seeded for source in noise.values()))

    def ledger(self) -> Ledger:
        """Return the guarantees of all boundaries up to this one, from inside out."""
        inner = () if self._inner is None else self._inner.ledger().entries
        return Ledger((*inner, self.guarantee()))

    def planned_batches(self) -> int | None:
        """Return the number of batches of all users; None for any number of users.

        It is the number if no batch is closed early.
        """
        return None if self.options.users is None else self.options.schedule.batches(self.options.users)

    def stationary(self) -> bool:
        """Return whether this boundary, or the one inside, assumes a time-homogeneous problem."""
        return self.options.stationary or (self._inner is not None and self._inner.stationary())

    def source(self) -> Source:
        """Return the source of users, with their sizes."""
        return self.proposal.source

    def network(self) -> Any:
        """Return the network that users run; None unless gradients are summed."""
        return self.proposal.source.network

    def sizes(self) -> tuple[int, int, int]:
        """Return horizon, number of states and number of actions of a release.

        Padding adds a state.
        """
        source = self.proposal.source
        return source.horizon, source.n_states, source.n_actions

    def statistic(self) -> Statistic:
        """Return the statistic that users contribute."""
        return self.proposal.side.statistic

    def loads(self) -> int:
        """Return the largest load of a request to a user.

        It is 1 where users send one message.
        """
        return self.proposal.side.loads

    def apart(self) -> bool:
        """Return whether every batch is published by itself.

        Otherwise releases are of all users so far.
        """
        return self.proposal.plan.apart

    def least_batch(self) -> int:
        """Return the smallest number of users whose sums are ever published together.

        The number is public.
        """
        return self.proposal.plan.least

    def closes_early(self) -> bool:
        """Return whether ``publish`` may end any batch at no cost.

        Then neither other releases nor other reports protect the batch.
        """
        return self.proposal.plan.apart and not self.protocol.hides_among

    def memory(self) -> int:
        """Return an estimate of the bytes that sums, noise and a release take.

        They are taken while users come. The estimate is made before anything is allocated.
        """
        return memory.needed(self.proposal.side, self.proposal.plan)

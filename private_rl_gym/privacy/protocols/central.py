"""Noise on sums by a trusted curator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.privacy.accounting.calibration import calibrate, choose_mechanism
from private_rl_gym.privacy.accounting.guarantee import Guarantee, TrustModel
from private_rl_gym.privacy.errors import CellError, sum_of_errors
from private_rl_gym.privacy.mechanisms import Mechanism
from private_rl_gym.privacy.mechanisms.base import Law
from private_rl_gym.privacy.mechanisms.printed import printed
from private_rl_gym.privacy.mechanisms.running import RunningMechanism
from private_rl_gym.privacy.noise import Noises, NoiseSource
from private_rl_gym.privacy.protocols.base import ClosedBatch, Options, Protocol, ProtocolPlan
from private_rl_gym.privacy.randomizers.base import UserSide
from private_rl_gym.privacy.statistics.base import check_scale

__all__ = ["Central", "CentralOptions"]


@dataclass(frozen=True, kw_only=True)
class CentralOptions(Options):
    """The options of a trusted curator.

    Attributes:
        epsilon, delta: The budget.
        counting: The mechanism; None for the most accurate.
        noise: The law of its noise; None for the most accurate.
        printed: Whether the papers' printed constants are taken.
        notes: Remarks in the ledger.
        source: The source of the noise.
    """

    epsilon: float
    delta: float
    counting: str | type[Mechanism] | None
    noise: str | None
    printed: bool
    notes: tuple[str, ...]
    source: NoiseSource

    @property
    def releases(self) -> int:
        """The number of releases that noise is calibrated for."""
        assert self.users is not None  # noqa: S101 - the constructor requires them
        return self.schedule.planned(self.users)


class Calibrated(NamedTuple):
    """A mechanism for a load, and the scale of its noise.

    Attributes:
        mechanism: The counting mechanism.
        law: The law of its noise.
        scale: Scale of one standard noise, in real units.
        epsilon, delta: What it costs.
        small: The mechanism for one cell.
    """

    mechanism: type[Mechanism]
    law: Law
    scale: float
    epsilon: float
    delta: float
    small: Mechanism


class Central(Protocol):
    """Noise on sums, calibrated to the load of the users' request.

    Each load gets the same budget.
    """

    more_releases = "Build it with counting='batched', or, to publish() more often, with more releases in schedule=."

    noise_class: ClassVar[type[RunningMechanism]] = RunningMechanism
    """The class of the noise; protocols that are broken on purpose replace it."""

    options: CentralOptions

    @classmethod
    def stated(cls, options: CentralOptions) -> Guarantee:
        """Return the budget, which every mechanism keeps."""
        described = f"sums with noise, a release {options.schedule.described}"
        return Guarantee(
            TrustModel.JDP,
            options.epsilon,
            options.delta,
            options.users,
            described,
            options.neighbours,
            notes=options.notes,
            visits=options.visits,
        )

    @classmethod
    def calibrated(cls, side: UserSide, options: CentralOptions, load: int, *, apart: bool) -> Calibrated:
        """Return the mechanism for a load, and its scale."""
        known, releases = side.sensitivity(load, options.neighbours), options.releases
        if not known.bounded:
            raise ValueError(
                "The messages of this randomizer are unbounded, so that noise on their sums gives no guarantee. Use "
                "the LDPUserSide alone, whose guarantee is stronger, or the JDPBillboard without it."
            )
        budget = options.epsilon, options.delta
        if options.printed:
            kind, law, scale, *spent = printed(
                options.counting, options.noise, side.statistic, known, releases, *budget
            )
            small = kind(releases, 1, law)
        else:
            kind, law = choose_mechanism(
                options.counting, options.noise, known, releases, *budget, apart=apart, visits=options.visits
            )
            small = kind(releases, 1, law)
            scale, *spent = calibrate(small, known, *budget, visits=options.visits)
        check_scale(scale, known.units[0])
        return Calibrated(kind, law, scale, spent[0], spent[1], small)

    @classmethod
    def for_load(cls, side: UserSide, options: CentralOptions, load: int, first: Calibrated) -> Calibrated:
        """Return the most accurate mechanism for a larger load than the first one.

        Where a user may be in several batches, all of them have the law of the smallest load, and compose as its
        batches do. Proof: docs/proofs/returning.md.
        """
        if options.visits == 1:
            return cls.calibrated(side, options, load, apart=True)
        if first.law == "laplace":
            l1, least = (side.sensitivity(one, options.neighbours).l1 for one in (load, 1))
            return first._replace(scale=first.scale * l1 / least)
        return cls.calibrated(side, replace(options, counting=first.mechanism, noise=first.law), load, apart=True)

    @classmethod
    def planned(cls, side: UserSide, options: CentralOptions, *, apart: bool) -> ProtocolPlan:
        """Return the mechanism for the smallest load, with the guarantee for all loads."""
        if side.statistic.one_batch:
            if options.counting not in (None, "batched") and not (
                isinstance(options.counting, type) and options.counting.apart
            ):
                raise ValueError(
                    f"counting is {options.counting!r}: requests differ between batches, so that each batch is "
                    "published by itself, with counting='batched'. Leave counting out."
                )
            apart = True
        chosen = cls.calibrated(side, options, 1, apart=apart)
        differs = side.loads > 1 and options.visits == 1
        # Batches of larger loads may cost the whole budget, by another law.
        epsilon, delta = (options.epsilon, options.delta) if differs else (chosen.epsilon, chosen.delta)
        described = "the most accurate" if differs else chosen.law
        small, mu = chosen.small, None
        if chosen.law == "gaussian" and not differs:
            mu = side.sensitivity(1, options.neighbours).l2 * small.returning(options.visits) / chosen.scale
        stated = cls.stated(options)
        note = (f"calibration='paper', printed as epsilon = {options.epsilon:g}",) if options.printed else ()
        guarantee = replace(
            stated,
            notes=(*note, *stated.notes),
            epsilon=epsilon,
            delta=delta,
            mechanism=f"{chosen.mechanism.name} sums of {side.statistic.title} with {described} noise, "
            f"a release {options.schedule.described}",
            mu=mu,
        )
        return ProtocolPlan(
            guarantee,
            apart=small.apart,
            releases=None if small.apart else options.releases,
            arrays=2 + small.held,
            terms={
                "mechanism": [chosen.mechanism.name, chosen.law],
                "scale of noise": chosen.scale,
                "number of releases": options.releases,
            },
            chosen=chosen,
        )

    def __init__(self, side: UserSide, options: CentralOptions, plan: ProtocolPlan) -> None:
        super().__init__(side, options, plan)
        self._noises: dict[int, RunningMechanism] = {1: self.made(plan.chosen)}
        self._by_load = np.zeros(side.loads if side.loads > 1 else 0, dtype=np.int64)  # batches of each load

    def made(self, chosen: Calibrated) -> RunningMechanism:
        """Return the noise of a calibrated mechanism.

        Protocols that are broken on purpose override this.
        """
        mechanism = chosen.mechanism(self.options.releases, self.side.statistic.cells, chosen.law)
        return self.noise_class(mechanism, chosen.scale, self.side.statistic.grid, self.options.source)

    def noise_for(self, load: int) -> RunningMechanism:
        """Return the noise of a batch of this load."""
        load = load if len(self._by_load) else 1
        if load not in self._noises:
            self._noises[load] = self.made(self.for_load(self.side, self.options, load, self.plan.chosen))
        return self._noises[load]

    def check(self) -> None:
        """Raise RuntimeError if noise that later releases build on was interrupted."""
        self._noises[1].check()

    def publish(self, sums: NDArray[np.int64], batch: ClosedBatch, releases: int) -> NDArray[np.float64]:
        """Return the sums with noise in every cell, visited or not."""
        if len(self._by_load):
            self._by_load[batch.load - 1] += releases
        return self.noise_for(batch.load).add(sums, releases)

    def error(self, releases: int, load: int, *, newest: bool) -> CellError:
        """Return the error of a cell."""
        if newest or not len(self._by_load):
            return self.noise_for(load).error(releases)
        batches = enumerate(self._by_load, start=1)
        return sum_of_errors([self.noise_for(load).error(int(count)) for load, count in batches if count])

    def batch_error(self, users: int, load: int) -> CellError:
        """Return the error of a batch of this load.

        Where batches are not apart, it is that of the first release.
        """
        return self.noise_for(load).error(1)

    def noises(self, batches: Sequence[int], load: int) -> Noises:
        """Return the noise in releases after these batches, for audits.

        It is computed by running the code that draws it.
        """
        return self.noise_for(load).noises(len(batches))

    @classmethod
    def sources(cls, side: UserSide, options: CentralOptions) -> dict[str, NoiseSource]:
        """Return the source of the noise on sums.

        The guarantee does not rest on the noise of users inside.
        """
        return {"billboard": options.source}

    def numbers(self) -> dict[str, int]:
        """Return the step of the mechanism."""
        return {"step": self._noises[1].mechanism.step}

    def restore(self, numbers: Mapping[str, int]) -> None:
        """Continue from saved numbers."""
        self._noises[1].mechanism.step = numbers["step"]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the noise that later releases build on.

        The number of batches of each load comes with it, where loads differ.
        """
        noise = {f"noise.{name}": array for name, array in self._noises[1].arrays().items()}
        return noise | ({"batches_by_load": self._by_load} if len(self._by_load) else {})

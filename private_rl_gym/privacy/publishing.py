"""Sums over users, batch by batch, and what is published of them.

* ``PublicSums`` - who has left, what they contributed, and the newest release
* ``CentralNoise`` - the noise that a billboard adds to sums, release after release
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import read_only
from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.calibration import noise_law
from private_rl_gym.privacy.counting import Batched, ContinualNoise
from private_rl_gym.privacy.errors import NoError
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.release import Published
from private_rl_gym.privacy.statistics import Noise, Statistic, check_scale

__all__ = ["CentralNoise", "PublicSums"]


class CentralNoise:
    """Noise on sums, drawn for every cell at every release, whether or not anyone was there.

    Args:
        counting: How the noise of one release follows from that of others.
        scale: Of one standard noise, in real units: what it is calibrated to.
        grid: ``[cell]``, the unit of each entry.
        source: Where it is drawn from.
    """

    def __init__(self, counting: ContinualNoise, scale: float, grid: NDArray[np.float64], source: NoiseSource) -> None:
        check_scale(scale, float(grid.min()))
        self.counting, self.scale, self.grid, self.source = counting, scale, grid, source
        self._units = scale / grid
        self._whole = True

    def check(self) -> None:
        """Refuse to go on from noise that was interrupted while it was drawn: later releases build on it."""
        if not self._whole:
            raise RuntimeError(
                "Privacy noise was interrupted while it was drawn, and later noise builds on it: nothing more is "
                "published here. What was published keeps its promise. Build the boundary anew, with a budget of its "
                "own."
            )

    def add(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        """The sums in real units, with the noise of the last of so many further releases."""
        if not isinstance(self.counting, Batched) and self.counting.step + releases > self.counting.steps:
            raise RuntimeError(f"Noise is calibrated for {self.counting.steps} releases: nothing more is published.")
        self.check()
        self._whole = False
        for _ in range(releases):
            noise = self.counting.advance(self.source, self._units)
        out = np.empty(len(sums))
        _add_noise(sums, noise, self._units, self.counting.law == "gaussian", self.grid, out)
        self._whole = True
        return out

    def law(self) -> Noise:
        """The error of one entry of the newest release, given the entry's grid."""
        if self.counting.step == 0:
            return _exact
        return noise_law(self.counting, self.scale, self.counting.step)


class PublicSums:
    """What users contributed, kept exactly, and what is published of it.

    Args:
        statistic: What a user contributes.
        users: The number of users that may come; None for any number.
        publish_every: Users in a batch. The last batch may be smaller.
        user_source: Where users who noise their own reports draw from.
        noise: What a billboard adds; None publishes the sums as they are.
        absorbing: The state in which episodes wait that ended early, if they may.
    """

    def __init__(
        self,
        statistic: Statistic,
        *,
        users: int | None,
        publish_every: int,
        user_source: NoiseSource | None = None,
        noise: CentralNoise | None = None,
        absorbing: int | None = None,
    ) -> None:
        self.absorbing = absorbing
        self.statistic, self.users, self.publish_every = statistic, users, publish_every
        self.user_source, self.noise = user_source, noise
        self.gone = 0  # users who have left, and whose contributions are in the sums
        self.pending = 0  # of them, since the last release
        self.version = 0
        self._sums = np.zeros(statistic.cells, dtype=np.int64)
        self.release = self.restored(statistic.sums(np.zeros(statistic.cells), 0), 0)

    def receive(self, users: Trajectories | None, count: int) -> None:
        """Users leave; without trajectories, before their time.

        Where several releases fall due at once, noise is spent on each, and the newest is made.
        """
        if self.users is not None and self.gone + count > self.users:
            raise RuntimeError(f"Sums are calibrated for {self.users} users: nobody else is let in.")
        if self.noise is not None:
            self.noise.check()
        due, rest = divmod(self.pending + count, self.publish_every)
        if rest and self.gone + count == self.users:  # the last batch may be smaller
            due, rest = due + 1, 0
        before = count - rest if due else count
        self._take(users, 0, before)
        if due:
            self._publish(due)
            self._take(users, before, count)

    def _take(self, users: Trajectories | None, start: int, stop: int) -> None:
        """Contributions first: who is interrupted on the way has not left yet, and leaves with nothing."""
        self._collect(users, start, stop)
        self.gone += stop - start
        self.pending += stop - start

    def publish(self) -> None:
        """End the current batch now, if anyone is in it."""
        if not self.pending:
            return
        noise = self.noise
        if noise is not None and not isinstance(noise.counting, Batched) and self.users is not None:
            later = -(-(self.users - self.gone) // self.publish_every)
            if noise.counting.step + 1 + later > noise.counting.steps:
                raise ValueError(
                    "publish() now would use a release that later users need: noise is calibrated for "
                    f"{noise.counting.steps}. Build the boundary with releases= larger than that, or with "
                    "counting='batched'."
                )
        self._publish(1)

    def _collect(self, users: Trajectories | None, start: int, stop: int) -> None:
        if start == stop:
            return
        if users is None:
            self.statistic.absent(stop - start, self._sums, self.user_source)
        else:
            self.statistic.collect(users.part(start, stop), self._sums, self.user_source)

    def _publish(self, times: int) -> None:
        """Publish so many times, the last time with all users who have left."""
        plain = self.noise is None
        vector = self._sums * self.statistic.grid if plain else self.noise.add(self._sums, times)  # type: ignore[union-attr]
        read_only(vector)
        self.version += times
        self.pending = 0
        self.release = self.restored(self.statistic.sums(vector, self.gone), self.gone)

    def restored(self, sums: Mapping[str, NDArray[np.float64]], users: int) -> Published:
        """A release of these sums, with the errors that hold where the noise stands."""
        entries = sum(read_only(array).size for array in sums.values())
        return self.statistic.release(
            sums,
            version=self.version,
            users=users,
            errors=self.statistic.errors(self._law(), users),
            events=entries * self._releases(),
            absorbing=self.absorbing,
        )

    def _law(self) -> Noise:
        """The error of one entry that comes from noise on sums, given the entry's grid."""
        return _exact if self.noise is None else self.noise.law()

    @property
    def users_to_release(self) -> int:
        """How many more users it takes until something new is published."""
        return self.publish_every - self.pending

    @property
    def closes_early(self) -> bool:
        """Whether a batch may be ended at any time."""
        return self.noise is None or isinstance(self.noise.counting, Batched)

    def _releases(self) -> int:
        """How many releases an error bound has to hold for; v (v + 1) for the v-th of an endless series."""
        if self.users is None:
            return max(1, self.version * (self.version + 1))
        if self.noise is None or isinstance(self.noise.counting, Batched):
            return self.users  # publish() may end a batch after every one of them
        return self.noise.counting.steps

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays that change, to be saved and restored in place. Secret."""
        found = {"sums": self._sums, **{f"statistic.{k}": v for k, v in self.statistic.arrays().items()}}
        if self.noise is not None:
            found |= {f"noise.{k}": v for k, v in self.noise.counting.arrays().items()}
        return found

    def sources(self) -> dict[str, NoiseSource]:
        """Noise sources whose position has to be saved."""
        found = {} if self.user_source is None else {"users": self.user_source}
        return found if self.noise is None else {**found, "billboard": self.noise.source}


def _exact(_grid: float) -> NoError:
    return NoError()


@compiled
def _add_noise(sums: Any, noise: Any, units: Any, gaussian: bool, grid: Any, out: Any) -> None:
    """Sums and noise on the grid, in real units. Gaussian noise is in standard units, and rounded here."""
    for cell in range(len(sums)):
        shift = noise[cell] * units[cell] if gaussian else noise[cell]
        out[cell] = (sums[cell] + np.floor(shift + 0.5)) * grid[cell]

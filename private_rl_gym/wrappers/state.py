"""The state of a boundary, saved as a whole: see :mod:`private_rl_gym.wrappers.checkpoint`."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from private_rl_gym.wrappers import checkpoint
from private_rl_gym.wrappers.pipeline import Pipeline

if TYPE_CHECKING:
    from private_rl_gym.wrappers.admission import Admission

__all__ = ["State"]


class State:
    """The state of a boundary, saved as a whole and continued once.

    Args:
        pipeline: Its noise and sums.

    Attributes:
        identity: A unique name. It is kept in saved states.
        saved: A state on disk that has not been continued yet.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self.identity = uuid.uuid4().hex
        self.saved: checkpoint.Saved | None = None

    def save(self, path: str | os.PathLike[str], key: bytes | None, admission: Admission) -> None:
        """Save everything that is needed to continue after a restart."""
        bound = self._pipeline.made()
        if admission.user is not None:
            raise ValueError("A user is in the middle of their episode: finish it, then save.")
        bound.protocol.check()
        self._pipeline.fix()
        checkpoint.write(path, self._state(admission), self._arrays(admission), key, self._replace)

    def load(self, path: str | os.PathLike[str], key: bytes | None, admission: Admission) -> None:
        """Continue from a saved state."""
        if admission.arrived:
            raise ValueError("This boundary has users already: load the state into a new one.")
        loaded = checkpoint.read(path, key)
        self._pipeline.made()
        self._pipeline.fix()
        loaded.check_terms(self._terms())
        loaded.into(self._state(admission), self._arrays(admission), partial(self._restore, admission))

    def _replace(self, saved: checkpoint.Saved) -> None:
        """Spend an older state of the same moment, and record the new one.

        This happens before the new state is in place.
        """
        self.touch()
        self.saved = saved

    def touch(self) -> None:
        """Spend the state that was saved last, before anything changes.

        There may be none.
        """
        if self.saved is not None:
            self.saved.spend()
            self.saved = None  # only now: if spending is refused, so is continuing

    def _terms(self) -> dict[str, Any]:
        """Return everything that has to stay the same when a state is continued.

        It is compared between the saved state and the boundary that continues it.
        """
        pipeline = self._pipeline
        guarantees = [
            {key: value for key, value in entry.to_dict().items() if key not in ("notes", "seeded")}
            for entry in pipeline.ledger().entries
        ]
        source, schedule = pipeline.proposal.source, pipeline.options.schedule
        return {
            "kind of boundary": pipeline.name,
            "guarantee": guarantees,
            "statistic": pipeline.proposal.side.statistic.label,
            "sizes": [source.horizon, source.n_states, source.n_actions],
            "batch_size": schedule.batch_size,
            "growth": schedule.growth,
            "number of users": pipeline.options.users,
            "kind of generator": {role: stream.secure for role, stream in pipeline.sources().items()},
            "environment": checkpoint.digest(source.model),
            "range of rewards": None if source.rewards.plain else str(source.rewards),
            **pipeline.proposal.plan.terms,
        }

    def _state(self, admission: Admission) -> dict[str, Any]:
        """Return the whole numbers, names and generator states of a state.

        They are needed to continue.
        """
        bound, sources = self._pipeline.made(), self._pipeline.sources()
        return {
            "terms": self._terms(),
            "boundary": self.identity,
            "arrived": admission.arrived,
            "counters": bound.sums.numbers(),
            "noise": bound.protocol.numbers(),
            "seeded": {role: source.seeded for role, source in sources.items()},
            "sources": {role: source.state() for role, source in sources.items()},
            "users": bound.source.env.unwrapped.np_random.bit_generator.state,
        }

    def _arrays(self, admission: Admission) -> dict[str, NDArray[Any]]:
        """Return the arrays that are needed to continue."""
        bound, request = self._pipeline.made(), self._pipeline.request
        asked, came = {} if request is None else request.arrays(), admission.visits.arrays()
        return {
            **bound.sums.arrays(),
            **bound.protocol.arrays(),
            **{f"{checkpoint.REQUEST}{name}": array for name, array in asked.items()},
            **{f"{checkpoint.CAME}{name}": array for name, array in came.items()},
        }

    def _restore(self, admission: Admission, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a state that was checked.

        If that is interrupted, nothing is usable.
        """
        bound, self._pipeline.half_loaded, self._pipeline.bound = self._pipeline.made(), True, None
        pipeline = self._pipeline
        for role, source in pipeline.sources().items():
            source.restore(state["sources"][role])
            source.seeded = state["seeded"][role]
        for name, array in bound.protocol.arrays().items():
            array[...] = arrays[name]
        bound.protocol.restore(state["noise"])
        bound.sums.restore(state["counters"], arrays)
        admission.arrived, self.identity = state["arrived"], state["boundary"]
        bound.source.env.unwrapped.np_random.bit_generator.state = state["users"]
        asked, came = (
            {name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)}
            for prefix in checkpoint.OPTIONAL
        )
        admission.visits.restore(came)
        statistic = bound.side.statistic
        if asked and statistic.request_type is not None:
            pipeline.request = statistic.checked(statistic.request_type.of(asked))
        pipeline.bound, pipeline.half_loaded = bound, False

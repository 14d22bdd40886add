"""Up to which moment a table's views are known to be complete.

Under steady load a topic always has one more record. So the topic's end is recorded again and
again, and a view is complete up to the latest such moment whose records it all has. A table that is
behind when its driver starts has none of them; then the moment comes from the driver before, or
from the times of the records that the table hasn't read yet.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from lakesplice.model.manifest import Manifest
from lakesplice.model.moments import EpochSeconds, epoch_seconds
from lakesplice.model.offsets import Offset, Offsets
from lakesplice.table.protocol.offsets import view_floor

_SIGHTINGS_MAX = 64


@dataclass(frozen=True, slots=True)
class Freshness:
    """Per view the moment up to which it certainly has every change; None if that isn't known."""

    real_time: EpochSeconds | None
    read_optimised: EpochSeconds | None


def least_fresh(topics: Sequence[Freshness]) -> Freshness:
    """Return how fresh a table is, from the freshness of each of its topics (at least one)."""
    return Freshness(
        _least([fresh.real_time for fresh in topics]),
        _least([fresh.read_optimised for fresh in topics]),
    )


def _least(moments: Sequence[EpochSeconds | None]) -> EpochSeconds | None:
    known = [moment for moment in moments if moment is not None]
    return min(known) if len(known) == len(moments) else None


class TopicProgress:
    """How far one topic reached, and when. Safe from any thread."""

    def __init__(self) -> None:
        self._seen: list[tuple[EpochSeconds, dict[int, Offset]]] = []
        self._known: tuple[EpochSeconds, dict[int, Offset]] | None = None
        self._lock = threading.Lock()

    def add(self, ends: Offsets, moment: EpochSeconds) -> None:
        """Record that at `moment` the topic's partitions ended at `ends`.

        If there are many, every other one is forgotten: the table is then reported as less fresh
        than it is, never as fresher.
        """
        with self._lock:
            if self._seen and self._seen[-1][1] == ends:
                self._seen.pop()
            self._seen.append((moment, dict(ends)))
            if len(self._seen) > _SIGHTINGS_MAX:
                self._seen = [*self._seen[:-1:2], self._seen[-1]]

    def note_complete(self, moment: EpochSeconds, offsets: Offsets) -> None:
        """Record that a view with these next offsets, or later ones, is complete up to `moment`."""
        with self._lock:
            self._known = moment, dict(offsets)

    def complete_up_to(self, offsets: Offsets) -> EpochSeconds | None:
        """Return the last recorded moment at which no partition ended beyond its next offset."""
        with self._lock:
            known = [] if self._known is None else [self._known]
            held = (moment for moment, ends in (*known, *self._seen) if _are_read(ends, offsets))
            return max(held, default=None)

    def freshness(
        self, manifest: Manifest, offsets: Offsets, topic: str | None = None
    ) -> Freshness:
        """Return how fresh a table with this `manifest` is, given its next offsets in the topic; by
        default its only topic.

        Deltas from before the first record of the topic's end are judged by the time of their
        commit.
        """
        real_time = self.complete_up_to(offsets)
        deltas = manifest.deltas if topic is None else manifest.deltas_of(topic)
        if not deltas:
            return Freshness(real_time, real_time)
        held = self.complete_up_to({**offsets, **view_floor(manifest, topic)})
        oldest = epoch_seconds(min(delta.committed_ms for delta in deltas))
        return Freshness(real_time, oldest if held is None else held)


def _are_read(ends: Offsets, offsets: Offsets) -> bool:
    return all(end <= offsets.get(partition, 0) for partition, end in ends.items())

"""Decides whether a lake has all changes of a table up to a place in its source's binlog.

Otherwise a row may differ only because its change hasn't arrived. The lake has all changes if it
has everything that the connector sent before it passed the place. Either of these proves it:

1. Each partition of the table's topic has a change from beyond the place. 2. Another topic of the
same connector has such a change, and after the commit of that change the driver saw that the table
has all records of its own topic. The connector sends changes in the binlog's order; both times are
from the driver's clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lakesplice.apps.lake import table_names
from lakesplice.errors import LakespliceError
from lakesplice.model.manifest import Manifest
from lakesplice.model.names import TableName
from lakesplice.model.position import BEFORE_ALL, Ordering, Position
from lakesplice.model.progress.source_state import SourceState
from lakesplice.storage.source.binlog_places import BinlogPlace
from lakesplice.storage.stores import AnyStore
from lakesplice.table.driver.status import newest_status
from lakesplice.table.protocol.ports import Clock, Store
from lakesplice.table.protocol.snapshot import open_snapshot

_POLL_SECONDS = 1.0


def epoch_of(state: SourceState) -> int:
    """Return the newest epoch of a source's positions."""
    return max((epoch.number for epoch in state.epochs), default=0)


def stands_beyond(state: SourceState, place: BinlogPlace) -> bool:
    """Return whether any partition has a change from beyond a place."""
    wanted = place.position(epoch_of(state))
    return any(at.position > wanted for at in state.partitions.values())


def all_stand_beyond(state: SourceState, place: BinlogPlace) -> bool:
    """Return whether each partition has a change from beyond a place."""
    wanted = place.position(epoch_of(state))
    return bool(state.partitions) and all(at.position > wanted for at in state.partitions.values())


def newest_position(state: SourceState) -> Position:
    """Return the position of a source's newest change."""
    return max((at.position for at in state.partitions.values()), default=BEFORE_ALL)


@dataclass
class CatchUp:
    """Waits until a lake has everything that a connector sent before it passed a place. Not
    thread-safe.

    `table` is the one that is waited for, since a topic may feed a history table, too.
    """

    lake: AnyStore
    clock: Clock
    seconds_max: float
    table: TableName
    _seen_ms: dict[tuple[str, BinlogPlace], int] = field(default_factory=dict)

    def is_past(self, manifest: Manifest, topic: str, place: BinlogPlace) -> bool:
        """Return whether a table's manifest shows that it has all of a topic up to a place."""
        if all_stand_beyond(manifest.sources[topic], place):
            return True
        seen = self._committed_beyond(topic, place)
        if seen is None:
            return False
        status = newest_status(self.lake)
        topics = () if status is None else status.topics
        mine = topic, str(self.table)
        complete = [one.real_time_ms for one in topics if (one.topic, one.table) == mine]
        return any(moment is not None and moment > seen for moment in complete)

    def wait(self, table: Store, topic: str, place: BinlogPlace) -> bool:
        """Block until the table is past a place; return False if that takes too long."""
        until = self.clock.monotonic() + self.seconds_max
        while not self.is_past(open_snapshot(table).manifest, topic, place):
            if self.clock.monotonic() >= until:
                return False
            self.clock.wait(_POLL_SECONDS)
        return True

    def was_seen(self, topic: str, place: BinlogPlace) -> bool:
        """Return whether a table of the lake has a change of the topic's connector from beyond."""
        return self._committed_beyond(topic, place) is not None

    def _committed_beyond(self, topic: str, place: BinlogPlace) -> int | None:
        """Return when a change of the same connector from beyond a place was committed."""
        at = topic.partition(".")[0], place
        if at not in self._seen_ms:
            found = self._beyond(at[0], place)
            if found is None:
                return None
            self._seen_ms[at] = found
        return self._seen_ms[at]

    def _beyond(self, prefix: str, place: BinlogPlace) -> int | None:
        for name in table_names(self.lake):
            try:
                found = open_snapshot(self.lake.within(name.path))
            except LakespliceError:
                continue
            for topic, state in found.manifest.sources.items():
                of_binlog = state.ordering is Ordering.BINLOG
                if topic.startswith(f"{prefix}.") and of_binlog and stands_beyond(state, place):
                    return found.timestamp_ms
        return None

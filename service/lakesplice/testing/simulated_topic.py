"""A simulated topic: its records are in memory, without a broker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from lakesplice.model.offsets import Offset, Offsets
from lakesplice.testing.oracle import Record
from lakesplice.testing.shop import Event

_RECORDS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)


class SimulatedTopic:
    """A topic's partitions as a broker keeps them: offsets from 0; `forget` drops the first
    records, and `compact` some.
    """

    def __init__(self, name: str, partitions: int = 1, topic_id: str = "topic-1") -> None:
        self.name = name
        self.topic_id = topic_id
        self._logs: list[list[Event | None]] = [[] for _ in range(partitions)]
        self._firsts = [0] * partitions

    @property
    def ends(self) -> dict[int, Offset]:
        """For each partition the offset after its last one."""
        return {at: Offset(self._firsts[at] + len(log)) for at, log in enumerate(self._logs)}

    @property
    def starts(self) -> dict[int, Offset]:
        """For each partition its first offset that wasn't dropped."""
        return {at: Offset(first) for at, first in enumerate(self._firsts)}

    def add_partition(self) -> None:
        """Add a partition, so that a key's changes may come from two."""
        self._logs.append([])
        self._firsts.append(0)

    def append(self, partition: int, events: Iterable[Event]) -> None:
        """Append events to a partition."""
        self._logs[partition] += events

    def events(self, partition: int, start: int = 0) -> Sequence[Event]:
        """Return a partition's events from an offset on."""
        log = self._logs[partition][self._place(partition, start) :]
        return [event for event in log if event is not None]

    def forget(self, before: Offsets) -> None:
        """Drop events before these offsets, as a topic's retention does; reading them is an
        error.
        """
        for at, offset in before.items():
            del self._logs[at][: self._place(at, offset)]
            self._firsts[at] = offset

    def compact(self) -> None:
        """Remove the events whose key a later event of their partition has, as a broker's log
        compaction does; their offsets stay empty.
        """
        for log in self._logs:
            newest = {event.key: at for at, event in enumerate(log) if event}
            for at, event in enumerate(log):
                if event and event.key is not None and newest[event.key] != at:
                    log[at] = None

    def records(self) -> list[Record]:
        """Return all records, for the oracle."""
        return [
            Record(self.name, partition, offset, event.key, event.value)
            for partition, log in enumerate(self._logs)
            for offset, event in enumerate(log, self._firsts[partition])
            if event is not None
        ]

    def read(self, starts: Offsets, ends: Offsets) -> list[pa.RecordBatch]:
        """Return the records in these ranges as Spark's Kafka source does, one Arrow batch per
        range.
        """
        return [
            self._read(at, starts[at], ends[at]) for at in sorted(ends) if starts[at] < ends[at]
        ]

    def _place(self, partition: int, offset: int) -> int:
        """Where an offset is in the log, which must still have it, or end there."""
        first, end = self._firsts[partition], self.ends[partition]
        assert first <= offset <= end, f"{offset} of partition {partition} isn't in {first}-{end}"
        return offset - first

    def _read(self, partition: int, start: int, end: int) -> pa.RecordBatch:
        first, last = self._place(partition, start), self._place(partition, end)
        log = enumerate(self._logs[partition][first:last], start)
        kept = [(at, event) for at, event in log if event is not None]
        events = [event for _, event in kept]
        arrays = [
            pa.array([self.name] * len(events)),
            pa.array([partition] * len(events), pa.int32()),
            pa.array([at for at, _ in kept], pa.int64()),
            pa.array([event.timestamp_ms * 1000 for event in events], _RECORDS.field(3).type),
            pa.array([event.key for event in events], pa.binary()),
            pa.array([event.value for event in events], pa.binary()),
            pa.array([_headers(event) for event in events], _RECORDS.field("headers").type),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=_RECORDS)


def _headers(event: Event) -> list[dict[str, str | bytes | None]]:
    return [{"key": name, "value": value} for name, value in event.headers]

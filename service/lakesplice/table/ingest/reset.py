"""Reset: the table is emptied, and its topics are read again from their beginnings.

It works like a restore of the state before the table's first change. Older versions can be read
until they expire as usual, and writers that began before the reset have to write again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakesplice.errors import UsageError
from lakesplice.model.manifest import Manifest
from lakesplice.model.offsets import Offsets
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.table.protocol.intents import Restore
from lakesplice.table.protocol.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class TopicStart:
    """Where a topic is read from: its identity at the broker and an offset per partition; `shard`
    is the topic's shard of the table, by the configuration, if the table has several topics.
    `earliest` and `ends` are the first offset that each partition has, and the next one to come.
    """

    id: str
    offsets: Offsets
    shard: tuple[tuple[str, str], ...] = ()
    earliest: Offsets = field(default_factory=dict)
    ends: Offsets = field(default_factory=dict)


def plan_reset(snapshot: Snapshot, starts: Mapping[str, TopicStart], generation: int) -> Restore:
    """Return the intent that gives the table the state from before its first change.

    `starts` has every topic of the table. `UsageError` for a table that is fed by hand.
    """
    sources = snapshot.manifest.sources
    if not sources:
        raise UsageError("the table is fed by hand, so no topic can reload it")
    newborn = {
        topic: SourceState(
            topic,
            starts[topic].id,
            {at: PartitionState(offset) for at, offset in starts[topic].offsets.items()},
            shard=starts[topic].shard,
        )
        for topic in sources
    }
    manifest = Manifest(generation, sources=newborn)
    return Restore(generation, snapshot.version, None, manifest, {})

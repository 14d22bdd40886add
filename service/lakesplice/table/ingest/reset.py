"""Reset: a table that its topics feed is reloaded from their beginnings.

It is as a restore to what the table was before its first change: the versions before stay readable
as long as they would, and a writer that wrote meanwhile has to write again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakesplice.errors import UsageError
from lakesplice.model.manifest import Manifest, PartitionState, SourceState
from lakesplice.table.protocol.intents import Restore
from lakesplice.table.protocol.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class TopicStart:
    """A topic as the broker has it: its identity, and per partition an offset to read from; and
    the `shard` that it is of a table of several, as the configuration has it.
    """

    id: str
    offsets: Mapping[int, int]
    shard: tuple[tuple[str, str], ...] = ()


def plan_reset(snapshot: Snapshot, starts: Mapping[str, TopicStart], generation: int) -> Restore:
    """Return the intent that lets the table be as it was before its first change.

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

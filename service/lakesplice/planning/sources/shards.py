"""Shards: of a table with several topics, the rows that belong to one topic.

Positions of two shards can't be compared. So each source has its own fence and purge floor, for the
rows whose key has its shard. Shards are altered one after the other, and an image of one shard
can't be compared with the position at which another one was altered. So for such a table no
position is known from which on an image without a column shows that the column was dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.arrays import Mask
from lakesplice.model.manifest import Manifest
from lakesplice.model.position import AFTER_ALL
from lakesplice.model.progress.source_state import SourceState
from lakesplice.model.schema import TableSchema

Shard = tuple[tuple[str, str], ...]


def in_shard(rows: pa.Table, shard: Shard) -> Mask:
    """Mark the rows of a shard; `rows` has its columns."""
    mask = np.ones(rows.num_rows, np.bool_)
    for name, value in shard:
        mask &= np.asarray(pc.equal(rows.column(name), pa.scalar(value)).fill_null(False))
    return mask


def shard_columns(sources: Iterable[SourceState]) -> tuple[str, ...]:
    """Return the columns that distinguish the shards of sources."""
    return tuple(dict.fromkeys(name for source in sources for name, _ in source.shard))


def unplaced(schema: TableSchema, before: TableSchema, shard: Shard) -> TableSchema:
    """Return the schema that `before` became by images of a shard, without positions for its new
    versions, since nothing shows from where on they hold in the other shards. Without a shard the
    schema is returned unchanged.
    """
    new = schema.version - before.version
    if not shard or new <= 0:
        return schema
    return replace(schema, since=(*before.since, *[AFTER_ALL] * new))


def joining_problem(manifest: Manifest, source: SourceState) -> str:
    """Return why a topic may not become one more source of a table; empty if it may, or is one
    already.
    """
    others = [known for topic, known in manifest.sources.items() if topic != source.topic]
    if not others or source.topic in manifest.sources:
        return ""
    if not source.shard:
        return (
            "two topics feed one table; add to the key what distinguishes their rows, as with"
            " shape: {key: [database_name]}, or read only one of them (kafka.topic_pattern,"
            " tables)"
        )
    if any(dict(known.shard).keys() != dict(source.shard).keys() for known in others):
        return (
            "the table's key lacks the columns of shape.key, so rows of different shards may be"
            " confused; `lakesplice reset --anew` reloads all of its topics"
        )
    if any(known.shard == source.shard for known in others):
        return (
            "two topics have the same values in shape.key, so their rows can't be distinguished;"
            " add to shape.key what differs, such as topic"
        )
    if manifest.schema.columns and not dict(source.shard).keys() <= set(manifest.schema.key):
        return (
            "the table's key lacks the columns of shape.key; `lakesplice reset --anew` reloads the"
            " table with them"
        )
    return ""

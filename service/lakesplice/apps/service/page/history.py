"""The history and the columns of one table; read from the lake, so each call blocks."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from lakesplice.apps.service.page.answers import (
    ColumnAnswer,
    HistoryAnswer,
    SpliceAnswer,
    VersionAnswer,
)
from lakesplice.model.moments import utc_time
from lakesplice.model.schema import TableSchema
from lakesplice.table.protocol.history import HistoryEntry, history
from lakesplice.table.protocol.ports import Store

VERSIONS_MAX = 200


def versions(store: Store, limit: int, before: int | None) -> HistoryAnswer:
    """Return the newest `limit` versions, or those before one if it is given; none for a table
    without a version. Raises the store's errors.
    """
    found = [_version(entry) for entry in islice(history(store, before), limit)]
    more = len(found) == limit and found[-1].version > 0
    return HistoryAnswer(versions=found, before=found[-1].version if more else None)


def columns(schema: TableSchema) -> list[ColumnAnswer]:
    """Return the columns that readers see, in their order."""
    return [
        ColumnAnswer(
            name=column.name,
            source_name=column.source_name,
            type=column.type.name,
            source_type=column.source_type,
            key=schema.key.index(column.name) + 1 if column.name in schema.key else None,
            partition=column.name in schema.partitioned_by,
        )
        for column in schema.columns
        if not column.hidden
    ]


def _version(entry: HistoryEntry) -> VersionAnswer:
    info, moves = entry.info, dict(entry.sources)
    if entry.source:
        moves[""] = entry.source
    stamp = info.timestamp_ms
    return VersionAnswer(
        version=entry.version,
        time=None if stamp is None else utc_time(stamp),
        operation=info.operation,
        by=info.parameters.get("by", ""),
        why=info.parameters.get("why", ""),
        gaps=entry.gaps,
        sources={topic: dict(moved) for topic, moved in moves.items()},
        splice=_splice(info.metrics) if "pages_copied" in info.metrics else None,
        counts=dict(info.metrics),
    )


def _splice(counts: Mapping[str, int]) -> SpliceAnswer:
    return SpliceAnswer(**{name: counts.get(name, 0) for name in SpliceAnswer.model_fields})

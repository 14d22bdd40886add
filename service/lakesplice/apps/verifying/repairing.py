"""Reads rows that were proven to differ again, with all columns, to be written over the lake's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from lakesplice.apps.verifying.catch_up import epoch_of
from lakesplice.apps.verifying.compared_table import ComparedTable
from lakesplice.apps.verifying.differences import KEYS_AT_ONCE, ComparedSides, in_snapshot
from lakesplice.apps.verifying.lake_rows import KeyedRows, rows_of_keys
from lakesplice.errors import UsageError
from lakesplice.planning.source_rows.checksums import row_texts
from lakesplice.planning.source_rows.columns import ReadColumn
from lakesplice.planning.source_rows.key_lookups import keys_sql
from lakesplice.storage.source.binlog_places import SnapshotPlace
from lakesplice.storage.source.rows import Snapshot, SourceRows
from lakesplice.table.ingest.read_rows_commit import RepairedRows


def why_not_repaired(table: ComparedTable) -> str:
    """Return why rows of a table can't be read whole from its source; empty if they can."""
    if not table.unread:
        return ""
    return (
        f"rows can't be read whole, since columns aren't compared: {', '.join(table.unread)};"
        " `lakesplice rebuild` fills the table again"
    )


def rows_to_repair(sides: ComparedSides, keys: pa.Table) -> RepairedRows:
    """Return the rows of keys as the source has them now; `keys` has the source's names. Blocks.

    Rows that the lake has twice are left out, and so are existing rows of an insert-only table: a
    change wouldn't correct these. `UsageError` for a value that streaming refuses.
    """
    table, columns = sides.table, sides.table.compared.columns
    read_ms = sides.catch_up.clock.now_ms()
    parts, places = _read(sides, keys)
    there = pa.concat_tables(parts).combine_chunks()
    here = rows_of_keys(sides.lake(), table, keys)
    at_source = row_texts(there, table.compared.key).to_list()
    present = [row for row, key in enumerate(at_source) if _helps(table, here, key)]
    known = set(at_source)
    gone = [
        here.at[key]
        for key in row_texts(keys, table.compared.key).to_list()
        if key not in known and _lives(here, key) and _helps(table, here, key)
    ]
    names = [column.name for column in columns]
    schema = pa.schema([(column.name, column.type.arrow) for column in columns])
    lost = here.rows.select(names).take(pa.array(gone)) if gone else schema.empty_table()
    state = sides.lake().snapshot.manifest.sources[sides.topic]
    low = min(place.low.position(epoch_of(state)) for place in places)
    chosen = there.take(pa.array(present, pa.int64())).cast(schema)
    return RepairedRows(sides.topic, low, read_ms, chosen, lost.cast(schema))


def _lives(here: KeyedRows, key: str) -> bool:
    return key in here.at and not here.is_deleted(key)


def _helps(table: ComparedTable, here: KeyedRows, key: str) -> bool:
    return key not in here.twice and not (table.insert_only and _lives(here, key))


def _read(sides: ComparedSides, keys: pa.Table) -> tuple[list[pa.Table], list[SnapshotPlace]]:
    compared, parts, places = sides.table.compared, [], []
    for start in range(0, keys.num_rows, KEYS_AT_ONCE):
        some = keys.slice(start, KEYS_AT_ONCE)
        condition = keys_sql(sides.table.lake_key, compared.key, some)
        place, found = in_snapshot(sides, partial(_placed, compared.columns, condition))
        for name, column in found.columns.items():
            if column.flaws:
                raise UsageError(
                    "a value can't be read as the column's type, so its row can't be repaired;"
                    " correct the row at the source",
                    table=sides.table.source.name,
                    column=name,
                )
        places.append(place)
        parts.append(pa.table({name: column.values for name, column in found.columns.items()}))
        sides.read_limit.spend(some.num_rows)
    return parts, places


def _placed(
    columns: Sequence[ReadColumn], condition: str, snapshot: Snapshot
) -> tuple[SnapshotPlace, SourceRows]:
    return snapshot.place, snapshot.rows_where(columns, condition)

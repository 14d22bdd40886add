"""Reads rows that were proven to differ again, with all columns, to be written over the lake's."""

from __future__ import annotations

import pyarrow as pa

from lakesplice.apps.verifying.compared_sides import ComparedSides
from lakesplice.apps.verifying.compared_table import ComparedTable
from lakesplice.apps.verifying.lake_rows import KeyedRows, rows_of_keys
from lakesplice.apps.verifying.source_sums import lowest
from lakesplice.errors import UsageError
from lakesplice.planning.source_rows.checksums import row_texts
from lakesplice.storage.source.binlog_places import BinlogPlace
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
    table = sides.table
    key, schema = table.compared.key, table.compared.schema
    read_ms = sides.catch_up.clock.now_ms()
    there, low = _read(sides, keys)
    here = rows_of_keys(sides.lake(), table, keys)
    at_source = row_texts(there, key).to_list()
    present = [row for row, text in enumerate(at_source) if _helps(table, here, text)]
    known = set(at_source)
    gone = [
        here.at[text]
        for text in row_texts(keys, key).to_list()
        if text not in known and here.is_alive(text) and _helps(table, here, text)
    ]
    chosen = there.take(pa.array(present, pa.int64())).cast(schema)
    lost = here.rows.select(schema.names).take(pa.array(gone, pa.int64())).cast(schema)
    return RepairedRows(sides.topic, sides.position(low), read_ms, chosen, lost)


def _helps(table: ComparedTable, here: KeyedRows, key: str) -> bool:
    return key not in here.twice and not (table.insert_only and here.is_alive(key))


def _read(sides: ComparedSides, keys: pa.Table) -> tuple[pa.Table, BinlogPlace]:
    """Return the source's rows, and the lowest place in the binlog at which they were read."""
    places, parts = [], []
    for place, found in sides.source_rows(keys):
        for name, column in found.columns.items():
            if column.flaws:
                raise UsageError(
                    "a value can't be read as the column's type, so its row can't be repaired;"
                    " correct the row at the source",
                    table=sides.table.source.name,
                    column=name,
                )
        places.append(place.low)
        parts.append(found.table)
    return pa.concat_tables(parts).combine_chunks(), lowest(*places)

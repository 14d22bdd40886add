"""Rows that a program passes to a table, as Arrow data in any form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa

from lakesplice.errors import UsageError
from lakesplice.model.schema import TableSchema
from lakesplice.planning.by_hand.hand_fed_schema import stored_rows

Rows: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader
"""Accepted as rows, besides anything with Arrow's stream interface (Polars, DuckDB)."""


def reader_of(rows: Rows) -> pa.RecordBatchReader:
    """Return the rows as a sequence of batches; `UsageError` for anything that isn't Arrow data."""
    if isinstance(rows, pa.RecordBatchReader):
        return rows
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    if isinstance(rows, pa.Table):
        return rows.to_reader()
    try:
        return pa.RecordBatchReader.from_stream(rows)
    except TypeError as error:
        raise UsageError(
            "rows must be Arrow data: a table, batches or anything with Arrow's stream interface",
            found=type(rows).__name__,
        ) from error


def stored_batches(reader: pa.RecordBatchReader, schema: TableSchema) -> Iterator[pa.Table]:
    """Yield each batch with its columns as the table stores them."""
    for batch in reader:
        if batch.num_rows:
            yield stored_rows(pa.Table.from_batches([batch]), schema)


def all_rows(rows: Rows | None, schema: TableSchema, columns: Sequence[str]) -> pa.Table:
    """Return the rows in one table; without batches, an empty table with the key columns alone."""
    if rows is None:
        fields = [schema.arrow.field(name) for name in schema.key]
        return pa.schema(fields).empty_table()
    return stored_rows(table_of(rows), schema, columns)


def table_of(rows: Rows) -> pa.Table:
    """Return the rows in one table, as they are; `UsageError` if they aren't Arrow data."""
    return rows if isinstance(rows, pa.Table) else reader_of(rows).read_all()

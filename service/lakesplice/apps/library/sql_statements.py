"""Runs SQL statements on tables of a lake that are fed by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.apps.lake import table_store
from lakesplice.apps.library.table import Table
from lakesplice.errors import UsageError
from lakesplice.model.names import TableName
from lakesplice.planning.by_hand.statements import (
    Delete,
    Insert,
    Merge,
    SourceRows,
    Statement,
    Update,
    parsed_statement,
)
from lakesplice.planning.filtering.expressions import literal_values
from lakesplice.table.by_hand.upserts.upsert_request import Upserted


def run_statement(
    lake: str, text: str, options: Mapping[str, str] | None = None, *, merge: bool | None = None
) -> tuple[TableName, Upserted]:
    """Run a statement on a table of the lake at an address, in one commit; return the table's name
    and the result. `merge` is as for `Table.upsert`.

    Blocks. Raises `UsageError` if it isn't a statement, doesn't fit the table, or a source feeds
    the table; also `TableNotFoundError`, and the errors of `Table.update`.
    """
    statement = parsed_statement(text)
    tables = _Lake(lake, options)
    table = tables.open(statement.table)
    return statement.table, _run(tables, table, statement, merge)


class _Lake:
    def __init__(self, address: str, options: Mapping[str, str] | None) -> None:
        self._address, self._options = address.rstrip("/"), options

    def open(self, name: TableName) -> Table:
        address = f"{self._address}/{name.path}"
        table_store(address, self._options)  # names a similar table if there is none
        return Table.open(address, options=self._options)

    def rows(self, source: SourceRows) -> pa.Table:
        if source.table is not None:
            return self.open(source.table).read()
        assert source.file is not None
        if not Path(source.file).is_file():
            raise UsageError("there is no such Parquet file", path=source.file)
        try:
            return pq.read_table(source.file)
        except pa.ArrowException as error:
            raise UsageError(
                "the source can't be read as Parquet", path=source.file, cause=str(error)
            ) from error


def _run(lake: _Lake, table: Table, statement: Statement, merge: bool | None) -> Upserted:
    if isinstance(statement, Update):
        return table.update(statement.set, statement.where, merge=merge)
    if isinstance(statement, Delete):
        return table.delete(statement.where or "true", merge=merge)
    if isinstance(statement, Insert):
        rows = (
            _inserted(table, statement) if statement.source is None else lake.rows(statement.source)
        )
        return table.insert(rows)
    building = table.merge(_renamed(lake.rows(statement.source), table, statement))
    return building.with_clauses(statement.clauses).execute(merge=merge)


def _renamed(rows: pa.Table, table: Table, statement: Merge) -> pa.Table:
    """Return the source's rows, with the key columns renamed as in the table."""
    key = table.snapshot.manifest.schema.key
    if set(statement.on) != set(key):
        raise UsageError("ON must compare all of the table's key, and nothing else", key=list(key))
    absent = sorted(set(statement.on.values()) - set(rows.column_names))
    if absent:
        raise UsageError("the source has no such column", columns=absent, known=rows.column_names)
    for mine, theirs in statement.on.items():
        if mine not in rows.column_names:
            rows = rows.append_column(mine, rows.column(theirs))
        elif mine != theirs:
            raise UsageError(
                "ON compares a key column with a source column of another name, but the source also"
                " has a column with the key column's name; rename or drop that one in the source",
                column=mine,
            )
    return rows


def _inserted(table: Table, statement: Insert) -> pa.Table:
    schema = table.schema
    columns = list(statement.columns or schema.names)
    unknown = [name for name in columns if name not in schema.names]
    if unknown or len(set(columns)) < len(columns):
        raise UsageError(
            "the table has no such column, or it is given twice",
            columns=unknown or columns,
            known=schema.names,
        )
    if any(len(row) != len(columns) for row in statement.values):
        raise UsageError("each row of VALUES needs a value for each column", columns=columns)
    given = {
        name: literal_values([row[at] for row in statement.values], schema.field(name).type)
        for at, name in enumerate(columns)
    }
    count = len(statement.values)
    return pa.table({f.name: given.get(f.name, pa.nulls(count, f.type)) for f in schema})

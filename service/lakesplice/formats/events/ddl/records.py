"""Records that report schema changes: of Debezium's topic for them, and Maxwell's.

Debezium sends the table's columns after each statement (`tableChanges`). If columns are missing,
the statement is parsed. Maxwell's records are in `maxwell_records.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lakesplice.formats.events.blocks.positions import source_time
from lakesplice.formats.events.ddl.columns import (
    DefinedColumn,
    ForeignKeyCascades,
    RowsMoved,
    Statement,
    TableAltered,
    TableDefined,
    TableGone,
)
from lakesplice.formats.events.ddl.definitions import type_name
from lakesplice.formats.events.ddl.maxwell_records import is_maxwells, read_maxwells
from lakesplice.formats.events.ddl.schema_change import (
    SchemaChange,
    is_of_session,
    lowest_position,
)
from lakesplice.formats.events.ddl.statements import read_statements
from lakesplice.formats.events.json_reading.strict import Flaw, shown
from lakesplice.formats.events.json_reading.template import open_record
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.names import TableName

_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
# Marks of `source.snapshot` on what is streamed.
_STREAMED = (None, False, "false", "incremental")


def read_schema_change(value: bytes | None) -> SchemaChange | Flaw | None:
    """Read one record's value; None if it reports no schema change, a flaw if it is damaged."""
    if value is None:
        return None
    opened = open_record(value)
    if isinstance(opened, Flaw):
        return opened
    payload = opened.payload
    if not isinstance(payload, Mapping):
        return None
    if isinstance(payload.get("source"), Mapping) and "ddl" in payload:
        return _debezium(payload, payload["source"])
    return read_maxwells(payload) if is_maxwells(payload) else None


def _debezium(payload: Mapping[str, object], source: Mapping[str, object]) -> SchemaChange | Flaw:
    ddl = payload.get("ddl") or ""
    listed = payload.get("tableChanges") or ()
    if not isinstance(ddl, str) or not isinstance(listed, Sequence):
        return Flaw(DeadReason.WRONG_TYPE, "ddl isn't a string or tableChanges isn't an array")
    position, gtid = lowest_position(source.get("file"), source.get("pos")), source.get("gtid")
    change = SchemaChange(
        position,
        ddl,
        (),
        gtid=gtid if isinstance(gtid, str) else None,
        of_snapshot=source.get("snapshot") not in _STREAMED,
        moment=source_time((source.get("ts_us"), 1), (source.get("ts_ms"), 1000)),
    )
    if is_of_session(ddl):
        return change
    read = read_statements(ddl, str(payload.get("databaseName") or ""))
    if not listed:
        return _saying(change, read)
    try:
        defined = [_defined(change) for change in listed]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return Flaw(DeadReason.MISSING_FIELD, f"tableChanges can't be read: {error!r}")
    unlisted = [found for found in read if isinstance(found, (RowsMoved, ForeignKeyCascades))]
    return _saying(change, [*_with_names(defined, read), *unlisted])


def _saying(change: SchemaChange, statements: Sequence[Statement]) -> SchemaChange:
    return replace(change, statements=tuple(statements), about=tuple(map(_about, statements)))


def _about(statement: Statement) -> object:
    if isinstance(statement, TableGone):
        return statement.database, statement.table
    return statement.table


def _defined(change: Mapping[str, object]) -> TableDefined | TableGone:
    name = _table_name(change["id"])
    if change["type"] == "DROP":
        return TableGone(name.database, name.table)
    table = change["table"]
    if not isinstance(table, Mapping):
        raise TypeError(f"table is {shown(table)}")
    previous = change.get("previousId")
    former = None if previous is None else _table_name(previous)
    return TableDefined(
        name,
        tuple(_column(column) for column in table["columns"]),
        tuple(table.get("primaryKeyColumnNames") or ()),
        former if former != name else None,
    )


def _table_name(id_: object) -> TableName:
    """Read an id such as `"shop"."orders"`; the last two parts count."""
    parts = [part.replace('""', '"') for part in _QUOTED.findall(str(id_))]
    if len(parts) < 2:
        raise ValueError(f"the id {shown(id_)} names no table of a database")
    return TableName(*parts[-2:])


def _column(column: Mapping[str, object]) -> DefinedColumn:
    members = column.get("enumValues")
    default, charset = column.get("defaultValueExpression"), column.get("charsetName")
    optional = column.get("optional")
    return DefinedColumn(
        name=str(column["name"]),
        type=type_name(str(column["typeName"])),
        length=_digits(column.get("length")),
        scale=_digits(column.get("scale")),
        charset=None if charset is None else str(charset).lower(),
        optional=True if optional is None else bool(optional),
        default=None if default is None else str(default),
        members=tuple(map(str, members)) if isinstance(members, Sequence) else (),
    )


def _digits(value: object) -> int | None:
    """A number of digits; connectors say -1 where there is none."""
    return value if type(value) is int and value >= 0 else None


def _with_names(
    defined: Sequence[TableDefined | TableGone], read: Sequence[Statement]
) -> Iterator[Statement]:
    """Add what only the statement says: the former names of columns and of the table, and that a
    table replaced another one (CREATE OR REPLACE).
    """
    altered = [found for found in read if isinstance(found, TableAltered)]
    gone = {TableName(f.database, f.table) for f in read if isinstance(f, TableGone) and f.table}
    for found in defined:
        if isinstance(found, TableDefined):
            if found.table in gone:
                yield TableGone(found.table.database, found.table.table)
            own = [other for other in altered if found.table in (other.to, other.table)]
            origins = next((other.origins for other in own if other.actions), None)
            former = next((other.table for other in own if other.to == found.table), None)
            yield replace(found, former=found.former or former, origins=origins)
        else:
            yield found

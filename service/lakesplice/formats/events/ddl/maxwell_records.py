"""Maxwell's records of schema changes (`output_ddl`).

They contain the statement, and Maxwell's reading of it: the table's columns before it (`old`) and
after it (`def`). These lack the digits of a DECIMAL, BIT or FLOAT, which only the statement has. A
statement about several tables gives one record for each, all at one position.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lakesplice.formats.events.blocks.positions import source_time
from lakesplice.formats.events.ddl.columns import (
    DefinedColumn,
    Statement,
    TableGone,
    TableShown,
    TableUnread,
)
from lakesplice.formats.events.ddl.definitions import type_name
from lakesplice.formats.events.ddl.schema_change import SchemaChange, is_of_session, lowest_position
from lakesplice.formats.events.ddl.statements import read_statements
from lakesplice.formats.events.json_reading.strict import Flaw, shown
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.names import TableName

# What every such record's text has, and no change's: a text within a value has its quotes escaped.
MARK = r'"type"\s*:\s*"(table|database)-(create|alter|drop)"'
_KIND = re.compile(r"(table|database)-(create|alter|drop)")
_PLACE = re.compile(r"(.+):([0-9]{1,15})")
_WITHOUT_DIGITS = frozenset(("DECIMAL", "BIT", "FLOAT"))
# No database has this name: it stands for the session's database, which records don't have.
_SOMEWHERE = "\0"


def is_maxwells(payload: Mapping[str, object]) -> bool:
    """Whether a record is one of these."""
    kind = payload.get("type")
    return isinstance(kind, str) and _KIND.fullmatch(kind) is not None


def read_maxwells(payload: Mapping[str, object]) -> SchemaChange | Flaw:
    """Read one record; a flaw if it is damaged."""
    sql = payload.get("sql")
    if not isinstance(sql, str):
        return Flaw(DeadReason.WRONG_TYPE, f"sql is {shown(sql)}, not a string")
    try:
        before, after = (_table_columns(payload.get(name)) for name in ("old", "def"))
    except (KeyError, TypeError) as error:
        return Flaw(DeadReason.MISSING_FIELD, f"old or def isn't a table: {error!r}")
    place, gtid = _PLACE.fullmatch(str(payload.get("position") or "")), payload.get("gtid")
    return SchemaChange(
        None if place is None else lowest_position(place[1], int(place[2])),
        sql,
        () if is_of_session(sql) else tuple(_statements(sql, payload)),
        before,
        after,
        gtid=gtid if isinstance(gtid, str) else None,
        moment=source_time((payload.get("ts"), 1000)),
    )


def _statements(sql: str, payload: Mapping[str, object]) -> list[Statement]:
    """Parse the statement. Names without a database are in the table's own database if the table's
    name is written so, too: a session may have been in another one.
    """
    database, name = (str(payload.get(member) or "") for member in ("database", "table"))
    if not name:
        return read_statements(sql, database)
    read, table = read_statements(sql, _SOMEWHERE), TableName(database, name)
    if not read and _columns(payload, "old") == _columns(payload, "def"):
        return []  # an index, a comment or similar
    if any(_is_of(found, TableName(_SOMEWHERE, name)) for found in read):
        read = read_statements(sql, database)
    if not any(_is_of(found, table) for found in read):
        return [*read, TableUnread(table, "the statement doesn't name it")]
    return [_with_table_name(found, table) if _is_of(found, table) else found for found in read]


def _columns(payload: Mapping[str, object], which: str) -> object:
    """A table's columns as the record has them; without them, a value that equals nothing."""
    table = payload.get(which)
    return table.get("columns", object()) if isinstance(table, Mapping) else object()


def _is_of(statement: Statement, table: TableName) -> bool:
    """Whether a statement is about a table, whatever the case of its name."""
    found = statement.table
    if isinstance(found, str):
        found = TableName(statement.database, found) if isinstance(statement, TableGone) else None
    return found is not None and str(found).lower() == str(table).lower()


def _with_table_name(statement: Statement, table: TableName) -> Statement:
    """Return the statement with the table's name as the record has it."""
    if isinstance(statement, TableGone):
        return TableGone(table.database, table.table)
    return replace(statement, table=table)


def _table_columns(table: object) -> TableShown | None:
    """A table's columns; None if the record doesn't state them."""
    if not isinstance(table, Mapping) or not table:
        return None
    columns = table["columns"]
    if not isinstance(columns, Sequence):
        raise TypeError(f"columns are {shown(columns)}")
    charset = table.get("charset")
    return TableShown(
        TableName(str(table["database"]), str(table["table"])),
        tuple(_column(column, charset) for column in columns),
    )


def _column(column: Mapping[str, object], charset: object) -> DefinedColumn:
    type_ = type_name(f"{column['type']}{'' if column.get('signed', True) else ' unsigned'}")
    length, members = column.get("column-length"), column.get("enum-values")
    own = column.get("charset") or charset
    return DefinedColumn(
        str(column["name"]),
        type_,
        length if type(length) is int else None,
        charset=None if own is None else str(own).lower(),
        members=tuple(map(str, members)) if isinstance(members, Sequence) else (),
        digits_known=type_ not in _WITHOUT_DIGITS,
        default_known=False,
    )

"""Types by Maxwell's records of schema changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakesplice.formats.events import DecodeContext, Decoded, TypeHistory, declare
from lakesplice.formats.events.ddl import SchemaChange, SchemaHistory, read_schema_change
from lakesplice.formats.events.maxwell.ddl_types import types_of
from lakesplice.model.names import TableName
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Position
from tests.support.debezium import TABLE, Record, decode_all

BORN = {"id": "bigint", "price": "decimal"}
CREATED = "CREATE TABLE items (id bigint primary key, price decimal(10,2))"
RETYPED = "ALTER TABLE items MODIFY price decimal(12,4)"
NOTED = "ALTER TABLE items ADD note varchar(20)"


def told(*records: bytes, whole: bool = True) -> SchemaHistory:
    history = SchemaHistory(whole=whole)
    for value in records:
        change = read_schema_change(value)
        assert isinstance(change, SchemaChange), change
        history.take(change)
    return history


def types(*records: bytes, table: TableName = TABLE, whole: bool = True) -> TypeHistory:
    found = types_of(told(*records, whole=whole), table)
    assert found is not None
    return found


def at(pos: int) -> Position:
    return Position.of(0, 3, pos, 0, 1)


def written(history: TypeHistory, pos: int) -> dict[str, str]:
    version, _ = history.at(at(pos))
    return {name: type_.written for name, type_ in version.columns.items()}


def decode(
    records: Sequence[Record],
    history: TypeHistory | None,
    declared: Mapping[str, str] | None = None,
) -> Decoded:
    known = None if declared is None else declare(declared)
    return decode_all(records, DecodeContext(TABLE, known, history=history))


def stopped(decoded: Decoded) -> str:
    (stop,) = decoded.stops
    assert stop.code is ParkCode.TYPES_UNDECLARED
    return stop.detail

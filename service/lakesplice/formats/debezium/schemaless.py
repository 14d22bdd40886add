"""The shape of an event that carries no schema: names from the event itself, types as declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from lakesplice.formats.debezium.connect import EventShape, image_type
from lakesplice.formats.debezium.declared import DeclaredType

_TEXT, _NUMBER = pa.string(), pa.int64()
# Members that decoding reads have these types or the event is a dead letter.
_READ: dict[str, pa.DataType] = {
    **dict.fromkeys(("op", "db", "table", "gtid", "file"), _TEXT),
    **dict.fromkeys(("ts_ms", "ts_us", "pos", "row"), _NUMBER),
}
# Others have the type they show; these where they show none, since a null says nothing of the next
# event.
_WHERE_NULL: dict[str, pa.DataType] = {
    **dict.fromkeys(("version", "connector", "name", "snapshot", "sequence", "query"), _TEXT),
    **dict.fromkeys(("ts_ns", "server_id", "thread"), _NUMBER),
    "transaction": pa.struct(
        [("id", _TEXT), ("total_order", _NUMBER), ("data_collection_order", _NUMBER)]
    ),
}


@dataclass(frozen=True, slots=True)
class Undeclared:
    """Columns whose types the configuration doesn't say."""

    names: tuple[str, ...]


def shape_of_event(
    payload: Mapping[str, object], names: tuple[str, ...], declared: Mapping[str, DeclaredType]
) -> EventShape | Undeclared:
    """Return the shape of an event whose row images have the columns `names`."""
    missing = tuple(name for name in names if name not in declared)
    if missing:
        return Undeclared(missing)
    cells = tuple(declared[name].cell(name) for name in names)
    images = image_type(cells)
    fields = [
        pa.field(name, images if name in ("before", "after") else _member_type(name, value))
        for name, value in payload.items()
    ]
    return EventShape(cells, pa.struct(fields))


def _member_type(name: str, value: object) -> pa.DataType:
    if name == "source" and isinstance(value, Mapping):
        return pa.struct([(inner, _member_type(inner, member)) for inner, member in value.items()])
    if name in _READ:
        return _READ[name]
    return _WHERE_NULL.get(name, pa.null()) if value is None else _inferred(value)


def _inferred(value: object) -> pa.DataType:
    """The type of a member as it shows; events in which it differs have another shape."""
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        return pa.int64()
    if isinstance(value, float):
        return pa.float64()
    if isinstance(value, str):
        return pa.string()
    if isinstance(value, Mapping):
        return pa.struct([(name, _inferred(member)) for name, member in value.items()])
    if isinstance(value, list):
        return pa.list_(_inferred(value[0]) if value else pa.null())
    return pa.null()

"""Reads Maxwell's events: a head, the row after the change as `data`, and the former values as
`old`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache

import pyarrow as pa

from lakesplice.formats.events.blocks.positions import binlog_position, other_table
from lakesplice.formats.events.event_format import EventFormat, FormatCapabilities, Group
from lakesplice.formats.events.json_reading.member_types import shown_type
from lakesplice.formats.events.json_reading.null_proof import prove_nothing
from lakesplice.formats.events.json_reading.payload_shape import EventShape, image_type
from lakesplice.formats.events.json_reading.skipped_members import (
    emptied,
    skipping,
    unreadable,
)
from lakesplice.formats.events.json_reading.strict import Flaw, shown
from lakesplice.formats.events.json_reading.template import (
    Halt,
    Ignored,
    Opened,
    Template,
    Verdict,
    open_event,
)
from lakesplice.formats.events.json_reading.verdict_ledger import VerdictLedger
from lakesplice.formats.events.maxwell.before_values import REQUIRED, prove_parts
from lakesplice.formats.events.maxwell.block import OPS, build_block
from lakesplice.formats.events.maxwell.ddl_types import KnownTypes
from lakesplice.formats.events.maxwell.json_columns import with_texts
from lakesplice.formats.events.maxwell.keys import MaxwellKey, key_of
from lakesplice.formats.events.maxwell.types import cell_of, is_lossy
from lakesplice.formats.events.values.column_types import EVERYWHERE, PositionRange
from lakesplice.formats.events.values.decode_context import DecodeContext
from lakesplice.formats.events.values.encoding import Cell, Encoding
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.choices import FormatName
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Position

_BOOTSTRAP = ("bootstrap-start", "bootstrap-complete")
_SCHEMA = ("database-create", "database-alter", "database-drop", "table-create", "table-alter",
           "table-drop")  # fmt: skip
_HEAD: dict[str, pa.DataType] = {
    "database": pa.string(),
    "table": pa.string(),
    "type": pa.string(),
    "ts": pa.int64(),
    "xid": pa.int64(),
    "xoffset": pa.int64(),
    "commit": pa.bool_(),
    "position": pa.string(),
    "gtid": pa.string(),
    "server_id": pa.int64(),
    "thread_id": pa.int64(),
    "schema_id": pa.int64(),
    "query": pa.string(),
    "comment": pa.string(),
    "primary_key_columns": pa.list_(pa.string()),
}
_KEY_VALUES = "primary_key"
_IMAGES = ("data", "old")
_OFFSET = re.compile(r"[0-9]{1,15}")


class MaxwellReader:
    """Reads Maxwell's events."""

    def __init__(self, context: DecodeContext) -> None:
        self._context = context
        self._stated_key: object = None
        self._types = KnownTypes(context.declared or {})
        self._span: PositionRange | None = EVERYWHERE if context.history is None else None
        self._cells: dict[tuple[str, ...], tuple[Cell, ...] | Halt] = {}

    def inspect(self, value: bytes) -> Template | Verdict:
        """Read one record with every check."""
        opened = open_event(value)
        if not isinstance(opened, Opened):
            return opened
        event = opened.payload
        if opened.schema is not None or not isinstance(event, Mapping) or not _recognises(event):
            return Flaw(
                DeadReason.NOT_AN_ENVELOPE, f"the value is {shown(event)}, not Maxwell's event"
            )
        if verdict := self._verdict(event):
            return verdict
        span = self._go_to(_position(event))
        cells = self._columns(event)
        if not isinstance(cells, tuple):
            return cells
        self._stated_key = event.get("primary_key_columns")
        key_values, skipped = _key_values(event, cells), _skipped(event, cells)
        event = emptied(event, skipped)
        shape = _shape_of(cells, key_values, _beside(event, key_values))
        if flaw := shape.check(event, "payload"):
            return flaw
        template = opened.template(shape, span)
        return skipping(skipped, template) if skipped else template

    def _go_to(self, position: Position | None) -> PositionRange:
        """Use the types at a position; return the range of positions with the same types."""
        history = self._context.history
        if history is None:
            return EVERYWHERE
        version, span = history.at(position)
        if span != self._span:
            self._span = span
            self._types = KnownTypes(self._context.declared or {}, version)
            self._cells = {}
        return span

    def _verdict(self, event: Mapping[str, object]) -> Verdict | None:
        """Return the verdict on an event that changes no row of the table."""
        if _is_encrypted(event):
            detail = "the row is encrypted (encrypt); set encrypt=none in Maxwell"
            return Flaw(DeadReason.MISSING_IMAGE, detail)
        kind = event["type"]
        if kind in _SCHEMA:
            return Ignored("schema-change")
        if wrong := other_table(event["database"], event["table"], self._context.table):
            return Flaw(
                wrong.reason,
                f"{wrong.detail}; give each table a topic in Maxwell: kafka_topic="
                "PREFIX.%{database}.%{table}",
            )
        if kind in _BOOTSTRAP:
            return Ignored("bootstrap")
        if kind not in OPS:
            return Flaw(DeadReason.UNKNOWN_OP, f"type {shown(kind)}; known are {', '.join(OPS)}")
        if not event.get("data"):
            return Flaw(DeadReason.MISSING_IMAGE, "the event has no row")
        return None

    def _columns(self, event: Mapping[str, object]) -> tuple[Cell, ...] | Verdict:
        data = event["data"]
        if not isinstance(data, Mapping):
            return Flaw(DeadReason.WRONG_TYPE, f"data is {shown(data)}, not an object")
        names = tuple(map(str, data))
        # Every malformed event gets here, and most have the same columns as the others.
        cells = self._cells.get(names)
        if cells is None:
            cells = self._cells[names] = _cells_of(names, self._types, self._context)
        if isinstance(cells, Halt):
            return cells
        nested = [at for at, value in enumerate(data.values()) if isinstance(value, dict | list)]
        for cell in (cells[at] for at in nested):
            if isinstance(data[cell.name], dict) or not pa.types.is_list(cell.json_type):
                return _nested(cell.name)
        return cells

    def inspect_key(self, key: bytes | None, template: Template) -> MaxwellKey | Flaw | None:
        """Read one record's key; the event's own list of its columns comes first."""
        if key is None and self._stated_key is None:
            return None
        return key_of(key, self._stated_key, template.shape.names)

    def build(self, group: Group, ledger: VerdictLedger) -> None:
        """Make a block of the records that were read."""
        assert group.key is None or isinstance(group.key, MaxwellKey)
        build_block(group, group.key, self._types, self._context, ledger)


def _position(event: Mapping[str, object]) -> Position | None:
    """Return an event's position in the binlog; None if it has none."""
    file, _, offset = str(event.get("position") or "").rpartition(":")
    return binlog_position(file, int(offset), 0) if _OFFSET.fullmatch(offset) else None


def _cells_of(
    names: tuple[str, ...], types: KnownTypes, context: DecodeContext
) -> tuple[Cell, ...] | Halt:
    """Return the cells of the columns with these names."""
    if missing := types.missing(names):
        return _undeclared(missing, types.why(missing), context)
    columns = types.columns
    shape = next((n for n in names if columns[n].encoding is Encoding.GEOMETRY), None)
    if shape is not None:
        return _shape_as_text(shape)
    lossy = next((name for name in names if is_lossy(columns[name])), None)
    if lossy is not None:
        return _lossy(lossy)
    return tuple(cell_of(name, columns[name]) for name in names)


def _key_values(event: Mapping[str, object], cells: tuple[Cell, ...]) -> pa.DataType | None:
    """Return the type of the key's values; None if there are none, or if they have several
    types.
    """
    values = event.get(_KEY_VALUES)
    stated = event.get("primary_key_columns")
    if isinstance(stated, list):
        by_name = {cell.name: cell.json_type for cell in cells}
        types = [by_name.get(str(name), pa.null()) for name in stated]
    else:
        listed = values if isinstance(values, list) else []
        types = [pa.string() if isinstance(value, str) else pa.int64() for value in listed]
    if values is None or any(type_ != types[0] for type_ in types):
        return None
    return types[0] if types else pa.null()


def _skipped(event: Mapping[str, object], cells: tuple[Cell, ...]) -> tuple[str, ...]:
    """Return the members that belong to no column and have no single type."""
    others = {n: v for n, v in event.items() if n not in (*_HEAD, *_IMAGES, _KEY_VALUES)}
    mixed = event.get(_KEY_VALUES) is not None and _key_values(event, cells) is None
    return (*unreadable(others), *((_KEY_VALUES,) if mixed else ()))


def _beside(
    event: Mapping[str, object], key_values: pa.DataType | None
) -> tuple[tuple[str, pa.DataType], ...]:
    """Return the members besides the head, the images and a key's values of one type, with the
    types of their values.
    """
    known = {*_HEAD, *_IMAGES, *([_KEY_VALUES] if key_values is not None else [])}
    return tuple((n, shown_type(value)) for n, value in event.items() if n not in known)


@lru_cache(maxsize=256)
def _shape_of(
    cells: tuple[Cell, ...],
    key_values: pa.DataType | None,
    others: tuple[tuple[str, pa.DataType], ...],
) -> EventShape:
    image = image_type(cells)
    head = {**_HEAD, **dict(others)}
    if key_values is not None:
        head[_KEY_VALUES] = pa.list_(key_values)
    members = {**head, "data": image, "old": image}
    return EventShape(
        cells,
        pa.struct(list(members.items())),
        frozenset(members.keys() - {*REQUIRED, "data"}),
        prove_nothing if any(pa.types.is_nested(of) for _, of in others) else prove_parts,
    )


def _undeclared(missing: tuple[str, ...], why: str, context: DecodeContext) -> Halt:
    columns = ", ".join(f"{json.dumps(name)}: TYPE" for name in missing)
    return Halt(
        ParkCode.TYPES_UNDECLARED,
        "Maxwell's events have no types, and none are known for"
        f" {', '.join(missing)}{f' ({why})' if why else ''}; add to the configuration tables:"
        f' [{{match: "{context.table}", columns: {{{columns}}}}}], or let Maxwell write schema'
        " changes (output_ddl, schema_change_topics.maxwell)",
    )


def _lossy(name: str) -> Halt:
    return Halt(
        ParkCode.UNSUPPORTED,
        f"column={name!r} is a TIME, and Maxwell sends wrong values for times that are negative"
        " or longer than a day; leave it out (a filter in Maxwell), or declare it time_of_day if"
        " it has no such values",
    )


def _shape_as_text(name: str) -> Halt:
    return Halt(
        ParkCode.UNSUPPORTED,
        f"column={name!r} is a geometry, which Maxwell sends as text (POINT (1 2)) without its"
        " reference system; declare it string to keep that text, or leave it out (a filter in"
        " Maxwell)",
    )


def _nested(name: str) -> Halt:
    return Halt(
        ParkCode.UNSUPPORTED,
        f"column={name!r} contains nested JSON, as Maxwell sends for MySQL's JSON columns, but"
        " isn't known to be one; declare it json, or leave it out (a filter in Maxwell such as"
        " exclude: DATABASE.TABLE.COLUMN = *)",
    )


def _is_encrypted(payload: Mapping[str, object]) -> bool:
    """Whether Maxwell encrypted the row, or the whole event."""
    within = payload.get("encrypted")
    return isinstance(within, Mapping) and within.keys() == {"iv", "bytes"}


def _recognises(payload: Mapping[str, object]) -> bool:
    if _is_encrypted(payload):
        return True
    kind = payload.get("type")
    if not isinstance(kind, str) or not isinstance(payload.get("database"), str):
        return False
    if kind in _SCHEMA:
        return "ts" in payload
    return (
        isinstance(payload.get("table"), str)
        and "ts" in payload
        and isinstance(payload.get("data"), Mapping)
        and "isDdl" not in payload
    )


MAXWELL = EventFormat(
    FormatName.MAXWELL,
    FormatCapabilities(
        position="`position` and `xoffset` if events have both; else the order of records",
        before="`data` with the values of `old` in it",
        changed="those in `old`",
        key="`primary_key_columns`, else the record's key",
        types="Maxwell's records of schema changes, `columns`",
        lacking="the table's columns, by its DDL or declared, that `data` lacks",
    ),
    _recognises,
    MaxwellReader,
    prepare=with_texts,
)

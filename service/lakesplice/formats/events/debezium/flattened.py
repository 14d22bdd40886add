"""Reads Debezium's events after the transform ExtractNewRecordState: the row, and added fields.

The row's columns and the added fields are in one object; the names of added fields start with `__`.
Some facts are then unknown:

- The row before a change. Only a delete has one, if deletes are rewritten; then `__deleted` is in
  every event. Otherwise a delete is a tombstone or isn't sent at all, and can't be distinguished
  from a tombstone for topic compaction: such a table is parked.
- The position, unless `source.file`, `source.pos` and `source.row` were added. Without the row two
  changes of one key in one statement have one position. In that case only the order of records is
  known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.blocks.builder import BlockBuilder, mask_of
from lakesplice.formats.events.blocks.positions import (
    Positions,
    binlog_position,
    binlog_positions,
    kafka_positions,
    source_times,
)
from lakesplice.formats.events.debezium.block import check_keys, settle_operations, snapshot_marks
from lakesplice.formats.events.debezium.connect import UnsupportedSchema, shape_of_row
from lakesplice.formats.events.debezium.envelope import DEBEZIUM, PLACEHOLDER, key_shape
from lakesplice.formats.events.debezium.keys import ComparedKey, KeyShape, in_image, inspect_key
from lakesplice.formats.events.debezium.numeric import key_in_numbers, read_as
from lakesplice.formats.events.debezium.schemaless import TableTypes, as_sent
from lakesplice.formats.events.debezium.suspect_settings import (
    NULLS_IN_FLATTENED,
    cautions_by_types,
    nulls_are_replaced,
)
from lakesplice.formats.events.debezium.verdicts import truncated_somewhere, undeclared
from lakesplice.formats.events.event_format import EventFormat, FormatCapabilities, Group
from lakesplice.formats.events.json_reading.payload_shape import EventShape
from lakesplice.formats.events.json_reading.strict import Flaw, shown
from lakesplice.formats.events.json_reading.template import (
    Halt,
    Opened,
    Template,
    Verdict,
    open_event,
)
from lakesplice.formats.events.json_reading.verdict_ledger import VerdictLedger
from lakesplice.formats.events.values.blocks import ImageBlock
from lakesplice.formats.events.values.column_types import EVERYWHERE
from lakesplice.formats.events.values.decode_context import DecodeContext
from lakesplice.formats.events.values.encoding import Cell
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.arrays import Marks, Mask
from lakesplice.model.change import Op
from lakesplice.model.choices import FormatName
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Ordering, Position
from lakesplice.model.source_schema import SourceSchema

_DELETED, _OP = "__deleted", "__op"
_TEXTS = ("version", "connector", "name", "snapshot", "db", "sequence", "table", "gtid", "file",
          "query")  # fmt: skip
_NUMBERS = ("ts_ms", "ts_us", "ts_ns", "server_id", "pos", "row", "thread")
_TRANSACTION = {"id": pa.string(), "total_order": pa.int64(), "data_collection_order": pa.int64()}
_OF_SOURCE = dict.fromkeys(_TEXTS, pa.string()) | dict.fromkeys(_NUMBERS, pa.int64())
# A field of `source` may be added under its own name, or with `source_` before it.
_ADDED: dict[str, pa.DataType] = {
    _DELETED: pa.string(),
    _OP: pa.string(),
    **{f"__source_{name}": type_ for name, type_ in _OF_SOURCE.items()},
    **{f"__{name}": type_ for name, type_ in _OF_SOURCE.items()},
    **{f"__transaction_{name}": type_ for name, type_ in _TRANSACTION.items()},
}


def is_added(name: str) -> bool:
    """Whether a member has the name of a field that the transform adds."""
    return name in _ADDED


class FlattenedReader:
    """Reads flattened events."""

    def __init__(self, context: DecodeContext) -> None:
        self._context = context

    def inspect(self, value: bytes) -> Template | Verdict:
        """Read one record with every check."""
        opened = open_event(value)
        if not isinstance(opened, Opened):
            return opened
        row = opened.payload
        if not isinstance(row, Mapping) or not row or DEBEZIUM.recognises(row):
            return Flaw(DeadReason.NOT_AN_ENVELOPE, f"the value is {shown(row)}, not a row")
        if row.get(_OP) == "t":
            return truncated_somewhere()
        if _DELETED not in row:
            return no_deletes()
        types, span, history = None, EVERYWHERE, self._context.history
        if opened.schema is not None:
            shape = _with_schema(opened.schema)
        else:
            if history is not None:
                types, span = history.at(_position(row))
            shape = self._shape(row, TableTypes(self._context.declared or {}, types))
        if not isinstance(shape, EventShape):
            return shape
        return read_as(opened, shape, span)

    def _shape(self, row: Mapping[str, object], types: TableTypes) -> EventShape | Halt:
        columns = [name for name in row if name in types.columns or not is_added(name)]
        if missing := types.undeclared(columns):
            return undeclared(missing, self._context)
        cells = tuple(as_sent(types.columns[name].cell(name), (row,)) for name in columns)
        return _shape(cells, tuple(row))

    def inspect_key(self, key: bytes | None, template: Template) -> KeyShape | Flaw | None:
        """Read one record's key, all of whose columns the row must have."""
        shape = None if key is None else inspect_key(key)
        if not isinstance(shape, KeyShape):
            return shape
        return key_in_numbers(template, shape.names) or in_image(shape, template.shape.names)

    def build(self, group: Group, ledger: VerdictLedger) -> None:
        """Make a block of the records that were read."""
        build_rows(group, key_shape(group.key), self._context, ledger)


def _with_schema(schema: str) -> EventShape | Verdict:
    shape = shape_of_row(schema, is_added)
    return shape.verdict if isinstance(shape, UnsupportedSchema) else shape


@lru_cache(maxsize=256)
def _shape(cells: tuple[Cell, ...], names: tuple[str, ...]) -> EventShape:
    columns = {cell.name: cell.json_type for cell in cells}
    types = [pa.field(name, columns.get(name) or _ADDED[name]) for name in names]
    return EventShape(cells, pa.struct(types))


def _position(row: Mapping[str, object]) -> Position | None:
    """The position of an event's change, if all its parts were added."""
    file, pos, line = (
        next((row[added] for added in (f"__source_{n}", f"__{n}") if added in row), None)
        for n in ("file", "pos", "row")
    )
    return None if line is None else binlog_position(file, pos, 0)


def no_deletes() -> Halt:
    """Return the verdict on events that don't show which rows are deleted."""
    return Halt(
        ParkCode.UNSUPPORTED,
        "a flattened event without __deleted doesn't show whether its row is deleted; let the"
        " ExtractNewRecordState transform rewrite deletes"
        " (delete.tombstone.handling.mode=rewrite-with-tombstone)",
    )


def build_rows(
    group: Group, key: ComparedKey | None, context: DecodeContext, ledger: VerdictLedger
) -> None:
    """Settle the records whose rows were read: add changes to the ledger as one block."""
    shape = group.template.shape
    build = BlockBuilder(group.records, ledger)
    row = build.members(group.payloads)
    added = _added(row, shape.names)
    _refuse_other_tables(added, context, build)
    op = _operations(added, build)
    if nulls_are_replaced(added.get("snapshot"), op, build.live):
        ledger.suspect_settings.add(NULLS_IN_FLATTENED)
    ledger.suspect_settings.update(cautions_by_types(shape.cells, context.history))
    position, ordering = _positions(added, group, op)
    build.refuse_missing_positions(position)
    if ordering is Ordering.BINLOG:
        build.leave_beyond(position, group.template.span)
    present = {"before": op == Op.DELETE, "after": op != Op.DELETE}
    check_keys({"before": row, "after": row}, group.keys, key, op, present, build)
    times, beyond = _times(added, len(op))
    build.drop_marked(beyond, DeadReason.OUT_OF_RANGE, "the time is beyond the years 1 to 9999")
    table = build.tables({"row": row}, shape.cells, {"row": build.live.copy()})["row"]
    unknown = pa.nulls(len(op), pa.string())
    block = ImageBlock(
        schema=SourceSchema(tuple(cell.field for cell in shape.cells), key.names if key else ()),
        rows=group.records,
        op=op,
        position_file=position.file,
        position_offset=position.offset,
        source_ts=times,
        gtid=added.get("gtid", unknown) if ordering is Ordering.BINLOG else unknown,
        before=table,
        before_present=present["before"],
        after=table,
        after_present=present["after"],
        ordering=ordering,
        snapshot=snapshot_marks(added.get("snapshot"), op),
    )
    ledger.add(block if build.live.all() else block.filter(build.live))


def _added(row: Mapping[str, pa.Array], columns: Sequence[str]) -> dict[str, pa.Array]:
    """The fields beside the row, by the names that they have in `source`, if their types are right.

    A time without `source_` is the envelope's own: when the connector read the change.
    """
    found: dict[str, pa.Array] = {}
    for name in (name for name in _ADDED if name in row and name not in columns):
        if row[name].type == _ADDED[name] and not name.startswith("__ts_"):
            found.setdefault(name.removeprefix("__").removeprefix("source_"), row[name])
    return found


def _refuse_other_tables(
    added: Mapping[str, pa.Array], context: DecodeContext, build: BlockBuilder
) -> None:
    if "table" not in added:
        return
    expected = pa.array([context.table.database]).take(pa.array(np.zeros(len(build.live), int)))
    build.refuse_other_tables(added.get("db", expected), added["table"], context.table)


def _operations(added: Mapping[str, pa.Array], build: BlockBuilder) -> Marks:
    """Return operations; without `__op` a row that is not deleted was inserted, updated or read."""
    stated = added.get("deleted", pa.nulls(len(build.live), pa.string()))
    deleted, kept = (mask_of(pc.equal(stated, said).fill_null(False)) for said in ("true", "false"))
    build.drop_marked(
        ~deleted & ~kept, DeadReason.WRONG_TYPE, "__deleted is neither 'true' nor 'false'"
    )
    if "op" not in added:
        return np.where(deleted, Op.DELETE, Op.UPDATE).astype(np.int8)
    op = settle_operations(added["op"], build, None)
    build.drop_marked(
        (op == Op.DELETE) != deleted, DeadReason.UNKNOWN_OP, "__op and __deleted disagree"
    )
    return op


def _positions(
    added: Mapping[str, pa.Array], group: Group, op: Marks
) -> tuple[Positions, Ordering]:
    if {"file", "pos", "row"} <= added.keys():
        position = binlog_positions(added["file"], added["pos"], added["row"], op)
        return position, Ordering.BINLOG
    return kafka_positions(group.offsets, op), Ordering.KAFKA


def _times(added: Mapping[str, pa.Array], count: int) -> tuple[pa.Array, Mask]:
    units = {"ts_us": 1, "ts_ms": 1000}
    stated = [(added[name], unit) for name, unit in units.items() if name in added]
    return source_times(*(stated or [(pa.nulls(count, pa.int64()), 1)]))


def _recognises(payload: Mapping[str, object]) -> bool:
    return (_DELETED in payload or _OP in payload) and not DEBEZIUM.recognises(payload)


FLATTENED = EventFormat(
    FormatName.FLATTENED,
    FormatCapabilities(
        position="`__source_file`, `_pos` and `_row` if all were added; else the order of records",
        before="of deletes only",
        changed="unknown: whole rows are written",
        key="the record's key",
        types="the schema in the record; without schemas the schema-change topic, `columns`",
        lacking=DEBEZIUM.knows.lacking,
    ),
    _recognises,
    FlattenedReader,
    PLACEHOLDER,
)

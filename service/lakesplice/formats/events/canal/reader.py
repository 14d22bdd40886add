"""Reads Canal's flat messages: a head with the columns' types, `data` with one or more rows, and
`old` with the former values of changed columns.

TiCDC's messages have one row; with its extension `_tidb` they also have the transaction's
timestamp.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from lakesplice.formats.events.blocks.positions import other_table, source_time, tidb_position
from lakesplice.formats.events.canal.absent_columns import prove_messages
from lakesplice.formats.events.canal.block import OPS, build_block
from lakesplice.formats.events.canal.types import cell_of, declared_cell
from lakesplice.formats.events.event_format import EventFormat, FormatCapabilities, Group
from lakesplice.formats.events.json_reading.member_types import shown_type
from lakesplice.formats.events.json_reading.null_proof import prove_nothing
from lakesplice.formats.events.json_reading.payload_shape import EventShape
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
    Truncated,
    Verdict,
    open_event,
)
from lakesplice.formats.events.json_reading.verdict_ledger import VerdictLedger
from lakesplice.formats.events.values.decode_context import DecodeContext
from lakesplice.formats.events.values.encoding import Cell
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.choices import FormatName
from lakesplice.model.parking import ParkCode

_WATERMARK = "TIDB_WATERMARK"
# Canal's type for a dropped table is ERASE; TiCDC has other types of DDL.
_ERASED = "ERASE"
_EMPTYING = ("TRUNCATE", _ERASED)
_HEAD: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "database": pa.string(),
    "table": pa.string(),
    "pkNames": pa.list_(pa.string()),
    "isDdl": pa.bool_(),
    "type": pa.string(),
    "es": pa.int64(),
    "ts": pa.int64(),
    "sql": pa.string(),
}
_NEEDED = ("database", "table", "type", "es", "pkNames", "mysqlType", "data", "old")
# Members that have the columns' types.
_ROWS = ("mysqlType", "data", "old")
_OBJECTS = ("sqlType", "_tidb")
_READ = (*_HEAD, *_ROWS, "_tidb")


@dataclass(frozen=True)
class CanalKey:
    """The key's columns, from `pkNames`; the records' own keys are ignored."""

    names: tuple[str, ...]
    prefix: bytes = b""


class CanalReader:
    """Reads Canal's messages; keeps the key and the types of the last inspected message."""

    def __init__(self, context: DecodeContext) -> None:
        self._context = context
        self._key: tuple[str, ...] = ()
        self._types: dict[str, str] = {}

    def inspect(self, value: bytes) -> Template | Verdict:
        """Read one record with every check."""
        opened = open_event(value)
        if not isinstance(opened, Opened):
            return opened
        message = opened.payload
        if (
            opened.schema is not None
            or not isinstance(message, Mapping)
            or not _recognises(message)
        ):
            detail = f"the value is {shown(message)}, not Canal's message"
            return Flaw(DeadReason.NOT_AN_ENVELOPE, detail)
        if verdict := self._verdict(message):
            return verdict
        skipped = unreadable({n: v for n, v in message.items() if n not in _READ})
        message = emptied(message, skipped)
        shape = self._shape(message)
        if not isinstance(shape, EventShape):
            return shape
        if flaw := shape.check(message, "payload"):
            return flaw
        template = opened.template(shape)
        return skipping(skipped, template) if skipped else template

    def _verdict(self, message: Mapping[str, object]) -> Verdict | None:
        """Return the verdict on a message that changes no row of the table."""
        kind = message["type"]
        if kind == _WATERMARK:
            return Ignored("watermark")
        wrong = other_table(message["database"], message["table"], self._context.table)
        if message["isDdl"] is True:
            if kind in _EMPTYING and not wrong:
                return _emptied(message)
            return Ignored("schema-change")
        if wrong:
            return Flaw(wrong.reason, f"{wrong.detail}; give each table a topic at the source")
        if kind not in OPS:
            return Flaw(DeadReason.UNKNOWN_OP, f"type {shown(kind)}; known are {', '.join(OPS)}")
        if flaw := _left_out(message.get("_tidb")):
            return flaw
        missing = next((name for name in _NEEDED if name not in message), None)
        if missing:
            return Flaw(DeadReason.MISSING_FIELD, f"the message lacks {missing!r}")
        if not message["data"]:
            return Flaw(DeadReason.MISSING_IMAGE, "the message has no row")
        return None

    def _shape(self, message: Mapping[str, object]) -> EventShape | Verdict:
        types, key = message["mysqlType"], message["pkNames"]
        if not isinstance(types, Mapping) or not all(isinstance(t, str) for t in types.values()):
            detail = "mysqlType doesn't name the columns' types"
            return Flaw(DeadReason.WRONG_TYPE, detail)
        self._types = {str(name): str(type_) for name, type_ in types.items()}
        self._key = tuple(map(str, key)) if isinstance(key, list) else ()
        cells, missing = [], []
        for name, type_ in self._types.items():
            declared = (self._context.declared or {}).get(name)
            cell = declared_cell(name, declared) if declared else cell_of(name, type_)
            if cell is None:
                missing.append(name)
            else:
                cells.append(cell)
        if missing:
            return _undeclared(missing, self._types, self._context)
        others = tuple((n, _type_of(n, value)) for n, value in message.items() if n not in _ROWS)
        return _shape_of(tuple(cells), others)

    def inspect_key(self, _: bytes | None, template: Template) -> CanalKey | Flaw | None:
        """Return the key that the message names; the record's own key is ignored."""
        missing = next((name for name in self._key if name not in template.shape.names), None)
        if missing is not None:
            return Flaw(DeadReason.MISSING_KEY, f"the row has no key column {missing!r}")
        return CanalKey(self._key)

    def build(self, group: Group, ledger: VerdictLedger) -> None:
        """Make a block of the messages that were read."""
        build_block(group, self._key, self._types, self._context, ledger)


def _type_of(name: str, value: object) -> pa.DataType:
    """Return the type of a member outside of the rows; its value shows it if nothing else does."""
    if name == "_tidb" and isinstance(value, Mapping):
        shown_ = [(str(n), shown_type(of)) for n, of in value.items() if n != "commitTs"]
        return pa.struct([("commitTs", pa.int64()), *shown_])
    return _HEAD[name] if name in _HEAD else shown_type(value)


def _left_out(extension: object) -> Flaw | None:
    """Return the verdict if TiCDC left the row out, because the message was too large."""
    if not isinstance(extension, Mapping):
        return None
    detail = "the message was too large for TiCDC, which "
    if extension.get("onlyHandleKey") is True:
        detail += "sent only the key (onlyHandleKey)"
    elif extension.get("claimCheckLocation"):
        detail += "stored the row elsewhere (claimCheckLocation)"
    else:
        return None
    detail += "; raise max-message-bytes at TiCDC and the topic's max.message.bytes"
    return Flaw(DeadReason.MISSING_IMAGE, detail)


@lru_cache(maxsize=256)
def _shape_of(cells: tuple[Cell, ...], others: tuple[tuple[str, pa.DataType], ...]) -> EventShape:
    known = all(name in (*_HEAD, *_OBJECTS) or not pa.types.is_nested(of) for name, of in others)
    texts = pa.struct([(cell.name, pa.string()) for cell in cells])
    members = {**dict(others), "mysqlType": texts, "data": pa.list_(texts), "old": pa.list_(texts)}
    prove = prove_messages if known else prove_nothing
    return EventShape(cells, pa.struct(list(members.items())), frozenset(["old"]), prove)


def _undeclared(names: list[str], types: Mapping[str, str], context: DecodeContext) -> Halt:
    columns = ", ".join(f"{json.dumps(name)}: TYPE" for name in names)
    said = ", ".join(f"{name} ({types[name]})" for name in names)
    return Halt(
        ParkCode.TYPES_UNDECLARED,
        f"mysqlType doesn't give the exact type of {said}; add to the configuration"
        f' tables: [{{match: "{context.table}", columns: {{{columns}}}}}], or from TiCDC set'
        " content-compatible=true",
    )


def _emptied(message: Mapping[str, object]) -> Truncated | Flaw:
    """Return the verdict on a table that lost all its rows, at the position that the ordering
    gives.
    """
    extension, dropped = message.get("_tidb"), message["type"] == _ERASED
    moment = source_time((message.get("es"), 1000))
    if extension is None:
        return Truncated(None, dropped=dropped, moment=moment)
    position = tidb_position(extension.get("commitTs") if isinstance(extension, Mapping) else None)
    if position is None:
        return Flaw(DeadReason.MISSING_POSITION, "no commitTs in DDL")
    return Truncated(position, dropped=dropped, moment=moment)


def _recognises(payload: Mapping[str, object]) -> bool:
    return (
        isinstance(payload.get("isDdl"), bool)
        and isinstance(payload.get("type"), str)
        and {"database", "table", "data"} <= payload.keys()
        and not isinstance(payload["data"], Mapping)
    )


CANAL = EventFormat(
    FormatName.CANAL,
    FormatCapabilities(
        position="from TiCDC `_tidb.commitTs`; else the order of records",
        before="of deletes only",
        changed="unknown: whole rows are written",
        key="`pkNames`",
        types="`mysqlType`; where it isn't exact, `columns`",
        lacking="those of `columns`, if all are declared, that `data` lacks",
    ),
    _recognises,
    CanalReader,
)

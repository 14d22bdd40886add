"""What the first open record shows about records like it: prefix and shape, or a verdict."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from lakesplice.formats.events.json_reading.payload_shape import EventShape
from lakesplice.formats.events.json_reading.strict import Flaw, read_json
from lakesplice.formats.events.values.column_types import EVERYWHERE, PositionRange
from lakesplice.formats.events.values.fences import Fence
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.arrays import Integers
from lakesplice.model.moments import EpochUs
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Position

TOMBSTONE, MESSAGE = "tombstone", "message"
_OPENING = re.compile(r'\{\s*"schema"\s*:\s*')
_BETWEEN = re.compile(r'\s*,\s*"payload"\s*:\s*')
_PAYLOAD = re.compile(r'\{\s*"payload"\s*:\s*')
_SCHEMA = re.compile(r'\s*,\s*"schema"\s*:\s*')
_NO_SCHEMA = "null"
_WRAPPED = "p"


@dataclass
class ReadTexts:
    """The result of reading a group of texts. `at` are the indexes of texts that were read,
    ascending; `rows` are their payloads. `flaws` are verdicts on other texts; a text that is in
    neither of the two has another shape. `notes` are those of the proof (`null_proof.py`), null for
    rows that it didn't prove; None if it makes no notes.
    """

    at: Integers
    rows: pa.Array
    flaws: dict[int, Flaw] = field(default_factory=dict)
    notes: pa.Array | None = None


# Reads the values with these ascending indexes, each after the prefix.
BinaryReading = Callable[[pa.Array, Integers], ReadTexts]


@dataclass(frozen=True)
class Template:
    """How to read records like the first one.

    Their values start with the bytes `prefix`; the rest, completed by `closing`, is the payload and
    a brace. They end with the bytes `suffix`, which doesn't belong to the payload. `exact` says
    that a record with this prefix but another shape is damaged, since the prefix contains its
    schema; without a schema it is merely another kind of record. `binary` reads records that aren't
    JSON. `span` is the range of positions in which the shape's types are in force; records outside
    of it have another template.
    """

    prefix: bytes
    closing: bytes
    shape: EventShape
    exact: bool
    binary: BinaryReading | None = None
    suffix: bytes = b""
    span: PositionRange = EVERYWHERE


@dataclass(frozen=True, slots=True)
class Ignored:
    """The record isn't a change."""

    kind: str


@dataclass(frozen=True, slots=True)
class Halt:
    """The record shows that its table can't continue."""

    code: ParkCode
    detail: str


@dataclass(frozen=True, slots=True)
class Truncated:
    """The record says that the table lost all its rows, at `position` in the transaction `gtid`; if
    the position is None, the record's own offset counts. `dropped` says that the table itself was
    dropped. `moment` is when, at the source, None if the record doesn't say it.
    """

    position: Position | None
    gtid: str | None = None
    dropped: bool = False
    moment: EpochUs | None = None

    def fence(self, position: Position) -> Fence:
        """Return the fence of the record, at its position or another one."""
        return Fence(self.position or position, self.gtid, self.dropped, self.moment)


Verdict = Flaw | Ignored | Halt | Truncated


@dataclass(frozen=True, slots=True)
class Opened:
    """A record's payload, and the text of the schema before or after it; None without a schema."""

    prefix: bytes
    schema: str | None
    payload: object
    suffix: bytes = b""

    def template(self, shape: EventShape, span: PositionRange = EVERYWHERE) -> Template:
        """Return the template for records like this one, with changes in the span."""
        closing = b"" if self.prefix and not self.suffix else b"}"
        exact = self.schema is not None
        return Template(self.prefix, closing, shape, exact, suffix=self.suffix, span=span)


def split_schema(text: str) -> tuple[str, str] | None:
    """Split `{"schema":S,"payload":…}` into everything before the payload, and S; None for other
    texts.
    """
    if not (opening := _OPENING.match(text)):
        return None
    try:
        _, end = json.JSONDecoder().raw_decode(text, opening.end())
    except (ValueError, RecursionError):
        return None
    between = _BETWEEN.match(text, end)
    return (text[: between.end()], text[opening.end() : end]) if between else None


@dataclass(frozen=True, slots=True)
class PayloadFirst:
    """A record whose payload comes first: the text before and after it, and the schema's text (None
    without one).
    """

    prefix: bytes
    suffix: bytes
    schema: str | None

    def payload(self, value: bytes) -> object | Flaw:
        """Read the payload of a record that has these texts around it."""
        return read_payload(value[len(self.prefix) : len(value) - len(self.suffix)], b"}")


def split_payload(text: str) -> PayloadFirst | None:
    """Split `{"payload":…,"schema":S}`, in which the schema may be absent; None for other texts."""
    if not (opening := _PAYLOAD.match(text)):
        return None
    decoder, stated = json.JSONDecoder(), None
    try:
        _, end = decoder.raw_decode(text, opening.end())
        rest = end
        if schema := _SCHEMA.match(text, end):
            _, rest = decoder.raw_decode(text, schema.end())
            stated = text[schema.end() : rest]
    except (ValueError, RecursionError):
        return None
    if text[rest:].strip() != "}":
        return None
    return PayloadFirst(text[: opening.end()].encode(), text[end:].encode(), stated)


def read_payload(rest: bytes, closing: bytes) -> object | Flaw:
    """Read the text after a prefix: exactly one JSON value, and the brace that ends the record."""
    lead = b'{"%s":' % _WRAPPED.encode()
    wrapped = read_json(lead + rest + closing, lead=len(lead))
    if isinstance(wrapped, Flaw):
        return wrapped
    if not isinstance(wrapped, dict) or len(wrapped) != 1:
        return Flaw(DeadReason.NOT_JSON, "more than one value in the record")
    payload: object = wrapped[_WRAPPED]
    return payload


def open_record(value: bytes) -> Opened | Flaw:
    """Read one record with every check, with or without Kafka Connect's schema around it."""
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError as error:
        return Flaw(DeadReason.NOT_JSON, f"not UTF-8: {error.reason} at byte {error.start}")
    split = split_schema(text)
    first = None if split else split_payload(text)
    if first is not None and first.schema is not None:
        payload = first.payload(value)
        if isinstance(payload, Flaw):
            return payload
        schema = None if first.schema == _NO_SCHEMA else first.schema
        return Opened(first.prefix, schema, payload, first.suffix)
    if not split:
        payload = read_json(value)
        return payload if isinstance(payload, Flaw) else Opened(b"", None, payload)
    prefix = split[0].encode()
    payload = read_payload(value[len(prefix) :], b"")
    if isinstance(payload, Flaw):
        return payload
    return Opened(prefix, None if split[1] == _NO_SCHEMA else split[1], payload)


def open_event(value: bytes) -> Opened | Flaw | Ignored:
    """Do what `open_record` does, for readers of change events: a tombstone of Kafka is ignored."""
    opened = open_record(value)
    return Ignored(TOMBSTONE) if isinstance(opened, Opened) and opened.payload is None else opened

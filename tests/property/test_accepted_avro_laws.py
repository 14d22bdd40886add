"""Every reader opens what ingest accepts of events in Avro, whole or flattened, with equal rows.
What ingest doesn't accept becomes a dead letter or parks the table, and never raises an exception.

Values are written byte by byte by schemas as a connector registers them, and by ones that it never
would: names that Delta's readers stumble over, numbers beyond their types, texts that are no UTF-8.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakesplice.formats.events import SchemaText
from lakesplice.model.offsets import Offset
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.testing.avro_records import frame, write_value
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedTopic
from tests.property.test_accepted_topics_laws import NAMES, FedTopic, require_opens
from tests.support import avro
from tests.support.debezium import payload
from tests.support.drawing import examples
from tests.support.simulated import driver_of, folder

TOPIC = "s.shop.items"
KEY, VALUE = 11, 12
TIME = "io.debezium.time."


@dataclass(frozen=True)
class AvroKind:
    """A type of Avro with Connect's attributes, and values at and beyond its ends."""

    type: Any
    values: Sequence[Any]


def _named(type_: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": type_, "connect.name": name, **more}


def _decimal(precision: int, scale: int) -> dict[str, Any]:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return {
        "type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale,
        "connect.name": "org.apache.kafka.connect.data.Decimal", "connect.parameters": parameters,
    }  # fmt: skip


KINDS = (
    AvroKind("string", ["a", "", "\0", "\U0001f600", b"\xff\xfe", b"\xed\xa0\x80"]),
    AvroKind("int", [0, 2**31 - 1, -(2**31), 2**31, 2**62]),
    AvroKind({"type": "int", "connect.type": "int16"}, [1, 2**15 - 1, 2**15, -(2**31)]),
    AvroKind("long", [0, 2**63 - 1, -(2**63)]),
    AvroKind("float", [1.5, float("nan"), float("inf"), -0.0, 1e-45]),
    AvroKind("double", [1.5, float("nan"), float("-inf"), -0.0, 5e-324]),
    AvroKind("boolean", [True, False]),
    AvroKind("bytes", [b"", b"\xff", b"a" * 300]),
    AvroKind({"type": "fixed", "name": "f", "size": 2}, [b"\0\0", b"\xff\xff"]),
    AvroKind({"type": "enum", "name": "e", "symbols": ["x", "y"]}, ["x", "y"]),
    AvroKind(_decimal(8, 2), [b"\1", b"\x05\xf5\xe0\xff", b"\x05\xf5\xe1\x00", b"\x7f" * 30, b""]),
    AvroKind(_decimal(38, 38), [b"\5", b"\x4b" + b"\xff" * 15, b"\x80" + b"\0" * 15]),
    AvroKind(_decimal(65, 30), [b"\5", b"\x7f" * 27, b"\x7f" * 40]),
    AvroKind({"type": "bytes", "logicalType": "decimal", "precision": 5}, [b"\1", b"\x7f" * 4]),
    AvroKind(_named("int", TIME + "Date"), [0, 2_932_896, 2_932_897, -719_162, -719_163, 2**31]),
    AvroKind({"type": "int", "logicalType": "date"}, [0, 2_932_897, -(2**31)]),
    AvroKind(
        _named("long", TIME + "MicroTimestamp"),
        [0, 253_402_300_799_999_999, 253_402_300_800_000_000, -62_135_596_800_000_001, 2**63 - 1],
    ),
    AvroKind(_named("long", TIME + "Timestamp"), [0, 253_402_300_800_000, 2**63 - 1, -(2**63)]),
    AvroKind({"type": "long", "logicalType": "timestamp-micros"}, [0, 2**63 - 1]),
    AvroKind(
        _named("string", TIME + "ZonedTimestamp"),
        ["2024-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "0000-00-00T00:00:00Z", "", b"\xff"],
    ),
    AvroKind(_named("long", TIME + "MicroTime"), [0, -1, 3_020_399_000_000, 2**63 - 1]),
    AvroKind(_named("bytes", "io.debezium.data.Bits", **{"connect.parameters": {"length": "9"}}),
             [b"\1\0", b"", b"\xff" * 9]),
    AvroKind(_named("string", "io.debezium.data.Json"), ["{}", "{", ""]),
    AvroKind({"type": "array", "items": "int"}, []),
)  # fmt: skip
Column = tuple[str, AvroKind]
Row = Sequence[Any]
_columns = st.lists(
    st.tuples(st.sampled_from(NAMES) | st.text(min_size=1, max_size=3), st.sampled_from(KINDS)),
    min_size=2,
    max_size=3,
    unique_by=lambda column: column[0],
)


@st.composite
def topics(draw: st.DrawFn) -> tuple[list[Column], list[Row]]:
    columns = draw(_columns)
    # The first value is a sound one, so that not every row is a dead letter.
    choices = [st.sampled_from([*kind.values, None, *kind.values[:1]]) for _, kind in columns]
    return columns, draw(st.lists(st.tuples(*choices), min_size=1, max_size=4))


def _type(kind: AvroKind, at: int) -> Any:
    """The type by a name of its own, since a name is defined once."""
    named = isinstance(kind.type, dict) and "name" in kind.type
    return {**kind.type, "name": f"{kind.type['name']}{at}"} if named else kind.type


class Registry:
    """Writes the events of a topic by schemas of these columns; the first of them is the key."""

    def __init__(self, columns: Sequence[Column], *, flattened: bool) -> None:
        self._names, self._flattened = [name for name, _ in columns], flattened
        types = {name: ["null", _type(kind, at)] for at, (name, kind) in enumerate(columns)}
        value = avro.flattened(types) if flattened else avro.envelope(types)
        key = avro.record("Key", {self._names[0]: types[self._names[0]]})
        self.known = {at: SchemaText(json.dumps(it)) for at, it in ((KEY, key), (VALUE, value))}

    def event(self, place: int, row: Row) -> Event:
        image = dict(zip(self._names, row, strict=True))
        key, value = {self._names[0]: row[0]}, payload("c", None, image, pos=place)
        if self._flattened:
            added = {"__deleted": "false", "__op": "c", "__source_file": "b.000001"}
            value = {**image, **added, "__source_pos": place, "__source_row": 0}
        return Event(TOPIC, self._written(KEY, key), self._written(VALUE, value), (), 1)

    def _written(self, number: int, value: Mapping[str, Any]) -> bytes:
        return frame(number, write_value(avro.node(self.known[number]), value))


STRING, INT, DOUBLE = KINDS[0], KINDS[1], KINDS[5]


@pytest.mark.slow
@pytest.mark.parametrize("flattened", [False, True], ids=["whole", "flattened"])
@settings(max_examples=examples(40), deadline=None)
@given(topics())
@example(([("", INT), ("a", STRING)], [(1, "a")]))
@example(([("\ud800", INT), ("a", STRING)], [(1, "a")]))
@example(([("id", DOUBLE), ("a", INT)], [(float("nan"), 1), (1.5, 2)]))
@example(([("id", INT), ("a", STRING)], [(1, b"\xff"), (2, "a"), (2**31, "b")]))
def test_every_reader_opens_tables_made_from_accepted_avro_events(
    flattened: bool, topic: tuple[list[Column], list[Row]]
) -> None:
    columns, rows = topic
    registry, records = Registry(columns, flattened=flattened), SimulatedTopic(TOPIC)
    events = [registry.event(100 + at, row) for at, row in enumerate(rows)]
    records.append(0, events)
    with folder() as lake:
        schemas = avro.GivenSchemas(registry.known)
        driver = driver_of(FedTopic(records), LocalStore(lake), schemas=schemas)
        for end in sorted({1, len(events)}):
            if driver.table.parked is None:
                assert driver.batch({0: Offset(end)}) is CommitOutcome.DONE
        if driver.table.snapshot is not None:
            require_opens(driver, lake / driver.name.path, len(events))

"""Each record of a topic becomes a row that every reader opens, a dead letter, or the reason for
which its table is parked; it never raises an exception or makes a table that a reader can't open.

`conformance/test_types.py` tests the values; the values here are unusual ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.files.dead_letters import dead_letters_of
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.debezium import compact, envelope_schema, key_schema, money, payload, with_schema
from tests.support.drawing import examples
from tests.support.readers import READERS
from tests.support.sent_types import connect, decimal
from tests.support.simulated import folder

TOPIC = "test.shop.items"


@dataclass(frozen=True)
class Raw:
    """Bytes of a record where a value belongs, which no writer of JSON would write."""

    octets: bytes


TIME = "io.debezium.time."
VALUES: Mapping[str, tuple[dict[str, Any], Sequence[Any]]] = {
    "string": (
        connect("string"),
        ["text", "", "\0", "\U0001f600", Raw(b'"\\ud800"'), Raw(b'"\xff\xfe"'), 7],
    ),
    "int32": (connect("int32"), [0, 2**31 - 1, 2**31, -(2**31) - 1, 1.5, "1"]),
    "int64": (connect("int64"), [0, 2**63 - 1, -(2**63), 2**63, Raw(b"1e3")]),
    "double": (connect("double"), [1.5, -0.0, 5e-324, Raw(b"1e400"), Raw(b"NaN"), "NaN"]),
    "boolean": (connect("boolean"), [True, 1, "true"]),
    "bytes": (connect("bytes"), ["", "AA==", "A", "\u00ff"]),
    "decimal": (decimal(8, 2), [money(0), money(-99_999_999), money(10**8), money(10**40), ""]),
    "wide": (decimal(65, 30), [money(0), money(10**64), money(10**70), "AAA"]),
    "date": (connect("int32", TIME + "Date"), [0, -719_162, -719_163, 2_932_896, 2_932_897]),
    "moment": (
        connect("int64", TIME + "MicroTimestamp"),
        [0, -62_135_596_800_000_000, -62_135_596_800_000_001, 253_402_300_800_000_000, 2**63 - 1],
    ),
    "time": (connect("int64", TIME + "MicroTime"), [0, -1, 3_020_399_000_000, 2**63 - 1]),
}
NAMES = ["a", "A", "na me", "na_x20_me", "_is_deleted", "_ROW", "", "é", "%41", "a=b", "_position"]


@dataclass(frozen=True)
class Column:
    """A column of the source: its name, its type, and the values of its rows."""

    name: str
    kind: str
    values: tuple[Any, ...]


@st.composite
def columns(draw: st.DrawFn) -> list[Column]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    found = []
    for name in names:
        kind = draw(st.sampled_from([*VALUES]))
        values = st.none() | st.sampled_from(VALUES[kind][1])
        found.append(Column(name, kind, tuple(draw(st.tuples(values, values, values)))))
    return found


def events_of(found: Sequence[Column], key: Column | None) -> list[Event]:
    """Rows of these columns; their key is `id`, or a column of these."""
    fields = [{**VALUES[c.kind][0], "optional": c is not key, "field": c.name} for c in found]
    id_ = {"type": "int64", "optional": False, "field": "id"}
    of_key = [id_] if key is None else [next(f for f in fields if f["field"] == key.name)]
    events = []
    for at in range(3):
        row = {"id": at, **{column.name: column.values[at] for column in found}}
        named = {"id": at} if key is None else {key.name: key.values[at]}
        value = with_schema(payload("c", None, row, pos=100 + at), envelope_schema([id_, *fields]))
        events.append(
            Event(TOPIC, spelt(with_schema(named, key_schema(of_key))), spelt(value), (), at)
        )
    return events


def spelt(value: Any) -> bytes:
    """JSON, with raw octets where they were put."""
    raw: list[Raw] = []

    def without(part: Any) -> Any:
        if isinstance(part, Raw):
            raw.append(part)
            return f"@raw {len(raw) - 1}@"
        if isinstance(part, dict):
            return {name: without(member) for name, member in part.items()}
        return [without(one) for one in part] if isinstance(part, list) else part

    text = compact(without(value))
    for at, part in enumerate(raw):
        text = text.replace(json.dumps(f"@raw {at}@").encode(), part.octets)
    return text


def shown(table: pa.Table) -> list[str]:
    """Rows as text, which tells -0.0 and NaN alike from what they are not, in any order."""
    names = [name for name in table.column_names if not name.startswith("_lakesplice")]
    return sorted(repr([row[name] for name in names]) for row in table.to_pylist())


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(columns(), st.integers(-3, 2))
@example([Column("a", "double", (Raw(b"NaN"), 1.5, Raw(b"1e400")))], 0)
@example([Column("a", "string", (Raw(b'"\\ud800"'), Raw(b'"\xff\xfe"'), "text"))], 0)
@example([Column("na me", "int32", (1, 2, 3)), Column("na_x20_me", "int32", (1, 2, 3))], -1)
@example([Column("_is_deleted", "int32", (1, 2, 3))], -1)
@example([Column("", "int32", (1, 2, 3))], -1)
def test_each_record_is_a_row_for_every_reader_a_letter_or_why_its_table_parks(
    found: list[Column], keyed_by: int
) -> None:
    key = found[keyed_by] if 0 <= keyed_by < len(found) else None
    events = events_of(found, key)
    with folder() as path:
        topic = SimulatedTopic(TOPIC, 1)
        clock, entropy = FixedClock(), SeededEntropy(1)
        driver = SimulatedDriver(LocalStore(path), topic, clock, entropy, policy=SchemaPolicy())
        for event in events:
            topic.append(0, [event])
            if driver.table.parked is None:
                assert driver.batch() is CommitOutcome.DONE
        if driver.table.snapshot is None:
            assert driver.table.parked is not None
            return
        driver.compact()
        table = Table(driver.table.store)
        letters = dead_letters_of(driver.table.store, driver.table.manifest.dead_letters)
        rows = table.read(View.READ_OPTIMISED)
        source = table.snapshot.manifest.source
        assert source is not None
        taken = source.partitions[0].next_offset
        assert taken == topic.ends[0] or driver.table.parked is not None
        if key is None:
            assert rows.num_rows + len(letters) == taken
        mine = shown(rows)
        for name, read in READERS.items():
            theirs = read(path / driver.name.path, table.version)
            if "_is_deleted" in theirs.column_names:
                theirs = theirs.filter(pa.compute.invert(theirs["_is_deleted"]))
            assert shown(theirs.select(rows.column_names)) == mine, name

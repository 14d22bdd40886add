"""Maxwell's rows, from a real broker, with types from its records of schema changes.

There are three tables, none with all columns declared: one that was created while Maxwell reported
schema changes, one that existed before, and one whose schema changes are in its own topic.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.model.parking import ParkCode
from lakesplice.testing.compare import compare
from lakesplice.testing.oracle import Record
from tests.support.maxwell import Columns, row_record, schema_record
from tests.support.running import Lake, RunningService, ends_of, take_in
from tests.support.topics import Sender, make_topics

_DDL_PARTITIONS = 3
BORN: Columns = {"id": "int", "price": "decimal", "count": "int", "at": "datetime(3)"}
GROWN: Columns = {**BORN, "count": "bigint unsigned", "note": "varchar"}
CREATE = "CREATE TABLE {} (id int primary key, price decimal(10,2), count int, at datetime(3))"
ALTER = (
    "ALTER TABLE {} MODIFY price decimal(12,4), MODIFY count bigint unsigned,"
    " ADD note varchar(9) NOT NULL DEFAULT 'none'"
)
# Just below, at, and beyond what the types before could hold.
FIRST: list[dict[str, Any]] = [
    {"id": 1, "price": 12345678.91, "count": 2147483647, "at": "2024-02-29 23:59:59.123"},
    {"id": 2, "price": 0.10, "count": -1, "at": None},
    {"id": 3, "price": None, "count": None, "at": "1969-12-31 00:00:00.001"},
]
THEN: list[dict[str, Any]] = [
    {"id": 4, "price": 12345678.9123, "count": 18446744073709551615, "at": None, "note": "new"},
    {"id": 5, "price": 1.5, "count": 7, "at": "2024-03-10 02:30:00.000", "note": "é"},
]


@dataclass(frozen=True)
class Scene:
    """A running service, its lake, and the way to its broker."""

    lake: Lake
    service: RunningService
    sender: Sender
    server: str

    def topic(self, table: str) -> str:
        return f"{self.server}.shop.{table}"

    def tell(self, topic: str, *records: bytes) -> None:
        """Let Maxwell tell of schema changes, in the partition of their database."""
        partition = _DDL_PARTITIONS - 1 if topic.endswith("ddl") else 0
        self.sender.send_all([(topic, partition, b"uuid", value) for value in records])

    def rows(self, table: str, rows: list[dict[str, Any]], pos: int) -> list[Record]:
        """Send rows that were inserted, the first at a place in the binlog."""
        records = [row_record("insert", row, pos + at, table=table) for at, row in enumerate(rows)]
        return self.send(table, records)

    def send(
        self, table: str, records: list[tuple[bytes, bytes]], partition: int = 0
    ) -> list[Record]:
        topic = self.topic(table)
        return self.sender.send_all([(topic, partition, key, value) for key, value in records])

    def take_in(self, records: list[Record]) -> None:
        take_in(self.service, self.lake, ends_of(records))

    def holds(self, table: str, rows: list[dict[str, Any]]) -> None:
        """The table isn't parked and has these rows, as the source has them."""
        stored = self.lake.table(self.topic(table))
        assert stored.snapshot.manifest.parked is None
        assert not stored.snapshot.manifest.dead_letters
        truth = pa.Table.from_pylist([typed(row) for row in rows], SCHEMA)
        assert compare(truth, stored.read(), ["id"]) is None


SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("price", pa.decimal128(12, 4)),
        ("count", pa.decimal128(20, 0)),
        ("at", pa.timestamp("us", tz="UTC")),
        ("note", pa.string()),
    ]
)


def typed(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as the source's columns have it after the ALTER."""
    whole = {"note": "none", **row}
    for name, scale in (("price", 4), ("count", 0)):
        value = whole[name]
        whole[name] = None if value is None else round(Decimal(str(value)), scale)
    moment = pa.scalar(whole["at"]).cast(pa.timestamp("us")) if whole["at"] else None
    return {**whole, "at": None if moment is None else moment.as_py()}


@pytest.fixture(scope="module")
def scene(kafka_broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    server = f"mx-{secrets.token_hex(4)}"
    topics = {f"{server}.shop.{table}": 2 for table in ("made", "old", "own")}
    make_topics(kafka_broker, {**topics, f"{server}-ddl": _DDL_PARTITIONS})
    lake = Lake(
        tmp_path_factory.mktemp("maxwell"),
        kafka_broker,
        rf"{server}\..*",
        schema_change_topics={
            "maxwell": [
                {"name": f"{server}.shop.own", "tables": f"{server}.shop.own"},
                {"name": f"{server}-ddl", "tables": f"{server}.*"},
            ]
        },
        # As they were before the first ALTER that Maxwell tells of; of `count` and what came later
        # it says more.
        tables=[
            {
                "match": "shop.old",
                "columns": {
                    "id": "int", "price": "decimal(10,2)", "count": "int", "at": "datetime(3)",
                },
            }
        ],
    )  # fmt: skip
    with lake.running() as service:
        yield Scene(lake, service, Sender(kafka_broker), server)
        service.terminate()
        service.ends_well()


def test_a_table_that_maxwell_told_of_needs_no_declarations(scene: Scene) -> None:
    ddl = f"{scene.server}-ddl"
    scene.tell(ddl, schema_record(CREATE.format("made"), 100, table="made", after=BORN))
    scene.take_in(scene.rows("made", FIRST, 110))
    scene.tell(
        ddl, schema_record(ALTER.format("made"), 200, table="made", before=BORN, after=GROWN)
    )
    changed = {**THEN[0], "id": 2, "note": "now"}
    old = {"price": 0.10, "count": -1, "note": "none"}
    update = row_record("update", changed, 250, old, table="made")
    # One from before the ALTER comes late, in another partition.
    late = {**FIRST[0], "id": 9, "price": 0.25}
    insert = row_record("insert", late, 150, table="made")
    records = [*scene.rows("made", THEN, 210), *scene.send("made", [update])]
    scene.take_in([*records, *scene.send("made", [insert], partition=1)])
    scene.holds("made", [FIRST[0], changed, FIRST[2], *THEN, late])


def test_a_table_from_before_maxwell_is_declared_until_its_first_alteration(scene: Scene) -> None:
    scene.take_in(scene.rows("old", FIRST, 110))
    scene.tell(
        f"{scene.server}-ddl",
        schema_record(ALTER.format("old"), 300, table="old", before=BORN, after=GROWN),
    )
    scene.take_in(scene.rows("old", THEN, 310))
    scene.holds("old", [*FIRST, *THEN])


def test_schema_changes_among_a_tables_rows_tell_its_types(scene: Scene) -> None:
    topic = scene.topic("own")
    scene.tell(topic, schema_record(CREATE.format("own"), 100, table="own", after=BORN))
    scene.tell(topic, schema_record("CREATE TABLE b (id int)", 101, table="b", after={"id": "int"}))
    scene.rows("own", FIRST, 110)
    scene.tell(
        topic, schema_record(ALTER.format("own"), 200, table="own", before=BORN, after=GROWN)
    )
    scene.take_in(scene.rows("own", THEN, 210))
    scene.holds("own", [*FIRST, *THEN])


def test_an_alteration_that_is_reported_of_too_late_parks_the_table(scene: Scene) -> None:
    scene.take_in(scene.rows("made", [{**THEN[1], "id": 20}], 500))
    narrowed = "ALTER TABLE made MODIFY price decimal(20,6)"
    scene.tell(
        f"{scene.server}-ddl", schema_record(narrowed, 400, table="made", before=GROWN, after=GROWN)
    )
    scene.rows("made", [{**THEN[1], "id": 21}], 510)
    topic = scene.topic("made")
    scene.service.until(lambda: scene.lake.parked(topic) is not None, "the table is parked")
    parked = scene.lake.parked(topic)
    assert parked is not None
    assert parked.code is ParkCode.SCHEMA_CHANGE
    assert "the topic of schema changes reported it" in parked.detail

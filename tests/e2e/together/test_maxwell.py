"""Maxwell's rows, from a real broker, with types from its records of schema changes.

No table has all columns declared: some were created while Maxwell reported schema changes, one
existed before, and the schema changes of one are in its own topic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakesplice.model.parking import ParkCode
from lakesplice.testing.compare import compare
from lakesplice.testing.oracle import Record
from tests.support.maxwell import Columns, row_record, schema_record
from tests.support.stories import Stage, Step, story
from tests.support.topics import make_topics

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


class Source:
    """A database with one table, of which Maxwell tells in a topic of schema changes."""

    def __init__(self, stage: Stage, table: str, ddl: str = "") -> None:
        """`ddl` is the topic of schema changes, unless it is one of its own."""
        self.topic = f"{stage.server(f'mx-{table}')}.shop.{table}"
        self._ddl = {"": f"{stage.server(f'mx-{table}')}-ddl", "rows": self.topic}[ddl]
        self._stage, self._table = stage, table
        make_topics(stage.bootstrap_servers, {self.topic: 2})
        if self._ddl != self.topic:
            make_topics(stage.bootstrap_servers, {self._ddl: _DDL_PARTITIONS})
        told = {"name": self._ddl, "tables": self.topic}
        stage.configure(schema_change_topics={"maxwell": [told]})

    def tell(self, *records: bytes) -> None:
        """Let Maxwell tell of schema changes, in the partition of their database."""
        partition = 0 if self._ddl == self.topic else _DDL_PARTITIONS - 1
        sent = [(self._ddl, partition, b"uuid", value) for value in records]
        self._stage.sender.send_all(sent)

    def rows(self, rows: list[dict[str, Any]], pos: int) -> list[Record]:
        """Send rows that were inserted, the first at a place in the binlog."""
        table = self._table
        return self.send(
            [row_record("insert", r, pos + n, table=table) for n, r in enumerate(rows)]
        )

    def send(self, records: list[tuple[bytes, bytes]], partition: int = 0) -> list[Record]:
        sent = [(self.topic, partition, key, value) for key, value in records]
        return self._stage.sender.send_all(sent)

    def holds(self, rows: list[dict[str, Any]]) -> None:
        """The table isn't parked and has these rows, as the source has them."""
        stored = self._stage.lake.table(self.topic)
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


@story
def test_a_table_that_maxwell_told_of_needs_no_declarations(stage: Stage) -> Iterator[Step]:
    made = Source(stage, "made")
    made.tell(schema_record(CREATE.format("made"), 100, table="made", after=BORN))
    yield stage.taken_in(made.rows(FIRST, 110))
    made.tell(schema_record(ALTER.format("made"), 200, table="made", before=BORN, after=GROWN))
    changed = {**THEN[0], "id": 2, "note": "now"}
    old = {"price": 0.10, "count": -1, "note": "none"}
    update = row_record("update", changed, 250, old, table="made")
    # One from before the ALTER comes late, in another partition.
    late = {**FIRST[0], "id": 9, "price": 0.25}
    insert = row_record("insert", late, 150, table="made")
    records = [*made.rows(THEN, 210), *made.send([update])]
    yield stage.taken_in([*records, *made.send([insert], partition=1)])
    made.holds([FIRST[0], changed, FIRST[2], *THEN, late])


@story
def test_a_table_from_before_maxwell_is_declared_until_its_first_alteration(
    stage: Stage,
) -> Iterator[Step]:
    old = Source(stage, "old")
    # As they were before the first ALTER that Maxwell tells of; of `count` and what came later it
    # says more.
    columns = {"id": "int", "price": "decimal(10,2)", "count": "int", "at": "datetime(3)"}
    stage.configure(tables=[{"match": "shop.old", "columns": columns}])
    yield stage.taken_in(old.rows(FIRST, 110))
    old.tell(schema_record(ALTER.format("old"), 300, table="old", before=BORN, after=GROWN))
    yield stage.taken_in(old.rows(THEN, 310))
    old.holds([*FIRST, *THEN])


@story
def test_schema_changes_among_a_tables_rows_tell_its_types(stage: Stage) -> Iterator[Step]:
    own = Source(stage, "own", ddl="rows")
    own.tell(schema_record(CREATE.format("own"), 100, table="own", after=BORN))
    own.tell(schema_record("CREATE TABLE b (id int)", 101, table="b", after={"id": "int"}))
    own.rows(FIRST, 110)
    own.tell(schema_record(ALTER.format("own"), 200, table="own", before=BORN, after=GROWN))
    yield stage.taken_in(own.rows(THEN, 210))
    own.holds([*FIRST, *THEN])


@story
def test_an_alteration_that_is_reported_of_too_late_parks_the_table(
    stage: Stage,
) -> Iterator[Step]:
    grown = Source(stage, "grown")
    grown.tell(schema_record(CREATE.format("grown"), 100, table="grown", after=BORN))
    grown.tell(schema_record(ALTER.format("grown"), 200, table="grown", before=BORN, after=GROWN))
    yield stage.taken_in(grown.rows([{**THEN[1], "id": 20}], 500))
    narrowed = "ALTER TABLE grown MODIFY price decimal(20,6)"
    grown.tell(schema_record(narrowed, 400, table="grown", before=GROWN, after=GROWN))
    grown.rows([{**THEN[1], "id": 21}], 510)
    yield stage.parks(grown.topic)
    parked = stage.lake.require_parked(grown.topic, ParkCode.SCHEMA_CHANGE)
    assert "the topic of schema changes reported it" in parked.detail

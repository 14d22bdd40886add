"""Intake of one partition: what is counted before a stop, and that nothing after it is."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakesplice.formats.events import DecodeContext, decode
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Ordering, Position
from lakesplice.model.progress.epochs import Epoch
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.model.schema import TableSchema
from lakesplice.planning.intake.known_topic import KnownTopic
from lakesplice.planning.intake.line import IntakeLine, RecordReading
from lakesplice.planning.intake.new_dead_letters import ignored_before
from lakesplice.planning.intake.order.missing_records import MissingRecords
from lakesplice.planning.intake.order.proven_records import ProvenRecords
from lakesplice.planning.intake.order.record_order import RecordIndex
from lakesplice.planning.intake.order.returned_records import Waiting
from lakesplice.planning.intake.partition_intake import PartitionIntake
from lakesplice.planning.intake.report import IntakeResult, PartitionReport
from lakesplice.planning.schema.evolution import Grows, fit
from lakesplice.testing.shop import Event
from tests.support.altered import TOPIC, event
from tests.support.ledgers import Ledger

FIRST_OFFSET = 100
NOT_JSON = b"{"


def records(events: list[tuple[bytes | None, bytes | None]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "offset": pa.array(range(FIRST_OFFSET, FIRST_OFFSET + len(events)), pa.int64()),
            "timestamp": pa.array([0] * len(events), pa.int64()),
            "key": pa.array([key for key, _ in events], pa.binary()),
            "value": pa.array([value for _, value in events], pa.binary()),
        }
    )


def take(events: list[tuple[bytes | None, bytes | None]]) -> tuple[IntakeResult, PartitionReport]:
    """Take events into a table that has the columns of the first one."""
    batch = records(events)
    decoded = decode(batch, DecodeContext(TableName("counted", "ledger")))
    born = fit(TableSchema(), decoded.blocks[0].schema)
    assert isinstance(born, Grows)
    intake = PartitionIntake(
        "s.counted.ledger", 0, schema=born.next, state=PartitionState(Offset(FIRST_OFFSET))
    )
    taken = intake.take(np.asarray(batch.column("offset")), decoded)
    return taken, intake.report()


def pair(event: Event) -> tuple[bytes | None, bytes | None]:
    return event.key, event.value


def test_records_behind_a_stop_are_neither_applied_nor_counted() -> None:
    source = Ledger("s", "counted")
    inserted, deleted = source.insert(0, 3), source.delete([0])
    narrower = (
        (inserted[1].value or b"")
        .replace(b'"amount":1,', b"")
        .replace(b'{"type":"int32","optional":true,"field":"amount"},', b"")
    )
    before = [*map(pair, inserted), *map(pair, deleted), (inserted[0].key, NOT_JSON)]
    stop = (inserted[1].key, narrower)
    taken, report = take([*before, stop, *map(pair, deleted), (None, NOT_JSON)])
    assert report.parked is not None
    assert report.parked.code is ParkCode.SCHEMA_CHANGE
    assert report.parked.offset == report.state.next_offset == FIRST_OFFSET + len(before)
    counts = dict(report.counts)
    assert counts.pop("repeated") == 0
    assert counts == {"create": 3, "delete": 1, "ignored:tombstone": 1, "dead:not-json": 1}
    assert sum(counts.values()) == len(before)
    assert [letter.record for letter in taken.dead_letters] == [len(before) - 1]


def test_records_whose_order_is_not_proven_do_not_count_as_ignored() -> None:
    inserted = Ledger("s", "counted").insert(0, 3)
    batch = records([*map(pair, inserted), (inserted[0].key, None), (inserted[0].key, NOT_JSON)])
    offsets = np.asarray(batch.column("offset"))
    decoded = decode(batch, DecodeContext(TableName("counted", "ledger")))
    state = PartitionState(Offset(FIRST_OFFSET))
    missing = MissingRecords.among(offsets, state)
    proven = ProvenRecords.of(offsets, decoded, missing, 0, state, (), waiting=Waiting())
    assert ignored_before(proven, RecordIndex(5)) == 1
    rest = [block.filter(block.rows > 1) for block in decoded.blocks]
    left_out = replace(
        proven,
        decoded=replace(decoded, blocks=tuple(rest)),
        unproven=[RecordIndex(0)],
        repeated=[RecordIndex(1)],
    )
    assert ignored_before(left_out, RecordIndex(5)) == 1


def test_a_partition_enters_an_epoch_once_however_its_records_are_divided() -> None:
    def at_server(event: Event, file: int, gtid: str) -> tuple[bytes | None, bytes | None]:
        record = json.loads(event.value or b"")
        record["payload"]["source"].update(file=f"binlog.{file:06d}", gtid=gtid)
        return event.key, json.dumps(record).encode()

    inserted = Ledger("s", "counted").insert(0, 3)
    events = [at_server(one, 1, f"0-2-{6 + at}") for at, one in enumerate(inserted)]
    batch = records(events)
    decoded = decode(batch, DecodeContext(TableName("counted", "ledger")))
    born = fit(TableSchema(), decoded.blocks[0].schema)
    assert isinstance(born, Grows)
    state = PartitionState(Offset(FIRST_OFFSET), Position(400, 10), {"0": 5})
    epoch = Epoch(1, "0", 6, Position(1, 0), {"0": 5}, {1: Offset(0)})
    known = KnownTopic(ordering=Ordering.BINLOG, partitions=2, epochs=(epoch,))
    intake = PartitionIntake("s.counted.ledger", 0, schema=born.next, state=state, known=known)
    for at in range(3):
        part = batch.slice(at, 1)
        decoded = decode(part, DecodeContext(TableName("counted", "ledger")))
        intake.take(np.asarray(part.column("offset")), decoded)
    report = intake.report()
    assert (report.parked, report.opening) == (None, None)
    assert report.entered == {1: FIRST_OFFSET}


def test_all_partitions_of_a_new_table_write_the_columns_that_the_first_one_found() -> None:
    """Their changes are sent on together, under one schema."""
    columns = {"id": "int32", "n": "int32"}
    reading = RecordReading(table=TableName.from_topic(TOPIC))

    def line(partition: int) -> IntakeLine:
        state, known = PartitionState(Offset(FIRST_OFFSET)), KnownTopic()
        return IntakeLine(reading, TOPIC, partition, schema=TableSchema(), state=state, known=known)

    first, second = line(0), line(1)
    first.take(records([pair(event(columns, 1, {"id": 1, "n": 1}))]))
    found = first.first_schema
    assert found is not None
    alike = pair(event(columns, 2, {"id": 2, "n": 2}))
    more = pair(event({**columns, "m": "int32"}, 3, {"id": 3, "n": 3, "m": 3}))
    taken = second.take(records([more, alike]), first_schema=found)
    assert second.first_schema == found
    assert not taken.changes
    assert second.report().state.next_offset == FIRST_OFFSET, "the table has to grow first"
    third = line(2)
    assert third.take(records([alike]), first_schema=found).changes[0].num_rows == 1

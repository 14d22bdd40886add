"""Repetitions, order, and topics that are created and deleted while the service runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from random import Random

from confluent_kafka import Producer
from kafka.admin import KafkaAdminClient

from lakesplice import Table
from lakesplice.errors import TableNotFoundError
from lakesplice.model.names import TableName
from lakesplice.model.parking import ParkCode
from lakesplice.testing.compare import compare
from lakesplice.testing.shop import Event
from tests.support.ledgers import PARTITIONS, Ledger, partition_of, send
from tests.support.simulated import truncate_at
from tests.support.stories import Stage, Step, Until, story
from tests.support.topics import Sender, make_topics


def repeated(stage: Stage, table: Ledger) -> int:
    """How many changes the service has recognised as sent before."""
    history = stage.lake.table(table.topic).history()
    return sum(entry.info.metrics.get("repeated", 0) for entry in history)


@story
def test_new_topics_are_picked_up_without_a_restart(stage: Stage) -> Iterator[Step]:
    first = stage.ledger("first")
    yield stage.taken_in(send(stage.sender, first.insert(0, 20)))
    second = stage.ledger("second")
    yield stage.taken_in(send(stage.sender, second.insert(0, 20)))
    yield stage.taken_in(send(stage.sender, first.update(range(10), "later")))
    for table in (first, second):
        stage.holds_the_truth(table)


@story
def test_a_database_with_a_dot_in_its_name_is_the_one_its_events_name(
    stage: Stage,
) -> Iterator[Step]:
    """That a topic's first records are read needs a broker; what follows is a unit test."""
    dotted = stage.ledger("my.db")
    send(stage.sender, dotted.insert(0, 20))
    path = stage.lake.root / TableName("my.db", "ledger").path

    def has_rows() -> bool:
        with suppress(TableNotFoundError):
            return compare(dotted.truth, Table.open(path).read(), ["id"]) is None
        return False

    yield Until(has_rows, "the table my.db.ledger has its rows")


@story
def test_records_that_a_restarted_connector_repeats_change_nothing(stage: Stage) -> Iterator[Step]:
    table = stage.ledger("resent")
    events = table.insert(0, 30) + table.update(range(0, 30, 2), "two") + table.delete([4, 5])
    events += table.insert(4, 5) + table.update([4, 6], "three")
    yield stage.taken_in(send(stage.sender, events))
    before = stage.lake.table(table.topic).read(include_system=True)
    yield stage.taken_in(send(stage.sender, events[-15:]))
    yield stage.taken_in(send(stage.sender, events))
    assert compare(before, stage.lake.table(table.topic).read(include_system=True), ["id"]) is None
    assert repeated(stage, table) > 0
    stage.holds_the_truth(table)


@story
def test_the_highest_position_of_a_key_wins_whatever_partition_brings_it(
    stage: Stage,
) -> Iterator[Step]:
    """As after the topic was given more partitions: each in order, none aware of the others."""
    table = stage.ledger("two_partitions")
    events = table.insert(0, 6)
    for number in range(8):
        events += table.update(range(6), f"update {number}")
    events += table.delete([0, 1]) + table.insert(1, 2)
    random = Random(stage.seed)
    spread = [(event, random.randrange(PARTITIONS)) for event in events]
    # The partitions arrive one after the other, the last one first.
    records = []
    for partition in reversed(range(PARTITIONS)):
        own = [event for event, at in spread if at == partition]
        records += stage.sender.send_all((e.topic, partition, e.key, e.value) for e in own)
        yield stage.taken_in(records)
    stage.holds_the_truth(table)


@story
def test_positions_that_fall_back_without_a_transaction_id_park_their_table_alone(
    stage: Stage,
) -> Iterator[Step]:
    table, neighbour = stage.ledger("fell_back"), stage.ledger("stood")
    yield stage.taken_in(send(stage.sender, table.insert(0, 10)))
    (event,) = table.update([3], "from another server")
    fallen = stage.sender.send(event.topic, partition_of(event), event.key, elsewhere(event, None))
    yield stage.parks(table.topic)
    reason = stage.lake.require_parked(table.topic, ParkCode.POSITIONS_FELL_BACK)
    assert (reason.partition, reason.offset) == (fallen.partition, fallen.offset)
    assert "--new-epoch" in reason.detail
    texts = stage.lake.table(table.topic).read()["text"].to_pylist()
    assert sorted(texts) == sorted(f"row {key}" for key in range(10))
    yield stage.taken_in(send(stage.sender, neighbour.insert(0, 10)))
    stage.holds_the_truth(neighbour)


@story
def test_a_server_that_takes_over_with_lower_positions_is_followed(stage: Stage) -> Iterator[Step]:
    table = stage.ledger("failed_over")
    yield stage.taken_in(send(stage.sender, table.insert(0, 30)))
    moved = table.update(range(20), "from another server")
    yield stage.taken_in(
        [
            stage.sender.send(e.topic, partition_of(e), e.key, elsewhere(e, f"0-77-{100 + at}", at))
            for at, e in enumerate(moved)
        ]
    )
    stage.holds_the_truth(table)
    source = stage.lake.table(table.topic).snapshot.manifest.source
    assert source is not None
    (epoch,) = source.epochs
    assert (epoch.number, epoch.stream) == (1, "0")
    assert epoch.first >= 100


def elsewhere(event: Event, gtid: str | None, at: int = 0) -> bytes:
    """The event as a server that took over would have written it, low in its binlog."""
    assert event.value is not None
    record = json.loads(event.value)
    record["payload"]["source"].update(file="binlog.000001", pos=5 + at, gtid=gtid)
    return json.dumps(record).encode()


@story
def test_aborted_transactions_leave_holes_that_are_no_loss(stage: Stage) -> Iterator[Step]:
    table = stage.ledger("transactions")
    producer = Producer(
        {"bootstrap.servers": stage.bootstrap_servers, "transactional.id": table.topic}
    )
    producer.init_transactions(60)
    random = Random(stage.seed)
    for number in range(20):
        events = table.insert(number * 5, number * 5 + 5)
        for keep in (False, True):
            if not keep and number and random.random() > 0.3:
                continue
            producer.begin_transaction()
            for event in events:
                value = event.value if keep else (event.value or b"").replace(b"row ", b"HARM ")
                producer.produce(table.topic, value, event.key, partition_of(event))
            producer.flush(30)
            if keep:
                producer.commit_transaction(30)
            else:
                producer.abort_transaction(30)
    yield stage.taken_in(send(stage.sender, table.update(range(100), "after the holes")))
    stage.holds_the_truth(table)


@story
def test_a_recreated_topic_parks_its_table_and_the_others_continue(stage: Stage) -> Iterator[Step]:
    table, neighbour = stage.ledger("made_anew"), stage.ledger("stayed")
    yield stage.taken_in(send(stage.sender, table.insert(0, 10) + neighbour.insert(0, 10)))
    truth = table.truth
    # A batch that has read nothing of it: one that still reads a topic which is deleted waits for
    # three answers' time, and fails for the other stories' tables as well.
    yield stage.taken_in(send(stage.sender, neighbour.update([9], "once more")))
    admin = KafkaAdminClient(bootstrap_servers=stage.bootstrap_servers)
    admin.delete_topics([table.topic], timeout_ms=30_000)
    yield Until(lambda: table.topic not in admin.list_topics(), "the topic is gone")
    yield stage.taken_in(send(stage.sender, neighbour.update(range(5), "the other is gone")))
    make_topics(stage.bootstrap_servers, {table.topic: PARTITIONS})
    yield Until(
        lambda: len(admin.describe_topics([table.topic])[0]["partitions"]) == PARTITIONS,
        "the topic is there anew",
    )
    admin.close()
    # Another sender may still know the partitions that are gone.
    send(Sender(stage.bootstrap_servers), table.insert(10, 40))
    yield stage.parks(table.topic)
    stage.lake.require_parked(table.topic, ParkCode.TOPIC_RECREATED)
    assert compare(truth, stage.lake.table(table.topic).read(), ["id"]) is None
    yield stage.taken_in(send(stage.sender, neighbour.update(range(10), "the other came anew")))
    stage.holds_the_truth(neighbour)


@story
def test_a_truncate_empties_the_table_for_changes_that_come_late_too(
    stage: Stage,
) -> Iterator[Step]:
    table = stage.ledger("truncated")
    first = table.insert(0, 20)
    late = table.update(range(5), "late")
    (gone, *_) = table.delete(range(20))
    after = table.insert(3, 9)
    yield stage.taken_in(send(stage.sender, first))
    truncate = stage.sender.send(gone.topic, 1, None, truncate_at(gone).value)
    yield stage.taken_in([truncate, *send(stage.sender, after)])
    yield stage.taken_in(send(stage.sender, late))
    stage.holds_the_truth(table)


@story
def test_a_table_without_a_key_is_reported_by_the_columns_configured(
    stage: Stage,
) -> Iterator[Step]:
    table = stage.ledger("keyless")
    stage.configure(tables=[{"match": "keyless.*", "key": ["id"]}])
    events = table.insert(0, 20) + table.update(range(5), "later") + table.delete([1, 7])
    rows = [event for event in events if event.value is not None]
    yield stage.taken_in(stage.sender.send_all((e.topic, 0, None, e.value) for e in rows))
    stage.holds_the_truth(table)

"""Repetitions, order, and topics that are created and deleted, with one service that runs
throughout.

Each test has its own topic, which is created while the service runs.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from random import Random

import pytest
from confluent_kafka import Producer
from kafka.admin import KafkaAdminClient

from lakesplice import Table
from lakesplice.errors import TableNotFoundError
from lakesplice.model.names import TableName
from lakesplice.model.parking import ParkCode
from lakesplice.testing.compare import compare
from lakesplice.testing.oracle import Record
from lakesplice.testing.shop import Event
from tests.support.ledgers import PARTITIONS, Ledger, partition_of, send
from tests.support.running import Lake, RunningService, ends_of, require_table, take_in
from tests.support.topics import Sender, make_topics


@dataclass(frozen=True)
class Scene:
    """A running service, its lake, and the way to its broker."""

    lake: Lake
    service: RunningService
    sender: Sender
    bootstrap_servers: str
    server: str

    def ledger(self, name: str) -> Ledger:
        """A new table with its topic, made while the service runs."""
        made = Ledger(self.server, name)
        make_topics(self.bootstrap_servers, {made.topic: PARTITIONS})
        return made

    def take_in(self, records: list[Record]) -> None:
        """Wait until the tables hold the records."""
        take_in(self.service, self.lake, ends_of(records))

    def holds_the_truth(self, table: Ledger) -> None:
        """The table is what its source is, in the real-time view, and not parked."""
        require_table(self.lake, table.topic, table.truth)

    def repeated(self, table: Ledger) -> int:
        """How many changes the service has recognised as sent before."""
        history = self.lake.table(table.topic).history()
        return sum(entry.info.metrics.get("repeated", 0) for entry in history)


@pytest.fixture(scope="module")
def scene(kafka_broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    server = f"order-{secrets.token_hex(4)}"
    lake = Lake(
        tmp_path_factory.mktemp("order"),
        kafka_broker,
        rf"{server}\..*",
        tables=[{"match": "keyless.*", "key": ["id"]}],
    )
    with lake.running() as service:
        yield Scene(lake, service, Sender(kafka_broker), kafka_broker, server)
        service.terminate()
        service.ends_well()


def test_new_topics_are_picked_up_without_a_restart(scene: Scene) -> None:
    first, second = scene.ledger("first"), scene.ledger("second")
    scene.take_in(send(scene.sender, first.insert(0, 20)))
    scene.take_in(send(scene.sender, second.insert(0, 20)))
    scene.take_in(send(scene.sender, first.update(range(10), "later")))
    for table in (first, second):
        scene.holds_the_truth(table)


def test_a_database_with_a_dot_in_its_name_is_the_one_its_events_name(scene: Scene) -> None:
    """That a topic's first records are read needs a broker; what follows is a unit test."""
    dotted = scene.ledger("my.db")
    send(scene.sender, dotted.insert(0, 20))
    path = scene.lake.root / TableName("my.db", "ledger").path

    def has_rows() -> bool:
        with suppress(TableNotFoundError):
            return compare(dotted.truth, Table.open(path).read(), ["id"]) is None
        return False

    scene.service.until(has_rows, "the table my.db.ledger has its rows")


def test_records_that_a_restarted_connector_repeats_change_nothing(scene: Scene) -> None:
    table = scene.ledger("resent")
    events = table.insert(0, 30) + table.update(range(0, 30, 2), "two") + table.delete([4, 5])
    events += table.insert(4, 5) + table.update([4, 6], "three")
    scene.take_in(send(scene.sender, events))
    before = scene.lake.table(table.topic).read(include_system=True)
    scene.take_in(send(scene.sender, events[-15:]))
    scene.take_in(send(scene.sender, events))
    assert compare(before, scene.lake.table(table.topic).read(include_system=True), ["id"]) is None
    assert scene.repeated(table) > 0
    scene.holds_the_truth(table)


def test_the_highest_position_of_a_key_wins_whatever_partition_brings_it(
    scene: Scene, seed: int
) -> None:
    """As after the topic was given more partitions: each in order, none aware of the others."""
    table = scene.ledger("two_partitions")
    events = table.insert(0, 6)
    for number in range(8):
        events += table.update(range(6), f"update {number}")
    events += table.delete([0, 1]) + table.insert(1, 2)
    random = Random(seed)
    spread = [(event, random.randrange(PARTITIONS)) for event in events]
    # The partitions arrive one after the other, the last one first.
    records = []
    for partition in reversed(range(PARTITIONS)):
        own = [event for event, at in spread if at == partition]
        records += scene.sender.send_all((e.topic, partition, e.key, e.value) for e in own)
        scene.take_in(records)
    scene.holds_the_truth(table)


def test_positions_that_fall_back_without_a_transaction_id_park_their_table_alone(
    scene: Scene,
) -> None:
    table, neighbour = scene.ledger("fell_back"), scene.ledger("stood")
    scene.take_in(send(scene.sender, table.insert(0, 10)))
    (event,) = table.update([3], "from another server")
    fallen = scene.sender.send(event.topic, partition_of(event), event.key, elsewhere(event, None))
    scene.service.until(lambda: scene.lake.parked(table.topic) is not None, "the table parks")
    reason = scene.lake.parked(table.topic)
    assert reason is not None
    assert reason.code is ParkCode.POSITIONS_FELL_BACK
    assert (reason.partition, reason.offset) == (fallen.partition, fallen.offset)
    assert "--new-epoch" in reason.detail
    texts = scene.lake.table(table.topic).read()["text"].to_pylist()
    assert sorted(texts) == sorted(f"row {key}" for key in range(10))
    scene.take_in(send(scene.sender, neighbour.insert(0, 10)))
    scene.holds_the_truth(neighbour)


def test_a_server_that_takes_over_with_lower_positions_is_followed(scene: Scene) -> None:
    table = scene.ledger("failed_over")
    scene.take_in(send(scene.sender, table.insert(0, 30)))
    moved = table.update(range(20), "from another server")
    scene.take_in(
        [
            scene.sender.send(e.topic, partition_of(e), e.key, elsewhere(e, f"0-77-{100 + at}", at))
            for at, e in enumerate(moved)
        ]
    )
    scene.holds_the_truth(table)
    source = scene.lake.table(table.topic).snapshot.manifest.source
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


def test_aborted_transactions_leave_holes_that_are_no_loss(scene: Scene, seed: int) -> None:
    table = scene.ledger("transactions")
    producer = Producer(
        {"bootstrap.servers": scene.bootstrap_servers, "transactional.id": table.topic}
    )
    producer.init_transactions(60)
    random = Random(seed)
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
    scene.take_in(send(scene.sender, table.update(range(100), "after the holes")))
    scene.holds_the_truth(table)


def test_a_recreated_topic_parks_its_table_and_the_others_continue(scene: Scene) -> None:
    table, neighbour = scene.ledger("made_anew"), scene.ledger("stayed")
    scene.take_in(send(scene.sender, table.insert(0, 10) + neighbour.insert(0, 10)))
    truth = table.truth
    admin = KafkaAdminClient(bootstrap_servers=scene.bootstrap_servers)
    admin.delete_topics([table.topic], timeout_ms=30_000)
    scene.service.until(lambda: table.topic not in admin.list_topics(), "the topic is gone")
    scene.take_in(send(scene.sender, neighbour.update(range(5), "the other is gone")))
    make_topics(scene.bootstrap_servers, {table.topic: PARTITIONS})
    admin.close()
    send(scene.sender, table.insert(10, 40))
    scene.service.until(lambda: scene.lake.parked(table.topic) is not None, "the table parks")
    reason = scene.lake.parked(table.topic)
    assert reason is not None
    assert reason.code is ParkCode.TOPIC_RECREATED
    assert compare(truth, scene.lake.table(table.topic).read(), ["id"]) is None
    scene.take_in(send(scene.sender, neighbour.update(range(10), "the other came anew")))
    scene.holds_the_truth(neighbour)


def test_a_truncate_empties_the_table_for_changes_that_come_late_too(scene: Scene) -> None:
    table = scene.ledger("truncated")
    first = table.insert(0, 20)
    late = table.update(range(5), "late")
    (gone, *_) = table.delete(range(20))
    after = table.insert(3, 9)
    record = json.loads(gone.value or b"")
    record["payload"].update(op="t", before=None, after=None)
    scene.take_in(send(scene.sender, first))
    truncate = scene.sender.send(gone.topic, 1, None, json.dumps(record).encode())
    scene.take_in([truncate, *send(scene.sender, after)])
    scene.take_in(send(scene.sender, late))
    scene.holds_the_truth(table)


def test_a_table_without_a_key_is_reported_by_the_columns_configured(scene: Scene) -> None:
    table = scene.ledger("keyless")
    events = table.insert(0, 20) + table.update(range(5), "later") + table.delete([1, 7])
    rows = [event for event in events if event.value is not None]
    scene.take_in(scene.sender.send_all((e.topic, 0, None, e.value) for e in rows))
    scene.holds_the_truth(table)

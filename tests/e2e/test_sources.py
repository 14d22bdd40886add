"""A service loses its broker, then is killed and loses its checkpoints, then loses parts of its
topics.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import pytest
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from lakesplice.model.parking import ParkCode
from lakesplice.testing.broker import LocalBroker
from lakesplice.testing.oracle import Record
from tests.support.command_line import CommandLine
from tests.support.ledgers import PARTITIONS, Ledger, partition_of, send
from tests.support.running import Lake, RunningService, ends_of, require_table, take_in
from tests.support.topics import Sender, make_topics
from tests.support.waiting import until

SECONDS_MAX = 60.0


@dataclass
class Tables:
    """What becomes of each while the service is down."""

    steady: Ledger
    truncated: Ledger
    anew: Ledger
    fallen: Ledger
    truncated_on: Ledger
    anew_on: Ledger

    @property
    def all(self) -> tuple[Ledger, ...]:
        kept = (self.steady, self.truncated, self.anew, self.fallen)
        return (*kept, *self.going_on)

    @property
    def going_on(self) -> tuple[Ledger, ...]:
        """Those that continue without what the broker lost."""
        return (self.truncated_on, self.anew_on)


def test_a_service_continues_from_its_tables_whatever_else_is_lost(
    own_broker: LocalBroker,
    tmp_path: Path,
    lakesplice: CommandLine,
    seed: int,
    request: pytest.FixtureRequest,
) -> None:
    servers = own_broker.bootstrap_servers
    tables = Tables(**{field.name: Ledger("sources", field.name) for field in fields(Tables)})
    make_topics(servers, {table.topic: PARTITIONS for table in tables.all})
    going_on = {"match": "*_on.ledger", "missing_offsets": "continue"}
    # The second service waits for the lease of the first, which is killed.
    lake = Lake(tmp_path / "one", servers, r"sources\..*", lease=3, tables=[going_on])
    with lake.running(own_jvm=True) as service:
        outlives_its_broker(service, lake, own_broker, tables)
        every_one = request.config.getoption("--nightly")
        tears = [*TEARS] if every_one else [[*TEARS][seed % len(TEARS)]]
        needs_no_checkpoint(service, lake, servers, tables.steady, tears)
        offset = falls_back(service, lake, servers, tables.fallen)
        service.kill()
    # Its checkpoints lay there; a new service must not need them.
    shutil.rmtree(lake.scratch)
    change_topics(servers, tables)
    unpark(lakesplice, lake, tables.fallen, offset)
    with lake.running() as service:
        goes_on(service, lake, servers, tables)
        service.terminate()
        service.ends_well()


def outlives_its_broker(
    service: RunningService, lake: Lake, broker: LocalBroker, tables: Tables
) -> None:
    servers = broker.bootstrap_servers
    records = send(Sender(servers), [e for table in tables.all for e in table.insert(0, 20)])
    take_in(service, lake, ends_of(records))
    broker.kill()
    failures = len(lake.said("query-failed"))
    service.until(lambda: len(lake.said("query-failed")) > failures, "the broker is missed")
    broker.start()
    records = send(Sender(servers), [e for t in tables.all for e in t.update(range(9), "back")])
    take_in(service, lake, ends_of(records))
    for table in tables.all:
        require_table(lake, table.topic, table.truth)


def tear_offsets(checkpoint: Path) -> None:
    for file in (checkpoint / "offsets").iterdir():
        file.write_bytes(b"v1\n{")


TEARS: dict[str, Callable[[Path], object]] = {
    "offsets are torn": tear_offsets,
    "all is gone": shutil.rmtree,
}


def needs_no_checkpoint(
    service: RunningService, lake: Lake, servers: str, table: Ledger, tears: Sequence[str]
) -> None:
    """The running query's offset log is torn, or its whole checkpoint vanishes."""
    for what in tears:
        for checkpoint in lake.scratch.glob("lakesplice-query-*"):
            TEARS[what](checkpoint)
        records = send(Sender(servers), table.update(range(20), what))
        take_in(service, lake, ends_of(records))
        require_table(lake, table.topic, table.truth)


def falls_back(service: RunningService, lake: Lake, servers: str, table: Ledger) -> Record:
    """Park the table by a record whose position can't be explained; return that record."""
    (event,) = Ledger("sources", "fallen").insert(500, 501)
    record = json.loads(event.value or b"")
    record["payload"]["source"].update(file="binlog.000001", pos=5, gtid=None)
    value = json.dumps(record).encode()
    fallen = Sender(servers).send(table.topic, partition_of(event), event.key, value)
    service.until(lambda: lake.parked(table.topic) is not None, "the table parks")
    lake.require_parked(table.topic, ParkCode.POSITIONS_FELL_BACK)
    return fallen


def change_topics(servers: str, tables: Tables) -> None:
    """Drop records that were never applied from topics, and make others anew."""
    truncated, anew = (tables.truncated, tables.truncated_on), (tables.anew, tables.anew_on)
    records = send(
        Sender(servers), [e for one in truncated for e in one.update(range(20), "never applied")]
    )
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.delete_records(
        {TopicPartition(topic, at): end for (topic, at), end in ends_of(records).items()}
    )
    topics = {one.topic for one in anew}
    admin.delete_topics([*topics], timeout_ms=30_000)
    kept = f"the broker forgets {topics}"
    until(lambda: not topics & set(admin.list_topics()), kept, SECONDS_MAX)
    admin.close()
    make_topics(servers, dict.fromkeys(topics, PARTITIONS))
    for one in anew:
        send(Sender(servers), one.update(range(20), "in another topic") * 5)


def unpark(lakesplice: CommandLine, lake: Lake, table: Ledger, skipped: Record) -> None:
    """`lakesplice unpark`, past the record that nobody can place."""
    onward = f"{skipped.partition}:{skipped.offset + 1}"
    assert lakesplice("unpark", lake.path(table.topic), "--from-offset", onward).code == 0
    assert lake.parked(table.topic) is None


def goes_on(service: RunningService, lake: Lake, servers: str, tables: Tables) -> None:
    parked = {tables.truncated: ParkCode.OFFSETS_GONE, tables.anew: ParkCode.TOPIC_RECREATED}
    onward = (tables.steady, tables.fallen, *tables.going_on)
    records = send(Sender(servers), [e for t in onward for e in t.update(range(20), "onward")])
    take_in(service, lake, ends_of(records))
    for table in onward:
        require_table(lake, table.topic, table.truth)
    gaps = {t.topic: lake.table(t.topic).snapshot.manifest.sources[t.topic].gaps for t in onward}
    assert {gap.end is None for gap in gaps[tables.truncated_on.topic]} == {False}
    assert {gap.end is None for gap in gaps[tables.anew_on.topic]} == {True}
    assert sum(gap.offsets for gap in gaps[tables.truncated_on.topic]) == 20
    for table, code in parked.items():
        lake.require_parked(table.topic, code)
        texts = set(lake.table(table.topic).read()["text"].to_pylist())
        assert texts == {"back", *(f"row {key}" for key in range(9, 20))}

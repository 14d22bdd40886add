"""Captured records of a real connector, replayed one by one, end in the workload's rows.

In the gate a driver without a service takes them in (conformance/test_event_formats.py), and a
service those in Avro (together/test_avro.py).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from lakesplice.model.names import IS_DELETED
from lakesplice.model.parking import ParkCode
from lakesplice.testing.compare import compare
from lakesplice.testing.oracle import Record
from tests.support.readers import READERS
from tests.support.running import Lake, ends_of, take_in
from tests.support.topics import make_topics, read_capture, resend
from tests.support.workload import DECLARED, TRUTH, truth

TABLES = ("orders", "audit", "customers", "nopk", "debezium_signal")
# Where the workload is cut in three: before two of its transactions, so that later changes meet
# their rows in base files; and before the first change that parks its table, at 17823, up to which
# all partitions have to come. The last one before it, at 16983, has a decimal's new scale.
CUTS = (11_000, 17_400)

pytestmark = pytest.mark.nightly


@dataclass(frozen=True)
class Replayed:
    """A lake that took in a capture."""

    name: str
    prefix: str
    lake: Lake

    def topic(self, table: str) -> str:
        return f"{self.prefix}.{self.name}.shop.{table}"


def in_parts(records: list[Record]) -> list[list[Record]]:
    """Cut the records at CUTS; a tombstone goes with its delete."""
    parts: list[list[Record]] = [[] for _ in range(len(CUTS) + 1)]
    reached: dict[tuple[str, int], int] = {}
    for record in sorted(records, key=lambda record: record[:3]):
        place = record.topic, record.partition
        if record.value is not None:
            value = json.loads(record.value)
            reached[place] = value.get("payload", value)["source"]["pos"]
        parts[sum(reached[place] > cut for cut in CUTS)].append(record)
    return parts


def all_spliced(lake: Lake, topics: Sequence[str]) -> bool:
    return not any(lake.table(topic).snapshot.manifest.deltas for topic in topics)


@pytest.fixture(scope="module", params=["dbsch", "dbplain"])
def replayed(
    request: pytest.FixtureRequest,
    kafka_broker: str,
    shared: Callable[..., Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Replayed:
    """The capture in topics of its own, taken in by a running service and spliced in."""
    name = str(request.param)
    prefix = f"captures-{secrets.token_hex(4)}"
    path = shared("examples", "captures") / f"debezium-mariadb-{name}.jsonl"
    records = read_capture(path, prefix)
    declared = [{"match": f"shop.{table}", "columns": types} for table, types in DECLARED.items()]
    lake = Lake(
        tmp_path_factory.mktemp(name),
        kafka_broker,
        rf"{prefix}\.{name}\.shop\..*",
        **({"tables": declared} if name == "dbplain" else {}),
        schema_changes={"drop_column": "exception", "rename_column": "exception"},
        compaction={"deltas_max": 1, "poll_seconds": 0.1},
    )
    replayed = Replayed(name, prefix, lake)
    whole = [replayed.topic(table) for table in ("orders", "audit")]
    customers = replayed.topic("customers")
    make_topics(kafka_broker, {record.topic: 3 for record in records})
    ends: dict[tuple[str, int], int] = {}
    with lake.running() as service:
        for number, part in enumerate(in_parts(records)):
            resend(kafka_broker, part)
            last = number == len(CUTS)
            # Tables that are parked by now, and what parks them, are not waited for.
            topics = [*whole, *([] if last else [customers])]
            ends |= ends_of(record for record in part if record.topic in topics)
            take_in(service, lake, ends)
        topics = [*whole, customers]
        service.until(lambda: lake.parked(customers) is not None, "customers are parked")
        service.until(lambda: all_spliced(lake, topics), "every change is in its base file")
        service.terminate()
        service.ends_well()
    return replayed


@pytest.mark.parametrize("view", ["real_time", "read_optimised"])
@pytest.mark.parametrize("table", TRUTH)
def test_a_table_ends_as_its_workload_says(replayed: Replayed, table: str, view: str) -> None:
    rows, key = truth(replayed.name, table)
    actual = replayed.lake.table(replayed.topic(table)).read(view)
    assert compare(pa.Table.from_pylist(rows, actual.schema), actual, key) is None


def test_tables_that_nothing_is_wrong_with_continue(replayed: Replayed) -> None:
    running = [t for t in TABLES if replayed.lake.parked(replayed.topic(t)) is None]
    undeclared = [] if replayed.name == "dbplain" else ["debezium_signal"]
    assert running == ["orders", "audit", *undeclared]


def test_the_first_change_that_the_table_cannot_follow_parks_it(replayed: Replayed) -> None:
    reason = replayed.lake.require_parked(replayed.topic("customers"), ParkCode.SCHEMA_CHANGE)
    # A decimal's new scale, before it, is followed; without schemas it can't be seen.
    assert "column='small_u'" in reason.detail
    kind = replayed.lake.table(replayed.topic("customers")).schema.field("balance").type
    assert kind.scale == (4 if replayed.name == "dbsch" else 2)


def test_a_table_without_a_key_is_parked_empty(replayed: Replayed) -> None:
    topic = replayed.topic("nopk")
    replayed.lake.require_parked(topic, ParkCode.NO_KEY)
    assert replayed.lake.table(topic).read().num_rows == 0


def test_a_table_whose_types_nobody_declared_is_parked(replayed: Replayed) -> None:
    reason = replayed.lake.parked(replayed.topic("debezium_signal"))
    if replayed.name == "dbsch":
        assert reason is None
        return
    assert reason is not None
    assert reason.code is ParkCode.TYPES_UNDECLARED


@pytest.mark.parametrize("engine", READERS)
@pytest.mark.parametrize("table", TRUTH)
def test_every_version_reads_the_same_elsewhere(
    replayed: Replayed, table: str, engine: str
) -> None:
    ours = replayed.lake.table(replayed.topic(table))
    path = replayed.lake.path(replayed.topic(table))
    versions = [entry.version for entry in ours.history()]
    assert versions == list(range(ours.version, -1, -1))
    for version in versions:
        expected = ours.read(
            "read_optimised", version=version, include_deleted=True, include_system=True
        )
        assert IS_DELETED in expected.column_names
        difference = compare(expected, READERS[engine](path, version), TRUTH[table][1])
        assert difference is None, f"version={version}"

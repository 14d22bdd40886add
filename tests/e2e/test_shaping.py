"""A service leaves out, renames, masks and computes columns while sources change their schemas."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from lakesplice import Table
from lakesplice.model.parking import ParkCode
from lakesplice.testing.oracle import Record
from lakesplice.testing.producer import create_topics
from lakesplice.testing.shop import Event
from tests.support.altered import event
from tests.support.running import Lake, ends_of, take_in
from tests.support.topics import Sender

NARROW = {"id": "int32", "n": "int32", "name": "string"}
WIDE = {**NARROW, "n": "int64"}
OTHER = {**NARROW, "n": "boolean"}


def send(servers: str, *events: Event, partition: int = 0) -> list[Record]:
    sent = ((event.topic, partition, event.key, event.value) for event in events)
    return Sender(servers).send_all(sent)


def test_tables_are_passed_over_renamed_masked_computed_and_follow_their_policy(
    kafka_broker: str, topic_name: str, tmp_path: Path
) -> None:
    names = ("people", "strict", "left", "kept")
    people, strict, left, kept = (f"{topic_name}.s.{name}" for name in names)
    create_topics(kafka_broker, [people, strict, left, kept], partitions=1)
    lake = Lake(
        tmp_path,
        kafka_broker,
        rf"{topic_name}\..*",
        masking={"secret": "pepper-and-salt-4711"},
        metadata={"columns": ["op", "table_name"], "prefix": "m_"},
        tables=[
            {"match": "s.left", "read": False},
            {"match": "s.kept", "mode": "history", "shape": {"exclude": ["n"], "metadata": []}},
            {
                "match": "/s\\.(peo)(ple)/",
                "to": "crm.\\1_\\2",
                "also": ["history"],
                "shape": {"masks": {"name": "hash"}, "computed": {"tens": "truncate(id, 10)"}},
                "schema_changes": {"alter_column_type": "lenient"},
            },
        ],
    )
    row = {"id": 11, "n": 7, "name": "Annabella"}
    for topic in (people, strict, left, kept):
        send(kafka_broker, event(NARROW, 1, row, topic=topic))
    lake.once()
    changed = {**row, "name": "Anna"}
    versions = (
        event(NARROW, 2, changed, row, topic=kept),
        event(NARROW, 3, {**changed, "n": 8}, changed, topic=kept),
        event(NARROW, 4, None, changed, topic=kept),
        event(NARROW, 5, {**row, "name": "Bella"}, topic=kept),
    )
    send(kafka_broker, *(one for version in versions for one in (version, version)))
    later = {"id": 12, "n": 1 << 40, "name": "B"}
    for topic in (people, strict):
        send(kafka_broker, event(WIDE, 2, later, topic=topic))
        send(kafka_broker, event(OTHER, 3, {"id": 23, "n": True, "name": "C"}, topic=topic))
    lake.once()

    assert not (lake.root / "s" / "left").exists()
    assert not (lake.root / "s" / "people").exists()
    renamed = lake.root / "crm" / "peo_ple"
    found = Table.open(str(renamed)).read().sort_by("id")
    assert found.column("n").to_pylist() == [7, 1 << 40, None]
    assert found.column("n_2").to_pylist() == [None, None, True]
    assert found.column("tens").to_pylist() == [10, 10, 20]
    assert found.column("m_table_name").to_pylist() == ["people"] * 3
    assert set(found.column("m_op").to_pylist()) <= {"c", "u", "r"}
    assert all(len(name) == 32 for name in found.column("name").to_pylist())
    beside = Table.open(str(lake.root / "crm" / "peo_ple_history"))
    columns = ["id", "n", "n_2", "name", "tens"]
    current = beside.read_history(columns, current=True)
    assert current.select(columns).sort_by("id").equals(found.select(columns))
    files = [path for path in (lake.root / "crm").rglob("*") if path.is_file()]
    assert not [path for path in files if b"Annabella" in path.read_bytes()]

    history = lake.table(kept)
    found = history.read_history(["name"])
    assert found.select(["name", "is_current"]).to_pylist() == [
        {"name": "Annabella", "is_current": False},
        {"name": "Anna", "is_current": False},
        {"name": "Bella", "is_current": True},
    ]
    assert history.read().num_rows == 5

    parked = lake.parked(strict)
    assert parked is not None
    assert parked.code is ParkCode.SCHEMA_CHANGE
    theirs = DeltaTable(str(lake.path(strict))).to_pyarrow_table(columns=["n"])
    assert theirs.schema.field("n").type == pa.int64()
    assert sorted(theirs.column("n").to_pylist()) == [7, 1 << 40]


def test_a_service_keeps_partitions_apart_and_moves_rows_between_them(
    kafka_broker: str, topic_name: str, tmp_path: Path
) -> None:
    topic = f"{topic_name}.s.people"
    create_topics(kafka_broker, [topic], partitions=2)
    shape = {"computed": {"tens": "truncate(n, 10)"}}

    def lake_by(*columns: str) -> Lake:
        entry = {"match": "s.people", "shape": {**shape, "partition_by": [*columns]}}
        return Lake(
            tmp_path,
            kafka_broker,
            rf"{topic_name}\..*",
            tables=[entry],
            # What others read, base files alone, is whole soon.
            compaction={"deltas_max": 1, "poll_seconds": 0.1},
        )

    lake = lake_by("name", "tens")

    def row(key: int, n: int, name: str | None) -> dict[str, int | str | None]:
        return {"id": key, "n": n, "name": name}

    def state() -> list[tuple[int, int, str | None]]:
        found = lake.table(topic).read().sort_by("id").to_pylist()
        return [(one["id"], one["n"], one["name"]) for one in found]

    born = [row(1, 7, "a"), row(2, 8, "a"), row(3, 31, "b"), row(4, 4, None)]
    with lake.running() as service:
        made = [event(NARROW, at, one, topic=topic) for at, one in enumerate(born, 1)]
        take_in(service, lake, ends_of(send(kafka_broker, *made)))
        records = send(
            kafka_broker,
            event(NARROW, 10, row(1, 7, "b"), row(1, 7, "a"), topic=topic),
            event(NARROW, 11, row(2, 12, "a"), row(2, 8, "a"), topic=topic),
            event(NARROW, 12, None, row(3, 31, "b"), topic=topic),
        )
        take_in(service, lake, ends_of(records))
        assert state() == [(1, 7, "b"), (2, 12, "a"), (4, 4, None)]
        # What was sent before comes again, by another partition, and moves nothing back.
        records = send(
            kafka_broker,
            event(NARROW, 5, row(1, 7, "z"), row(1, 7, "a"), topic=topic),
            event(NARROW, 10, row(1, 7, "b"), row(1, 7, "a"), topic=topic),
            partition=1,
        )
        records += send(
            kafka_broker,
            event(NARROW, 20, row(2, 13, "a"), row(2, 12, "a"), topic=topic),
            event(NARROW, 21, row(1, 40, "c"), row(1, 7, "b"), topic=topic),
        )
        take_in(service, lake, ends_of(records))
        assert state() == [(1, 40, "c"), (2, 13, "a"), (4, 4, None)]
        service.until(lambda: not lake.table(topic).snapshot.manifest.deltas, "all is spliced in")
        service.terminate()
        service.ends_well()
    theirs = DeltaTable(str(lake.path(topic)))
    assert theirs.metadata().partition_columns == ["name", "tens"]
    (moved,) = theirs.file_uris(file_pruning_predicate="name = 'c' and tens = 40")
    assert "/name=c/tens=40/" in moved

    send(kafka_broker, event(NARROW, 30, row(5, 5, "a"), topic=topic))
    lake_by("name").once()
    parked = lake.parked(topic)
    assert parked is not None
    assert "shape.partition_by" in parked.detail
    assert len(state()) == 3

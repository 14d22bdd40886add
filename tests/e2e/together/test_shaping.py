"""A service leaves out, renames, masks and computes columns while sources change their schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from lakesplice import Table
from lakesplice.errors import TableNotFoundError
from lakesplice.model.parking import ParkCode
from lakesplice.testing.oracle import Record
from lakesplice.testing.producer import create_topics
from lakesplice.testing.shop import Event
from tests.support.altered import event
from tests.support.running import ends_of, stands_at
from tests.support.stories import ENDED, Stage, Step, Until, story

NARROW = {"id": "int32", "n": "int32", "name": "string"}
WIDE = {**NARROW, "n": "int64"}
OTHER = {**NARROW, "n": "boolean"}
SHAPED: list[dict[str, Any]] = [
    {"match": "s.left", "read": False},
    {"match": "s.kept", "mode": "history", "shape": {"exclude": ["n"], "metadata": []}},
    {
        "match": "/s\\.(peo)(ple)/",
        "to": "crm.\\1_\\2",
        "also": ["history"],
        "shape": {
            "masks": {"name": "hash"},
            "computed": {"tens": "truncate(id, 10)"},
            "metadata": ["op", "table_name"],
        },
        "schema_changes": {"alter_column_type": "lenient"},
    },
]


def send(stage: Stage, *events: Event, partition: int = 0) -> list[Record]:
    sent = ((event.topic, partition, event.key, event.value) for event in events)
    return stage.sender.send_all(sent)


@story
def test_tables_are_passed_over_renamed_masked_computed_and_follow_their_policy(
    stage: Stage,
) -> Iterator[Step]:
    lake, server = stage.lake, stage.server("shaped")
    names = ("people", "strict", "left", "kept")
    people, strict, left, kept = (f"{server}.s.{name}" for name in names)
    create_topics(stage.bootstrap_servers, [people, strict, left, kept], partitions=1)
    stage.configure(masking={"secret": "pepper-and-salt-4711"}, tables=SHAPED)
    row = {"id": 11, "n": 7, "name": "Annabella"}
    records = [
        record
        for topic in (people, strict, left, kept)
        for record in send(stage, event(NARROW, 1, row, topic=topic))
    ]
    moved = {people: lake.root / "crm" / "peo_ple"}
    yield stands_there(stage, [one for one in records if one.topic != left], moved)
    changed = {**row, "name": "Anna"}
    versions = (
        event(NARROW, 2, changed, row, topic=kept),
        event(NARROW, 3, {**changed, "n": 8}, changed, topic=kept),
        event(NARROW, 4, None, changed, topic=kept),
        event(NARROW, 5, {**row, "name": "Bella"}, topic=kept),
    )
    records = send(stage, *(one for version in versions for one in (version, version)))
    later = {"id": 12, "n": 1 << 40, "name": "B"}
    for topic in (people, strict):
        records += send(stage, event(WIDE, 2, later, topic=topic))
        last = send(stage, event(OTHER, 3, {"id": 23, "n": True, "name": "C"}, topic=topic))
        records += last if topic == people else []
    yield stands_there(stage, records, moved)
    yield stage.parks(strict)
    yield Until(lambda: is_spliced_in(lake.table(strict)), "what others read is whole")

    assert not (lake.root / "s" / "left").exists()
    assert not (lake.root / "s" / "people").exists()
    renamed = lake.root / "crm" / "peo_ple"
    found = Table.open(str(renamed)).read().sort_by("id")
    assert found.column("n").to_pylist() == [7, 1 << 40, None]
    assert found.column("n_2").to_pylist() == [None, None, True]
    assert found.column("tens").to_pylist() == [10, 10, 20]
    assert found.column("table_name").to_pylist() == ["people"] * 3
    assert set(found.column("op").to_pylist()) <= {"c", "u", "r"}
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

    lake.require_parked(strict, ParkCode.SCHEMA_CHANGE)
    theirs = DeltaTable(str(lake.path(strict))).to_pyarrow_table(columns=["n"])
    assert theirs.schema.field("n").type == pa.int64()
    assert sorted(theirs.column("n").to_pylist()) == [7, 1 << 40]


@story
def test_a_service_keeps_partitions_apart_and_moves_rows_between_them(
    stage: Stage,
) -> Iterator[Step]:
    lake, topic = stage.lake, f"{stage.server('parted')}.parted.people"
    create_topics(stage.bootstrap_servers, [topic], partitions=2)

    def partition_by(*columns: str) -> None:
        shape = {"computed": {"tens": "truncate(n, 10)"}, "partition_by": [*columns]}
        stage.configure(tables=[{"match": "parted.people", "shape": shape}])

    def row(key: int, n: int, name: str | None) -> dict[str, int | str | None]:
        return {"id": key, "n": n, "name": name}

    def state() -> list[tuple[int, int, str | None]]:
        found = lake.table(topic).read().sort_by("id").to_pylist()
        return [(one["id"], one["n"], one["name"]) for one in found]

    partition_by("name", "tens")
    born = [row(1, 7, "a"), row(2, 8, "a"), row(3, 31, "b"), row(4, 4, None)]
    made = [event(NARROW, at, one, topic=topic) for at, one in enumerate(born, 1)]
    yield stage.taken_in(send(stage, *made))
    records = send(
        stage,
        event(NARROW, 10, row(1, 7, "b"), row(1, 7, "a"), topic=topic),
        event(NARROW, 11, row(2, 12, "a"), row(2, 8, "a"), topic=topic),
        event(NARROW, 12, None, row(3, 31, "b"), topic=topic),
    )
    yield stage.taken_in(records)
    assert state() == [(1, 7, "b"), (2, 12, "a"), (4, 4, None)]
    # What was sent before comes again, by another partition, and moves nothing back.
    records = send(
        stage,
        event(NARROW, 5, row(1, 7, "z"), row(1, 7, "a"), topic=topic),
        event(NARROW, 10, row(1, 7, "b"), row(1, 7, "a"), topic=topic),
        partition=1,
    )
    records += send(
        stage,
        event(NARROW, 20, row(2, 13, "a"), row(2, 12, "a"), topic=topic),
        event(NARROW, 21, row(1, 40, "c"), row(1, 7, "b"), topic=topic),
    )
    yield stage.taken_in(records)
    assert state() == [(1, 40, "c"), (2, 13, "a"), (4, 4, None)]
    yield Until(lambda: is_spliced_in(lake.table(topic)), "all is spliced in")
    theirs = DeltaTable(str(lake.path(topic)))
    assert theirs.metadata().partition_columns == ["name", "tens"]
    (moved,) = theirs.file_uris(file_pruning_predicate="name = 'c' and tens = 40")
    assert "/name=c/tens=40/" in moved
    yield ENDED
    send(stage, event(NARROW, 30, row(5, 5, "a"), topic=topic))
    partition_by("name")
    yield stage.parks(topic)
    parked = lake.parked(topic)
    assert parked is not None
    assert "shape.partition_by" in parked.detail
    assert len(state()) == 3


def is_spliced_in(table: Table) -> bool:
    return not table.snapshot.manifest.deltas


def stands_there(stage: Stage, records: list[Record], elsewhere: Mapping[str, Path]) -> Until:
    """The tables hold the records; those of some topics are in other folders."""
    ends = ends_of(records)

    def found() -> bool:
        with suppress(TableNotFoundError):
            for topic, folder in elsewhere.items():
                if Table.open(str(folder)).offsets[0] < ends[topic, 0]:
                    return False
            here = {place: end for place, end in ends.items() if place[0] not in elsewhere}
            return stands_at(stage.lake, here)
        return False

    return Until(found, f"the tables stand at {ends}")

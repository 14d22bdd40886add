"""Malformed records among good ones: each is counted, and no other record is affected.

One run over one lake has all of them: the same damage in tables with and without schemas in their
events, an undamaged table beside each, and tables that one record parks. In the gate
`tests/property/test_bad_company_laws.py` damages drawn records of every format in JSON, without a
service, and `tests/e2e/together/test_dead_letters.py` sends some to one.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from lakesplice.model.parking import ParkCode
from lakesplice.testing.compare import compare
from lakesplice.testing.oracle import Record
from lakesplice.testing.shop import Database, Event
from tests.support.ledgers import PARTITIONS, ledger, partition_of
from tests.support.malformed import GIANT_BYTES, MALFORMED
from tests.support.running import Lake, environment
from tests.support.topics import Sender, make_topics

pytestmark = pytest.mark.nightly

STOPS = {
    "no_key": ParkCode.NO_KEY,
    "thinned": ParkCode.SCHEMA_CHANGE,
    "retyped": ParkCode.SCHEMA_CHANGE,
}
VARIANTS = ("schemas", "plain")


@dataclass
class Scene:
    """What was sent, and the lake that took it in."""

    lake: Lake
    sources: dict[str, Database]
    bad: dict[tuple[str, int, int], str] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    stopped_at: dict[str, Record] = field(default_factory=dict)

    def topic(self, variant: str, table: str) -> str:
        return self.sources[variant].topic(table)


def work(database: Database, table: str) -> Iterator[Event]:
    """Inserts, updates, deletes with their tombstones, a key change, and a giant row."""
    rows = [(key, f"row {key}", key, key * 10_000, key * 1_000) for key in range(80)]
    for start in range(0, 80, 20):
        database.insert(table, rows[start : start + 20])
    for key in range(0, 80, 3):
        database.update(table, [(key,)], lambda row: (row[0], "again", *row[2:]))
    database.delete(table, [(key,) for key in range(0, 80, 10)])
    database.update(table, [(7,)], lambda row: (707, *row[1:]))
    database.update(table, [(8,)], lambda row: (*row[:1], "giant " * (GIANT_BYTES // 6), *row[2:]))
    yield from database.drain()


@pytest.fixture(scope="module")
def scene(kafka_broker: str, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    prefix = f"malformed-{secrets.token_hex(4)}"
    sources = {
        variant: Database(
            [ledger(name) for name in ("ledger", "calm", *STOPS)],
            server=prefix,
            database=variant,
            with_schemas=variant == "schemas",
        )
        for variant in VARIANTS
    }
    declared = sources["plain"].declared_types()["ledger"]
    lake = Lake(
        tmp_path_factory.mktemp("malformed"),
        kafka_broker,
        rf"{prefix}\..*",
        schema_changes={"drop_column": "exception", "rename_column": "exception"},
        kafka={"offsets_per_batch_max": 150},
        dead_letters={"share_max": 1},
        compaction={"deltas_max": 1, "poll_seconds": 0.1},
        tables=[{"match": "plain.*", "columns": dict(declared)}],
    )
    scene = Scene(lake, sources)
    topics = {scene.topic(v, t): PARTITIONS for v in VARIANTS for t in ("ledger", "calm")}
    topics |= {scene.topic(v, t): 1 for v in VARIANTS for t in STOPS}
    make_topics(kafka_broker, topics)
    sender = Sender(kafka_broker)
    for variant in VARIANTS:
        spoil(scene, sender, variant)
        for event in work(sources[variant], "calm"):
            scene.records.append(
                sender.send(event.topic, partition_of(event), event.key, event.value)
            )
        for table in STOPS:
            stop(scene, sender, variant, table)
    lake.once()
    return scene


def spoil(scene: Scene, sender: Sender, variant: str) -> None:
    """Send a table's changes, each kind of damage behind some of them, in the same partition."""
    kinds = list(MALFORMED)
    number = 0
    for event in work(scene.sources[variant], "ledger"):
        partition = partition_of(event)
        good = sender.send(event.topic, partition, event.key, event.value)
        scene.records.append(good)
        image = json.loads(event.value or b"{}")
        is_row = image.get("payload", image).get("after") is not None
        if not is_row or len(event.value or b"") > GIANT_BYTES:
            continue
        kind = kinds[number % len(kinds)]
        number += 1
        assert event.key is not None
        assert event.value is not None
        key, value = MALFORMED[kind].make(event.key, event.value)
        bad = sender.send(event.topic, partition, key, value)
        scene.records.append(bad)
        scene.bad[bad.topic, bad.partition, bad.offset] = kind
    assert number >= len(kinds)


def stop(scene: Scene, sender: Sender, variant: str, table: str) -> None:
    """Send two rows, the record that stops the table, and one more that must not be applied."""
    database = scene.sources[variant]
    database.insert(table, [(1, "one", 1, 1, 1_000), (2, "two", 2, 2, 2_000)])
    first, second = database.drain()
    for event in (first, second):
        sender.send(event.topic, 0, event.key, event.value)
    key, value = stopping(table, second)
    scene.stopped_at[first.topic] = sender.send(first.topic, 0, key, value)
    sender.send(first.topic, 0, first.key, first.value)


def stopping(table: str, event: Event) -> tuple[bytes | None, bytes]:
    assert event.value is not None
    record = json.loads(event.value)
    payload = record.get("payload", record)
    fields = record["schema"]["fields"] if "schema" in record else []
    images = [member["fields"] for member in fields if member["field"] in ("before", "after")]
    key = event.key
    if table == "no_key":
        key = None
    elif table == "thinned":
        del payload["after"]["amount"]
        for image in images:
            image[:] = [column for column in image if column["field"] != "amount"]
    elif images:
        payload["after"]["amount"] = True  # no type holds both: a text would be followed
        for image in images:
            image[2]["type"] = "boolean"
    else:
        payload["after"]["amount_2"] = payload["after"].pop("amount")
    return key, json.dumps(record).encode()


@pytest.mark.parametrize("view", ["real_time", "read_optimised"])
@pytest.mark.parametrize("table", ["ledger", "calm"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_good_row_is_what_it_was(scene: Scene, variant: str, table: str, view: str) -> None:
    actual = scene.lake.table(scene.topic(variant, table)).read(view)
    assert compare(scene.sources[variant].truth(table), actual, ["id"]) is None


@pytest.mark.parametrize("variant", VARIANTS)
def test_applied_dead_and_ignored_add_up_to_the_records(scene: Scene, variant: str) -> None:
    for table in ("ledger", "calm"):
        topic = scene.topic(variant, table)
        counts: Counter[str] = Counter()
        for entry in scene.lake.table(topic).history():
            counts.update(entry.info.metrics)
        applied = sum(counts[op] for op in ("create", "update", "delete", "read"))
        dead = sum(count for name, count in counts.items() if name.startswith("dead:"))
        ignored = sum(count for name, count in counts.items() if name.startswith("ignored:"))
        sent = [record for record in scene.records if record.topic == topic]
        assert dead == sum(place[0] == topic for place in scene.bad)
        assert ignored == sum(record.value is None for record in sent)
        assert applied + dead + ignored == len(sent)


def test_each_is_listed_with_its_place_its_reason_and_its_bytes(scene: Scene) -> None:
    letters = listed(scene.lake)
    places = [(row["topic"], row["partition"], row["offset"]) for row in letters]
    assert sorted(places) == sorted(scene.bad)
    sent = {record[:3]: record for record in scene.records}
    for place, row in zip(places, letters, strict=True):
        kind = scene.bad[place]
        assert row["reason"] in MALFORMED[kind].reasons, (kind, row["reason"], row["detail"])
        assert row["detail"], kind
        for part in ("key", "value"):
            found = None if row[part] is None else b64decode(row[part])
            assert found == getattr(sent[place], part), kind


def listed(lake: Lake) -> list[dict[str, Any]]:
    """`lakesplice dlq list` as a script would call it."""
    main = "from lakesplice.apps.cli import main; main()"
    arguments = ["dlq", "list", str(lake.root), "--values", "--limit", "100000", "--format", "json"]
    ended = subprocess.run(
        [sys.executable, "-c", main, *arguments],
        env=environment(),
        capture_output=True,
        check=True,
        text=True,
    )
    return [json.loads(line) for line in ended.stdout.splitlines()]


@pytest.mark.parametrize("table", STOPS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_record_that_its_table_cannot_continue_with_parks_it_there(
    scene: Scene, variant: str, table: str
) -> None:
    topic = scene.topic(variant, table)
    reason = scene.lake.parked(topic)
    assert reason is not None
    undeclared = variant == "plain" and table == "retyped"
    assert reason.code is (ParkCode.TYPES_UNDECLARED if undeclared else STOPS[table])
    assert (reason.partition, reason.offset) == (0, scene.stopped_at[topic].offset)
    assert scene.lake.table(topic).offsets == {0: scene.stopped_at[topic].offset}
    rows = scene.lake.table(topic).read()
    assert compare(scene.sources[variant].truth(table), rows, ["id"]) is None

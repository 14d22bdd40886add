"""A connector's events in Avro pass through Kafka, a real registry and the running service."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from lakesplice.model.parking import ParkCode
from lakesplice.storage.local import LocalStore
from lakesplice.table.files.dead_letters import read_dead_letters
from lakesplice.testing.compare import compare
from lakesplice.testing.oracle import Record
from tests.support.apicurio import Apicurio
from tests.support.stories import Stage, Step, story
from tests.support.topics import make_topics, resend
from tests.support.workload import TRUTH


def read(folder: Path, prefix: str, registry: Apicurio) -> list[Record]:
    """The captured records of tables, naming their schemas by the numbers they get here."""
    kept = json.loads((folder / "debezium-mariadb-dbavro.schemas.json").read_text())
    numbers = {
        int(number): registry.register(f"{prefix}-{number}", entry["schema"])
        for number, entry in kept.items()
    }

    def bytes_of(content: dict[str, str] | None) -> bytes | None:
        if content is None:
            return None
        framed = base64.b64decode(content["base64"])
        (number,) = struct.unpack(">I", framed[1:5])
        return framed[:1] + struct.pack(">I", numbers[number]) + framed[5:]

    lines = (folder / "debezium-mariadb-dbavro.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if ".shop." in row["topic"]]
    return [
        Record(
            f"{prefix}.{row['topic']}",
            row["partition"],
            row["offset"],
            bytes_of(row["key"]),
            bytes_of(row["value"]),
        )
        for row in rows
    ]


@story
def test_captured_tables_end_as_their_workload_says_and_a_wrong_number_is_a_dead_letter(
    stage: Stage,
) -> Iterator[Step]:
    prefix, registry = stage.server("avro"), stage.fixture("schema_registry")
    records = read(stage.fixture("shared")("examples", "captures"), prefix, registry)
    make_topics(stage.bootstrap_servers, {record.topic: 3 for record in records})
    topics = {name: f"{prefix}.dbavro.shop.{name}" for name in ("orders", "audit", "customers")}
    place = topics["orders"], 0
    end = 1 + max(record.offset for record in records if record[:2] == place)
    poison = Record(*place, end, None, b"\0\0\x0f\xff\xff\x02")
    records.append(poison)
    strict = {"drop_column": "exception", "rename_column": "exception"}
    entry = {"match": "/shop\\.(orders|audit|customers)/", "schema_changes": strict}
    stage.configure(tables=[entry], schema_registry={"url": registry.compatible})
    resend(stage.bootstrap_servers, records)
    whole = (topics["orders"], topics["audit"])
    yield stage.taken_in(record for record in records if record.topic in whole)
    yield stage.parks(topics["customers"])
    for name in ("orders", "audit"):
        rows, key = TRUTH[name]
        actual = stage.lake.table(topics[name]).read("real_time")
        expected = pa.Table.from_pylist(rows, actual.schema)
        moments = [column for column in ("at",) if column in actual.column_names]
        # Another run of the workload: its moments are another clock's.
        difference = compare(expected.drop_columns(moments), actual.drop_columns(moments), key)
        assert difference is None
    stage.lake.require_parked(topics["customers"], ParkCode.SCHEMA_CHANGE)
    snapshot = stage.lake.table(topics["orders"]).snapshot
    (ref,) = snapshot.manifest.dead_letters
    store = LocalStore(stage.lake.path(topics["orders"]))
    (letter,) = read_dead_letters(store, ref).to_pylist()
    assert (letter["reason"], letter["value"]) == ("unknown-schema", poison.value)

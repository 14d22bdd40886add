"""A connector's events in Avro pass through Kafka, a real registry and the running service."""

from __future__ import annotations

import base64
import json
import secrets
import struct
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from lakesplice.model.parking import ParkCode
from lakesplice.storage.local import LocalStore
from lakesplice.table.files.dead_letters import read_dead_letters
from lakesplice.testing.compare import compare
from lakesplice.testing.oracle import Record
from tests.support.apicurio import Apicurio
from tests.support.running import Lake, ends_of, take_in
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


def test_captured_tables_end_as_their_workload_says_and_a_wrong_number_is_a_dead_letter(
    kafka_broker: str,
    schema_registry: Apicurio,
    shared: Callable[..., Path],
    tmp_path: Path,
) -> None:
    prefix = f"avro-{secrets.token_hex(4)}"
    records = read(shared("examples", "captures"), prefix, schema_registry)
    make_topics(kafka_broker, {record.topic: 3 for record in records})
    topics = {name: f"{prefix}.dbavro.shop.{name}" for name in ("orders", "audit", "customers")}
    place = topics["orders"], 0
    end = 1 + max(record.offset for record in records if record[:2] == place)
    poison = Record(*place, end, None, b"\0\0\x0f\xff\xff\x02")
    records.append(poison)
    lake = Lake(
        tmp_path,
        kafka_broker,
        rf"{prefix}\.dbavro\.shop\..*",
        schema_changes={"drop_column": "exception", "rename_column": "exception"},
        schema_registry={"url": schema_registry.compatible},
    )
    with lake.running() as service:
        resend(kafka_broker, records)
        whole = (topics["orders"], topics["audit"])
        take_in(service, lake, ends_of(record for record in records if record.topic in whole))
        service.until(lambda: lake.parked(topics["customers"]) is not None, "customers are parked")
        service.terminate()
        service.ends_well()
    for name in ("orders", "audit"):
        rows, key = TRUTH[name]
        actual = lake.table(topics[name]).read("real_time")
        expected = pa.Table.from_pylist(rows, actual.schema)
        moments = [column for column in ("at",) if column in actual.column_names]
        # Another run of the workload: its moments are another clock's.
        difference = compare(expected.drop_columns(moments), actual.drop_columns(moments), key)
        assert difference is None
    reason = lake.parked(topics["customers"])
    assert reason is not None
    assert reason.code is ParkCode.SCHEMA_CHANGE
    snapshot = lake.table(topics["orders"]).snapshot
    (ref,) = snapshot.manifest.dead_letters
    store = LocalStore(lake.path(topics["orders"]))
    (letter,) = read_dead_letters(store, ref).to_pylist()
    assert (letter["reason"], letter["value"]) == ("unknown-schema", poison.value)

"""Dead letters of a running service: stored whole, replayed after a setting is corrected,
dropped.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import Producer
from kafka import KafkaConsumer

from lakesplice.errors import TableNotFoundError
from lakesplice.testing.producer import create_topics
from tests.support.command_line import CommandLine
from tests.support.ledgers import PARTITIONS, Ledger, send
from tests.support.running import Lake, ends_of, require_table, take_in
from tests.support.topics import Sender, make_topics

LETTERS, TOO_SMALL = "letters-dead", "letters-dead-too-small"
# `price` is sent as Base64, which is no number in digits.
WRONG = {
    "id": "bigint",
    "text": "string",
    "amount": "int",
    "price": "decimal_text(10,4)",
    "at": "datetime(3)",
}
RIGHT = WRONG | {"price": "decimal(10,4)"}


def test_dead_letters_of_a_wrong_setting_are_replayed_once_it_is_corrected(
    kafka_broker: str, tmp_path: Path, lakesplice: CommandLine
) -> None:
    table = Ledger("letters", "mended", with_schemas=False)
    make_topics(kafka_broker, {table.topic: PARTITIONS})
    make_letter_topics(kafka_broker)
    lake = Lake(
        tmp_path,
        kafka_broker,
        r"letters\..*",
        tables=[declared(WRONG)],
        dead_letters={"share_max": 1},
        kafka={"dead_letter_topic": TOO_SMALL},
    )
    path = str(lake.path(table.topic))

    dlq = partial(lakesplice.out, "dlq")
    with lake.running() as service:
        records = send(Sender(kafka_broker), table.insert(0, 20))
        unreadable(kafka_broker, table.topic)
        service.until(lambda: dead(lake, table) == 21, "all records are letters")
        assert lake.said("dead-letters-unsent"), "their topic takes none, which holds up nobody"
        assert "0 dead letters replayed, 21 still" in dlq("replay", path)
        service.terminate()
        service.ends_well()
    letters = {
        (row["partition"], row["offset"]): row
        for row in lakesplice.rows("dlq", "list", path, "--values")
    }
    assert len(letters) == 21
    assert {row["attempts"] for row in letters.values()} == {1}
    (odd,) = (row for row in letters.values() if row["reason"] == "not-json")
    assert json.loads(odd["headers"]) == [["trace", "AP8="], ["none", None]]
    mend(lake)
    with lake.running() as service:
        # What comes behind the letters is applied before them, and stays.
        events = [*table.update(range(5), "newer"), *table.delete(range(5, 8))]
        take_in(service, lake, ends_of([*records, *send(Sender(kafka_broker), events)]))
        answer = dlq("replay", path)
        assert "20 dead letters replayed, 1 still" in answer
        assert answer.endswith("(by the running driver)")
        require_table(lake, table.topic, table.truth)
        place = f"{odd['partition']}:{odd['offset']}"
        dropped = dlq("drop", path, "--letter", place, "--why", "a probe")
        assert dropped == "1 dead letters dropped (by the running driver)"
        offset = unreadable(kafka_broker, table.topic)
        service.until(lambda: dead(lake, table) == 1, "another letter")
        arrived(kafka_broker, table.topic, offset)
        assert "1 dead letters dropped" in dlq("drop", path, "--all", "--why", "a probe")
        service.terminate()
        service.ends_well()
    assert lakesplice.rows("dlq", "list", path) == []
    commits = [entry.info for entry in lake.table(table.topic).history()]
    whys = [info.parameters["why"] for info in commits if info.operation == "DROP LETTERS"]
    assert whys == ["a probe", "a probe"], "with upkeep's commits before and after them"
    assert dlq("replay", path, "--config", str(lake.config)) == "0 dead letters replayed"
    require_table(lake, table.topic, table.truth)
    told = lake.command("explain-key", path, "0", "--from-topic", "--json")
    assert told.returncode == 0, told.stderr
    story = json.loads(told.stdout)
    outcomes = [one["outcome"] for one in story["records"]]
    assert outcomes == ["dead-letter", "applied"], "the letter's record was read under WRONG"
    applied = story["records"][1]
    assert applied["position"] == story["row"]["position"]
    assert applied["version"] in [change["version"] for change in story["changes"]]
    assert story["left_out"] == []


def declared(columns: dict[str, str]) -> dict[str, Any]:
    return {"match": "mended.ledger", "columns": columns}


def mend(lake: Lake) -> None:
    settings = yaml.safe_load(lake.config.read_text())
    settings["kafka"]["dead_letter_topic"] = LETTERS
    lake.config.write_text(yaml.safe_dump({**settings, "tables": [declared(RIGHT)]}))


def make_letter_topics(servers: str) -> None:
    create_topics(servers, [LETTERS], partitions=1)
    create_topics(servers, [TOO_SMALL], partitions=1, settings={"max.message.bytes": "1"})


def arrived(servers: str, topic: str, offset: int) -> None:
    """The one letter of the topic is the record, with why and where it was met."""
    consumer = KafkaConsumer(
        LETTERS,
        bootstrap_servers=servers,
        auto_offset_reset="earliest",
        consumer_timeout_ms=10_000,
    )
    letter = next(consumer)
    consumer.close()
    assert (letter.key, letter.value) == (b"k", b"\xfe no JSON")
    headers = dict(letter.headers)
    assert (headers["trace"], headers["none"]) == (b"\0\xff", None)
    assert headers["lakesplice.table"] == b"mended.ledger"
    assert headers["lakesplice.topic"] == topic.encode()
    assert headers["lakesplice.offset"] == str(offset).encode()
    assert headers["lakesplice.reason"] == b"not-json"


def unreadable(servers: str, topic: str) -> int:
    """Send a record that is no event at all, with headers; return its offset."""
    met: list[int] = []
    producer = Producer({"bootstrap.servers": servers})
    headers: list[tuple[str, str | bytes | None]] = [("trace", b"\0\xff"), ("none", None)]
    producer.produce(
        topic,
        partition=0,
        key=b"k",
        value=b"\xfe no JSON",
        headers=headers,
        on_delivery=lambda _, message: met.append(message.offset() or 0),
    )
    assert producer.flush(30) == 0
    return met[0]


def dead(lake: Lake, table: Ledger) -> int:
    try:
        return sum(ref.rows for ref in lake.table(table.topic).snapshot.manifest.dead_letters)
    except TableNotFoundError:
        return 0

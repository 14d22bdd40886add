"""Dead letters of a running service: stored whole, replayed after a setting is corrected,
dropped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

from confluent_kafka import Producer
from kafka import KafkaConsumer

from lakesplice.errors import TableNotFoundError
from lakesplice.testing.producer import create_topics
from tests.support.ledgers import Ledger, send
from tests.support.running import Lake
from tests.support.stories import ENDED, Stage, Step, Until, story

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


@story
def test_dead_letters_of_a_wrong_setting_are_replayed_once_it_is_corrected(
    stage: Stage,
) -> Iterator[Step]:
    lake, servers = stage.lake, stage.bootstrap_servers
    table = stage.ledger("mended", with_schemas=False)
    path = str(lake.path(table.topic))
    dlq, rows = partial(stage.cli.out, "dlq"), partial(stage.cli.rows, "dlq", "list", path)
    make_letter_topics(servers)
    declare(stage, WRONG, TOO_SMALL)
    stage.configure(dead_letters={"share_max": 1})
    records = send(stage.sender, table.insert(0, 20))
    unreadable(servers, table.topic)
    yield Until(lambda: dead(lake, table) == 21, "all records are letters")
    unsent = lake.said("dead-letters-unsent")
    assert unsent, "their topic takes none, which holds up nobody"
    assert all("RecordTooLargeException" in said["error"] for said in unsent)
    assert "0 dead letters replayed, 21 still" in dlq("replay", path)
    yield ENDED
    letters = {(row["partition"], row["offset"]): row for row in rows("--values")}
    assert len(letters) == 21
    assert {row["attempts"] for row in letters.values()} == {1}
    (odd,) = (row for row in letters.values() if row["reason"] == "not-json")
    assert json.loads(odd["headers"]) == [["trace", "AP8="], ["none", None]]
    declare(stage, RIGHT, LETTERS)
    # What comes behind the letters is applied before them, and stays.
    events = [*table.update(range(5), "newer"), *table.delete(range(5, 8))]
    yield stage.taken_in([*records, *send(stage.sender, events)])
    answer = dlq("replay", path)
    assert "20 dead letters replayed, 1 still" in answer
    assert answer.endswith("(by the running driver)")
    stage.holds_the_truth(table)
    place = f"{odd['partition']}:{odd['offset']}"
    dropped = dlq("drop", path, "--letter", place, "--why", "a probe")
    assert dropped == "1 dead letters dropped (by the running driver)"
    offset = unreadable(servers, table.topic)
    yield Until(lambda: dead(lake, table) == 1, "another letter")
    arrived(servers, table.topic, offset)
    assert "1 dead letters dropped" in dlq("drop", path, "--all", "--why", "a probe")
    yield ENDED
    assert rows() == []
    commits = [entry.info for entry in lake.table(table.topic).history()]
    whys = [info.parameters["why"] for info in commits if info.operation == "DROP LETTERS"]
    assert whys == ["a probe", "a probe"], "with upkeep's commits before and after them"
    assert dlq("replay", path, "--config", str(lake.config)) == "0 dead letters replayed"
    stage.holds_the_truth(table)
    is_explained(lake, path)


def is_explained(lake: Lake, path: str) -> None:
    told = lake.command("explain-key", path, "0", "--from-topic", "--json")
    assert told.returncode == 0, told.stderr
    key = json.loads(told.stdout)
    outcomes = [one["outcome"] for one in key["records"]]
    assert outcomes == ["dead-letter", "applied"], "the letter's record was read under WRONG"
    applied = key["records"][1]
    assert applied["position"] == key["row"]["position"]
    assert applied["version"] in [change["version"] for change in key["changes"]]
    assert key["left_out"] == []


def declare(stage: Stage, columns: dict[str, str], letters: str) -> None:
    """Let the next life read the table with these columns, and send letters to this topic."""
    entry = {"match": "mended.ledger", "columns": columns}
    stage.configure(tables=[entry], kafka={"dead_letter_topic": letters})


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

"""Nothing that the service or a command writes tells a value of a row, whatever is wrong there.

Personal values stand in every row, and in records that are damaged in every known way. Then the
log, the page and its API, metrics, the driver's status and the commands that list are searched.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from lakesplice.telemetry.logs import configure_logs
from lakesplice.testing.shop import Database, Event
from tests.support.command_line import CommandLine
from tests.support.ledgers import ledger
from tests.support.malformed import GIANT_BYTES, HARM, MALFORMED
from tests.support.paged import PagedService

PERSON, NUMBER = "Rosalind.Franklin@example.org", 1_920_072_500
PRIVATE = (PERSON, str(NUMBER), HARM)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """All that is logged, at the most talkative level."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    configure_logs("debug", "json", stream)
    yield stream
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


def people(service: PagedService, at: int) -> list[Event]:
    """Inserts of rows about a person into one of the service's tables, as events."""
    topic = service.sources[at].topic.name
    server, database, table = topic.split(".")
    source = Database([ledger(table)], server=server, database=database)
    assert source.topic(table) == topic
    rows = [(NUMBER + key, f"{PERSON} {key}", key, key, key) for key in range(len(MALFORMED))]
    source.insert(table, rows)
    return source.drain()


def damage(service: PagedService) -> None:
    """Send records of every kind of damage to the first table."""
    topic = service.sources[0].topic
    for event, kind in zip(people(service, 0), MALFORMED.values(), strict=True):
        topic.append(0, [event])
        assert event.key is not None
        assert event.value is not None
        key, value = kind.make(event.key, event.value)
        if len(value or b"") < GIANT_BYTES:
            topic.append(0, [event._replace(key=key, value=value)])


def park(service: PagedService) -> None:
    """Send a row to the second table, and one with a column of another type."""
    topic = service.sources[1].topic
    first, second, *_ = people(service, 1)
    assert second.value is not None
    record = json.loads(second.value)
    record["payload"]["after"]["amount"] = True
    for image in record["schema"]["fields"]:
        if image["field"] in ("before", "after"):
            image["fields"][2]["type"] = "boolean"
    topic.append(0, [first, second._replace(value=json.dumps(record).encode())])


@pytest.mark.slow
def test_no_output_tells_a_value_of_a_row(
    tmp_path: Path, log: io.StringIO, lakesplice: CommandLine
) -> None:
    service = PagedService(tmp_path, "one", "two")
    service.show()
    service.run([lambda: damage(service), lambda: park(service)])
    service.reporter.tick()
    written = {"log": log.getvalue()}
    paths = ["/", "/metrics", "/readyz", "/healthz", "/api/v1/lake", "/api/v1/tables"]
    for table in ("one/goods", "two/goods"):
        paths += [f"/tables/{table}", f"/api/v1/tables/{table}", f"/api/v1/tables/{table}/history"]
    written |= {path: service.client.get(path).text for path in paths}
    written |= {str(file): file.read_text() for file in (tmp_path / "_lakesplice").rglob("*.json")}
    of_table = ("history", "inspect log", "inspect deltas", "inspect manifest", "index check")
    commands = [[words, tmp_path] for words in ("tables", "status", "dlq list", "complete")]
    commands += [
        [words, tmp_path / name / "goods"] for words in of_table for name in ("one", "two")
    ]
    for words, place in commands:
        for option in ("", "--json"):
            ended = lakesplice(*f"{words} {option}".split(), place)
            written[f"{words} {place} {option}"] = ended.out + ended.err
    assert PERSON in lakesplice("read", tmp_path / "one" / "goods").out
    assert service.table(0).manifest.dead_letters
    assert service.table(1).parked is not None
    told = {where: one for where, text in written.items() for one in PRIVATE if one in text}
    assert not told

"""Every panel of the dashboards shows data of a whole working service.

The service reads changes, some of them twice and some not at all, compacts, gets records that it
can't decode, a table without a key, and events of a converter that changes values. It also gets
results of comparisons with the database. In the gate the panels show a page on which every metric
has a value (tests/integration/test_watching.py).
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from benchmarks.repeating import repeating
from lakesplice.telemetry.catalogue import (
    COMMIT_CONFLICTS,
    DUPLICATES,
    INCOMPLETE_ROWS,
    SPLICE_FALLBACKS,
    TABLE_DROPS,
    UNSENT_DEAD_LETTERS,
)
from lakesplice.testing.shop import Database, Event
from lakesplice.testing.shop.database import Row
from tests.support.ledgers import ledger
from tests.support.mirrors import sqlite_catalog
from tests.support.prometheus import Prometheus, Query, dashboard_queries
from tests.support.running import Lake
from tests.support.topics import Sender, make_topics
from tests.support.verified import note_comparison

# No commit has to be given up in an orderly run; the others need a topic of schema changes, partial
# images, insert-only tables, files too large to be written whole, and a topic of dead letters that
# can't be written.
NEVER_HERE = {
    metric.name
    for metric in (
        COMMIT_CONFLICTS,
        TABLE_DROPS,
        INCOMPLETE_ROWS,
        DUPLICATES,
        SPLICE_FALLBACKS,
        UNSENT_DEAD_LETTERS,
    )
}


SECONDS_MAX = 300.0

pytestmark = pytest.mark.nightly


@dataclass
class Source:
    """A table that changes a little at each call, whose topic also carries what can't be read, and
    whose converter puts defaults in the place of nulls.
    """

    sender: Sender
    database: Database
    rounds: int = 0
    repeated: list[Event] = field(default_factory=list)

    def work(self) -> None:
        first = self.rounds * 10
        self.rounds += 1
        rows = [(key, f"row {key}", key, key, key * 1_000) for key in range(first, first + 10)]
        self.database.insert("ledger", rows)
        self.database.delete("ledger", [(first,)])
        alive = [(key,) for key in range(first) if key % 10]
        self.database.update("ledger", alive, self._changed)
        events = self.database.drain()
        # The last update never comes; the insert of the deleted row comes again a round later.
        for event in [*(events[:-1] if alive else events), *self.repeated]:
            self.sender.send(event.topic, 0, event.key, _with_default(event.value))
        self.repeated = events[:1]
        self.sender.send(self.database.topic("ledger"), 0, b"{}", b"no JSON")

    def _changed(self, row: Row) -> Row:
        return (row[0], f"round {self.rounds}", *row[2:])

    def lose_a_key(self) -> None:
        self.database.insert("keyless", [(1, "one", 1, 1, 1_000)])
        (event,) = self.database.drain()
        self.sender.send(event.topic, 0, None, event.value)


def _with_default(value: bytes | None) -> bytes | None:
    """The event as `replace.null.with.default=true` writes it."""
    return value and value.replace(b'"snapshot":null', b'"snapshot":"false"')


@pytest.fixture(scope="module")
def watched(kafka_broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("watched")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    prefix = f"watched-{secrets.token_hex(4)}"
    database = Database([ledger(), ledger("keyless")], server=prefix, database="shop")
    make_topics(kafka_broker, {database.topic("ledger"): 1, database.topic("keyless"): 1})
    source = Source(Sender(kafka_broker), database)
    source.work()
    source.lose_a_key()
    lake = Lake(
        folder,
        kafka_broker,
        rf"{prefix}\..*",
        metrics={"port": port},
        # Else the first one comes after minutes, or a hundred versions.
        vacuum={"every": "1m"},
        compaction={"deltas_max": 1, "poll_seconds": 0.1},
        # On a slow machine the parked table would be late, too.
        tables=[
            {
                "match": "*",
                "freshness": {"real_time": "1d"},
                "also": ["iceberg"],
                "cluster_by": ["amount"],
            }
        ],
        iceberg={"catalog": sqlite_catalog(folder), "every": "5s"},
    )
    with (
        Prometheus(folder / "prometheus", [f"127.0.0.1:{port}"]) as prometheus,
        # Its JVM is one of the processes whose memory is shown.
        lake.running(own_jvm=True) as service,
        repeating(source.work, 1.0),
    ):
        seen = [query.text for query in _expected()]
        service.until(lake.path(database.topic("ledger")).exists, "the first table")
        note_comparison(lake, "ledger", different=1)
        try:
            service.until(
                lambda: not prometheus.empty(seen), "every panel shows something", SECONDS_MAX
            )
        except AssertionError as late:
            late.add_note(f"these show nothing: {prometheus.empty(seen)}")
            raise
        yield prometheus


def _expected() -> list[Query]:
    return [query for query in dashboard_queries() if not query.metrics & NEVER_HERE]


def test_every_panel_shows_the_service_at_work(watched: Prometheus) -> None:
    assert not watched.empty(query.text for query in _expected())


def test_the_live_view_shows_what_happened(watched: Prometheus) -> None:
    def value(text: str) -> float:
        (only,) = watched.query(text)
        return float(only["value"][1])

    assert value("sum(lakesplice_tables{state='parked'})") == 1
    (parked,) = watched.query("lakesplice_table_parked == 1")
    assert (parked["metric"]["table"], parked["metric"]["code"]) == ("shop.keyless", "no-key")
    assert value("sum(lakesplice_dead_letters_total{table='shop.ledger'})") >= 1
    assert value("sum(lakesplice_compactions_total{result='committed'})") >= 1
    assert value("sum(lakesplice_memory_resident_bytes{process='jvm'})") > 50_000_000
    assert value("sum(lakesplice_memory_resident_bytes{process='workers'})") > 10_000_000


def test_the_alerts_that_its_troubles_call_for_are_on_their_way(watched: Prometheus) -> None:
    def raised() -> set[str]:
        # A rule that records a series has no state.
        return {
            rule["name"] for rule in watched.rules() if rule.get("state", "inactive") != "inactive"
        }

    expected = {
        "LakespliceTableParked",
        "LakespliceDeadLetters",
        "LakespliceConnectorChangesValues",
        "LakespliceChangesMissing",
        "LakespliceTableDiffers",
    }
    watched.until(lambda: expected <= raised(), f"{expected} are raised")
    assert raised() == expected

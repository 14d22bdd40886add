"""Tables that are dropped at the source while the service runs, and while it doesn't."""

from __future__ import annotations

import json
from pathlib import Path

from lakesplice.model.names import TableName
from lakesplice.model.parking import ParkCode
from lakesplice.testing.compare import compare
from lakesplice.testing.shop import Database, Event
from tests.support.dropped import Teller
from tests.support.ledgers import PARTITIONS, ledger, send
from tests.support.running import Lake, ends_of, take_in
from tests.support.topics import Sender, make_topics

NAMES = ("one", "two", "three")


class Scene:
    """A database of three tables, its connector's topic of schema changes, and a lake."""

    def __init__(self, broker: str, prefix: str, folder: Path) -> None:
        self._database = Database(tuple(map(ledger, NAMES)), server=prefix, database="shop")
        self._teller = Teller(TableName("shop", "one"))
        self._prefix, self._sender = prefix, Sender(broker)
        make_topics(broker, {prefix: 1, **{self.topic(name): PARTITIONS for name in NAMES}})
        self.lake = Lake(
            folder,
            broker,
            rf"{prefix}\..*",
            schema_change_topics={"names": [prefix]},
            tables=[{"match": "shop.three", "schema_changes": {"drop_table": "exception"}}],
        )

    def topic(self, name: str) -> str:
        return self._database.topic(name)

    def insert(self, name: str, start: int, stop: int) -> dict[tuple[str, int], int]:
        """Insert keys, and send what tells of them; where the topic ends then."""
        return ends_of(send(self._sender, self._inserted(name, start, stop)))

    def insert_keyed(
        self, name: str, start: int, stop: int, key: str
    ) -> dict[tuple[str, int], int]:
        """The same of a table whose key is another column of whole numbers."""
        events = [_keyed(event, key) for event in self._inserted(name, start, stop)]
        return ends_of(send(self._sender, events))

    def snapshot(self) -> None:
        """Tell what a connector does when it begins."""
        at = self._inserted("one", 900, 901)[0]
        self._deleted("one")
        for name in NAMES:
            self._teller.tell(f"DROP TABLE IF EXISTS `shop`.`{name}`", at, snapshot="true")
        self._teller.tell("DROP DATABASE IF EXISTS `shop`", at, snapshot="true")
        for name in NAMES:
            self._teller.tell(f"CREATE TABLE `{name}` (id int)", at, snapshot="true")
        self._flush()

    def drop(self, *names: str, sql: str = "") -> None:
        """Drop tables with all their rows; what tells of the rows isn't sent."""
        for name in names:
            self._teller.tell(sql or f"DROP TABLE `shop`.`{name}`", self._deleted(name))
        self._flush()

    def create(self, name: str) -> None:
        at = self._inserted(name, 900, 901)[0]
        self._deleted(name)
        self._teller.tell(f"CREATE TABLE `{name}` (id int)", at)
        self._flush()

    def is_true(self, name: str, key: str = "id") -> bool:
        found = self.lake.table(self.topic(name)).read()
        return compare(self._database.truth(name), found, [key]) is None

    def rows(self, name: str) -> int:
        return len(self.lake.table(self.topic(name)).read())

    def outcomes(self, outcome: str) -> list[str]:
        said = self.lake.said("table-dropped")
        return [entry["table"] for entry in said if entry["outcome"] == outcome]

    def _inserted(self, name: str, start: int, stop: int) -> list[Event]:
        rows = [(key, f"row {key}", key, key * 10_000, key * 1_000) for key in range(start, stop)]
        self._database.insert(name, rows)
        return self._database.drain()

    def _deleted(self, name: str) -> Event:
        """Delete all rows, of which there is one at least; the event is not to be sent."""
        self._inserted(name, 901, 902)
        self._database.delete(name, [key for key, _ in self._database.rows(name).items()])
        return self._database.drain()[0]

    def _flush(self) -> None:
        records = self._teller.records
        self._sender.send_all((self._prefix, 0, None, record) for record in records)
        records.clear()


def _keyed(told: Event, name: str) -> Event:
    """The event as of a table with another key."""
    after = json.loads(told.value or b"")["payload"]["after"]
    fields = [{"field": name, "type": "int32", "optional": False}]
    schema = {"type": "struct", "fields": fields, "optional": False}
    return told._replace(
        key=json.dumps({"schema": schema, "payload": {name: after[name]}}).encode()
    )


def test_a_dropped_table_loses_its_rows_once_it_is_there_again(
    kafka_broker: str, topic_name: str, tmp_path: Path
) -> None:
    scene = Scene(kafka_broker, topic_name, tmp_path)
    scene.snapshot()
    ends: dict[tuple[str, int], int] = {}
    for name in NAMES:
        ends |= scene.insert(name, 0, 50)
    with scene.lake.running() as service:
        take_in(service, scene.lake, ends)
        assert all(map(scene.is_true, NAMES))
        scene.drop("one", "two", "three")
        three = scene.topic("three")
        service.until(lambda: scene.lake.parked(three) is not None, "the third one parks")
        service.until(lambda: len(scene.outcomes("kept")) == 2, "the others are told of")
        assert [scene.rows(name) for name in NAMES] == [50, 50, 50]
        scene.create("one")
        service.until(lambda: scene.rows("one") == 0, "rows of the first one go, none follows")
        take_in(service, scene.lake, scene.insert("two", 40, 60))
        service.until(lambda: scene.is_true("two"), "rows of the second one go with the next row")
        scene.create("two")
        scene.drop("two")
        scene.create("two")
        service.until(lambda: scene.rows("two") == 0, "they go once it is there again")
        keyed = scene.insert_keyed("two", 30, 37, "amount")
        service.until(lambda: scene.is_true("two", "amount"), "it begins again with another key")
        take_in(service, scene.lake, keyed)
        assert len(scene.lake.said("table-begins-again")) == 1
        service.terminate()
        service.ends_well()
    parked = scene.lake.parked(three)
    assert parked is not None
    assert parked.code is ParkCode.DROPPED
    assert scene.outcomes("fenced") == ["shop.one", "shop.two", "shop.two"]
    scene.insert("one", 0, 9)
    scene.drop("one", sql="DROP DATABASE shop")
    scene.create("one")
    scene.insert("one", 5, 20)
    scene.lake.once()
    scene.lake.once()
    assert scene.is_true("one")
    assert scene.outcomes("fenced") == ["shop.one", "shop.two", "shop.two", "shop.one"]
    assert (scene.rows("two"), scene.rows("three")) == (7, 50)

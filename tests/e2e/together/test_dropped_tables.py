"""Tables that are dropped at the source while the service runs, and while it doesn't."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from lakesplice.model.names import TableName
from lakesplice.model.parking import ParkCode
from lakesplice.testing.compare import compare
from lakesplice.testing.shop import Database, Event
from tests.support.dropped import Teller
from tests.support.ledgers import PARTITIONS, ledger, send
from tests.support.running import ends_of, stands_at
from tests.support.stories import ENDED, Stage, Step, Until, story
from tests.support.topics import make_topics

NAMES = ("one", "two", "three")


class Scene:
    """A database of three tables, and its connector's topic of schema changes."""

    def __init__(self, stage: Stage) -> None:
        prefix = stage.server("dropped")
        self._database = Database(tuple(map(ledger, NAMES)), server=prefix, database="depot")
        self._teller = Teller(TableName("depot", "one"))
        self._prefix, self._sender = prefix, stage.sender
        topics = {self.topic(name): PARTITIONS for name in NAMES}
        make_topics(stage.bootstrap_servers, {prefix: 1, **topics})
        stage.configure(
            schema_change_topics={"names": [prefix]},
            tables=[{"match": "depot.three", "schema_changes": {"drop_table": "exception"}}],
        )
        self.lake = stage.lake

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

    def taken_in(self, ends: Mapping[tuple[str, int], int]) -> Until:
        return Until(lambda: stands_at(self.lake, ends), f"the tables stand at {ends}")

    def snapshot(self) -> None:
        """Tell what a connector does when it begins."""
        at = self._inserted("one", 900, 901)[0]
        self._deleted("one")
        for name in NAMES:
            self._teller.tell(f"DROP TABLE IF EXISTS `depot`.`{name}`", at, snapshot="true")
        self._teller.tell("DROP DATABASE IF EXISTS `depot`", at, snapshot="true")
        for name in NAMES:
            self._teller.tell(f"CREATE TABLE `{name}` (id int)", at, snapshot="true")
        self._flush()

    def drop(self, *names: str, sql: str = "") -> None:
        """Drop tables with all their rows; what tells of the rows isn't sent."""
        for name in names:
            self._teller.tell(sql or f"DROP TABLE `depot`.`{name}`", self._deleted(name))
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
        """The tables of this database for which a DROP came out so."""
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


@story
def test_a_dropped_table_loses_its_rows_once_it_is_there_again(stage: Stage) -> Iterator[Step]:
    scene = Scene(stage)
    scene.snapshot()
    ends: dict[tuple[str, int], int] = {}
    for name in NAMES:
        ends |= scene.insert(name, 0, 50)
    yield scene.taken_in(ends)
    assert all(map(scene.is_true, NAMES))
    scene.drop("one", "two", "three")
    three = scene.topic("three")
    yield stage.parks(three)
    yield Until(lambda: len(scene.outcomes("kept")) == 2, "the others are told of")
    assert [scene.rows(name) for name in NAMES] == [50, 50, 50]
    scene.create("one")
    yield Until(lambda: scene.rows("one") == 0, "rows of the first one go, none follows")
    yield scene.taken_in(scene.insert("two", 40, 60))
    yield Until(lambda: scene.is_true("two"), "rows of the second one go with the next row")
    scene.create("two")
    scene.drop("two")
    scene.create("two")
    yield Until(lambda: scene.rows("two") == 0, "they go once it is there again")
    keyed = scene.insert_keyed("two", 30, 37, "amount")
    yield Until(lambda: scene.is_true("two", "amount"), "it begins again with another key")
    yield scene.taken_in(keyed)
    again = [said["table"] for said in stage.lake.said("table-begins-again")]
    assert again == ["depot.two"]
    yield ENDED
    stage.lake.require_parked(three, ParkCode.DROPPED)
    fenced = ["depot.one", "depot.two", "depot.two"]
    assert scene.outcomes("fenced") == fenced
    scene.insert("one", 0, 9)
    scene.drop("one", sql="DROP DATABASE depot")
    scene.create("one")
    yield scene.taken_in(scene.insert("one", 5, 20))
    yield Until(lambda: scene.is_true("one"), "rows from before the DROP go in the next life")
    yield ENDED
    # A driver that starts reads the topic of schema changes from its beginning.
    yield ENDED
    assert scene.outcomes("fenced") == [*fenced, "depot.one"]
    assert (scene.rows("two"), scene.rows("three")) == (7, 50)
    assert scene.is_true("one")

"""A service that merges the topics of several servers into one table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deltalake import DeltaTable

from lakesplice import Table
from lakesplice.errors import TableNotFoundError
from lakesplice.model.parking import ParkReason
from lakesplice.testing.producer import create_topics
from lakesplice.testing.shop import Database
from lakesplice.testing.shop.columns import Value
from tests.support.running import Lake
from tests.support.shards import by_key
from tests.support.simulated import SMALL, row
from tests.support.stories import ENDED, Stage, Step, Until, story


def merged(database: str) -> dict[str, Any]:
    """The entry by which shards of a database become one table."""
    return {
        "match": rf"/{database}_(\d+)\.goods/",
        "to": f"{database}.goods",
        "shape": {"key": ["database_name"]},
    }


class Server:
    """One shard: a server of its own, whose binlog begins where the others' do."""

    def __init__(self, stage: Stage, database: str, number: int) -> None:
        self.name = f"{database}_{number}"
        server = stage.server(f"shard{number}")
        self.database = Database((SMALL,), server=server, database=self.name)
        self.topic = self.database.topic(SMALL.name)
        self._sender, self.sent = stage.sender, 0
        create_topics(stage.bootstrap_servers, [self.topic], partitions=1)

    def put(self, *keys: int, value: int) -> None:
        known = self.database.rows(SMALL.name)
        there = [(key,) for key in keys if (key,) in known]
        self.database.insert(SMALL.name, [row(key, value) for key in keys if (key,) not in known])
        self.database.update(SMALL.name, there, lambda old: (old[0], f"v{value}", old[2]))
        self.send()

    def drop(self, key: int) -> None:
        self.database.delete(SMALL.name, [(key,)])
        self.send()

    def put_narrow(self, key: int, *cells: Value) -> None:
        """A row with the columns that are left."""
        self.database.insert(SMALL.name, [(key, *cells)])
        self.send()

    def send(self) -> None:
        events = self.database.drain()
        self.sent += len(events)
        self._sender.send_all((e.topic, 0, e.key, e.value) for e in events)

    @property
    def rows(self) -> list[dict[str, Any]]:
        names = [column.name for column in SMALL.columns]
        return [
            {"database_name": self.name, **dict(zip(names, image.values, strict=True))}
            for _, image in self.database.rows(SMALL.name).items()
        ]


def stored(lake: Lake, database: str) -> Table:
    return Table.open(str(lake.root / database / "goods"))


def all_in(lake: Lake, database: str, servers: list[Server]) -> Until:
    """The table is there and has all that these servers sent until now."""
    sent = {server.topic: server.sent for server in servers}

    def found() -> bool:
        try:
            table = stored(lake, database)
        except TableNotFoundError:
            return False
        there = sent.keys() <= {*table.topics}
        return there and all(table.offsets_of(one)[0] >= end for one, end in sent.items())

    return Until(found, f"{database}.goods has {sent}")


def holds(lake: Lake, database: str, servers: list[Server]) -> None:
    table = stored(lake, database)
    assert table.snapshot.manifest.parkings == ()
    truth = by_key([found for server in servers for found in server.rows])
    assert by_key(table.read().select(list(truth[0])).to_pylist()) == truth


@story
def test_shards_of_several_servers_become_one_table_and_later_ones_join(
    stage: Stage,
) -> Iterator[Step]:
    stage.configure(tables=[merged("many")])
    servers = [Server(stage, "many", number) for number in (0, 1)]
    for server in servers:
        server.put(1, 2, 3, value=1)
    yield all_in(stage.lake, "many", servers)
    holds(stage.lake, "many", servers)
    servers[0].put(2, value=4)
    servers.append(Server(stage, "many", 2))
    servers[2].put(1, 2, value=5)
    yield all_in(stage.lake, "many", servers)
    holds(stage.lake, "many", servers)
    yield ENDED
    servers[0].put(1, value=2)
    servers[1].drop(1)
    servers.append(Server(stage, "many", 3))
    servers[3].put(1, 9, value=3)
    yield all_in(stage.lake, "many", servers)
    holds(stage.lake, "many", servers)
    theirs = DeltaTable(str(stage.lake.root / "many" / "goods")).to_pyarrow_table()
    assert {"database_name", "id"} <= set(theirs.column_names)


@story
def test_topics_that_meet_without_the_shard_in_the_key_are_refused_with_what_to_set(
    stage: Stage,
) -> Iterator[Step]:
    stage.configure(tables=[{k: v for k, v in merged("loose").items() if k != "shape"}])
    servers = [Server(stage, "loose", number) for number in (0, 1)]
    servers[0].put(1, value=1)
    yield all_in(stage.lake, "loose", servers[:1])
    servers[1].put(1, value=1)
    topic = servers[1].topic

    def refused() -> list[str]:
        said = stage.lake.said("table-not-opened")
        return [one["error"] for one in said if one["topic"] == topic]

    yield Until(lambda: bool(refused()), "the second one is refused")
    assert "shape: {key: [database_name]}" in refused()[0]
    yield ENDED
    # The life after this one is one of `run --once`, which tells what it left out.
    yield ENDED
    yield ENDED
    (ended,) = stage.lake.said("once-ended")
    assert ended["refused"] == 1
    left = {one["topic"] for one in stage.lake.said("not-taken-in") if one["state"] == "refused"}
    assert left == {topic}
    assert len(stored(stage.lake, "loose").read()) == 1


@story
def test_a_column_that_one_shard_drops_parks_it_until_somebody_says_what_follows(
    stage: Stage,
) -> Iterator[Step]:
    lake, entry = stage.lake, merged("strict")
    stage.configure(tables=[{**entry, "schema_changes": {"drop_column": "exception"}}])
    servers = [Server(stage, "strict", number) for number in (0, 1)]
    for server in servers:
        server.put(1, 2, value=1)
    yield all_in(lake, "strict", servers)
    servers[0].database.drop_column(SMALL.name, "n")
    servers[0].put_narrow(7, "narrow")
    servers[1].put(7, value=4)

    def parkings() -> tuple[ParkReason, ...]:
        return stored(lake, "strict").snapshot.manifest.parkings

    yield Until(lambda: bool(parkings()), "the shard parks")
    yield all_in(lake, "strict", servers[1:])
    (reason,) = parkings()
    assert reason.topic == servers[0].topic
    assert "drop_column: lenient" in reason.detail
    yield ENDED
    stage.configure(tables=[{**entry, "schema_changes": {"drop_column": "lenient"}}])
    path = str(lake.root / "strict" / "goods")
    assert stage.cli("unpark", path, "--topic", servers[0].topic).code == 0
    yield all_in(lake, "strict", servers)
    assert parkings() == ()
    rows = by_key(Table.open(path).read().to_pylist())
    assert [(found["id"], found["name"], found["n"]) for found in rows] == [
        row(1, 1),
        row(2, 1),
        (7, "narrow", None),
        *[(found["id"], found["name"], found["n"]) for found in servers[1].rows],
    ]

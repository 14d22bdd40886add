"""A service that merges the topics of several servers into one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from lakesplice import Table
from lakesplice.errors import TableNotFoundError
from lakesplice.testing.producer import create_topics
from lakesplice.testing.shop import Database
from lakesplice.testing.shop.columns import Value
from tests.support.command_line import CommandLine
from tests.support.running import Lake
from tests.support.simulated import SMALL, row
from tests.support.topics import Sender

MERGED = {
    "match": r"/shop_(\d+)\.goods/",
    "to": "shop.goods",
    "shape": {"key": ["database_name"]},
}


class Server:
    """One shard: a server of its own, whose binlog begins where the others' do."""

    def __init__(self, broker: str, prefix: str, number: int) -> None:
        self.name = f"shop_{number}"
        self.database = Database((SMALL,), server=f"{prefix}.s{number}", database=self.name)
        self.topic = self.database.topic(SMALL.name)
        self._broker, self.sent = broker, 0
        create_topics(broker, [self.topic], partitions=1)

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
        Sender(self._broker).send_all((e.topic, 0, e.key, e.value) for e in events)

    @property
    def rows(self) -> list[dict[str, Any]]:
        names = [column.name for column in SMALL.columns]
        return [
            {"database_name": self.name, **dict(zip(names, image.values, strict=True))}
            for _, image in self.database.rows(SMALL.name).items()
        ]


def by_key(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda found: (found["database_name"], found["id"]))


def stored(lake: Lake) -> Table:
    return Table.open(str(lake.root / "shop" / "goods"))


def all_in(lake: Lake, servers: list[Server]) -> bool:
    """Whether the table is there and has all that these servers sent."""
    try:
        table = stored(lake)
    except TableNotFoundError:
        return False
    there = {server.topic for server in servers} <= set(table.topics)
    return there and all(table.offsets_of(one.topic)[0] >= one.sent for one in servers)


def holds(lake: Lake, servers: list[Server]) -> None:
    table = stored(lake)
    assert table.snapshot.manifest.parkings == ()
    truth = by_key([found for server in servers for found in server.rows])
    assert by_key(table.read().select(list(truth[0])).to_pylist()) == truth


def test_shards_of_several_servers_become_one_table_and_later_ones_join(
    kafka_broker: str, topic_name: str, tmp_path: Path
) -> None:
    servers = [Server(kafka_broker, topic_name, number) for number in (0, 1)]
    lake = Lake(tmp_path, kafka_broker, rf"{topic_name}\..*", tables=[MERGED])
    for server in servers:
        server.put(1, 2, 3, value=1)
    lake.once()
    holds(lake, servers)
    servers[0].put(1, value=2)
    servers[1].drop(1)
    servers.append(Server(kafka_broker, topic_name, 2))
    servers[2].put(1, 9, value=3)
    with lake.running() as service:
        service.until(lambda: all_in(lake, servers), "what was sent meanwhile is in")
        holds(lake, servers)
        servers[0].put(2, value=4)
        servers.append(Server(kafka_broker, topic_name, 3))
        servers[3].put(1, 2, value=5)
        service.until(lambda: all_in(lake, servers), "all shards are in")
        service.terminate()
        service.ends_well()
    holds(lake, servers)
    theirs = DeltaTable(str(lake.root / "shop" / "goods")).to_pyarrow_table()
    assert {"database_name", "id"} <= set(theirs.column_names)


def test_topics_that_meet_without_the_shard_in_the_key_are_refused_with_what_to_set(
    kafka_broker: str, topic_name: str, tmp_path: Path
) -> None:
    servers = [Server(kafka_broker, topic_name, number) for number in (0, 1)]
    route = {name: text for name, text in MERGED.items() if name != "shape"}
    lake = Lake(tmp_path, kafka_broker, rf"{topic_name}\..*", tables=[route])
    for server in servers:
        server.put(1, value=1)
    lake.once()
    (refused,) = lake.said("table-not-opened")
    assert refused["topic"] == servers[1].topic
    assert "shape: {key: [database_name]}" in refused["error"]
    (ended,) = lake.said("once-ended")
    assert (ended["topics"], ended["running"], ended["refused"], ended["changes"]) == (2, 1, 1, 1)
    assert [one["topic"] for one in lake.said("not-taken-in")] == [servers[1].topic]
    assert len(Table.open(str(lake.root / "shop" / "goods")).read()) == 1


def test_a_column_that_one_shard_drops_parks_it_until_somebody_says_what_follows(
    kafka_broker: str, topic_name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = [Server(kafka_broker, topic_name, number) for number in (0, 1)]
    strict = {**MERGED, "schema_changes": {"drop_column": "exception"}}
    lake = Lake(tmp_path, kafka_broker, rf"{topic_name}\..*", tables=[strict])
    for server in servers:
        server.put(1, 2, value=1)
    path = str(lake.root / "shop" / "goods")
    with lake.running() as service:
        service.until(lambda: all_in(lake, servers), "both shards are in")
        servers[0].database.drop_column(SMALL.name, "n")
        servers[0].put_narrow(7, "narrow")
        servers[1].put(7, value=4)
        service.until(lambda: bool(stored(lake).snapshot.manifest.parkings), "the shard parks")
        service.until(lambda: all_in(lake, servers[1:]), "the other one continues")
        service.terminate()
        service.ends_well()
    (reason,) = stored(lake).snapshot.manifest.parkings
    assert reason.topic == servers[0].topic
    assert "drop_column: lenient" in reason.detail
    follows = {**MERGED, "schema_changes": {"drop_column": "lenient"}}
    lake = Lake(tmp_path, kafka_broker, rf"{topic_name}\..*", tables=[follows])
    assert CommandLine(capsys)("unpark", path, "--topic", servers[0].topic).code == 0
    lake.once()
    assert Table.open(path).snapshot.manifest.parkings == ()
    rows = by_key(Table.open(path).read().to_pylist())
    assert [(found["id"], found["name"], found["n"]) for found in rows] == [
        row(1, 1),
        row(2, 1),
        (7, "narrow", None),
        *[(found["id"], found["name"], found["n"]) for found in servers[1].rows],
    ]

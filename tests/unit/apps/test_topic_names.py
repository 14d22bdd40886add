"""A topic with dots in its database's or table's name feeds the table that its events name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from lakesplice.apps.service.sources.topic_selection import TopicSelection
from lakesplice.apps.service.tables import ServiceTables
from lakesplice.errors import SourceUnavailable
from lakesplice.model.driver_status import TopicState
from lakesplice.model.names import TableName, possible_tables
from lakesplice.model.schema import TableSchema
from lakesplice.spark.kafka.topics import Topic
from tests.support.canal_messages import message, row
from tests.support.debezium import Record, compact, image, payload
from tests.support.maxwell_events import event
from tests.support.topic_conditions import Scene

TOPIC = "a.my.db.goods"


def debezium(database: str, table: str) -> Record:
    return None, compact(payload("c", None, image(1), db=database, table=table))


def canal(database: str, table: str) -> Record:
    return message("INSERT", [row(1)], database=database, table=table)


def maxwell(database: str, table: str) -> Record:
    return event("insert", {"id": 1}, database=database, table=table)


class Dotted(Scene):
    """A scene whose topics have records."""

    def __init__(self, root: Path, *records: Record, topic: str = TOPIC) -> None:
        super().__init__(root)
        self.records, self.reads, self.fails = records, 0, False
        self.broker.ends = {topic: len(records)}
        self.tables = ServiceTables(self.driver, self._first)
        self.sources = TopicSelection(self.driver, self.tables, self.broker.catalogue)

    def _first(self, topic: Topic) -> pa.RecordBatch:
        self.reads += 1
        if self.fails:
            raise SourceUnavailable("the broker is away", topic=topic.name)
        keys, values = zip(*self.records, strict=True)
        columns = [pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
        return pa.record_batch(
            [*columns, pa.array(range(len(keys)), pa.int64())], ["key", "value", "offset"]
        )


def test_a_name_with_dots_may_be_read_in_every_way_behind_a_prefix() -> None:
    assert list(possible_tables(TOPIC)) == [
        TableName("db", "goods"),
        TableName("my.db", "goods"),
        TableName("my", "db.goods"),
    ]


@pytest.mark.parametrize("write", [debezium, canal, maxwell])
@pytest.mark.parametrize("name", [("my.db", "goods"), ("my", "db.goods"), ("db", "goods")])
def test_the_events_say_which_dots_are_the_names(
    tmp_path: Path, name: tuple[str, str], write: object
) -> None:
    assert callable(write)
    scene = Dotted(tmp_path, (b"1", None), write(*name))
    scene.sources.look()
    assert scene.table(TOPIC).origin == TableName(*name)


def test_events_of_no_such_table_leave_the_last_two_parts(tmp_path: Path) -> None:
    scene = Dotted(tmp_path, debezium("shop", "other"))
    scene.sources.look()
    assert scene.table(TOPIC).origin == TableName("db", "goods")


def test_a_topic_without_records_waits_for_its_name(tmp_path: Path) -> None:
    scene = Dotted(tmp_path)
    assert not scene.sources.look().starts
    assert scene.standing(TOPIC).state is TopicState.WAITING
    assert "more than three parts" in scene.standing(TOPIC).reason
    scene.records, scene.broker.ends = (debezium("my.db", "goods"),), {TOPIC: 1}
    assert scene.sources.peek().starts == {TOPIC: {0: 0}}
    scene.sources.look()
    assert scene.table(TOPIC).name == TableName("my.db", "goods")


def test_a_broker_that_does_not_answer_is_asked_again(tmp_path: Path) -> None:
    scene = Dotted(tmp_path, debezium("my.db", "goods"))
    scene.fails = True
    with capture_logs() as logged:
        assert not scene.sources.look().starts
    assert [entry["event"] for entry in logged] == ["topic-not-named"]
    scene.fails = False
    assert scene.sources.look().starts == {TOPIC: {0: 0}}


def test_a_table_in_the_lake_says_its_topics_name_when_no_record_does(tmp_path: Path) -> None:
    scene = Dotted(tmp_path, debezium("my", "db.goods"))
    scene.sources.look()
    scene.table(TOPIC).create_or_open(TableSchema())
    later = Dotted(tmp_path, (b"1", None))
    later.sources.look()
    assert later.table(TOPIC).origin == TableName("my", "db.goods")
    assert later.reads == 0


@pytest.mark.slow
def test_a_topic_of_three_parts_is_not_read_for_its_name(tmp_path: Path) -> None:
    scene = Dotted(tmp_path, debezium("shop", "goods"), topic="a.shop.goods")
    scene.sources.look()
    assert scene.reads == 0

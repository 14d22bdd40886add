"""What the driver reads from Debezium's topics of schema changes: types, drops, what to park."""

from __future__ import annotations

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from lakesplice.config.sections.schema_topics import MaxwellTopic, SchemaChangeTopicSettings
from lakesplice.errors import SourceUnavailable
from lakesplice.formats.events import TypeHistory
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Position
from lakesplice.model.progress.epochs import Epoch
from tests.support.schema_topics import (
    RETYPED,
    UNDESCRIBED,
    ReportedTable,
    X,
    schema_of,
    told_late,
    told_of_creation,
)


def _prices(types: TypeHistory | None) -> list[str]:
    assert types is not None
    return [version.columns["price"].name for version in types.versions]


def test_each_read_of_the_topic_returns_new_records_once() -> None:
    source = told_of_creation()
    source.look()
    assert _prices(source.types()) == ["decimal(8,2)"]
    source.tell(RETYPED, 20)
    source.look()
    assert _prices(source.types()) == ["decimal(8,2)", "decimal(8,4)"]
    assert source.asked == [(0, 1), (1, 2)]


def test_a_table_of_another_connector_gets_no_warning() -> None:
    source = told_of_creation("CREATE TABLE x (id int)")
    other = replace(source.state, topic="db2.shop.x")
    assert source.topics.types(other, X) is None
    assert source.topics.types(source.state, TableName("shop", "y")) is None


def test_a_table_that_went_beyond_a_change_of_types_is_parked_once_it_is_reported() -> None:
    source = told_of_creation()
    source.reach(30)
    assert source.topics.overtaken(source.state, X, UNDESCRIBED) is None
    source.tell(RETYPED, 20)
    source.look()
    reason = source.topics.overtaken(source.state, X, UNDESCRIBED)
    assert reason is not None
    assert source.topics.overtaken(source.state, X, UNDESCRIBED) is None, "it is parked by now"
    assert reason.code is ParkCode.SCHEMA_CHANGE
    assert "changes up to 0:3:30:0:1 had been taken" in reason.detail


def test_a_table_whose_events_say_their_types_is_never_too_far() -> None:
    source = told_late(RETYPED)
    assert source.topics.overtaken(source.state, X, schema_of("int64")) is None


@pytest.mark.parametrize("described", ["int64", "declared:long"])
def test_a_table_that_went_beyond_a_swap_of_names_is_parked_once_it_is_reported(
    described: str,
) -> None:
    source = told_late("ALTER TABLE x RENAME COLUMN id TO price, RENAME COLUMN price TO id")
    reason = source.topics.overtaken(source.state, X, schema_of(described))
    assert reason is not None
    assert reason.code is ParkCode.SCHEMA_CHANGE


def test_a_rename_that_is_reported_late_parks_nothing() -> None:
    source = told_late("ALTER TABLE x RENAME COLUMN price TO amount")
    assert source.topics.overtaken(source.state, X, UNDESCRIBED) is None


def test_a_change_of_types_that_is_reported_in_time_parks_nothing() -> None:
    source = told_late(RETYPED, reached=15)
    assert source.topics.overtaken(source.state, X, UNDESCRIBED) is None
    source.reach(30)
    assert source.topics.overtaken(source.state, X, UNDESCRIBED) is None


def test_a_column_that_was_only_added_parks_nothing() -> None:
    source = told_late("ALTER TABLE x ADD note text")
    assert source.topics.overtaken(source.state, X, UNDESCRIBED) is None


def test_a_change_reported_before_the_driver_started_parks_nothing() -> None:
    source = ReportedTable()
    source.reach(30)
    source.tell("CREATE TABLE x (id int, price decimal(8,2))", 10)
    source.tell(RETYPED, 20)
    source.look()
    assert source.topics.overtaken(source.state, X, UNDESCRIBED) is None


def test_changes_reported_before_the_start_stay_old_after_a_failed_first_read() -> None:
    source = ReportedTable()
    source.reach(30)
    source.tell("CREATE TABLE x (id int, price decimal(8,2))", 10)
    source.tell(RETYPED, 20)
    source.tell("DROP TABLE y", 25)
    source.fails = True
    with pytest.raises(SourceUnavailable):
        source.look()
    source.fails = False
    source.look()
    assert source.topics.overtaken(source.state, X, UNDESCRIBED) is None
    told = source.topics.drops(source.state, TableName("shop", "y"))
    assert (len(told.drops), told.open_since) == (1, 1)


def test_after_a_failover_only_types_that_never_changed_are_known() -> None:
    source = ReportedTable()
    source.tell("CREATE TABLE x (id int, price decimal(8,2))", 10)
    source.tell(RETYPED, 20)
    source.look()
    source.state = replace(source.state, epochs=(Epoch(1),))
    types = source.types()
    assert types is not None
    version, _ = types.at(Position.of(0, 3, 30, 0, 1))
    assert (list(version.columns), list(version.untyped)) == (["id"], ["price"])


def test_a_topic_that_was_re_created_is_read_from_its_beginning() -> None:
    source = told_of_creation("CREATE TABLE x (id int, price int)")
    source.records.clear()
    source.tell("CREATE TABLE x (id int, price bigint)", 5)
    source.topic = replace(source.topic, id="id-2")
    source.look()
    assert _prices(source.types()) == ["long"]


def test_a_statement_that_cannot_be_parsed_is_logged() -> None:
    source = ReportedTable()
    with capture_logs() as logged:
        source.topics.look({})
        source.topics.look({})
        source.records.append(b"{")
        source.tell("ALTER TABLE x FROBNICATE", 10)
        source.topic = replace(
            source.topic, earliest={0: Offset(0), 1: Offset(0)}, latest={0: Offset(0), 1: Offset(3)}
        )
        source.look()
    events = [entry["event"] for entry in logged]
    assert events == ["schema-topic-missing", "schema-topic-partitions", "ddl-unread", "ddl-unread"]
    assert logged[-1]["ddl"] == "ALTER TABLE x FROBNICATE"


def test_a_topic_is_set_once() -> None:
    topic = MaxwellTopic(name="db", tables="*")
    with pytest.raises(ValueError, match="named twice"):
        SchemaChangeTopicSettings(names=("db",), maxwell=(topic,))
    with pytest.raises(ValueError, match="isn't a valid topic name"):
        MaxwellTopic(name="maxwell.%{database}", tables="*")


def test_drops_are_reported_with_those_that_came_since_the_driver_began() -> None:
    source = told_of_creation()
    source.tell("DROP TABLE x", 20)
    begun = ReportedTable()
    begun.records = source.records
    begun.look()
    begun.tell("CREATE TABLE x (id int)", 30)
    begun.tell("DROP TABLE x", 40)
    begun.look()
    told = begun.topics.drops(begun.state, X)
    assert [(drop.number, drop.position.parts[2], drop.again) for drop in told.drops] == [
        (0, 20, True),
        (1, 40, False),
    ]
    assert (told.ordered, told.known_since, told.open_since) == (True, 1, 1)


def test_a_drop_that_was_handled_is_no_longer_open() -> None:
    source = told_late("DROP TABLE x")
    source.topics.note_handled_drops(source.state, X, 1)
    after = source.topics.drops(source.state, X)
    assert (after.known_since, after.open_since) == (0, 1)
    source.topics.note_handled_drops(source.state, X, 1, parked=True)
    assert source.topics.drops(source.state, X).known_since == 1


def test_a_table_of_another_connector_was_not_dropped() -> None:
    source = told_late("DROP TABLE x")
    other = replace(source.state, topic="db2.shop.x")
    assert source.topics.drops(other, X).drops == ()
    assert source.topics.drops(source.state, TableName("shop", "y")).drops == ()

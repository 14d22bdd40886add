"""Filling tables from a database: how it is read, what is refused, and what a service does
meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
import structlog

from lakesplice.apps.bootstrap.shadow_check import give_up_shadows, left_out
from lakesplice.apps.bootstrap.source_chunks import ReadPlan, position_of, read_plan
from lakesplice.apps.bootstrap.table_work import require_keyed_rows, require_one_topic
from lakesplice.apps.bootstrap.topic_fill import require_all_records
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.sources.new_topics import NewTopics
from lakesplice.apps.service.tables import ServiceTables
from lakesplice.apps.table_commands.command_table import CommandTable
from lakesplice.apps.table_commands.dispatch import command_table
from lakesplice.apps.table_commands.work import SWAP, execute
from lakesplice.apps.verifying.report import ComparisonOutcome, TableReport
from lakesplice.apps.verifying.stored_sums import place_in_lake
from lakesplice.errors import UnsupportedError, UsageError
from lakesplice.model.moments import EpochMs
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offset
from lakesplice.model.position import Position
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.intake.newest_image import newest_image
from lakesplice.planning.source_rows.columns import DatabaseColumn
from lakesplice.storage.local import LocalStore
from lakesplice.storage.source.binlog_places import BinlogPlace
from lakesplice.storage.source.tables import SourceTable
from lakesplice.table.driver.generation import Generation, claim_generation
from lakesplice.table.driver.requests import CommandRequest
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.protocol.history import history
from lakesplice.table.protocol.shadow_store import open_shadows
from lakesplice.telemetry.catalogue import TABLES_NOT_MADE
from lakesplice.telemetry.registry import Metrics
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from tests.support.command_line import CommandLine
from tests.support.service_settings import settings_of
from tests.support.shadows import SHADOW, Filling, ReadSource
from tests.support.simulated import SMALL, driver_of, row, rows_of

ID = SourceField("id", ColumnType(Primitive.LONG), "int64")
NAME = SourceField("name", ColumnType(Primitive.STRING), "string")
STREAMED = SourceSchema((ID, NAME), ("id",))
STORED = SourceTable(
    "shop",
    "goods",
    (
        DatabaseColumn("id", "bigint(20)", optional=False),
        DatabaseColumn("name", "varchar(20)", "utf8mb4", "utf8mb4_general_ci"),
    ),
    ("id",),
    "made",
)


@pytest.fixture
def source() -> ReadSource:
    source = ReadSource()
    source.database.load(SMALL.name, [row(key, key) for key in range(4)])
    return source


def commanded(lake: LocalStore, source: ReadSource) -> CommandTable:
    """The table as a driver's request has it, which can feed a shadow."""
    generation = claim_generation(lake, FixedClock(), lambda _: True)
    assert generation is not None
    asked = CommandRequest(
        "1", SWAP, "shop/goods", "ann", EpochMs(FixedClock().now_ms() + 60_000), {}
    )
    made = command_table(lake, asked, generation, FixedClock(), SeededEntropy(5))

    def feed(table: DriverTable, ends: Mapping[int, Offset]) -> None:
        driver_of(source, lake, seed=31, held=table).batch(ends)

    made.feed = feed
    return made


@pytest.mark.slow
def test_a_swap_feeds_the_shadow_up_to_where_the_table_stands(
    source: ReadSource, tmp_path: Path
) -> None:
    lake = LocalStore(tmp_path)
    source.topic.append(0, source.put(9))
    live, filling = driver_of(source, lake), Filling(source, lake, FixedClock(), 7)
    live.batch()
    filling.fill()
    source.topic.append(1, source.put(9))
    live.batch()
    done = execute(SWAP, commanded(lake, source), {"shadow": SHADOW})
    assert done.facts == {"version": live.table.version + 1}
    assert rows_of(live.table.store) == source.present()
    assert open_shadows(filling.store) == []
    entry = next(history(filling.store))
    assert (entry.info.operation, entry.info.parameters["by"]) == ("SWAP", "ann")


@pytest.mark.slow
def test_a_swap_of_no_shadow_or_a_part_of_one_is_refused(
    source: ReadSource, tmp_path: Path
) -> None:
    lake = LocalStore(tmp_path)
    source.topic.append(0, source.put(9))
    driver_of(source, lake).batch()
    filling = Filling(source, lake, FixedClock(), 7)
    filling.commit(0, filling.read(0))
    table = commanded(lake, source)
    with pytest.raises(UsageError, match="no such shadow"):
        execute(SWAP, table, {"shadow": "2"})
    with pytest.raises(UsageError, match="1 of 3 chunks are read"):
        execute(SWAP, table, {"shadow": SHADOW})
    assert open_shadows(filling.store) == [SHADOW]


@pytest.mark.slow
def test_a_service_leaves_a_new_tables_topic_out_while_it_is_filled(
    source: ReadSource, tmp_path: Path
) -> None:
    lake, topic = LocalStore(tmp_path), source.topic.name
    entropy, log = SeededEntropy(1), structlog.get_logger()
    generation, settings = Generation(lake, 1), settings_of(lake.root)
    driver = Driver(settings, lake, FixedClock(), entropy, generation, Metrics(), log)
    newcomers = NewTopics(driver, ServiceTables(driver))
    assert not newcomers.is_filled(topic)
    filling = Filling(source, lake, FixedClock(), 7)
    assert newcomers.is_filled(topic)
    filling.fill()
    filling.swap()
    assert not newcomers.is_filled(topic)
    Filling(source, lake, FixedClock(), 8)
    assert not newcomers.is_filled(topic), "it is filled anew beside the table"


@pytest.mark.slow
def test_a_service_takes_up_a_table_that_it_must_not_make_once_it_is_filled(
    source: ReadSource, tmp_path: Path
) -> None:
    lake, topic = LocalStore(tmp_path), source.topic.name
    entry = {"match": "shop.*", "schema_changes": {"create_table": "ignore"}}
    settings, metrics = settings_of(lake.root, tables=[entry]), Metrics()
    entropy, log, generation = SeededEntropy(1), structlog.get_logger(), Generation(lake, 1)
    driver = Driver(settings, lake, FixedClock(), entropy, generation, metrics, log)
    newcomers = NewTopics(driver, ServiceTables(driver))
    assert newcomers.leaves_out(topic)
    filling = Filling(source, lake, FixedClock(), 7)
    filling.fill()
    assert newcomers.leaves_out(topic)
    filling.swap()
    assert not newcomers.leaves_out(topic)
    assert metrics.value(TABLES_NOT_MADE) == 0


def test_a_table_is_read_in_the_columns_that_its_records_have() -> None:
    plan = read_plan(STORED, STREAMED)
    assert isinstance(plan, ReadPlan)
    assert [column.name for column in plan.columns] == ["id", "name"]
    of_id = SourceSchema((ID,), ("id",))
    only = read_plan(STORED, of_id, frozenset(("name",)))
    assert isinstance(only, ReadPlan)
    assert [column.name for column in only.columns] == ["id"]


@pytest.mark.parametrize(
    ("table", "schema", "why"),
    [
        (STORED, SourceSchema((ID,), ("id",)), "lacks the columns name"),
        (STORED, SourceSchema((ID, NAME), ()), "no primary or unique key"),
        (
            STORED,
            SourceSchema((ID, NAME, SourceField("gone", NAME.type, "string")), ("id",)),
            "has a column gone, which the database lacks",
        ),
        (
            STORED,
            SourceSchema((ID, SourceField("name", ColumnType(Primitive.DATE), "date")), ("id",)),
            "column name: the database's varchar",
        ),
    ],
)
def test_a_table_that_cannot_be_read_as_it_is_streamed_is_refused(
    table: SourceTable, schema: SourceSchema, why: str
) -> None:
    found = read_plan(table, schema)
    assert isinstance(found, str)
    assert why in found


def test_rows_stand_above_what_was_committed_and_below_what_comes_later() -> None:
    here = position_of(BinlogPlace("binlog.000012", 345))
    assert Position.of(0, 12, 344, 7, 1) < here < Position.of(0, 12, 346, 0, 0)
    with pytest.raises(UnsupportedError, match="no number"):
        position_of(BinlogPlace("binlog", 345))


def test_the_newest_record_shows_the_columns() -> None:
    source = ReadSource()
    old = source.put(1)
    source.add_column("added", 5)
    new = source.put(2)
    gone = source.delete(1)

    def batch(*events: object) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict(
            {
                "offset": pa.array(range(len(events)), pa.int64()),
                "timestamp": pa.array([0] * len(events), pa.int64()),
                "key": pa.array([getattr(event, "key", None) for event in events], pa.binary()),
                "value": pa.array([getattr(event, "value", None) for event in events], pa.binary()),
            }
        )

    reading = RecordReading(table=TableName("shop", "goods"))
    found = newest_image([batch(*new, *gone), batch(*old)], reading)
    assert found is not None
    assert [field.name for field in found.schema.fields] == ["id", "name", "n", "added"]
    assert newest_image([batch(gone[1])], reading) is None


def test_a_topic_that_lost_records_cannot_fill_a_table() -> None:
    require_all_records({0: Offset(0), 1: Offset(0)})
    with pytest.raises(
        UsageError, match=r"give --from bootstrap.*or --from snapshot.*first_offsets=\{1: 7\}"
    ):
        require_all_records({0: Offset(0), 1: Offset(7)})


def test_a_shadow_that_is_given_up_leaves_no_sums_of_its_comparison(
    source: ReadSource, tmp_path: Path
) -> None:
    lake, name = LocalStore(tmp_path), TableName("shop", "goods")
    Filling(source, lake, FixedClock(), 7)
    of_shadow, of_topic = (place_in_lake(lake, name.path, of) for of in (SHADOW, "a topic"))
    of_shadow.write(b"sums")
    of_topic.write(b"sums")
    assert give_up_shadows(lake, name) == 1
    assert open_shadows(lake.within(name.path)) == []
    assert (of_shadow.read(), of_topic.read()) == (None, b"sums")


def test_columns_that_were_not_compared_are_named() -> None:
    report = TableReport(
        "shop.goods", ComparisonOutcome.EQUAL, not_compared={"b": "masked", "a": "computed"}
    )
    assert left_out(report) == "not compared: a: computed; b: masked"
    assert left_out(TableReport("shop.goods", ComparisonOutcome.EQUAL)) == ""


def test_a_table_that_several_topics_feed_is_refused(tmp_path: Path) -> None:
    merged = {"match": "shop*.goods", "to": "all.goods", "shape": {"key": ["database_name"]}}
    settings = settings_of(tmp_path, tables=[merged])
    with pytest.raises(UsageError, match="several topics may feed the table"):
        require_one_topic(settings, TableName("shop1", "goods"), "a.shop1.goods")
    require_one_topic(settings, TableName("shop1", "other"), "a.shop1.other")


def test_a_table_whose_rows_are_identified_by_their_places_in_the_binlog_is_refused(
    tmp_path: Path,
) -> None:
    """Rows that are read have no such places: rows of two chunks would replace one another."""
    settings = settings_of(tmp_path, tables=[{"match": "shop.log", "mode": "append"}])
    with pytest.raises(UsageError, match="mode: append"):
        require_keyed_rows(settings, TableName("shop", "log"))
    require_keyed_rows(settings, TableName("shop", "goods"))


def test_a_database_must_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "lakesplice.yaml"
    kafka = "{bootstrap_servers: 'none:1', topic_pattern: 'a.*'}"
    config.write_text(f"lake: {{root: {tmp_path}}}\nkafka: {kafka}\n")
    ended = CommandLine(capsys)("bootstrap", "--config", config)
    assert ended.code == 2
    assert "give --database" in ended.err

"""Spark reads a table by the format `lakesplice` with the same result as our reader in Python.

What options do is seen without Spark's engine (`read_here`): each of its queries starts several
processes.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakesplice import Table
from lakesplice.apps.table_commands.dispatch import RequestWait
from lakesplice.apps.table_commands.pinning import pin_lake
from lakesplice.errors import LakespliceError
from lakesplice.model.moments import EpochMs
from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.spark.session import build_session
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from tests.support.parquet_readers import prepare_own_session
from tests.support.simulated import Source, driver_of
from tests.support.spark_reads import (
    apply,
    changed,
    frame,
    read_here,
    rows_of,
    same,
    same_rows,
    stream_to,
    without_the_dead,
)
from tests.support.steps import KEYS, take_step

ROWS = 3_000
PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"  # as a user may have set it


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    prepare_own_session()
    session = build_session("local[2]", "1g", [], {PUSH_DOWN: "true"})
    yield session
    session.stop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with rows, changes that wait, deletes, and an older version."""
    path = tmp_path_factory.mktemp("lake") / "shop" / "goods"
    rows = [
        {
            "id": n,
            "name": None if n % 7 == 0 else f"thing {n}",
            "price": Decimal(n) / 4,
            "day": date(2026, 1, 1 + n % 28),
            "weight": float("nan") if n % 11 == 0 else n / 3,
            "raw": bytes([n % 256]),
            "open": n % 2 == 0,
        }
        for n in range(ROWS)
    ]
    table = Table.create(path, pa.Table.from_pylist(rows, schema=SCHEMA), key=["id"])
    time.sleep(0.01)
    some = pa.table({"id": [1, 2, ROWS - 1], "name": ["new", None, "last"]})
    table.upsert(some, delete=pa.table({"id": [5, 6]}))
    return path


SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("price", pa.decimal128(12, 2)),
        pa.field("day", pa.date32()),
        pa.field("weight", pa.float64()),
        pa.field("raw", pa.binary()),
        pa.field("open", pa.bool_()),
    ]
)


def test_workers_are_forked_with_what_tasks_import(spark: SparkSession) -> None:
    """Only a worker that Spark has forked can tell, so this takes a real session."""
    question = "'lakesplice.spark.jobs.rewrites' in __import__('sys').modules"
    # A function of ours would bring imports of its own.
    assert spark.sparkContext.parallelize([question] * 2, 2).map(eval).collect() == [True, True]


@pytest.mark.parametrize("view", ["real_time", "read_optimised"])
def test_both_views_are_as_in_python(spark: SparkSession, folder: Path, view: str) -> None:
    same(frame(spark, folder, view=view), Table.open(folder).read(view))


def test_the_real_time_view_is_what_is_read_unless_said_otherwise(folder: Path) -> None:
    found = read_here(folder).sort_by("id").to_pylist()
    assert len(found) == ROWS - 2
    assert found[1]["name"] == "new"


def test_columns_and_system_columns_are_chosen_by_options(
    spark: SparkSession, folder: Path
) -> None:
    found = frame(spark, folder, columns="name, id", include_system=True, include_deleted=True)
    assert found.columns[:2] == ["name", "id"]
    assert found.where("_is_deleted").count() == 2
    assert read_here(folder, columns="name, id", **EVERY_ROW).num_rows == ROWS


def test_versions_are_read_by_number_and_by_time(folder: Path) -> None:
    first, second = sorted(Table.open(folder).history(), key=lambda entry: entry.version)
    assert read_here(folder, version=str(first.version)).num_rows == ROWS
    for entry, count in ((first, ROWS), (second, ROWS - 2)):
        assert entry.info.timestamp_ms is not None
        moment = datetime.fromtimestamp(entry.info.timestamp_ms / 1000, UTC).isoformat()
        assert read_here(folder, as_of=moment).num_rows == count


def test_a_pinned_version_is_read_by_the_pins_name(tmp_path: Path) -> None:
    path = tmp_path / "shop" / "numbers"
    table = Table.create(path, pa.table({"id": [1, 2]}), key=["id"])
    pin_lake(LocalStore(tmp_path), "two", [], EpochMs(0), RequestWait())
    table.upsert(pa.table({"id": [3]}))
    assert read_here(path).num_rows == 3
    assert read_here(path, pin="two").num_rows == 2


CONDITIONS = [
    "id = 1",
    "id > 2990 and id <= 2995",
    "2990 < id",
    "id in (1, 5, 7, 100000)",
    "id not in (1, 5, 7)",
    "id between 3 and 9",
    "name = 'new'",
    "name <=> null",
    "not (name <=> 'new')",
    "name is null",
    "name not in ('new', 'thing 1')",
    "name is not null and not name = 'new'",
    "name like 'thing 1%'",
    "name like '%9'",
    "name like 'thing _'",
    "not name like 'thing%'",
    "price >= 700.25",
    "price = cast(1.5 as decimal(5,1))",
    "day = date'2026-01-05'",
    "day < '2026-01-05'",
    "raw = X'05'",
    "open",
    "not open",
    "open is true",
    "open = false and id < 100",
    "id = 1 or name = 'last'",
    "_is_deleted",
    "id > 9223372036854775807",
    "id = 3.0",
    "id > 2.5 and id < 3.5",
    "weight > 5 and weight < 1e2",
    "id > -1e0",
]
EVERY_ROW = {"include_system": "true", "include_deleted": "true"}


@pytest.fixture(scope="module")
def every_row(spark: SparkSession, folder: Path) -> pa.Table:
    return frame(spark, folder, **EVERY_ROW).toArrow()


@pytest.fixture(scope="module")
def kept(spark: SparkSession, every_row: pa.Table) -> pa.Table:
    """A column per condition, which tells the rows of `every_row` that Spark alone keeps by it."""
    columns = [f"coalesce({text}, false) AS `{at}`" for at, text in enumerate(CONDITIONS)]
    return spark.createDataFrame(every_row).selectExpr("id", *columns).toArrow()


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_filter_keeps_the_rows_that_it_keeps_in_spark(
    folder: Path, every_row: pa.Table, kept: pa.Table, condition: str
) -> None:
    """The source runs in this process: each query of Spark starts several of its own."""
    at = CONDITIONS.index(condition)
    expected = set(kept.filter(kept.column(str(at)))["id"].to_pylist())
    rows = [row for row in every_row.to_pylist() if row["id"] in expected]
    same_rows(read_here(folder, filter=condition, **EVERY_ROW), rows)


def test_a_filter_in_spark_is_the_one_of_the_source(
    spark: SparkSession, folder: Path, every_row: pa.Table
) -> None:
    found = frame(spark, folder, filter="id > 2990 and not open", **EVERY_ROW)
    rows = [row for row in every_row.to_pylist() if row["id"] > 2990 and not row["open"]]
    same_rows(found.toArrow(), rows)


def test_a_filter_on_a_dataframe_does_not_affect_its_next_query(
    spark: SparkSession, folder: Path
) -> None:
    found = frame(spark, folder)
    assert found.where("id = 7").count() == 1
    assert found.count() == ROWS - 2


def test_a_table_of_many_files_is_read_by_many_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakesplice.apps.spark_format.source._PARTITION_BYTES", 1)
    table = Table.create(tmp_path / "a" / "b", pa.table({"id": [1]}), key=["id"])
    for n in range(2, 6):
        table.upsert(pa.table({"id": [n]}))
    found = frame(spark, tmp_path / "a" / "b")
    assert sorted(row["id"] for row in rows_of(found)) == [1, 2, 3, 4, 5]


def test_an_empty_table_has_columns(spark: SparkSession, tmp_path: Path) -> None:
    Table.create(tmp_path / "a" / "b", SCHEMA, key=["id"])
    found = frame(spark, tmp_path / "a" / "b")
    assert found.columns == SCHEMA.names
    assert found.count() == 0


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"columns": "id,prize"}, "no such column"),
        ({"view": "blue"}, "unknown view"),
        ({"version": "99"}, "never written"),
        ({"version": "one"}, "write a version as a whole number"),
        ({"as_of": "yesterday"}, "isn't a time such as"),
        ({"as_of": "2001-01-01"}, "no retained version"),
        ({"version": "0", "as_of": "2026-01-01"}, "not both"),
        ({"include_deleted": "maybe"}, "true or false"),
        ({"filter": "prize > 3"}, "no such column"),
        ({"filter": "id >"}, "isn't a SQL condition"),
    ],
)
def test_options_that_do_not_fit_are_errors_with_a_reason(
    folder: Path, options: dict[str, str], complaint: str
) -> None:
    with pytest.raises(LakespliceError, match=complaint):
        read_here(folder, **options)


def test_a_folder_without_a_table_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="no table"):
        frame(spark, tmp_path)


@pytest.fixture
def fed(tmp_path: Path) -> Table:
    rows = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
    table = Table.create(tmp_path / "shop" / "fed", rows, key=["id"])
    table.upsert(pa.table({"id": [1, 4], "name": ["A", "d"]}), delete=pa.table({"id": [2]}))
    table.compact()
    return table


AT_FIRST = [(0, 1, "insert", "a"), (0, 2, "insert", "b"), (0, 3, "insert", "c")]
SECOND = [(1, 1, "update_postimage", "A"), (1, 2, "delete", None), (1, 4, "insert", "d")]


def test_changes_between_versions_are_read(spark: SparkSession, fed: Table, tmp_path: Path) -> None:
    folder = tmp_path / "shop" / "fed"
    found = changed(frame(spark, folder, changes=True, starting_version=0))
    assert without_the_dead(found) == AT_FIRST + SECOND
    found = changed(read_here(folder, changes="true", starting_version="0", ending_version="0"))
    assert found == AT_FIRST


# In the gate the drawn stream below shows it: no change twice, and the table's rows at each stop.
@pytest.mark.nightly
def test_a_stream_gives_each_commit_once_and_continues_where_it_stopped(
    spark: SparkSession, fed: Table, tmp_path: Path
) -> None:
    folder = tmp_path / "shop" / "fed"
    found = stream_to(spark, folder, tmp_path, "all", starting_version=0)
    assert without_the_dead(changed(found)) == AT_FIRST + SECOND
    fed.upsert(pa.table({"id": [3], "name": ["C"]}))
    found = stream_to(spark, folder, tmp_path, "all", starting_version=0)
    third = [(fed.version, 3, "update_postimage", "C")]
    assert without_the_dead(changed(found)) == AT_FIRST + SECOND + third


def test_a_stream_begins_with_the_table_as_it_is(
    spark: SparkSession, fed: Table, tmp_path: Path
) -> None:
    folder, version = tmp_path / "shop" / "fed", fed.version
    found = stream_to(spark, folder, tmp_path, "whole")
    whole = [(version, 1, "insert", "A"), (version, 3, "insert", "c"), (version, 4, "insert", "d")]
    assert changed(found) == whole
    fed.upsert(pa.table({"id": [1], "name": ["again"]}))
    found = stream_to(spark, folder, tmp_path, "whole")
    assert changed(found) == [*whole, (fed.version, 1, "update_postimage", "again")]


STEPS = ["put", "put", "put", "delete", "batch", "hear of one", "compact", "merge", "again"]


def test_a_stream_leads_from_nothing_to_the_table_that_a_topic_feeds(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    """In process the law is `property/test_changes_feed_laws.py`; only Spark's engine can show that
    its offsets, shares and starts give the same.
    """
    drawn, source = random.Random(seed), Source()
    policy = SchemaPolicy(partition_by=drawn.choice([(), ("name",)]))
    driver = driver_of(source, LocalStore(tmp_path), policy=policy)
    for partition in (0, 1):
        source.topic.append(partition, source.put(partition))
    assert driver.batch() is CommitOutcome.DONE
    first = ",".join(f"{at}:{end}" for at, end in source.topic.ends.items())
    found = []
    for _ in range(2):
        for _ in range(15):
            step = drawn.choice(STEPS), drawn.randrange(KEYS), drawn.randrange(2)
            take_step(step, source, driver)
        assert driver.batch() is CommitOutcome.DONE
        place = tmp_path / driver.name.path
        found = stream_to(spark, place, tmp_path, "fed", starting_version=0).toArrow().to_pylist()
        assert apply(found) == {row["id"]: row for row in Table.open(place).read().to_pylist()}
    places = [(row["_commit_version"], row["id"]) for row in found]
    assert len(places) == len(set(places)), f"a row's change twice, seed {seed}"
    asked = frame(spark, tmp_path / driver.name.path, at_offsets=first)
    assert [row["id"] for row in rows_of(asked)] == [0, 1]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "starting_version"),
        ({"starting_version": "0", "view": "real_time"}, "can't be combined with changes"),
        ({"starting_version": "one"}, "write a version as a whole number"),
    ],
)
def test_changes_that_are_asked_for_wrongly_are_refused(
    fed: Table, tmp_path: Path, options: dict[str, str], complaint: str
) -> None:
    with pytest.raises(LakespliceError, match=complaint):
        read_here(tmp_path / "shop" / "fed", changes="true", **options)

"""Tables with partition columns: where rows are, what is refused, and which files a filter
opens.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import StructType

from lakesplice.apps.spark_format.source import LakespliceSource
from lakesplice.errors import MissingFileError
from lakesplice.model.choices import NotInserts
from lakesplice.model.parking import ParkCode
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.planning.shape.computing.expression import parse
from lakesplice.planning.shape.shaping import Shape
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.altered import event
from tests.support.partitioned import (
    BY_NAME,
    INT,
    WITHOUT_N,
    Life,
    begun,
    elsewhere,
    row,
)


@pytest.fixture
def life(tmp_path: Path) -> Life:
    return begun(tmp_path)


@pytest.mark.slow
def test_a_file_has_rows_of_one_partition_and_any_reader_can_tell(life: Life) -> None:
    assert life.partitions == [("a",), ("b",), (None,)]
    assert DeltaTable(str(life.root)).metadata().partition_columns == ["name"]
    assert {path.split("/")[1] for path in life.driver.table.manifest.files} == {
        "name=a",
        "name=b",
        "name=__HIVE_DEFAULT_PARTITION__",
    }
    assert elsewhere(life, "a") == [1, 2]
    assert elsewhere(life, "") == [4]


@pytest.mark.slow
def test_a_table_is_partitioned_by_what_is_computed(tmp_path: Path) -> None:
    shape = Shape(computed=(("tens", parse("truncate(n, 10)")),))
    policy = SchemaPolicy(partition_by=("tens",))
    life = Life(tmp_path, policy, shape)
    life.take(event(INT, 1, row(1, 7, "a")), event(INT, 2, row(2, 31, "a")))
    life.take(event(INT, 3, row(1, 32, "a"), row(1, 7, "a")))
    assert [found["tens"] for found in life.rows] == [30, 30]
    assert life.partitions == [("0",), ("30",), ("30",)]
    assert life.merged == life.rows


@pytest.mark.parametrize(
    "later",
    [
        {"id": "int32", "n": "int32"},
        {"id": "int32", "n": "int32", "called": "string"},
        {"id": "int32", "n": "int32", "name": "int32"},
    ],
)
def test_a_partition_column_that_is_dropped_renamed_or_retyped_parks_its_table(
    tmp_path: Path, later: dict[str, str]
) -> None:
    lenient = Behaviour.LENIENT
    policy = SchemaPolicy(
        alter_column_type=lenient,
        rename_column=lenient,
        drop_column=lenient,
        partition_by=("name",),
    )
    life = Life(tmp_path, policy)
    life.take(event(INT, 1, row(1, 1, "a")))
    values = {"id": 1, "n": 2, "called": "a", "name": 5}
    life.take(event(later, 2, {name: values[name] for name in later}))
    code, detail = life.parked()
    assert code is ParkCode.SCHEMA_CHANGE
    assert "is a partition column" in detail
    assert life.rows == [row(1, 1, "a")]


@pytest.mark.slow
def test_other_columns_still_follow_their_policy(tmp_path: Path) -> None:
    life = Life(tmp_path, SchemaPolicy(drop_column=Behaviour.EVOLVE, partition_by=("name",)))
    life.take(event(INT, 1, row(1, 1, "a")))
    life.take(event(WITHOUT_N, 2, {"id": 2, "name": "b"}))
    assert [found["name"] for found in life.rows] == ["a", "b"]


@pytest.mark.slow
@pytest.mark.parametrize("asked", [(), ("n",), ("name", "n")])
def test_other_partition_columns_of_a_table_that_is_there_park_it(
    life: Life, asked: tuple[str, ...]
) -> None:
    life.drive(SchemaPolicy(partition_by=asked))
    life.take(event(INT, 20, row(1, 9, "b")))
    code, detail = life.parked()
    assert code is ParkCode.SCHEMA_CHANGE
    assert "shape.partition_by" in detail
    assert "['name']" in detail


def test_a_table_that_is_there_gets_no_partition_columns(tmp_path: Path) -> None:
    life = Life(tmp_path, SchemaPolicy())
    life.take(event(INT, 1, row(1, 1, "a")))
    life.drive(BY_NAME)
    life.take(event(INT, 2, row(2, 2, "b")))
    assert life.parked()[0] is ParkCode.SCHEMA_CHANGE
    assert life.rows == [row(1, 1, "a")]


@pytest.mark.parametrize("kind", ["double", "bytes", "float"])
def test_a_type_that_readers_write_differently_cannot_partition_a_table(
    tmp_path: Path, kind: str
) -> None:
    life = Life(tmp_path, SchemaPolicy(partition_by=("v",)))
    value = "YQ==" if kind == "bytes" else 1.5
    life.take(event({"id": "int32", "v": kind}, 1, {"id": 1, "v": value}))
    code, detail = life.parked()
    assert code is ParkCode.UNSUPPORTED
    assert "shape.computed" in detail


def test_a_column_that_the_source_lacks_cannot_partition_a_table(tmp_path: Path) -> None:
    life = Life(tmp_path, SchemaPolicy(partition_by=("country",)))
    life.take(event(INT, 1, row(1, 1, "a")))
    code, detail = life.parked()
    assert code is ParkCode.UNSUPPORTED
    assert "'country'" in detail


@pytest.mark.slow
def test_a_value_too_long_for_a_folder_is_only_in_the_log(life: Life) -> None:
    long = "x" * 300
    life.take(event(INT, 20, row(1, 1, long), row(1, 1, "a")))
    assert life.rows[0] == row(1, 1, long)
    assert life.merged[0] == row(1, 1, long)
    assert elsewhere(life, long) == [1]


@pytest.mark.slow
def test_rows_that_never_change_are_kept_apart_too(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.driver = SimulatedDriver(
        life.lake,
        life.topic,
        FixedClock(),
        SeededEntropy(5),
        policy=BY_NAME,
        not_inserts=NotInserts.PARK,
    )
    life.take(event(INT, 1, row(1, 1, "a")), event(INT, 2, row(2, 2, "b")))
    life.take(event(INT, 3, row(1, 9, "c")), event(INT, 4, row(3, 3, "b")))
    assert life.rows == [row(1, 1, "a"), row(2, 2, "b"), row(3, 3, "b")]
    assert life.partitions == [("a",), ("b",), ("b",)]


@pytest.mark.slow
def test_a_date_outside_of_what_the_log_can_say_is_none(tmp_path: Path) -> None:
    shape = Shape(computed=(("day", parse("cast(name, date)")),))
    life = Life(tmp_path, SchemaPolicy(partition_by=("day",)), shape)
    texts = ("0000-02-28", "0001-01-01", "9999-12-31", "10000-01-01", "-0001-01-01")
    life.take(*(event(INT, 10 + at, row(at, at, text)) for at, text in enumerate(texts)))
    assert set(life.partitions) == {("0001-01-01",), ("9999-12-31",), (None,)}
    life.take(event(INT, 30, row(1, 1, "0000-12-31"), row(1, 1, "0001-01-01")))
    assert [found["name"] for found in life.rows][1] == "0000-12-31"


def test_values_whose_folders_would_be_too_long_for_a_bucket_have_none(tmp_path: Path) -> None:
    columns = {"id": "int32", **dict.fromkeys("abcd", "string")}
    life = Life(tmp_path, SchemaPolicy(partition_by=("a", "b", "c", "d")))
    values = dict.fromkeys("abcd", "v" * 200)
    life.take(event(columns, 10, {"id": 1, **values}))
    (file,) = life.driver.table.manifest.files.values()
    assert "=" not in file.path
    assert file.partition == tuple(values.values())
    assert len(life.rows) == 1


NAME, N = ds.field("name"), ds.field("n")


CONDITIONS = (
    NAME == "a",
    NAME != "a",
    NAME.is_null(),
    NAME == "",
    ~NAME.is_null(),
    (NAME == "b") & (N > 3),
    (NAME == "b") | (N == 2),
    NAME.isin(["a", "", "x"]),
    pc.starts_with(NAME, "b"),
    (NAME == "a") | NAME.is_null(),
    N >= 3,
    NAME > "a",
)


@pytest.mark.slow
def test_a_filter_on_partition_columns_leaves_the_rows_that_match(life: Life) -> None:
    life.take(event(INT, 20, row(1, 9, "b"), row(1, 1, "a")), event(INT, 21, row(5, 5, "")))
    life.take(event(INT, 22, row(4, 7, ""), row(4, 4, None)), event(INT, 23, row(3, 3, "bb")))
    life.take(event(INT, 24, None, row(2, 2, "a")), event(INT, 25, row(6, 2, "a")))
    table = Table(life.store)
    order = [("id", "ascending"), ("n", "ascending")]
    for view, deleted in product(View, (False, True)):
        everything = table.read(view, include_deleted=deleted)
        for condition in CONDITIONS:
            found = table.read(view, filter=condition, include_deleted=deleted)
            expected = everything.filter(condition).sort_by(order)
            assert found.sort_by(order).equals(expected), (view, deleted, str(condition))


@pytest.mark.slow
def test_a_filter_opens_neither_files_nor_deltas_of_other_partitions(life: Life) -> None:
    life.take(event(INT, 20, row(3, 9, "b"), row(3, 3, "b")))
    life.take(event(INT, 21, row(1, 9, "a"), row(1, 1, "a")))
    manifest = life.driver.table.manifest
    others = {file.path for file in manifest.files.values() if file.partition != ("b",)}
    ours = manifest.files.keys() - others
    groups = {segment.group for path in ours for segment in manifest.files[path].segments}
    others |= {d.file.path for d in manifest.deltas if groups.isdisjoint(d.waiting)}
    assert any(path.startswith("_lakesplice/deltas/") for path in others)
    for path in others:
        (life.root / path).unlink()
    for condition in (NAME == "b", (NAME == "b") & (N > 3), NAME.isin(["b", "zz"])):
        assert Table(life.store).read(filter=condition).to_pylist() == [row(3, 9, "b")]
    with pytest.raises(MissingFileError):
        Table(life.store).read(filter=N == 9)
    assert Table(life.store).read(filter=NAME == "zz").num_rows == 0


@pytest.mark.slow
def test_a_filter_by_moments_dates_numbers_and_flags_opens_no_other_files(tmp_path: Path) -> None:
    columns = {"id": "int32", "flag": "boolean", "text": "string"}
    shape = Shape(computed=(("at", parse("cast(text, timestamp)")),))
    life = Life(tmp_path, SchemaPolicy(partition_by=("flag", "at", "id")), shape)
    texts = ("2024-03-31 02:30:00", "2024-03-31 02:30:00.000001", None)
    rows = [{"id": at, "flag": at % 2 == 0, "text": texts[at % 3]} for at in range(6)]
    life.take(*(event(columns, 10 + at, found) for at, found in enumerate(rows)))
    manifest = life.driver.table.manifest
    keep = [path for path, file in manifest.files.items() if file.partition[2] == "1"]
    assert manifest.files[keep[0]].partition == ("false", "2024-03-31T02:30:00.000001Z", "1")
    for path in manifest.files.keys() - set(keep):
        (life.root / path).unlink()
    moment = datetime(2024, 3, 31, 2, 30, 0, 1, UTC)
    for condition in (
        (ds.field("at") == moment) & ~ds.field("flag") & (ds.field("id") < 3),
        (ds.field("at") > datetime(2024, 3, 31, 2, 30, tzinfo=UTC)) & (ds.field("id") == 1),
        ds.field("id") == 1,
    ):
        assert Table(life.store).read(filter=condition)["id"].to_pylist() == [1]


@pytest.mark.slow
def test_tasks_of_spark_are_given_no_files_of_other_partitions(life: Life) -> None:
    def files(**more: str) -> set[tuple[str | None, ...]]:
        options = {"path": str(life.root), **more}
        reader = LakespliceSource(options).reader(StructType())
        parts: Sequence[Any] = reader.partitions()
        paths = [path for part in parts for path in part.paths]
        return {life.driver.table.manifest.files[path].partition for path in paths}

    assert files() == {("a",), ("b",), (None,)}
    assert files(filter="name = 'b' and n > 3") == {("b",)}
    assert files(filter="name = 'b'", include_deleted="true") == {("a",), ("b",), (None,)}
    assert files(filter="name = 'zz'") == set()

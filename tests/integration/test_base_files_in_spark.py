"""Spark's vectorized reader returns the same rows of base files as our reader, for every batch
size.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import lakesplice
from lakesplice.model.change import Op
from lakesplice.planning.upkeep.file_merge import FileMergePolicy
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from lakesplice.table.reading.table import Table
from tests.support.every_type import EVERY_TYPE, HIGH, LOW, row
from tests.support.made import MadeTable
from tests.support.parquet_readers import prepare_own_session

ROWS = 9_000
VALUES = (LOW, HIGH, None)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    prepare_own_session()
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    yield session
    session.stop()


def made(root: Path) -> MadeTable:
    table = MadeTable(root, EVERY_TYPE)
    table.insert([row(key, VALUES[key % 3]) for key in range(ROWS)])
    table.change([(Op.UPDATE, row(key, VALUES[(key + 1) % 3])) for key in range(0, ROWS, 97)])
    table.compact()
    return table


@pytest.mark.parametrize("batch", [4096, 1000])
@pytest.mark.parametrize("condition", [None, "c_long_0 between 4090 and 8200"])
def test_spark_reads_a_rewritten_file_as_we_do(
    spark: SparkSession, tmp_path: Path, batch: int, condition: str | None
) -> None:
    table = made(tmp_path)
    (path,) = table.manifest.files
    spark.conf.set("spark.sql.parquet.columnarReaderBatchSize", str(batch))
    frame = spark.read.parquet(str(tmp_path / path)).select(*EVERY_TYPE.names)
    frame = frame if condition is None else frame.where(condition)
    ours = Table(table.store).read("read_optimised")
    expected = ours if condition is None else ours.slice(4090, 8200 - 4090 + 1)
    found = frame.toArrow().cast(pa.schema(expected.schema))
    assert found.sort_by("c_long_0").equals(expected)


LITERALS = {
    "name": "'k{0}'",
    "number": "{0}",
    "small": "cast({0} as smallint)",
    "price": "cast({0} as decimal(12, 2))",
    "day": "date '2000-01-01' + interval '{0}' day",
    "moment": "timestamp '2000-01-01 00:00:00+00:00' + interval '{0}' second",
}


def keyed(folder: Path) -> HandFedTable:
    """A table of a key of every kind that has a bloom filter, spliced, merged and laid out."""
    numbers = pa.array(range(ROWS), pa.int64())
    days = pc.add(pa.scalar(10_957, pa.int32()), numbers.cast(pa.int32())).cast(pa.date32())
    began = 946_684_800
    moments = pc.multiply(pc.add(numbers, began), 1_000_000).cast(pa.timestamp("us", "UTC"))
    rows = pa.table(
        {
            "name": [f"k{number}" for number in range(ROWS)],
            "number": numbers,
            "small": numbers.cast(pa.int16()),
            "price": numbers.cast(pa.decimal128(21, 2)).cast(pa.decimal128(12, 2)),
            "day": days,
            "moment": moments,
            "n": numbers,
        }
    )
    table = lakesplice.Table.create(folder, rows.slice(10), key=[*LITERALS], bloom_filters=True)
    table.upsert(rows.slice(0, 10))
    table.merge_files(policy=FileMergePolicy(files_max=2))
    table.update({"n": "n + 1"}, "number < 50 OR number > 8990")
    table.compact()
    return table


def test_no_key_is_lost_to_readers_of_bloom_filters(spark: SparkSession, tmp_path: Path) -> None:
    """Only another reader can tell whether the filters are those of its own hashes."""
    table = keyed(tmp_path)
    (path,) = (str(tmp_path / path) for path in table.snapshot.manifest.files)
    footer = pq.read_metadata(path).row_group(0)
    with_filter = [footer.column(at).bloom_filter_offset is not None for at in range(7)]
    assert with_filter == [True] * 6 + [False]
    spark.read.parquet(path).createOrReplaceTempView("keyed")
    wanted = [3, 7, 4_100, ROWS - 1]
    for column, literal in LITERALS.items():
        for number in wanted:
            where = f"where {column} = {literal.format(number)}"
            found = spark.sql(f"select number from keyed {where}").collect()
            assert [row.number for row in found] == [number], where
            asked = f"select number from read_parquet('{path}') {where}"
            assert duckdb.sql(asked).fetchall() == [(number,)], where
    excluded = 0
    for number in range(ROWS, ROWS + 50):
        probe = f"select * from parquet_bloom_probe('{path}', 'name', 'k{number}')"
        excluded += sum(excludes for _, _, excludes in duckdb.sql(probe).fetchall())
    assert excluded > 40  # the filters aren't just full

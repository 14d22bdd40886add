"""Spark's vectorized reader returns the same rows of base files as our reader, for every batch
size.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakesplice.model.change import Op
from lakesplice.table.reading.table import Table
from tests.support import short_jvms
from tests.support.every_type import EVERY_TYPE, HIGH, LOW, row
from tests.support.made import MadeTable

ROWS = 9_000
VALUES = (LOW, HIGH, None)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    short_jvms.use()
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

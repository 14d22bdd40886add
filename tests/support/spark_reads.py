"""What Spark reads by the format `lakesplice`: frames, changes and streams, as plain rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from lakesplice.apps.spark_format.source import LakespliceSource

# What Spark says when a process of Python takes more than ten seconds to start, as on a machine
# that does much else; a stream is started again then, and goes on.
STARVED, STARTS_MAX = "Python worker failed to connect back", 3


def frame(spark: SparkSession, folder: Path, **options: Any) -> DataFrame:
    return spark.read.format("lakesplice").options(**options).load(str(folder))


def rows_of(found: DataFrame) -> list[dict[str, Any]]:
    return sorted(found.toArrow().to_pylist(), key=lambda row: row["id"])


def read_here(folder: Path, **options: str) -> pa.Table:
    """What the source returns for the options, with each step of Spark's within this process."""
    source = LakespliceSource({"path": str(folder), **options})
    schema = source.schema()
    reader = source.reader(schema)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    return pa.Table.from_batches(batches, to_arrow_schema(schema))


def same(found: DataFrame, expected: pa.Table) -> None:
    same_rows(found.toArrow(), expected.to_pylist())


def same_rows(found: pa.Table, expected: list[dict[str, Any]]) -> None:
    """The rows are equal, in any order; as text, in which NaN equals itself."""
    one, other = (sorted(rows, key=lambda row: row["id"]) for rows in (found.to_pylist(), expected))
    assert str(one) == str(other)


def changed(found: DataFrame | pa.Table) -> list[tuple[Any, ...]]:
    names = ["_commit_version", "id", "_change_type", "name"]
    rows = (found if isinstance(found, pa.Table) else found.toArrow()).to_pylist()
    return sorted(tuple(row[name] for name in names) for row in rows)


def without_the_dead(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [(*row[:3], None) if row[2] == "delete" else row for row in rows]


def stream_to(
    spark: SparkSession, folder: Path, tmp_path: Path, name: str, **options: Any
) -> DataFrame:
    """Stream what there is into files, going on where the checkpoint of the name stands."""
    source = spark.readStream.format("lakesplice").options(changes=True, **options)
    writing = (
        source.load(str(folder))
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / name / "checkpoint"))
        .trigger(availableNow=True)
    )
    for left in reversed(range(STARTS_MAX)):
        try:
            assert writing.start(str(tmp_path / name / "rows")).awaitTermination(120)
            break
        except PySparkException as error:
            if not left or STARVED not in str(error):
                raise
    return spark.read.parquet(str(tmp_path / name / "rows"))


def apply(changes: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """The rows that the changes lead to, taken version by version."""
    rows: dict[int, dict[str, Any]] = {}
    for change in sorted(changes, key=lambda row: row["_commit_version"]):
        if change["_change_type"] == "delete":
            rows.pop(change["id"], None)
        else:
            rows[change["id"]] = {name: change[name] for name in ("id", "name", "n")}
    return rows

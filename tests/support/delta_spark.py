"""Delta's own Spark reader and writer, in a process of its own: a session's jars can't be changed.

Called as `python -m tests.support.delta_spark <job.json>`, which `DeltaSpark` does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.support.machine import ROOT

SECONDS_MAX = 300


@dataclass(frozen=True)
class DeltaSpark:
    """What Spark with Delta found: a table's rows per version, and what each statement came to.

    Rows are ordered by `order`, in the order of the columns asked for. A statement's outcome is
    empty if it went through, else the error's text.
    """

    versions: tuple[list[list[Any]], ...]
    outcomes: Mapping[str, str]


def run_delta_spark(
    jars: Sequence[Path],
    table: Path,
    scratch: Path,
    versions: int,
    columns: Sequence[str],
    statements: Sequence[str],
    *,
    export: bool = False,
) -> DeltaSpark:
    """Read versions 0 to `versions` - 1 and then try the statements, `{table}` being the table.

    With `export` each version is also written whole to `exported(scratch, version)`.
    """
    job = {
        "jars": [str(jar) for jar in jars],
        "table": str(table),
        "versions": versions,
        "columns": list(columns),
        "statements": list(statements),
        "result": str(scratch / "result.json"),
        "exports": [
            str(exported(scratch, version)) for version in range(versions if export else 0)
        ],
    }
    (scratch / "job.json").write_text(json.dumps(job))
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.delta_spark", str(scratch / "job.json")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "service")},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:6000]
    result = json.loads((scratch / "result.json").read_text())
    return DeltaSpark(tuple(result["versions"]), result["outcomes"])


def exported(scratch: Path, version: int) -> Path:
    """The Parquet file of a version that Spark read."""
    return scratch / f"version-{version}.parquet"


def _main(job_path: Path) -> None:
    from pyspark.sql import SparkSession

    job = json.loads(job_path.read_text())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.jars": ",".join(job["jars"]),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.warehouse.dir": str(job_path.parent / "warehouse"),
    }
    builder = SparkSession.Builder().master("local[1]").appName("delta")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    result = {
        "versions": [_rows(spark, job, version) for version in range(job["versions"])],
        "outcomes": {statement: _try(spark, job, statement) for statement in job["statements"]},
    }
    for version, path in enumerate(job["exports"]):
        pq.write_table(_frame(spark, job, version).toArrow(), path)
    Path(job["result"]).write_text(json.dumps(result))
    spark.stop()


def _frame(spark: Any, job: Mapping[str, Any], version: int) -> Any:
    return spark.read.format("delta").option("versionAsOf", version).load(job["table"])


def _rows(spark: Any, job: Mapping[str, Any], version: int) -> list[list[Any]]:
    frame = _frame(spark, job, version)
    present = [name for name in job["columns"] if name in frame.columns]
    return [list(row) for row in frame.select(*present).orderBy(present[0]).collect()]


def _try(spark: Any, job: Mapping[str, Any], statement: str) -> str:
    try:
        spark.sql(statement.format(table=f"delta.`{job['table']}`")).collect()
    except Exception as error:  # noqa: BLE001 - whatever Spark raises is what we ask for
        return f"{type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    _main(Path(sys.argv[1]))

"""Delta's own Spark reader and writer, in a process of its own: a session's jars can't be changed.

Called as `python -m tests.support.delta_spark JAR...`; it reads the path of a job from each line of
its input and answers each with a line. `run_delta_spark` does that.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support import short_jvms
from tests.support.machine import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS_MAX = 300
# No archive has Delta's classes, and a JVM would verify each of them.
_FLAGS = (
    " -XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions"
    " -XX:-BytecodeVerificationRemote"
)
_DONE = "done\n"


@dataclass(frozen=True)
class DeltaSpark:
    """What Spark with Delta found: a table's rows per version, and what each statement came to.

    Rows are ordered by `order`, in the order of the columns asked for. A statement's outcome is
    empty if it went through, else the error's text.
    """

    versions: Mapping[int, list[list[Any]]]
    outcomes: Mapping[str, str]


def run_delta_spark(
    jars: Sequence[Path],
    table: Path,
    scratch: Path,
    versions: Sequence[int],
    columns: Sequence[str],
    statements: Sequence[str],
    *,
    export: bool = False,
) -> DeltaSpark:
    """Read the versions and then try the statements, `{table}` being the table.

    With `export` each version is written whole to `exported(scratch, version)` instead.
    """
    paths = tuple(str(jar) for jar in jars)
    job = {
        "jars": paths,
        "table": str(table),
        "rows_of": [] if export else [*versions],
        "columns": list(columns),
        "statements": list(statements),
        "result": str(scratch / "result.json"),
        "exports": [
            (version, str(exported(scratch, version))) for version in (versions if export else ())
        ],
    }
    (scratch / "job.json").write_text(json.dumps(job))
    _process(paths).run(scratch / "job.json")
    result = json.loads((scratch / "result.json").read_text())
    return DeltaSpark(dict(result["versions"]), result["outcomes"])


def run_delta_feed(
    jars: Sequence[Path], table: Path, scratch: Path, first: int, last: int
) -> Mapping[str, pa.Table]:
    """Read the change feed of the versions `first` to `last`, both included, the newest one, as a
    batch, by SQL and as a stream; return what each way gave.
    """
    paths = tuple(str(jar) for jar in jars)
    feed = {way: str(scratch / f"{way}.parquet") for way in ("batch", "sql", "stream")}
    job = {
        "table": str(table),
        "rows_of": [],
        "statements": [],
        "exports": [],
        "result": str(scratch / "result.json"),
        "feed": {"first": first, "last": last, "checkpoint": str(scratch / "checkpoint"), **feed},
    }
    (scratch / "job.json").write_text(json.dumps(job))
    _process(paths).run(scratch / "job.json")
    return {way: pq.read_table(path) for way, path in feed.items()}


class _Process:
    """One Spark with Delta for all jobs of a run, one after the other: its start takes seconds."""

    def __init__(self, jars: Sequence[str]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process lives
        given = {**os.environ, **short_jvms.environment()}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.delta_spark", *jars],
            cwd=ROOT,
            env={
                **given,
                "JDK_JAVA_OPTIONS": given["JDK_JAVA_OPTIONS"] + _FLAGS,
                "PYTHONPATH": str(ROOT / "service"),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )
        atexit.register(self.stop)

    def run(self, job: Path) -> None:
        """Wait for the job to be done; AssertionError with what Spark wrote if it failed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        watch = threading.Timer(SECONDS_MAX, self.stop)
        watch.start()
        self._process.stdin.write(f"{job}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        watch.cancel()
        assert answer == _DONE, f"{answer}{self._tail()}"

    def stop(self) -> None:
        """End the process and its JVM."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _tail(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-6000:]


_process = cache(_Process)


def exported(scratch: Path, version: int) -> Path:
    """The Parquet file of a version that Spark read."""
    return scratch / f"version-{version}.parquet"


def _main(jars: Sequence[str]) -> None:
    answers, sys.stdout = sys.stdout, sys.stderr
    with tempfile.TemporaryDirectory() as scratch:
        spark = _session(jars, Path(scratch))
        for line in sys.stdin:
            try:
                # A session of its own, since statements of a job may change settings.
                _do(spark.newSession(), json.loads(Path(line.strip()).read_text()))
                answers.write(_DONE)
            except Exception as error:  # noqa: BLE001 - the test that asked shows it
                answers.write(f"{type(error).__name__}: {error}".replace("\n", " ") + "\n")
            answers.flush()
        spark.stop()


def _session(jars: Sequence[str], scratch: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.jars": ",".join(jars),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        # To generate and compile code for a query takes longer than to interpret it for some rows.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }
    builder = SparkSession.Builder().master("local[1]").appName("delta")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _do(spark: SparkSession, job: Mapping[str, Any]) -> None:
    result = {
        "versions": [(version, _rows(spark, job, version)) for version in job["rows_of"]],
        "outcomes": {statement: _try(spark, job, statement) for statement in job["statements"]},
    }
    for version, path in job["exports"]:
        pq.write_table(_frame(spark, job, version).toArrow(), path)
    if "feed" in job:
        _write_feed(spark, job["table"], job["feed"])
    Path(job["result"]).write_text(json.dumps(result))


def _write_feed(spark: Any, table: str, feed: Mapping[str, Any]) -> None:
    first, last = feed["first"], feed["last"]
    asked = {"readChangeFeed": "true", "startingVersion": str(first)}
    batch = spark.read.format("delta").options(**asked, endingVersion=str(last)).load(table)
    pq.write_table(batch.toArrow(), feed["batch"])
    sql = spark.sql(f"SELECT * FROM table_changes_by_path('{table}', {first}, {last})")
    pq.write_table(sql.toArrow(), feed["sql"])
    stream = spark.readStream.format("delta").options(**asked).load(table).writeStream
    stream = stream.format("memory").queryName("feed").trigger(availableNow=True)
    stream.option("checkpointLocation", feed["checkpoint"]).start().awaitTermination()
    pq.write_table(spark.table("feed").toArrow(), feed["stream"])


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
    _main(sys.argv[1:])

"""Options for JVMs of Spark that tests start and stop within seconds.

Half of such a JVM's cost is compilation for a long life, and loading some ten thousand classes. So
they compile only once, and share an archive of Spark's classes that the first JVM of a run makes:
11 seconds of processor time instead of 27 for a session with a few small queries. The executed code
is the same.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from tests.support.machine import ROOT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The default room for compiled code, with the first compiler alone, is too small for one Spark that
# does the jobs of a whole run: a JVM that has filled it says so on its output, and only interprets.
_FLAGS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m -XX:+UseSerialGC -Xlog:disable"
_SECONDS_MAX = 240


@cache
def environment() -> dict[str, str]:
    """The variables that such a JVM is started with; blocks for the archive the first time."""
    if "JDK_JAVA_OPTIONS" in os.environ:
        return {}
    return {"JDK_JAVA_OPTIONS": f"{_FLAGS} -XX:SharedArchiveFile={_archive()}"}


def use() -> None:
    """Start the JVMs of this process so from here on."""
    os.environ.update(environment())


def _archive() -> Path:
    """The archive for this environment's Spark. Without it, or with another Java, a JVM just loads
    its classes.
    """
    archive = ROOT / "build" / f"spark-{pyspark.__version__}.jsa"
    archive.parent.mkdir(exist_ok=True)
    with archive.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            made = archive.with_suffix(".tmp")
            subprocess.run(
                [sys.executable, "-m", "tests.support.short_jvms"],
                cwd=ROOT,
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT / "service"),
                    "PYSPARK_PYTHON": sys.executable,
                    "JDK_JAVA_OPTIONS": _FLAGS,
                    "PYSPARK_SUBMIT_ARGS": f"--driver-java-options -XX:ArchiveClassesAtExit={made}"
                    " pyspark-shell",
                },
                capture_output=True,
                timeout=_SECONDS_MAX,
                check=True,
            )
            made.rename(archive)
    return archive


def _load_what_a_service_loads() -> None:
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.Builder()
        .master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 4).load()

    def take(batch: DataFrame, _: int) -> None:
        as_it_is = batch.mapInArrow(lambda batches: batches, batch.schema)
        as_it_is.groupBy("value").count().collect()

    query = rows.writeStream.foreachBatch(take).trigger(availableNow=True).start()
    query.awaitTermination(_SECONDS_MAX)
    spark.stop()


if __name__ == "__main__":
    _load_what_a_service_loads()

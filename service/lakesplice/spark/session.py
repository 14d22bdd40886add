"""The Spark session of a driver that runs for months on few cores."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

INGEST_POOL = "ingest"
COMPACTION_POOL = "compaction"

# What the UI keeps of finished work is memory of the driver that never comes back.
_RETAINED = {
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    "spark.ui.retainedDeadExecutors": "10",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.sql.streaming.ui.retainedQueries": "5",
    "spark.sql.streaming.ui.retainedProgressUpdates": "20",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
}
_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.session.timeZone": "UTC",
    # The shuffle's targets are chosen by the plan; merging them would undo it.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(32 << 20),
    # A consumer per topic partition stays open; a bound below their number would reconnect each
    # batch.
    "spark.kafka.consumer.cache.capacity": "8192",
    "spark.python.worker.reuse": "true",
    "spark.task.maxFailures": "2",
}


def build_session(
    master: str, driver_memory: str, jars: Sequence[Path], options: Mapping[str, str]
) -> SparkSession:
    """Start the session, or return the one that runs in this process; `options` win over ours.

    Blocks for some seconds. Workers use this interpreter.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.Builder().master(master).appName("lakesplice")
    log_file = Path(__file__).with_name("log4j2.properties").as_uri()
    settings = {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log_file}",
        **_RETAINED,
        **_SETTINGS,
        "spark.driver.memory": driver_memory,
        "spark.jars": ",".join(str(jar) for jar in jars),
        **options,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session

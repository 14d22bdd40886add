"""The Spark session of a driver that runs for months on few cores, and what its executors have."""

from __future__ import annotations

import importlib
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pyspark.sql import SparkSession

from lakesplice.spark.jvm import start_jvm
from lakesplice.spark.python_workers import ship_package

LogFormat = Literal["console", "json"]
LOG_FILES: Mapping[LogFormat, Path] = {
    "console": Path(__file__).with_name("log4j2.properties"),
    "json": Path(__file__).with_name("log4j2.json.properties"),
}
# What tasks import besides this package, which the driver sends.
_PACKAGES = ("pyarrow", "numpy", "xxhash", "avro")
INGEST_POOL = "ingest"
COMPACTION_POOL = "compaction"

# What the UI keeps of finished work uses memory of the driver for good.
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
_DAEMON = "spark.python.daemon.module"
# A consumer is closed that wasn't used for so long, and for so many triggers more.
_UNUSED_SECONDS, _UNUSED_TRIGGERS = 300, 2
# Executors of a cluster run elsewhere; Spark or `options` say where they find the driver.
_ON_ONE_MACHINE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    _DAEMON: "lakesplice.spark.jobs.worker_daemon",
}
# They start workers before they have this package. What a session of one machine has set stays in
# its JVM, so this has to be said.
_ELSEWHERE = {_DAEMON: "pyspark.daemon"}
AUTHENTICATE = "spark.authenticate"
# Executors run what they are sent, so they must know who sends it. On Kubernetes and YARN Spark
# makes the secret itself; a standalone cluster has one of its own, which `options` have to name.
_AUTHENTICATED = {
    AUTHENTICATE: "true",
    "spark.network.crypto.enabled": "true",
    "spark.io.encryption.enabled": "true",
}
_MAKE_SECRETS = ("k8s://", "yarn")
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.session.timeZone": "UTC",
    # The shuffle's targets are chosen by the plan; merging them would undo it.
    "spark.sql.adaptive.enabled": "false",
    # A task decodes so many records at once, and each time costs it some 10 ms.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
    # A consumer per topic partition stays open; a bound below their number would reconnect each
    # batch.
    "spark.kafka.consumer.cache.capacity": "8192",
    # A query that starts opens consumers of its own. Spark looks for unused ones, ten at a time. By
    # its default, once a minute, those of 400 topics stayed open for up to two hours.
    "spark.kafka.consumer.cache.evictorThreadRunInterval": "1s",
    "spark.python.worker.reuse": "true",
    "spark.task.maxFailures": "2",
    # Kafka's client may wait for ever when it is closed after its broker went away. Spark would
    # wait for it, and by its default nothing limits that.
    "spark.sql.streaming.stopTimeout": "10s",
    # A query's checkpoint is deleted when the query ends, so nothing is gained by checksums. By its
    # default, Spark would also start some twenty processes of the system for each batch.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing"
        ".FileSystemBasedCheckpointFileManager"
    ),
}


def build_session(
    master: str,
    driver_memory: str,
    jars: Sequence[Path],
    options: Mapping[str, str],
    java_options: str = "",
    log_format: LogFormat = "console",
) -> SparkSession:
    """Start the session, or return the one that runs in this process; `options` win over ours.
    `java_options` are the driver's JVM's, which writes its lines in `log_format`.

    Blocks for some seconds. Raises `ConfigurationError` if there is no Java. Workers use this
    interpreter, or the one that `options` name as `spark.pyspark.python`; executors of a cluster
    receive this package from this process.
    """
    settings = session_properties(master, driver_memory, jars, options, java_options, log_format)
    start_session_jvm(master, settings)
    builder = SparkSession.Builder().master(master).appName("lakesplice")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if not on_one_machine(master):
        ship_package(session)
    return session


def start_session_jvm(master: str, properties: Mapping[str, str]) -> None:
    """Start the JVM for a session with these `session_properties`, unless one runs in this process.

    Blocks for some seconds. Raises `ConfigurationError` if there is no Java.
    """
    if "spark.pyspark.python" in properties:
        # Spark's own launcher would set this variable from the property.
        os.environ["PYSPARK_PYTHON"] = properties["spark.pyspark.python"]
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    start_jvm(master, properties)


def session_properties(
    master: str,
    driver_memory: str,
    jars: Sequence[Path],
    options: Mapping[str, str],
    java_options: str = "",
    log_format: LogFormat = "console",
) -> dict[str, str]:
    """Return the properties of Spark with which `build_session` starts, for the same arguments."""
    log_file = LOG_FILES[log_format].as_uri()
    return {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log_file} {java_options}",
        **_RETAINED,
        **_SETTINGS,
        **(_ON_ONE_MACHINE if on_one_machine(master) else _ELSEWHERE),
        **(_AUTHENTICATED if master.startswith(_MAKE_SECRETS) else {}),
        "spark.driver.memory": driver_memory,
        "spark.jars": ",".join(str(jar) for jar in jars),
        **options,
    }


def consumer_properties(trigger_seconds: float) -> dict[str, str]:
    """Return the properties with which Spark's consumers of topics stay open from one batch to the
    next, but are closed once no query uses them.
    """
    seconds = round(_UNUSED_SECONDS + _UNUSED_TRIGGERS * trigger_seconds)
    return {"spark.kafka.consumer.cache.timeout": f"{seconds}s"}


def on_one_machine(master: str) -> bool:
    """Whether tasks run in the driver's own process tree, as with `local[4]`."""
    return master == "local" or master.startswith("local[")


def is_authenticated(session: SparkSession) -> bool:
    """Return whether driver and executors know each other, or are on one machine."""
    context = session.sparkContext
    here = on_one_machine(str(context.master))
    return here or context.getConf().get(AUTHENTICATE) == "true"


def cores(session: SparkSession) -> int:
    """Return how many tasks can run at once on the present executors; at least 2 on a cluster.
    Costs a round trip to the JVM.
    """
    return int(session.sparkContext.defaultParallelism)


def executor_versions(session: SparkSession) -> list[tuple[str, str]]:
    """Return the results of `version_here` in some tasks at once. Blocks until there are executors
    and they answer; Spark's errors if a task fails.
    """
    count = max(2, cores(session))
    tasks = session.sparkContext.parallelize(range(count), count)
    return tasks.map(version_here).collect()


def version_here(_: int = 0) -> tuple[str, str]:
    """Return this process's version of Python, and the name of a missing package; empty if none is
    missing.
    """
    for name in _PACKAGES:
        try:
            importlib.import_module(name)
        except ImportError:
            return platform.python_version(), name
    return platform.python_version(), ""

"""The service's Spark session. Its JVM can start while Python still imports the service."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from lakesplice.config import Settings
from lakesplice.spark.class_archive import use_archive
from lakesplice.spark.jars import SPARK_KAFKA, ensure_jars, folder_of
from lakesplice.spark.jvm import QUICK_START
from lakesplice.spark.session import (
    build_session,
    consumer_properties,
    session_properties,
    start_session_jvm,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JvmStart = Future[None]


def begin_jvm(settings: Settings) -> JvmStart | None:
    """Start the JVM of the session that `open_session` opens, and return at once; None if its jars
    have to be fetched first. The process ends only after the start has ended, since until then a
    file has the session's properties.
    """
    if not folder_of(SPARK_KAFKA, settings.spark.jars_folder).is_dir():
        return None
    properties = session_properties(**_session(settings))
    thread = ThreadPoolExecutor(1, "lakesplice-jvm")
    begun = thread.submit(start_session_jvm, settings.spark.master, properties)
    thread.shutdown(wait=False)
    return begun


def open_session(settings: Settings, jvm: JvmStart | None = None) -> SparkSession:
    """Start the service's session; `jvm` is what `begin_jvm` returned for the same settings.

    Blocks for some seconds. `ConfigurationError` without Java; `RetryableError` if the jars can't
    be fetched.
    """
    if jvm is not None:
        jvm.result()
    return build_session(**_session(settings))


def _session(settings: Settings) -> dict[str, Any]:
    """Return the arguments of `build_session`."""
    spark = settings.spark
    return {
        "master": spark.master,
        "driver_memory": spark.driver_memory,
        "jars": ensure_jars(SPARK_KAFKA, spark.jars_folder),
        "options": {**consumer_properties(settings.trigger), **spark.options},
        "java_options": f"{QUICK_START} {use_archive(spark.jars_folder)}",
        "log_format": settings.logging.format,
    }

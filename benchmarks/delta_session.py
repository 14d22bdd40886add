"""A Spark session that knows Delta Lake."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from lakesplice.spark.jars import DELTA, ensure_jars
from lakesplice.spark.session import build_session

DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def delta_session(
    master: str = "local[*]", memory: str = "4g", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Return a session that knows Delta, on all cores unless `master` says otherwise."""
    return build_session(master, memory, ensure_jars(DELTA), {**DELTA_SETTINGS, **(settings or {})})

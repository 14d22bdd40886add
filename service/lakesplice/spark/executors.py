"""Finds out by a small job what executors have: their Python, and a package that they lack."""

from __future__ import annotations

import importlib
import platform

from pyspark.sql import SparkSession

from lakesplice.spark.session import cores

# What tasks import besides this package, which the driver sends.
_PACKAGES = ("pyarrow", "numpy", "xxhash", "avro")


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

"""What executors are, told by a small job: their Python, and a package that they lack."""

from __future__ import annotations

import importlib
import platform

from pyspark.sql import SparkSession

from lakesplice.spark.session import cores

# What tasks import beside this package, which the driver sends.
_PACKAGES = ("pyarrow", "numpy", "xxhash", "avro")


def executor_versions(session: SparkSession) -> list[tuple[str, str]]:
    """Return what `version_here` says in some tasks at once. Blocks until there are executors and
    they answer; Spark's errors if a task fails.
    """
    count = max(2, cores(session))
    tasks = session.sparkContext.parallelize(range(count), count)
    return tasks.map(version_here).collect()


def version_here(_: int = 0) -> tuple[str, str]:
    """Return this process's version of Python, and a package that it lacks; empty if none."""
    for name in _PACKAGES:
        try:
            importlib.import_module(name)
        except ImportError:
            return platform.python_version(), name
    return platform.python_version(), ""

"""Python workers that have imported what tasks need before the first task arrives.

On one machine Spark forks its workers from this module's process, by the name that
`spark.python.daemon.module` gives. PySpark's own process imports little, so that each worker
imports for itself: a second of a core and 75 MB. Workers that are forked after the imports share
both. This process runs no task, so no thread in it holds a lock when a worker is forked. Executors
of a cluster can't start it: they receive this package only with their first task.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from lakesplice.spark.jobs import batch, rewrites
from lakesplice.spark.python_workers import keep_zip_directories

PRELOADED = (batch, rewrites)
"""The modules whose functions tasks run."""


def start_workers(session: SparkSession, count: int) -> None:
    """Start `count` Python workers, which import what a batch needs if they don't have it; blocks
    for seconds.

    The first batch would have to wait for them. Raises what a Spark job raises; nothing depends on
    it.
    """
    session.range(0, count, 1, count).mapInArrow(_import_this_module, "id long").collect()


def serve() -> None:
    """Fork workers as Spark asks for them, until it closes standard input; ends the process."""
    # Here, since the import starts to read this process's arguments.
    from pyspark import daemon

    # In a worker, a collection would write to every object that it visits, and copy its page.
    gc.freeze()
    manager: Callable[[], Any] = daemon.manager  # PySpark leaves it without types
    manager()


def _import_this_module(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the rows unchanged. A worker that unpickles this function has imported the module."""
    keep_zip_directories()
    yield from batches


if __name__ == "__main__":
    serve()

"""What a reused Python worker need not do again for every task, or can do before the first one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from zipimport import zipimporter

import pyarrow as pa
from pyspark.sql import SparkSession


def start_workers(session: SparkSession, count: int) -> None:
    """Start `count` Python workers and import in them what a batch needs; blocks for seconds.

    The imports take a worker some two seconds of a core, which the first batch would wait for.
    Raises what a Spark job raises; nothing depends on this having been done.
    """
    session.range(0, count, 1, count).mapInArrow(_import_batch, "id long").collect()


def _import_batch(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from lakesplice.spark import batch  # noqa: F401  # batch imports this module

    keep_zip_directories()
    yield from batches


def keep_zip_directories() -> None:
    """Let the worker that calls this keep what it knows of the zip files on its path; idempotent.

    Before each task PySpark drops all import caches, upon which Python 3.11 reads the directories
    of `pyspark.zip` and of Spark's jar again: 50 ms and more a task, more than a small batch takes.
    A worker's zip files never change; one that is shipped later has a name of its own.
    """
    zipimporter.invalidate_caches = _keep  # type: ignore[assignment, method-assign]  # replaced


def _keep(_importer: zipimporter) -> None:
    """Do nothing: the directory is kept as it was read."""

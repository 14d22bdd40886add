"""What a reused Python worker need not do again for every task."""

from __future__ import annotations

from zipimport import zipimporter


def keep_zip_directories() -> None:
    """Let the worker that calls this keep what it knows of the zip files on its path; idempotent.

    Before each task PySpark drops all import caches, upon which Python 3.11 reads the directories
    of `pyspark.zip` and of Spark's jar again: 50 ms and more a task, more than a small batch takes.
    A worker's zip files never change; one that is shipped later has a name of its own.
    """
    zipimporter.invalidate_caches = _keep  # type: ignore[assignment, method-assign]


def _keep(_importer: zipimporter) -> None:
    """Do nothing: the directory stays as it was read."""

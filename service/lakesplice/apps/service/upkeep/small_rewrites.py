"""Rewrites of little data run in the driver's process, without a job of Spark.

To run a job of one task costs several times what the task needs to rewrite a file of some hundred
KB (decision 0062).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from lakesplice.errors import LakespliceError, RetryableError
from lakesplice.spark.jobs.rewrites import RewriteTask, rewrite_files, rewritten
from lakesplice.table.upkeep.compact import Compacted

# Some 0.2 seconds of the processor, and some ten times as much memory. More would keep the driver's
# other threads waiting.
DRIVER_BYTES_MAX = 2**20


def rewrite_by_size(session: SparkSession, tasks: Sequence[RewriteTask]) -> list[Compacted]:
    """Run the tasks and return what they wrote, in their order: in this process if all of them
    together read at most DRIVER_BYTES_MAX, otherwise as `rewrite_files` does.

    Blocks; errors as in `rewrite_files`.
    """
    if sum(_bytes_read(task) for task in tasks) > DRIVER_BYTES_MAX:
        return rewrite_files(session, tasks)
    try:
        return [rewritten(task) for task in tasks]
    except LakespliceError:
        raise
    except Exception as error:
        # A task's would be an error of Spark: the table is left alone for a while, too.
        raise RetryableError(
            "a compaction met an error that nobody expected; report it", cause=repr(error)
        ) from error


def _bytes_read(task: RewriteTask) -> int:
    """Return how many bytes the task's base files and the deltas that wait for them have."""
    files = [task.manifest.files[path] for path in task.paths]
    groups = {segment.group for file in files for segment in file.segments}
    deltas = (one for one in task.manifest.deltas if not groups.isdisjoint(one.waiting))
    return sum(file.bytes for file in files) + sum(delta.file.bytes for delta in deltas)

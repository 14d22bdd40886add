"""Compaction's work as Spark tasks: files of one table are rewritten on executors."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.sql import SparkSession

from lakesplice.errors import LakespliceError, RetryableError
from lakesplice.model.manifest import Manifest, RunRef
from lakesplice.spark.python_workers import keep_zip_directories
from lakesplice.spark.session import COMPACTION_POOL
from lakesplice.splicing.output.copying import OpenSink
from lakesplice.table.files.index_runs import RunCache, write_merged
from lakesplice.table.protocol.intents import Purge
from lakesplice.table.protocol.new_files import NewFile
from lakesplice.table.protocol.ports import Entropy, Rewriter, Store
from lakesplice.table.upkeep.clustering.moved_rows import MovedRows
from lakesplice.table.upkeep.clustering.rearranging import Rearrangement, rearrange
from lakesplice.table.upkeep.compact import Compacted, compact_files
from lakesplice.table.upkeep.file_merge import merge_base_files
from lakesplice.table.upkeep.purge import PurgeRules, purge


@dataclass(frozen=True)
class RewriteTask:
    """Base files of one table, by path, to be rewritten by one task."""

    store: Store
    manifest: Manifest
    paths: tuple[str, ...]
    rewriter: Rewriter
    entropy: Entropy


@dataclass(frozen=True)
class MergeTask:
    """Adjacent runs of one table's row index to be merged by one task."""

    store: Store
    runs: tuple[RunRef, ...]
    entropy: Entropy


@dataclass(frozen=True)
class FileMergeTask:
    """Small base files of one table, by path, to be merged by one task."""

    store: Store
    manifest: Manifest
    paths: tuple[str, ...]
    entropy: Entropy
    open_sink: OpenSink


@dataclass(frozen=True)
class PurgeTask:
    """A table from which one task removes old deleted rows."""

    store: Store
    manifest: Manifest
    rules: PurgeRules
    planned_on: int
    generation: int
    entropy: Entropy


def rewrite_files(session: SparkSession, tasks: Sequence[RewriteTask]) -> list[Compacted]:
    """Run the tasks in the pool of compaction and return what they wrote, in their order.

    Blocks. The pool shares cores fairly with ingest. An error of a task is raised here as the task
    raised it; no version then names what the others wrote. `RetryableError` if a task ended without
    an answer.
    """
    return [pickle.loads(answer) for answer in _run(session, "compaction", tasks, _rewrite)]


def rewritten(task: RewriteTask) -> Compacted:
    """Run a task in this process, without Spark. Blocks; raises as `compact_files`."""
    return compact_files(
        task.store, task.manifest, task.paths, task.rewriter, task.entropy, files_min=1
    )


def merge_runs(session: SparkSession, task: MergeTask) -> RunRef:
    """Merge runs in a task of the compaction pool and return the run written. Blocks."""
    answers = _run(session, "index merge", [task], _merge)
    merged: RunRef = pickle.loads(answers[0])
    return merged


def merge_files(session: SparkSession, task: FileMergeTask) -> tuple[tuple[str, ...], NewFile]:
    """Merge base files in a task of the compaction pool; returns as `merge_base_files`. Blocks."""
    answers = _run(session, "file merge", [task], _merge_files)
    merged: tuple[tuple[str, ...], NewFile] = pickle.loads(answers[0])
    return merged


def purge_table(session: SparkSession, task: PurgeTask) -> Purge | None:
    """Purge in a task of the compaction pool; returns as `purge`. Blocks."""
    answers = _run(session, "purge", [task], _purge)
    purged: Purge | None = pickle.loads(answers[0])
    return purged


def lay_out(session: SparkSession, task: Rearrangement) -> MovedRows:
    """Lay files out in a task of the compaction pool; returns as `rearrange`. Blocks."""
    answers = _run(session, "clustering", [task], _lay_out)
    moved: MovedRows = pickle.loads(answers[0])
    return moved


def _run(
    session: SparkSession, what: str, tasks: Sequence[object], function: Callable[[bytes], bytes]
) -> list[bytes]:
    context = session.sparkContext
    context.setLocalProperty("spark.scheduler.pool", COMPACTION_POOL)
    context.setLocalProperty("spark.job.description", what)
    work = context.parallelize([pickle.dumps(task) for task in tasks], len(tasks))
    try:
        answers: list[bytes | LakespliceError] = work.map(partial(_answer, function)).collect()
    except Py4JJavaError as error:
        raise RetryableError(
            "a task of Spark ended without an answer; its log says why", task=what
        ) from error
    for answer in answers:
        if isinstance(answer, LakespliceError):
            raise answer
    return [answer for answer in answers if not isinstance(answer, LakespliceError)]


def _answer(function: Callable[[bytes], bytes], pickled: bytes) -> bytes | LakespliceError:
    """Return what the task returns, or its error: Spark would hide which one it was."""
    keep_zip_directories()
    try:
        return function(pickled)
    except LakespliceError as error:
        return error


def _rewrite(pickled: bytes) -> bytes:
    return pickle.dumps(rewritten(pickle.loads(pickled)))


def _merge(pickled: bytes) -> bytes:
    task: MergeTask = pickle.loads(pickled)
    return pickle.dumps(write_merged(task.store, task.runs, RunCache(), task.entropy))


def _merge_files(pickled: bytes) -> bytes:
    task: FileMergeTask = pickle.loads(pickled)
    return pickle.dumps(
        merge_base_files(task.store, task.manifest, task.paths, task.entropy, task.open_sink)
    )


def _purge(pickled: bytes) -> bytes:
    task: PurgeTask = pickle.loads(pickled)
    intent = purge(
        task.store, task.manifest, task.rules, task.planned_on, task.generation, task.entropy
    )
    return pickle.dumps(intent)


def _lay_out(pickled: bytes) -> bytes:
    return pickle.dumps(rearrange(pickle.loads(pickled)))

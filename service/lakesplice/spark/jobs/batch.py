"""One Spark job per batch, for all of its tables."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.sql import DataFrame

from lakesplice.spark.java_errors import passing_cause
from lakesplice.spark.jobs.batch_plan import BatchPlan, TopicResult, gather
from lakesplice.spark.jobs.decode_stage import STAGE_DDL, decode_records
from lakesplice.spark.jobs.write_stage import ANSWER_DDL, write_ranges
from lakesplice.spark.python_workers import keep_zip_directories


def run_batch(frame: DataFrame, plan: BatchPlan) -> dict[str, TopicResult]:
    """Run the job of a plan with at least one topic, and return the answers per topic; topics
    without records have none.

    Blocks. Errors of one table are in its answers; an exception means that the job itself died:
    `SourceUnavailable` since Kafka didn't give the records, another `RetryableError` for another
    reason that may pass, and any other error for the rest.
    """
    broadcast = frame.sparkSession.sparkContext.broadcast(plan)
    try:
        rows = (
            # All columns: to leave one out, Spark would copy the others.
            frame.where(_is_read(plan))
            .coalesce(plan.read_tasks)
            .mapInArrow(partial(_decode, broadcast), STAGE_DDL)
            .repartitionById(plan.targets, "target")
            .sortWithinPartitions("topic", "range")
            .mapInArrow(partial(_write, broadcast), ANSWER_DDL)
            .collect()
        )
    except Py4JJavaError as error:
        raise passing_cause(error) or error from error
    finally:
        broadcast.unpersist()
    return gather(pickle.loads(row.answer) for row in rows)


def _is_read(plan: BatchPlan) -> str:
    """Return the condition, in SQL, for records of the plan's topics.

    Python's `isin` would make each literal in the JVM by itself: 0.2 s for 400 topics. Kafka allows
    no quotes in the names of topics.
    """
    names = ", ".join(f"'{topic.topic}'" for topic in plan.topics)
    return f"topic IN ({names})"


def _decode(plan: Any, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    keep_zip_directories()
    return decode_records(plan.value, batches)


def _write(plan: Any, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    keep_zip_directories()
    return write_ranges(plan.value, batches)

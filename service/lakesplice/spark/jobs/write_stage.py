"""The second stage of a batch: payloads of changes in, files of the tables written, answers out."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

import pyarrow as pa

from lakesplice.model.schema import TableSchema
from lakesplice.spark.jobs.batch_plan import BatchPlan, RangeWritten, TopicRead
from lakesplice.spark.jobs.decode_stage import ANSWERS, FIRST_SCHEMA, task_error
from lakesplice.table.files.index_runs import RunCache
from lakesplice.table.ingest.append import AppendPlan, append

ANSWER_SCHEMA = pa.schema([("answer", pa.binary())])
ANSWER_DDL = "answer binary"

# Workers are reused, so index runs that were opened and verified once serve later batches, too.
_RUNS = RunCache()


def write_ranges(
    plan: BatchPlan, batches: Iterable[pa.RecordBatch], runs: RunCache = _RUNS
) -> Iterator[pa.RecordBatch]:
    """Append each range of each table; rows are in STAGE_SCHEMA, sorted by topic and range."""
    rows = (row for batch in batches for row in _rows(batch))
    for (number, _), group in groupby(rows, key=lambda row: row[:2]):
        payloads = [payload for _, _, payload in group]
        if number == ANSWERS:
            answers = [answer for payload in payloads for answer in pickle.loads(payload)]
        else:
            answers = [_write(plan, number, payloads, runs)]
        yield pa.RecordBatch.from_pydict(
            {"answer": [pickle.dumps(answer) for answer in answers]}, ANSWER_SCHEMA
        )


def read_answers(batches: Iterable[pa.RecordBatch]) -> Iterator[TopicRead | RangeWritten]:
    """Decode what `write_ranges` yields."""
    for batch in batches:
        for answer in batch.column("answer"):
            yield pickle.loads(answer.as_py())


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[int, int, bytes]]:
    topics, shares = batch.column("topic").to_pylist(), batch.column("range").to_pylist()
    for at, (topic, share) in enumerate(zip(topics, shares, strict=True)):
        yield topic, share, batch.column("payload")[at].as_buffer()


def _schema_of(plan: AppendPlan, changes: pa.Table) -> TableSchema:
    """Return the schema that changes are made for: the table's, or their own if the table has
    none.
    """
    own = (changes.schema.metadata or {}).get(FIRST_SCHEMA)
    return plan.schema if own is None else pickle.loads(own)


def _without_metadata(changes: pa.Table) -> pa.Table:
    return changes.replace_schema_metadata(None) if changes.schema.metadata else changes


def _write(plan: BatchPlan, number: int, payloads: list[pa.Buffer], runs: RunCache) -> RangeWritten:
    topic = plan.topics[number]
    started = time.perf_counter()
    try:
        changes = [pa.ipc.open_stream(payload).read_all() for payload in payloads]
        schemas = [_schema_of(topic.append, part) for part in changes]
        if not all(schemas[0].stores_like(other) for other in schemas):
            return RangeWritten(topic.topic, None, time.perf_counter() - started)
        table_plan = replace(topic.append, schema=schemas[0])
        store = plan.lake.within(topic.table.path)
        appended = append(
            store, table_plan, [_without_metadata(part) for part in changes], runs, plan.entropy
        )
    except Exception as error:  # noqa: BLE001  # errors become values here: other tables continue
        return RangeWritten(topic.topic, None, time.perf_counter() - started, task_error(error))
    return RangeWritten(topic.topic, appended, time.perf_counter() - started)

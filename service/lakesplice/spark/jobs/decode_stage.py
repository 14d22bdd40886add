"""The first stage of a batch: Kafka records in, folded changes out, one payload per table and
range.

A row it passes on is (topic number, range, target, payload): the payload is an Arrow IPC stream of
changes, or, under topic number -1, the pickled answers of the task. Changes of a table that has no
columns yet carry the schema that they are made for, pickled, as metadata of the stream's schema.
"""

from __future__ import annotations

import pickle
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import RetryableError
from lakesplice.formats.events import SchemaText
from lakesplice.model.manifest import DeadLetterRef
from lakesplice.model.names import KEY_HIGH
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.schema import TableSchema
from lakesplice.planning.intake.insert_only import in_key_order
from lakesplice.planning.intake.key_ranges import range_of
from lakesplice.planning.intake.line import IntakeLine
from lakesplice.planning.intake.report import NewDeadLetter
from lakesplice.planning.rows.fold import fold
from lakesplice.spark.jobs.batch_plan import BatchPlan, TaskError, TopicPlan, TopicRead
from lakesplice.table.files.dead_letters import (
    DEAD_LETTER_SCHEMA,
    headers_json,
    place_columns,
    write_dead_letters,
)

ANSWERS = -1
PAYLOAD_BYTES_MAX = 32 << 20
FIRST_SCHEMA = b"lakesplice.first_schema"
WITHHELD = "not stored, since the table has masks; read the record in its topic"
# The changes of a frequent key are folded long before they fill memory.
FOLD_ROWS = 200_000

STAGE_SCHEMA = pa.schema(
    [("topic", pa.int32()), ("range", pa.int32()), ("target", pa.int32()), ("payload", pa.binary())]
)
STAGE_DDL = "topic int, range int, target int, payload binary"


def decode_records(plan: BatchPlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Decode one task's records: columns topic, partition, offset, timestamp, key, value and, if
    the source has them, headers.

    The records of a topic partition are together and in offset order.
    """
    numbers = {topic.topic: number for number, topic in enumerate(plan.topics)}
    tasks: dict[str, _TopicTask] = {}
    for batch in batches:
        for name, partition, records in _runs(batch):
            if name in numbers:
                task = tasks.setdefault(name, _TopicTask(plan, plan.topics[numbers[name]]))
                task.take(partition, records)
    answers = []
    for name, task in tasks.items():
        yield from task.payloads(numbers[name])
        answers.append(task.answer())
    yield stage_row(ANSWERS, 0, 0, pickle.dumps(answers))


def stage_row(topic: int, share: int, target: int, payload: bytes) -> pa.RecordBatch:
    """Return one row in STAGE_SCHEMA. Each batch has one row, since a batch must not exceed 64
    MiB.
    """
    return pa.RecordBatch.from_pydict(
        {"topic": [topic], "range": [share], "target": [target], "payload": [payload]}, STAGE_SCHEMA
    )


def task_error(error: Exception) -> TaskError:
    """Return an exception as a value, so that one table's failure doesn't fail the job."""
    return TaskError.of(error, traceback.format_exc(limit=8))


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    """Divide a batch where the topic or the partition changes."""
    if not batch.num_rows:
        return
    topics = batch.column("topic").dictionary_encode()
    pair = topics.indices.to_numpy().astype(np.int64) << 32 | batch.column("partition").to_numpy()
    starts = np.flatnonzero(np.diff(pair, prepend=-1))
    ends = np.append(starts[1:], len(pair))
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        name = topics.dictionary[topics.indices[start].as_py()].as_py()
        yield name, int(pair[start] & 0xFFFFFFFF), batch.slice(start, end - start)


class _TopicTask:
    """One topic within one task."""

    def __init__(self, plan: BatchPlan, topic: TopicPlan) -> None:
        self._topic = topic
        self._first_schema: TableSchema | None = None
        self._store = plan.lake.within(topic.table.path)
        self._entropy = plan.entropy
        self._registry = plan.schemas
        self._schemas: dict[int, SchemaText] = {}
        self._asked: set[int] = set()
        self._lines: dict[int, IntakeLine] = {}
        self._changes: list[pa.Table] = []
        self._rows = 0
        self._dead_letters: list[pa.Table] = []
        self._error: TaskError | None = None
        self._seconds = 0.0

    def take(self, partition: int, records: pa.RecordBatch) -> None:
        started = time.perf_counter()
        try:
            self._take(partition, records)
        except Exception as error:  # noqa: BLE001  # errors become values here: other tables continue
            self._error = self._error or self._failure(error)
        self._seconds += time.perf_counter() - started

    def _take(self, partition: int, records: pa.RecordBatch) -> None:
        if self._error:
            return
        line = self._lines.get(partition)
        if line is None:
            line = self._lines[partition] = self._line(partition)
        if line.stopped:
            return
        records = _as_source(records)
        result = line.take(records, self._schemas_for(line, records), self._first_schema)
        self._first_schema = self._first_schema or line.first_schema
        self._changes += result.changes
        self._rows += sum(table.num_rows for table in result.changes)
        if result.lowest is not None:
            self._dead_letters = [
                _read_on(letters, partition, result.lowest) for letters in self._dead_letters
            ]
        if result.dead_letters:
            self._dead_letters.append(
                self._dead_letter_table(partition, records, result.dead_letters)
            )
        if self._rows > FOLD_ROWS and not self._topic.reading.insert_only:
            self._changes = [self._folded()]
            self._rows = self._changes[0].num_rows

    def _line(self, partition: int) -> IntakeLine:
        topic = self._topic
        return IntakeLine(
            topic.reading,
            topic.topic,
            partition,
            schema=topic.append.schema,
            # A partition that the plan lacks is an error: skipped records would be lost.
            state=topic.partitions[partition],
            known=topic.known,
        )

    def _schemas_for(
        self, line: IntakeLine, records: pa.RecordBatch
    ) -> Mapping[int, SchemaText] | None:
        """Return all schemas that the records name, each asked of the registry once."""
        if self._registry is None:
            return None
        named = line.schema_ids_in(records) - self._asked
        if named:
            self._schemas |= self._registry.schemas(named)
            self._asked |= named
        return self._schemas

    def payloads(self, number: int) -> Iterator[pa.RecordBatch]:
        if self._error or not self._changes:
            return
        started = time.perf_counter()
        folded = self._folded()
        if self._first_schema is not None:
            folded = folded.replace_schema_metadata(
                {FIRST_SCHEMA: pickle.dumps(self._first_schema)}
            )
        ranges = len(self._topic.targets)
        owner = range_of(folded[KEY_HIGH].to_numpy(), ranges)
        bounds = np.searchsorted(owner, np.arange(ranges + 1))
        self._seconds += time.perf_counter() - started
        for share, target in enumerate(self._topic.targets):
            part = folded.slice(int(bounds[share]), int(bounds[share + 1] - bounds[share]))
            for payload in _payloads(part):
                yield stage_row(number, share, target, payload)

    def answer(self) -> TopicRead:
        letters: tuple[DeadLetterRef, ...] = ()
        if self._dead_letters and not self._error:
            try:
                table = pa.concat_tables(self._dead_letters)
                letters = (write_dead_letters(self._store, table, self._entropy),)
            except Exception as error:  # noqa: BLE001  # as in take
                self._error = self._failure(error)
        reports = tuple(line.report() for line in self._lines.values())
        return TopicRead(self._topic.topic, reports, letters, self._seconds, self._error)

    @property
    def _schema(self) -> TableSchema:
        return self._first_schema or self._topic.append.schema

    def _folded(self) -> pa.Table:
        changes = pa.concat_tables(self._changes)
        if self._topic.reading.insert_only:
            return in_key_order(changes)  # repetitions are counted where the index is asked
        return fold(changes, self._schema)

    def _failure(self, error: Exception) -> TaskError:
        found = task_error(error)
        if not self._topic.reading.withholds:
            return found
        # An error of a store or a registry contains nothing of a record, so it isn't withheld.
        message = str(error) if isinstance(error, RetryableError) else WITHHELD
        return replace(found, message=message, trace="")

    def _dead_letter_table(
        self, partition: int, records: pa.RecordBatch, letters: tuple[NewDeadLetter, ...]
    ) -> pa.Table:
        rows = records.take(pa.array([letter.record for letter in letters]))
        count = len(letters)
        bytes_of = {name: rows.column(name) for name in ("key", "value")}
        places = [place_columns(letter.around) for letter in letters]
        details, headers = [letter.detail for letter in letters], _headers(rows)
        if self._topic.reading.withholds:
            bytes_of = dict.fromkeys(bytes_of, pa.nulls(count, pa.binary()))
            details, headers = [WITHHELD] * count, [headers_json(())] * count
        return pa.table(
            {
                "topic": pa.array([self._topic.topic] * count),
                "partition": pa.array([partition] * count, pa.int32()),
                "offset": rows.column("offset"),
                "timestamp": rows.column("timestamp"),
                **bytes_of,
                "reason": pa.array([letter.reason for letter in letters]),
                "detail": pa.array(details),
                "headers": pa.array(headers),
                "first_seen": pa.array([0] * count, pa.int64()),
                "last_seen": pa.array([0] * count, pa.int64()),
                "attempts": pa.array([0] * count, pa.int32()),
                **{name: [place[name] for place in places] for name in places[0]},
            },
            schema=DEAD_LETTER_SCHEMA,
        )


def _read_on(letters: pa.Table, partition: int, lowest: Position) -> pa.Table:
    """Return dead letters, all of one partition, after a higher position was read."""
    last = pc.equal(letters["behind_file"], BEFORE_ALL.file)
    if letters["partition"][0].as_py() != partition or not pc.any(last).as_py():
        return letters
    for name, value in (("behind_file", lowest.file), ("behind_offset", lowest.offset)):
        at = letters.schema.get_field_index(name)
        filled = pc.if_else(last, pa.scalar(value, pa.int64()), letters[name])
        letters = letters.set_column(at, letters.schema.field(at), filled)
    return letters


def _as_source(records: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns that formats decode; Spark's timestamps become milliseconds."""
    timestamp = records.column("timestamp").cast(pa.timestamp("ms", tz="UTC"), safe=False)
    names = ["offset", "timestamp", "key", "value"]
    columns = [
        records.column("offset"),
        timestamp.cast(pa.int64()),
        records.column("key"),
        records.column("value"),
    ]
    if "headers" in records.schema.names:
        names.append("headers")
        columns.append(records.column("headers"))
    return pa.RecordBatch.from_arrays(columns, names=names)


def _headers(rows: pa.RecordBatch) -> list[str]:
    """Return each record's headers in the form that a dead letter stores."""
    if "headers" not in rows.schema.names:
        return ["[]"] * rows.num_rows
    return [headers_json(headers or ()) for headers in rows.column("headers").to_pylist()]


def _payloads(part: pa.Table) -> Iterator[bytes]:
    pieces = max(1, -(-part.nbytes // PAYLOAD_BYTES_MAX))
    rows = max(1, -(-part.num_rows // pieces))
    for start in range(0, part.num_rows, rows):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, part.schema) as writer:
            writer.write_table(part.slice(start, rows))
        yield sink.getvalue().to_pybytes()

"""The intake line turns a topic partition's records into changes of its table. Nothing else does.

Records are decoded and shaped, columns keep their types if the policy says so, rows of a table
without a key get the position that identifies them, and each record is accepted or refused. First
intake and the replay of dead letters run the same line, so a dead letter becomes what its record
would have become.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa

from lakesplice.formats.events import DecodeContext, SchemaText, decode, schema_ids
from lakesplice.formats.events.values.blocks import Decoded, ImageBlock
from lakesplice.formats.events.values.column_types import TypeHistory
from lakesplice.formats.events.values.declared_types import DeclaredType
from lakesplice.model.arrays import Integers
from lakesplice.model.choices import FormatName, NotInserts, TypeMapping
from lakesplice.model.names import TableName
from lakesplice.model.position import Ordering
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.model.schema import TableSchema
from lakesplice.planning.intake.known_topic import KnownTopic
from lakesplice.planning.intake.partition_intake import PartitionIntake
from lakesplice.planning.intake.report import IntakeResult, PartitionReport
from lakesplice.planning.rows.appended_rows import placed
from lakesplice.planning.schema.ignored_type_changes import with_kept_types
from lakesplice.planning.schema.policy import DEFAULT_POLICY, SchemaPolicy
from lakesplice.planning.shape.metadata_columns import RecordOrigin
from lakesplice.planning.shape.shaping import Shape, shaped, shard_of
from lakesplice.planning.sources.epochs import ChangePositions, EpochPath, epochs_of_late_records
from lakesplice.planning.sources.late_order import UNPROVEN, follow_late
from lakesplice.planning.versions.version_columns import as_versions

# Records of other formats name no schemas. If the format isn't known yet, any record may.
_NAMING_SCHEMAS = (None, FormatName.AVRO, FormatName.FLATTENED_AVRO)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordReading:
    """How the records of one source table are read: what the configuration says of them.

    table              the table that the records name
    declared, format,  how records are decoded: types of columns, the format, other types for
    mappings, key      columns, the key's columns
    history            the types that the source described elsewhere; None without such a source
    shape              which columns are stored, and how; None: all, as they are
    not_inserts        of an insert-only table what happens to other changes; None in other tables
    keeps_versions     whether the table is a history table
    policy             what happens when the source's schema changes
    """

    table: TableName
    declared: Mapping[str, DeclaredType] | None = None
    format: FormatName | None = None
    mappings: tuple[TypeMapping, ...] = ()
    key: tuple[str, ...] = ()
    history: TypeHistory | None = None
    shape: Shape | None = None
    not_inserts: NotInserts | None = None
    keeps_versions: bool = False
    policy: SchemaPolicy = DEFAULT_POLICY

    def context(
        self, format_: FormatName | None, schemas: Mapping[int, SchemaText] | None
    ) -> DecodeContext:
        """Return how records are decoded that are in a format, if it is known, and name schemas."""
        return DecodeContext(
            self.table,
            self.declared,
            self.format or format_,
            mappings=self.mappings,
            key=self.key,
            history=self.history,
            schemas=schemas,
        )

    @property
    def insert_only(self) -> bool:
        """Whether stored rows never change: changes of a known key are skipped."""
        return self.not_inserts is not None or self.keeps_versions

    @property
    def withholds(self) -> bool:
        """Whether no part of a record may be shown as it was sent, since values are masked."""
        return self.shape is not None and self.shape.withholds


class _LateRecordIntake(PartitionIntake):
    """Intake of records that come late: the partition has had higher positions since.

    Falling positions need no check: a change at or below its row's position has no effect, whenever
    it comes. Dead letters have to be proven to lie where their positions are
    (`planning/sources/late_order.py`); it stops at one that isn't.
    """

    def _follow(self, positions: ChangePositions, blocks: Sequence[ImageBlock]) -> EpochPath:
        known, orderings = self._known.late, {block.ordering for block in blocks}
        if known is None or (orderings and Ordering.BINLOG not in orderings):
            epochs = epochs_of_late_records(positions, self._partition, self._epochs)
            return EpochPath(epochs, len(positions), self._state)
        self._late = path = follow_late(positions, self._partition, self._epochs, known)
        return EpochPath(np.array(path.epoch, np.int64), path.end, self._state, UNPROVEN)


class _ReadRowIntake(PartitionIntake):
    """Processes rows that were read from the source; all have the position of the read.

    A source is read until another server takes over, so all belong to the first epoch.
    """

    def _follow(
        self,
        positions: ChangePositions,
        blocks: Sequence[ImageBlock],  # noqa: ARG002  # the caller's
    ) -> EpochPath:
        return EpochPath(np.zeros(len(positions), np.int64), len(positions), self._state)


class RecordSource(Enum):
    """Where records come from: a topic; dead letters or other records behind which later ones were
    applied, so that positions prove nothing; or the source's tables themselves.
    """

    TOPIC = PartitionIntake
    LATE_RECORDS = _LateRecordIntake
    SOURCE_ROWS = _ReadRowIntake


class IntakeLine:
    """Takes the records of one partition in offset order; not thread-safe.

    `schema` is the table's, `state` the partition's, `known` what the table knows of the topic.
    """

    def __init__(
        self,
        reading: RecordReading,
        topic: str,
        partition: int,
        *,
        schema: TableSchema,
        state: PartitionState,
        known: KnownTopic,
        origins: RecordSource = RecordSource.TOPIC,
    ) -> None:
        self._reading = reading
        self._partition = partition
        self._schema = schema
        self._origin = RecordOrigin(topic, reading.table)
        self._format = reading.format or known.format
        self._intake: PartitionIntake = origins.value(
            topic,
            partition,
            schema=schema,
            state=state,
            known=known,
            not_inserts=reading.not_inserts,
            policy=reading.policy,
            shard=dict(shard_of(reading.shape, self._origin)),
        )

    @property
    def stopped(self) -> bool:
        """Whether a record stopped the partition; then no more records may be taken."""
        return self._intake.stopped

    @property
    def first_schema(self) -> TableSchema | None:
        """The schema that changes are made for, if the table had no columns."""
        return self._intake.first_schema

    def schema_ids_in(self, records: pa.RecordBatch) -> set[int]:
        """Return the registry's numbers of the schemas that are needed to read the records."""
        if self._format not in _NAMING_SCHEMAS:
            return set()
        return schema_ids(records.column(name) for name in ("key", "value"))

    def take(
        self,
        records: pa.RecordBatch,
        schemas: Mapping[int, SchemaText] | None = None,
        first_schema: TableSchema | None = None,
    ) -> IntakeResult:
        """Take the next records: columns offset, timestamp (milliseconds), key, value and, if the
        topic has them, headers.

        `schemas` are those that the records name. `first_schema` is the schema that another
        partition found for a table without columns.
        """
        if first_schema is not None:
            self._intake.follow_schema(first_schema)
        context = self._reading.context(self._format, schemas)
        offsets = records.column("offset").to_numpy()
        return self.take_decoded(offsets, decode(records, context))

    def take_decoded(self, offsets: Integers, decoded: Decoded) -> IntakeResult:
        """Take the next records, whose offsets are given, as they were decoded."""
        reading = self._reading
        if reading.shape is not None:
            decoded = shaped(decoded, reading.shape, self._origin)
        if reading.keeps_versions:
            decoded = as_versions(decoded)
        decoded = with_kept_types(decoded, self.first_schema or self._schema, reading.policy)
        return self._intake.take(offsets, placed(decoded, offsets, self._partition))

    def report(self) -> PartitionReport:
        """Return the state of the partition."""
        return self._intake.report()

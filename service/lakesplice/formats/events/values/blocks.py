"""What decoding takes and gives: blocks of row images, dead letters, stops, and what was ignored.

The law that ties them together, for every batch of records:

    records = rows of all blocks + dead letters + ignored + records at and after the first stop

A record whose format sends an update of a key as one event is two rows of a block: a delete of the
old key and a create of the new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakesplice.formats.events.values.column_types import TypeHistory
from lakesplice.formats.events.values.declared import DeclaredType
from lakesplice.model.change import Op
from lakesplice.model.formats import FormatName
from lakesplice.model.manifest import ParkCode
from lakesplice.model.mappings import TypeMapping
from lakesplice.model.names import TableName
from lakesplice.model.position import RANK_DELETE, RANK_OTHER, Ordering, Position
from lakesplice.model.schema import SourceSchema

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class DeadReason(StrEnum):
    """Why a record can't be decoded; the code is stored with the dead letter."""

    EMPTY = "empty"
    NOT_JSON = "not-json"
    NOT_AVRO = "not-avro"
    UNKNOWN_SCHEMA = "unknown-schema"
    NOT_AN_ENVELOPE = "not-an-envelope"
    WRONG_TABLE = "wrong-table"
    WRONG_TYPE = "wrong-type"
    OUT_OF_RANGE = "out-of-range"
    MISSING_FIELD = "missing-field"
    UNEXPECTED_FIELD = "unexpected-field"
    UNKNOWN_OP = "unknown-op"
    MISSING_IMAGE = "missing-image"
    MISSING_POSITION = "missing-position"
    MISSING_KEY = "missing-key"
    KEY_MISMATCH = "key-mismatch"


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema as a registry keeps it; `references` are those it names types of, before it."""

    text: str
    references: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DecodeContext:
    """The table that the records' topic feeds, and how its columns are written where the records
    don't say (`declared`: by source column name; None: nothing was declared). `history` has the
    types that the source told elsewhere, by the place of a change; what it knows counts before what
    is declared.

    `format` is what the records are written in where that is known, because it was set or was seen
    before; else it is told from the records. `schemas` are those of a schema registry that the
    records' heads name, without the numbers that it doesn't know; None: there is no registry.
    `mappings` are the types' that the user chose. `key` are columns to tell rows by, instead of
    what the records say. `threads` lets the JSON reader use all cores; in an executor the cores are
    taken already.
    """

    table: TableName
    declared: Mapping[str, DeclaredType] | None = None
    format: FormatName | None = None
    threads: bool = False
    schemas: Mapping[int, SchemaText] | None = None
    mappings: tuple[TypeMapping, ...] = ()
    key: tuple[str, ...] = ()
    history: TypeHistory | None = None


@dataclass(frozen=True)
class ImageBlock:
    """Decoded changes of one source schema, a row per change, in offset order.

    `rows` are indexes into the records, ascending, twice where a record is two changes. `before`
    and `after` have a column per field of `schema`, by source name and of the field's Arrow type; a
    row of theirs means something only where the `_present` mask says so. Every create, update and
    read has an after-image, every delete a before-image; where the source sent only a delete's key,
    the image's other columns are null. `ordering` says what the positions are. `snapshot` has 1
    for a row of a snapshot of the whole table, 2 for its last, else 0; None: no row is of one.
    """

    schema: SourceSchema
    rows: Rows
    op: npt.NDArray[np.int8]
    position_file: Rows
    position_offset: Rows
    source_ts: pa.Array
    gtid: pa.Array
    before: pa.Table
    before_present: Mask
    after: pa.Table
    after_present: Mask
    ordering: Ordering = Ordering.BINLOG
    snapshot: npt.NDArray[np.int8] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def before_row(self, end: int) -> ImageBlock:
        """Return the changes of records before `end`."""
        inside: Mask = self.rows < end
        return self if inside.all() else self.filter(inside)

    def filter(self, mask: Mask) -> ImageBlock:
        """Return the marked changes."""
        if mask.all():
            return self
        chosen = pa.array(mask)
        return ImageBlock(
            schema=self.schema,
            rows=self.rows[mask],
            op=self.op[mask],
            position_file=self.position_file[mask],
            position_offset=self.position_offset[mask],
            source_ts=self.source_ts.filter(chosen),
            gtid=self.gtid.filter(chosen),
            before=self.before.filter(chosen),
            before_present=self.before_present[mask],
            after=self.after.filter(chosen),
            after_present=self.after_present[mask],
            ordering=self.ordering,
            snapshot=None if self.snapshot is None else self.snapshot[mask],
        )

    def moved(self, mask: Mask) -> ImageBlock:
        """Make of each marked update, whose key changed, a delete of the old key and a create of
        the new one, at its place.
        """
        if not mask.any():
            return self
        taken = np.repeat(np.arange(len(self)), 1 + mask)
        twin = mask[taken]
        gone: Mask = twin & np.append(taken[1:] == taken[:-1], False)
        came: Mask = twin & ~gone
        rows = pa.array(taken)
        op = np.where(gone, Op.DELETE, np.where(came, Op.CREATE, self.op[taken])).astype(np.int8)
        ranks = RANK_OTHER - RANK_DELETE
        return ImageBlock(
            schema=self.schema,
            rows=self.rows[taken],
            op=op,
            position_file=self.position_file[taken],
            position_offset=self.position_offset[taken] - ranks * gone.astype(np.int64),
            source_ts=self.source_ts.take(rows),
            gtid=self.gtid.take(rows),
            before=self.before.take(rows).combine_chunks(),
            before_present=(self.before_present[taken] | gone) & ~came,
            after=self.after.take(rows).combine_chunks(),
            after_present=self.after_present[taken] & ~gone,
            ordering=self.ordering,
            snapshot=None if self.snapshot is None else self.snapshot[taken],
        )


@dataclass(frozen=True)
class DeadLetters:
    """Records that can't be decoded: their indexes, ascending, each with a code and a detail."""

    rows: Rows = field(default_factory=lambda: np.empty(0, np.int64))
    reason: tuple[str, ...] = ()
    detail: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Fence:
    """Where a record says that the table was truncated, or `dropped`, and its transaction."""

    position: Position
    gtid: str | None = None
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Fences:
    """Records that truncated the table, or `dropped` it: their indexes, ascending, positions and
    transactions.
    """

    rows: Rows = field(default_factory=lambda: np.empty(0, np.int64))
    position_file: Rows = field(default_factory=lambda: np.empty(0, np.int64))
    position_offset: Rows = field(default_factory=lambda: np.empty(0, np.int64))
    gtid: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    dropped: Mask = field(default_factory=lambda: np.empty(0, np.bool_))

    @classmethod
    def of(cls, found: Mapping[int, Fence]) -> Fences:
        """Return fences given by the indexes of their records."""
        rows = sorted(found)
        positions = [found[row].position for row in rows]
        return cls(
            np.array(rows, np.int64),
            np.array([position.file for position in positions], np.int64),
            np.array([position.offset for position in positions], np.int64),
            pa.array([found[row].gtid for row in rows], pa.string()),
            np.array([found[row].dropped for row in rows], np.bool_),
        )


@dataclass(frozen=True, slots=True)
class Stop:
    """The record `row` and all after it in its partition must not be applied: the table parks."""

    row: int
    code: ParkCode
    detail: str


@dataclass(frozen=True)
class Decoded:
    """All that came of a batch of records; nothing at or after the first stop is in it.

    `blocks` may interleave: order by `rows`, or better by position. `stops` are ascending by row.
    `ignored` counts records that are no changes, by kind: `tombstone`, `message`, … Those
    that truncated the table are among them, and are the `fences`. `format` is what they were read
    as, None where nothing told it. `suspect_settings` names settings of the source's tools that
    change values, where the records show them.
    """

    blocks: tuple[ImageBlock, ...]
    dead: DeadLetters
    stops: tuple[Stop, ...]
    ignored: Mapping[str, int]
    format: FormatName | None = None
    fences: Fences = field(default_factory=Fences)
    suspect_settings: frozenset[str] = frozenset()

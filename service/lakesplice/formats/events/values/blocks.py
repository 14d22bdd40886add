"""The output of decoding: blocks of row images, dead letters, stops, and ignored records.

For every batch of records:

    records = rows of all blocks + dead letters + ignored + records at and after the first stop

A record whose format sends an update of a key as one event is two rows of a block: a delete of the
old key and a create of the new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lakesplice.formats.events.values.fences import Fences
from lakesplice.formats.events.values.refusals import DeadLetters, Stop
from lakesplice.model.arrays import Integers, Marks, Mask
from lakesplice.model.change import Op
from lakesplice.model.choices import FormatName
from lakesplice.model.position import RANK_DELETE, RANK_OTHER, Ordering
from lakesplice.model.source_schema import SourceSchema


@dataclass(frozen=True)
class ImageBlock:
    """Decoded changes of one source schema, a row per change, in offset order.

    `rows` are indexes of the records, ascending; an index occurs twice if a record is two changes.
    `before` and `after` have a column for each field of `schema`, with the source's name and the
    field's Arrow type; their rows have a meaning only where the `_present` mask is True. Every
    create, update and read has an after-image, every delete a before-image. If the source sent only
    a delete's key, the image's other columns are null. `ordering` says what the positions are.
    `snapshot` is 1 for a row of a snapshot of the whole table, 2 for its last row, otherwise 0;
    None if no row is from a snapshot.
    """

    schema: SourceSchema
    rows: Integers
    op: Marks
    position_file: Integers
    position_offset: Integers
    source_ts: pa.Array
    gtid: pa.Array
    before: pa.Table
    before_present: Mask
    after: pa.Table
    after_present: Mask
    ordering: Ordering = Ordering.BINLOG
    snapshot: Marks | None = None

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
        """Replace each marked update, whose key changed, by a delete of the old key and a create of
        the new one.
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
class Decoded:
    """The result for a batch of records; it has nothing at or after the first stop.

    Rows of `blocks` may interleave: sort them by `rows`, or better by position. `stops` ascend by
    row. `ignored` counts records that are no changes, by kind: `tombstone`, `message`, … Records
    that truncated the table are counted there too, and are the `fences`. `format` is the format as
    which the records were read; None if unknown. `suspect_settings` names settings of the source's
    tools that change values, if the records show any.
    """

    blocks: tuple[ImageBlock, ...]
    dead: DeadLetters
    stops: tuple[Stop, ...]
    ignored: Mapping[str, int]
    format: FormatName | None = None
    fences: Fences = field(default_factory=Fences)
    suspect_settings: frozenset[str] = frozenset()

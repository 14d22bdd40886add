"""A block of images under construction: which of its records are still changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.blocks.positions import Positions, other_tables
from lakesplice.formats.events.blocks.wrong_units import of_another_unit
from lakesplice.formats.events.cells.conversion import convert
from lakesplice.formats.events.json_reading.strict import Flaw
from lakesplice.formats.events.json_reading.template import TOMBSTONE, Halt, Truncated
from lakesplice.formats.events.json_reading.verdict_ledger import VerdictLedger
from lakesplice.formats.events.values.column_types import PositionRange
from lakesplice.formats.events.values.encoding import Cell
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.arrays import Integers, Marks, Mask
from lakesplice.model.change import Op
from lakesplice.model.names import TableName
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Position


@dataclass
class BlockBuilder:
    """A block that is being built: `live` marks the rows that are still changes."""

    records: Integers
    ledger: VerdictLedger
    live: Mask = field(init=False)

    def __post_init__(self) -> None:
        self.live = np.ones(len(self.records), np.bool_)

    def members(self, payloads: pa.Array) -> dict[str, pa.Array]:
        """Return the members of the rows' payloads, by name. A row without a payload is a
        tombstone, which is ignored.
        """
        empty = mask_of(payloads.is_null())
        self.ledger.ignore(self.records[empty], TOMBSTONE)
        self.live[empty] = False
        return members_of(payloads)

    def drop(self, rows: Iterable[int] | Integers, flaw: Flaw) -> None:
        """Make dead letters of rows, unless they are settled already."""
        at = np.fromiter(rows, np.int64)
        self.ledger.kill(self.records[at], flaw)
        self.live[at] = False

    def settle(self, row: int, verdict: Flaw | Halt | Truncated) -> None:
        """Decide about a row that isn't a change, by what its event says."""
        record = int(self.records[row])
        self.live[row] = False
        if isinstance(verdict, Flaw):
            self.ledger.kill([record], verdict)
        elif isinstance(verdict, Halt):
            self.ledger.stop(record, verdict.code, verdict.detail)
        elif verdict.position is not None:
            self.ledger.fence(record, verdict.fence(verdict.position))

    def drop_marked(self, mask: Mask, reason: DeadReason, detail: str) -> None:
        """Make dead letters of marked rows that are still live."""
        self.drop(np.flatnonzero(mask & self.live), Flaw(reason, detail))

    def refuse_other_tables(
        self, databases: pa.Array, tables: pa.Array, expected: TableName
    ) -> None:
        """Make dead letters of live rows of other tables than the expected one."""
        for row, flaw in other_tables(databases, tables, expected).items():
            if self.live[row]:
                self.drop([row], flaw)

    def operations(self, stated: pa.Array, known: Mapping[str, Op]) -> Marks:
        """Return the operation that each row states by its name in `known`; make dead letters of
        live rows that state another one.
        """
        places = pc.index_in(stated, pa.array(list(known))).fill_null(-1).to_numpy()
        detail = f"the type isn't one of {', '.join(known)}"
        self.drop_marked(places < 0, DeadReason.UNKNOWN_OP, detail)
        operations: Marks = np.array(list(known.values()), np.int8)[places]
        return operations

    def refuse_missing_positions(self, positions: Positions) -> None:
        """Make dead letters of rows whose position is missing or doesn't fit."""
        detail = "the event's binlog file, offset and row aren't a position"
        self.drop_marked(positions.missing, DeadReason.MISSING_POSITION, detail)
        detail = "the event's binlog offset or row is beyond 41 or 21 bits"
        self.drop_marked(positions.beyond, DeadReason.OUT_OF_RANGE, detail)

    def leave_beyond(self, positions: Positions, span: PositionRange) -> None:
        """Leave out the rows of changes for which other types are in force: they belong to another
        block.
        """
        if span.is_everything:
            return
        outside = ~_from(positions, span.first)
        if span.until is not None:
            outside |= _from(positions, span.until)
        self.leave(np.flatnonzero(outside & self.live))

    def refuse_nulls(self, name: str, key: pa.Array) -> None:
        """Make dead letters of rows whose key column `name` is null."""
        if key.null_count:
            detail = f"the key column {name!r} is null in the row"
            self.drop_marked(mask_of(key.is_null()), DeadReason.MISSING_KEY, detail)

    def leave(self, rows: Iterable[int] | Integers) -> None:
        """Leave rows out without a verdict: they belong to another block."""
        self.live[np.fromiter(rows, np.int64)] = False

    def tables(
        self,
        raw: Mapping[str, Mapping[str, pa.Array]],
        cells: Sequence[Cell],
        present: Mapping[str, Mask],
    ) -> dict[str, pa.Table]:
        """Return row images with exact types, by their names in `raw`. A row with a `present` value
        that doesn't fit its type becomes a dead letter.
        """
        places = [(image, cell) for image in raw for cell in cells]
        for image, cell in places:
            self._refuse_units(image, cell, raw[image][cell.name], present[image])
        columns = convert([(raw[image][cell.name], cell) for image, cell in places])
        for (image, cell), column in zip(places, columns, strict=True):
            for wrong, reason in column.flaws:
                detail = f"{image}.{cell.name} is no {cell.type.name} written as {cell.encoding}"
                self.drop_marked(wrong & present[image], reason, detail)
        arrays = [column.values for column in columns]
        schema = pa.schema([pa.field(cell.name, cell.type.arrow) for cell in cells])
        width = len(cells)
        return {
            image: pa.Table.from_arrays(arrays[at * width : (at + 1) * width], schema=schema)
            for at, image in enumerate(raw)
        }

    def _refuse_units(self, image: str, cell: Cell, raw: pa.Array, present: Mask) -> None:
        """Stop the table at the first moment in another unit than configured."""
        wrong = of_another_unit(raw, cell)
        if wrong is None:
            return
        rows = np.flatnonzero(wrong & present & self.live)
        if len(rows):
            detail = (
                f"{image}.{cell.name} is {raw[int(rows[0])].as_py()}, which isn't a time written as"
                f" {cell.encoding}: the connector has another time.precision.mode than"
                " schema_change_topics.time_precision_mode says; set that, restart the service, and"
                " give `lakesplice reset --anew`, since earlier values may be wrong too"
            )
            self.settle(int(rows[0]), Halt(ParkCode.TYPES_UNDECLARED, detail))


def _from(positions: Positions, first: Position) -> Mask:
    beyond: Mask = positions.file > first.file
    beyond |= (positions.file == first.file) & (positions.offset >= first.offset)
    return beyond


def mask_of(array: pa.Array) -> Mask:
    """A boolean array without nulls as a mask."""
    mask: Mask = array.to_numpy(zero_copy_only=False)
    return mask


def members_of(rows: pa.Array) -> dict[str, pa.Array]:
    """A struct array's members by name; a null struct has null members."""
    return dict(zip((field.name for field in rows.type), rows.flatten(), strict=True))

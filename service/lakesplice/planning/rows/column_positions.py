"""Column positions: the change that each column's value comes from, if that isn't the row's newest
one.

In a table that takes partial images (`TableSchema.positions`), a column has the value of the newest
change that contains it; a value that isn't known yet is not the same as null. So a change, and a
row, is a set of registers: one per column, with a position, and whether the value is known. When
two sets are united, the register with the higher position wins, column by column. So the result
depends only on the set of changes, not on their order, batches or repetitions.

    a whole image      every column is known, at the change's position
    a partial image    its columns are known, at the change's position; the others are unknown, at a
                       position below all
    a delete           every column is unknown, at the delete's position

The registers of a whole image and of a delete follow from the row's own position and `_is_deleted`;
they are stored as null. All others are stored as these bytes, numbers in little-endian order:

    count      u16     the number of registers: of the columns 0 to count - 2 and, as the last one,
                       of all columns that are added later
    places     u16     per register: 0: known, at the row's own position; n: as entry n - 1 says
    entries    17      each: position file i64, position offset i64, known u8
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakesplice.model.arrays import Bytes, Integers, Mask
from lakesplice.model.change import above
from lakesplice.model.position import Position

_ENTRY = np.dtype([("file", "<i8"), ("offset", "<i8"), ("known", "u1")])
_BEFORE_ALL = -1


@dataclass(frozen=True)
class ColumnRegisters:
    """The registers of changes or rows, one line for each: per column by its id, and last the one
    of columns that are still to be added. `own_file` and `own_offset` are the highest position of
    each line.
    """

    own_file: Integers
    own_offset: Integers
    file: Integers
    offset: Integers
    known: Mask

    def __len__(self) -> int:
        return len(self.own_file)

    def incomplete(self, needed: Mask) -> Mask:
        """Return which lines lack a known value for one of the `needed` columns, which are marked
        by id. A delete has no known values.
        """
        missing: Mask = np.logical_not(self.known[:, :-1][:, needed].all(axis=1))
        return missing

    @property
    def plain(self) -> Mask:
        """Which lines are a whole image or a delete, so that their own position is enough."""
        own = (self.file == self.own_file[:, None]) & (self.offset == self.own_offset[:, None])
        alike = self.known.all(axis=1) | ~self.known.any(axis=1)
        plain: Mask = own.all(axis=1) & alike
        return plain

    def take(self, at: Integers) -> ColumnRegisters:
        """Return the lines at these places, in this order."""
        return ColumnRegisters(
            self.own_file[at], self.own_offset[at], self.file[at], self.offset[at], self.known[at]
        )

    def as_if_deleted_at(self, limit: Position) -> ColumnRegisters:
        """Return the registers as if all rows had been deleted at `limit`."""
        low = ~above(self.file, self.offset, limit.file, limit.offset)
        return ColumnRegisters(
            self.own_file,
            self.own_offset,
            np.where(low, limit.file, self.file),
            np.where(low, limit.offset, self.offset),
            self.known & ~low,
        )

    @classmethod
    def of(
        cls,
        own_file: Integers,
        own_offset: Integers,
        deleted: Mask,
        encoded: pa.Array,
        columns: int,
    ) -> ColumnRegisters:
        """Read the registers of a schema with so many columns; `encoded` has their bytes."""
        rows, width = len(own_file), columns + 1
        file = np.repeat(own_file[:, None], width, axis=1)
        offset = np.repeat(own_offset[:, None], width, axis=1)
        known = np.repeat(~deleted[:, None], width, axis=1)
        at = np.flatnonzero(encoded.is_valid().to_numpy(zero_copy_only=False)) if rows else _NOWHERE
        if len(at):
            own = own_file[at], own_offset[at]
            file[at], offset[at], known[at] = _read(encoded.take(pa.array(at)), own, width)
        return cls(own_file, own_offset, file, offset, known)

    def encoded(self) -> pa.Array:
        """Return the bytes of each line; null if it is plain."""
        at = np.flatnonzero(~self.plain)
        if not len(at):
            return pa.nulls(len(self), pa.binary())
        data, lengths = _written(self.take(at))
        sizes = np.zeros(len(self), np.int64)
        sizes[at] = lengths
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
        valid = np.packbits(sizes > 0, bitorder="little")
        buffers = [pa.py_buffer(valid), pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.binary(), len(self), buffers)


_NOWHERE: Integers = np.empty(0, np.int64)


def of_images(own_file: Integers, own_offset: Integers, has: Sequence[bool]) -> ColumnRegisters:
    """Return the registers of partial images that all have the same columns, which are marked by
    id.
    """
    known = np.repeat(np.array([[*has, False]], np.bool_), len(own_file), axis=0)
    return ColumnRegisters(
        own_file,
        own_offset,
        np.where(known, own_file[:, None], _BEFORE_ALL),
        np.where(known, own_offset[:, None], _BEFORE_ALL),
        known,
    )


def concatenated(parts: Sequence[ColumnRegisters]) -> ColumnRegisters:
    """Return the lines of all parts, of the same columns."""
    names = ("own_file", "own_offset", "file", "offset", "known")
    return ColumnRegisters(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in names)
    )


@dataclass(frozen=True)
class UnionResult:
    """The union of groups of lines: the registers, and the lines that they come from.

    `newest[g]` is the line of group g with the highest position, `sources[g, c]` the line that
    column c has its value from; of equal positions the last line.
    """

    registers: ColumnRegisters
    newest: Integers
    sources: Integers


def united(lines: ColumnRegisters, starts: Integers) -> UnionResult:
    """Unite consecutive lines to one line per group; the groups begin at `starts`."""
    own = _ranked(lines.own_file, lines.own_offset, np.ones(len(lines), np.bool_))
    newest = _highest(own, starts)
    width = lines.file.shape[1]
    sources = np.empty((len(starts), width), np.int64)
    for column in range(width):
        ranks = _ranked(lines.file[:, column], lines.offset[:, column], lines.known[:, column])
        sources[:, column] = _highest(ranks, starts)
    columns = np.arange(width)
    registers = ColumnRegisters(
        lines.own_file[newest],
        lines.own_offset[newest],
        lines.file[sources, columns],
        lines.offset[sources, columns],
        lines.known[sources, columns],
    )
    return UnionResult(registers, newest, sources)


def _ranked(file: Integers, offset: Integers, known: Mask) -> Integers:
    """Number lines by position, so that at one position a known value ranks higher. Equal lines get
    the same number.
    """
    order = np.lexsort((known, offset, file))
    differ = np.zeros(len(order), np.int64)
    for values in (file, offset, known):
        placed = values[order]
        differ[1:] |= placed[1:] != placed[:-1]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(differ)
    return ranks


def _highest(ranks: Integers, starts: Integers) -> Integers:
    """Return each group's line with the highest rank; the last of several."""
    lines = max(len(ranks), 1)
    highest: Integers = np.maximum.reduceat(ranks * lines + np.arange(len(ranks)), starts) % lines
    return highest


def _read(
    encoded: pa.Array, own: tuple[Integers, Integers], width: int
) -> tuple[Integers, Integers, Mask]:
    """Read stored bytes. Columns beyond those that they name have the last register."""
    _, edges_buffer, data_buffer = encoded.buffers()
    edges = np.frombuffer(edges_buffer, np.int32)[encoded.offset :][: len(encoded) + 1].astype(
        np.int64
    )
    data = np.frombuffer(data_buffer, np.uint8)
    starts = edges[:-1]
    counts = _short(data, starts)
    columns = np.minimum(np.arange(width), counts[:, None] - 1)
    places = _short(data, starts[:, None] + 2 + 2 * columns)
    heads = 2 + 2 * counts
    entries = (np.diff(edges) - heads) // _ENTRY.itemsize
    ends = np.cumsum(entries)
    within = np.arange(int(ends[-1])) - np.repeat(ends - entries, entries)
    at = np.repeat(starts + heads, entries) + within * _ENTRY.itemsize
    table = np.ascontiguousarray(data[at[:, None] + np.arange(_ENTRY.itemsize)]).view(_ENTRY)
    # Entry 0 is for registers that need none.
    file, offset, known = (np.append(0, table[name].ravel()) for name in _ENTRY.names or ())
    entry = np.where(places > 0, (ends - entries)[:, None] + places, 0)
    none = places == 0
    found_file = np.where(none, own[0][:, None], file[entry])
    found_offset = np.where(none, own[1][:, None], offset[entry])
    found_known = none | (known[entry] > 0)
    # If a row is complete when a column is added, it gets the value that the column is added with.
    stated = np.arange(width) < counts[:, None] - 1
    complete = (found_known | ~stated).all(axis=1)
    found_known[:, :-1] |= (~stated & complete[:, None])[:, :-1]
    return found_file, found_offset, found_known


def _short(data: Bytes, at: Integers) -> Integers:
    value: Integers = data[at].astype(np.int64) | (data[at + 1].astype(np.int64) << 8)
    return value


def _written(lines: ColumnRegisters) -> tuple[Bytes, Integers]:
    """Return the bytes of all lines in sequence, and the number of bytes of each line."""
    rows, width = lines.file.shape
    ranks = _ranked(lines.file.ravel(), lines.offset.ravel(), lines.known.ravel())
    ranks = ranks.reshape(rows, width)
    at_own = (lines.file == lines.own_file[:, None]) & (lines.offset == lines.own_offset[:, None])
    ranks[at_own & lines.known] = -1
    order = np.argsort(ranks, axis=1, kind="stable")
    rising = np.take_along_axis(ranks, order, axis=1)
    first = rising >= 0
    first[:, 1:] &= rising[:, 1:] != rising[:, :-1]
    places = np.empty((rows, width), np.int64)
    np.put_along_axis(places, order, np.cumsum(first, axis=1), axis=1)
    entries = first.sum(axis=1)
    row = np.repeat(np.arange(rows), entries)
    column = order[first]
    table = np.empty(len(row), _ENTRY)
    table["file"], table["offset"] = lines.file[row, column], lines.offset[row, column]
    table["known"] = lines.known[row, column]
    head = 2 + 2 * width
    lengths = head + entries * _ENTRY.itemsize
    starts = np.cumsum(lengths) - lengths
    data = np.empty(int(lengths.sum()), np.uint8)
    heads = np.column_stack((np.full(rows, width), places)).astype("<u2")
    data[starts[:, None] + np.arange(head)] = heads.view(np.uint8).reshape(rows, head)
    ends = np.cumsum(entries)
    within = np.arange(len(row)) - np.repeat(ends - entries, entries)
    at = starts[row] + head + within * _ENTRY.itemsize
    encoded = table.view(np.uint8).reshape(len(row), _ENTRY.itemsize)
    data[at[:, None] + np.arange(_ENTRY.itemsize)] = encoded
    return data, lengths

"""Chosen rows of a base file, from no more pages than hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.errors import CorruptFileError
from lakesplice.formats.parquet import ROWS_PER_PAGE, BaseReader
from lakesplice.formats.parquet.adopted import missing
from lakesplice.formats.parquet.read import errors_with_path
from lakesplice.model.address import BaseFile
from lakesplice.model.arrays import Integers
from lakesplice.model.column_values import fill_value
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.splicing.pages.rows import read_rows
from lakesplice.splicing.pages.whole_numbers import in_numbers, opened_with_numbers
from lakesplice.splicing.structures.footer import read_footer
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.table.files.adopted_rows import state_of_any
from lakesplice.table.files.base_files import checked_base
from lakesplice.table.protocol.ports import Store

# From this share of the pages on all of them are decoded at once: to find and read a page by itself
# costs about as much as to decode it.
_PAGES_SHARE_MIN = 0.5
_BYTES_AT_ONCE = 16 * 2**20


@dataclass(frozen=True)
class KnownRows:
    """Columns of some rows of a file, `rows`, which ascend, that were read before."""

    rows: Integers
    columns: pa.Table

    def at(self, names: Sequence[str], rows: Integers) -> pa.Table:
        """Return columns at some of the rows, which ascend."""
        found = self.columns.select(names)
        if len(rows) == len(self.rows):
            return found
        return found.take(pa.array(np.searchsorted(self.rows, rows)))


NOTHING_KNOWN = KnownRows(np.empty(0, np.int64), pa.table({}))


def chosen_rows(
    store: Store,
    source: pa.NativeFile,
    file: BaseFile,
    schema: TableSchema,
    rows: Integers,
    names: Sequence[str] | None = None,
    known: KnownRows = NOTHING_KNOWN,
    *,
    as_numbers: bool = False,
) -> pa.Table:
    """Return columns of the rows at `rows`, which ascend, in the order of `names`, all by default.

    `source` is the file, open; what is `known` of its rows isn't read. Columns that were added
    after it was written have their fill, or null. With `as_numbers` short decimals are the whole
    numbers that the file has for them. Memory holds these rows, and a column of a row group.
    Blocks; `CorruptFileError` for a damaged file.
    """
    wanted = schema.arrow.names if names is None else names
    if schema.adopted:
        found = state_of_any(store, file, schema, wanted, rows)
        return in_numbers(found) if as_numbers else found
    reader = checked_base(source, file, schema)
    fills = {c.name: fill_value(c.fill, c.type) for c in schema.columns if c.fill is not None}
    fields = [schema.arrow.field(name) for name in wanted]
    had = known.at([name for name in wanted if name in known.columns.column_names], rows)
    there = [name for name in wanted if name in reader.names.difference(had.column_names)]
    read: dict[str, pa.Array | pa.ChunkedArray]
    read, whole = dict(zip(had.column_names, had.columns, strict=True)), {}
    if there and _most_pages_hold_some(reader, rows):
        whole = _from_whole_chunks(_RowGroups(reader, source, file, as_numbers), there, rows)
    else:
        pages = SourceFile(source, file.path)
        read |= {name: read_rows(pages, name, rows) for name in there}
    columns = {
        field.name: read[field.name].cast(field.type)
        if field.name in read
        else missing(field, len(rows), fills)
        for field in fields
        if field.name not in whole
    }
    table = pa.table(columns, schema=pa.schema([f for f in fields if f.name in columns]))
    table = in_numbers(table) if as_numbers else table
    whole |= dict(zip(table.column_names, table.columns, strict=True))
    layout = pa.schema([field.with_type(whole[field.name].type) for field in fields])
    return pa.table([whole[name] for name in wanted], schema=layout)


def _most_pages_hold_some(reader: BaseReader, rows: Integers) -> bool:
    """Whether most pages hold some of the rows, in the row groups that do."""
    touched, pages = 0, 0
    for first, last in reader.row_groups:
        start, stop = np.searchsorted(rows, (first, last)).tolist()
        if start < stop:
            touched += len(np.unique((rows[start:stop] - first) // ROWS_PER_PAGE))
            pages += -(-(last - first) // ROWS_PER_PAGE)
    return touched > _PAGES_SHARE_MIN * pages


class _RowGroups:
    """Reads row groups of a base file; with `as_numbers` short decimals as whole numbers."""

    def __init__(
        self, reader: BaseReader, source: pa.NativeFile, file: BaseFile, as_numbers: bool
    ) -> None:
        self.reader, self._path, self._as_numbers = reader, file.path, as_numbers
        self._file: pq.ParquetFile | None = None
        # A file of an older schema has to be read as what it is, before it is cast.
        if as_numbers and reader.is_as_written:
            with errors_with_path(file.path):
                self._file = opened_with_numbers(source, read_footer(source, file.path))

    def read(self, row_group: int, names: Sequence[str]) -> pa.Table:
        """Return columns of a row group."""
        if self._file is None:
            found = self.reader.read(row_group, names)
            return in_numbers(found) if self._as_numbers else found
        with errors_with_path(self._path):
            found = self._file.read_row_group(row_group, columns=names)
        first, last = self.reader.row_groups[row_group]
        if found.num_rows != last - first:
            raise CorruptFileError(
                "a row group has another number of rows than its footer says; restore the file",
                path=self._path,
            )
        return found


def _from_whole_chunks(
    groups: _RowGroups, names: Sequence[str], rows: Integers
) -> dict[str, pa.ChunkedArray]:
    """Return columns at some rows; each row group with such a row is decoded."""
    parts: dict[str, list[pa.ChunkedArray]] = {name: [] for name in names}
    for row_group, (first, last) in enumerate(groups.reader.row_groups):
        start, stop = np.searchsorted(rows, (first, last)).tolist()
        if start == stop:
            continue
        at = pa.array(rows[start:stop] - first)
        small = groups.reader.row_group_bytes[row_group] <= _BYTES_AT_ONCE
        for some in [names] if small else [[name] for name in names]:
            table = groups.read(row_group, some).take(at)
            for name in some:
                parts[name].append(table.column(name))
    return {
        name: pa.chunked_array([c for part in of for c in part.chunks])
        for name, of in parts.items()
    }


def edits_of_chosen(edits: Edits, rows: Integers) -> Edits:
    """Return edits of a file's rows as edits of the chosen ones, all that they edit, in their
    order.
    """
    columns = {
        name: ColumnEdit(_places(edit.rows, rows), edit.values)
        for name, edit in edits.columns.items()
    }
    return Edits(_places(edits.rows, rows), columns)


def _places(some: Integers, rows: Integers) -> Integers:
    """Return where some of the rows are among them; both ascend."""
    if len(some) == len(rows):
        return np.arange(len(rows))
    return np.flatnonzero(np.isin(rows, some, assume_unique=True))

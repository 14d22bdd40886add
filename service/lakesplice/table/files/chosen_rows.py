"""Chosen rows of a base file, from no more pages than hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakesplice.formats.parquet import ROWS_PER_PAGE, BaseReader
from lakesplice.formats.parquet.adopted import missing
from lakesplice.model.address import BaseFile
from lakesplice.model.arrays import Integers
from lakesplice.model.column_values import fill_value
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.splicing.pages.rows import read_rows
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

    def at(self, name: str, rows: Integers) -> pa.Array:
        """Return a column at some of the rows, which ascend."""
        places = np.searchsorted(self.rows, rows)
        return self.columns.column(name).combine_chunks().take(pa.array(places))


NOTHING_KNOWN = KnownRows(np.empty(0, np.int64), pa.table({}))


def chosen_rows(
    store: Store,
    source: pa.NativeFile,
    file: BaseFile,
    schema: TableSchema,
    rows: Integers,
    names: Sequence[str] | None = None,
    known: KnownRows = NOTHING_KNOWN,
) -> pa.Table:
    """Return columns of the rows at `rows`, which ascend, in the order of `names`, all by default.

    `source` is the file, open; what is `known` of its rows isn't read. Columns that were added
    after it was written have their fill, or null. Memory holds these rows, and a column of a row
    group. Blocks; `CorruptFileError` for a damaged file.
    """
    wanted = schema.arrow.names if names is None else names
    if schema.adopted:
        return state_of_any(store, file, schema, wanted, rows)
    reader = checked_base(source, file, schema)
    fills = {c.name: fill_value(c.fill, c.type) for c in schema.columns if c.fill is not None}
    fields = [schema.arrow.field(name) for name in wanted]
    unknown = reader.names.difference(known.columns.column_names)
    there = [name for name in wanted if name in unknown]
    if there and _most_pages_hold_some(reader, rows):
        read = _from_whole_chunks(reader, there, rows)
    else:
        pages = SourceFile(source, file.path)
        read = {name: read_rows(pages, name, rows) for name in there}
    columns = [
        known.at(field.name, rows).cast(field.type)
        if field.name in known.columns.column_names
        else read[field.name].cast(field.type)
        if field.name in read
        else missing(field, len(rows), fills)
        for field in fields
    ]
    return pa.table(columns, schema=pa.schema(fields))


def _most_pages_hold_some(reader: BaseReader, rows: Integers) -> bool:
    """Whether most pages hold some of the rows, in the row groups that do."""
    touched, pages = 0, 0
    for first, last in reader.row_groups:
        start, stop = np.searchsorted(rows, (first, last)).tolist()
        if start < stop:
            touched += len(np.unique((rows[start:stop] - first) // ROWS_PER_PAGE))
            pages += -(-(last - first) // ROWS_PER_PAGE)
    return touched > _PAGES_SHARE_MIN * pages


def _from_whole_chunks(
    reader: BaseReader, names: Sequence[str], rows: Integers
) -> Mapping[str, pa.ChunkedArray]:
    """Return columns at some rows; each row group with such a row is decoded."""
    parts: dict[str, list[pa.ChunkedArray]] = {name: [] for name in names}
    for row_group, (first, last) in enumerate(reader.row_groups):
        start, stop = np.searchsorted(rows, (first, last)).tolist()
        if start == stop:
            continue
        at = pa.array(rows[start:stop] - first)
        small = reader.row_group_bytes[row_group] <= _BYTES_AT_ONCE
        for some in [names] if small else [[name] for name in names]:
            table = reader.read(row_group, some).take(at)
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
        name: ColumnEdit(np.searchsorted(rows, edit.rows), edit.values)
        for name, edit in edits.columns.items()
    }
    return Edits(np.searchsorted(rows, edits.rows), columns)

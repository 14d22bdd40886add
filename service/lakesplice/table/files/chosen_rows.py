"""Chosen rows of a base file, from no more pages than hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

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
    after it was written have their fill, or null. Blocks; `CorruptFileError` for a damaged file.
    """
    wanted = schema.arrow.names if names is None else names
    if schema.adopted:
        return state_of_any(store, file, schema, wanted, rows)
    held = checked_base(source, file, schema).names
    pages = SourceFile(source, file.path)
    fills = {c.name: fill_value(c.fill, c.type) for c in schema.columns if c.fill is not None}
    fields = [schema.arrow.field(name) for name in wanted]
    columns = [
        known.at(field.name, rows).cast(field.type)
        if field.name in known.columns.column_names
        else read_rows(pages, field.name, rows).cast(field.type)
        if field.name in held
        else missing(field, len(rows), fills)
        for field in fields
    ]
    return pa.table(columns, schema=pa.schema(fields))


def edits_of_chosen(edits: Edits, rows: Integers) -> Edits:
    """Return edits of a file's rows as edits of the chosen ones, all that they edit, in their
    order.
    """
    columns = {
        name: ColumnEdit(np.searchsorted(rows, edit.rows), edit.values)
        for name, edit in edits.columns.items()
    }
    return Edits(np.searchsorted(rows, edits.rows), columns)

"""Reads chosen rows from files of other writers, with the columns that a table of ours has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lakesplice.errors import UnsupportedError
from lakesplice.formats.parquet.adopted import in_layout
from lakesplice.model.address import BaseFile
from lakesplice.model.arrays import Integers
from lakesplice.model.schema import TableSchema
from lakesplice.splicing.pages.rows import read_rows
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.table.files.base_files import open_base
from lakesplice.table.protocol.ports import Store


def state_of_any(
    store: Store, file: BaseFile, schema: TableSchema, names: Sequence[str], rows: Integers
) -> pa.Table:
    """Return columns of the rows at `rows`, which ascend, from any base file of an adopted table.

    Decodes only the pages that have these rows if it can, else their row groups. Blocks;
    `CorruptFileError` for a damaged file.
    """
    fields = [schema.arrow.field(name) for name in names]
    try:
        with store.open(file.path, file.tail_bytes) as source:
            pages = SourceFile(source, file.path)
            there = set(pages.footer.columns)
            found = {name: read_rows(pages, name, rows) for name in names if name in there}
        return in_layout(pa.table(found), fields, {})
    except UnsupportedError:
        return pa.concat_tables(_by_row_groups(store, file, schema, names, rows))


def _by_row_groups(
    store: Store, file: BaseFile, schema: TableSchema, names: Sequence[str], rows: Integers
) -> Iterator[pa.Table]:
    with open_base(store, file, schema) as reader:
        for row_group, (first, last) in enumerate(reader.row_groups):
            start, stop = np.searchsorted(rows, (first, last))
            if start < stop:
                yield reader.read(row_group, names).take(pa.array(rows[start:stop] - first))

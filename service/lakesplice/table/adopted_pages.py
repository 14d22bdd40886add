"""Files of partitions, with the partition's values as columns beside their own pages."""

from __future__ import annotations

import pyarrow as pa

from lakesplice.formats.parquet import WrittenBase
from lakesplice.model.schema import TableSchema
from lakesplice.planning.edits import Edits
from lakesplice.splicing.operations import NewColumn, add_columns
from lakesplice.splicing.output.copying import StreamSink
from lakesplice.table.adopted_files import FoundFile
from lakesplice.table.page_rewriter import stats_of
from lakesplice.table.ports import Store


def with_constants(
    store: Store, file: FoundFile, schema: TableSchema, sink: pa.NativeFile
) -> WrittenBase:
    """Write a file anew with its constants as columns; its own pages are copied as they are.

    Blocks. `UnsupportedError`, before anything is written, for a file that can't be spliced.
    """
    fields = [schema.arrow.field(name) for name in file.constants]
    added = [NewColumn(field, file.constants[field.name]) for field in fields]
    with store.open(file.path) as source:
        done = add_columns(source, file.path, added, Edits(), StreamSink(sink))
    return WrittenBase(done.rows, stats_of(done, schema), done.pages_end)

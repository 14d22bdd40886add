"""The plain rewrite: read a base file, edit it, write it. The page splice falls back to it, and is
tested against it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lakesplice.formats.parquet import (
    ROW_GROUP_BYTES_MAX,
    BaseReader,
    WrittenBase,
    write_base,
)
from lakesplice.model.address import BaseFile
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.edits import ComparedEdits, Edits, apply_edits


class PlainRewriter:
    """A `Rewriter` that decodes and encodes every page; memory holds about two row groups.

    The new file's row groups have about `row_group_bytes` in memory.
    """

    def __init__(self, row_group_bytes: int = ROW_GROUP_BYTES_MAX) -> None:
        self._row_group_bytes = row_group_bytes

    def compared(self, source: pa.NativeFile, file: BaseFile, edits: Edits) -> ComparedEdits:  # noqa: ARG002  # every page is encoded, whatever is new
        """See `Rewriter.compared`."""
        return ComparedEdits(edits)

    def rewrite(
        self,
        source: pa.NativeFile,
        file: BaseFile,
        edits: Edits,
        schema: TableSchema,
        sink: pa.NativeFile,
    ) -> WrittenBase:
        """See `Rewriter.rewrite`."""
        reader = BaseReader(source, file, schema)

        def edited() -> Iterator[pa.Table]:
            for row_group, (first, last) in enumerate(reader.row_groups):
                yield apply_edits(reader.read(row_group), edits.within(first, last))

        return write_base(edited(), schema, sink, self._row_group_bytes)

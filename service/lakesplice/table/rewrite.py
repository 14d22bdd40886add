"""The plain rewrite: read a base file, edit it, write it. It is the page splice's fallback and
oracle.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lakesplice.formats.parquet import BaseReader, WrittenBase, write_base
from lakesplice.model.address import BaseFile
from lakesplice.model.schema import TableSchema
from lakesplice.planning.edits import Edits, apply_edits


class PlainRewriter:
    """`Rewriter` that decodes and encodes every page; memory holds about two row groups."""

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

        return write_base(edited(), schema, sink)

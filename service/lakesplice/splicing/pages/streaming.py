"""Reads the values of a flat chunk in order, and decodes a bounded number at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.splicing.options import SPAN_BYTES
from lakesplice.splicing.output.images import dictionary_bytes
from lakesplice.splicing.pages.page_decoding import one_column
from lakesplice.splicing.pages.page_runs import fixed_width
from lakesplice.splicing.structures.decoding import decoding
from lakesplice.splicing.structures.enums import Encoding
from lakesplice.splicing.structures.footer import MAGIC
from lakesplice.splicing.structures.source import SourceFile

BUFFER_BYTES = 256 * 1024
_BATCH_ROWS_MIN, _BATCH_ROWS_MAX = 256, 1 << 16
_OFFSET_BYTES = 4


class ChunkValues:
    """Reads a flat chunk once; `width` is the number of bytes of a decoded value, as far as is
    known.

    It holds a page, the dictionary, and the requested values. Blocks; verifies checksums and raises
    `CorruptFileError`.
    """

    def __init__(
        self, source: SourceFile, row_group: int, column: int, span_bytes: int = SPAN_BYTES
    ) -> None:
        self._file_part = source.file_part(row_group, column)
        self._left: list[pa.Array] = []
        self.width = value_bytes(source, row_group, column)
        rows = min(max(span_bytes // (4 * self.width), _BATCH_ROWS_MIN), _BATCH_ROWS_MAX)
        self._batches = self._decoded(source, row_group, column, rows)

    def next(self, count: int) -> pa.Array:
        """Return the next `count` values."""
        found, lacking = list[pa.Array](), count
        while lacking:
            values = self._left.pop() if self._left else next(self._batches, None)
            if values is None:
                raise self._file_part.corrupt("its pages hold fewer values", lacking=lacking)
            if len(values) > lacking:
                self._left.append(values.slice(lacking))
                values = values.slice(0, lacking)
            found.append(values)
            lacking -= len(values)
        return found[0] if len(found) == 1 else pa.concat_arrays(found)

    def _decoded(
        self, source: SourceFile, row_group: int, column: int, rows: int
    ) -> Iterator[pa.Array]:
        chunk, leaf = source.chunk(row_group, column), source.leaf(column)
        head = dictionary_bytes(source, row_group, column)
        described = replace(chunk.bare(chunk.start, head), path=("x",))
        footer = one_column(leaf.element, described, chunk.num_values, source.footer.created_by)
        with decoding(self._file_part):
            metadata = pq.read_metadata(pa.BufferReader(MAGIC + footer.encode()))
            file = pq.ParquetFile(
                source.source,
                metadata=metadata,
                buffer_size=BUFFER_BYTES,
                pre_buffer=False,
                page_checksum_verification=True,
                arrow_extensions_enabled=False,
            )
            for batch in file.iter_batches(rows, use_threads=False):
                yield batch.column(0)


def value_bytes(source: SourceFile, row_group: int, column: int) -> int:
    """Return the bytes of a decoded value of a flat chunk, as far as known. For text with a
    dictionary this is the average of the entries.
    """
    fixed = fixed_width(source.leaf(column))
    if fixed is not None:
        return fixed
    chunk = source.chunk(row_group, column)
    width = chunk.uncompressed_size // max(chunk.num_values, 1)
    page = source.dictionary_page(row_group, column)
    if page is not None:
        width = max(width, page.header.uncompressed_size // max(page.header.num_values, 1))
    if Encoding.DELTA_BYTE_ARRAY in chunk.encodings:
        bounds = source.column_index(row_group, column)
        width = max([width, *(len(low) for low in bounds.min_values)] if bounds else [width])
    return width + _OFFSET_BYTES

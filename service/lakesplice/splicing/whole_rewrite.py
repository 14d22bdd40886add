"""The plain rewrite of any Parquet file: every value is decoded and re-encoded.

It is used for files whose pages can't be spliced, and tests compare splices with it. The new file
is written as the old one was (`writer_options.py`); bloom filters are not written again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakesplice.errors import CorruptFileError, UnsupportedError, UsageError
from lakesplice.planning.rows.edits import ColumnEdit, Edits, apply_edits
from lakesplice.splicing.metadata.geography import GEO, unbounded_value
from lakesplice.splicing.metadata.writer_options import (
    ORIGINAL_CREATED_BY,
    lost_by,
    options_like,
    sorting_like,
)
from lakesplice.splicing.structures.decoding import reading
from lakesplice.splicing.structures.enums import PageKind
from lakesplice.splicing.structures.footer import read_footer
from lakesplice.splicing.structures.source import SourceFile

__all__ = ["ROW_GROUP_BYTES_MAX", "edited", "reading", "rewrite_whole"]

# A row group is held in memory while it is written; one that decodes to more is split.
ROW_GROUP_BYTES_MAX = 128 * 1024 * 1024
_BATCH_BYTES = 8 * 1024 * 1024
_BATCH_ROWS_MIN, _BATCH_ROWS_MAX = 256, 1 << 17
_WAY_ROUND = "rewrite the file with the program that made it"


@dataclass(frozen=True, slots=True)
class _PageFacts:
    """Facts about a file's pages that pyarrow doesn't expose; see `options_like`."""

    rows_per_page: int | None
    checksums: bool
    v2: bool


def _page_facts(file: SourceFile) -> _PageFacts:
    """Read the page index of the first row group, and its first data page."""
    if not file.footer.row_groups or not file.footer.leaves:
        return _PageFacts(None, checksums=False, v2=False)
    group = file.footer.row_groups[0]
    indexes = (file.page_locations(0, column) for column in range(len(group.chunks)))
    pages = [int(one.rows(group.num_rows).max()) for one in indexes if one is not None and len(one)]
    headers = (page.header for page in file.pages(0, 0) if page.header.is_data)
    first = next(headers, None)
    return _PageFacts(
        max(pages) if pages else None,
        checksums=first is not None and first.crc is not None,
        v2=first is not None and first.kind == PageKind.DATA_V2,
    )


def rewrite_whole(
    source: pa.NativeFile,
    name: str,
    edits: Edits,
    sink: Any,
) -> int:
    """Write `source` with `edits` to `sink` and return the number of rows; neither is closed.

    `sink` is what pyarrow writes to. Rows keep their order and their row groups, except that a row
    group larger than ROW_GROUP_BYTES_MAX in memory is split. Memory holds one row group, decoded
    and encoded. Checksums of pages are verified. Blocks. Raises `CorruptFileError` with `name` if
    the source can't be decoded, `UnsupportedError` if it is encrypted or a column's type can't be
    written again, and `UsageError` if an edit's values don't fit their column.
    """
    # First, since pyarrow ends the process on some encrypted files.
    pages = _page_facts(SourceFile(source, name))
    with reading(name, "footer"):
        reader = _Reader(source, name)
    schema = _described(reader, edits)
    options = options_like(
        reader.file,
        rows_per_page=pages.rows_per_page,
        checksums=pages.checksums,
        pages_v2=pages.v2,
    )
    _refuse_losses(reader, schema, options)
    order = sorting_like(reader.file, edits.columns)
    writer = pq.ParquetWriter(sink, schema, sorting_columns=order, **options)
    try:
        rows = 0
        for group in reader.groups(edits):
            writer.write_table(group, row_group_size=max(1, group.num_rows))
            rows += group.num_rows
        writer.close()
    except BaseException:
        # Closing the writer after a failure would raise another error in place of this one.
        writer.is_open = False
        raise
    return rows


def arrow_schema(source: pa.NativeFile, name: str) -> pa.Schema:
    """Return a file's schema as pyarrow reads it, INT96 in microseconds. Blocks."""
    # First, since pyarrow ends the process on some encrypted files.
    read_footer(source, name)
    with reading(name, "footer"):
        file = pq.ParquetFile(source, pre_buffer=False, coerce_int96_timestamp_unit="us")
        return file.schema_arrow


class _Reader:
    """Decodes a file, one row group at a time."""

    def __init__(self, source: pa.NativeFile, name: str) -> None:
        self._source, self.name = source, name
        self.file = self._opened("ns")
        if "INT96" in {self.file.schema.column(at).physical_type for at in self._leaves}:
            self.file = self._opened(self._int96_unit())

    @property
    def _leaves(self) -> range:
        return range(len(self.file.schema))

    def groups(self, edits: Edits) -> Iterator[pa.Table]:
        """Yield the file's rows with the edits, in order; each table becomes a row group."""
        first = 0
        for at in range(self.file.metadata.num_row_groups):
            held: list[pa.Table] = []
            size = 0
            for table in self._batches(at):
                held.append(edited(table, edits.within(first, first + table.num_rows)))
                first += table.num_rows
                size += held[-1].nbytes
                if size >= ROW_GROUP_BYTES_MAX:
                    yield pa.concat_tables(held)
                    held, size = [], 0
            if held:
                yield pa.concat_tables(held)

    def _batches(self, at: int) -> Iterator[pa.Table]:
        with reading(self.name, f"row group {at}"):
            group = self.file.metadata.row_group(at)
            rows, size = group.num_rows, max(1, group.total_byte_size)
            wanted = min(max(rows * _BATCH_BYTES // size, _BATCH_ROWS_MIN), _BATCH_ROWS_MAX)
            read = 0
            for batch in self.file.iter_batches(wanted, row_groups=[at]):
                read += batch.num_rows
                yield pa.Table.from_batches([batch])
        if read != rows:
            raise CorruptFileError(
                "a row group has another number of rows than its footer says; restore the file",
                path=self.name,
                place=f"row group {at}",
            )

    def _opened(self, int96_unit: str) -> pq.ParquetFile:
        return pq.ParquetFile(
            self._source,
            coerce_int96_timestamp_unit=int96_unit,
            page_checksum_verification=True,
            pre_buffer=False,
        )

    def _int96_unit(self) -> str:
        """The unit of INT96 times: microseconds unless times are finer; milliseconds have the
        widest range.
        """
        files = (self.file, self._opened("us"), self._opened("ms"))
        names = [
            self.file.schema.column(at).path
            for at in self._leaves
            if self.file.schema.column(at).physical_type == "INT96"
        ]
        too_fine = too_far = too_far_at_all = False
        for at in range(self.file.metadata.num_row_groups):
            batches = (one.iter_batches(_BATCH_ROWS_MAX, [at], names) for one in files)
            for exact, wide, widest in zip(*batches, strict=True):
                for columns in zip(exact.columns, wide.columns, widest.columns, strict=True):
                    nanos, micros, millis = (self._integers(column) for column in columns)
                    reached = nanos // 1_000_000 == millis
                    too_far |= not reached.all()
                    too_far_at_all |= not (micros // 1000 == millis).all()
                    too_fine |= bool((nanos[reached] % 1000).any())
        if too_far_at_all or (too_far and too_fine):
            raise UnsupportedError(
                "INT96 times have a range and a precision that no other type can hold;"
                f" {_WAY_ROUND}",
                path=self.name,
            )
        return "ns" if too_fine else "us"

    def _integers(self, times: pa.Array) -> Any:
        if not pa.types.is_timestamp(times.type):
            raise UnsupportedError(
                f"INT96 within lists or structs can't be written; {_WAY_ROUND}", path=self.name
            )
        return times.cast(pa.int64()).drop_null().to_numpy()


def edited(table: pa.Table, edits: Edits) -> pa.Table:
    """Return `table` with the edits, for columns of any type; rows count from the table's first."""
    simple: dict[str, ColumnEdit] = {}
    for name, edit in edits.columns.items():
        kind = table.schema.field(name).type
        if _is_simple(kind):
            simple[name] = ColumnEdit(edit.rows, _cast(edit.values, kind, name))
        else:
            at = table.schema.get_field_index(name)
            table = table.set_column(at, table.field(at), _with_edits(table.column(at), edit, name))
    return apply_edits(table, Edits(edits.rows, simple))


def _cast(values: pa.Array, kind: pa.DataType, column: str) -> pa.Array:
    if values.type == kind:
        return values
    try:
        return values.cast(kind)
    except pa.ArrowInvalid as error:
        raise UsageError(
            "new values don't fit a column's type", column=column, type=str(kind), cause=str(error)
        ) from None


def _is_simple(kind: pa.DataType) -> bool:
    return not (
        pa.types.is_nested(kind)
        or pa.types.is_dictionary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_null(kind)
        or isinstance(kind, pa.BaseExtensionType)
    )


def _with_edits(column: pa.ChunkedArray, edit: ColumnEdit, name: str) -> pa.ChunkedArray:
    kind, values = column.type, edit.values
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        values = values.cast(kind.value_type)
    source = np.arange(len(column))
    source[edit.rows] = len(column) + np.arange(len(edit.rows))
    taken = pa.chunked_array([*column.chunks, values], type=column.type).take(pa.array(source))
    if not pa.types.is_dictionary(kind):
        return taken
    return _cast(pc.dictionary_encode(taken.combine_chunks()), kind, name)


def _described(reader: _Reader, edits: Edits) -> pa.Schema:
    """The schema with all metadata that stays true, and the name of the file's first writer."""
    schema = reader.file.schema_arrow
    metadata: dict[bytes, bytes] = {**(schema.metadata or {})}
    origin = (reader.file.metadata.created_by or "").encode()
    metadata.setdefault(ORIGINAL_CREATED_BY, origin)
    if GEO in metadata:
        metadata[GEO] = unbounded_value(metadata[GEO], edits.columns)
    return schema.with_metadata(metadata)


def _refuse_losses(reader: _Reader, schema: pa.Schema, options: Mapping[str, Any]) -> None:
    """Write a file without rows and compare its columns with the source's: refuse lost types."""
    sink = pa.BufferOutputStream()
    try:
        pq.ParquetWriter(sink, schema, **options).close()
        lost = lost_by(reader.file, pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema)
    except (pa.ArrowException, OSError, ValueError) as error:
        lost = [str(error)]
    if lost:
        raise UnsupportedError(
            f"a column's type can't be written again; {_WAY_ROUND}",
            path=reader.name,
            columns=lost[:5],
        )

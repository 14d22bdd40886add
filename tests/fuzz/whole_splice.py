"""A whole splice of any bytes gives a file with the intended values, or an error that names the
file.
"""

from __future__ import annotations

import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.splicing.options import Options
from lakesplice.splicing.output.copying import StreamSink
from lakesplice.splicing.splice import splice
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.splicing.whole_rewrite import edited
from tests.fuzz.inputs import as_file, refused_by_name

NAME = "fuzzed.parquet"
# A few kilobytes may well be gigabytes when unpacked; that takes long and tells nothing.
_BYTES_MAX = 1 << 24


def look_at_splice(data: bytes) -> None:
    """Null, or a value of its own, is put into one row of one column; the input says which."""
    whole = as_file(data)
    refused_by_name(lambda: _spliced(whole, zlib.crc32(data)), {"path"})


def _spliced(whole: bytes, chosen: int) -> None:
    file = SourceFile(pa.BufferReader(whole), NAME)
    chunks = [chunk for group in file.footer.row_groups for chunk in group.chunks]
    if sum(chunk.uncompressed_size for chunk in chunks) > _BYTES_MAX:
        return
    before = _read(whole)
    edits = _edits(file, before, chosen)
    sink = pa.BufferOutputStream()
    splice(pa.BufferReader(whole), NAME, edits, StreamSink(sink), Options(threads=1))
    written = sink.getvalue().to_pybytes()
    SourceFile(pa.BufferReader(written), NAME)
    if before is not None:
        found = _read(written)
        assert found is not None, "what could be read no longer can"
        assert found.num_rows == before.num_rows
        _assert_same(edited(before, edits), found)


def _read(whole: bytes) -> pa.Table | None:
    try:
        return pq.read_table(pa.BufferReader(whole), page_checksum_verification=True)
    except (pa.ArrowException, OSError, ValueError, MemoryError):
        return None


def _edits(file: SourceFile, before: pa.Table | None, chosen: int) -> Edits:
    """One row; none where the file's types aren't known."""
    none = Edits(np.empty(0, np.int64), {})
    rows, leaves = file.footer.num_rows, file.footer.leaves
    if before is None or not rows or not leaves or before.num_rows != rows:
        return none
    leaf = leaves[chosen % len(leaves)]
    row, other = (chosen >> 8) % rows, (chosen >> 16) % rows
    if before.column_names.count(leaf.path[0]) != 1:
        return none
    column = before.column(leaf.path[0]).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        return none
    values = pa.nulls(1, column.type) if chosen % 3 == 0 else column.slice(other, 1)
    at = np.array([row])
    return Edits(at, {leaf.path[0]: ColumnEdit(at, values)})


def _assert_same(meant: pa.Table, found: pa.Table) -> None:
    for name, one, other in zip(meant.column_names, meant.columns, found.columns, strict=True):
        if not one.equals(other):  # unless it is for a NaN
            pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
            wrong = [(a, b) for a, b in pairs if repr(a) != repr(b)]
            assert not wrong, (name, wrong[:3])

"""An index too large to be read is refused before a byte of the new file is written."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.errors import UnsupportedError
from lakesplice.splicing.comparing import compared
from lakesplice.splicing.operations import append_rows, drop_column, merge_files
from lakesplice.splicing.options import Options
from lakesplice.splicing.output.copying import StreamSink
from lakesplice.splicing.splice import splice
from lakesplice.splicing.structures.chunks import ByteRange, Chunk
from lakesplice.splicing.structures.source import SourceFile
from tests.support.in_memory import NAME, edits_of, look, with_chunk

LARGEST = 32 * 1024 * 1024
LARGE = 33 * 1024 * 1024
TABLE = pa.table({"a": [1, 2], "b": [3, 4]})


def file_with(index: str, size: int) -> pa.Buffer:
    """Of its last column an index of so many bytes lies in a gap before the footer."""
    buffer = pa.BufferOutputStream()
    pq.write_table(TABLE, buffer, write_page_index=True)
    data = buffer.getvalue().to_pybytes()
    start = look(data).footer.start
    data = data[:start] + bytes(size) + data[start:]

    def elsewhere(chunk: Chunk) -> Chunk:
        changes: dict[str, Any] = {index: ByteRange(start, size)}
        return replace(chunk, **changes)

    return pa.py_buffer(with_chunk(data, 1, elsewhere))


@pytest.fixture(params=["offset_index", "column_index"])
def file(request: pytest.FixtureRequest) -> pa.Buffer:
    return file_with(request.param, LARGE)


OPERATIONS: dict[str, Callable[[Any, Any], object]] = {
    "splice": lambda source, sink: splice(
        source, NAME, edits_of({"a": ([0], pa.array([7]))}), sink
    ),
    "append": lambda source, sink: append_rows(source, NAME, [TABLE], sink),
    "drop": lambda source, sink: drop_column(source, NAME, "a", sink),
    "merge": lambda source, sink: merge_files([(source, NAME)], sink),
}


@pytest.mark.slow
def test_an_index_of_exactly_the_largest_size_is_not_too_large() -> None:
    for size, refused in ((LARGEST, False), (LARGEST + 1, True)):
        source = SourceFile(pa.BufferReader(file_with("column_index", size)), NAME)
        with pytest.raises(UnsupportedError) if refused else nullcontext():
            source.refuse_large_indexes(0, 1)


def test_a_column_of_which_an_index_is_too_large_is_left_for_the_splice_to_refuse(
    file: pa.Buffer,
) -> None:
    edits = edits_of({"b": ([0], pa.array([3]))})
    found = compared(SourceFile(pa.BufferReader(file), NAME), edits, Options())
    assert found.edits.columns.keys() <= {"b"}


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_an_index_that_is_too_large_is_refused_before_anything_is_written(
    file: pa.Buffer, operation: Callable[[Any, Any], object]
) -> None:
    sink = pa.BufferOutputStream()
    with pytest.raises(UnsupportedError) as caught:
        operation(pa.BufferReader(file), StreamSink(sink))
    assert caught.value.facts["reason"] == "large_index"
    assert sink.tell() == 0

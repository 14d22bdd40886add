"""Bloom filters of columns that are copied, also where the writer didn't record their length."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.in_memory import look, spliced, with_chunk

TABLE = pa.table({"a": [1, 2, 3], "b": [4, 5, 6]})


def without_length() -> bytes:
    """A file with a filter of its second column, whose header alone says how long it is."""
    buffer = pa.BufferOutputStream()
    pq.write_table(TABLE, buffer, bloom_filter_options={"b": {"ndv": 10, "fpp": 0.1}})
    data = buffer.getvalue().to_pybytes()
    return with_chunk(data, 1, lambda chunk: replace(chunk, bloom_length=None))


def filter_of(data: bytes, length: int) -> bytes | None:
    file = look(data)
    at = file.chunk(0, 1).bloom_offset
    return None if at is None else bytes(file.read(at, length).to_pybytes())


def test_a_filter_of_no_recorded_length_is_copied_whole_with_its_header() -> None:
    data = without_length()
    done = spliced(data, a=([0], pa.array([7])))
    length = look(done).chunk(0, 1).bloom_length
    assert length is not None
    # The smallest filter has 32 bytes behind its header.
    assert length > 32
    assert filter_of(done, length) == filter_of(data, length)


@pytest.mark.parametrize(
    "header", [b"\x00", b"\x15\x00\x00", b"\x15\x01\x00"], ids=["no size", "size 0", "size -1"]
)
def test_a_filter_whose_header_gives_no_size_is_dropped(header: bytes) -> None:
    data = bytearray(without_length())
    at = look(bytes(data)).chunk(0, 1).bloom_offset
    assert at is not None
    data[at : at + len(header)] = header
    done = spliced(bytes(data), a=([0], pa.array([7])))
    assert look(done).chunk(0, 1).bloom_offset is None
    assert pq.read_table(pa.BufferReader(done))["b"] == TABLE["b"]

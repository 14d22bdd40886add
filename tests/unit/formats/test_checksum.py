"""Checksums: any division of the bytes gives the same, and any damage is found and named."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.errors import CorruptFileError
from lakesplice.formats.checksum import Checksum, checksum, verify
from lakesplice.model.manifest import FileRef


def test_the_checksum_is_xxh3_with_128_bits() -> None:
    # The published test values of XXH3-128 for the empty input and for "abc", seed 0.
    assert checksum(b"") == "99aa06d3014798d86001c324468d497f"
    assert checksum(b"abc") == "06b05ab6733a618578af5f94892f3950"


@given(st.lists(st.binary(max_size=50), max_size=6))
def test_the_way_the_bytes_are_cut_does_not_matter(pieces: list[bytes]) -> None:
    running = Checksum()
    for piece in pieces:
        running.update(memoryview(piece))
    assert running.digest() == checksum(pieces) == checksum(b"".join(pieces))
    assert running.bytes == sum(map(len, pieces))
    assert checksum(pa.py_buffer(b"".join(pieces))) == running.digest()


@given(st.binary(min_size=1, max_size=200), st.data())
def test_a_flipped_bit_or_a_lost_end_is_found(data: bytes, draw: st.DataObject) -> None:
    ref = FileRef("the/file", len(data), checksum(data))
    verify(data, ref)
    bit = draw.draw(st.integers(0, len(data) * 8 - 1))
    flipped = bytearray(data)
    flipped[bit // 8] ^= 1 << bit % 8
    for damaged in (bytes(flipped), data[:-1], data + b"\0"):
        with pytest.raises(CorruptFileError, match="the/file"):
            verify(damaged, ref)

"""What a spliced file says of itself is true of the values it holds."""

from __future__ import annotations

import struct
from dataclasses import replace

import pyarrow as pa
import pytest

from lakesplice.splicing.chunks import Chunk
from lakesplice.splicing.footer import Footer
from lakesplice.splicing.thrift import Struct, Wire
from tests.support.in_memory import look, spliced, with_footer
from tests.support.machine import shared_dir
from tests.support.parquet_parts import parquet, some_table

NEWER = {40: (Wire.BINARY, b"where something lies, or what the least value is")}
GEOSPATIAL = 17


def metadata(chunk: Chunk) -> Struct:
    found = chunk.raw.get(3)
    assert isinstance(found, Struct)
    return found


@pytest.mark.parametrize("name", ["geospatial.parquet", "geography-points.parquet"])
def test_bounds_on_earth_are_dropped_with_the_values_they_bound(name: str) -> None:
    root = shared_dir("corpora", "parquet-testing-data", "geospatial")
    data = (root / name).read_bytes()
    file = look(data)
    column = next(leaf.column for leaf in file.footer.leaves if leaf.path == ("geometry",))
    assert metadata(file.chunk(0, column)).get(GEOSPATIAL) is not None
    point = struct.pack("<BIdd", 1, 1, 5000.0, 5000.0)
    after = look(spliced(data, geometry=([0], pa.array([point]))))
    assert metadata(after.chunk(0, column)).get(GEOSPATIAL) is None
    first = next(leaf for leaf in file.footer.leaves if leaf.column != column)
    kept = look(spliced(data, **{first.name: ([], pa.array([], pa.int64()))}))
    assert metadata(kept.chunk(0, column)).get(GEOSPATIAL) is not None


def newer(footer: Footer) -> Footer:
    """With fields that nobody knows yet, at every level."""
    groups = tuple(
        replace(group, raw=group.raw.replaced(NEWER), chunks=tuple(map(_newer, group.chunks)))
        for group in footer.row_groups
    )
    return replace(footer, raw=footer.raw.replaced(NEWER), row_groups=groups)


def _newer(chunk: Chunk) -> Chunk:
    inner = metadata(chunk).replaced(NEWER)
    return replace(chunk, raw=chunk.raw.replaced({**NEWER, 3: (Wire.STRUCT, inner)}))


def test_fields_that_are_not_known_are_dropped_since_they_may_hold_offsets() -> None:
    data = with_footer(parquet(some_table(300)), newer)
    footer = look(spliced(data, id=([3], pa.array([-1])))).footer
    for raw in (footer.raw, footer.row_groups[0].raw):
        assert not raw.fields.keys() & NEWER.keys()
    for chunk in footer.row_groups[0].chunks:
        assert not (chunk.raw.fields.keys() | metadata(chunk).fields.keys()) & NEWER.keys()
        assert chunk.num_values == 300


def test_sizes_of_values_are_kept_where_the_values_are() -> None:
    data = parquet(some_table(300))
    before, after = look(data), look(spliced(data, id=([3], pa.array([-1]))))
    assert before.chunk(0, 1).size_statistics is not None
    assert after.chunk(0, 1).size_statistics == before.chunk(0, 1).size_statistics
    assert after.chunk(0, 0).size_statistics is None

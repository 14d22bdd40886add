"""The footer, against what pyarrow says of the same file."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.errors import CorruptFileError, UnsupportedError
from lakesplice.splicing.structures.chunks import ByteRange, Chunk, SortingColumn
from lakesplice.splicing.structures.enums import Codec, Encoding, PageKind, PhysicalType
from lakesplice.splicing.structures.footer import (
    MAGIC,
    EncodingCount,
    Footer,
    Statistics,
    read_footer,
)
from lakesplice.splicing.thrift.compact import EMPTY, Struct, WireType
from lakesplice.splicing.thrift.encoding import encode_struct
from tests.support.parquet_parts import PLACE, opened, parquet, some_table

TABLE = some_table()
FILE = parquet(TABLE)
FOOTER = read_footer(opened(FILE), "a.parquet")


def rewritten(footer: Footer) -> bytes:
    """FILE with another footer."""
    return FILE[: FOOTER.start] + footer.encode()


def with_chunk(**changes: Any) -> bytes:
    """FILE with the first chunk described in another way."""
    group = FOOTER.row_groups[0]
    chunk = replace(group.chunks[0], **changes)
    changed = replace(group, chunks=(chunk, *group.chunks[1:]))
    return rewritten(replace(FOOTER, row_groups=(changed, *FOOTER.row_groups[1:])))


def test_the_footer_says_what_pyarrow_says() -> None:
    expected = pq.ParquetFile(opened(FILE)).metadata
    assert FOOTER.num_rows == expected.num_rows
    assert FOOTER.created_by == expected.created_by
    assert [leaf.name for leaf in FOOTER.leaves] == TABLE.column_names
    assert dict(FOOTER.key_values or ()) == expected.metadata
    assert len(FOOTER.row_groups) == expected.num_row_groups == 3
    for at, group in enumerate(FOOTER.row_groups):
        of = expected.row_group(at)
        assert (group.num_rows, group.total_byte_size) == (of.num_rows, of.total_byte_size)
        for column, chunk in enumerate(group.chunks):
            assert_equal(chunk, of.column(column))


def assert_equal(chunk: Chunk, of: pq.ColumnChunkMetaData) -> None:
    assert PhysicalType(chunk.physical).name == of.physical_type
    assert ".".join(chunk.path) == of.path_in_schema
    assert Codec(chunk.codec).name == of.compression
    assert {Encoding(encoding).name for encoding in chunk.encodings} == set(of.encodings)
    assert chunk.num_values == of.num_values
    assert chunk.compressed_size == of.total_compressed_size
    assert chunk.uncompressed_size == of.total_uncompressed_size
    assert chunk.data_page_offset == of.data_page_offset
    assert chunk.dictionary_page_offset == of.dictionary_page_offset
    assert chunk.offset_index is not None
    assert chunk.column_index is not None
    assert chunk.encoding_stats is not None
    assert chunk.encoding_stats[0] == EncodingCount(PageKind.DICTIONARY, Encoding.PLAIN, 1)
    assert chunk.statistics is not None
    assert Statistics.from_struct(chunk.statistics, PLACE).null_count == of.statistics.null_count


def test_an_unchanged_footer_is_written_back_byte_for_byte() -> None:
    assert rewritten(FOOTER) == FILE
    assert rewritten(replace(FOOTER)) == FILE


def test_unknown_fields_are_written_back() -> None:
    unknown = {99: (WireType.BINARY, b"from the future")}
    chunk = FOOTER.row_groups[0].chunks[0]
    metadata = chunk.raw.get(3)
    assert isinstance(metadata, Struct)
    data = with_chunk(
        raw=chunk.raw.replaced({**unknown, 3: (WireType.STRUCT, metadata.replaced(unknown))})
    )
    found = read_footer(opened(data), "a.parquet")
    again = replace(
        found, row_groups=tuple(replace(g, num_rows=g.num_rows) for g in found.row_groups)
    )
    raw = again.to_struct()
    assert encode_struct(raw).count(b"from the future") == 2


def test_a_changed_footer_is_read_by_pyarrow() -> None:
    first, *others = FOOTER.row_groups
    chunk = first.chunks[1]
    assert chunk.statistics is not None
    statistics = Statistics.from_struct(chunk.statistics, PLACE)
    changed = replace(
        chunk,
        statistics=replace(statistics, min_value=b"a", min_exact=False, null_count=3).to_struct(),
        column_index=None,
        encoding_stats=(EncodingCount(PageKind.DATA, Encoding.PLAIN, 9),),
    )
    group = replace(
        first,
        chunks=(first.chunks[0], changed, *first.chunks[2:]),
        sorting_columns=(SortingColumn(2, descending=True, nulls_first=False),),
        ordinal=0,
    )
    data = rewritten(
        replace(
            FOOTER,
            row_groups=(group, *others),
            created_by="somebody version 1.2.3",
            key_values=(*(FOOTER.key_values or ()), (b"key", b"value"), (b"bare", None)),
        )
    )
    seen = pq.ParquetFile(opened(data))
    assert seen.metadata.created_by == "somebody version 1.2.3"
    assert seen.metadata.metadata[b"key"] == b"value"
    column = seen.metadata.row_group(0).column(1)
    assert column.statistics.min == "a"
    assert column.statistics.null_count == 3
    assert not column.has_column_index
    (sorting,) = seen.metadata.row_group(0).sorting_columns
    assert (sorting.column_index, sorting.descending, sorting.nulls_first) == (2, True, False)
    assert seen.read().equals(TABLE)
    again = read_footer(opened(data), "a.parquet")
    assert again.row_groups[0].chunks[1].encoding_stats == changed.encoding_stats
    assert again.row_groups[0].sorting_columns == group.sorting_columns


def test_parts_made_new_are_read_by_pyarrow() -> None:
    groups = tuple(
        replace(group, raw=EMPTY, chunks=tuple(replace(chunk, raw=EMPTY) for chunk in group.chunks))
        for group in FOOTER.row_groups
    )
    data = rewritten(replace(FOOTER, raw=EMPTY, row_groups=groups))
    assert pq.read_table(opened(data)).equals(TABLE)


def test_leaves_know_their_levels() -> None:
    table = pa.table(
        {
            "flat": pa.array([1], pa.int64()),
            "list": pa.array([[1]], pa.list_(pa.int32())),
            "record": pa.array(
                [{"x": {"y": b"12"}}], pa.struct([("x", pa.struct([("y", pa.binary(2))]))])
            ),
        },
        schema=pa.schema(
            [
                pa.field("flat", pa.int64(), nullable=False),
                pa.field("list", pa.list_(pa.int32())),
                pa.field("record", pa.struct([("x", pa.struct([("y", pa.binary(2))]))])),
            ]
        ),
    )
    flat, listed, nested = read_footer(opened(parquet(table)), "n.parquet").leaves
    assert (flat.name, flat.flat, flat.nullable) == ("flat", True, False)
    assert (listed.name, listed.flat) == ("list.list.element", False)
    assert (listed.max_definition, listed.max_repetition) == (3, 1)
    assert (nested.name, nested.flat, nested.max_definition) == ("record.x.y", False, 3)
    assert (nested.physical, nested.type_length) == (PhysicalType.FIXED_LEN_BYTE_ARRAY, 2)


def test_a_file_without_rows_or_columns_is_read() -> None:
    none = read_footer(opened(parquet(TABLE.slice(0, 0))), "empty.parquet")
    assert none.num_rows == 0
    assert len(none.leaves) == 4
    bare = read_footer(opened(parquet(pa.table({}))), "bare.parquet")
    assert bare.leaves == ()


@pytest.mark.parametrize(
    ("dictionary", "data", "start"),
    [(4, 99, 4), (None, 99, 99), (0, 99, 99), (99, 99, 99), (4, 0, 4)],
)
def test_a_chunk_starts_at_its_dictionary_only_if_that_is_before_its_data(
    dictionary: int | None, data: int, start: int
) -> None:
    chunk = replace(
        FOOTER.row_groups[0].chunks[0], dictionary_page_offset=dictionary, data_page_offset=data
    )
    assert chunk.start == start
    assert chunk.end == start + chunk.compressed_size


LONG = 1 << 40
DAMAGED: dict[str, tuple[str, Callable[[], bytes]]] = {
    "an empty file": ("shorter than any", lambda: b""),
    "no file of ours": ("not PAR1", lambda: b"x" * 100),
    "a cut file": ("not PAR1", lambda: FILE[:-1]),
    "a footer longer than the file": (
        "longer than the file",
        lambda: FILE[:-8] + struct.pack("<I", 1 << 31) + MAGIC,
    ),
    "a footer that was cut": (
        "longer than the bytes",
        lambda: FILE[:-20] + struct.pack("<I", len(FILE) - FOOTER.start - 20) + MAGIC,
    ),
    "a footer with something behind it": (
        "bytes after the footer",
        lambda: FILE[:-8] + b"more" + struct.pack("<I", len(FILE) - FOOTER.start - 4) + MAGIC,
    ),
    "pages behind the end": (
        "pages lie outside",
        lambda: with_chunk(data_page_offset=LONG, dictionary_page_offset=None),
    ),
    "a chunk without an end": ("pages lie outside", lambda: with_chunk(compressed_size=LONG)),
    "pages at the very start": ("pages lie outside", lambda: with_chunk(dictionary_page_offset=1)),
    "an index behind the end": (
        "offset index lie",
        lambda: with_chunk(offset_index=ByteRange(LONG, 5)),
    ),
    "an index in the footer": (
        "column index lie",
        lambda: with_chunk(column_index=ByteRange(len(FILE) - 20, 5)),
    ),
    "a filter behind the end": ("bloom filter lie", lambda: with_chunk(bloom_offset=LONG)),
    "another type": ("not the schema's", lambda: with_chunk(physical=5)),
    "another number of values": ("values than rows", lambda: with_chunk(num_values=7)),
    "chunks that overlap": (
        "overlap",
        lambda: with_chunk(compressed_size=FOOTER.row_groups[0].chunks[0].compressed_size + 9),
    ),
    "too few chunks": (
        "number of chunks",
        lambda: rewritten(replace(FOOTER, row_groups=(replace(FOOTER.row_groups[0], chunks=()),))),
    ),
    "too many rows": ("number of rows", lambda: rewritten(replace(FOOTER, num_rows=1))),
    "no schema": ("schema is empty", lambda: rewritten(replace(FOOTER, schema=()))),
    "half a schema": ("ends before", lambda: rewritten(replace(FOOTER, schema=FOOTER.schema[:2]))),
    "a schema with something behind it": (
        "in no group",
        lambda: rewritten(replace(FOOTER, schema=FOOTER.schema * 2)),
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_named_with_file_place_and_reason(name: str) -> None:
    reason, damaged = DAMAGED[name]
    with pytest.raises(CorruptFileError, match=reason) as raised:
        read_footer(opened(damaged()), "a.parquet")
    assert raised.value.facts["path"] == "a.parquet"
    assert "footer" in str(raised.value.facts["place"])


def test_a_file_whose_pages_are_in_another_is_unsupported() -> None:
    elsewhere = (
        FOOTER.row_groups[0].chunks[0].raw.replaced({1: (WireType.BINARY, b"part-0.parquet")})
    )
    with pytest.raises(UnsupportedError, match="in another file"):
        read_footer(opened(with_chunk(raw=elsewhere)), "_metadata")


@pytest.mark.parametrize(
    "data",
    [
        FILE[:-4] + b"PARE",
        rewritten(replace(FOOTER, raw=FOOTER.raw.replaced({8: (WireType.STRUCT, EMPTY)}))),
        with_chunk(raw=FOOTER.row_groups[0].chunks[0].raw.replaced({8: (WireType.STRUCT, EMPTY)})),
    ],
    ids=["its footer", "signed", "one column"],
)
def test_an_encrypted_file_is_unsupported(data: bytes) -> None:
    with pytest.raises(UnsupportedError, match="decrypt it first"):
        read_footer(opened(data), "secret.parquet")

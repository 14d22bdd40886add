"""Any bytes must give values that round-trip, or an error with file, place and reason.

The first byte of an input chooses what the others are: one structure of the metadata, or a file.
Of a file the last two bytes are the footer's length; magic and length are put where they belong, so
that a change of the footer's size does not stop at the first check.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa

from lakesplice.splicing.structures.footer import Statistics, read_footer
from lakesplice.splicing.structures.page_headers import PageHeader
from lakesplice.splicing.structures.page_index import ColumnIndex, OffsetIndex
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.splicing.thrift.compact import List, Struct
from lakesplice.splicing.thrift.decoding import decode_struct
from lakesplice.splicing.thrift.encoding import encode_struct
from tests.fuzz.inputs import PLACE, as_body, as_file, refused_by_name
from tests.fuzz.whole_splice import look_at_splice

Target = Callable[[bytes], None]


def look_at(data: bytes) -> None:
    """Read the input as what its first byte says; fails unless it is read well or refused well."""
    if data:
        target = TARGETS[data[0] % len(TARGETS)]
        refused_by_name(lambda: target(data[1:]))


def look_at_structure(data: bytes) -> None:
    found, end = decode_struct(data, file_part=PLACE)
    assert 0 < end <= len(data)
    written = encode_struct(found)
    again, written_end = decode_struct(written, file_part=PLACE)
    assert (again, written_end) == (found, len(written))


def look_at_offset_index(data: bytes) -> None:
    index = OffsetIndex.decode(data, PLACE)
    again = OffsetIndex.decode(index.encode(), PLACE)
    for name in ("offsets", "sizes", "first_rows"):
        assert getattr(again, name).tolist() == getattr(index, name).tolist()
    one_by_one, _ = decode_struct(data, file_part=PLACE)
    locations = one_by_one.get(1)
    assert isinstance(locations, List)
    offsets = [of.get(1) for of in locations.values if isinstance(of, Struct)]
    assert offsets == index.offsets.tolist()
    refused_by_name(lambda: index.check(4, 1 << 40, 1 << 40, PLACE))


def look_at_column_index(data: bytes) -> None:
    index = ColumnIndex.decode(data, PLACE)
    again = ColumnIndex.decode(index.encode(), PLACE)
    assert (again.min_values, again.max_values) == (index.min_values, index.max_values)
    assert again.null_pages.tolist() == index.null_pages.tolist()


def look_at_page_header(data: bytes) -> None:
    header, end = PageHeader.decode(data, 0, PLACE)
    assert 0 < end <= len(data)
    again, _ = PageHeader.decode(header.encode(), 0, PLACE)
    for name in PageHeader.__slots__:
        if name != "raw":
            assert getattr(again, name) == getattr(header, name)
    if header.statistics is not None:
        look_at_statistics(header.statistics)


def look_at_file(data: bytes) -> None:
    whole = as_file(data)
    source = SourceFile(pa.BufferReader(whole), "fuzzed.parquet")
    for group, row_group in enumerate(source.footer.row_groups[:3]):
        for column, chunk in enumerate(row_group.chunks[:10]):
            source.refusal(group, column)
            refused_by_name(partial(source.column_index, group, column))
            refused_by_name(partial(source.dictionary_page, group, column))
            refused_by_name(partial(_look_at_pages, source, group, column))
            if chunk.statistics is not None:
                refused_by_name(partial(look_at_statistics, chunk.statistics))
    start = source.footer.start
    again = read_footer(pa.BufferReader(whole[:start] + source.footer.encode()), "fuzzed.parquet")
    assert again.encode() == source.footer.encode()


def _look_at_pages(source: SourceFile, group: int, column: int) -> None:
    for _ in source.pages(group, column):
        pass


def look_at_statistics(found: Struct) -> None:
    statistics = Statistics.from_struct(found, PLACE)
    assert Statistics.from_struct(statistics.to_struct(), PLACE).null_count == statistics.null_count


def as_input(file: bytes, target: Target = look_at_file) -> bytes | None:
    """The input that shows a file to a target; None if its footer is too long for one."""
    body = as_body(file)
    return None if body is None else bytes((TARGETS.index(target),)) + body


TARGETS: list[Target] = [
    look_at_structure,
    look_at_offset_index,
    look_at_column_index,
    look_at_page_header,
    look_at_file,
    look_at_splice,
]
OF_FILES = (look_at_file, look_at_splice)

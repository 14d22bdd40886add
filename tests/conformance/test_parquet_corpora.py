"""Files by other writers, good and damaged: each is read to its last page header, or refused."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest

from lakesplice.errors import CorruptFileError, UnsupportedError
from lakesplice.splicing.faults import Reason
from lakesplice.splicing.structures.source import SourceFile
from tests.support.parquet_parts import read_to_the_last_page

SharedPages = Callable[..., Path]

GOOD, BAD = "parquet-testing-data", "parquet-testing-bad_data"
# Read as something else than what is written there, and written back as it was read.
MENDED = {
    "nation.dict-malformed.parquet": "chunks' sizes lack the dictionary's header",
    "dict-page-offset-zero.parquet": "a list where the length of a bloom filter belongs",
    "repeated_no_annotation.parquet": "a number of rows of 0",
}
# Flags in lists as an older parquet-rs wrote them: 0 for false instead of 2.
FALSE_IS_ZERO = (
    "geography-lines.parquet",
    "geography-points.parquet",
    "geography-polygons.parquet",
)
# What is wrong, where it can be seen without decoding a page.
SEEN = {
    "ARROW-GH-41317.parquet": "encodings is a list of another type",
    "ARROW-GH-41321.parquet": "ends in the middle of a value",
    "ARROW-RS-GH-6229-DICTHEADER.parquet": "pages lie outside the file",
    "ARROW-RS-GH-6229-LEVELS.parquet": "pages have another number of values",
    "PARQUET-1481.parquet": "no such physical type",
}


def files(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.rglob("*") if ".parquet" in path.name and path.suffix != ".json"
    )


def test_every_good_file_is_read_to_its_last_page_header(shared: SharedPages) -> None:
    found = files(shared("corpora", GOOD))
    assert len(found) > 60
    for path in found:
        if path.suffix == ".encrypted":
            with pytest.raises(UnsupportedError) as refused:
                read_to_the_last_page(path)
            assert refused.value.facts["reason"] == Reason.ENCRYPTED
        else:
            read_to_the_last_page(path)


def test_every_footer_and_index_is_written_back_byte_for_byte(shared: SharedPages) -> None:
    for path in files(shared("corpora", GOOD)):
        if path.suffix == ".encrypted" or path.name in MENDED:
            continue
        source, data = SourceFile(pa.memory_map(str(path)), path.name), path.read_bytes()
        assert source.footer.encode() == data[source.footer.start :], path.name
        for group, row_group in enumerate(source.footer.row_groups):
            for column, chunk in enumerate(row_group.chunks):
                index = source.offset_index(group, column)
                bounds = source.column_index(group, column)
                if index is not None and (span := chunk.offset_index):
                    assert index.encode() == data[span.offset : span.end], path.name
                if bounds is not None and (span := chunk.column_index):
                    same = bounds.encode() == data[span.offset : span.end]
                    uncounted = bounds.null_counts is None
                    assert same or uncounted or path.name in FALSE_IS_ZERO, path.name


def test_page_headers_are_written_back_byte_for_byte(shared: SharedPages) -> None:
    for path in files(shared("corpora", GOOD)):
        if path.suffix == ".encrypted":
            continue
        source, data = SourceFile(pa.memory_map(str(path)), path.name), path.read_bytes()
        for group in range(len(source.footer.row_groups)):
            for column in range(len(source.footer.leaves)):
                for page in islice(source.pages(group, column), 100):
                    header = data[page.offset : page.body_offset]
                    assert page.header.encode() == header, path.name


def test_every_damaged_file_is_refused_by_name_or_damaged_within_its_pages(
    shared: SharedPages,
) -> None:
    found = files(shared("corpora", BAD))
    assert len(found) >= 8
    for path in found:
        if path.name not in SEEN:
            read_to_the_last_page(path)
            continue
        with pytest.raises(CorruptFileError, match=SEEN[path.name]) as refused:
            read_to_the_last_page(path)
        assert refused.value.facts["path"] == path.name
        assert refused.value.facts["place"]


def test_sizes_that_lack_a_header_are_put_right(shared: SharedPages) -> None:
    source = read_to_the_last_page(shared("corpora", GOOD, "nation.dict-malformed.parquet"))
    (group,) = source.footer.row_groups
    assert [chunk.compressed_size for chunk in group.chunks] == [125, 322 + 15, 125, 2002 + 15]
    assert group.chunks[-1].end == source.footer.start

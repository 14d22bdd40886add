"""Laws of a splice: the values are the plain rewrite's, the file is true, the rest is as it was."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from lakesplice.errors import UnsupportedError
from lakesplice.planning.edits import Edits
from lakesplice.splicing.codec import with_dictionary
from lakesplice.splicing.options import Options
from lakesplice.splicing.source import SourceFile
from lakesplice.splicing.splice import Spliced, splice
from lakesplice.splicing.verify import verify_edits
from lakesplice.splicing.whole import edited
from lakesplice.storage.copying import FileSink
from tests.support import parquet_files as files
from tests.support.parquet_readers import difference
from tests.support.parquet_values import COMMON, RARE

_several = settings(max_examples=60, suppress_health_check=[*HealthCheck], deadline=None)
Case = tuple[files.FileShape, list[files.EditShape]]


def _cases(writers: Sequence[str], kinds: Sequence[str]) -> st.SearchStrategy[Case]:
    return files.file_shapes(writers, kinds).flatmap(
        lambda shape: st.tuples(st.just(shape), files.edit_shapes(len(shape.columns)))
    )


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("splice")


def spliced(source: Path, edits: Edits, target: Path, options: Options) -> Spliced:
    target.unlink(missing_ok=True)
    with pa.memory_map(str(source)) as opened, pa.OSFile(str(target), "wb") as sink:
        return splice(opened, source.name, edits, FileSink(sink), options)


def check(source: Path, edits: Edits, target: Path, before: pa.Table, done: Spliced) -> None:
    found = pq.read_table(target, page_checksum_verification=True)
    assert difference(edited(before, edits), found) is None
    with pa.memory_map(str(source)) as old, pa.memory_map(str(target)) as new:
        verify_edits(new, "target", edits)
        check_truth(SourceFile(new, "target"))
        check_untouched(SourceFile(old, "source"), SourceFile(new, "target"), edits)


def check_truth(file: SourceFile) -> None:
    """The footer against the pages themselves."""
    for row_group, group in enumerate(file.footer.row_groups):
        assert group.total_byte_size == sum(chunk.uncompressed_size for chunk in group.chunks)
        assert group.file_offset == min(chunk.start for chunk in group.chunks)
        for column, chunk in enumerate(group.chunks):
            pages = list(file.pages(row_group, column))
            assert sum(page.end - page.offset for page in pages) == chunk.compressed_size
            uncompressed = sum(page.header_size + page.header.uncompressed_size for page in pages)
            assert uncompressed == chunk.uncompressed_size
            data = [page for page in pages if page.header.is_data]
            assert chunk.data_page_offset == data[0].offset
            assert sum(page.header.num_values for page in data) == chunk.num_values
            flags = [with_dictionary(page.header.encoding) for page in data]
            assert flags == sorted(flags, reverse=True), "a dictionary after none"
            assert {page.header.encoding for page in data} <= set(chunk.encodings)
            index = file.offset_index(row_group, column)
            if index is not None:
                assert index.offsets.tolist() == [page.offset for page in data]
                assert index.sizes.tolist() == [page.end - page.offset for page in data]
            file.column_index(row_group, column)


def check_untouched(old: SourceFile, new: SourceFile, edits: Edits) -> None:
    """Pages without an edited row are byte-identical, unless their chunk was encoded whole."""
    first = 0
    for row_group, group in enumerate(old.footer.row_groups):
        for column, chunk in enumerate(group.chunks):
            edit = edits.columns.get(old.leaf(column).path[0])
            rows = np.empty(0, np.int64)
            if edit is not None:
                rows = edit.within(first, first + group.num_rows).rows
            mine = new.chunk(row_group, column)
            if not len(rows):
                a, b = (
                    old.read(chunk.start, chunk.compressed_size),
                    new.read(mine.start, mine.compressed_size),
                )
                assert a.equals(b)
        first += group.num_rows


@_several
@given(_cases(["pyarrow"], [*COMMON, *RARE]), st.integers(1, 2))
def test_a_splice_is_the_plain_rewrite_and_the_file_is_true(
    scratch: Path, case: Case, threads: int
) -> None:
    _run(scratch, case, threads)


@_several
@given(_cases(["Polars", "DuckDB", "DataFusion"], [*COMMON]), st.integers(1, 2))
def test_a_file_by_another_writer_is_spliced_as_well(
    scratch: Path, case: Case, threads: int
) -> None:
    _run(scratch, case, threads)


def _run(scratch: Path, case: Case, threads: int) -> None:
    source, target = scratch / "source.parquet", scratch / "target.parquet"
    files.write(case[0], source)
    try:
        before = pq.read_table(source)
    except OSError:
        assume(False)  # some of DuckDB's files pyarrow can't read
    edits = files.drawn_edits(case[1], before, case[0].seed)
    try:
        done = spliced(source, edits, target, Options(threads=threads))
    except UnsupportedError:
        assume(False)
    check(source, edits, target, before, done)

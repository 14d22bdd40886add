"""Laws of a splice: the values equal the plain rewrite's, the metadata is true, the rest is
unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from lakesplice.errors import UnsupportedError
from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.splicing.comparing import compared
from lakesplice.splicing.faults import Reason
from lakesplice.splicing.metadata.writer_names import CREATED_BY
from lakesplice.splicing.metadata.writer_options import ORIGINAL_CREATED_BY
from lakesplice.splicing.options import Options
from lakesplice.splicing.pages.plan import touched_pages
from lakesplice.splicing.splice import Spliced, splice
from lakesplice.splicing.structures.footer import Chunk
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.splicing.verify import verify_edits
from lakesplice.splicing.whole_rewrite import edited
from lakesplice.storage.copying import FileSink
from tests.support import parquet_files as files
from tests.support.drawing import examples
from tests.support.parquet_edits import PRESENT, EditShape, drawn_edits, edit_shapes
from tests.support.parquet_truth import untruths
from tests.support.parquet_values import COMMON, RARE
from tests.support.parquet_writers import FileShape, name_of
from tests.support.reader_matrix import difference

_several = settings(max_examples=examples(60), suppress_health_check=[*HealthCheck], deadline=None)
# A file, and one splice behind the other.
Case = tuple[FileShape, list[list[EditShape]]]


def _cases(
    writers: Sequence[str], kinds: Sequence[str], **values: Sequence[str]
) -> st.SearchStrategy[Case]:
    def edited(shape: FileShape) -> st.SearchStrategy[Case]:
        edits = edit_shapes(len(shape.columns), **values)
        return st.tuples(st.just(shape), st.lists(edits, min_size=1, max_size=2))

    return files.file_shapes(writers, kinds).flatmap(edited)


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
    brought = {untruth for untruth in untruths(source) if untruth.of_values}
    lies = untruths(target) - brought
    assert not lies, lies
    with pa.memory_map(str(source)) as old, pa.memory_map(str(target)) as new:
        verify_edits(new, "target", edits)
        before_and_after = SourceFile(old, "source"), SourceFile(new, "target")
        check_kept(*before_and_after)
        check_untouched(*before_and_after, edits, done)


def check_kept(old: SourceFile, new: SourceFile) -> None:
    """What the file says beside its pages."""
    was, now = old.footer, new.footer
    assert (now.version, now.schema, now.column_orders) == (
        was.version,
        was.schema,
        was.column_orders,
    )
    origin = [(ORIGINAL_CREATED_BY, (was.created_by or "").encode())]
    again = was.created_by == CREATED_BY
    assert now.key_values == (*(was.key_values or ()), *([] if again else origin))
    assert now.created_by == CREATED_BY
    for before, after in zip(was.row_groups, now.row_groups, strict=True):
        assert (after.num_rows, after.sorting_columns) == (before.num_rows, before.sorting_columns)
        codecs = [chunk.codec for chunk in before.chunks]
        assert [chunk.codec for chunk in after.chunks] == codecs


def check_untouched(old: SourceFile, new: SourceFile, edits: Edits, done: Spliced) -> None:
    """A chunk without an edited row is as it was; so are the pages without one, unless their chunk
    was encoded whole.
    """
    first, touched_pages = 0, 0
    for row_group, group in enumerate(old.footer.row_groups):
        part = edits.within(first, first + group.num_rows)
        first += group.num_rows
        for column, chunk in enumerate(group.chunks):
            leaf, mine = old.leaf(column), new.chunk(row_group, column)
            edit = part.columns.get(leaf.path[0])
            if edit is None or not len(edit.rows):
                assert _bytes(old, chunk).equals(_bytes(new, mine))
                assert _bloom(old, chunk) == _bloom(new, mine)
                continue
            assert mine.bloom_offset is None
            if leaf.name not in done.columns_whole:
                touched_pages += check_pages(old, new, row_group, column, edit.rows)
    assert done.pages_encoded >= touched_pages
    assert done.columns_whole or done.pages_encoded == touched_pages


def check_pages(
    old: SourceFile, new: SourceFile, row_group: int, column: int, rows: npt.NDArray[np.int64]
) -> int:
    """Return how many pages have an edited row; all others are byte-identical."""
    was, now = old.offset_index(row_group, column), new.offset_index(row_group, column)
    assert was is not None
    assert now is not None
    assert now.first_rows.tolist() == was.first_rows.tolist()
    num_rows = old.footer.row_groups[row_group].num_rows
    touched = 0
    for page, (start, count) in enumerate(
        zip(was.first_rows.tolist(), was.rows(num_rows).tolist(), strict=True)
    ):
        if ((rows >= start) & (rows < start + count)).any():
            touched += 1
            continue
        a = old.read(int(was.offsets[page]), int(was.sizes[page]))
        b = new.read(int(now.offsets[page]), int(now.sizes[page]))
        assert a.equals(b), f"page {page} of {old.file_part(row_group, column).part}"
    return touched


def _bytes(file: SourceFile, chunk: Chunk) -> pa.Buffer:
    return file.read(chunk.start, chunk.compressed_size)


def _bloom(file: SourceFile, chunk: Chunk) -> bytes | None:
    if not chunk.bloom_offset or not chunk.bloom_length:
        return None
    return bytes(file.read(chunk.bloom_offset, chunk.bloom_length).to_pybytes())


@pytest.mark.slow
@_several
@given(_cases(["pyarrow"], [*COMMON, *RARE]), st.integers(1, 2))
def test_a_splice_is_the_plain_rewrite_and_the_file_is_true(
    scratch: Path, case: Case, threads: int
) -> None:
    _run(scratch, case, threads)


@pytest.mark.slow
@_several
@given(_cases(["Polars", "DuckDB", "DataFusion"], [*COMMON]), st.integers(1, 2))
def test_a_file_by_another_writer_is_spliced_as_well(
    scratch: Path, case: Case, threads: int
) -> None:
    _run(scratch, case, threads)


_ANY_VALUES = ("new", "new and null", "few", *PRESENT)


@settings(_several, max_examples=examples(40))
@given(
    _cases(["pyarrow"], [*COMMON, *RARE], values=_ANY_VALUES)
    | _cases(["Polars", "DataFusion"], [*COMMON], values=_ANY_VALUES)
)
def test_only_values_that_are_new_are_encoded(scratch: Path, case: Case) -> None:
    """With values that the rows have among the given: the rows are those of the plain rewrite, the
    pages without a new value are copied, and no more are encoded than without comparing.
    """
    shape, (shapes, *_) = case
    source, target = scratch / "source.parquet", scratch / "target.parquet"
    files.write(shape, source)
    before, options = pq.read_table(source), Options(threads=2)
    edits = drawn_edits(shapes, before, shape.seed)
    assume(not expected_refusals(shape, edits))
    uncompared = spliced(source, edits, target, options)
    with pa.memory_map(str(source)) as opened:
        file = SourceFile(opened, source.name)
        found = compared(file, edits, options)
        check_compared(file, before, edits, found.edits)
    done = spliced(source, found.edits, target, options)
    check(source, found.edits, target, before, done)
    with pa.memory_map(str(target)) as new:
        verify_edits(new, "target", edits)
    event(f"equal: {min(found.pages_equal, 3)}")
    assert done.pages_encoded <= uncompared.pages_encoded


def check_compared(file: SourceFile, before: pa.Table, edits: Edits, left: Edits) -> None:
    """What is left holds every new value, and of few pages no other."""
    for name, edit in edits.columns.items():
        rows = left.columns[name].rows if name in left.columns else np.empty(0, np.int64)
        held = before.column(name).take(pa.array(edit.rows)).to_pylist()
        pairs = zip(held, edit.values.to_pylist(), strict=True)
        new = edit.rows[[repr(one) != repr(other) for one, other in pairs]]
        assert set(new.tolist()) <= set(rows.tolist()) <= set(edit.rows.tolist())
        if not pa.types.is_nested(before.schema.field(name).type) and _few_pages(file, name, edit):
            assert rows.tolist() == new.tolist()
        if not len(new):
            assert not len(rows)


def _few_pages(file: SourceFile, name: str, edit: ColumnEdit) -> bool:
    """Whether all pages are compared: there are no more than that in any row group."""
    column = next(leaf.column for leaf in file.footer.leaves if leaf.path[0] == name)
    counts = [
        len(touched_pages(index.first_rows, edit.within(first, last).rows))
        for row_group, first, last in file.row_ranges()
        if (index := file.offset_index(row_group, column)) is not None
    ]
    return max(counts, default=0) <= 16


def _run(scratch: Path, case: Case, threads: int) -> None:
    shape, every = case
    source, target = scratch / "source.parquet", scratch / "target.parquet"
    files.write(shape, source)
    for turn, shapes in enumerate(every):
        try:
            before = pq.read_table(source)
        except OSError:
            assert shape.writer == "DuckDB"  # some of its files pyarrow can't read
            assume(False)
        edits = drawn_edits(shapes, before, shape.seed + turn)
        if not _splice(shape, source, edits, target, threads):
            return
        source, target = target, source


def _splice(shape: FileShape, source: Path, edits: Edits, target: Path, threads: int) -> bool:
    """Splice and check; False where it was refused, as it should be."""
    refused, done = None, None
    try:
        done = spliced(source, edits, target, Options(threads=threads))
    except UnsupportedError as refusal:
        refused = refusal.facts["reason"]
    if done is None:
        event(f"refused: {refused}")
        assert refused in expected_refusals(shape, edits)
        return False
    for column, reason in done.columns_whole.items():
        event(f"whole: {reason}")
        assert reason in expected_wholes(shape, column), (column, reason)
    check(source, edits, target, pq.read_table(source), done)
    return True


def expected_refusals(shape: FileShape, edits: Edits) -> set[Reason]:
    """Nothing is refused but a column without a type."""
    kinds = {name_of(at, column): column.kind for at, column in enumerate(shape.columns)}
    nothing = any(kinds[name] == "null" for name in edits.columns)
    return {Reason.OTHER_LAYOUT} if nothing else set()


def expected_wholes(shape: FileShape, column: str) -> set[Reason]:
    """Why a chunk of the column may be encoded whole: what the shape gives cause for."""
    name = column.partition(".")[0]
    kinds = {name_of(at, shape): shape for at, shape in enumerate(shape.columns)}
    if kinds[name].kind in ("list", "struct"):
        return {Reason.NESTED}
    without_index = shape.writer == "DuckDB" or (shape.writer == "pyarrow" and not shape.page_index)
    found = {Reason.NO_PAGE_INDEX} if without_index else set[Reason]()
    if shape.writer != "pyarrow" or kinds[name].encoding == "dictionary":
        # A chunk that had no index has one once it was spliced.
        found |= {Reason.MANY_PAGES, Reason.DICTIONARY_DECAYED}
    return found

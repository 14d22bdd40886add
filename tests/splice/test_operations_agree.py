"""Files made by the other operations: every reader sees the same as in pyarrow's own file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given, settings

from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.splicing.operations import (
    NewColumn,
    add_columns,
    append_rows,
    drop_column,
    merge_files,
    replace_column,
)
from lakesplice.splicing.options import Options
from lakesplice.splicing.output.copying import Sink, StreamSink
from lakesplice.splicing.splice import splice
from lakesplice.splicing.whole_rewrite import edited
from tests.support import parquet_files as files
from tests.support.parquet_readers import IN_PROCESS, SPARK
from tests.support.parquet_truth import untruths
from tests.support.parquet_values import COMMON
from tests.support.parquet_writers import ColumnShape, FileShape
from tests.support.reader_matrix import Matrix, difference, used
from tests.support.splicing import plain, read

_ADDED = pa.field("added", pa.string())
_NO_EDITS = Edits(np.empty(0, np.int64), {})
# Dictionaries that are given up within a chunk, in several row groups.
FALLBACK = FileShape(
    seed=7,
    writer="pyarrow",
    rows=5000,
    rows_per_page=333,
    rows_per_group=2500,
    codec="snappy",
    pages_v2=True,
    checksums=True,
    page_index=True,
    bloom=True,
    dictionary_bytes=2000,
    decimals_as_integers=False,
    version="2.6",
    columns=tuple(
        ColumnShape(kind, distinct, 0.02, "dictionary", required=False)
        for kind, distinct in [("string", 300), ("decimal(18,3)", 10**6), ("double", 300)]
    ),
)


@dataclass(frozen=True)
class Case:
    """A file, another of the same shape, and what the first holds."""

    shape: FileShape
    source: Path
    other: Path

    @property
    def table(self) -> pa.Table:
        return read(self.source)

    @property
    def column(self) -> str:
        """The first column behind the row numbers."""
        return str(self.table.column_names[1])

    def edits(self, name: str, values: pa.Array) -> Edits:
        rows = np.unique(np.array([0, self.shape.rows // 2, self.shape.rows - 1]))
        return Edits(rows, {name: ColumnEdit(rows, values.take(pa.array(rows % len(values))))})


def _appended(case: Case, source: pa.NativeFile, sink: Sink) -> pa.Table:
    more = read(case.other)
    append_rows(source, "source", [more, more.slice(0, 7)], sink)
    return pa.concat_tables([case.table, more, more.slice(0, 7)])


def _merged(case: Case, source: pa.NativeFile, sink: Sink) -> pa.Table:
    with pa.memory_map(str(case.other)) as other:
        merge_files([(source, "source"), (other, "other")], sink)
    return pa.concat_tables([case.table, read(case.other)])


def _with_a_column(case: Case, source: pa.NativeFile, sink: Sink) -> pa.Table:
    value = None if case.shape.seed % 2 else pa.scalar("constant")
    edits = case.edits(_ADDED.name, pa.array(["new", None, "constant"]))
    columns = [NewColumn(_ADDED, value, before=case.column)]
    add_columns(source, "source", columns, edits, sink)
    constant = pa.repeat(pa.scalar(None, pa.string()) if value is None else value, case.shape.rows)
    return edited(case.table.add_column(1, _ADDED, [constant]), edits)


def _with_another_type(case: Case, source: pa.NativeFile, sink: Sink) -> pa.Table:
    def numbered(old: pa.Array) -> pa.Array:
        return pa.array(np.arange(len(old)) % 100, mask=~np.asarray(old.is_valid()))

    field, old = pa.field(case.column, pa.int64()), case.table.column(case.column)
    replace_column(source, "source", field, numbered, sink)
    step = case.shape.rows_per_group
    groups = [old.slice(at, step).combine_chunks() for at in range(0, len(old), step)]
    return case.table.set_column(1, field, pa.chunked_array([numbered(one) for one in groups]))


def _without_a_column(case: Case, source: pa.NativeFile, sink: Sink) -> pa.Table:
    drop_column(source, "source", case.column, sink)
    return case.table.drop_columns([case.column])


def _erased(case: Case, source: pa.NativeFile, sink: Sink) -> pa.Table:
    old = case.table.column(case.column).unify_dictionaries()
    edits = case.edits(case.column, pa.concat_arrays(old.slice(0, 3).chunks))
    splice(source, "source", edits, sink, Options(erase=True))
    return edited(case.table, edits)


OPERATIONS: Mapping[str, Callable[[Case, pa.NativeFile, Sink], pa.Table]] = {
    "rows appended": _appended,
    "files merged": _merged,
    "a column added": _with_a_column,
    "a column replaced": _with_another_type,
    "a column dropped": _without_a_column,
    "values erased": _erased,
}
pytestmark = pytest.mark.parametrize("operation", OPERATIONS)


@contextmanager
def _case(shape: FileShape, scratch: Path) -> Iterator[Case]:
    with TemporaryDirectory(dir=scratch) as name:
        source, other = Path(name, "source.parquet"), Path(name, "other.parquet")
        files.write(shape, source)
        files.write(replace(shape, seed=shape.seed + 1, rows=1000), other)
        yield Case(shape, source, other)


def _check(operation: str, shape: FileShape, matrix: Matrix, scratch: Path) -> None:
    with _case(shape, scratch) as case:
        names = ("target.parquet", "plain.parquet")
        target, unedited = (case.source.with_name(name) for name in names)
        with pa.memory_map(str(case.source)) as source, pa.OSFile(str(target), "wb") as sink:
            expected = OPERATIONS[operation](case, source, StreamSink(sink))
        assert difference(expected.combine_chunks(), read(target)) is None
        before = untruths(case.source) | untruths(case.other)
        said = {(lie.column, lie.rule) for lie in before if lie.of_values}
        assert not [lie for lie in untruths(target) if (lie.column, lie.rule) not in said]
        plain(expected, case.source, unedited)
        asked = files.conditions(expected, _NO_EDITS, shape.seed, most=2)
        # Of a column that the source lacks it can't be asked.
        known = unedited if "column" in operation else case.source
        found = matrix.differences(known, target, unedited, asked)
        assert not found, "\n".join(found)


@pytest.fixture
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("operations")


@pytest.fixture(scope="module")
def in_process() -> Iterator[Matrix]:
    yield from used(IN_PROCESS)


@pytest.fixture
def spark(operation: str, seed: int, request: pytest.FixtureRequest) -> Iterator[Matrix]:
    """One choice of Spark's settings, each operation another one, by the seed; nightly all."""
    at = (seed + [*OPERATIONS].index(operation)) % len(SPARK)
    yield from used(SPARK if request.config.getoption("--nightly") else SPARK[at : at + 1])


@settings(settings.get_profile("readers of operations"))
@given(files.file_shapes(["pyarrow", "DataFusion"], [*COMMON]))
@example(FALLBACK)
def test_every_reader_sees_what_was_meant(
    operation: str, in_process: Matrix, scratch: Path, shape: FileShape
) -> None:
    # What writers make of a group's rows beside the limit they were given is their own affair.
    assume(shape.writer == "pyarrow" or shape.rows <= shape.rows_per_group)
    _check(operation, shape, in_process, scratch)


def test_spark_sees_what_was_meant(operation: str, spark: Matrix, scratch: Path) -> None:
    _check(operation, FALLBACK, spark, scratch)

"""Every reader sees the same in a spliced file as in a plain rewrite: any file, any edits, scans
and filters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

from tests.support import parquet_files as files
from tests.support.parquet_edits import EditShape, drawn_edits, edit_shapes
from tests.support.parquet_readers import IN_PROCESS, SPARK
from tests.support.parquet_values import COMMON, RARE
from tests.support.parquet_writers import FileShape
from tests.support.reader_matrix import Matrix, used
from tests.support.splicing import WAYS, read, written, wrongs

pytestmark = pytest.mark.parametrize("way", WAYS)


def _check(
    way: str,
    shape: FileShape,
    edits: Sequence[EditShape],
    matrix: Matrix,
    scratch: Path,
) -> None:
    with TemporaryDirectory(dir=scratch) as name:
        source, target = Path(name, "source.parquet"), Path(name, "target.parquet")
        files.write(shape, source)
        try:
            table = read(source)
        except OSError:
            assume(False)  # some of DuckDB's files pyarrow can't read
        drawn = drawn_edits(edits, table, shape.seed)
        written(way, source, drawn, target)
        asked = files.conditions(table, drawn, shape.seed)
        found = wrongs(source, drawn, target, asked, matrix)
        note(f"columns: {pq.read_schema(source)}")
        assert not found, "\n".join(found)


def _shapes(
    writers: Sequence[str], kinds: Sequence[str]
) -> st.SearchStrategy[tuple[FileShape, list[EditShape]]]:
    return files.file_shapes(writers, kinds).flatmap(
        lambda shape: st.tuples(st.just(shape), edit_shapes(len(shape.columns)))
    )


@pytest.fixture
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("splice")


@pytest.fixture(scope="module")
def in_process() -> Iterator[Matrix]:
    yield from used(IN_PROCESS)


@pytest.fixture
def spark(way: str, seed: int, request: pytest.FixtureRequest) -> Iterator[Matrix]:
    """Spark with one choice of its settings, each way another one, by the seed; nightly all. In the
    gate every choice reads what `test_splices_in_a_row.py` writes.
    """
    at = (seed + [*WAYS].index(way)) % len(SPARK)
    yield from used(SPARK if request.config.getoption("--nightly") else SPARK[at : at + 1])


_several = settings(settings.get_profile("readers"))
_some = settings(settings.get_profile("readers of Spark"))


@_several
@given(_shapes(["pyarrow"], [*COMMON, *RARE]))
def test_a_file_of_any_types_reads_as_its_plain_rewrite(
    way: str,
    in_process: Matrix,
    scratch: Path,
    shape: tuple[FileShape, list[EditShape]],
) -> None:
    _check(way, *shape, in_process, scratch)


@_several
@given(_shapes(["Polars", "DuckDB", "DataFusion"], [*COMMON]))
def test_a_file_by_any_writer_reads_as_its_plain_rewrite(
    way: str,
    in_process: Matrix,
    scratch: Path,
    shape: tuple[FileShape, list[EditShape]],
) -> None:
    _check(way, *shape, in_process, scratch)


@_some
@given(_shapes(["pyarrow", "Spark", "DataFusion"], [*COMMON]))
def test_spark_reads_a_file_as_its_plain_rewrite(
    way: str,
    spark: Matrix,
    scratch: Path,
    shape: tuple[FileShape, list[EditShape]],
) -> None:
    _check(way, *shape, spark, scratch)

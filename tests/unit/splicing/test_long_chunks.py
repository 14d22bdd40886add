"""Column chunks that are decoded in several spans: their metadata stays true."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.splicing.options import Options
from lakesplice.splicing.splice import Spliced, splice
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.splicing.verify import verify_edits
from lakesplice.storage.copying import FileSink, ScratchFile
from tests.support.parquet_truth import untruths

ROWS = 8000
Make = Callable[[np.ndarray], pa.Array]


def few_texts(at: np.ndarray) -> pa.Array:
    texts = pa.array([f"{number} {'x' * 60}" for number in range(10)])
    return texts.take(pa.array(at % 10))


def ever_more_texts(at: np.ndarray) -> pa.Array:
    """A dictionary of them is small for the first spans and too large for all."""
    return pa.array([f"{number if number > ROWS // 2 else number % 9:700}" for number in at])


def mostly_null(at: np.ndarray) -> pa.Array:
    return pa.array(at % 7, mask=(at < ROWS // 2) | (at % 3 == 0))


def not_numbers(at: np.ndarray) -> pa.Array:
    return pa.array(np.where(at % 5 == 0, np.nan, at % 11), from_pandas=False)


KINDS = [few_texts, ever_more_texts, mostly_null, not_numbers]


def spliced(
    folder: Path, values: pa.Array, edits: Edits, options: Options, **how: object
) -> Spliced:
    source, target = folder / "source.parquet", folder / "target.parquet"
    layout = {"max_rows_per_page": 200, "write_batch_size": 100, "write_page_index": True}
    pq.write_table(
        pa.table({"x": values}),
        source,
        row_group_size=ROWS,
        **layout | {"compression": "lz4"} | how,
    )
    # A chunk of no more than 8 spans is decoded at once.
    options = replace(options, span_bytes=values.nbytes // 20)
    with pa.memory_map(str(source)) as opened, pa.OSFile(str(target), "wb") as sink:
        done = splice(opened, "source", edits, FileSink(sink), options)
    found = pq.read_table(target, page_checksum_verification=True).column("x").combine_chunks()
    edit = edits.columns["x"]
    at = np.arange(ROWS)
    at[edit.rows] = ROWS + np.arange(len(edit.rows))
    meant = pa.concat_arrays([values, edit.values]).take(pa.array(at))
    assert _bits(found).equals(_bits(meant))
    with pa.memory_map(str(target)) as opened:
        verify_edits(opened, "target", edits)
    assert not untruths(target)
    return done


def _bits(values: pa.Array) -> pa.Array:
    return values.view(pa.int64()) if pa.types.is_floating(values.type) else values


def every(step: int, make: Make) -> Edits:
    rows = np.arange(3, ROWS, step)
    return Edits(rows, {"x": ColumnEdit(rows, make(rows + 1))})


@pytest.mark.slow
@pytest.mark.parametrize("make", KINDS)
def test_a_chunk_is_encoded_whole_span_by_span(make: Make, tmp_path: Path) -> None:
    done = spliced(tmp_path, make(np.arange(ROWS)), every(150, make), Options())
    assert done.columns_whole["x"] == "many_pages"


@pytest.mark.slow
@pytest.mark.parametrize("make", KINDS)
def test_a_chunk_without_a_page_index_is_encoded_whole(make: Make, tmp_path: Path) -> None:
    how = {"write_page_index": False, "max_rows_per_page": ROWS, "data_page_size": 1 << 20}
    edits = every(ROWS // 2, make)
    done = spliced(tmp_path, make(np.arange(ROWS)), edits, Options(), **how)
    assert done.columns_whole["x"] == "no_page_index"


def at_first_no_numbers(at: np.ndarray) -> pa.Array:
    return pa.array(np.where(at < ROWS // 2, np.nan, at % 11), from_pandas=False)


@pytest.mark.slow
@pytest.mark.parametrize("make", [few_texts, mostly_null, at_first_no_numbers])
def test_a_column_index_covers_all_pages_or_there_is_none(make: Make, tmp_path: Path) -> None:
    """Pages without a single number have no bounds, so neither has the chunk."""
    done = spliced(tmp_path, make(np.arange(ROWS)), every(150, make), Options())
    assert done.columns_whole["x"] == "many_pages"
    with pa.memory_map(str(tmp_path / "target.parquet")) as opened:
        source = SourceFile(opened, "target")
        pages, bounds = source.offset_index(0, 0), source.column_index(0, 0)
    assert pages is not None
    assert (bounds is None) == (make is at_first_no_numbers)
    assert bounds is None or len(bounds) == len(pages)


@pytest.mark.slow
@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("dictionary", [True, False])
def test_touched_pages_wait_in_a_scratch_file(make: Make, dictionary: bool, tmp_path: Path) -> None:
    options = Options(threads=2, page_share_max=1, open_scratch=ScratchFile)
    values = make(np.arange(ROWS))
    done = spliced(
        tmp_path,
        values,
        every(150, make),
        options,
        use_dictionary=dictionary,
        compression="none",
    )
    assert not done.columns_whole


def test_a_dictionary_never_follows_pages_without_one(tmp_path: Path) -> None:
    values = ever_more_texts(np.arange(ROWS))
    spliced(tmp_path, values, every(150, ever_more_texts), Options())
    with pa.memory_map(str(tmp_path / "target.parquet")) as opened:
        pages = SourceFile(opened, "target").pages(0, 0)
        kinds = [page.header.encoding == 8 for page in pages if page.header.is_data]
    assert any(kinds)
    assert not all(kinds)
    assert kinds == sorted(kinds, reverse=True)

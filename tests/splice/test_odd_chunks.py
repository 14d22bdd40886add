"""Splices of unusual chunks: mixed pages, and dictionaries that end before the chunk does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.splicing.faults import Reason
from lakesplice.splicing.options import Options
from lakesplice.splicing.output.copying import StreamSink
from lakesplice.splicing.splice import Spliced, splice
from lakesplice.splicing.structures.source import SourceFile
from tests.support.mixed_pages import PLAIN, PLAIN_V2, ROWS_PER_PAGE, WITH, WITH_V2, Kind, mixed
from tests.support.parquet_parts import opened, parquet
from tests.support.parquet_readers import IN_PROCESS, SPARK
from tests.support.parquet_truth import untruths_of
from tests.support.reader_matrix import Matrix
from tests.support.splicing import plain

PAGES = 10
VALUES = [None if at % 11 == 0 else f"value {at % 37}" for at in range(PAGES * ROWS_PER_PAGE)]
MIXTURES: Mapping[str, Sequence[Kind]] = {
    "versions": [WITH, WITH_V2] * 5,
    "plain behind, of both versions": [WITH] * 4 + [PLAIN_V2, PLAIN] * 3,
    "all four": [WITH, WITH_V2, WITH, WITH_V2, WITH_V2, PLAIN, PLAIN_V2, PLAIN_V2, PLAIN, PLAIN],
}


def run(
    data: bytes, rows: Sequence[int], values: pa.Array, *, erase: bool = False
) -> tuple[bytes, Spliced]:
    at = np.array(rows, np.int64)
    sink = pa.BufferOutputStream()
    edits = Edits(at, {"x": ColumnEdit(at, values)})
    done = splice(opened(data), "x.parquet", edits, StreamSink(sink), Options(erase=erase))
    return sink.getvalue().to_pybytes(), done


def expected(rows: Sequence[int], values: pa.Array, before: Sequence[object]) -> list[object]:
    after = list(before)
    for row, value in zip(rows, values.to_pylist(), strict=True):
        after[row] = value
    return after


def read(data: bytes) -> list[object]:
    found = pq.read_table(BytesIO(data), page_checksum_verification=True).column("x")
    return list(found.to_pylist())


def kinds(data: bytes) -> list[Kind]:
    pages = SourceFile(opened(data), "x.parquet").pages(0, 0)
    return [
        Kind(page.header.encoding != 0, 2 if page.header.rows is not None else 1)
        for page in pages
        if page.header.is_data
    ]


def test_pages_out_of_order_are_encoded_whole_and_come_out_in_order() -> None:
    data = mixed(pa.array(VALUES), [WITH, WITH, PLAIN, *[WITH] * 7])
    assert {untruth.rule for untruth in untruths_of(data)} == {"a dictionary after none"}
    new = pa.array(["new", None, "value 3"])
    spliced, done = run(data, [0, 250, 999], new)
    assert done.columns_whole == {"x": Reason.PAGES_OUT_OF_ORDER}
    assert read(spliced) == expected([0, 250, 999], new, VALUES)
    assert kinds(spliced) == [WITH] * PAGES
    assert not untruths_of(spliced)


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("rows", [[150], [450], [50, 150, 450, 550, 650], [0, 1, 999]], ids=str)
def test_every_page_of_a_mixed_chunk_stays_of_its_kind(mixture: str, rows: list[int]) -> None:
    data = mixed(pa.array(VALUES), MIXTURES[mixture])
    assert not untruths_of(data)
    new = pa.array([f"new {row}" for row in rows])
    spliced, done = run(data, rows, new)
    assert not done.columns_whole
    assert done.pages_encoded == len({row // ROWS_PER_PAGE for row in rows})
    assert read(spliced) == expected(rows, new, VALUES)
    assert kinds(spliced) == list(MIXTURES[mixture])
    assert not untruths_of(spliced)


def test_every_reader_reads_a_mixed_chunk_that_was_spliced(
    tmp_path: Path, seed: int, request: pytest.FixtureRequest
) -> None:
    names = ("source", "target", "plain")
    source, target, unedited = (tmp_path / f"{name}.parquet" for name in names)
    source.write_bytes(mixed(pa.array(VALUES), MIXTURES["all four"]))
    rows = [50, 150, 450, 550, 650]
    new = pa.array([f"new {row}" for row in rows])
    target.write_bytes(run(source.read_bytes(), rows, new)[0])
    plain(pa.table({"x": expected(rows, new, VALUES)}), source, unedited)
    at = seed % len(SPARK)
    spark = SPARK if request.config.getoption("--nightly") else SPARK[at : at + 1]
    matrix = Matrix([*IN_PROCESS, *spark])
    assert not matrix.differences(source, target, unedited, [])
    assert not matrix.unread


def test_a_dictionary_that_grew_too_far_is_rebuilt() -> None:
    data = mixed(pa.array(VALUES), [WITH] * PAGES)
    rows = [*range(400)]
    new = pa.array([f"a new and rather long value, {row}" for row in rows])
    spliced, done = run(data, rows, new)
    assert done.columns_whole == {"x": Reason.DICTIONARY_DECAYED}
    assert read(spliced) == expected(rows, new, VALUES)
    assert not untruths_of(spliced)
    # Of the old values only those are left that a row still has.
    page = SourceFile(opened(spliced), "x.parquet").dictionary_page(0, 0)
    assert page is not None
    assert page.header.num_values == len(set(read(spliced)) - {None})


def test_a_dictionary_that_saves_nothing_is_given_up() -> None:
    data = mixed(pa.array(VALUES), [WITH] * PAGES)
    rows = [*range(780)]
    new = pa.array([f"a new and rather long value, {row}" for row in rows])
    spliced, done = run(data, rows, new)
    assert done.columns_whole == {"x": Reason.DICTIONARY_DECAYED}
    assert read(spliced) == expected(rows, new, VALUES)
    assert kinds(spliced) == [PLAIN] * PAGES
    assert not untruths_of(spliced)


def test_a_dictionary_decays_by_what_several_splices_added() -> None:
    data = mixed(pa.array(VALUES), [WITH] * PAGES)
    before: list[object] = list(VALUES)
    reasons: list[str] = []
    for turn in range(40):
        rows = [*range(100 * (turn % 5), 100 * (turn % 5) + 8)]
        new = pa.array([f"a new and rather long value, {turn}, {row}" for row in rows])
        data, done = run(data, rows, new)
        before = expected(rows, new, before)
        assert read(data) == before
        reasons += done.columns_whole.values()
    assert set(reasons) == {Reason.DICTIONARY_DECAYED}
    assert 1 <= len(reasons) < 10
    assert not untruths_of(data)


@pytest.mark.parametrize("value", ["value 5", "another"])
def test_a_dictionary_that_has_a_value_twice_is_rebuilt(value: str) -> None:
    before = [f"value {at % 10}" for at in range(1000)]
    table = pa.table({"x": before})
    data = parquet(table, compression="none", write_page_checksum=False, use_dictionary=True)
    first = data.index(b"value 7")
    twice = data[:first] + b"value 5" + data[first + 7 :]
    before = [text.replace("7", "5") for text in before]
    assert read(twice) == before
    spliced, done = run(twice, [123], pa.array([value]))
    assert done.columns_whole == {"x": Reason.DICTIONARY_REPEATS}
    assert read(spliced) == expected([123], pa.array([value]), before)
    assert not untruths_of(spliced)


def test_most_pages_of_a_chunk_with_a_dictionary_are_as_good_as_all() -> None:
    data = mixed(pa.array(VALUES), [WITH] * PAGES)
    rows = [ROWS_PER_PAGE * page for page in range(9)]
    new = pa.array(["value 1"] * len(rows))
    spliced, done = run(data, rows, new)
    assert done.columns_whole == {"x": Reason.MANY_PAGES}
    assert read(spliced) == expected(rows, new, VALUES)
    spliced, done = run(data, rows[:8], new[:8])
    assert not done.columns_whole
    assert not untruths_of(spliced)


def test_an_erased_value_is_in_no_page_and_in_no_bound() -> None:
    values = ["Erika" if at == 123 else f"value {at % 9}" for at in range(1000)]
    data = parquet(pa.table({"x": values}), compression="none", use_dictionary=True)
    assert b"Erika" in data
    spliced, done = run(data, [123], pa.array(["value 1"]), erase=True)
    assert done.columns_whole == {"x": Reason.ERASED_DICTIONARY}
    assert b"Erika" not in spliced
    assert not untruths_of(spliced)


@pytest.mark.parametrize("version", ["1.0", "2.6"])
def test_a_grown_dictionary_is_named_as_the_footer_says(version: str) -> None:
    values = [f"value {at % 9}" for at in range(1000)]
    data = parquet(pa.table({"x": values}), version=version, use_dictionary=True)
    assert not untruths_of(data)
    spliced, done = run(data, [123], pa.array(["new"]))
    assert not done.columns_whole
    assert read(spliced) == expected([123], pa.array(["new"]), values)
    assert not untruths_of(spliced)

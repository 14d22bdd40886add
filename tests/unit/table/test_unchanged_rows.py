"""Upserts with values that their rows already have: what stays unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.formats.parquet import ROWS_PER_PAGE
from lakesplice.splicing.shared_pages import SharedPages, shared_pages
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from tests.support.by_hand import COLUMNS, Row, created, given, require_rows, require_sound_index

WHOLE = COLUMNS.names
COUNT = 10_000
ROWS: dict[int, Row] = {
    key: {"id": key, "name": f"r{key % 7}", "n": key, "price": None} for key in range(COUNT)
}


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "lake").within("shop/goods")


@pytest.fixture
def table(store: LocalStore) -> HandFedTable:
    return created(store, ROWS.values())


def counts_of_the_last(table: HandFedTable) -> dict[str, int]:
    metrics = next(iter(table.history())).info.metrics
    return {name: int(count) for name, count in metrics.items()}


@pytest.mark.slow
def test_an_upsert_of_rows_that_are_there_writes_no_base_file(
    table: HandFedTable, store: LocalStore
) -> None:
    files = {*table.snapshot.manifest.files}
    table.upsert(given(ROWS.values(), WHOLE))
    done = table.compact()
    assert (done.files, done.changes, done.bytes_written) == (0, COUNT, 0)
    assert {*table.snapshot.manifest.files} == files
    assert not table.snapshot.manifest.deltas, "its changes are consumed all the same"
    assert counts_of_the_last(table)["unchanged"] == COUNT
    require_rows(table, ROWS)
    # What comes later is above the rows' old positions as it would be above newer ones.
    table.upsert(given([{"id": 3, "n": -1}], ["id", "n"]))
    table.compact()
    require_rows(table, {**ROWS, 3: {**ROWS[3], "n": -1}})
    require_sound_index(store, table)


def test_only_columns_with_new_values_are_encoded(table: HandFedTable, store: LocalStore) -> None:
    (before,) = table.snapshot.manifest.files
    truth = {key: {**row, "n": row["n"] + key % 2} for key, row in ROWS.items()}
    table.upsert(given(truth.values(), WHOLE))
    table.compact()
    require_rows(table, truth)
    (after,) = table.snapshot.manifest.files
    with store.open(before) as old, store.open(after) as new:
        shared = shared_pages(SourceFile(old, before), SourceFile(new, after))
    assert shared["n"].pages_shared == 0
    assert all(_is_whole(shared[name]) for name in ("name", "price", "_is_deleted"))
    pages, counts = -(-COUNT // ROWS_PER_PAGE), counts_of_the_last(table)
    assert (counts["rows"], counts["pages_equal"]) == (COUNT, 2 * pages), "of name and price"


def _is_whole(shared: SharedPages) -> bool:
    return shared.pages == shared.pages_shared


@pytest.mark.slow
def test_only_files_with_new_values_are_written(table: HandFedTable, store: LocalStore) -> None:
    more = {key: {**ROWS[0], "id": key} for key in range(COUNT, COUNT + 50)}
    table.upsert(given(more.values(), WHOLE))
    first, second = sorted(table.snapshot.manifest.files.values(), key=lambda file: -file.rows)
    truth = {**ROWS, **more, COUNT: {**more[COUNT], "name": None}}
    table.upsert(given(truth.values(), WHOLE))
    assert table.compact().files == 1
    assert first.path in table.snapshot.manifest.files
    assert second.path not in table.snapshot.manifest.files
    require_rows(table, truth)


@pytest.mark.slow
def test_a_row_that_was_deleted_and_came_back_as_it_was_is_left_alone(table: HandFedTable) -> None:
    table.upsert(delete=given([ROWS[5]], ["id"]))
    table.upsert(given([ROWS[5]], WHOLE))
    assert table.compact().files == 0
    require_rows(table, ROWS)
    table.upsert(delete=given([ROWS[5]], ["id"]))
    assert table.compact().files == 1
    require_rows(table, {key: row for key, row in ROWS.items() if key != 5})

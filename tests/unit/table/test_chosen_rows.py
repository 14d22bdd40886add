"""Rows that are read from base files for a rewrite, and files of row images."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.apps.library.table import Table
from lakesplice.formats.parquet import write
from lakesplice.model.names import CHANGE_TYPE, IS_DELETED
from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.planning.rows.row_images import ROWS_TOGETHER, rewritten_images
from lakesplice.splicing.pages.whole_numbers import in_numbers
from lakesplice.storage.local import LocalStore
from lakesplice.table.files.chosen_rows import chosen_rows
from lakesplice.table.files.image_files import encoded_images

ROWS = 20_000  # on five pages
PRICES = pa.array(
    [None if at % 7 == 0 else Decimal(at - ROWS // 2) / 100 for at in range(ROWS)],
    pa.decimal128(7, 2),
)


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    names = pa.array([None if at % 5 == 0 else f"name {at % 11}" for at in range(ROWS)])
    return pa.table({"id": range(ROWS), "price": PRICES, "name": names})


@pytest.fixture(scope="module", params=[ROWS, 8_192], ids=["a row group", "three row groups"])
def lake(
    rows: pa.Table, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Path:
    place = tmp_path_factory.mktemp("lake") / "shop" / "goods"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "ROW_GROUP_ROWS_MAX", request.param)
        Table.create(place, rows, key="id")
    return place


@pytest.mark.parametrize("every", [1, 3, 4_000, 15_000])
def test_rows_are_the_same_whether_few_pages_hold_them_or_most(
    lake: Path, rows: pa.Table, every: int
) -> None:
    names = ["price", "id", "name"]
    manifest, chosen = Table.open(lake).snapshot.manifest, np.arange(0, ROWS, every)
    (file,) = manifest.files.values()
    store = LocalStore(lake)
    with store.open(file.path) as source:
        read = partial(chosen_rows, store, source, file, manifest.schema, chosen, names)
        found, numbers = read(), read(as_numbers=True)
    expected = rows.take(pa.array(chosen)).select(names)
    assert found.to_pylist() == expected.to_pylist()
    cents = [price and int(price * 100) for price in expected.column("price").to_pylist()]
    assert numbers.column("price").to_pylist() == cents
    assert numbers.drop("price").equals(found.drop("price"))


@pytest.mark.parametrize("kept", [0, 1, ROWS - 3])
def test_images_are_read_as_they_were_and_of_the_types_that_they_had(kept: int) -> None:
    kinds = (pa.decimal128(7, 2), pa.decimal128(18, 2), pa.decimal128(19, 2), pa.decimal128(38, 0))
    columns = {str(kind): PRICES.slice(3, kept).cast(kind, safe=False) for kind in kinds}
    columns["_change_type"] = pa.repeat(pa.scalar("insert"), kept)
    images = pa.table(columns)
    plain = pa.BufferOutputStream()
    pq.write_table(images, plain, store_decimal_as_integer=True, store_schema=False)
    made = pq.ParquetFile(pa.BufferReader(encoded_images(in_numbers(images), images.schema)))
    assert made.schema.equals(pq.ParquetFile(pa.BufferReader(plain.getvalue())).schema)
    assert made.read().equals(images)


def test_each_edited_row_has_the_images_of_its_change_in_whatever_order() -> None:
    count = 2 * ROWS_TOGETHER + 5
    at = np.arange(count)
    was_deleted, is_deleted, changed = at % 7 == 0, at % 5 == 0, at % 3 != 0
    before = pa.table({"id": at, "n": at, IS_DELETED: was_deleted})
    after = at + changed
    edited = at[changed]
    edits = Edits(
        at,
        {
            "n": ColumnEdit(edited, pa.array(after[edited])),
            IS_DELETED: ColumnEdit(at, pa.array(is_deleted)),
        },
    )
    found = rewritten_images(before, edits, changed, at % 11 == 0)
    kinds = found.column(CHANGE_TYPE).to_pylist()
    expected = []
    for row in range(count):
        if not was_deleted[row] and is_deleted[row]:
            expected.append((row, row, "delete" if row % 11 else "update_preimage"))
        elif was_deleted[row] and not is_deleted[row]:
            expected.append((row, after[row], "insert"))
        elif not was_deleted[row] and changed[row]:
            expected.append((row, row, "update_preimage"))
            expected.append((row, after[row], "update_postimage"))
    ids, numbers = (found.column(name).to_pylist() for name in ("id", "n"))
    assert sorted(zip(ids, numbers, kinds, strict=True)) == sorted(expected)
    assert not any(found.column(IS_DELETED).to_pylist())

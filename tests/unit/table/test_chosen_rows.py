"""Rows that are read from base files for a rewrite, and files of row images."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.apps.library.table import Table
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


@pytest.fixture(scope="module")
def lake(rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("lake") / "shop" / "goods"
    Table.create(place, rows, key="id")
    return place


@pytest.mark.parametrize("every", [1, 3, 4_000, 15_000])
def test_rows_are_the_same_whether_few_pages_hold_them_or_most(
    lake: Path, rows: pa.Table, every: int
) -> None:
    manifest, chosen = Table.open(lake).snapshot.manifest, np.arange(0, ROWS, every)
    (file,) = manifest.files.values()
    store = LocalStore(lake)
    with store.open(file.path) as source:
        found = chosen_rows(store, source, file, manifest.schema, chosen, ["price", "id", "name"])
    expected = rows.take(pa.array(chosen)).select(["price", "id", "name"])
    assert found.to_pylist() == expected.to_pylist()


@pytest.mark.parametrize("kept", [0, 1, ROWS - 3])
def test_images_are_read_as_they_were_and_of_the_types_that_they_had(kept: int) -> None:
    kinds = (pa.decimal128(7, 2), pa.decimal128(18, 2), pa.decimal128(19, 2), pa.decimal128(38, 0))
    columns = {str(kind): PRICES.slice(3, kept).cast(kind, safe=False) for kind in kinds}
    columns["_change_type"] = pa.repeat(pa.scalar("insert"), kept)
    images = pa.table(columns)
    plain = pa.BufferOutputStream()
    pq.write_table(images, plain, store_decimal_as_integer=True, store_schema=False)
    made = pq.ParquetFile(pa.BufferReader(encoded_images(images)))
    assert made.schema.equals(pq.ParquetFile(pa.BufferReader(plain.getvalue())).schema)
    assert made.read().equals(images)

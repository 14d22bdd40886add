"""A table in a bucket: by hand, by the service's protocol, and for every reader."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lakesplice import Table
from lakesplice.model.names import IS_DELETED, SYSTEM_COLUMNS
from lakesplice.testing.s3_proxy import S3Proxy
from lakesplice.testing.s3_server import S3Server, options

ROWS = 20_000


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[S3Proxy]:
    with S3Proxy(s3_server.port) as proxy:
        yield proxy


@pytest.fixture
def address(s3_server: S3Server) -> str:
    return f"s3://{s3_server.make_bucket()}/lake/shop/goods"


def rows(first: int, count: int, price: float) -> pa.Table:
    ids = np.arange(first, first + count)
    return pa.table({"id": ids, "name": [f"thing {n}" for n in ids], "price": ids * price})


def test_a_table_fed_by_hand_lives_in_a_bucket(address: str, s3_server: S3Server) -> None:
    reach = options(s3_server.endpoint)
    table = Table.create(address, rows(0, ROWS, 1.0), key=["id"], options=reach)
    table.upsert(rows(ROWS - 100, 200, 2.0), delete=pa.table({"id": [0, 1]}))
    found = Table.open(address, options=reach).read().sort_by("id")
    assert found.column("id").to_pylist() == [*range(2, ROWS + 100)]
    assert found.column("price")[-1].as_py() == (ROWS + 99) * 2.0
    table.compact()
    assert Table.open(address, options=reach).read("read_optimised").sort_by("id") == found
    foreign = DeltaTable(address, storage_options=reach)
    assert foreign.version() == table.version
    kept = pl.scan_delta(address, storage_options=reach).filter(~pl.col(IS_DELETED))
    assert (
        kept.drop(*SYSTEM_COLUMNS)
        .collect()
        .sort("id")
        .to_arrow()
        .equals(pl.from_arrow(found).to_arrow())
    )
    assert Table.open(address, version=0, options=reach).read().num_rows == ROWS


def test_an_upsert_asks_the_store_little_and_lists_nothing(address: str, proxy: S3Proxy) -> None:
    reach = options(proxy.endpoint)
    table = Table.create(address, rows(0, ROWS, 1.0), key=["id"], options=reach)
    table.upsert(rows(0, 10, 2.0))
    proxy.reset()
    table.upsert(rows(0, 10, 3.0))
    asked = proxy.seen()
    assert not [request for request in asked if request.is_list]
    assert len(asked) <= 8, asked

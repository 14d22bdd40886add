"""A table in a bucket: by hand, by the service's protocol, and for every reader."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyarrow import csv

from lakesplice import Table
from lakesplice.apps.bootstrap.row_files import RowFiles, file_parts, files_in, split_glob
from lakesplice.apps.erasing.byte_search import search
from lakesplice.apps.lake import require_lake
from lakesplice.errors import UsageError
from lakesplice.model.names import IS_DELETED, SYSTEM_COLUMNS
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.storage.stores import open_store
from lakesplice.testing.s3_proxy import S3Proxy
from lakesplice.testing.s3_server import S3Server, options
from tests.support.command_line import CommandLine

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


def test_rows_are_erased_from_a_bucket(address: str, s3_server: S3Server) -> None:
    reach = options(s3_server.endpoint)
    table = Table.create(address, rows(0, ROWS, 1.0), key=["id"], options=reach)
    table.upsert(delete=pa.table({"id": [7]}))
    assert table.erase([7]).rows == 1
    assert [entry.info.operation for entry in table.history()] == ["ERASED"]
    store = open_store(address, reach)
    left = search(
        ((path, store.read(path)) for path in store.list("")),
        ["column:id=7", "column:name=thing 7"],
    )
    assert left == {}
    kept = DeltaTable(address, storage_options=reach).to_pyarrow_table()
    assert kept.num_rows == ROWS - 1
    assert 7 not in kept.column("id").to_pylist()


def test_an_upsert_asks_the_store_little_and_lists_nothing(address: str, proxy: S3Proxy) -> None:
    reach = options(proxy.endpoint)
    table = Table.create(address, rows(0, ROWS, 1.0), key=["id"], options=reach)
    table.upsert(rows(0, 10, 2.0))
    proxy.reset()
    table.upsert(rows(0, 10, 3.0))
    asked = proxy.seen()
    assert not [request for request in asked if request.is_list]
    assert len(asked) <= 8, asked


def test_commands_reach_a_bucket_by_the_services_configuration(
    address: str,
    s3_server: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Only a real server refuses who has no key; here the file alone has it."""
    reach = options(s3_server.endpoint)
    table = Table.create(address, rows(0, 100, 1.0), key=["id"], options=reach)
    table.upsert(rows(0, 10, 2.0))
    for name in [name for name in os.environ if name.upper().startswith("AWS_")]:
        monkeypatch.delenv(name)
    config, lake = tmp_path / "lakesplice.yaml", address.rpartition("/shop/")[0]
    kafka = {"bootstrap_servers": "127.0.0.1:9", "topic_pattern": "none"}
    config.write_text(json.dumps({"kafka": kafka, "lake": {"root": lake, "options": reach}}))
    lakesplice = CommandLine(capsys)
    (row,) = lakesplice.rows("tables", lake, "--config", config)
    assert (row["table"], row["rows"]) == ("shop.goods", 100)
    monkeypatch.setenv("LAKESPLICE_CONFIG", str(config))
    assert "10 changes merged into 1 base files" in lakesplice("compact", address).out
    assert "0 files merged" in lakesplice("merge", address).out
    assert len(lakesplice.rows("history", address)) == table.refresh().version + 1
    assert len(lakesplice.rows("read", address, "--filter", "price = 2.0 * id")) == 10
    for words in ("inspect log", "inspect deltas", "index check", "dlq list", "vacuum --dry-run"):
        ended = lakesplice(*words.split(), address)
        assert ended.code == 0, ended.err


@pytest.mark.parametrize(
    ("above", "file"),
    [("lake", "_delta_log/00000000000000000000.json"), ("", "metadata/v1.metadata.json")],
)
def test_no_table_is_made_below_a_table_of_a_bucket(
    address: str, s3_server: S3Server, above: str, file: str
) -> None:
    """A bucket has no folders that the file system could be asked about."""
    reach = options(s3_server.endpoint)
    bucket = address.partition("/lake/")[0]
    open_store(f"{bucket}/{above}".rstrip("/"), reach).put_new(file, b"{}")
    with pytest.raises(UsageError, match="one above it is a table"):
        Table.create(address, rows(0, 10, 1.0), key=["id"], options=reach)
    with pytest.raises(UsageError, match="one above it is a table"):
        require_lake(open_store(f"{bucket}/lake/inner", reach))


def test_rows_of_files_in_a_bucket_fill_a_table(s3_server: S3Server) -> None:
    reach, folder = options(s3_server.endpoint), f"s3://{s3_server.make_bucket()}/dumps"
    given, lines = rows(0, ROWS, 0.5), io.BytesIO()
    csv.write_csv(given.slice(ROWS // 2), lines)
    parquet = io.BytesIO()
    pq.write_table(given.slice(0, ROWS // 2), parquet, row_group_size=ROWS // 4)
    written = open_store(folder, reach)
    assert written.put_new("day=1/a.parquet", parquet.getvalue())
    assert written.put_new("day=2/b.csv", lines.getvalue())
    types = {"id": Primitive.LONG, "name": Primitive.STRING, "price": Primitive.DOUBLE}
    fields = tuple(SourceField(name, ColumnType(kind), "") for name, kind in types.items())
    where, pattern = split_glob(f"{folder}/day=*/*")
    files = files_in(where, reach)
    parts = file_parts(files, pattern, block_bytes=1 << 16)
    assert [part.path for part in parts] == ["day=1/a.parquet"] * 2 + ["day=2/b.csv"]
    reading = RowFiles(files, SourceSchema(fields, ("id",)))
    assert pa.concat_tables(map(reading.rows, parts)).to_pydict() == given.to_pydict()

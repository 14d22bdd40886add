"""Adoption of other writers' partitioned tables: partition values become columns, pages are
copied.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice import Table
from lakesplice.spark.jars import DELTA
from lakesplice.splicing.shared_pages import shared_pages
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.storage.local import LocalStore
from lakesplice.table.reading.scan import View
from lakesplice.table.upkeep.index_check import check
from tests.support import adopting, machine
from tests.support.adopting import Rows, files_of, live_elsewhere, some_rows
from tests.support.delta_spark import run_delta_spark
from tests.support.readers import READERS

ROWS = 600
BY = ["country", "n"]
COUNTRIES = ["de", "fr ü/=%", None, "a'b"]


def partitioned_rows(first: int = 0, last: int = ROWS) -> pa.Table:
    countries = pa.array([COUNTRIES[n % 4] for n in range(first, last)], pa.string())
    return some_rows(first, last).append_column("country", countries)


COLUMNS = partitioned_rows(0, 0).column_names


def by_deltalake(path: Path) -> None:
    deltalake.write_deltalake(str(path), partitioned_rows(0, 500), partition_by=BY)
    deltalake.write_deltalake(str(path), partitioned_rows(500), partition_by=BY, mode="append")


def by_deltalake_with_checkpoint(path: Path) -> None:
    by_deltalake(path)
    deltalake.DeltaTable(str(path)).create_checkpoint()


def by_pyarrow(path: Path) -> None:
    pq.write_to_dataset(partitioned_rows(), path, partition_cols=BY)


def by_duckdb(path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.register("made", partitioned_rows())
        connection.execute(f"copy made to '{path}' (format parquet, partition_by (country, n))")


WRITERS: Mapping[str, Callable[[Path], None]] = {
    "deltalake": by_deltalake,
    "deltalake with a checkpoint": by_deltalake_with_checkpoint,
    "pyarrow": by_pyarrow,
    "DuckDB": by_duckdb,
}


def by_key(table: pa.Table) -> Rows:
    return adopting.by_key(table, COLUMNS)


def elsewhere(path: Path, version: int, engine: str) -> Rows:
    return by_key(live_elsewhere(path, version, engine))


# A log without a checkpoint is adopted below, where Spark wrote it.
@pytest.mark.parametrize(
    "writer",
    [
        pytest.param(name, marks=[pytest.mark.nightly] if name == "deltalake" else [])
        for name in WRITERS
    ],
)
def test_rows_of_partitions_are_adopted_with_their_values(writer: str, tmp_path: Path) -> None:
    path = tmp_path / "table"
    WRITERS[writer](path)
    before, truth = files_of(path), by_key(partitioned_rows())
    would = Table.adoption(path, key=["id"])
    assert files_of(path) == before
    assert (would.rows, set(would.rewritten)) == (ROWS, set(before))
    assert any("country = 'de'" in why and "n = 4" in why for why in would.rewritten.values())

    table = Table.adopt(path, key=["id"])
    assert files_of(path) == before
    for view in View:
        assert by_key(table.read(view)) == truth
    for engine in READERS:
        assert elsewhere(path, table.version, engine) == truth

    table.upsert(pa.table({"id": [3, 5], "country": [None, "it"], "n": pa.array([9, 1])}))
    table.upsert(partitioned_rows(ROWS, ROWS + 2), delete=pa.table({"id": [7]}))
    truth |= by_key(partitioned_rows(ROWS, ROWS + 2))
    truth[3] |= {"country": None, "n": 9}
    truth[5] |= {"country": "it", "n": 1}
    del truth[7]
    assert by_key(table.read()) == truth
    table.compact()
    for engine in READERS:
        assert elsewhere(path, table.version, engine) == truth
    report = check(LocalStore(path), table.snapshot)
    assert report.sound
    assert not report.duplicates


def test_pages_of_partitions_are_copied(tmp_path: Path) -> None:
    path = tmp_path / "table"
    pq.write_to_dataset(partitioned_rows(), path, partition_cols=["country"])
    by_first = {first_of(path / name): name for name in files_of(path)}
    files = Table.adopt(path, key=["id"]).snapshot.manifest.files
    assert len(files) == len(by_first) == len(COUNTRIES)
    for name in files:
        before = by_first[first_of(path / name)]
        with pa.OSFile(str(path / before)) as one, pa.OSFile(str(path / name)) as other:
            found = shared_pages(SourceFile(one, before), SourceFile(other, name))
        assert found.pop("country").pages_shared == 0
        assert found.keys() == set(COLUMNS) - {"country"}
        assert all(shared.pages_shared == shared.pages for shared in found.values())


def first_of(path: Path) -> int:
    found: int = pq.ParquetFile(path).read(columns=["id"])["id"][0].as_py()
    return found


SPARK_ROWS = (
    "select cast(id as bigint) id, concat('n', id) name,"
    " case id % 3 when 0 then 'de' when 1 then 'fr ü/=%' end country,"
    " date_add(date'2020-01-01', cast(id % 2 as int)) day,"
    " cast(id % 2 - 0.05 as decimal(5,2)) part, id % 2 = 0 even from range({}, {})"
)


def test_a_table_that_spark_partitioned_is_adopted_and_read_by_spark(tmp_path: Path) -> None:
    path, jars = tmp_path / "table", machine.jars(DELTA)
    by = "country, day, part, even"
    made = [
        f"create table {{table}} using delta partitioned by ({by}) as {SPARK_ROWS.format(0, 60)}",
        f"insert into {{table}} {SPARK_ROWS.format(60, 90)}",
    ]
    assert set(run_delta_spark(jars, path, tmp_path, (), (), made).outcomes.values()) == {""}
    columns = ("id", "name", "country", "day", "part", "even")
    table = Table.adopt(path, key=["day", "id"])
    table.upsert(pa.table({"id": [3], "day": [dt.date(2020, 1, 2)], "country": ["it"]}))
    table.compact()
    rows = table.read(columns=list(columns)).sort_by("id").to_pylist()
    expected = [
        {
            "id": n,
            "name": f"n{n}",
            "country": "it" if n == 3 else ("de", "fr ü/=%", None)[n % 3],
            "day": dt.date(2020, 1, 1 + n % 2),
            "part": Decimal(n % 2) - Decimal("0.05"),
            "even": n % 2 == 0,
        }
        for n in range(90)
    ]
    assert rows == expected
    found = run_delta_spark(jars, path, tmp_path, (1, table.version), columns[:3], ())
    before, now = (
        [
            [row["id"], row["name"], country]
            for row, country in zip(expected, countries, strict=True)
        ]
        for countries in (
            [("de", "fr ü/=%", None)[n % 3] for n in range(90)],
            [row["country"] for row in expected],
        )
    )
    assert found.versions[1] == before, "a version from before the adoption"
    assert found.versions[table.version] == now

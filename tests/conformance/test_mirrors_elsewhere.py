"""DuckDB and Spark read an Iceberg mirror: each snapshot has the rows of its version.

DuckDB opens the metadata, Spark the catalog: the same SQLite file as ours, or the same REST server.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lakesplice.spark.jars import DELTA, JarSet, Module
from lakesplice.testing.servers.iceberg_rest import ICEBERG_REST, TOKEN, IcebergRestServer
from lakesplice.testing.servers.process import java_command
from tests.support import machine
from tests.support.delta_spark import run_delta_spark
from tests.support.mirrored_versions import Mirrored, duckdb_reads, mirrored_life
from tests.support.mirrors import sqlite_catalog

ICEBERG = JarSet(
    "iceberg-spark",
    (
        Module("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.12.0"),
        Module("org.xerial", "sqlite-jdbc", "3.49.1.0"),
    ),
)
# Both have the name of the catalog beside each table, so both must use the same.
_CATALOG = "spark.sql.catalog.lakesplice"


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> Mirrored:
    folder = tmp_path_factory.mktemp("lake")
    return mirrored_life(folder, sqlite_catalog(folder))


def test_duckdb_reads_the_rows_of_each_version_from_a_mirror(mirrored: Mirrored) -> None:
    for one in mirrored.state.snapshots:
        mirrored.require(duckdb_reads(mirrored, one.id), one.version)
    assert len(mirrored.state.snapshots) == 7


@pytest.mark.nightly
def test_spark_reads_the_rows_of_each_version_from_a_mirror(
    mirrored: Mirrored, tmp_path: Path
) -> None:
    uri = mirrored.catalog["uri"].replace("sqlite:///", "jdbc:sqlite:")
    _require_spark_reads(mirrored, tmp_path, {"type": "jdbc", "uri": uri})


@pytest.mark.nightly
def test_spark_reads_the_rows_of_each_version_from_a_rest_catalog(tmp_path: Path) -> None:
    (tmp_path / "rest").mkdir()
    jars, java = machine.jars(ICEBERG_REST), java_command()
    with IcebergRestServer(jars, tmp_path / "rest", java=java) as server:
        server.start()
        mirrored = mirrored_life(tmp_path, server.properties())
        properties = {"type": "rest", "uri": server.address, "token": TOKEN}
        _require_spark_reads(mirrored, tmp_path, properties)


def _require_spark_reads(mirrored: Mirrored, tmp_path: Path, catalog: dict[str, str]) -> None:
    statements: list[str] = [
        f"set `{_CATALOG}` = org.apache.iceberg.spark.SparkCatalog",
        *(f"set `{_CATALOG}.{name}` = {value}" for name, value in catalog.items()),
        f"set `{_CATALOG}.warehouse` = {tmp_path}",
        *(_export(tmp_path, one.id) for one in mirrored.state.snapshots),
    ]
    jars: Sequence[Path] = (*machine.jars(DELTA), *machine.jars(ICEBERG))
    found = run_delta_spark(jars, mirrored.life.root, tmp_path, (), ("id",), statements)
    assert set(found.outcomes.values()) == {""}, found.outcomes
    for one in mirrored.state.snapshots:
        mirrored.require(pq.read_table(tmp_path / str(one.id)), one.version)


def _export(folder: Path, snapshot: int) -> str:
    to = f"insert overwrite directory '{folder / str(snapshot)}' using parquet"
    return f"{to} select * from lakesplice.s.t version as of {snapshot}"

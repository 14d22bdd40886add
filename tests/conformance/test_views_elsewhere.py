"""The SQL of `lakesplice views`, run in DuckDB, Spark and Trino: views have the source's rows."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice import Table
from lakesplice.apps.table_commands.engine_views import engine_views
from lakesplice.planning.engine_views.engines import Engine
from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.spark.jars import DELTA
from lakesplice.storage.local import LocalStore
from lakesplice.storage.system import SystemClock
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.testing.doubles import SeededEntropy
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support import machine
from tests.support.adopting import by_pyarrow, some_rows
from tests.support.altered import event
from tests.support.delta_spark import run_delta_spark
from tests.support.trino import LocalTrino, address
from tests.support.versioned_source import Interval
from tests.support.versions import HistoryWorld, intervals

TOPIC = "t.my shop.group-by"
SCHEMA, VIEW = "my_x20_shop", "group_x2d_by"
COLUMNS = {
    "id": "int32",
    "count ry": "string",
    "select": "int64",
    "_is_deleted": "boolean",
    "a\"b`c'd.e,": "string",
    "É": "int32",
    "é": "int32",
}
# Engines take the last two for one name, so they keep their stored names.
NAMES = [*list(COLUMNS)[:5], "_xc9_", "_xe9_"]


def row(at: int, country: str) -> dict[str, Any]:
    values = (at, country, at * 10, at % 2 == 0, f"'{at}\"`\\", at + 1, at + 2)
    return dict(zip(COLUMNS, values, strict=True))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of odd names in a folder of one, with rows that were deleted, changed and moved."""
    lake = tmp_path_factory.mktemp("lake") / "it's a lake"
    topic = SimulatedTopic(TOPIC)
    driver = SimulatedDriver(
        LocalStore(lake),
        topic,
        SystemClock(),
        SeededEntropy(3),
        policy=SchemaPolicy(partition_by=("count ry",)),
    )

    def take(*changes: tuple[int, dict[str, Any] | None, dict[str, Any] | None]) -> None:
        topic.append(0, [event(COLUMNS, at, to, of, TOPIC) for at, to, of in changes])
        assert driver.batch() is CommitOutcome.DONE

    take(*((at, row(at, "d e"), None) for at in range(10)))
    moved, changed = row(2, "f/r"), {**row(5, "d e"), "select": -1}
    take(
        (20, None, row(1, "d e")),
        (21, moved, row(2, "d e")),
        (22, changed, row(5, "d e")),
    )
    driver.compact()
    return lake


@pytest.fixture(scope="module")
def history(lake: Path) -> HistoryWorld:
    """A history table in the same lake, across a failover and a new snapshot: `shop.goods`."""
    world = HistoryWorld(lake)
    for statements in (
        [("put", 1), ("put", 2)],
        [("put", 1), ("put", 1)],
        [("delete", 2)],
        [("move", 1)],
        [("truncate", 0)],
        [("put", 2), ("delete", 2), ("put", 2)],
    ):
        world.servers.commit(statements)
    world.send(4)
    world.batch()
    world.server, world.next = 2, 1
    world.servers.writer = 2
    world.servers.commit([("put", 2)])
    world.servers.commit([("put", key) for key in range(3, 8)])
    world.send(10)
    world.batch()
    world.servers.commit([("delete", 2), ("delete", 3)])  # the connector misses it
    world.snapshot()
    for kind in ("return", "put"):
        world.servers.commit([(kind, key) for key in range(2, 8)])
    world.send(10)
    world.batch()
    assert world.whole
    return world


def expected_of(history: HistoryWorld) -> list[Interval]:
    return history.servers.history(history.sent, history.whole)


def truth() -> list[dict[str, Any]]:
    rows = {at: row(at, "d e") for at in range(10) if at != 1}
    rows[2] = row(2, "f/r")
    rows[5]["select"] = -1
    return [dict(zip(NAMES, found.values(), strict=True)) for found in rows.values()]


def statements(table: Path, engine: Engine) -> Sequence[str]:
    (view,) = engine_views(str(table), engine)
    return view.statements


def require_truth(found: pa.Table) -> None:
    assert found.column_names == NAMES
    assert found.sort_by("id").to_pylist() == sorted(truth(), key=lambda found: int(found["id"]))


def by_duckdb(of: Path, view: str) -> pa.Table:
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as database:
        extension = files("duckdb_extension_delta") / "extensions" / f"v{duckdb.__version__}"
        database.execute(f"load '{extension / 'delta.duckdb_extension'}'")
        for statement in statements(of, Engine.DUCKDB):
            database.execute(statement)
        return database.sql(f"select * from {view}").to_arrow_table()


def test_a_view_in_duckdb_has_the_rows_of_the_source(lake: Path) -> None:
    require_truth(by_duckdb(lake / SCHEMA / VIEW, f"{SCHEMA}.{VIEW}"))


def test_a_history_in_duckdb_has_the_intervals_of_the_source(
    lake: Path, history: HistoryWorld
) -> None:
    expected = expected_of(history)
    assert len(expected) == 18
    assert intervals(by_duckdb(lake / "shop" / "goods", "shop.goods")) == expected


@pytest.fixture(scope="module")
def adopted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An adopted table in a lake, `shop.prices`, of whose rows one was deleted."""
    path = tmp_path_factory.mktemp("adopted") / "shop" / "prices"
    path.parent.mkdir()
    by_pyarrow(path)
    table = Table.adopt(path, key=["id"])
    rows = some_rows()
    table.upsert(rows.slice(0, 0), delete=rows.select(["id"]).slice(4, 1))
    table.compact()
    return path


def require_all_but_one(found: pa.Table) -> None:
    rows = some_rows().select(["id", "name"]).to_pylist()
    assert found.select(["id", "name"]).sort_by("id").to_pylist() == [
        row for row in rows if row["id"] != 4
    ]


def test_a_view_of_an_adopted_table_has_the_rows_that_never_changed(adopted: Path) -> None:
    require_all_but_one(by_duckdb(adopted, "shop.prices"))


def test_a_view_in_spark_has_the_rows_of_the_source_and_making_it_writes_nothing(
    lake: Path, history: HistoryWorld, tmp_path: Path
) -> None:
    before = sorted(path for path in lake.rglob("*") if path.is_file())
    sql: list[str] = []
    for name in (f"{SCHEMA}.{VIEW}", "shop.goods"):
        sql += statements(lake / name.replace(".", "/"), Engine.SPARK)
        out = f"insert overwrite directory '{tmp_path / name}' using parquet"
        sql += [f"{out} select * from {name}"]
    found = run_delta_spark(machine.jars(DELTA), lake, tmp_path, (), ("id",), sql)
    assert set(found.outcomes.values()) == {""}, found.outcomes
    require_truth(pq.read_table(tmp_path / f"{SCHEMA}.{VIEW}"))
    expected = expected_of(history)
    assert intervals(pq.read_table(tmp_path / "shop.goods")) == expected
    assert sorted(path for path in lake.rglob("*") if path.is_file()) == before


@pytest.mark.nightly
def test_views_in_trino_have_the_rows_of_the_source_and_making_them_writes_nothing(
    lake: Path, history: HistoryWorld, adopted: Path, trino: LocalTrino
) -> None:
    before = sorted(path for path in lake.rglob("*") if path.is_file())
    for of in (lake, adopted.parents[1]):
        for view in engine_views(str(of), Engine.TRINO, address(of)):
            for statement in view.statements:
                trino.run(statement)
    require_truth(trino.run(f"select * from {SCHEMA}.{VIEW}"))
    expected = expected_of(history)
    assert intervals(trino.run("select * from shop.goods")) == expected
    require_all_but_one(trino.run("select * from shop.prices"))
    assert sorted(path for path in lake.rglob("*") if path.is_file()) == before

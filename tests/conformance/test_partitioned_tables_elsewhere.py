"""Every engine reads a partitioned table, and with a filter only the matching partitions."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import lakesplice
from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.planning.shape.computing.expression import parse
from lakesplice.planning.shape.shaping import Shape
from lakesplice.spark.jars import DELTA
from lakesplice.storage.local import LocalStore
from lakesplice.storage.log_keeper import DeltaLogKeeper
from lakesplice.storage.system import SystemClock
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.testing.doubles import SeededEntropy
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.conformance.conftest import SomeOf
from tests.support import machine
from tests.support.altered import event
from tests.support.delta_spark import exported, run_delta_spark
from tests.support.readers import READERS
from tests.support.trino import LocalTrino, TrinoError, in_milliseconds

COLUMNS = {
    "id": "int32",
    "country": "string",
    "text": "string",
    "flag": "boolean",
    "n": "int64",
    "clock": "string",
}
BY = ("country", "day", "flag", "n", "moment")
# What folders, addresses and the log's JSON spell in ways of their own.
TEXTS = ("de", "a/b", "x y", "ä", "100%", "a=b", "a:b?#&", 'q"\\', "a%2Fb", "..", "NULL", None)
DAYS = ("2024-02-29", "0001-01-01", "9999-12-31", None)
CLOCKS = (
    "2024-03-31 02:30:00",  # which isn't there in Europe's zones
    "1969-12-31 23:59:59.999999",
    "0001-01-01 00:00:00",
    "9999-12-31 23:59:59.999999",
    "1582-10-10 12:00:00",
    None,
)
FLAGS, NUMBERS = (True, False, None), (0, -7, 1 << 62, None)


def row(at: int) -> dict[str, Any]:
    return {
        "id": at,
        "country": TEXTS[at % len(TEXTS)],
        "text": DAYS[at % len(DAYS)],
        "flag": FLAGS[at % len(FLAGS)],
        "n": NUMBERS[at // 2 % len(NUMBERS)],
        "clock": CLOCKS[at // 3 % len(CLOCKS)],
    }


def moved(at: int) -> dict[str, Any]:
    return {**row(at), "country": row(at + 1)["country"]}


def meant() -> list[dict[str, Any]]:
    """The rows at the end, after the changes that `lived` makes."""
    rows = {at: moved(at) if at < 12 else row(at) for at in [*range(40), 41] if at != 30}
    return [
        {
            "id": at,
            "country": found["country"],
            "day": found["text"] and date.fromisoformat(found["text"]),
            "flag": found["flag"],
            "n": found["n"],
            "moment": found["clock"] and datetime.fromisoformat(found["clock"]).replace(tzinfo=UTC),
        }
        for at, found in rows.items()
    ]


@dataclass(frozen=True)
class Lived:
    """The table's folder and its number of versions."""

    path: Path
    versions: int

    def at(self, version: int) -> pa.Table:
        """The read-optimised view as we read it, deleted rows and system columns included."""
        table = lakesplice.Table.open(self.path).read(
            "read_optimised", version=version, include_deleted=True, include_system=True
        )
        return table.sort_by(ORDER)


# A row that moved is there twice.
ORDER = [("id", "ascending"), ("_is_deleted", "ascending"), ("country", "ascending")]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    lake = tmp_path_factory.mktemp("lake")
    topic = SimulatedTopic("t.s.t")
    driver = SimulatedDriver(
        LocalStore(lake),
        topic,
        # Spark with Delta opens no version beyond the retention, by the machine's clock.
        SystemClock(),
        SeededEntropy(3),
        policy=SchemaPolicy(partition_by=BY),
        shape=Shape(
            exclude=("text", "clock"),
            computed=(
                ("day", parse("cast(text, date)")),
                ("moment", parse("cast(clock, timestamp)")),
            ),
        ),
    )

    def take(*changes: Any) -> None:
        topic.append(0, changes)
        assert driver.batch() is CommitOutcome.DONE

    take(*(event(COLUMNS, at + 1, row(at)) for at in range(40)))
    moves = [moved(at) for at in range(12)]
    take(*(event(COLUMNS, 100 + at, to, row(at)) for at, to in enumerate(moves)))
    driver.compact()
    DeltaLogKeeper(lake / driver.name.path).checkpoint(driver.table.version)
    take(event(COLUMNS, 200, None, row(30)), event(COLUMNS, 201, row(41)))
    driver.compact()
    driver.merge_files(2)
    path = lake / driver.name.path
    return Lived(path, lakesplice.Table.open(path).version + 1)


def same(found: pa.Table, ours: pa.Table) -> bool:
    """Whether another engine's rows are ours, whatever widths of types it prefers."""
    assert found.schema.names == ours.schema.names
    return bool(found.cast(ours.schema).sort_by(ORDER).combine_chunks().equals(ours))


@pytest.mark.parametrize("engine", READERS)
def test_every_version_of_a_partitioned_table_is_the_same_elsewhere(
    lived: Lived, engine: str
) -> None:
    for version in range(lived.versions):
        found = READERS[engine](lived.path, version)
        assert same(found, lived.at(version).combine_chunks()), version
    live = found.cast(lived.at(version).schema).filter(~ds.field("_is_deleted"))
    assert live.select(["id", *BY]).sort_by("id").to_pylist() == meant()


def pruned(lived: Lived, to: Path, name: str, value: str | None) -> Path:
    """A copy of the table with the files of one partition only: whoever reads others fails."""
    shutil.copytree(lived.path, to)
    for path, add in _adds(lived).items():
        if add[name] != value:
            (to / path).unlink()
    return to


def _adds(lived: Lived) -> dict[str, dict[str, str | None]]:
    table = lakesplice.Table.open(lived.path).snapshot
    return {path: dict(add.partition_values) for path, add in table.log.adds.items()}


def _by_deltalake(path: Path, name: str, value: Any) -> list[int]:
    data = DeltaTable(str(path)).to_pyarrow_dataset()
    keys: list[int] = data.to_table(filter=ds.field(name) == value).column("id").to_pylist()
    return keys


def _by_polars(path: Path, name: str, value: Any) -> list[int]:
    found = pl.scan_delta(str(path)).filter(pl.col(name) == value).select("id").collect()
    return found.to_series().to_list()


def _by_duckdb(path: Path, name: str, value: Any) -> list[int]:
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as database:
        extension = files("duckdb_extension_delta") / "extensions" / f"v{duckdb.__version__}"
        database.execute(f"load '{extension / 'delta.duckdb_extension'}'")
        database.execute("set timezone = 'America/New_York'")
        query = f"select id from delta_scan('{path}') where {name} = ?"
        return [id_ for (id_,) in database.execute(query, [value]).fetchall()]


PRUNING: Mapping[str, Callable[[Path, str, Any], list[int]]] = {
    "deltalake": _by_deltalake,
    "Polars": _by_polars,
    "DuckDB": _by_duckdb,
}


# A partition column, a value as its readers know it, and as the log spells it.
ASKED: Sequence[tuple[str, Any, str]] = (
    ("country", "a/b", "a/b"),
    ("day", date(2024, 2, 29), "2024-02-29"),
    ("moment", datetime(2024, 3, 31, 2, 30, tzinfo=UTC), "2024-03-31T02:30:00.000000Z"),
)


@pytest.mark.parametrize("engine", PRUNING)
@pytest.mark.parametrize(("name", "value", "spelt"), ASKED)
def test_a_filter_opens_no_file_of_another_partition(
    lived: Lived, tmp_path: Path, engine: str, name: str, value: Any, spelt: str
) -> None:
    newest = lived.at(lived.versions - 1)
    expected = newest.filter(ds.field(name) == value).column("id").to_pylist()
    assert len(expected) > 2
    assert sorted(PRUNING[engine](lived.path, name, value)) == sorted(expected)
    if (engine, name) == ("DuckDB", "moment"):
        return  # it hands no filter on moments down, and opens all files
    left = pruned(lived, tmp_path / "left", name, spelt)
    assert sorted(PRUNING[engine](left, name, value)) == sorted(expected)


def test_spark_with_delta_reads_a_partitioned_table_and_no_more_of_it_than_it_needs(
    lived: Lived, tmp_path: Path, some_of: SomeOf
) -> None:
    jars, versions = machine.jars(DELTA), some_of(lived.versions)
    found = run_delta_spark(jars, lived.path, tmp_path, versions, ("id",), (), export=True)
    assert not found.outcomes
    for version in versions:
        theirs = pq.read_table(exported(tmp_path, version))
        assert same(theirs, lived.at(version).combine_chunks()), version
    newest = lived.at(lived.versions - 1)
    for name, value, spelt in ASKED:
        count = newest.filter(ds.field(name) == value).num_rows
        left = pruned(lived, tmp_path / f"left-{name}", name, spelt)
        scratch = tmp_path / f"scratch-{name}"
        scratch.mkdir()
        zone = "set time zone 'America/New_York'"
        query = f"select assert_true(count(*) = {count} and max(n) >= 0) from {{table}}"
        literal = f"timestamp'{spelt}'" if name == "moment" else f"'{value}'"
        asked, all_of_it = f"{query} where {name} = {literal}", query
        statements = (zone, asked, all_of_it)
        outcomes = run_delta_spark(jars, left, scratch, (), ("id",), statements).outcomes
        assert outcomes[asked] == ""
        assert outcomes[all_of_it] != ""


@pytest.mark.nightly
def test_trino_reads_a_partitioned_table_and_no_more_of_it_than_it_needs(
    lived: Lived, tmp_path: Path, trino: LocalTrino
) -> None:
    for version in range(lived.versions):
        ours = in_milliseconds(lived.at(version), BY).combine_chunks()
        assert same(trino.read(lived.path, version), ours), version
    newest = lived.at(lived.versions - 1)
    for name, value, spelt in ASKED:
        ids = newest.filter(ds.field(name) == value).column("id").to_pylist()
        left = pruned(lived, tmp_path / f"left-{name}", name, spelt)
        query = f"select id from {trino.registered(left)}"
        literal = f"from_iso8601_timestamp('{spelt}')" if name == "moment" else f"'{spelt}'"
        condition = f"{name} = {'date' * (name == 'day')} {literal}"
        found = trino.run(f"{query} where {condition}").column("id").to_pylist()
        assert sorted(found) == sorted(ids)
        with pytest.raises(TrinoError):
            trino.run(query)

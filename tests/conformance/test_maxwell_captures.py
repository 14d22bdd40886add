"""Events that Maxwell sent of a workload end in the tables that its statements say."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lakesplice.formats.events import TypeHistory
from lakesplice.formats.events.ddl import SchemaChange, history_of, read_schema_change
from lakesplice.formats.events.maxwell import ddl_types as maxwell
from lakesplice.model.choices import FormatName
from lakesplice.model.names import TableName
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Ordering
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.debezium import captured
from tests.support.workload import taken_in

Take = Callable[..., SimulatedDriver]


MAXWELL = {
    "t": {
        "id": "int unsigned", "email": "text", "phone": "text", "balance": "decimal(12,2)",
        "big_id": "bigint unsigned", "tiny": "tinyint", "flags": "bit(8)", "status": "enum",
        "tags": "set", "prefs": "text", "avatar": "blob", "vb": "blob", "born": "date",
        "at_time": "time_of_day", "dt": "datetime", "dt6": "datetime(6)", "ts": "timestamp",
        "ts6": "timestamp", "yr": "year", "f": "float", "d": "double",
    },
    "o": {"order_id": "bigint", "line_no": "int", "qty": "int"},
}  # fmt: skip


@pytest.fixture
def take_maxwell(shared: Callable[..., Path], tmp_path: Path) -> Take:
    """Take the records of one table, as Maxwell sends them with a topic for each."""
    (records,) = captured(shared("examples", "captures", "maxwell.jsonl")).values()

    def take(table: str, declared: Mapping[str, str] | None = None, **more: Any) -> SimulatedDriver:
        own = [r for r in records if json.loads(r[1] or b"{}").get("table") in (table, None)]
        declared = MAXWELL[table] if declared is None else declared
        return taken_in(tmp_path / table, f"mx.mx.{table}", [own], declared, **more)

    return take


@pytest.fixture
def maxwell_told(shared: Callable[..., Path]) -> Callable[[str], TypeHistory | None]:
    """What Maxwell told of a table's types."""
    (records,) = captured(shared("examples", "captures", "maxwell.jsonl")).values()
    read = [read_schema_change(value) for _, value in records]
    told = history_of(change for change in read if isinstance(change, SchemaChange))
    return lambda table: maxwell.types_of(told, TableName("mx", table))


@pytest.mark.parametrize("batch_records", [1, 3, 1000])
def test_tables_captured_by_maxwell_end_as_their_statements_say(
    batch_records: int, take_maxwell: Take
) -> None:
    driver = take_maxwell("o", batch_records=batch_records)
    assert driver.table.parked is None
    rows = Table(driver.table.store).read(View.REAL_TIME).to_pylist()
    assert rows == [{"order_id": 1, "line_no": 2, "qty": 9}]
    source = driver.table.source
    assert (source.format, source.ordering) == (FormatName.MAXWELL, Ordering.BINLOG)


@pytest.mark.parametrize("batch_records", [1, 3, 1000])
def test_maxwells_key_update_moves_the_row_and_a_dropped_column_parks(
    batch_records: int, take_maxwell: Take
) -> None:
    driver = take_maxwell("t", batch_records=batch_records)
    assert driver.table.parked is not None
    # It is declared, so it may as well be unknown.
    assert driver.table.parked.code is ParkCode.PARTIAL_IMAGE
    assert "lacks vb" in driver.table.parked.detail
    assert "dropped at the source" in driver.table.parked.detail
    (row,) = Table(driver.table.store).read(View.REAL_TIME).to_pylist()
    assert {name: row[name] for name in ("id", "email", "phone", "balance", "status")} == {
        "id": 100, "email": None, "phone": "+1", "balance": Decimal("0.00"), "status": "new",
    }  # fmt: skip


@pytest.mark.parametrize("batch_records", [1, 3, 1000])
def test_maxwells_rows_need_no_declarations_where_it_told_of_their_table(
    batch_records: int,
    take_maxwell: Take,
    maxwell_told: Callable[[str], TypeHistory | None],
) -> None:
    policy = SchemaPolicy(drop_column=Behaviour.EVOLVE)
    driver = take_maxwell(
        "t",
        # All that its DDL can't say.
        {"at_time": "time_of_day"},
        history=maxwell_told("t"),
        batch_records=batch_records,
        policy=policy,
    )
    assert driver.table.parked is None
    assert not driver.table.manifest.dead_letters
    read = Table(driver.table.store).read(View.REAL_TIME)
    assert "vb" not in read.column_names
    rows = {row["id"]: row for row in read.to_pylist()}
    assert {id_: (row["email"], row["phone"], row["balance"]) for id_, row in rows.items()} == {
        3: ("last", "n/a", None),
        100: (None, "+1", Decimal("0.00")),
    }
    assert rows[100]["big_id"] == Decimal(18446744073709551615)
    assert (rows[100]["flags"], rows[100]["tags"]) == (bytes([165]), "a,b")


def test_maxwell_and_debezium_agree_on_the_values_of_one_row(
    take_maxwell: Take, take: Take
) -> None:
    (maxwell,) = Table(take_maxwell("t").table.store).read(View.REAL_TIME).to_pylist()
    debezium = Table(take("dbflat", "customers").table.store).read(View.REAL_TIME).to_pylist()
    (ann,) = (row for row in debezium if row["id"] == 1)
    # The TIME is left out: Maxwell sent 03:29:08 for -12:34:56.
    same = "tiny", "flags", "avatar", "vb", "born", "dt", "dt6", "ts", "ts6", "yr", "f", "d"
    assert {name: maxwell[name] for name in same} == {name: ann[name] for name in same}

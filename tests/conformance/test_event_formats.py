"""One workload, sent by several connectors, ends in the same correct table in every format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.formats.events import DecodeContext, TypeHistory, declare
from lakesplice.formats.events.ddl import SchemaChange, history_of, read_schema_change
from lakesplice.formats.events.debezium.ddl_types import ConverterSettings, types_of
from lakesplice.formats.events.maxwell import ddl_types as maxwell
from lakesplice.model.change import Op
from lakesplice.model.choices import FormatName
from lakesplice.model.names import TableName
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Ordering, Position
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.testing.compare import compare
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.avro import captured_schemas
from tests.support.debezium import Record, captured, compact, decode_all
from tests.support.workload import DECLARED, TRUTH, taken_in, truth

FORMATS = {
    "dbsch": (FormatName.DEBEZIUM, Ordering.BINLOG),
    "dbplain": (FormatName.DEBEZIUM, Ordering.BINLOG),
    "dbflat": (FormatName.FLATTENED, Ordering.KAFKA),
    "dbavro": (FormatName.AVRO, Ordering.BINLOG),
}
Take = Callable[..., SimulatedDriver]


@pytest.fixture
def take(shared: Callable[..., Path], tmp_path: Path) -> Take:
    def take(capture: str, table: str, **more: Any) -> SimulatedDriver:
        records = captured(shared("examples", "captures", f"debezium-mariadb-{capture}.jsonl"))
        topic = f"{capture}.shop.{table}"
        partitions = [found for (name, _), found in records.items() if name == topic]
        declared = DECLARED[table] if capture in ("dbplain", "dbflat") else None
        schemas = None
        if capture == "dbavro":
            kept = shared("examples", "captures", "debezium-mariadb-dbavro.schemas.json")
            schemas = captured_schemas(kept)
        return taken_in(tmp_path / capture, topic, partitions, declared, schemas=schemas, **more)

    return take


@pytest.mark.parametrize("batch_records", [1, 7, 1000])
@pytest.mark.parametrize("table", ["orders", "audit"])
@pytest.mark.parametrize("capture", FORMATS)
def test_a_captured_table_ends_as_its_workload_says(
    capture: str, table: str, batch_records: int, take: Take
) -> None:
    driver = take(capture, table, batch_records=batch_records)
    assert driver.table.parked is None
    rows, key = TRUTH[table]
    actual = Table(driver.table.store).read(View.REAL_TIME)
    expected = pa.Table.from_pylist(rows, actual.schema)
    if capture == "dbavro" and table == "audit":
        # Another run of the workload: its moments are another clock's.
        expected, actual = expected.drop_columns("at"), actual.drop_columns("at")
    assert compare(expected, actual, key) is None
    assert (driver.table.source.format, driver.table.source.ordering) == FORMATS[capture]


@pytest.mark.parametrize("capture", ["dbsch", "dbplain"])
def test_alters_are_followed_as_far_as_events_tell_them(take: Take, capture: str) -> None:
    driver = take(capture, "customers", batch_records=1000)
    assert driver.table.parked is not None
    assert "column='small_u'" in driver.table.parked.detail
    rows, key = truth(capture, "customers")
    actual = Table(driver.table.store).read(View.REAL_TIME)
    assert compare(pa.Table.from_pylist(rows, actual.schema), actual, key) is None


@pytest.fixture
def take_told(shared: Callable[..., Path], tmp_path: Path) -> Take:
    """Take the customers without schemas, by what their connector tells of them."""
    records = captured(shared("examples", "captures", "debezium-mariadb-dbplain.jsonl"))
    read = [read_schema_change(value) for _, value in records["dbplain", 0]]
    told = history_of(change for change in read if isinstance(change, SchemaChange))
    history = types_of(told, TableName("shop", "customers"), ConverterSettings())
    topic = "dbplain.shop.customers"
    partitions = [found for (name, _), found in records.items() if name == topic]

    def take(**more: Any) -> SimulatedDriver:
        return taken_in(tmp_path, topic, partitions, history=history, **more)

    return take


def test_alters_are_followed_without_schemas_by_what_the_connector_tells_of_them(
    take_told: Take,
) -> None:
    driver = take_told(batch_records=1000)
    assert driver.table.parked is not None
    assert "column='small_u'" in driver.table.parked.detail
    rows, key = truth("dbsch", "customers")
    # The topic says that it is unsigned.
    big_ids: list[Any] = [Decimal(2**64 - 1) if row.get("big_id") else None for row in rows]
    rows = [{**row, "big_id": big} for row, big in zip(rows, big_ids, strict=True)]
    actual = Table(driver.table.store).read(View.REAL_TIME)
    assert compare(pa.Table.from_pylist(rows, actual.schema), actual, key) is None


@pytest.mark.parametrize("batch_records", [1, 7, 1000])
def test_every_alter_of_the_workload_can_be_followed(take_told: Take, batch_records: int) -> None:
    policy = SchemaPolicy(rename_column=Behaviour.EVOLVE, drop_column=Behaviour.EVOLVE)
    driver = take_told(batch_records=batch_records, policy=policy)
    assert driver.table.parked is None
    assert not driver.table.manifest.dead_letters
    table = Table(driver.table.store).read(View.REAL_TIME)
    assert {"small_u", "note"}.isdisjoint(table.column_names)
    rows = {row["id"]: row for row in table.to_pylist()}
    assert {id_: row["small_unsigned"] for id_, row in rows.items() if id_ < 1000} == {
        1: 65535,
        2: 4294967295,
    }
    nulls = rows[2]
    assert (nulls["balance"], nulls["status"]) == (Decimal("12345678901.2345"), "closed")
    assert (nulls["phone"], nulls["score"]) == ("n/a", 0)
    assert rows[1]["balance"] == Decimal("1234567883.1200")
    assert (rows[1000]["phone"], rows[1000]["score"]) == ("n/a", 7)


def test_flattened_rows_hold_what_whole_events_hold_until_a_column_is_renamed(take: Take) -> None:
    driver = take("dbflat", "customers")
    assert driver.table.parked is not None
    assert driver.table.parked.code is ParkCode.SCHEMA_CHANGE
    assert "column='small_u'" in driver.table.parked.detail
    rows, key = TRUTH["customers"]
    actual = Table(driver.table.store).read(View.REAL_TIME)
    assert compare(pa.Table.from_pylist(rows, actual.schema), actual, key) is None


@pytest.mark.parametrize("table", ["orders", "audit", "customers", "nopk"])
def test_avro_and_json_with_schemas_make_the_same_columns_and_park_for_the_same_reason(
    table: str, take: Take
) -> None:
    # All at once: what came before the first change of a schema differs by the partitions.
    drivers = [take(capture, table, batch_records=1000) for capture in ("dbavro", "dbsch")]
    avro, json_ = (driver.table.parked and driver.table.parked.code for driver in drivers)
    assert avro == json_
    if avro is None:
        avro_columns, json_columns = (driver.table.manifest.schema.columns for driver in drivers)
        assert avro_columns == json_columns


def test_customers_in_avro_end_as_the_workload_says_but_for_their_columns_after_the_first_alter(
    take: Take,
) -> None:
    driver = take("dbavro", "customers", batch_records=1)
    assert driver.table.parked is not None
    assert driver.table.parked.code is ParkCode.SCHEMA_CHANGE
    rows = Table(driver.table.store).read(View.REAL_TIME).to_pylist()
    (ann,) = (row for row in rows if row["id"] == 1)
    (expected,) = (row for row in TRUTH["customers"][0] if row["id"] == 1)
    same = set(ann) & set(expected) - {"phone", "balance", "score"}
    assert len(same) > 20
    assert {name: ann[name] for name in same} == {name: expected[name] for name in same}


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


CANAL_TYPES = {
    "order_id": "bigint(20)", "line_no": "int(11)", "sku": "varchar(40)", "qty": "int(11)",
    "price": "decimal(10,4)",
}  # fmt: skip


def canal_message(op: Op, before: Any, after: Any, commit: int | None) -> Record:
    """A change as Canal sends it by its documents, or with `commit` as TiCDC does."""
    kind = {Op.DELETE: "DELETE", Op.UPDATE: "UPDATE"}.get(op, "INSERT")
    image = before if op is Op.DELETE else after
    old = (
        {name: before[name] for name in before if before[name] != after[name]}
        if (op is Op.UPDATE)
        else None
    )
    message = {
        "data": [_texts(image)], "database": "shop", "es": 1795247776000, "isDdl": False,
        "mysqlType": CANAL_TYPES, "old": old and [_texts(old)], "pkNames": ["order_id", "line_no"],
        "table": "orders", "ts": 1795247776000, "type": kind,
    }  # fmt: skip
    extension = {} if commit is None else {"_tidb": {"commitTs": commit}}
    return None, compact({**message, **extension})


def _texts(row: Mapping[str, object]) -> dict[str, str | None]:
    return {name: None if value is None else str(value) for name, value in row.items()}


@pytest.fixture
def changes(shared: Callable[..., Path]) -> list[tuple[Position, Op, Any, Any]]:
    """The captured changes of the orders, as Debezium's schemas have them."""
    path = shared("examples", "captures", "debezium-mariadb-dbsch.jsonl")
    found = []
    for (topic, _), records in captured(path).items():
        if topic == "dbsch.shop.orders":
            decoded = decode_all(records, DecodeContext(TableName("shop", "orders")))
            for block in decoded.blocks:
                before, after = block.before.to_pylist(), block.after.to_pylist()
                places = zip(
                    block.position_file.tolist(), block.position_offset.tolist(), strict=True
                )
                found += [
                    (Position(*place), Op(block.op[at]), before[at], after[at])
                    for at, place in enumerate(places)
                ]
    return sorted(found, key=lambda change: change[0])


def test_the_same_changes_as_canals_messages_end_the_same(
    changes: list[tuple[Position, Op, Any, Any]], tmp_path: Path
) -> None:
    records = [canal_message(op, before, after, None) for _, op, before, after in changes]
    driver = taken_in(tmp_path, "canal.shop.orders", [records], batch_records=3)
    assert_orders(driver, Ordering.KAFKA)


def test_the_same_changes_as_ticdcs_messages_end_the_same_in_any_order_and_repeated(
    changes: list[tuple[Position, Op, Any, Any]], tmp_path: Path
) -> None:
    stamps = {place.parts[2]: 429918007904436226 + at for at, (place, *_) in enumerate(changes)}
    records = [
        canal_message(op, before, after, stamps[place.parts[2]])
        for place, op, before, after in changes
    ]
    parts = [records[::2] + records[::2], records[1::2], records[3:9]]
    driver = taken_in(tmp_path, "ticdc.shop.orders", parts, batch_records=3)
    assert_orders(driver, Ordering.TIDB)


def assert_orders(driver: SimulatedDriver, ordering: Ordering) -> None:
    assert driver.table.parked is None
    rows, key = TRUTH["orders"]
    actual = Table(driver.table.store).read(View.REAL_TIME)
    assert compare(pa.Table.from_pylist(rows, actual.schema), actual, key) is None
    source = driver.table.source
    assert (source.format, source.ordering) == (FormatName.CANAL, ordering)


def test_without_positions_a_topic_of_several_partitions_parks_its_table(
    shared: Callable[..., Path], tmp_path: Path
) -> None:
    records = captured(shared("examples", "captures", "debezium-mariadb-dbflat.jsonl"))
    events = records["dbflat.shop.orders", 0]
    driver = taken_in(tmp_path, "dbflat.shop.orders", [events, []], DECLARED["orders"])
    assert driver.table.parked is not None
    assert driver.table.parked.code is ParkCode.ORDER_UNKNOWN
    assert Table(driver.table.store).read().num_rows == 0


@pytest.mark.parametrize("flattened_first", [True, False])
@pytest.mark.parametrize("batch_records", [1, 1000])
def test_two_formats_in_one_topic_park_its_table(
    flattened_first: bool, batch_records: int, shared: Callable[..., Path], tmp_path: Path
) -> None:
    parts = []
    for capture in ("dbflat", "dbplain"):
        path = shared("examples", "captures", f"debezium-mariadb-{capture}.jsonl")
        parts.append(captured(path)[f"{capture}.shop.orders", 0])
    parts = parts if flattened_first else parts[::-1]
    driver = taken_in(
        tmp_path, "any.shop.orders", [parts[0] + parts[1]], DECLARED["orders"],
        batch_records=batch_records,
    )  # fmt: skip
    assert driver.table.parked is not None
    assert driver.table.parked.code is ParkCode.FORMAT_CHANGED
    assert driver.table.next_offsets([0]) == {0: len(parts[0])}


def test_two_formats_in_two_partitions_park_their_table_before_anything_is_committed(
    shared: Callable[..., Path], tmp_path: Path
) -> None:
    parts = []
    for capture in ("dbflat", "dbplain"):
        path = shared("examples", "captures", f"debezium-mariadb-{capture}.jsonl")
        records = captured(path)[f"{capture}.shop.orders", 0]
        added = b'"__source_row":0,"__source_file"'
        parts.append(
            [(key, value and value.replace(b'"__source_file"', added)) for key, value in records]
        )
    driver = taken_in(tmp_path, "any.shop.orders", parts, DECLARED["orders"])
    assert driver.table.parked is not None
    assert driver.table.parked.code is ParkCode.FORMAT_CHANGED
    assert driver.table.next_offsets([0, 1]) == {0: 0, 1: 0}


@pytest.mark.parametrize("capture", ["dbsch", "dbplain"])
def test_captures_show_that_their_converter_puts_defaults_for_nulls(
    capture: str, shared: Callable[..., Path]
) -> None:
    """They were made with the converter's default."""
    records = captured(shared("examples", "captures", f"debezium-mariadb-{capture}.jsonl"))
    declared = declare(DECLARED["orders"]) if capture == "dbplain" else None
    context = DecodeContext(TableName("shop", "orders"), declared)
    found = {
        told.partition(": ")[0]
        for (topic, _), partition in records.items()
        if topic == f"{capture}.shop.orders"
        for told in decode_all(partition, context).suspect_settings
    }
    assert found == {"value.converter.replace.null.with.default"}

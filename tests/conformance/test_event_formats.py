"""One workload, sent by several connectors, ends in the same correct table in every format."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.formats.events import DecodeContext, declare
from lakesplice.formats.events.ddl import SchemaChange, history_of, read_schema_change
from lakesplice.formats.events.debezium.ddl_types import ConverterSettings, types_of
from lakesplice.model.choices import FormatName
from lakesplice.model.names import TableName
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Ordering
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.testing.compare import compare
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.debezium import captured, decode_all
from tests.support.workload import DECLARED, TRUTH, taken_in, truth

FORMATS = {
    "dbsch": (FormatName.DEBEZIUM, Ordering.BINLOG),
    "dbplain": (FormatName.DEBEZIUM, Ordering.BINLOG),
    "dbflat": (FormatName.FLATTENED, Ordering.KAFKA),
    "dbavro": (FormatName.AVRO, Ordering.BINLOG),
}
Take = Callable[..., SimulatedDriver]


def both_views(driver: SimulatedDriver) -> tuple[pa.Table, pa.Table]:
    """The real-time view as the driver left it, and the other one once all is spliced in."""
    store = driver.table.store
    as_left = Table(store).read(View.REAL_TIME)
    driver.compact()
    assert not driver.table.manifest.deltas
    return as_left, Table(store).read(View.READ_OPTIMISED)


@pytest.mark.parametrize("batch_records", [1, 7, 1000])
@pytest.mark.parametrize("table", ["orders", "audit"])
@pytest.mark.parametrize("capture", FORMATS)
def test_a_captured_table_ends_as_its_workload_says(
    capture: str, table: str, batch_records: int, take: Take
) -> None:
    # In small batches later changes meet their rows in base files.
    driver = take(capture, table, batch_records=batch_records, compacting=batch_records == 7)
    assert driver.table.parked is None
    rows, key = TRUTH[table]
    # Another run of the workload: its moments are another clock's.
    left_out = ["at"] if capture == "dbavro" and table == "audit" else []
    views = both_views(driver)
    for actual in views:
        expected = pa.Table.from_pylist(rows, actual.schema).drop_columns(left_out)
        assert compare(expected, actual.drop_columns(left_out), key) is None
    assert (driver.table.source.format, driver.table.source.ordering) == FORMATS[capture]


@pytest.mark.parametrize("capture", ["dbsch", "dbplain"])
def test_alters_are_followed_as_far_as_events_tell_them(take: Take, capture: str) -> None:
    driver = take(capture, "customers", batch_records=1000)
    assert driver.table.parked is not None
    assert driver.table.parked.code is ParkCode.SCHEMA_CHANGE
    assert "column='small_u'" in driver.table.parked.detail
    # A decimal's new scale is followed; without schemas it can't be seen.
    balance = Table(driver.table.store).schema.field("balance").type
    assert balance.scale == (4 if capture == "dbsch" else 2)
    rows, key = truth(capture, "customers")
    for actual in both_views(driver):
        assert compare(pa.Table.from_pylist(rows, actual.schema), actual, key) is None


def test_a_captured_table_without_a_key_and_one_without_types_are_parked_empty(take: Take) -> None:
    keyless, unknown = take("dbplain", "nopk"), take("dbplain", "debezium_signal")
    for driver, code in ((keyless, ParkCode.NO_KEY), (unknown, ParkCode.TYPES_UNDECLARED)):
        assert driver.table.parked is not None
        assert driver.table.parked.code is code
    assert Table(keyless.table.store).read().num_rows == 0


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

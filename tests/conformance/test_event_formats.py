"""One workload, as several connectors sent it, ends as the workload says, whatever the format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lakesplice.model.formats import FormatName
from lakesplice.model.manifest import ParkCode
from lakesplice.model.position import Ordering
from lakesplice.table.facade import Table
from lakesplice.table.read import View
from lakesplice.testing.compare import compare
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.debezium import captured
from tests.support.workload import DECLARED, TRUTH, taken_in

FORMATS = {
    "dbsch": (FormatName.DEBEZIUM, Ordering.BINLOG),
    "dbplain": (FormatName.DEBEZIUM, Ordering.BINLOG),
    "dbflat": (FormatName.FLATTENED, Ordering.KAFKA),
}
Take = Callable[..., SimulatedDriver]


@pytest.fixture
def take(shared: Callable[..., Path], tmp_path: Path) -> Take:
    def take(capture: str, table: str, **more: int) -> SimulatedDriver:
        records = captured(shared("examples", "captures", f"debezium-mariadb-{capture}.jsonl"))
        topic = f"{capture}.shop.{table}"
        partitions = [found for (name, _), found in records.items() if name == topic]
        declared = None if capture == "dbsch" else DECLARED[table]
        return taken_in(tmp_path / capture, topic, partitions, declared, **more)

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
    assert compare(pa.Table.from_pylist(rows, actual.schema), actual, key) is None
    assert (driver.table.source.format, driver.table.source.ordering) == FORMATS[capture]


def test_flattened_rows_hold_what_whole_events_hold_until_a_column_is_renamed(take: Take) -> None:
    driver = take("dbflat", "customers")
    assert driver.table.parked is not None
    assert driver.table.parked.code is ParkCode.SCHEMA_CHANGE
    assert "column='small_u'" in driver.table.parked.detail
    rows, key = TRUTH["customers"]
    actual = Table(driver.table.store).read(View.REAL_TIME)
    assert compare(pa.Table.from_pylist(rows, actual.schema), actual, key) is None


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

"""The workload's changes as messages of Canal and of TiCDC end in the same table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.formats.events import DecodeContext
from lakesplice.model.change import Op
from lakesplice.model.choices import FormatName
from lakesplice.model.names import TableName
from lakesplice.model.position import Ordering, Position
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.testing.compare import compare
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.debezium import Record, captured, compact, decode_all
from tests.support.workload import TRUTH, taken_in

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

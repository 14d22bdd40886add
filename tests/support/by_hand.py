"""A table fed by hand, and a dict of the rows that it must hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from lakesplice.table.by_hand.new_table import Tools, create_table
from lakesplice.table.files.page_rewriter import best_rewriter
from lakesplice.table.protocol.ports import Store
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.index_check import check
from lakesplice.testing.doubles import FixedClock, SeededEntropy

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("n", pa.int32()),
        pa.field("price", pa.decimal128(9, 2)),
    ]
)
Row = dict[str, Any]
WHOLE = COLUMNS.names


def row(key: int, name: str | None = "a", n: int | None = 1, price: str = "1.50") -> Row:
    return {"id": key, "name": name, "n": n, "price": Decimal(price)}


class NoKeeper:
    """`LogKeeper` that writes nothing."""

    def checkpoint(self, version: int) -> None:
        """See `LogKeeper.checkpoint`."""

    def checkpoint_without_removed(self, version: int) -> None:
        """See `LogKeeper.checkpoint_without_removed`."""


def tools(seed: int = 1) -> Tools:
    return Tools(FixedClock(), SeededEntropy(seed), best_rewriter(), NoKeeper())


def created(
    store: Store,
    rows: Iterable[Row] = (),
    seed: int = 1,
    *,
    change_feed: bool = False,
    cluster_by: Sequence[str] = (),
) -> HandFedTable:
    rows = given(rows, COLUMNS.names)
    create_table(store, rows, ["id"], tools(seed), change_feed=change_feed, cluster_by=cluster_by)
    return opened(store, seed + 1)


def opened(store: Store, seed: int = 7) -> HandFedTable:
    return HandFedTable(store, tools(seed))


def clock_of(table: HandFedTable) -> FixedClock:
    clock = table._writer.tools.clock
    assert isinstance(clock, FixedClock)
    return clock


def goods_store(folder: Path) -> LocalStore:
    return LocalStore(folder / "lake").within("shop/goods")


def three_goods(store: Store) -> HandFedTable:
    return created(store, [row(1), row(2, "b"), row(3, "c", 7)])


def given(rows: Iterable[Row], columns: Iterable[str]) -> pa.Table:
    """The rows with these columns alone."""
    chosen = pa.schema([COLUMNS.field(name) for name in columns])
    picked = [{name: row.get(name) for name in chosen.names} for row in rows]
    return pa.Table.from_pylist(picked, schema=chosen)


def rows_of(table: Table, view: str = View.REAL_TIME) -> dict[int, Row]:
    rows = table.read(view).to_pylist()
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


def require_rows(table: Table, truth: Mapping[int, Row]) -> None:
    """The real-time view is the truth, the other one, too, if nothing waits; the index is sound."""
    assert rows_of(table) == dict(truth)
    if not table.snapshot.manifest.deltas:
        assert rows_of(table, View.READ_OPTIMISED) == dict(truth)


def require_sound_index(store: Store, table: Table) -> None:
    report = check(store, table.snapshot)
    assert report.sound, report
    assert report.duplicates == 0

"""`lakesplice park`: tables take no changes until they are unparked."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.model.schema import TableSchema
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.snapshot import open_snapshot
from tests.support.by_hand import created
from tests.support.command_line import CommandLine
from tests.support.made import MadeTable

WHY = ("--why", "the source is being repaired")


@pytest.fixture
def tables(tmp_path: Path) -> list[MadeTable]:
    names = ("orders", "items")
    return [MadeTable(tmp_path / "shop" / name, TableSchema()) for name in names]


def test_tables_are_parked_and_unparked_by_a_pattern(
    lakesplice: CommandLine, tables: list[MadeTable], tmp_path: Path
) -> None:
    done = lakesplice("park", tmp_path / "shop" / "*", *WHY)
    assert (done.code, done.out) == (
        0,
        "shop.items: parked in version 1\nshop.orders: parked in version 1\n",
    )
    for table in tables:
        parked = open_snapshot(table.store).manifest.parked
        assert parked is not None
        assert parked.code is ParkCode.BY_HAND
        assert parked.detail.startswith("the source is being repaired; `lakesplice unpark`")
    newest = lakesplice.rows("history", tables[0].store.root)[0]
    assert newest["why"] == "the source is being repaired"
    shown = {row["table"]: row for row in lakesplice.rows("tables", tmp_path)}
    assert (shown["shop.orders"]["state"], shown["shop.orders"]["code"]) == ("parked", "by-hand")
    again = lakesplice("park", tables[0].store.root, *WHY)
    assert (again.code, "parked already" in again.err) == (1, True)
    assert lakesplice("unpark", f"{tmp_path}/shop/[io]*").code == 0
    assert [open_snapshot(table.store).manifest.parked for table in tables] == [None, None]


def test_only_what_reads_a_topic_can_be_parked(
    lakesplice: CommandLine, tables: list[MadeTable], tmp_path: Path
) -> None:
    created(LocalStore(tmp_path / "shop" / "by_hand"), [{"id": 1, "name": "a", "n": 0}])
    ended = lakesplice("park", tmp_path / "shop" / "by_hand", *WHY)
    assert (ended.code, "fed by hand" in ended.err) == (2, True)
    ended = lakesplice("park", tables[0].store.root, "--topic", "shop.others", *WHY)
    assert (ended.code, "no such topic" in ended.err) == (2, True)
    (source,) = open_snapshot(tables[0].store).manifest.sources.values()
    assert source.partitions.get(0, PartitionState(Offset(0))).next_offset == 0

"""Commands about tables: executed exactly once, here or by the running driver."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lakesplice.apps.table_commands.dispatch import ask_driver, give_command
from lakesplice.apps.table_commands.work import UNPARK, VERIFIED
from lakesplice.config import Settings
from lakesplice.errors import ParkedTableError, RetryableError, TableNotFoundError, UsageError
from lakesplice.model.driver_status import LEASE_SECONDS
from lakesplice.model.names import TableName
from lakesplice.storage.local import LocalStore
from lakesplice.table.driver.generation import newest_generation
from lakesplice.table.driver.requests import answer, pending
from lakesplice.table.protocol.intents import Redirect
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.reading.table import Table
from tests.support.commanding import ONWARD, REASON, Time, answered, driver
from tests.support.made import MadeTable


def test_a_command_commits_under_its_own_generation_and_releases_it(
    lake: LocalStore, table: MadeTable
) -> None:
    time = Time()
    for generation in (1, 2, 3):
        give_command(table.store.root, UNPARK, ONWARD, patience=time.patience())
        manifest = open_snapshot(table.store).manifest
        assert (manifest.parked, manifest.generation) == (None, generation)
        table.snapshot = open_snapshot(table.store)
        table._commit(Redirect(generation, table.snapshot.version, parked=REASON))
    assert time.seconds == 0


def test_a_running_driver_does_it_and_history_says_who_asked(
    lake: LocalStore, table: MadeTable, settings: Settings
) -> None:
    alive = driver(lake)

    def beat() -> None:
        alive.beat()
        for asked in pending(lake):
            answer(lake, asked, answered(lake, alive, asked, settings))

    time = Time(meanwhile=beat)
    done = give_command(table.store.root, UNPARK, ONWARD, patience=time.patience())
    assert done.text.endswith("(by the running driver)")
    assert newest_generation(lake) == alive.number
    info = next(Table(table.store).history()).info
    assert "@" in info.parameters["by"]
    assert len(info.parameters["request"]) == 16


def test_a_command_gives_up_if_a_living_driver_never_answers(
    lake: LocalStore, table: MadeTable
) -> None:
    alive = driver(lake)
    time = Time(meanwhile=alive.beat)
    with pytest.raises(RetryableError, match="didn't answer in time"):
        give_command(table.store.root, UNPARK, ONWARD, patience=time.patience())
    assert newest_generation(lake) == alive.number
    assert open_snapshot(table.store).manifest.parked == REASON


def test_a_command_takes_over_from_a_driver_that_died(lake: LocalStore, table: MadeTable) -> None:
    dead = driver(lake)
    time = Time()
    give_command(table.store.root, UNPARK, ONWARD, patience=time.patience())
    assert open_snapshot(table.store).manifest.generation == dead.number + 1
    assert LEASE_SECONDS <= time.seconds < 3 * LEASE_SECONDS


def test_a_refused_request_changes_nothing_and_blocks_no_other(
    lake: LocalStore, table: MadeTable
) -> None:
    time, wrong = Time(), {**ONWARD, "offsets": [[9, 7]]}
    with pytest.raises(UsageError, match="no such partition"):
        give_command(table.store.root, UNPARK, wrong, patience=time.patience())
    give_command(table.store.root, UNPARK, ONWARD, patience=time.patience())
    with pytest.raises(ParkedTableError):
        give_command(table.store.root, UNPARK, ONWARD, patience=time.patience())
    assert time.seconds == 0


FOUND: dict[str, Any] = {
    "outcome": "different", "source": "shop.orders", "binlog": "binlog.000001:4", "method": "sha1",
    "share": 1.0, "rows": 10, "different": 1, "unsettled": 2,
}  # fmt: skip


def test_a_verification_adds_its_result_to_the_history_and_changes_nothing_else(
    lake: LocalStore, table: MadeTable, settings: Settings
) -> None:
    name = TableName("shop", "orders")
    assert ask_driver(lake, name, VERIFIED, FOUND, Time().patience()) is None
    before, alive = open_snapshot(table.store), driver(lake)

    def beat() -> None:
        alive.beat()
        for asked in pending(lake):
            answer(lake, asked, answered(lake, alive, asked, settings))

    time = Time(meanwhile=beat)
    done = ask_driver(lake, name, VERIFIED, FOUND, time.patience())
    assert done is not None
    after = open_snapshot(table.store)
    assert replace(after.manifest, generation=before.manifest.generation) == before.manifest
    assert after.version == before.version + 1
    info = next(Table(table.store).history()).info
    assert info.operation == "VERIFY"
    assert info.parameters["outcome"] == "different"
    assert info.parameters["binlog"] == "binlog.000001:4"
    assert (info.metrics["rows"], info.metrics["different"], info.metrics["unsettled"]) == (
        10,
        1,
        2,
    )
    assert "not_compared" not in info.parameters
    ask_driver(lake, name, VERIFIED, FOUND | {"not_compared": "email"}, time.patience())
    assert next(Table(table.store).history()).info.parameters["not_compared"] == "email"
    ask_driver(lake, name, VERIFIED, FOUND | {"shadow": "7"}, time.patience())
    of_shadow = next(Table(table.store).history()).info
    assert (of_shadow.operation, of_shadow.parameters["shadow"]) == ("VERIFY SHADOW", "7")


def test_a_path_that_is_no_table_takes_no_generation(lake: LocalStore, table: MadeTable) -> None:
    with pytest.raises(TableNotFoundError):
        give_command(lake.root, UNPARK, ONWARD)
    assert newest_generation(lake) == 0

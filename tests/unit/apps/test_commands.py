"""Commands about tables: executed exactly once, here or by the running driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakesplice.apps.table_commands.dispatch import (
    RequestWait,
    answer_of,
    command_table,
    give_command,
    tell_driver,
)
from lakesplice.apps.table_commands.work import (
    COMPACT,
    DROP,
    MERGE,
    PURGE,
    REBUILD,
    REPLAY,
    RESET,
    RESTORE,
    UNPARK,
    VACUUM,
    VERIFIED,
)
from lakesplice.config import Settings
from lakesplice.errors import (
    FencedError,
    ParkedTableError,
    RetryableError,
    TableNotFoundError,
    UsageError,
)
from lakesplice.model.change import Op
from lakesplice.model.moments import EpochMs
from lakesplice.model.names import TableName
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.schema import TableSchema
from lakesplice.storage.local import LocalStore
from lakesplice.table.driver.generation import (
    LEASE_SECONDS,
    Generation,
    claim_generation,
    newest_generation,
)
from lakesplice.table.driver.requests import CommandAnswer, CommandRequest, answer, pending
from lakesplice.table.protocol.commit import Committed, Conflict
from lakesplice.table.protocol.intents import Intent, Redirect
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.reading.table import Table
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from tests.support.every_type import EVERY_TYPE, HIGH, LOW, row
from tests.support.made import GENERATION, MadeTable
from tests.support.service_settings import settings_of

REASON = ParkReason(ParkCode.NO_KEY, "no key")
ONWARD: dict[str, Any] = {"offsets": [], "stated": None}
AGAIN: dict[str, Any] = {
    "offsets": [],
    "to": None,
    "topic": "",
    "anew": False,
    "skip": False,
    "dry_run": False,
    "why": "a probe",
}
LETTERS: dict[str, Any] = {"places": [], "reasons": [], "why": "a probe"}


class Time:
    """A clock that moves only when somebody waits, and then lets others act."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.seconds = 0.0
        self._meanwhile = meanwhile

    def now_ms(self) -> EpochMs:
        return EpochMs(int(self.seconds * 1000))

    def monotonic(self) -> float:
        return self.seconds

    def wait(self, seconds: float) -> None:
        self.seconds += seconds
        self._meanwhile()

    def patience(self) -> RequestWait:
        return RequestWait(60, self, self.wait)


@pytest.fixture
def lake(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "lake")


@pytest.fixture
def table(lake: LocalStore) -> MadeTable:
    made = MadeTable(lake.root / "shop" / "orders", TableSchema())
    park(made)
    return made


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_of(tmp_path / "lake", topic_pattern="a.*")


def park(table: MadeTable) -> None:
    table._commit(Redirect(GENERATION, table.snapshot.version, parked=REASON))


def driver(lake: LocalStore) -> Generation:
    generation = claim_generation(lake, Time(), lambda _: True)
    assert generation is not None
    generation.beat()
    return generation


def request(command: str, arguments: Mapping[str, Any]) -> CommandRequest:
    expires_ms = FixedClock().now_ms() + 60_000
    return CommandRequest(
        "00ff", command, "shop/orders", "ann@host", EpochMs(expires_ms), arguments
    )


def answered(
    lake: LocalStore, alive: Generation, asked: CommandRequest, settings: Settings
) -> CommandAnswer:
    """What a driver of the lake answers."""
    place = command_table(lake, asked, alive, FixedClock(), SeededEntropy(1))
    return answer_of(asked, place, settings)


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
    assert tell_driver(lake, name, VERIFIED, FOUND, Time().patience()) is None
    before, alive = open_snapshot(table.store), driver(lake)

    def beat() -> None:
        alive.beat()
        for asked in pending(lake):
            answer(lake, asked, answered(lake, alive, asked, settings))

    time = Time(meanwhile=beat)
    done = tell_driver(lake, name, VERIFIED, FOUND, time.patience())
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
    tell_driver(lake, name, VERIFIED, FOUND | {"not_compared": "email"}, time.patience())
    assert next(Table(table.store).history()).info.parameters["not_compared"] == "email"
    tell_driver(lake, name, VERIFIED, FOUND | {"shadow": "7"}, time.patience())
    of_shadow = next(Table(table.store).history()).info
    assert (of_shadow.operation, of_shadow.parameters["shadow"]) == ("VERIFY SHADOW", "7")


def test_a_path_that_is_no_table_takes_no_generation(lake: LocalStore, table: MadeTable) -> None:
    with pytest.raises(TableNotFoundError):
        give_command(lake.root, UNPARK, ONWARD)
    assert newest_generation(lake) == 0


def test_a_request_that_a_driver_executed_before_it_died_is_not_repeated(
    lake: LocalStore, table: MadeTable, settings: Settings
) -> None:
    alive, asked = driver(lake), request(UNPARK, ONWARD)
    assert answered(lake, alive, asked, settings).done
    table.snapshot = open_snapshot(table.store)
    table._commit(Redirect(alive.number, table.snapshot.version, parked=REASON))
    again = answered(lake, alive, asked, settings)
    assert (again.done, again.text) == (
        True,
        "the request was executed before; see the table's history",
    )
    assert open_snapshot(table.store).manifest.parked == REASON
    later = answered(lake, alive, replace(asked, id="0100"), settings)
    assert later.text.startswith("unparked")


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        (UNPARK, {}),
        (UNPARK, {**ONWARD, "offsets": [1]}),
        (UNPARK, {**ONWARD, "stated": "maybe"}),
        (RESTORE, {"version": "the last"}),
        (RESET, {"anew": True}),
        (RESET, {**AGAIN, "to": "the last"}),
        (VACUUM, {}),
        (PURGE, {"older_than_seconds": None}),
        (REPLAY, {}),
        (REPLAY, {**LETTERS, "places": [1]}),
        (DROP, {**LETTERS, "places": None}),
        ("dlq mend", LETTERS),
    ],
)
def test_an_unknown_request_is_refused_and_affects_no_other(
    lake: LocalStore,
    table: MadeTable,
    settings: Settings,
    command: str,
    arguments: dict[str, Any],
) -> None:
    given = answered(lake, driver(lake), request(command, arguments), settings)
    assert not given.done
    assert "request" in given.text
    assert open_snapshot(table.store).version == table.snapshot.version


@pytest.mark.parametrize(
    ("command", "arguments", "says"),
    [
        (REBUILD, {}, "rebuilt with 0 entries"),
        (RESTORE, {"version": 0}, "version 0 restored"),
        (VACUUM, {"retention_seconds": 3600.0}, "0 files"),
        (COMPACT, {}, "no changes wait"),
        (MERGE, {}, "0 files merged"),
        (PURGE, {"older_than_seconds": 0.0}, "0 deleted rows"),
    ],
)
def test_a_driver_does_every_command(
    lake: LocalStore,
    table: MadeTable,
    settings: Settings,
    command: str,
    arguments: dict[str, Any],
    says: str,
) -> None:
    given = answered(lake, driver(lake), request(command, arguments), settings)
    assert given.done, given.text
    assert says in given.text


def test_a_request_is_planned_again_after_another_commit(
    lake: LocalStore, table: MadeTable, settings: Settings
) -> None:
    asked = request(UNPARK, ONWARD)
    place = command_table(lake, asked, driver(lake), FixedClock(), SeededEntropy(1))
    park(table)
    assert answer_of(asked, place, settings).done
    assert open_snapshot(table.store).manifest.parked is None


def test_a_driver_that_was_deposed_leaves_the_request_to_the_next_one(
    lake: LocalStore, table: MadeTable, settings: Settings
) -> None:
    deposed, asked = driver(lake), request(UNPARK, ONWARD)
    deposed.release()
    driver(lake)
    with pytest.raises(FencedError):
        answered(lake, deposed, asked, settings)


def test_a_request_that_loses_every_race_gives_up(
    lake: LocalStore, table: MadeTable, settings: Settings
) -> None:
    asked = request(UNPARK, ONWARD)
    place = command_table(lake, asked, driver(lake), FixedClock(), SeededEntropy(1))
    commit_as = place.commit_as

    def outrun(intent: Intent, told: Mapping[str, str]) -> Committed | Conflict:
        park(table)
        return commit_as(intent, told)

    place.commit_as = outrun
    given = answer_of(asked, place, settings)
    assert not given.done
    assert "committed first every time" in given.text


def test_asked_to_compact_a_driver_leaves_no_change_waiting(
    lake: LocalStore, settings: Settings
) -> None:
    table = MadeTable(lake.root / "shop" / "things", EVERY_TYPE)
    table.insert([row(1, LOW), row(2, LOW)])
    table.change([(Op.UPDATE, row(1, HIGH))], [(Op.DELETE, row(2, LOW))])
    asked = replace(request(COMPACT, {}), table="shop/things")
    given = answered(lake, driver(lake), asked, settings)
    assert given.text == "2 changes merged into 1 base files in version 3"
    assert not open_snapshot(lake.within("shop/things")).manifest.deltas

"""Requests that a driver executes: every command once, planned again after other commits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from lakesplice.apps.table_commands.dispatch import answer_of, command_table
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
)
from lakesplice.config import Settings
from lakesplice.errors import FencedError
from lakesplice.model.change import Op
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.commit import Committed, Conflict
from lakesplice.table.protocol.intents import Intent, Redirect
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from tests.support.commanding import ONWARD, REASON, answered, driver, park, request
from tests.support.every_type import EVERY_TYPE, HIGH, LOW, row
from tests.support.made import MadeTable

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
    assert answer_of(asked, place).done
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
    given = answer_of(asked, place)
    assert not given.done
    assert "committed first every time" in given.text


@pytest.mark.slow
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

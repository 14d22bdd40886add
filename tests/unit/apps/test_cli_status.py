"""`lakesplice status`: a fleet in a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lakesplice.model.driver_status import (
    DriverStatus,
    SuspectSetting,
    TopicCondition,
    TopicState,
    TopicStatus,
)
from lakesplice.model.moments import EpochMs
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.storage.local import LocalStore
from lakesplice.table.driver.status import StatusPublisher
from tests.support.command_line import CommandLine
from tests.support.indexed import IndexedTable
from tests.support.machine import ROOT
from tests.support.made import GENERATION

NOW_MS = round(time.time() * 1000)
SECONDS_MAX = 60.0
SCHEMA = TableSchema(
    (Column(0, "id", "id", ColumnType(Primitive.LONG), "BIGINT"),), ("id",), (0, 1)
)
COMMAND = [sys.executable, "-c", "from lakesplice.apps.cli import main; main()", "status"]


def topic(table: str, state: TopicState, age_seconds: int, *suspect: SuspectSetting) -> TopicStatus:
    trouble = ("the store is full", "x") if state is not TopicState.RUNNING else ("", "")
    condition = TopicCondition(state, *trouble)
    moment = NOW_MS - age_seconds * 1000
    return TopicStatus(
        f"a.{table}",
        table,
        condition,
        EpochMs(NOW_MS),
        7,
        EpochMs(moment),
        EpochMs(moment),
        suspect_settings=suspect,
    )


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A lake of which the driver tells of three tables; one of them has been made."""
    root = tmp_path / "lake"
    made = IndexedTable(root / "shop" / "items", SCHEMA)
    made.insert([{"id": 1}])
    suspect = SuspectSetting("time.precision.mode", "it cuts", EpochMs(NOW_MS))
    topics = (
        topic("shop.carts", TopicState.RESTING, 60),
        topic("shop.items", TopicState.RUNNING, 5),
        topic("shop.orders", TopicState.RUNNING, 3_700, suspect),
    )
    status = DriverStatus(GENERATION, EpochMs(NOW_MS), True, "a.*", topics)
    StatusPublisher(LocalStore(root), GENERATION).publish(status)
    return root


def test_tables_in_trouble_come_first_then_the_oldest(
    lakesplice: CommandLine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    ended = lakesplice("status", lake)
    assert ended.code == 0
    head, _, names, *lines = ended.out.splitlines()
    assert head.startswith(f"driver {GENERATION} ")
    assert "3 tables: 2 running, 1 resting; 21 records behind" in head
    assert names.split() == ["table", "state", "fresh", "lag", "waiting", "dead"]
    assert [line.split()[0] for line in lines[:3]] == ["shop.carts", "shop.orders", "shop.items"]
    assert lines[4:] == [
        "shop.carts: x: the store is full",
        "shop.orders: a setting changes values: time.precision.mode",
        f"all reasons, whole: lakesplice tables {lake}",
    ]


def test_status_fits_into_80_columns(
    lakesplice: CommandLine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, lakesplice("status", lake).out.splitlines())) <= 80


def test_as_json_it_is_one_object(lakesplice: CommandLine, lake: Path) -> None:
    (found,) = lakesplice("status", lake, "--json").rows
    assert found["states"] == {"running": 2, "resting": 1}
    assert found["driver"]["running"] is True
    assert [row["table"] for row in found["tables"]] == ["shop.carts", "shop.orders", "shop.items"]
    assert found["tables"][2]["version"] == 2


def test_a_lake_without_a_driver_says_so(lakesplice: CommandLine, tmp_path: Path) -> None:
    assert lakesplice("status", tmp_path).out.startswith("no driver yet; 0 tables")
    assert lakesplice("status", tmp_path / "none").code == 1


def test_watching_needs_a_terminal(lakesplice: CommandLine, lake: Path) -> None:
    ended = lakesplice("status", lake, "--watch")
    assert ended.code == 2
    assert "needs a terminal" in ended.err


@pytest.mark.slow
def test_in_a_terminal_status_shows_changes_until_ctrl_c(lake: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, str(lake), "--watch", "--every", "500ms"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "service"), "TERM": "xterm", "COLUMNS": "100"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        shown = until(ours, "shop.orders")
        assert "resting" in shown
        IndexedTable(lake / "shop" / "new_table", SCHEMA)
        until(ours, "new_table")
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS_MAX) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def until(terminal: int, text: str) -> str:
    """Read what a terminal shows until it has a text; without what steers it."""
    seen, deadline = "", time.monotonic() + SECONDS_MAX
    while text not in seen:
        assert time.monotonic() < deadline, seen
        if select.select([terminal], [], [], 1.0)[0]:
            read = os.read(terminal, 1 << 16).decode(errors="replace")
            seen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", read)
    return seen

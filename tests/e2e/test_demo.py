"""The demo as a user runs it: a process of its own, whole or interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pymysql
import pytest
from deltalake import DeltaTable

from lakesplice.testing.servers.connect import DEBEZIUM
from lakesplice.testing.servers.mariadb import MARIADB, runs_here
from tests.support import machine, short_jvms
from tests.support.waiting import until

COMMAND = [sys.executable, "-c", "from lakesplice.apps.cli import main; main()", "demo"]
SECONDS_MAX = 300.0
LEFT_SECONDS_MAX = 20.0
TABLES = 5
OWN_TABLE = (
    "create database mine",
    "create table mine.notes (id int primary key, text varchar(20))",
    "insert into mine.notes values (1, 'won'), (2, 'two'), (3, 'three')",
    "update mine.notes set text = 'one' where id = 1",
    "delete from mine.notes where id = 2",
)


@pytest.fixture
def start(tmp_path: Path, broker_jars: list[Path]) -> Callable[..., subprocess.Popen[str]]:
    """Start `lakesplice demo` in a session of its own, as a terminal would."""

    def demo(*arguments: str) -> subprocess.Popen[str]:
        source = str(machine.ROOT / "service")
        path = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))
        return subprocess.Popen(
            [*COMMAND, "--folder", str(tmp_path / "demo"), *arguments],
            env={**os.environ, **short_jvms.environment(), "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    return demo


def test_the_demo_ends_with_every_view_equal_to_the_truth(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    with start("--seconds", "5") as process:
        output, _ = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, output
    assert output.count("equal") == 2 * TABLES, output
    assert "differs" not in output
    assert "Traceback" not in output
    assert f"lakesplice read {tmp_path / 'demo' / 'lake' / 'shop' / 'orders'}" in output


# All that was started by a step is ended the same way; while it is watched there is most of it.
@pytest.mark.parametrize(
    "step",
    [
        "1. starting",
        pytest.param("3. starting", marks=pytest.mark.nightly),
        pytest.param("4. watching", marks=pytest.mark.nightly),
    ],
)
def test_an_interrupted_demo_stops_all_that_it_started(
    start: Callable[..., subprocess.Popen[str]], step: str, tmp_path: Path
) -> None:
    with start("--seconds", "60") as process:
        guard = threading.Timer(SECONDS_MAX, process.kill)
        guard.start()
        assert process.stdout is not None
        seen = []
        for line in process.stdout:
            seen.append(line)
            if line.startswith(step):
                if "watching" in step:
                    require_page(seen)
                os.killpg(process.pid, signal.SIGINT)
        status = process.wait(SECONDS_MAX)
        guard.cancel()
    output = "".join(seen)
    assert status == 130, output
    assert "Traceback" not in output
    # A worker of Python's that was just forked sees a moment later that its parent is gone.
    until(lambda: not _left_by(process.pid, tmp_path), "the end of all", LEFT_SECONDS_MAX)


def require_page(output: list[str]) -> None:
    """The page that the demo names shows its tables, to people and to programs."""
    (url,) = re.findall(r"page: (http\S+)", "".join(output))
    for address in (url, f"{url}api/v1/tables"):
        until(partial(_names_orders, address), address, SECONDS_MAX)


def _names_orders(address: str) -> bool:
    return b"shop.orders" in _answer(address)


def _answer(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=30) as answer:
        return bytes(answer.read())


@pytest.mark.nightly
def test_a_table_made_in_the_served_database_becomes_a_table_until_ctrl_c(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    if not runs_here():
        pytest.skip("no MariaDB: its archive is for Linux on x86-64")
    for jars in (MARIADB, DEBEZIUM):
        machine.jars(jars)
    with start("--serve", "--json") as process:
        guard = threading.Timer(SECONDS_MAX, process.kill)
        guard.start()
        assert process.stdout is not None
        served = next(json.loads(line) for line in process.stdout if line.startswith("{"))
        host, _, port = served["database"].partition(":")
        with pymysql.connect(
            host=host,
            port=int(port),
            user=served["user"],
            password=served["password"],
            autocommit=True,
        ) as connection:
            for statement in OWN_TABLE:
                connection.cursor().execute(statement)
        mine = Path(served["lake"]) / "mine" / "notes"
        rows = [(1, "one"), (3, "three")]
        until(lambda: _notes(mine) == rows, "the rows in the lake", SECONDS_MAX)
        os.killpg(process.pid, signal.SIGINT)
        output = "".join(process.stdout)
        status = process.wait(SECONDS_MAX)
        guard.cancel()
    assert status == 0, output
    sessions = [process.pid, *served["processes"].values()]
    until(
        lambda: not any(_left_by(one, tmp_path) for one in sessions), "the end of all", SECONDS_MAX
    )


def _notes(table: Path) -> list[tuple[int, str]]:
    if not DeltaTable.is_deltatable(str(table)):
        return []
    rows = DeltaTable(str(table)).to_pyarrow_table().to_pylist()
    return sorted((row["id"], row["text"]) for row in rows if not row["_is_deleted"])


def _left_by(session: int, folder: Path) -> list[str]:
    """Processes of the demo's session, and the broker, whose command line names the folder."""
    listing = subprocess.run(
        ["ps", "-ww", "-eo", "sid=,stat=,args="], capture_output=True, text=True, check=True
    )
    lines = [line.split(None, 2) for line in listing.stdout.splitlines()]
    return [
        args
        for sid, state, args in lines
        if (sid == str(session) or str(folder) in args) and not state.startswith("Z")
    ]

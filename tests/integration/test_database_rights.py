"""The least grants of docs/deployment.md on a real MariaDB: with them a table can be read in
snapshots, and each one that is missing gives an error that names it.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from lakesplice.errors import SourceUnavailable
from lakesplice.planning.diagnosis.database import VARIABLES
from lakesplice.storage.source.database import DatabaseAddress, source_columns
from lakesplice.storage.source.rows import SourceConnection
from lakesplice.storage.source.server import source_server as ask_server
from lakesplice.storage.system import SystemClock
from tests.support.machine import ROOT
from tests.support.sources import SourceServer

CLOCK, PASSWORD = SystemClock(), "of the reader"
REFUSED_SECONDS_MAX = 15.0


@pytest.fixture(scope="module")
def server(mariadb: SourceServer) -> Iterator[SourceServer]:
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("create database shop")
        cursor.execute("create table shop.orders (id int primary key, status int)")
        cursor.execute("insert into shop.orders values (1, 2)")
        connection.commit()
        yield mariadb
        cursor.execute("drop database shop")


def least_grants() -> list[str]:
    """The statements of the document that grant something, without the user."""
    page = (ROOT / "docs" / "deployment.md").read_text()
    return re.findall(r"^ +(GRANT .+) TO 'lakesplice'@'%';$", page, re.MULTILINE)


@pytest.fixture
def address(server: SourceServer) -> Callable[..., DatabaseAddress]:
    """Makes users of some grants, and addresses of theirs."""

    def made(grants: Sequence[str], password: str = PASSWORD) -> DatabaseAddress:
        user = f"reader_{secrets.token_hex(4)}"
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"create user {user} identified by '{PASSWORD}'")
            for grant in grants:
                cursor.execute(f"{grant} to {user}")
        return DatabaseAddress(server.host, server.port, user, "shop", password)

    return made


def read(connection: SourceConnection) -> Any:
    """What a comparison asks: a place of the binlog, and rows of a snapshot."""
    assert connection.place().offset > 0
    table = connection.table("shop", "orders")
    assert table is not None
    return connection.in_snapshot(table, lambda snapshot: snapshot.answer("*", "1"))


def test_the_least_grants_are_enough(address: Callable[..., DatabaseAddress]) -> None:
    grants = least_grants()
    assert len(grants) == 2
    with SourceConnection(address(grants), CLOCK) as connection:
        assert read(connection) == [(b"1", b"2")]
        assert connection.threads_running() > 0
        assert connection.identity()
    assert [column.name for column in source_columns(address(grants))] == ["id", "status"]
    assert ask_server(address(grants), VARIABLES, CLOCK, 10).variables["log_bin"] == "1"


@pytest.mark.parametrize(
    ("grants", "right"),
    [
        (["GRANT SELECT ON shop.*"], "BINLOG MONITOR"),
        (["GRANT SELECT (id) ON shop.orders", "GRANT BINLOG MONITOR ON *.*"], "SELECT on"),
    ],
)
def test_an_error_names_the_grant_that_is_missing(
    address: Callable[..., DatabaseAddress], grants: Sequence[str], right: str
) -> None:
    with (
        SourceConnection(address(grants), CLOCK) as connection,
        pytest.raises(SourceUnavailable, match="give the user the right") as refused,
    ):
        read(connection)
    assert str(refused.value.facts["right"]).startswith(right)


def test_a_table_that_the_user_may_not_select_from_is_not_seen(
    address: Callable[..., DatabaseAddress],
) -> None:
    with SourceConnection(address(["GRANT BINLOG MONITOR ON *.*"]), CLOCK) as connection:
        assert connection.table("shop", "orders") is None


def test_a_wrong_password_is_reported_at_once_with_the_servers_words(
    address: Callable[..., DatabaseAddress],
) -> None:
    wrong, started = address([], password="not this one"), time.monotonic()
    for ask in (
        lambda: SourceConnection(wrong, CLOCK),
        lambda: source_columns(wrong),
        lambda: ask_server(wrong, VARIABLES, CLOCK, 10),
    ):
        with pytest.raises(SourceUnavailable, match="doesn't accept the user") as refused:
            ask()
        assert "Access denied for user" in str(refused.value.facts["cause"])
    assert time.monotonic() - started < REFUSED_SECONDS_MAX

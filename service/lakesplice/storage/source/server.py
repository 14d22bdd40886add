"""Asks a source database's server for its version, its binlog settings and our user's grants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pymysql

from lakesplice.storage.source.database import DatabaseAddress, asking, connected
from lakesplice.table.protocol.ports import Clock

_UNKNOWN_VARIABLE = 1193


@dataclass(frozen=True, slots=True)
class SourceServer:
    """A server: its version, those of the requested variables that it has (values in upper case),
    the lines of SHOW GRANTS up to the user's name, and how many seconds its clock is ahead of ours.
    """

    version: str
    variables: Mapping[str, str] = field(default_factory=dict)
    grants: tuple[str, ...] = ()
    skew_seconds: float = 0.0


def source_server(
    address: DatabaseAddress,
    variables: Sequence[str],
    clock: Clock,
    timeout_seconds: float,
    certificates: str | None = None,
) -> SourceServer:
    """Ask a server. Blocks. With `certificates`, a file of trusted certificates, the server must
    prove its identity. Raises `SourceUnavailable` if it doesn't answer.
    """
    with (
        asking(address),
        connected(address, certificates, max(1, round(timeout_seconds))) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("select version(), unix_timestamp(now(6))")
        ((version, now),) = cursor.fetchall()
        skew = float(now) - clock.now_ms() / 1000
        known = {name: _variable(cursor, name) for name in variables}
        cursor.execute("show grants")
        # A hash of the password may follow the user's name.
        grants = tuple(str(row[0]).partition(" TO ")[0] + " TO " for row in cursor.fetchall())
    found = {name: value for name, value in known.items() if value is not None}
    return SourceServer(str(version), found, grants, skew)


def _variable(cursor: pymysql.cursors.Cursor, name: str) -> str | None:
    """Return a global variable; None if the server doesn't have it."""
    try:
        cursor.execute(f"select @@global.{name}")  # the names come from this module
    except pymysql.MySQLError as error:
        if error.args and error.args[0] == _UNKNOWN_VARIABLE:
            return None
        raise
    ((value,),) = cursor.fetchall()
    return str(value).upper()

"""Finds the place in its binlog that a source database, or a snapshot of it, has reached.

MariaDB reports the place of a consistent snapshot. MySQL doesn't: there a snapshot is known to be
between two places. The lower one is taken when every transaction that the binlog had before is
committed.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass

import pymysql

from lakesplice.errors import SourceUnavailable
from lakesplice.model.position import Position
from lakesplice.storage.source.tables import Ask, text_of
from lakesplice.table.protocol.ports import Clock

_COMMIT_SECONDS = 30.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class BinlogPlace:
    """The end of a binlog file at a moment: all that was committed ends at or below `offset`."""

    file: str
    offset: int

    def position(self, epoch: int = 0) -> Position:
        """Return the position at or below which all committed changes are. Raises
        `SourceUnavailable` if the file's name has no number.
        """
        number = self.file.rpartition(".")[2]
        if not number.isdecimal():
            raise SourceUnavailable(
                "the names of the binlog's files have no number", file=self.file
            )
        return Position.of(epoch, int(number), self.offset, 0, 0)

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"


@dataclass(frozen=True, slots=True)
class SnapshotPlace:
    """The place of a snapshot: it has all changes that end at or below `low`, and none above
    `high`.
    """

    low: BinlogPlace
    high: BinlogPlace


def place_of_snapshot(ask: Ask) -> SnapshotPlace:
    """Return the place of the snapshot of MariaDB's present transaction."""
    answer = {
        text_of(name).lower(): text_of(value)
        for name, value in ask("show status like 'binlog_snapshot_%'", [])
    }
    file = answer.get("binlog_snapshot_file")
    if not file:
        raise SourceUnavailable("the server writes no binlog; switch log_bin on")
    place = BinlogPlace(file, int(answer["binlog_snapshot_position"]))
    return SnapshotPlace(place, place)


def committed_place(ask: Ask, clock: Clock) -> BinlogPlace:
    """Return a place of the binlog below which everything is committed. MySQL writes the binlog
    first and lists transactions that aren't committed yet in `gtid_owned`. Blocks until the
    transactions that were listed at the call are committed. Not tested with a server.
    """
    place = end_of_binlog(ask)
    waiting = _owned(ask)
    until = clock.monotonic() + _COMMIT_SECONDS
    while waiting:
        if clock.monotonic() > until:
            raise SourceUnavailable("transactions before the snapshot don't commit; try again")
        clock.wait(_POLL_SECONDS)
        waiting &= _owned(ask)
    return place


def end_of_binlog(ask: Ask) -> BinlogPlace:
    """Return where the binlog ends; transactions below may not be committed yet."""
    for statement in ("show master status", "show binary log status"):
        with suppress(pymysql.ProgrammingError):
            rows = ask(statement, [])
            if rows:
                return BinlogPlace(text_of(rows[0][0]), int(rows[0][1] or 0))
    raise SourceUnavailable("the server doesn't report a place in its binlog; switch log_bin on")


def is_undone(ask: Ask, place: BinlogPlace) -> bool:
    """Return whether a transaction rolled back to a savepoint that is older than its row event at a
    place, so that it made no such change.

    A server drops such events, unless the transaction also wrote to a table of an engine without
    transactions. Raises `pymysql.MySQLError` if the server no longer has the events.
    """
    later: set[str] = set()
    limit = f"from {place.offset} limit {_EVENTS_MAX}"
    events = ask(f"show binlog events in %s {limit}", [place.file])
    if not events or int(events[0][_AT] or 0) != place.offset:
        return False  # no event begins there, and the server went on to the next one
    for event in events:
        kind, statement = text_of(event[_KIND]), text_of(event[_STATEMENT])
        if kind == "Xid" or statement == "COMMIT":
            return False
        if found := _SAVEPOINT.search(statement):
            if found[1] == "SAVEPOINT":
                later.add(found[2])
            elif found[2] not in later:
                return True
    return False


# The columns of SHOW BINLOG EVENTS with an event's place, its type and, of a statement, its text.
_AT, _KIND, _STATEMENT = 1, 2, 5
_EVENTS_MAX = 10_000
_SAVEPOINT = re.compile(r"^(?:use .*; )?(SAVEPOINT|ROLLBACK TO) (.*)$")


def _owned(ask: Ask) -> set[str]:
    ((owned,),) = ask("select @@global.gtid_owned", [])
    return set(owned_gtids(text_of(owned)))


def owned_gtids(owned: str) -> list[str]:
    """Return the GTIDs in a text of `uuid:number#thread`: several are separated by commas, numbers
    of one uuid by colons.
    """
    found, uuid = [], ""
    for part in owned.replace("\n", "").replace(",", ":").split(":"):
        number, sign, _ = part.strip().partition("#")
        if sign:
            found.append(f"{uuid}:{number}")
        elif part.strip():
            uuid = part.strip()
    return found

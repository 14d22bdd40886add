"""Transactions that are in a MySQL server's binlog but not yet committed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lakesplice.errors import SourceUnavailable
from lakesplice.storage.source.binlog_places import BinlogPlace, committed_place, owned_gtids
from lakesplice.storage.source.tables import Row
from lakesplice.testing.doubles import FixedClock

_UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def test_the_gtids_of_each_server_and_thread_are_distinguished() -> None:
    assert owned_gtids("") == []
    assert owned_gtids(f"{_UUID}:23#10:24#11,\nother:5#7") == [
        f"{_UUID}:23", f"{_UUID}:24", "other:5",
    ]  # fmt: skip


class Server:
    """Answers what MySQL would; each question for owned GTIDs gets the next answer."""

    def __init__(self, owned: list[str]) -> None:
        self.owned = owned

    def __call__(self, statement: str, _: Sequence[str]) -> list[Row]:
        if statement == "show master status":
            return [(b"binlog.000007", b"4711", b"", b"", b"")]
        if "gtid_owned" in statement:
            return [(self.owned.pop(0).encode() if self.owned else f"{_UUID}:1#3".encode(),)]
        raise AssertionError(statement)


def test_a_position_counts_once_its_transactions_are_committed() -> None:
    clock = FixedClock()
    server = Server([f"{_UUID}:1#3:2#4", f"{_UUID}:2#4:3#3", f"{_UUID}:3#3"])
    assert committed_place(server, clock) == BinlogPlace("binlog.000007", 4711)
    assert server.owned == []


def test_a_transaction_that_never_commits_is_not_waited_for_without_end() -> None:
    clock = FixedClock()
    with pytest.raises(SourceUnavailable, match="don't commit"):
        committed_place(Server([]), clock)

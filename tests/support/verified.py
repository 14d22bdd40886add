"""The requests of `lakesplice verify` to a running service, without a database."""

from __future__ import annotations

from lakesplice.apps.table_commands.dispatch import RequestWait, ask_driver
from lakesplice.apps.table_commands.work import VERIFIED
from lakesplice.model.names import TableName
from lakesplice.storage.local import LocalStore
from tests.support.running import Lake

ROWS = 1_000


def note_comparison(lake: Lake, table: str, *, different: int) -> None:
    """Have the running service of a lake in a folder note that a table of `shop` was compared."""
    found = {
        "outcome": "different" if different else "equal",
        "source": "mysql.example.org:3306",
        "binlog": "mariadb-bin.000001:1042",
        "method": "sha1",
        "share": 1.0,
        "rows": ROWS,
        "different": different,
        "unsettled": 0,
    }
    name = TableName("shop", table)
    assert ask_driver(LocalStore(lake.root), name, VERIFIED, found, RequestWait())

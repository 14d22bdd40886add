"""What commits show in the metrics."""

from __future__ import annotations

from pathlib import Path

from lakesplice.apps.service.tables.gauges import count_commit
from lakesplice.model.names import TableName
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.intents import Note
from lakesplice.telemetry.catalogue import DIFFERING_ROWS
from lakesplice.telemetry.registry import Metrics
from tests.support.tables import TableUnderTest


def test_rows_that_a_verification_found_to_differ_are_counted(tmp_path: Path) -> None:
    table, metrics = TableUnderTest(LocalStore(tmp_path)), Metrics()
    table.create()
    for different in (3, 0, 1):
        note = Note(1, "VERIFY", {"rows": 10, "different": different, "unsettled": 2})
        count_commit(metrics, TableName("shop", "orders"), note, table.commit(note))
    shadow = Note(1, "VERIFY SHADOW", {"rows": 10, "different": 9, "unsettled": 0})
    count_commit(metrics, TableName("shop", "orders"), shadow, table.commit(shadow))
    assert metrics.value(DIFFERING_ROWS, table="shop.orders") == 4

"""What commits show in the metrics."""

from __future__ import annotations

from pathlib import Path

from lakesplice.apps.service.tables.gauges import count_commit, operation_of
from lakesplice.model.names import TableName
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.commit import Committed
from lakesplice.table.protocol.intents import Adopt, Note, ReplaceTable, SetConstraints, Upsert
from lakesplice.table.protocol.preconditions import PRECONDITIONS
from lakesplice.telemetry.catalogue import (
    DIFFERING_ROWS,
    ERASED_ROWS,
    IGNORED,
    VERIFICATION_AGE,
    VERIFICATIONS,
)
from lakesplice.telemetry.registry import Metrics
from tests.support.tables import TableUnderTest
from tests.unit.table.preconditions.erasures import erasure_of


def test_every_commit_of_a_driver_has_a_name_in_metrics_and_logs() -> None:
    by_hand = {Adopt, ReplaceTable, SetConstraints, Upsert}
    assert all(operation_of(object.__new__(kind)) for kind in {*PRECONDITIONS} - by_hand)


def test_results_of_verifications_are_counted(tmp_path: Path) -> None:
    table, metrics = TableUnderTest(LocalStore(tmp_path)), Metrics()
    table.create()
    found = ((3, 2), (0, 0), (1, 0), (0, 2), (0, 0))
    for different, unsettled in found:
        note = Note(1, "VERIFY", {"rows": 10, "different": different, "unsettled": unsettled})
        count_commit(metrics, TableName("shop", "orders"), note, table.commit(note))
    shadow = Note(1, "VERIFY SHADOW", {"rows": 10, "different": 9, "unsettled": 0})
    count_commit(metrics, TableName("shop", "orders"), shadow, table.commit(shadow))
    assert metrics.value(DIFFERING_ROWS, table="shop.orders") == 4
    assert {
        outcome: metrics.value(VERIFICATIONS, outcome=outcome)
        for outcome in ("equal", "different", "unsettled")
    } == {"equal": 2, "different": 2, "unsettled": 1}


def test_the_age_of_a_verification_counts_from_its_commit(tmp_path: Path) -> None:
    table = TableUnderTest(LocalStore(tmp_path))
    table.create()
    note = Note(1, "VERIFY", {"rows": 10, "different": 0, "unsettled": 0})
    committed = table.commit(note)
    assert isinstance(committed, Committed)
    metrics = Metrics(lambda: committed.snapshot.timestamp_ms / 1000 + 60)
    assert metrics.value(VERIFICATION_AGE, table="shop.orders") is None
    count_commit(metrics, TableName("shop", "orders"), note, committed)
    assert metrics.value(VERIFICATION_AGE, table="shop.orders") == 60


def test_rows_that_were_erased_and_changes_of_theirs_that_came_again_are_counted(
    tmp_path: Path,
) -> None:
    table, metrics = TableUnderTest(LocalStore(tmp_path)), Metrics()
    table.create()
    name = TableName("shop", "orders")
    erasure = erasure_of(table, inputs=(), outputs=(), run=None, counts={"rows": 7})
    count_commit(metrics, name, erasure, table.commit(erasure))
    ingest = table.ingest(counts={"erased": 2})
    count_commit(metrics, name, ingest, table.commit(ingest))
    assert metrics.value(ERASED_ROWS) == 7
    assert metrics.value(IGNORED, table="shop.orders", reason="erased") == 2

"""Upserts beside other commits, and tables that refuse them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lakesplice.errors import ParkedTableError, RetryableError, UsageError
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.protocol.commit import Conflict, ConflictCode
from lakesplice.table.protocol.intents import Ingest, Redirect
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.faulty_store import Call, FaultyStore
from tests.support.by_hand import (
    WHOLE,
    created,
    given,
    opened,
    require_rows,
    require_sound_index,
    row,
    rows_of,
    tools,
)
from tests.support.tables import local_table


def test_another_upsert_in_between_makes_it_locate_again(store: LocalStore) -> None:
    created(store, [row(1)])
    rival = opened(store, 20)

    def insert_first(call: Call) -> None:
        if call.path.endswith(".parquet") and call.method == "writer" and rival.version == 0:
            rival.upsert(given([row(5, "rival", 1)], WHOLE))

    late = HandFedTable(FaultyStore(store, before_call=insert_first), tools(30))
    done = late.upsert(given([row(5, "late", 2)], WHOLE))
    assert (done.version, done.inserted, done.updated) == (2, 0, 1)
    require_rows(late, {1: row(1), 5: row(5, "late", 2)})
    require_sound_index(store, late)


@pytest.mark.slow
def test_a_concurrent_compaction_costs_an_upsert_nothing(store: LocalStore) -> None:
    table = created(store, [row(1), row(2)])
    table.upsert(given([row(1, n=2)], ["id", "n"]))
    written: list[str] = []

    def compact_first(call: Call) -> None:
        if call.method == "writer" and "deltas" in call.path:
            written.append(call.path)
        if call.method == "put_new" and "manifests" in call.path and table.version == 1:
            table.compact()

    late = HandFedTable(FaultyStore(store, before_call=compact_first), tools(30))
    done = late.upsert(given([row(1, name="late")], ["id", "name"]))
    assert (done.version, len(written)) == (3, 1)
    require_rows(late, {1: row(1, "late", 2), 2: row(2)})
    # Planned to be version 2, which the compaction took.
    assert late.snapshot.manifest.upserts is not None
    assert late.snapshot.manifest.upserts.position == 2
    late.upsert(given([row(1, name="later")], ["id", "name"]))
    late.compact()
    require_rows(late, {1: row(1, "later", 2), 2: row(2)})


@pytest.mark.slow
def test_upserts_and_compaction_of_another_are_taken_up_by_a_compaction(store: LocalStore) -> None:
    table = created(store, [row(1), row(2)])
    table.upsert(given([row(1, n=2)], ["id", "n"]))
    rival = opened(store, 20)

    def act_first(call: Call) -> None:
        if call.method == "put_new" and "manifests" in call.path and rival.version == 1:
            rival.upsert(given([row(2, n=3)], ["id", "n"]))
            rival.compact()

    late = HandFedTable(FaultyStore(store, before_call=act_first), tools(30))
    late.compact()
    require_rows(late, {1: row(1, n=2), 2: row(2, n=3)})
    assert not late.snapshot.manifest.deltas


@pytest.mark.slow
def test_a_writer_that_always_loses_gets_an_error(store: LocalStore) -> None:
    created(store, [row(1)])
    rival = opened(store, 20)

    def always(call: Call) -> None:
        if call.method == "put_new" and "manifests" in call.path:
            rival.upsert(given([row(1, n=rival.version)], ["id", "n"]))

    late = HandFedTable(FaultyStore(store, before_call=always), tools(30))
    with pytest.raises(RetryableError, match="committed first every time"):
        late.upsert(given([row(1, name="late")], ["id", "name"]))
    assert rows_of(rival)[1]["name"] == "a"


def test_a_parked_table_refuses_upserts(table: HandFedTable, store: LocalStore) -> None:
    held = DriverTable(store, SourceState("t", "i"), 1, FixedClock(), SeededEntropy(5))
    held.commit(Redirect(1, 0, parked=ParkReason(ParkCode.CORRUPT, "mend it")))
    with pytest.raises(ParkedTableError, match="mend it"):
        table.upsert(given([row(1)], WHOLE))


def test_a_table_that_a_source_feeds_refuses_upserts(tmp_path: Path) -> None:
    fed = local_table(tmp_path)
    fed.create()
    table = opened(fed.store)
    for act in (lambda: table.upsert(pa.table({"id": [1]})), table.compact):
        refused: Callable[[], object] = act
        with pytest.raises(UsageError, match="fed by a source"):
            refused()


def test_a_table_fed_by_hand_refuses_a_source(table: HandFedTable, store: LocalStore) -> None:
    source = SourceState("t.shop.goods", "topic", {0: PartitionState(Offset(0))})
    held = DriverTable(store, source, 1, FixedClock(), SeededEntropy(5))
    assert held.parked is not None
    assert held.parked.code is ParkCode.FED_BY_HAND
    to = SourceState("t.shop.goods", "topic", {0: PartitionState(Offset(5))})
    outcome = held.commit(Ingest(1, 0, {0: Offset(0)}, to, table.snapshot.manifest.schema.version))
    assert isinstance(outcome, Conflict)
    assert outcome.reason is ConflictCode.OFFSETS

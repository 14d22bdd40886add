"""A position that two changes share parks the table; a repeated change doesn't."""

from __future__ import annotations

import json
from pathlib import Path

from lakesplice.model.parking import ParkCode
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.testing.shop import Event
from tests.support.simulated import Source, driver_of, require_true


def at_place_of(event: Event, other: Event) -> Event:
    """The event, at the place in the binlog of another one."""
    assert event.value is not None
    assert other.value is not None
    record = json.loads(event.value)
    place = json.loads(other.value)["payload"]["source"]
    for name in ("file", "pos", "row", "gtid"):
        record["payload"]["source"][name] = place[name]
    return event._replace(value=json.dumps(record).encode())


def test_changes_of_a_row_that_share_a_position_park_their_table(tmp_path: Path) -> None:
    source = Source()
    driver = driver_of(source, LocalStore(tmp_path))
    (born,), (first,), (second,) = source.put(1), source.put(1), source.put(1)
    source.topic.append(0, [born, first, at_place_of(second, first)])
    assert driver.batch() is CommitOutcome.DONE
    parked = driver.table.parked
    assert parked is not None
    assert (parked.code, parked.offset) == (ParkCode.ORDER_UNKNOWN, 2)
    assert "binlog_legacy_event_pos" in parked.detail
    require_true(source, driver.table.store)


def test_rows_of_a_transaction_that_share_a_position_park_their_table(tmp_path: Path) -> None:
    source = Source()
    driver = driver_of(source, LocalStore(tmp_path))
    (one,), (other,) = source.put(1), source.put(2)
    source.topic.append(1, [one, at_place_of(other, one)])
    assert driver.batch() is CommitOutcome.DONE
    assert driver.table.parked is not None
    require_true(source, driver.table.store)


def test_a_change_that_is_sent_again_shares_its_position_with_itself(tmp_path: Path) -> None:
    source = Source()
    driver = driver_of(source, LocalStore(tmp_path))
    events = [*source.put(1), *source.put(1), *source.put(2), *source.delete(1)]
    source.topic.append(0, [*events, *events[1:], *events])
    assert driver.batch() is CommitOutcome.DONE
    assert driver.table.parked is None
    require_true(source, driver.table.store)


def test_the_two_halves_of_a_key_update_have_a_position_each(tmp_path: Path) -> None:
    source = Source()
    driver = driver_of(source, LocalStore(tmp_path))
    source.topic.append(0, [*source.put(1), *source.move(1, 2), *source.put(2)])
    assert driver.batch() is CommitOutcome.DONE
    assert driver.table.parked is None
    require_true(source, driver.table.store)

"""Where batches end makes no difference to what parks a table, where it parks, and what it has."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakesplice.model.manifest import ParkCode, ParkReason
from lakesplice.model.modes import NotInserts
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import Settled
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.drawing import examples
from tests.support.simulated import Rows, Source, driver_of, folder, rows_of
from tests.unit.planning.test_shared_positions import at_place_of

MAXWELL = {"database": "shop", "table": "goods", "type": "insert", "ts": 1, "data": {"id": 9}}


def edited(event: Event, change: Callable[[dict[str, Any]], object]) -> Event:
    assert event.value is not None
    record = json.loads(event.value)
    change(record)
    return event._replace(value=json.dumps(record).encode())


def fallen_back(event: Event) -> Event:
    place = {"file": "mysql-bin.000000", "pos": 4, "gtid": None}
    return edited(event, lambda record: record["payload"]["source"].update(place))


def truncated(event: Event) -> Event:
    emptied = {"op": "t", "before": None, "after": None}
    return edited(event, lambda record: record["payload"].update(emptied))._replace(key=None)


def without_a_column(event: Event) -> Event:
    def leave_out(record: dict[str, Any]) -> None:
        for image in ("before", "after"):
            (record["payload"][image] or {}).pop("name", None)
        for field in record["schema"]["fields"]:
            if field["field"] in ("before", "after"):
                field["fields"] = [f for f in field["fields"] if f["field"] != "name"]

    return edited(event, leave_out)


def with_a_name_twice(event: Event) -> Event:
    """With another column, whose name differs in its case alone."""

    def add(record: dict[str, Any]) -> None:
        for image in ("before", "after"):
            if record["payload"][image]:
                record["payload"][image]["NAME"] = None
        for field in record["schema"]["fields"]:
            if field["field"] in ("before", "after"):
                (name,) = (one for one in field["fields"] if one["field"] == "name")
                field["fields"].append({**name, "field": "NAME", "optional": True})

    return edited(event, add)


# What becomes of an event that comes behind another one, and why its table parks.
REASONS: dict[ParkCode, Callable[[Event, Event], Event]] = {
    ParkCode.ORDER_UNKNOWN: at_place_of,
    ParkCode.TRUNCATED: lambda event, _: truncated(event),
    ParkCode.NO_KEY: lambda event, _: event._replace(key=None),
    ParkCode.POSITIONS_FELL_BACK: lambda event, _: fallen_back(event),
    ParkCode.SCHEMA_CHANGE: lambda event, _: without_a_column(event),
    ParkCode.UNSUPPORTED: lambda event, _: with_a_name_twice(event),
    ParkCode.FORMAT_CHANGED: lambda event, _: event._replace(value=json.dumps(MAXWELL).encode()),
    ParkCode.NOT_AN_INSERT: lambda event, _: event,
}
POLICY = SchemaPolicy(
    drop_column=Behaviour.EXCEPTION,
    rename_column=Behaviour.EXCEPTION,
    truncate_table=Behaviour.EXCEPTION,
)


def events_of(keys: list[int], at: int, reason: ParkCode) -> list[Event]:
    """Changes of rows, one of which shows the reason."""
    source = Source()
    inserts = reason is ParkCode.NOT_AN_INSERT
    puts = [source.put(10 + n if inserts else key)[0] for n, key in enumerate(keys)]
    before = puts[at]
    (event,) = source.put(10 if inserts else keys[at])
    return [*puts[: at + 1], REASONS[reason](event, before), *puts[at + 1 :]]


def fed(driver: SimulatedDriver, ends: list[int]) -> tuple[ParkReason | None, Rows]:
    for end in ends:
        if driver.table.parked is None:
            assert driver.batch({0: end, 1: 0}) is Settled.DONE
    return driver.table.parked, rows_of(driver.table.store) if driver.table.snapshot else []


@settings(max_examples=examples(50), deadline=None)
@given(
    st.lists(st.integers(0, 2), min_size=2, max_size=6),
    st.integers(0, 5),
    st.sampled_from([*REASONS]),
    st.sets(st.integers(1, 6)),
)
@example([0, 1], 1, ParkCode.ORDER_UNKNOWN, {2})
@example([0, 0, 0], 1, ParkCode.ORDER_UNKNOWN, {1, 2})
def test_where_batches_end_makes_no_difference_to_what_parks_a_table(
    keys: list[int], at: int, reason: ParkCode, cuts: set[int]
) -> None:
    events = events_of(keys, at % len(keys), reason)
    never_changes = NotInserts.PARK if reason is ParkCode.NOT_AN_INSERT else None
    found = []
    with folder() as path:
        for name, ends in (("whole", []), ("cut", [end for end in cuts if end < len(events)])):
            source = Source()
            source.topic.append(0, events)
            driver = driver_of(
                source, LocalStore(path / name), not_inserts=never_changes, policy=POLICY
            )
            found.append(fed(driver, [*sorted(ends), len(events)]))
    (parked, rows), cut = found
    assert parked is not None
    assert parked.code is reason
    assert cut == (parked, rows)

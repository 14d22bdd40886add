"""The ends of batches don't affect whether a table is parked, at which record, and with which rows.

Each reason is drawn in every format whose events can show it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakesplice.formats.events import declare
from lakesplice.model.choices import NotInserts
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.drawing import examples
from tests.support.partial_images import COLUMNS as MAXWELL_COLUMNS
from tests.support.partial_images import TOPIC as MAXWELL_TOPIC
from tests.support.partial_images import event as maxwell_event
from tests.support.partial_images import row as maxwell_row
from tests.support.reformed import Form, Reformed
from tests.support.simulated import Rows, Source, folder, rows_of
from tests.unit.planning.test_shared_positions import at_place_of

COLUMNS = {"id": "bigint", "name": "string", "n": "int"}


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


def keyed_by_another_column(event: Event) -> Event:
    record = json.loads(event.value or b"")
    (image,) = (one for one in record["schema"]["fields"] if one["field"] == "after")
    (field,) = (one for one in image["fields"] if one["field"] == "n")
    schema = {"type": "struct", "optional": False, "name": "k", "fields": [field]}
    record["payload"]["after"]["n"] = 7
    key = {"schema": schema, "payload": {"n": 7}}
    return event._replace(key=json.dumps(key).encode(), value=json.dumps(record).encode())


def with_another_column(event: Event) -> Event:
    """With a column that nothing declares."""

    def add(record: dict[str, Any]) -> None:
        for image in ("before", "after"):
            if record["payload"][image]:
                record["payload"][image]["more"] = 1
        for field in record["schema"]["fields"]:
            if field["field"] in ("before", "after"):
                more = {"type": "int32", "optional": True, "field": "more"}
                field["fields"].append(more)

    return edited(event, add)


def with_an_unknown_value(event: Event) -> Event:
    """With what the connector puts where a row image lacks a column."""
    placeholder = {"name": "__debezium_unavailable_value"}
    return edited(event, lambda record: record["payload"]["after"].update(placeholder))


# What becomes of an event with schemas that comes behind another one, and why its table parks.
REASONS: dict[ParkCode, Callable[[Event, Event], Event]] = {
    ParkCode.ORDER_UNKNOWN: at_place_of,
    ParkCode.TRUNCATED: lambda event, _: truncated(event),
    ParkCode.NO_KEY: lambda event, _: event._replace(key=None),
    ParkCode.POSITIONS_FELL_BACK: lambda event, _: fallen_back(event),
    ParkCode.SCHEMA_CHANGE: lambda event, _: without_a_column(event),
    ParkCode.UNSUPPORTED: lambda event, _: with_a_name_twice(event),
    ParkCode.FORMAT_CHANGED: lambda event, _: event,
    ParkCode.NOT_AN_INSERT: lambda event, _: event,
    ParkCode.TYPES_UNDECLARED: lambda event, _: with_another_column(event),
    ParkCode.KEY_CHANGED: lambda event, _: keyed_by_another_column(event),
    ParkCode.PARTIAL_IMAGE: lambda event, _: with_an_unknown_value(event),
}
# Why no event of a format shows the reason.
NOT_IN: dict[tuple[ParkCode, Form], str] = {
    (ParkCode.ORDER_UNKNOWN, Form.CANAL): "its order is that of the records",
    (ParkCode.ORDER_UNKNOWN, Form.TICDC): "a commit changes a row once, whatever its statements",
    (ParkCode.POSITIONS_FELL_BACK, Form.CANAL): "its order is that of the records",
    (ParkCode.POSITIONS_FELL_BACK, Form.TICDC): "a cluster's timestamps don't start again",
    (ParkCode.TRUNCATED, Form.FLATTENED): "the transform drops a TRUNCATE",
    (ParkCode.TRUNCATED, Form.FLATTENED_AVRO): "the transform drops a TRUNCATE",
    (ParkCode.TRUNCATED, Form.MAXWELL): "it writes no TRUNCATE",
    (ParkCode.SCHEMA_CHANGE, Form.MAXWELL): "an image that lacks a column is a partial one",
    (ParkCode.TYPES_UNDECLARED, Form.AVRO): "its schema says all types",
    (ParkCode.TYPES_UNDECLARED, Form.FLATTENED_AVRO): "its schema says all types",
    (ParkCode.TYPES_UNDECLARED, Form.CANAL): "its messages say all types",
    (ParkCode.PARTIAL_IMAGE, Form.CANAL): "an image that lacks a column is another schema",
    (ParkCode.PARTIAL_IMAGE, Form.TICDC): "TiDB sends all columns",
}
SHOWN = [(reason, form) for reason in REASONS for form in Form if (reason, form) not in NOT_IN]
# What Canal alone writes into the topic of the table; elsewhere another topic says it.
OF_CANAL = ParkCode.DROPPED
# Reasons that no record shows, so that no cut can hide them.
OF_NO_RECORD = {
    ParkCode.OFFSETS_GONE: "the broker says so when a batch is planned",
    ParkCode.TOPIC_RECREATED: "the broker says so when a batch is planned",
    ParkCode.ROWS_MOVED: "a record of the topic of schema changes says so, between two batches",
    ParkCode.NEW_TABLE: "the policy parks a new table before its first batch",
    ParkCode.DEAD_LETTERS: "it is the share of a batch's records, so it depends on the batch",
    ParkCode.CORRUPT: "a file of the table says so",
    ParkCode.JOB_DIED: "the engine says so",
    ParkCode.BY_HAND: "an operator says so, between two batches",
    ParkCode.FED_BY_HAND: "the table's manifest says so",
}
POLICY = SchemaPolicy(
    drop_column=Behaviour.EXCEPTION,
    rename_column=Behaviour.EXCEPTION,
    truncate_table=Behaviour.EXCEPTION,
    drop_table=Behaviour.EXCEPTION,
)


def test_each_reason_to_park_is_drawn_or_is_of_no_record() -> None:
    assert {*REASONS, OF_CANAL, *OF_NO_RECORD} == {*ParkCode}


@dataclass(frozen=True)
class Told:
    """Events of a topic, and what its driver is told besides."""

    topic: str
    partitions: int
    events: list[Event]
    options: dict[str, Any]

    def driver(self, lake: LocalStore) -> SimulatedDriver:
        topic = SimulatedTopic(self.topic, self.partitions)
        topic.append(0, self.events)
        clock, entropy = FixedClock(), SeededEntropy(1)
        return SimulatedDriver(lake, topic, clock, entropy, policy=POLICY, **self.options)


def told_of(keys: list[int], at: int, reason: ParkCode, form: Form) -> Told:
    """Changes of rows, one of which shows the reason."""
    if (reason, form) == (ParkCode.PARTIAL_IMAGE, Form.MAXWELL):
        events = [
            maxwell_event("insert" if n < 3 else "update", n, maxwell_row(key, stock=n))
            for n, key in enumerate([0, 1, 2, *keys], 1)
        ]
        partial = maxwell_event("update", 3 + at + 1, {"id": keys[at], "stock": 9})
        events[3 + at] = partial
        return Told(MAXWELL_TOPIC, 2, events, {"declared": declare(MAXWELL_COLUMNS)})
    if reason is ParkCode.DROPPED:
        sent = [canal(n, data=[{"id": str(10 * n + key)}]) for n, key in enumerate(keys)]
        erased = canal(99, type="ERASE", isDdl=True, data=None, mysqlType=None, pkNames=None)
        return Told("canal.shop.items", 1, [*sent[: at + 1], erased, *sent[at + 1 :]], {})
    source = Source()
    inserts = reason is ParkCode.NOT_AN_INSERT
    puts = [source.put(10 + n if inserts else key)[0] for n, key in enumerate(keys)]
    before = puts[at]
    (event,) = source.put(10 if inserts else keys[at])
    written = Reformed(form)
    if reason is ParkCode.FORMAT_CHANGED:
        shows = another_format(form, event)
    elif reason is ParkCode.TYPES_UNDECLARED and form is Form.SCHEMAS:
        shows = Reformed(Form.NO_SCHEMAS).event(event)
    else:
        shows = written.event(REASONS[reason](event, before))
    first, last = puts[: at + 1], puts[at + 1 :]
    events = [*map(written.event, first), shows, *map(written.event, last)]
    options: dict[str, Any] = {"not_inserts": NotInserts.PARK} if inserts else {}
    if not form.says_types:
        clashing = {"NAME": "string"} if reason is ParkCode.UNSUPPORTED else {}
        options["declared"] = declare({**COLUMNS, **clashing})
    return Told(
        source.topic.name, form.partitions, events, {**options, "schemas": written.registry}
    )


def another_format(form: Form, event: Event) -> Event:
    """The event in another format; as a flattened row any object might be meant."""
    other = Form.SCHEMAS if form in (Form.MAXWELL, Form.FLATTENED) else Form.MAXWELL
    return Reformed(other).event(event)


def canal(number: int, **members: Any) -> Event:
    message = {
        "database": "shop", "table": "items", "es": 1_000 + number, "ts": 2_000 + number,
        "id": number, "isDdl": False, "old": None, "pkNames": ["id"], "sql": "", "type": "INSERT",
        "mysqlType": {"id": "bigint"}, **members,
    }  # fmt: skip
    return Event("canal.shop.items", None, json.dumps(message).encode(), (), 1_000 + number)


def fed(driver: SimulatedDriver, ends: list[int], partitions: int) -> tuple[Any, Rows]:
    """Why the table is parked once batches that end there were tried, and its rows."""
    for end in ends:
        if driver.table.parked is None:
            until = {0: Offset(end), 1: Offset(0)} if partitions > 1 else {0: Offset(end)}
            assert driver.batch(until) is CommitOutcome.DONE
    return driver.table.parked, rows_of(driver.table.store) if driver.table.snapshot else []


@pytest.mark.slow
@settings(max_examples=examples(120), deadline=None)
@given(
    st.lists(st.integers(0, 2), min_size=2, max_size=6),
    st.integers(0, 5),
    st.sampled_from([*SHOWN, (OF_CANAL, Form.CANAL)]),
    st.sets(st.integers(1, 8)),
)
@example([0, 1], 1, (ParkCode.ORDER_UNKNOWN, Form.SCHEMAS), {2})
@example([0, 0, 0], 1, (ParkCode.ORDER_UNKNOWN, Form.SCHEMAS), {1, 2})
@example([0, 1, 0], 1, (ParkCode.TYPES_UNDECLARED, Form.SCHEMAS), {2})
@example([0, 1, 0], 1, (ParkCode.KEY_CHANGED, Form.SCHEMAS), {2})
@example([0, 1, 0], 1, (ParkCode.PARTIAL_IMAGE, Form.MAXWELL), {3, 4, 5})
@example([0, 1, 0], 1, (ParkCode.DROPPED, Form.CANAL), {2, 3})
def test_the_ends_of_batches_do_not_affect_why_a_table_parks(
    keys: list[int], at: int, shown: tuple[ParkCode, Form], cuts: set[int]
) -> None:
    reason, form = shown
    told = told_of(keys, at % len(keys), reason, form)
    count = len(told.events)
    found = []
    with folder() as path:
        for name, ends in (("whole", []), ("cut", [end for end in cuts if end < count])):
            driver = told.driver(LocalStore(path / name))
            found.append(fed(driver, [*sorted(ends), count], told.partitions))
    (parked, rows), cut = found
    assert parked is not None
    assert parked.code is reason
    assert cut == (parked, rows)

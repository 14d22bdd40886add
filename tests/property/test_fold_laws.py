"""Laws of folding, over simulated histories of rows in any order, batching and repetition."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.model.change import Op, changes_schema
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.planning.rows.fold import fold
from tests.support.change_records import change_record, digest_of
from tests.support.drawing import examples

WIDTH = 10
SCHEMA = TableSchema(
    tuple(
        Column(at, f"c{at}", f"c{at}", ColumnType(Primitive.LONG), "BIGINT") for at in range(WIDTH)
    ),
    ("c0",),
    (0, WIDTH),
)
LAYOUT = changes_schema(SCHEMA)
Row = tuple[int | None, ...]
STABLE = [
    "_key_high",
    "_key_low",
    "_op",
    "_position_file",
    "_position_offset",
    "_row_digest",
    *SCHEMA.names,
]


def digest(row: Row) -> int:
    return digest_of(SCHEMA, row)


@dataclass(frozen=True)
class Event:
    """A change as a scalar: its place and its images."""

    position: int
    key: int
    op: Op
    before: Row | None
    after: Row | None

    @property
    def record(self) -> dict[str, Any]:
        return change_record(SCHEMA, self.op, self.before, self.after) | {
            # Few distinct high halves, so that keys are told apart by both.
            "_key_high": (1 << 63) * (self.key % 2) + 5,
            "_key_low": (1 << 64) - 1 - self.key,
            "_position_file": self.position // 4,
            "_position_offset": self.position % 4,
        }


def table(events: list[Event]) -> pa.Table:
    return pa.Table.from_pylist([event.record for event in events], schema=LAYOUT)


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """A source's own sequence of events over a few keys; every image is what the source held."""
    rows: dict[int, Row] = {}
    events: list[Event] = []
    for position in range(draw(st.integers(1, 14))):
        key = draw(st.integers(0, 3))
        before = rows.get(key)
        values = (key, *draw(st.tuples(*[st.sampled_from([None, 0, 1])] * (WIDTH - 1))))
        step = draw(st.sampled_from(["write", "touch", "delete", "read"]))
        if before is None:
            events.append(Event(position, key, Op.CREATE, None, values))
            rows[key] = values
        elif step == "delete":
            events.append(Event(position, key, Op.DELETE, before, None))
            del rows[key]
        elif step == "read":
            events.append(Event(position, key, Op.READ, None, before))
        else:
            at = draw(st.integers(1, WIDTH - 1))
            after = values if step == "write" else (*before[:at], values[at], *before[at + 1 :])
            events.append(Event(position, key, Op.UPDATE, before, after))
            rows[key] = after
    return events


@st.composite
def deliveries(draw: st.DrawFn, events: list[Event]) -> pa.Table:
    """The events in any order, some twice, in batches of which some are folded already."""
    sent = draw(st.permutations(events + draw(st.lists(st.sampled_from(events), max_size=6))))
    cuts = sorted(draw(st.lists(st.integers(0, len(sent)), max_size=3)))
    batches = [table(sent[a:b]) for a, b in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
    return pa.concat_tables([fold(b, SCHEMA) if draw(st.booleans()) else b for b in batches])


def scalar_fold(events: list[Event]) -> dict[int, dict[str, Any]]:
    """One key after the other, one change after the other, as the rule reads."""
    out: dict[int, dict[str, Any]] = {}
    for event in sorted(
        {event.position: event for event in events}.values(), key=lambda e: e.position
    ):
        new = event.record
        old = out.get(event.key)
        if old is not None:
            links = old["_row_digest"] is not None and old["_row_digest"] == new["_before_digest"]
            if links and old["_changed"] is not None and new["_changed"] is not None:
                union = bytes(a | b for a, b in zip(old["_changed"], new["_changed"], strict=True))
                new |= {"_changed": union, "_before_digest": old["_before_digest"]}
            else:
                new |= {"_changed": None, "_before_digest": None}
        out[event.key] = new
    return out


def by_key(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["_key_high"], row["_key_low"]))


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_folding_follows_the_scalar_rule_whatever_the_order_and_repetition(
    data: st.DataObject,
) -> None:
    events = data.draw(histories())
    kept = data.draw(st.lists(st.sampled_from(events), min_size=1))  # some lost, some twice
    folded = fold(table(kept), SCHEMA)
    assert folded.to_pylist() == by_key(list(scalar_fold(kept).values()))
    assert folded.schema == LAYOUT


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_values_operation_and_position_do_not_depend_on_batching(data: st.DataObject) -> None:
    events = data.draw(histories())
    folded = fold(data.draw(deliveries(events)), SCHEMA)
    assert (
        folded.select(STABLE).to_pylist() == fold(table(events), SCHEMA).select(STABLE).to_pylist()
    )


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_folding_again_changes_nothing(data: st.DataObject) -> None:
    once = fold(data.draw(deliveries(data.draw(histories()))), SCHEMA)
    assert fold(once, SCHEMA).equals(once)


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_the_changed_columns_laid_over_any_matching_row_give_the_whole_image(
    data: st.DataObject,
) -> None:
    events = data.draw(histories())
    lost = data.draw(st.sets(st.sampled_from([event.position for event in events])))
    arrived = [event for event in events if event.position not in lost] or events[:1]
    folded = fold(data.draw(deliveries(arrived)), SCHEMA)
    states = {row for event in events for row in (event.before, event.after) if row is not None}
    by_digest = {digest(row): row for row in states}
    for change in folded.to_pylist():
        state = by_digest.get(change["_before_digest"])
        if state is None:
            continue
        image = tuple(change[name] for name in SCHEMA.names)
        changed = change["_changed"]
        laid = tuple(
            image[at] if changed[at // 8] >> at % 8 & 1 else state[at] for at in range(WIDTH)
        )
        assert laid == image


def test_a_gap_in_the_chain_makes_the_changed_set_unknown() -> None:
    rows: list[Row] = [(1, *[value] * (WIDTH - 1)) for value in (0, 1, 2, 3)]
    chain = [Event(at, 1, Op.UPDATE, rows[at], rows[at + 1]) for at in range(3)]
    whole, gap = (
        fold(table(chain), SCHEMA).to_pylist()[0],
        fold(table([chain[0], chain[2]]), SCHEMA).to_pylist()[0],
    )
    assert (whole["_before_digest"], whole["_changed"]) == (digest(rows[0]), b"\xfe\x03")
    assert (gap["_before_digest"], gap["_changed"]) == (None, None)
    assert gap["c1"] == 3


def test_an_insert_and_its_delete_leave_the_delete() -> None:
    row: Row = (1, *[0] * (WIDTH - 1))
    create = Event(1, 1, Op.CREATE, None, row)
    delete = Event(2, 1, Op.DELETE, row, None)
    folded = fold(table([delete, create]), SCHEMA).to_pylist()
    assert [
        (change["_op"], change["_position_offset"], change["_changed"]) for change in folded
    ] == [(2, 2, None)]


def test_a_change_met_twice_keeps_the_changed_set_that_is_known() -> None:
    old, new = (1, *[0] * (WIDTH - 1)), (1, *[1] * (WIDTH - 1))
    update = Event(3, 1, Op.UPDATE, old, new)
    bare = replace(update, before=None)
    for order in ([update, bare], [bare, update]):
        assert fold(table(order), SCHEMA).to_pylist() == [update.record]


@pytest.mark.parametrize("unknown", ["_changed", "_before_digest"])
@pytest.mark.parametrize("which", [0, 1])
def test_a_chain_in_which_a_set_or_a_digest_is_unknown_has_no_changed_set(
    unknown: str, which: int
) -> None:
    rows: list[Row] = [(1, *[value] * (WIDTH - 1)) for value in (0, 1, 2)]
    records = [Event(at, 1, Op.UPDATE, rows[at], rows[at + 1]).record for at in range(2)]
    records[which][unknown] = None
    (folded,) = fold(pa.Table.from_pylist(records, schema=LAYOUT), SCHEMA).to_pylist()
    assert (folded["_before_digest"], folded["_changed"]) == (None, None)
    assert folded["c1"] == 2

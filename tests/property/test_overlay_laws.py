"""Laws of the overlay of waiting changes on rows, over histories of real row states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.model.address import Segment
from lakesplice.model.change import Op, changes_schema, delta_schema
from lakesplice.model.position import Ordering, Position
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.planning.filtering.shown_columns import reader_needs
from lakesplice.planning.rows.edits import apply_edits
from lakesplice.planning.rows.fold import fold
from lakesplice.planning.rows.overlay import overlay
from lakesplice.planning.rows.waiting_changes import WaitingChanges
from tests.support.change_records import change_record, digest_of

WIDTH = 10
KEYS = 4
SCHEMA = TableSchema(
    tuple(
        Column(
            at,
            f"c{at}",
            f"c{at}",
            ColumnType(Primitive.STRING if at == 2 else Primitive.LONG),
            "any",
        )
        for at in range(WIDTH)
    ),
    ("c0",),
    (0, WIDTH),
)
SEGMENTS = (Segment(7, 1), Segment(3, KEYS - 1))
ADDRESSES = ((7, 0), (3, 0), (3, 1), (3, 2))
Row = tuple[Any, ...]


def digest(row: Row) -> int:
    return digest_of(SCHEMA, row)


@dataclass(frozen=True)
class Event:
    position: int
    key: int
    op: Op
    before: Row | None
    after: Row | None

    @property
    def record(self) -> dict[str, Any]:
        return change_record(SCHEMA, self.op, self.before, self.after) | {
            "_key_high": self.key,
            "_key_low": 0,
            "_position_file": self.position // 3,
            "_position_offset": self.position % 3,
        }


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """A source's events over a few keys, every key created once before all else."""
    rows: list[Row | None] = []
    events: list[Event] = []
    values = st.tuples(
        st.sampled_from([None, 0, 1]),
        st.sampled_from([None, "", "longer than twelve bytes"]),
        *[st.sampled_from([None, 0, 1])] * (WIDTH - 3),
    )
    for key in range(KEYS):
        rows.append((key, *draw(values)))
        events.append(Event(key, key, Op.CREATE, None, rows[key]))
    for position in range(KEYS, KEYS + draw(st.integers(0, 12))):
        key = draw(st.integers(0, KEYS - 1))
        before = rows[key]
        after: Row | None = (key, *draw(values))
        step = draw(st.sampled_from(["write", "touch", "touch", "delete"]))
        if before is None:
            events.append(Event(position, key, Op.CREATE, None, after))
        elif step == "delete":
            after = None
            events.append(Event(position, key, Op.DELETE, before, None))
        else:
            if step == "touch":
                at = draw(st.integers(1, WIDTH - 1))
                assert after is not None
                after = (*before[:at], after[at], *before[at + 1 :])
            events.append(Event(position, key, Op.UPDATE, before, after))
        rows[key] = after
    return events


def base(events: list[Event]) -> pa.Table:
    """The file that these events make, one row a key."""
    last = {event.key: event for event in events}
    records = []
    for key in range(KEYS):
        record = last[key].record
        deleted = last[key].op == Op.DELETE
        records.append(record | {"_is_deleted": deleted, "_source_ts": None})
    return pa.Table.from_pylist(records, schema=SCHEMA.arrow)


def located(changes: pa.Table) -> pa.Table:
    keys = changes.column("_key_high").to_pylist()
    for at, name in enumerate(("_group", "_row")):
        column = pa.array([ADDRESSES[key][at] for key in keys], pa.int64())
        changes = changes.append_column(name, column)
    return changes.select(delta_schema(SCHEMA).names)


def changes(events: list[Event]) -> pa.Table:
    return pa.Table.from_pylist([e.record for e in events], schema=changes_schema(SCHEMA))


def laid_over(file: pa.Table, waiting: pa.Table) -> pa.Table:
    placed = WaitingChanges.of(waiting).for_file(SEGMENTS, "base/x")
    state = file.take(pa.array(placed.addressed))
    edits = overlay(placed, state, SCHEMA, "base/x")
    assert edits.applied + edits.stale == waiting.num_rows
    return apply_edits(file, edits)


def seen(file: pa.Table) -> list[dict[str, Any]]:
    """The rows; of a tombstone only what means something."""
    out = []
    for row in file.to_pylist():
        dead = row["_is_deleted"]
        out.append({n: v for n, v in row.items() if not dead or n[0] == "_" or n == "c0"})
    return out


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Event], list[Event], list[pa.Table]]:
    """What the file holds, what arrived since (some lost, some again, in any order), as deltas."""
    events = draw(histories())
    floor = draw(st.integers(KEYS, len(events)))
    held = events[:KEYS] + [e for e in events[KEYS:floor] if draw(st.booleans())]
    sent = draw(st.permutations(draw(st.lists(st.sampled_from(events), max_size=14))))
    cuts = sorted(draw(st.lists(st.integers(0, len(sent)), max_size=3)))
    parts = [sent[a:b] for a, b in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
    deltas = [changes(part) for part in parts]
    deltas = [located(fold(d, SCHEMA) if draw(st.booleans()) else d) for d in deltas]
    return held, sent, deltas


@pytest.mark.slow
@given(cases())
def test_the_overlay_is_the_whole_after_image_of_the_highest_change(
    case: tuple[list[Event], list[Event], list[pa.Table]],
) -> None:
    held, sent, deltas = case
    newest = sorted([*held, *sent], key=lambda event: event.position)
    assert seen(laid_over(base(held), pa.concat_tables(deltas))) == seen(base(newest))


@pytest.mark.slow
@given(cases())
def test_compacting_delta_by_delta_in_any_order_ends_as_compacting_all_at_once(
    case: tuple[list[Event], list[Event], list[pa.Table]],
) -> None:
    held, _, deltas = case
    stepwise = base(held)
    for delta in reversed(deltas):
        stepwise = laid_over(stepwise, delta)
    assert seen(stepwise) == seen(laid_over(base(held), pa.concat_tables(deltas)))


@pytest.mark.slow
@given(cases(), st.integers(0, WIDTH - 1), st.booleans())
def test_a_reader_of_few_columns_needs_less_and_sees_the_same(
    case: tuple[list[Event], list[Event], list[pa.Table]], width: int, bounds: bool
) -> None:
    held, _, deltas = case
    file, waiting = base(held), pa.concat_tables(deltas)
    shown = [*SCHEMA.names[:width], "_is_deleted"]
    needs = reader_needs(SCHEMA, Ordering.BINLOG, shown)
    kept = [n for n in waiting.column_names if n in shown or n[0] == "_" or n in SCHEMA.key]
    few = waiting.select([name for name in kept if name not in needs.left_out])
    placed = WaitingChanges.of(few).for_file(SEGMENTS, "base/x")
    columns = (file[name].to_numpy() for name in ("_position_file", "_position_offset"))
    highest = Position(*(int(column.max()) for column in columns)) if bounds else None
    names = [*needs.state_for(placed, highest)]
    edits = overlay(placed, file.select(names).take(pa.array(placed.addressed)), SCHEMA, "base/x")
    whole = laid_over(file, waiting).select(shown)
    assert seen(apply_edits(file.select(shown), edits)) == seen(whole)


def test_the_columns_a_reader_decodes_depend_on_those_it_shows() -> None:
    key, position, digest_ = ("c0",), ("_position_file", "_position_offset"), ("_row_digest",)
    few = reader_needs(SCHEMA, Ordering.BINLOG, ["c0", "c1", "c2", "c3", "c4"])
    assert (few.state, few.state_above) == ((*key, *position), key)
    assert few.left_out == {"_source_ts", "_before_digest", "_row_digest", "_changed"}
    for shown in (SCHEMA.names, ["c1", "_row_digest"]):
        more = reader_needs(SCHEMA, Ordering.BINLOG, [*shown, "_source_ts"])
        assert (more.state, more.state_above) == ((*key, *position, *digest_), (*key, *digest_))
        assert more.left_out == set()
    by_hand = reader_needs(SCHEMA, Ordering.COMMIT, ["c1"])
    assert (by_hand.state, by_hand.state_above) == ((*key, "_position_offset"), key)
    assert by_hand.left_out == {"_source_ts"}


@pytest.mark.parametrize(
    ("change", "row", "above"),
    [
        ((1, 5), (1, 4), True),
        ((1, 4), (1, 4), False),
        ((2, 0), (1, 9), True),
        ((0, 9), (1, 4), False),
    ],
)
def test_bounds_spare_positions_only_if_every_change_is_above_them(
    change: tuple[int, int], row: tuple[int, int], above: bool
) -> None:
    event = Event(change[0] * 3 + change[1], 1, Op.CREATE, None, (1, 0, "", *[0] * (WIDTH - 3)))
    record = event.record | dict(zip(("_position_file", "_position_offset"), change, strict=True))
    table = located(pa.Table.from_pylist([record], schema=changes_schema(SCHEMA)))
    part = WaitingChanges.of(table).for_file(SEGMENTS, "base/x")
    needs = reader_needs(SCHEMA, Ordering.BINLOG, ["c1"])
    chosen = needs.state_for(part, Position(*row))
    assert chosen == (needs.state_above if above else needs.state)
    assert needs.state_for(part, None) == needs.state


@pytest.mark.slow
@given(cases(), st.integers(0, KEYS))
def test_a_file_overlaid_in_two_ranges_is_the_file_overlaid_whole(
    case: tuple[list[Event], list[Event], list[pa.Table]], cut: int
) -> None:
    held, _, deltas = case
    file, waiting = base(held), pa.concat_tables(deltas)
    placed = WaitingChanges.of(waiting).for_file(SEGMENTS, "base/x")
    whole = overlay(placed, file.take(pa.array(placed.addressed)), SCHEMA, "base/x")
    by_state, by_edits = [], []
    for first, last in ((0, cut), (cut, KEYS)):
        rows, part = file.slice(first, last - first), placed.within(first, last)
        state = rows.take(pa.array(part.addressed))
        by_state.append(apply_edits(rows, overlay(part, state, SCHEMA, "base/x")))
        by_edits.append(apply_edits(rows, whole.within(first, last)))
    assert pa.concat_tables(by_state).equals(apply_edits(file, whole))
    assert pa.concat_tables(by_edits).equals(apply_edits(file, whole))


@pytest.mark.slow
@given(cases())
def test_only_columns_that_may_differ_are_edited(
    case: tuple[list[Event], list[Event], list[pa.Table]],
) -> None:
    held, sent, _ = case
    file = base(held)
    digests = file.column("_row_digest").to_pylist()
    updates = [e for e in sent if e.before is not None and e.op == Op.UPDATE]
    next_up = [e for e in updates if e.before and digests[e.key] == digest(e.before)]
    for event in next_up:
        row = file.slice(event.key, 1).to_pylist()[0]
        if row["_position_file"] * 3 + row["_position_offset"] >= event.position:
            continue
        placed = WaitingChanges.of(located(changes([event]))).for_file(SEGMENTS, "base/x")
        edits = overlay(placed, file.take(pa.array(placed.addressed)), SCHEMA, "base/x")
        assert event.before is not None
        assert event.after is not None
        differ = {
            name
            for name, a, b in zip(SCHEMA.names, event.before, event.after, strict=True)
            if a != b
        }
        assert {name for name in edits.columns if name in SCHEMA.names} == differ
        assert np.array_equal(edits.rows, placed.addressed)

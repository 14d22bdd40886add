"""Whole and partial images of rows, in any order, batches and repetition, give one result: each
column has the value of the newest change that contains it, and an unknown value is never null.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.model.address import Segment
from lakesplice.model.change import delta_schema
from lakesplice.planning.rows.column_positions import ColumnRegisters
from lakesplice.planning.rows.edits import apply_edits
from lakesplice.planning.rows.fold import fold
from lakesplice.planning.rows.overlay import overlay
from lakesplice.planning.rows.partial_fold import hidden_rows
from lakesplice.planning.rows.waiting_changes import WaitingChanges
from tests.support.drawing import examples
from tests.support.partial import NAMES, SCHEMA, Row, Step, by_the_rule, changes, digest

KEYS = 3
VALUES = {"a": (None, 0, 1), "b": (None, 0, 1), "c": (None, "", "x")}


@st.composite
def histories(draw: st.DrawFn) -> list[Step]:
    """Any changes of a few keys, each at a position of its own; a row may be told of in parts only,
    from its first change on.
    """
    steps: list[Step] = []
    rows: dict[int, Row] = {}
    for position in range(draw(st.integers(1, 14))):
        key = draw(st.integers(0, KEYS - 1))
        kind = draw(st.sampled_from(["whole", "partial", "partial", "delete"]))
        if kind == "delete":
            steps.append(Step(position, key, None))
            rows.pop(key, None)
            continue
        every = {name: draw(st.sampled_from(found)) for name, found in VALUES.items()}
        names = draw(st.sets(st.sampled_from(NAMES[1:]), max_size=2))
        values = every if kind == "whole" else {name: every[name] for name in sorted(names)}
        steps.append(Step(position, key, values, rows.get(key)))
        rows[key] = {**rows.get(key, {}), **values}
        if set(rows[key]) != set(VALUES):
            del rows[key]
    return steps


class PageBuffer:
    """A table of one file per first meeting of keys, as append, locate, overlay and compaction keep
    it.
    """

    def __init__(self) -> None:
        self.files: list[pa.Table] = []
        self.places: dict[int, tuple[int, int]] = {}
        self.waiting: list[pa.Table] = []

    def append(self, brought: pa.Table) -> None:
        folded = fold(brought, SCHEMA)
        keys = folded["_key_low"].to_pylist()
        known = np.array([key in self.places for key in keys], np.bool_)
        located = folded.filter(pa.array(known))
        if located.num_rows:
            at = [self.places[key] for key in located["_key_low"].to_pylist()]
            for number, name in enumerate(("_group", "_row")):
                located = located.append_column(name, pa.array([a[number] for a in at], pa.int64()))
            self.waiting.append(located.select(delta_schema(SCHEMA).names))
        new = folded.filter(pa.array(~known))
        if new.num_rows:
            for row, key in enumerate(new["_key_low"].to_pylist()):
                self.places[key] = len(self.files), row
            hidden = pa.array(hidden_rows(new, SCHEMA))
            self.files.append(new.append_column("_is_deleted", hidden).select(SCHEMA.arrow.names))

    def overlaid(self, at: int) -> pa.Table:
        file = self.files[at]
        if not self.waiting:
            return file
        placed = WaitingChanges.of(pa.concat_tables(self.waiting)).for_file(
            (Segment(at, len(file)),), "f"
        )
        state = file.take(pa.array(placed.addressed))
        edits = overlay(placed, state, SCHEMA, "f")
        assert edits.applied + edits.stale == len(placed.rows)
        return apply_edits(file, edits)

    def compact(self) -> None:
        self.files = [self.overlaid(at) for at in range(len(self.files))]
        self.waiting = []

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row for at in range(len(self.files)) for row in self.overlaid(at).to_pylist()]


def seen(rows: list[dict[str, Any]]) -> dict[int, Row]:
    live = [row for row in rows if not row["_is_deleted"]]
    return {row["id"]: {name: row[name] for name in NAMES[1:]} for row in live}


@st.composite
def deliveries(draw: st.DrawFn, steps: list[Step]) -> list[tuple[list[list[Step]], bool]]:
    """Batches of the steps in any order, some again; each of payloads that are folded before."""
    again = draw(st.lists(st.sampled_from(steps), max_size=8))
    sent = draw(st.permutations(steps + again))
    batches: list[tuple[list[list[Step]], bool]] = []
    while sent:
        payloads = []
        for _ in range(draw(st.integers(1, 2))):
            count = draw(st.integers(1, 6))
            payloads.append(sent[:count])
            sent = sent[count:]
        batches.append(([part for part in payloads if part], draw(st.booleans())))
    return batches


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_any_order_batching_and_repetition_comes_to_each_columns_newest_value(
    data: st.DataObject,
) -> None:
    steps = data.draw(histories())
    table = PageBuffer()
    for payloads, compacts in data.draw(deliveries(steps)):
        folded = [fold(changes(part), SCHEMA) for part in payloads]
        table.append(pa.concat_tables(folded))
        if compacts:
            table.compact()
    expected = by_the_rule(steps)
    assert seen(table.rows) == expected
    table.compact()
    assert seen(table.rows) == expected
    for row in table.rows:
        if row["_row_digest"] is not None:
            assert row["_row_digest"] == digest({name: row[name] for name in NAMES})


@pytest.mark.slow
@settings(max_examples=examples(80), deadline=None)
@given(st.data())
def test_what_was_lost_is_set_by_nothing_else_and_its_replay_regresses_nothing(
    data: st.DataObject,
) -> None:
    steps = data.draw(histories())
    lost = set(data.draw(st.sets(st.sampled_from([step.position for step in steps]))))
    arrived = [step for step in steps if step.position not in lost]
    table = PageBuffer()
    for step in arrived:
        table.append(changes([step]))
    assert seen(table.rows) == by_the_rule(arrived)
    table.compact()
    for step in data.draw(st.permutations(steps)):
        table.append(changes([step]))
    assert seen(table.rows) == by_the_rule(steps)


@pytest.mark.slow
@settings(max_examples=examples(80), deadline=None)
@given(st.data())
def test_folding_partial_changes_again_or_in_parts_changes_nothing(data: st.DataObject) -> None:
    steps = data.draw(histories())
    sent = data.draw(st.permutations(steps + data.draw(st.lists(st.sampled_from(steps)))))
    cut = data.draw(st.integers(0, len(sent)))
    whole = fold(changes(sent), SCHEMA)
    parts = [part for part in (sent[:cut], sent[cut:]) if part]
    folded = [fold(changes(part), SCHEMA) for part in parts]
    stable = [name for name in whole.column_names if name not in ("_before_digest", "_changed")]
    known = whole.select(stable).to_pylist()
    again = fold(pa.concat_tables(folded), SCHEMA).select(stable).to_pylist()
    assert meant(again) == meant(known)
    assert fold(whole, SCHEMA).equals(whole)


def meant(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Changes without the values of a delete, and of columns that they know nothing of."""
    out = []
    for row in rows:
        dead = row["_op"] == 2
        spelt = row["_column_positions"]
        place = np.array([row["_position_file"]]), np.array([row["_position_offset"]])
        registers = ColumnRegisters.of(
            *place, np.array([dead]), pa.array([spelt], pa.binary()), len(SCHEMA.columns)
        )
        kept = {n: v for n, v in row.items() if n[0] == "_" or n == "id"}
        kept |= {n: row[n] for at, n in enumerate(NAMES) if registers.known[0, at]}
        out.append(kept)
    return out


ENDS = st.sampled_from([-1, 0, 1, 5, 1 << 40])


@settings(max_examples=examples(80), deadline=None)
@given(st.integers(0, 5), st.integers(1, 9), st.data())
def test_registers_come_back_from_their_bytes(rows: int, columns: int, data: st.DataObject) -> None:
    def draw(values: st.SearchStrategy[Any], *shape: int) -> Any:
        count = int(np.prod(shape))
        return np.array(data.draw(st.lists(values, min_size=count, max_size=count))).reshape(shape)

    own_file, own_offset = (draw(ENDS, rows).astype(np.int64) for _ in range(2))
    file, offset = (draw(ENDS, rows, columns + 1).astype(np.int64) for _ in range(2))
    known = draw(st.booleans(), rows, columns + 1).astype(np.bool_)
    lines = ColumnRegisters(own_file, own_offset, file, offset, known)
    deleted = lines.plain & ~known.any(axis=1)
    again = ColumnRegisters.of(own_file, own_offset, deleted, lines.encoded(), columns)
    for name in ("file", "offset", "known"):
        assert np.array_equal(getattr(again, name), getattr(lines, name)), name


def test_the_bytes_of_a_partial_image_are_as_documented() -> None:
    spelt = changes([Step(7, 1, {"b": 5})])["_column_positions"][0].as_py()
    # Six registers: id, a, b, c, the positions' own, and that of columns to come.
    places = [0, 1, 0, 1, 0, 1]
    head = b"".join(number.to_bytes(2, "little") for number in (6, *places))
    assert spelt == head + b"\xff" * 16 + b"\x00"

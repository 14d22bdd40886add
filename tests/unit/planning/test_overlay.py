"""The overlay, case by case; what holds for all histories is in tests/property."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.errors import CorruptFileError
from lakesplice.model.address import Segment
from lakesplice.model.change import Op, delta_schema
from lakesplice.model.position import Ordering
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.planning.rows.edits import Edits, apply_edits
from lakesplice.planning.rows.overlay import overlay, without_effect
from lakesplice.planning.rows.waiting_changes import WaitingChanges

SCHEMA = TableSchema(
    (
        Column(0, "id", "id", ColumnType(Primitive.LONG), "BIGINT"),
        Column(1, "a", "a", ColumnType(Primitive.STRING), "TEXT"),
        Column(2, "b", "b", ColumnType(Primitive.LONG), "BIGINT"),
    ),
    ("id",),
    (0, 3),
)
SEGMENTS = (Segment(70, 2), Segment(30, 2))
A, B, ALL = {"a"}, {"b"}, {"a", "b"}
SYSTEM = set(SCHEMA.arrow.names) - {"id", "a", "b"}


def rows(*states: tuple[int, int | None]) -> pa.Table:
    """A file of rows by (position, digest); a row without a digest is a tombstone."""
    return pa.Table.from_pylist(
        [
            {
                "id": at,
                "a": f"old {at}",
                "b": at,
                "_position_file": 1,
                "_position_offset": position,
                "_row_digest": digest,
                "_is_deleted": digest is None,
            }
            for at, (position, digest) in enumerate(states)
        ],
        schema=SCHEMA.arrow,
    )


FILE = rows((10, 100), (10, 101), (10, None), (10, 103))


def change(
    row: int,
    position: int,
    link: tuple[int | None, int | None],
    changed: set[str] | None,
    **more: Any,
) -> dict[str, Any]:
    """A change of a row of FILE from one digest to another."""
    group, at = (70, row) if row < 2 else (30, row - 2)
    bits = None if changed is None else bytes([2 * ("a" in changed) + 4 * ("b" in changed)])
    return {
        "_group": group,
        "_row": at,
        "_op": Op.UPDATE if link[1] is not None else Op.DELETE,
        "_position_file": 1,
        "_position_offset": position,
        "_before_digest": link[0],
        "_row_digest": link[1],
        "_changed": bits,
        "id": row,
        "a": f"new {position}",
        "b": position,
    } | more


def edited(*changes: dict[str, Any]) -> Edits:
    waiting = WaitingChanges.of(pa.Table.from_pylist(list(changes), schema=delta_schema(SCHEMA)))
    placed = waiting.for_file(SEGMENTS, "base/f.parquet")
    return overlay(placed, FILE.take(pa.array(placed.addressed)), SCHEMA, "base/f.parquet")


CASES = {
    "a matching digest": ([change(0, 11, (100, 5), A)], A),
    "a chain unites its sets": ([change(0, 11, (100, 5), A), change(0, 12, (5, 6), B)], ALL),
    "a chain of one column": ([change(0, 11, (100, 5), A), change(0, 12, (5, 6), A)], A),
    "another digest": ([change(0, 11, (99, 5), A)], ALL),
    "no before-image": ([change(0, 11, (None, 5), A)], ALL),
    "an unknown set": ([change(0, 11, (100, 5), None)], ALL),
    "a missing link": ([change(0, 11, (100, 5), A), change(0, 13, (6, 7), A)], ALL),
    "a tombstone's state": ([change(2, 11, (None, 5), A)], ALL),
    "a delete": ([change(0, 11, (100, None), ALL)], set()),
    "an insert after a delete": (
        [change(0, 11, (100, None), set()), change(0, 12, (None, 5), set(), _op=Op.CREATE)],
        ALL,
    ),
    "a stale link is no link": ([change(0, 9, (100, 5), B), change(0, 11, (100, 6), A)], A),
    "a touch that changes nothing": ([change(0, 11, (100, 100), set())], set()),
}


@pytest.mark.parametrize(("changes", "columns"), CASES.values(), ids=CASES)
def test_columns_are_edited_where_the_chain_of_digests_does_not_rule_it_out(
    changes: list[dict[str, Any]], columns: set[str]
) -> None:
    for order in (changes, changes[::-1]):
        assert set(edited(*order).columns) - SYSTEM == columns
        assert set(edited(*order).columns) >= SYSTEM


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ([change(0, 11, (100, 5), A)], A),
        ([change(0, 11, (100, 5), A), change(1, 12, (101, 6), B)], ALL),
        ([change(0, 11, (100, None), ALL), change(1, 12, (101, 6), B)], B),
        ([change(0, 11, (100, 5), A), change(1, 12, (None, 6), B)], set()),
        ([change(0, 11, (None, 5), A)], set()),
    ],
)
def test_values_are_known_to_be_new_where_every_set_of_columns_is_trusted(
    changes: list[dict[str, Any]], known: set[str]
) -> None:
    moving = {"_position_offset", "_source_ts", "_row_digest"}
    assert edited(*changes).known_new == known | moving


@pytest.mark.parametrize("ordering", Ordering)
def test_only_by_hand_a_row_may_stay_behind_its_newest_change(ordering: Ordering) -> None:
    edits = edited(change(0, 11, (100, 5), A))
    moving = {name: edits.columns[name] for name in ("_position_offset", "_source_ts")}
    assert without_effect(replace(edits, columns=moving), ordering) is (ordering == Ordering.COMMIT)
    assert not without_effect(edits, ordering)


def test_the_highest_position_wins_and_rows_count_through_the_segments() -> None:
    edits = edited(
        change(3, 13, (None, 7), None), change(3, 12, (None, 6), None), change(1, 11, (101, 5), B)
    )
    assert edits.rows.tolist() == [1, 3]
    after = apply_edits(FILE, edits)
    assert after.column("b").to_pylist() == [0, 11, 2, 13]
    assert after.column("a").to_pylist() == ["old 0", "old 1", "old 2", "new 13"]
    assert after.column("_position_offset").to_pylist() == [10, 11, 10, 13]
    assert after.column("_row_digest").to_pylist() == [100, 5, None, 7]
    assert after.schema == FILE.schema


def test_changes_at_or_below_their_row_and_repetitions_are_stale() -> None:
    edits = edited(
        change(0, 10, (None, 5), None),
        change(0, 9, (None, 5), None),
        change(1, 11, (101, 6), A),
        change(1, 11, (101, 6), A),
        change(1, 12, (6, 7), A),
    )
    assert (edits.applied, edits.stale) == (2, 3)
    assert edits.rows.tolist() == [1]


def test_a_delete_makes_a_tombstone_without_a_digest() -> None:
    after = apply_edits(
        FILE, edited(change(0, 11, (100, None), None, _row_digest=77, _op=Op.DELETE))
    )
    assert after.column("_is_deleted").to_pylist() == [True, False, True, False]
    assert after.column("_row_digest").to_pylist() == [None, 101, None, 103]
    assert after.column("a").to_pylist()[0] == "old 0"


def test_a_change_of_another_key_is_refused_even_if_stale() -> None:
    for position in (9, 11):
        with pytest.raises(CorruptFileError, match=r"index check.*base/f.*row=3.*key=8.*found=3"):
            edited(change(3, position, (None, 5), None, id=8))


@pytest.mark.parametrize("row", [-1, 2])
def test_an_address_beyond_its_segment_is_refused(row: int) -> None:
    with pytest.raises(CorruptFileError, match=r"base/f.*group='0000000000000046'"):
        edited(change(0, 11, (100, 5), A, _row=row))


def test_changes_of_other_groups_are_left_out() -> None:
    assert len(edited(change(0, 11, (100, 5), A, _group=71)).rows) == 0
    assert not edited().columns


def test_edits_of_a_range_count_from_its_start() -> None:
    edits = edited(change(1, 11, (101, 5), B), change(2, 11, (None, 5), None))
    part = edits.within(2, 4)
    assert part.rows.tolist() == [0]
    assert part.columns["b"].values.to_pylist() == [11]
    assert set(edits.within(3, 4).columns) == set()

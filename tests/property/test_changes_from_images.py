"""Row images become changes with the right digests, changed columns and keys, row by row."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.errors import UsageError
from lakesplice.formats.events import ImageBlock
from lakesplice.model.change import Op, changes_schema
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.model.types import ColumnType
from lakesplice.planning.rows.image_changes import to_changes
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.planning.rows.row_digest import row_digest
from tests.support.drawing import examples

TYPES = [
    "long", "string", "double", "decimal(12,2)", "boolean", "timestamp", "decimal(30,4)", "binary",
    "date", "float", "integer",
]  # fmt: skip
COLUMNS = tuple(
    Column(at, f"c{at}", f"C {at}", ColumnType.parse(kind), kind.upper())
    for at, kind in enumerate(TYPES)
)
SCHEMA = TableSchema(COLUMNS, ("c0",), (0, 9, 11))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": st.sampled_from(["", "a", "b\nc"]),
    "double": st.sampled_from([0.0, -0.0, 1.5]),
    "decimal(12,2)": st.sampled_from([Decimal("0.00"), Decimal("-1.25")]),
    "boolean": st.booleans(),
    "timestamp": st.integers(0, 2),
    "decimal(30,4)": st.sampled_from([Decimal("0.0000"), Decimal("-123456789012345678901.5000")]),
    "binary": st.sampled_from([b"", b"\x00"]),
    "date": st.integers(0, 2),
    "float": st.sampled_from([0.0, -0.0]),
    "integer": st.integers(0, 2),
}
Row = tuple[Any, ...]


def images(rows: list[Row | None], columns: tuple[Column, ...]) -> pa.Table:
    """The images by source name; where there is none the values are nulls."""
    return pa.table(
        {
            column.source_name: pa.array([row and row[at] for row in rows], column.type.arrow)
            for at, column in enumerate(columns)
        }
    )


Event = tuple[Op, Row | None, Row | None]


def block(events: list[Event], columns: tuple[Column, ...] = COLUMNS) -> ImageBlock:
    count = len(events)
    before, after = [e[1] for e in events], [e[2] for e in events]
    return ImageBlock(
        schema=SourceSchema(
            tuple(SourceField(one.source_name, one.type, one.source_type) for one in columns), ()
        ),
        rows=np.arange(count),
        gtid=pa.nulls(count, pa.string()),
        op=np.array([e[0] for e in events], np.int8),
        position_file=np.full(count, 1, np.int64),
        position_offset=np.arange(count, dtype=np.int64),
        source_ts=pa.array(range(count), pa.timestamp("us", tz="UTC")),
        before=images(before, columns),
        before_present=np.array([row is not None for row in before], np.bool_),
        after=images(after, columns),
        after_present=np.array([row is not None for row in after], np.bool_),
    )


def mapping(columns: tuple[Column, ...] = COLUMNS) -> dict[str, Column]:
    return {column.source_name: column for column in reversed(columns)}


rows = st.tuples(st.integers(0, 3), *[st.none() | VALUES[kind] for kind in TYPES[1:]])


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    def event() -> Event:
        op = draw(st.sampled_from(Op))
        first, second = draw(rows), draw(rows)
        kept = draw(st.lists(st.booleans(), min_size=len(TYPES), max_size=len(TYPES)))
        second = tuple(b if keep else a for a, b, keep in zip(first, second, kept, strict=True))
        if op == Op.DELETE:
            return op, first, None
        # A source may send updates without a before-image.
        return op, first if op == Op.UPDATE and draw(st.booleans()) else None, second

    return [event() for _ in range(draw(st.integers(1, 8)))]


def digest(row: Row, columns: tuple[Column, ...] = COLUMNS) -> int:
    table = images([row], columns).rename_columns([column.name for column in columns])
    return int(row_digest(table, SCHEMA)[0])


def exact(value: Any) -> Any:
    """What tells two values apart: floats by their sign too."""
    return str(value) if isinstance(value, float) else value


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(events(), st.integers(1, len(TYPES)))
def test_changes_say_what_the_images_say(sent: list[Event], width: int) -> None:
    columns = COLUMNS[:width]
    changes = to_changes(block(sent, columns), SCHEMA, mapping(columns))
    assert changes.schema == changes_schema(SCHEMA)
    high, low = key_hash(changes, SCHEMA)
    assert changes["_key_high"].to_pylist() == high.tolist()
    assert changes["_key_low"].to_pylist() == low.tolist()
    expected = images([after or before for _, before, after in sent], columns)
    assert changes.select([c.name for c in columns]).columns == expected.columns
    assert all(changes[c.name].null_count == len(sent) for c in COLUMNS[width:])
    for change, (op, before, after) in zip(changes.to_pylist(), sent, strict=True):
        assert change["_op"] == op
        assert change["_before_digest"] == (before and digest(before[:width], columns))
        assert change["_row_digest"] == (after and digest(after[:width], columns))
        if before is None:
            assert change["_changed"] is None
            continue
        bits = int.from_bytes(change["_changed"], "little")
        assert len(change["_changed"]) == 2
        differing = [
            after is not None and at < width and exact(before[at]) != exact(after[at])
            for at in range(len(TYPES))
        ]
        assert [bool(bits >> at & 1) for at in range(len(TYPES))] == differing


def test_no_rows_give_no_changes() -> None:
    changes = to_changes(block([]), SCHEMA, mapping())
    assert (changes.num_rows, changes.schema) == (0, changes_schema(SCHEMA))


def test_a_column_of_another_kind_is_refused_not_cast() -> None:
    row = (1, *[None] * (len(TYPES) - 1))
    sent = block([(Op.CREATE, None, row)])
    told = sent.after.set_column(0, "C 0", pa.array(["1"]))
    with pytest.raises(UsageError, match="C 0"):
        to_changes(_with_after(sent, told), SCHEMA, mapping())


@pytest.mark.parametrize("missing", ["C 0", "C 3"])
def test_a_block_without_a_column_of_its_own_schema_is_refused(missing: str) -> None:
    row = (1, *[None] * (len(TYPES) - 1))
    sent = block([(Op.CREATE, None, row)])
    with pytest.raises(UsageError, match=missing):
        to_changes(_with_after(sent, sent.after.drop_columns([missing])), SCHEMA, mapping())


@pytest.mark.parametrize("op", Op)
def test_a_row_without_the_image_it_needs_is_refused(op: Op) -> None:
    with pytest.raises(UsageError, match="row=0"):
        to_changes(block([(op, None, None)]), SCHEMA, mapping())


def test_a_mapping_without_the_key_is_refused() -> None:
    row = (1, *[None] * (len(TYPES) - 1))
    sent = block([(Op.CREATE, None, row)])
    with pytest.raises(UsageError, match="c0"):
        to_changes(sent, SCHEMA, mapping(COLUMNS[1:]))


def _with_after(sent: ImageBlock, after: pa.Table) -> ImageBlock:
    return replace(sent, after=after)

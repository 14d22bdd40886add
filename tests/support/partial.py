"""Histories of one table's rows in whole and partial images, and what they come to by the rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lakesplice.model.change import Op, changes_schema
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Kind
from lakesplice.planning.columnwise import spelt_positions
from lakesplice.planning.digest import row_digest

NAMES = ("id", "a", "b", "c")
SCHEMA = TableSchema(
    (
        *(
            Column(at, name, name, ColumnType(Kind.STRING if name == "c" else Kind.LONG), "any")
            for at, name in enumerate(NAMES)
        ),
        TableSchema.positions_column(len(NAMES)),
    ),
    ("id",),
    (0, len(NAMES) + 1),
)
LAYOUT = changes_schema(SCHEMA)
Row = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """A change of a key: `values` has the columns that its image has; None: a delete."""

    position: int
    key: int
    values: Row | None
    before: Row | None = None

    @property
    def is_whole(self) -> bool:
        return self.values is None or set(NAMES[1:]) <= set(self.values)


def image(values: Row) -> pa.Table:
    fields = [field for field in SCHEMA.user_fields if field.name in values]
    return pa.Table.from_pylist([values], schema=pa.schema(fields))


def digest(values: Row) -> int:
    return int(row_digest(image(values), SCHEMA)[0])


def changes(steps: list[Step]) -> pa.Table:
    """The steps as `to_changes` gives them."""
    return pa.Table.from_pylist([_record(step) for step in steps], schema=LAYOUT)


def _record(step: Step) -> Row:
    values = {"id": step.key, **(step.values or {})}
    place = np.array([step.position // 3]), np.array([step.position % 3])
    known = step.is_whole and step.values is not None
    changed = None
    if known and step.before is not None:
        bits = [step.before.get(name) != values[name] for name in NAMES[1:]]
        changed = bytes([sum(bit << at for at, bit in enumerate(bits, 1))])
    delete = step.values is None
    spelt = None
    if not step.is_whole:
        spelt = spelt_positions(*place, np.array([delete]), values, SCHEMA)[0].as_py()
    return {
        "_key_high": step.key % 2,
        "_key_low": step.key,
        "_op": int(Op.DELETE if delete else Op.UPDATE),
        "_position_file": int(place[0][0]),
        "_position_offset": int(place[1][0]),
        "_before_digest": digest({"id": step.key, **step.before}) if changed else None,
        "_row_digest": digest(values) if known else None,
        "_changed": changed,
        "_source_ts": None,
        "_column_positions": spelt,
        **values,
    }


def by_the_rule(steps: list[Step]) -> dict[int, Row]:
    """Each key's row, column by column in the order of positions; a row of which a column was not
    told since its last delete isn't there.
    """
    rows: dict[int, Row] = {}
    for step in sorted(steps, key=lambda one: one.position):
        row = rows.setdefault(step.key, {})
        if step.values is None:
            row.clear()
        else:
            row.update(step.values)
    return {key: row for key, row in rows.items() if set(NAMES[1:]) <= set(row)}

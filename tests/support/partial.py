"""Histories of one table's rows in whole and partial images, and their expected results.

They share no code with the product: digests and registers follow the document of the format.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakesplice.model.change import Op, changes_schema
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from tests.support import independent

NAMES = ("id", "a", "b", "c")
SCHEMA = TableSchema(
    (
        *(
            Column(
                at,
                name,
                name,
                ColumnType(Primitive.STRING if name == "c" else Primitive.LONG),
                "any",
            )
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


def digest(values: Row) -> int:
    """The row digest, by the document."""
    parts = {}
    for at, name in enumerate(NAMES):
        if (value := values.get(name)) is not None:
            kind, word = (
                ("string", independent.text_word(value)) if name == "c" else ("long", value)
            )
            parts[f"{at}:{kind}:any"] = word
    return independent.digest(parts)


def changes(steps: list[Step]) -> pa.Table:
    """The steps as `to_changes` gives them."""
    return pa.Table.from_pylist([_record(step) for step in steps], schema=LAYOUT)


def _record(step: Step) -> Row:
    values = {"id": step.key, **(step.values or {})}
    known = step.is_whole and step.values is not None
    changed = before_digest = None
    if known and step.before is not None:
        bits = [step.before.get(name) != values[name] for name in NAMES[1:]]
        changed = bytes([sum(bit << at for at, bit in enumerate(bits, 1))])
        before_digest = digest({"id": step.key, **step.before})
    delete = step.values is None
    spelt = None
    if not step.is_whole:
        # The last one is that of the positions themselves.
        spelt = independent.registers([*(name in values for name in NAMES), True])
    return {
        "_key_high": step.key % 2,
        "_key_low": step.key,
        "_op": int(Op.DELETE if delete else Op.UPDATE),
        "_position_file": step.position // 3,
        "_position_offset": step.position % 3,
        "_before_digest": before_digest,
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
